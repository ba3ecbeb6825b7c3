//! Incremental warming up: what a compaction writes in the place of cached blocks goes into the cache as it is written.
//!
//! Ahmad and Kemme, "Compaction management in distributed key-value datastores" (VLDB 2015), section 5. It is one of the stores
//! that LSbM-tree is compared with: a compaction of cold keys between two cached ones brings these in, too.

use super::{Entry, TableCache};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::block::Block;
use crate::store::table::{TableReader, WrittenBlock};
use crate::types::{Key, KeyRange, KeyRanges, TableId, UpperBound};

impl TableCache {
    /// Whether outputs of compactions are kept in the place of their inputs.
    pub(crate) fn warms_up(&self) -> bool {
        self.kinds.warms_up
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
                self.keep((id, handle.offset), Entry::Block(block), None);
            }
        }
    }
}
