//! The parts that the engine is built from: write-ahead log, memtable, tables, files, cache and manifest.
//!
//! They carry out what the layers above decide. Nothing here chooses what to compact, or when.

pub(crate) mod cache;
pub(crate) mod device_list;
pub(crate) mod files;
pub(crate) mod identity;
pub(crate) mod manifest;
pub(crate) mod memtable;
pub(crate) mod stripes;
pub(crate) mod table;
pub(crate) mod value_table;
pub(crate) mod wal;
