//! The way of a write: from a batch to the log, the memtables and the readers' sight.
//!
//! This room may touch the log, the active memtables and the writer's lock. It reads trees only to check transactions for
//! conflicts. [`commit`] is the only code that makes a caller wait on purpose; [`pressure`] holds the load that decides it.

pub(crate) mod commit;
pub(super) mod conflict;
pub(super) mod log_tail;
pub(super) mod pressure;
pub(super) mod tickets;
pub(super) mod visibility;
