//! fjall: a worker for each processor, journal, tables and blobs uncompressed unless asked. Its compactions collect blobs.

use std::ops::ControlFlow;
use std::path::Path;

use ::fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use ::fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};
use anyhow::Result;

use super::{Direction, FILTER_BITS_PER_KEY, Opening, See, SeeValue, Store};

/// An open store.
struct FjallStore {
    db: Database,
    records: Keyspace,
    synced: bool,
}

/// Opens or creates the store in `path`; with `blobs`, large values are separated from their keys as it does by default.
pub fn open(path: &Path, opening: &Opening, compressed: bool, blobs: bool) -> Result<Box<dyn Store>> {
    let compression = if compressed { CompressionType::Lz4 } else { CompressionType::None };
    let db = Database::builder(path)
        .cache_size(opening.cache_bytes as u64)
        .journal_compression(CompressionType::None)
        .open()?;
    let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY.into()));
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(opening.memtable_bytes as u64)
        .data_block_compression_policy(CompressionPolicy::all(compression))
        .filter_policy(FilterPolicy::all(bloom))
        .with_kv_separation(blobs.then(|| KvSeparationOptions::default().compression(compression)));
    let records = db.keyspace("records", || options)?;
    Ok(Box::new(FjallStore { db, records, synced: opening.synced() }))
}

impl Store for FjallStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let found = self.records.get(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.records.contains_key(key)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.records.insert(key, value)?;
        if self.synced {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        // A batch stays in this process's memory unless it is told a mode, unlike a single insert.
        let mode = if self.synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.db.batch().durability(Some(mode));
        for &(key, value) in records {
            batch.insert(&self.records, key, value);
        }
        Ok(batch.commit()?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.records.remove(key)?;
        if self.synced {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<bool> {
        self.records.rotate_memtable_and_wait()?;
        Ok(true)
    }

    fn compact(&self) -> Result<bool> {
        self.records.rotate_memtable_and_wait()?;
        self.records.major_compact()?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        match direction {
            Direction::Forward => show(self.records.range(from..), see),
            Direction::Backward => show(self.records.range(..=from).rev(), see),
        }
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        for record in self.records.range(from..) {
            if let ControlFlow::Break(()) = see(&record.key()?) {
                break;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}

fn show(records: impl Iterator<Item = Guard>, see: See<'_>) -> Result<()> {
    for record in records {
        let (key, value) = record.into_inner()?;
        if let ControlFlow::Break(()) = see(&key, &value) {
            break;
        }
    }
    Ok(())
}
