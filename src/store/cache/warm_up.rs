//! Incremental warming up: what a compaction writes in the place of cached blocks goes into the cache as it is written.
//!
//! Ahmad and Kemme, "Compaction management in distributed key-value datastores" (VLDB 2015), section 5. It is one of the stores
//! that LSbM-tree is compared with: a compaction of cold keys between two cached ones brings these in, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::block_pointers::Resident;
use super::{CacheCounts, Cached, Entry, TableCache};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::block::Block;
use crate::store::table::{TableReader, WrittenBlock};
use crate::types::{Key, KeyRange, KeyRanges, TableId, UpperBound};

/// So many reads tell what the cache finds.
const TELLING_READS: u64 = 1000;

/// What reads had found when it was looked at last.
#[derive(Debug, Default)]
pub(super) struct Found {
    hits: AtomicU64,
    misses: AtomicU64,
    /// Whether it was most of them.
    most: AtomicBool,
}

impl TableCache {
    /// Whether outputs of compactions are kept in the place of their inputs. Where most reads miss, what is cached is no more likely
    /// to be read than anything else, and copies of it are for nothing: the default asks what reads have found lately.
    pub(crate) fn warms_up(&self) -> bool {
        match self.kinds.of {
            Cached::Everything => self.kinds.warms_up && self.finds_most(),
            Cached::Blocks | Cached::OpenTables => self.kinds.warms_up,
        }
    }

    /// Whether at least half of the last reads have found what they wanted in the cache.
    fn finds_most(&self) -> bool {
        let CacheCounts { hits, misses, .. } = self.counts();
        let Found { hits: hits_before, misses: misses_before, most } = &self.found;
        let new_hits = hits.saturating_sub(hits_before.load(Relaxed));
        let new_misses = misses.saturating_sub(misses_before.load(Relaxed));
        if new_hits + new_misses >= TELLING_READS {
            hits_before.store(hits, Relaxed);
            misses_before.store(misses, Relaxed);
            most.store(new_hits >= new_misses, Relaxed);
        }
        most.load(Relaxed)
    }

    /// The keys of the cached blocks of a table.
    pub(crate) fn cached_ranges(&self, meta: &TableMeta, ranges: &mut KeyRanges) -> Result<()> {
        let table = self.table_arc(meta)?;
        let mut start = meta.range.start.clone();
        if table.partitions() == 0 {
            self.cached_ranges_of(&table, &mut start, ranges);
        }
        for at in 0..table.partitions() {
            let partition = self.partition_arc(&table, at)?;
            self.cached_ranges_of(&partition, &mut start, ranges);
        }
        Ok(())
    }

    /// The same for the blocks of `table`, the first of which begins at `start` or behind it. Leaves `start` where what follows
    /// begins.
    fn cached_ranges_of(&self, table: &TableReader, start: &mut Key, ranges: &mut KeyRanges) {
        for (at, (last, _)) in table.index_keys().enumerate() {
            let end = UpperBound::after(&last);
            let is_cached = table
                .handle(at)
                .is_some_and(|handle| self.entries.contains_key(&(table.id(), handle.offset)));
            let range = KeyRange { start: start.clone(), end: end.clone() };
            if is_cached && !range.is_inverted() {
                ranges.add(&range);
            }
            if let UpperBound::Excluded(end) = end {
                *start = end;
            }
        }
    }

    /// Keeps blocks of the table `id`, which is being written.
    pub(crate) fn keep_written(&self, id: TableId, blocks: Vec<WrittenBlock>) {
        for WrittenBlock { handle, bytes } in blocks {
            let mut buffer = self.frame(bytes.len());
            if let Some(into) = buffer.get_mut() {
                into.copy_from_slice(&bytes);
            }
            // What cannot be decoded was not written either; whoever reads it is told.
            if let Ok(block) = Block::decode(buffer) {
                self.keep((id, handle.offset), Entry::Block(Resident::new(block)), None);
            }
        }
    }
}
