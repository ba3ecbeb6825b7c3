//! redb: a transaction for each put or batch.
//!
//! A commit that is not synced stays in this process's memory until one that is. One in so many is, so that the memory
//! and the file stay bounded.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::redb::{Database, Durability, Range, ReadableDatabase, TableDefinition, WriteTransaction};
use anyhow::Result;

use super::{Direction, Opening, See, SeeValue, Store};

const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

/// Commits of which one is synced, where they need not be.
const SYNC_INTERVAL: u64 = 10_000;

/// An open store.
struct RedbStore {
    db: Database,
    synced: bool,
    commits: AtomicU64,
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening) -> Result<Box<dyn Store>> {
    let db = Database::builder().set_cache_size(opening.memory_bytes()).create(path.join("records.redb"))?;
    let transaction = db.begin_write()?;
    transaction.open_table(RECORDS)?;
    transaction.commit()?;
    Ok(Box::new(RedbStore { db, synced: opening.synced(), commits: AtomicU64::new(0) }))
}

impl RedbStore {
    /// A transaction that is as durable as a write has to be.
    fn begin(&self) -> Result<WriteTransaction> {
        let mut transaction = self.db.begin_write()?;
        let due = self.commits.fetch_add(1, Ordering::Relaxed) % SYNC_INTERVAL == SYNC_INTERVAL - 1;
        let durability = if self.synced || due { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability)?;
        Ok(transaction)
    }
}

impl Store for RedbStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let found = self.db.begin_read()?.open_table(RECORDS)?.get(key)?;
        if let Some(value) = &found {
            see(value.value());
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        let mut found = 0;
        for &key in keys {
            if let Some(value) = table.get(key)? {
                see(value.value());
                found += 1;
            }
        }
        Ok(found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_batch(&[(key, value)])
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        let transaction = self.begin()?;
        let mut table = transaction.open_table(RECORDS)?;
        for &(key, value) in records {
            table.insert(key, value)?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let transaction = self.begin()?;
        transaction.open_table(RECORDS)?.remove(key)?;
        Ok(transaction.commit()?)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let transaction = self.begin()?;
        transaction.open_table(RECORDS)?.retain_in(from..to, |_, _| false)?;
        transaction.commit()?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        match direction {
            Direction::Forward => show(table.range(from..)?, see),
            Direction::Backward => show(table.range(..=from)?.rev(), see),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Everything before a synced commit is durable with it.
        Ok(self.db.begin_write()?.commit()?)
    }
}

type Row<'a> = <Range<'a, &'static [u8], &'static [u8]> as Iterator>::Item;

fn show<'a>(rows: impl Iterator<Item = Row<'a>>, see: See<'_>) -> Result<()> {
    for row in rows {
        let (key, value) = row?;
        if let ControlFlow::Break(()) = see(key.value(), value.value()) {
            break;
        }
    }
    Ok(())
}
