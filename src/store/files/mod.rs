//! The files of a store: the directory, packs, preallocated packs, recycled files and hole punching.
//!
//! This is the part of `store` that calls the environment. It knows neither tables nor levels. `docs/design/files.md`
//! has the life of a file.

pub(crate) mod device;
pub(crate) mod devices;
pub(crate) mod file;
pub(crate) mod meter;
pub(crate) mod pack;
pub(crate) mod pool;
pub(crate) mod punch;
mod read_times;
pub(crate) mod recycled;
pub(crate) mod write_queue;
