//! The write path: from a batch to the log, to the memtables, to what readers see.
//!
//! [`commit`] is the only code that makes a caller wait on purpose. [`verdict`] says by the load whether it must.
//!
//! [`path::WritePath`] says what writes may touch: the log, the active memtables, the writer's lock. They read trees only
//! to check transactions for conflicts. `docs/design/write.md` has the whole way of a write.

pub(crate) mod commit;
pub(super) mod conflict;
pub(super) mod ingest;
pub(super) mod path;
pub(super) mod tickets;
mod verdict;
