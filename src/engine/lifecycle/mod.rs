//! The life cycle: open, recovery, settings, keyspaces, checkpoint, repair, verify and close.
//!
//! This part puts the other parts together, so it may touch everything. No read or write passes through it.

mod assemble;
pub(super) mod checkpoint;
pub(super) mod close;
pub(super) mod keyspaces;
pub(super) mod preallocate;
pub(super) mod recovery;
pub(super) mod repair;
pub(super) mod repair_scan;
pub(crate) mod settings;
pub(super) mod verify;
