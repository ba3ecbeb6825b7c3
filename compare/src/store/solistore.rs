//! solistore, as it comes, but for memory and durability. What it compacts it compresses with LZ4, and cannot be told not to.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ::solistore::{ColumnFamily, Db, Durability, IteratorMode, Options, WriteBatch};
use anyhow::Result;

use super::{Direction, Opening, See, SeeValue, Store};

/// Time between syncs of its log where a write need not wait for one; what its documentation shows.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// An open store; records live in the default column family.
struct SolistoreStore {
    db: Db,
    records: ColumnFamily,
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening) -> Result<Box<dyn Store>> {
    let durability = if opening.synced() {
        Durability::Full
    } else {
        Durability::Eventual { sync_interval: SYNC_INTERVAL }
    };
    let options = Options {
        durability,
        block_cache_size: opening.cache_bytes as u64,
        write_buffer_size: opening.memtable_bytes,
        ..Options::default()
    };
    let db = Db::open(path, options)?;
    let records = db.default_cf();
    Ok(Box::new(SolistoreStore { db, records }))
}

impl Store for SolistoreStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let found = self.db.get(&self.records, key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        let values = self.db.multi_get(&self.records, keys)?;
        values.iter().flatten().for_each(|value| see(value));
        Ok(values.iter().flatten().count())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(&self.records, key, value)?)
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (key, value) in records {
            batch.put(&self.records, key, value);
        }
        Ok(self.db.write(batch)?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        Ok(self.db.delete(&self.records, key)?)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let mut batch = WriteBatch::new();
        batch.delete_range(&self.records, from, to);
        self.db.write(batch)?;
        Ok(true)
    }

    fn flush(&self) -> Result<bool> {
        self.db.flush()?;
        Ok(true)
    }

    fn compact(&self) -> Result<bool> {
        self.db.compact_range(&self.records, None, None)?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let direction = match direction {
            Direction::Forward => ::solistore::Direction::Forward,
            Direction::Backward => ::solistore::Direction::Reverse,
        };
        for record in self.db.iterator(&self.records, IteratorMode::From(from, direction))? {
            let (key, value) = record?;
            if let ControlFlow::Break(()) = see(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.sync_wal()?)
    }
}
