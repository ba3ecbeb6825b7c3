//! Health: whether the store may still be written.
//!
//! ```text
//!   open --poison()--> poisoned       reads go on, writes fail, nothing is reclaimed
//!   open, poisoned --close()--> closed
//! ```
//!
//! A background job that failed and left nothing unknown (on a full disk, say) does not change this state: the
//! scheduler tries it again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};

#[derive(Debug, Default)]
pub(crate) struct Health {
    poison: OnceLock<Error>,
    closed: AtomicBool,
}

impl Health {
    /// Notes that the outcome of an operation is unknown: from now on nothing is written. Returns whether this is the
    /// first such cause. Called by [`Alarm::poison`](super::alarm::Alarm::poison), which wakes those who wait.
    pub(in crate::engine) fn poison(&self, cause: &Error) -> bool {
        self.poison.set(cause.clone()).is_ok()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Fails if the store must not be written.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.check_sound()
    }

    /// Fails if the outcome of some operation is unknown.
    pub(crate) fn check_sound(&self) -> Result<()> {
        self.poison.get().map_or(Ok(()), |cause| Err(Error::poisoned(cause)))
    }

    /// Why a write that others wait for will never be visible.
    pub(in crate::engine) fn gave_up(&self) -> Error {
        let closed = || Error::new(ErrorKind::Closed, "the store has been closed");
        self.check_sound().err().unwrap_or_else(closed)
    }

    /// Fails if the store was closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            Err(Error::new(ErrorKind::Closed, "the store has been closed"))
        } else {
            Ok(())
        }
    }
}
