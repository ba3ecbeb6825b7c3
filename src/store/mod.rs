//! Mechanism, in parts: log, memtable, tables, packs, caches, manifest. Nothing here chooses anything.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod manifest;
pub(crate) mod memtable;
pub(crate) mod stripes;
pub(crate) mod table;
pub(crate) mod wal;
