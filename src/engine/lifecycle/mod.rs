//! From files to an open engine and back: opening, recovery, settings, checkpoints, repair, verification and closing.
//!
//! This room may touch everything, for it puts the parts together. The paths of reads and writes do not pass through it.

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
