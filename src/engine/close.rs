//! The end of an engine.

use super::Engine;
use crate::error::{Error, Result};

/// A log up to this size is left for the next opening to replay, which takes a few milliseconds; a larger one is
/// flushed first.
const REPLAY_BYTES_MAX: u64 = 1 << 20;

impl Engine {
    /// Makes what was acknowledged durable and ends the threads. The second call does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        if self.health.is_closed() {
            return Ok(());
        }
        let Some(writer) = &self.writer else {
            self.health.close();
            return Ok(());
        };
        let mut result = self.health.check_writable();
        if result.is_ok() && writer.lock().wal.bytes() > REPLAY_BYTES_MAX {
            // If it fails, the log still has everything.
            let _ = self.seal_all().and_then(|()| self.wait_flushed());
        }
        self.health.close();
        self.wake_writers();
        self.stop_threads();
        if result.is_ok() {
            result = writer.lock().wal.sync().map_err(|error: Error| self.health.poison(error));
        }
        result
    }
}
