//! LevelDB's options, and what they are in Terrace.

use engine::{Compression, Db, KeyspaceOptions, Options, TreeOptions};

use super::files;
use crate::failure::{Failure, terrace_error_kind as Kind};

/// Memory that LevelDB takes for each open table beside its cache: index and filter of two megabytes of small records.
const OPEN_TABLE_BYTES: u64 = 32 << 10;

/// LevelDB's cache, if none is set.
const CACHE_BYTES: u64 = 8 << 20;

/// The one order of keys that there is.
pub(super) const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// What is set, with LevelDB's defaults.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) create_if_missing: bool,
    pub(super) error_if_exists: bool,
    pub(super) write_buffer_bytes: u64,
    pub(super) open_files_max: u64,
    /// `None`: LevelDB's own.
    pub(super) cache_bytes: Option<u64>,
    pub(super) block_bytes: u64,
    pub(super) compressed: bool,
    /// `None`: no policy, or one of the caller's own. Terrace then has its own filters.
    pub(super) filter_bits: Option<u8>,
    /// The name of the order of keys, if it is not bytewise.
    pub(super) comparator: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            error_if_exists: false,
            write_buffer_bytes: 4 << 20,
            open_files_max: 1000,
            cache_bytes: None,
            block_bytes: 4 << 10,
            compressed: true,
            filter_bits: None,
            comparator: None,
        }
    }
}

impl Settings {
    /// The settings of a store. What is out of Terrace's range becomes the nearest that is in it, as in LevelDB.
    pub(super) fn options(&self) -> Options {
        let memtable_bytes = self.write_buffer_bytes.clamp(4 << 10, 4 << 30);
        // LevelDB holds two memtables; Terrace lets one have a quarter of the budget at most.
        let cache_bytes = self.cache_bytes.unwrap_or(CACHE_BYTES);
        let budget = cache_bytes.saturating_add(2 * memtable_bytes).max(4 * memtable_bytes);
        let budget = budget.saturating_add(self.open_files_max * OPEN_TABLE_BYTES);
        let block_bytes = self.block_bytes.clamp(256, 1 << 20) as u32;
        Options {
            memory_bytes: Some(budget.max(1 << 20)),
            memtable_bytes,
            keyspace: self.keyspace(KeyspaceOptions::default()),
            tree: TreeOptions { block_bytes, ..TreeOptions::default() },
            ..Options::default()
        }
    }

    fn keyspace(&self, options: KeyspaceOptions) -> KeyspaceOptions {
        let compression = if self.compressed { Compression::Lz4 } else { Compression::None };
        let filter_bits_per_key = self.filter_bits.unwrap_or(KeyspaceOptions::default().filter_bits_per_key);
        KeyspaceOptions { compression, filter_bits_per_key, ..options }
    }

    /// Opens the store in `dir`.
    pub(super) fn open(&self, dir: &std::path::Path) -> Result<Db, Failure> {
        if let Some(name) = &self.comparator {
            let message = format!(
                "the comparator {name:?} is not taken: Terrace orders keys bytewise, as {BYTEWISE} does, and has no \
                 other order"
            );
            return Err(Failure::argument(message));
        }
        files::refuse_leveldb(dir)?;
        if self.error_if_exists && files::is_store(dir) {
            let message = format!("{}: the store exists, and error_if_exists is true", dir.display());
            return Err(Failure::argument(message));
        }
        let builder = Db::builder(dir).options(self.options());
        let builder = if self.create_if_missing { builder } else { builder.must_exist() };
        let db = builder.open().map_err(|error| self.absent(dir, error.into()))?;
        // In LevelDB these hold for what is written from now on. Equal ones cost nothing.
        let keyspace = db.keyspace("default")?;
        keyspace.set_options(&self.keyspace(keyspace.options()))?;
        Ok(db)
    }

    /// What LevelDB says of a store that is not there: it looks for the lock first.
    fn absent(&self, dir: &std::path::Path, failure: Failure) -> Failure {
        if failure.kind != Kind::NotFound || self.create_if_missing {
            return failure;
        }
        match files::refuses_writes(dir) {
            Some(reason) => Failure { kind: Kind::ReadOnly, ..failure }
                .and(&format!("; the directory cannot be written: {reason}")),
            None => failure.and(": it does not exist, and create_if_missing is false"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_setting_is_one_that_terrace_takes() {
        for write_buffer_bytes in [0, 1000, 4 << 20, 1 << 30, u64::MAX] {
            for cache_bytes in [None, Some(0), Some(100_000), Some(u64::MAX)] {
                for (open_files_max, block_bytes) in [(0, 0), (10, 1024), (1 << 31, u64::MAX)] {
                    let settings = Settings {
                        write_buffer_bytes,
                        cache_bytes,
                        open_files_max,
                        block_bytes,
                        ..Settings::default()
                    };
                    settings.options().validate().unwrap();
                }
            }
        }
    }

    #[test]
    fn the_defaults_take_about_what_leveldb_takes() {
        let options = Settings::default().options();
        assert_eq!(options.memtable_bytes, 4 << 20);
        let budget = options.memory_bytes.unwrap();
        assert!((16 << 20..64 << 20).contains(&budget), "{budget}");
    }

    #[test]
    fn compression_and_filters_follow_the_last_opening() {
        let dir = tempfile::tempdir().unwrap();
        let new = Settings { create_if_missing: true, ..Settings::default() };
        for (compressed, filter_bits) in [(true, None), (false, Some(5)), (true, Some(20))] {
            let db = Settings { compressed, filter_bits, ..new.clone() }.open(dir.path()).unwrap();
            let options = db.keyspace("default").unwrap().options();
            assert_eq!(options.compression == Compression::Lz4, compressed);
            assert_eq!(options.filter_bits_per_key, filter_bits.unwrap_or(10));
        }
    }
}
