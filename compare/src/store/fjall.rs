//! fjall, built without LZ4, so that neither its tables nor its journal are compressed.

use std::path::Path;

use ::fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use terrace_bench::Result;
use terrace_bench::store::{Counters, Records, Store};

use super::{CACHE_BYTES, FILTER_BITS_PER_KEY, MEMTABLE_BYTES, Sync};

/// An open store.
pub struct FjallStore {
    db: Database,
    records: Keyspace,
    sync: Sync,
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, sync: Sync) -> Result<FjallStore> {
    let db = Database::builder(path).cache_size(CACHE_BYTES as u64).open()?;
    let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY.into()));
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES as u64)
        .filter_policy(FilterPolicy::all(bloom));
    let records = db.keyspace("records", || options)?;
    Ok(FjallStore { db, records, sync })
}

impl Store for FjallStore {
    fn engine(&self) -> &str {
        "fjall"
    }

    fn profile(&self) -> &str {
        "compare"
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.records.get(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.records.insert(key, value)?;
        if self.sync == Sync::EveryPut {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()> {
        for record in self.records.range(from..).take(limit) {
            let (key, value) = record.into_inner()?;
            records.push(&key, &value);
        }
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}
