//! The life cycle: open, recovery, options, keyspaces, checkpoint, repair, verify and close.
//!
//! Assembly, opening, change of options and closing span all parts, so they may touch everything. [`keyspaces`],
//! [`checkpoint`] and [`verify`] hold the parts that they need. No read or write passes through this folder.

mod assemble;
mod change_devices;
mod checkpoint;
mod close;
mod devices;
pub(super) mod engine;
pub(super) mod keyspaces;
pub(super) mod opening;
mod options;
pub(super) mod recovery;
pub(super) mod repair;
mod repair_scan;
mod verify;
mod verify_values;
