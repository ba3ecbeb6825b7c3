//! The life cycle: open, recovery, settings, keyspaces, checkpoint, repair, verify and close.
//!
//! Assembly, opening, change of options and closing span all parts, so they may touch everything. [`keyspaces`],
//! [`checkpoint`] and [`verify`] hold the parts that they need. No read or write passes through this folder.

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
