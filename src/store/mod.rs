//! Mechanism, in parts: log, memtable, tables, packs, caches, manifest. Nothing here chooses anything.

pub mod memtable;
