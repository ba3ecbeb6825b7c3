//! The block cache: blocks and open tables under one budget of bytes.
//!
//! Keyed by (table, offset within the table), so that a table that moves to another level, pack or device keeps its
//! warm blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::meter::ReadCause;
use super::pack::PackStore;
use super::table::{TableReader, read_block};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::types::TableId;

/// Offset under which a table's index and filter are kept.
const READER: u64 = u64::MAX;

/// What an entry costs besides its bytes: the cache's own bookkeeping and the allocation.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

#[derive(Clone, Debug)]
enum Entry {
    Block(Arc<Block>),
    Table(Arc<TableReader>),
}

#[derive(Clone, Copy, Debug)]
struct ByBytes;

impl Weighter<(TableId, u64), Entry> for ByBytes {
    fn weight(&self, _: &(TableId, u64), entry: &Entry) -> u64 {
        ENTRY_OVERHEAD_BYTES
            + match entry {
                Entry::Block(block) => block.memory_bytes() as u64,
                Entry::Table(table) => table.memory_bytes() as u64,
            }
    }
}

/// Blocks and open tables, least useful ones evicted beyond the budget.
#[derive(Debug)]
pub(crate) struct TableCache {
    packs: Arc<PackStore>,
    entries: Cache<(TableId, u64), Entry, ByBytes>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How the cache did, since the store was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes: u64,
    pub(crate) capacity: u64,
}

impl TableCache {
    pub(crate) fn new(packs: Arc<PackStore>, bytes: u64, typical_block_bytes: u64) -> Self {
        let items = usize::try_from(bytes / typical_block_bytes.max(1)).unwrap_or(usize::MAX).max(16);
        Self {
            packs,
            entries: Cache::with_weighter(items, bytes, ByBytes),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Changes the budget; what is beyond it goes at once.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.entries.set_capacity(bytes);
    }

    pub(crate) fn packs(&self) -> &Arc<PackStore> {
        &self.packs
    }

    /// The table's index and filter.
    pub(crate) fn table(&self, meta: &TableMeta) -> Result<Arc<TableReader>> {
        let key = (meta.id, READER);
        if let Some(Entry::Table(table)) = self.entries.get(&key) {
            return Ok(table);
        }
        let file = self.packs.file(meta.extent.pack)?;
        let table = Arc::new(TableReader::open(&file, meta.id, meta.extent, meta.max_seq)?);
        self.entries.insert(key, Entry::Table(table.clone()));
        Ok(table)
    }

    /// A block of a table, from memory if it is there.
    pub(crate) fn block(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<Arc<Block>> {
        let key = (table.id(), handle.offset);
        if let Some(Entry::Block(block)) = self.entries.get(&key) {
            self.hits.fetch_add(1, Relaxed);
            return Ok(block);
        }
        self.misses.fetch_add(1, Relaxed);
        let file = self.packs.file(table.extent().pack)?;
        let block = Arc::new(read_block(&file, table.id(), table.extent(), handle, cause)?);
        self.entries.insert(key, Entry::Block(block.clone()));
        Ok(block)
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            bytes: self.entries.weight(),
            capacity: self.entries.capacity(),
        }
    }
}
