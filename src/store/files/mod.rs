//! The files of a store: devices, packs, the pool of preallocated packs, recycled files and hole punching.
//!
//! This room may touch the environment. It knows neither tables nor levels.

pub(crate) mod device;
pub(crate) mod file;
pub(crate) mod meter;
pub(crate) mod pack;
pub(crate) mod pool;
pub(crate) mod punch;
pub(crate) mod recycled;
