//! The engines under comparison, all opened with the same memory: 64 MiB of memtable, 256 MiB of cache, filters of 10
//! bits per key, no compression. All but [`Engine::Leveldb`] verify the checksum of each block that they read.

mod c_api;
mod fjall;
mod leveldb;
mod rocksdb;

use std::path::Path;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use terrace::Durability;
use terrace_bench::store::{Store, TerraceConfig, TerraceStore};

/// Size of a full memtable.
const MEMTABLE_BYTES: usize = 64 << 20;

/// Size of the block cache.
const CACHE_BYTES: usize = 256 << 20;

/// Bits of filter per key.
const FILTER_BITS_PER_KEY: u8 = 10;

/// Files that an engine of the LevelDB family keeps open.
const OPEN_FILES_MAX: i32 = 5000;

/// Size of a table in an engine of the LevelDB family.
const TABLE_BYTES: usize = 64 << 20;

/// What all engines can be: their memtables' worth of memory beside the cache is one filling and two being flushed.
const MEMORY_BYTES: u64 = (CACHE_BYTES + 3 * MEMTABLE_BYTES) as u64;

/// An engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    Terrace,
    /// As it comes: checksums are written, not verified.
    Leveldb,
    /// With checksums verified, as the others do.
    LeveldbChecked,
    Rocksdb,
    Fjall,
}

impl Engine {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terrace => "terrace",
            Self::Leveldb => "leveldb",
            Self::LeveldbChecked => "leveldb-checked",
            Self::Rocksdb => "rocksdb",
            Self::Fjall => "fjall",
        }
    }

    /// Opens a store in the empty directory `path`.
    pub fn open(self, path: &Path, sync: Sync) -> Result<Box<dyn Store>> {
        let opened = match self {
            Self::Terrace => {
                let durability = match sync {
                    Sync::EveryPut => Durability::Synced,
                    Sync::Never => Durability::Buffered,
                };
                let config = TerraceConfig {
                    memory_bytes: Some(MEMORY_BYTES),
                    durability,
                    ..TerraceConfig::default()
                };
                TerraceStore::open(path, &config).map(|store| Box::new(store) as Box<dyn Store>)
            }
            Self::Leveldb => leveldb::open(path, sync, false).map(|store| Box::new(store) as Box<dyn Store>),
            Self::LeveldbChecked => {
                leveldb::open(path, sync, true).map(|store| Box::new(store) as Box<dyn Store>)
            }
            Self::Rocksdb => rocksdb::open(path, sync).map(|store| Box::new(store) as Box<dyn Store>),
            Self::Fjall => fjall::open(path, sync).map(|store| Box::new(store) as Box<dyn Store>),
        };
        opened.map_err(|error| anyhow!("cannot open {}: {error}", self.name()))
    }
}

/// When the log is synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sync {
    Never,
    EveryPut,
}
