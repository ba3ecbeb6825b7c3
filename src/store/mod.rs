//! Mechanism, in parts: log, memtable, tables, packs, caches, manifest. Nothing here chooses anything.

pub(crate) mod buffers;
pub(crate) mod cache;
pub(crate) mod device;
pub(crate) mod file;
pub(crate) mod frames;
pub(crate) mod manifest;
pub(crate) mod memtable;
pub(crate) mod meter;
pub(crate) mod pack;
pub(crate) mod pool;
pub(crate) mod punch;
pub(crate) mod spares;
pub(crate) mod stripes;
pub(crate) mod table;
pub(crate) mod wal;
