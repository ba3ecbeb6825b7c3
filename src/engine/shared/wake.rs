//! Calls that go up: how a room wakes those in rooms above it.

use std::fmt;

use crate::error::Error;

/// The background threads, as rooms below them see them.
pub(in crate::engine) trait BackgroundThreads: fmt::Debug + Send + Sync {
    /// Something may be due: they look for work.
    fn wake(&self);

    /// Flushes and compactions that are running.
    fn running(&self) -> (u64, u64);
}

/// Callers that wait for something of the store. They must not when it will never come.
pub(in crate::engine) trait Waiters: fmt::Debug + Send + Sync {
    /// The store is poisoned, by `cause`: nothing is written any more.
    fn give_up(&self, cause: &Error);
}
