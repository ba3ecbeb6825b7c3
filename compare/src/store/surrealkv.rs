//! SurrealKV with its value log, checksums verified, uncompressed: a transaction for each put or batch, a read transaction for each read.

use std::ops::ControlFlow;
use std::path::Path;

use ::surrealkv::{Durability, LSMIterator, Mode, Transaction, Tree, TreeBuilder, VLogChecksumLevel};
use anyhow::Result;
use tokio::runtime::{Builder, Runtime};

use super::{Direction, Opening, See, SeeValue, Store};

/// Threads of its runtime, in which it flushes and compacts.
const THREADS: usize = 2;

/// An open store, and what runs its tasks.
struct SurrealkvStore {
    tree: Tree,
    runtime: Runtime,
    durability: Durability,
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening) -> Result<Box<dyn Store>> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let durability = if opening.synced() { Durability::Immediate } else { Durability::Eventual };
    let tree = {
        // It starts its tasks at once.
        let _inside = runtime.enter();
        TreeBuilder::new()
            .with_path(path.to_owned())
            .with_max_memtable_size(opening.memtable_bytes)
            .with_block_cache_capacity(opening.cache_bytes as u64)
            .with_enable_vlog(true)
            .with_vlog_checksum_verification(VLogChecksumLevel::Full)
            .without_compression()
            .build()?
    };
    Ok(Box::new(SurrealkvStore { tree, runtime, durability }))
}

impl SurrealkvStore {
    fn reader(&self) -> Result<Transaction> {
        Ok(self.tree.begin_with_mode(Mode::ReadOnly)?)
    }

    /// Commits what `write` asks for.
    fn commit(&self, write: impl FnOnce(&mut Transaction) -> ::surrealkv::Result<()>) -> Result<()> {
        let mut transaction = self.tree.begin_with_mode(Mode::WriteOnly)?;
        transaction.set_durability(self.durability);
        write(&mut transaction)?;
        Ok(self.runtime.block_on(transaction.commit())?)
    }
}

impl Store for SurrealkvStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        let found = self.reader()?.get(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.commit(|transaction| transaction.set(key, value))
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        self.commit(|transaction| records.iter().try_for_each(|&(key, value)| transaction.set(key, value)))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.commit(|transaction| transaction.delete(key))
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        let reader = self.reader()?;
        match direction {
            Direction::Forward => {
                let mut iter = reader.scan(from..)?;
                iter.seek_first()?;
                while iter.valid() && see(iter.key().user_key(), &iter.value_ref()?).is_continue() {
                    iter.next()?;
                }
            }
            Direction::Backward => {
                let mut iter = reader.scan(..=from)?;
                iter.seek_last()?;
                while iter.valid() && see(iter.key().user_key(), &iter.value_ref()?).is_continue() {
                    iter.prev()?;
                }
            }
        }
        Ok(())
    }

    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        let reader = self.reader()?;
        let mut iter = reader.scan(from..)?;
        iter.seek_first()?;
        while iter.valid() && see(iter.key().user_key()).is_continue() {
            iter.next()?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.runtime.block_on(self.tree.close())?)
    }
}
