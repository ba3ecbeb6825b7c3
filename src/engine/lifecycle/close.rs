//! Close: makes what was acknowledged durable and ends the threads.
//!
//! A long log is flushed first, so that the next open has little to replay.

use super::engine::Engine;
use crate::error::Result;
use crate::store::wal::Wal;

/// A log up to this size, in bytes and in segments, is left for the next opening to replay, which takes a few
/// milliseconds; a larger one is flushed first. Short-lived openings leave a segment each.
const REPLAY_BYTES_MAX: u64 = 1 << 20;
const REPLAY_SEGMENTS_MAX: usize = 8;

impl Engine {
    /// Makes what was acknowledged durable and ends the threads. A second call waits for the first and does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let _closing = self.closing.lock();
        if self.health.is_closed() {
            return Ok(());
        }
        let Some(writer) = &self.write.writer else {
            self.health.close();
            return Ok(());
        };
        // Nobody needs files that are not made by now.
        self.jobs.preallocator.stop();
        let mut result = self.health.check_writable();
        let long = |wal: &Wal| wal.bytes() > REPLAY_BYTES_MAX || wal.segments() > REPLAY_SEGMENTS_MAX;
        if result.is_ok() && long(&writer.lock().wal) {
            // If this fails, the log still has everything. Only the length of the next replay depends on it: the log
            // is synced below, whatever was flushed.
            let _ = self.write.seal_all().and_then(|()| self.background.wait_flushed());
        }
        self.stop_work();
        if result.is_ok() && !planted!("closed-without-a-sync") {
            let mut writer = writer.lock();
            writer.wal.trim();
            let upto = self.write.logged();
            result = writer.wal.durable().sync().map_err(|error| self.jobs.alarm.poison(error));
            if result.is_ok() {
                self.write.tickets.credit(upto);
            }
        }
        // What is not durable now will not be.
        self.write.tickets.end(&result.clone().err().unwrap_or_else(|| self.health.gave_up()));
        self.jobs.events.stop();
        result
    }

    /// Ends the threads, and whatever waits for them.
    pub(crate) fn stop_work(&self) {
        self.health.close();
        self.background.wake_writers();
        self.background.stop_threads();
        self.write.tickets.stop_syncer();
        self.jobs.storage.devices.close();
    }
}
