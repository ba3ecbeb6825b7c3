//! LMDB by heed: its own pages, mapped; it has neither checksums nor filters, and its cache is the operating system's.
//!
//! Without syncs its pages are written to the file at every commit, in no order that a power cut would respect: what the
//! death of the process leaves is whole, what a power cut leaves may not be a store any more.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use anyhow::Result;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use super::{Direction, Opening, See, SeeValue, Store};

/// Address space for the file, which grows as needed; valgrind has no room for much more.
const MAP_BYTES: usize = 32 << 30;

/// Readers at a time.
const READERS_MAX: u32 = 256;

/// An open store.
struct LmdbStore {
    env: Env,
    records: Database<Bytes, Bytes>,
}

/// Version of the library.
pub fn version() -> String {
    heed::lmdb_version().string.to_owned()
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening) -> Result<Box<dyn Store>> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(READERS_MAX);
    // Its guide: no read-ahead where reads are random and data is larger than memory.
    let mut flags = EnvFlags::NO_READ_AHEAD;
    if !opening.synced() {
        flags |= EnvFlags::NO_SYNC;
    }
    // SAFETY: the file is in a directory of this process alone, which nothing else touches while it is mapped; the
    // locks stay on, and what an unsynced store may lose is stated with its results.
    let env = unsafe { options.flags(flags).open(path)? };
    let mut transaction = env.write_txn()?;
    let records = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(LmdbStore { env, records }))
}

impl Store for LmdbStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let transaction = self.env.read_txn()?;
        let found = self.records.get(&transaction, key)?;
        found.inspect(|value| see(value));
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        let transaction = self.env.read_txn()?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = self.records.get(&transaction, key)? {
                see(value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_batch(&[(key, value)])
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in records {
            self.records.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.records.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let mut transaction = self.env.write_txn()?;
        self.records.delete_range(&mut transaction, &(Bound::Included(from), Bound::Excluded(to)))?;
        transaction.commit()?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let transaction = self.env.read_txn()?;
        match direction {
            Direction::Forward => {
                let from = (Bound::Included(from), Bound::Unbounded);
                show(self.records.range(&transaction, &from)?, see)
            }
            Direction::Backward => {
                let upto = (Bound::Unbounded, Bound::Included(from));
                show(self.records.rev_range(&transaction, &upto)?, see)
            }
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.force_sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

fn show<'a>(rows: impl Iterator<Item = heed::Result<(&'a [u8], &'a [u8])>>, see: See<'_>) -> Result<()> {
    for row in rows {
        let (key, value) = row?;
        if let ControlFlow::Break(()) = see(key, value) {
            break;
        }
    }
    Ok(())
}
