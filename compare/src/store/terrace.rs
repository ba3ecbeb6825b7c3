//! Terrace, with one budget for cache and memtables.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, anyhow};
use terrace::{Compression, Db, Options, WriteBatch};
use terrace_bench::store as bench;

use super::{Direction, FILTER_BITS_PER_KEY, Opening, See, SeeValue, Store};

/// An open store, whose jobs are listened to; records live in the default keyspace.
struct TerraceStore(bench::TerraceStore);

impl TerraceStore {
    fn db(&self) -> &Db {
        self.0.db()
    }
}

/// `shape`, with what `opening` and the comparison ask of every engine.
pub fn options(opening: &Opening, shape: Options, compressed: bool) -> Options {
    let mut options = Options {
        durability: if opening.synced() {
            terrace::Durability::Synced
        } else {
            terrace::Durability::Buffered
        },
        memory_bytes: Some(opening.memory_bytes() as u64),
        memtable_bytes: opening.memtable_bytes as u64,
        ..shape
    };
    options.keyspace.compression = if compressed { Compression::Lz4 } else { Compression::None };
    options.keyspace.filter_bits_per_key = FILTER_BITS_PER_KEY;
    options
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening, shape: Options, compressed: bool) -> Result<Box<dyn Store>> {
    let options = options(opening, shape, compressed);
    let opened = bench::TerraceStore::build(Db::builder(path), options).map_err(plain)?;
    Ok(Box::new(TerraceStore(opened)))
}

fn plain(error: terrace_bench::Error) -> anyhow::Error {
    anyhow!("{error}")
}

impl Store for TerraceStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let found = self.db().get(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.db().contains(key)?)
    }

    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        let values = self.db().multi_get(keys)?;
        values.iter().flatten().for_each(|value| see(value));
        Ok(values.iter().flatten().count())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db().put(key, value)?)
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (key, value) in records {
            batch.put(key, value);
        }
        Ok(self.db().write(batch)?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        Ok(self.db().delete(key)?)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        self.db().delete_range(from..to)?;
        Ok(true)
    }

    fn flush(&self) -> Result<bool> {
        self.db().flush()?;
        Ok(true)
    }

    fn compact(&self) -> Result<bool> {
        self.db().compact()?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let forward = direction == Direction::Forward;
        let mut iter = if forward { self.db().range(from..)? } else { self.db().range(..=from)? };
        loop {
            let row = if forward { iter.advance()? } else { iter.advance_back()? };
            let Some((key, value)) = row else { return Ok(()) };
            if let ControlFlow::Break(()) = see(key, value) {
                return Ok(());
            }
        }
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        let mut keys = self.db().range(from..)?.keys();
        while let Some(key) = keys.advance()? {
            if let ControlFlow::Break(()) = see(key) {
                break;
            }
        }
        Ok(())
    }

    fn self_report(&self) -> Option<&dyn bench::Store> {
        Some(&self.0)
    }

    fn close(self: Box<Self>) -> Result<()> {
        bench::Store::close(Box::new(self.0)).map_err(plain)
    }
}
