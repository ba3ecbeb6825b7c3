//! Partitions of the index and filter of large tables.
//!
//! An open table with partitions knows where they lie. Each is opened when somebody looks for one of its keys. It stays in the
//! open table, where it is found without a search, while attached tables take less than their share of the budget. Beyond that
//! it competes with the blocks. So a lookup reads as much of an index and a filter as it needs, whatever the size of the table,
//! and a cache that is smaller than all indexes and filters keeps those that are in use.
//!
//! Compactions walk all partitions once: what they open is not kept.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Entry, OpenTable, TableCache, WRITTEN_SHARE};
use crate::error::Result;
use crate::store::table::TableReader;
use crate::types::TableId;

/// The cache key of a partition. The keys of blocks, spans and rows do not have both of the highest bits set, and the other
/// keys that do are the last ones.
fn place(table: TableId, at: usize) -> (TableId, u64) {
    (table, at as u64 | 3 << 62)
}

impl TableCache {
    /// What has index and filter of `key`: the table, or a partition of it.
    #[inline]
    pub(crate) fn open_for<'a>(&self, table: &'a TableReader, key: &[u8]) -> Result<OpenTable<'a>> {
        if table.partitions() == 0 {
            return Ok(OpenTable::Attached(table));
        }
        let at = table.partition_of(key);
        match table.kept_partition(at) {
            Some(partition) => Ok(OpenTable::Attached(partition)),
            None => self.find_partition(table, at).map(OpenTable::Held),
        }
    }

    /// A partition of `table`, to keep.
    pub(crate) fn partition_arc(&self, table: &TableReader, at: usize) -> Result<Arc<TableReader>> {
        table.kept_partition(at).cloned().map_or_else(|| self.find_partition(table, at), Ok)
    }

    /// As [`TableCache::partition_arc`], for a reader of all entries who comes by once.
    pub(crate) fn partition_past(&self, table: &TableReader, at: usize) -> Result<Arc<TableReader>> {
        if let Some(partition) = table.kept_partition(at) {
            return Ok(partition.clone());
        }
        let file = self.packs.table_file(table.extent())?;
        table.open_partition_data(&file, at).map(Arc::new)
    }

    #[cold]
    fn find_partition(&self, table: &TableReader, at: usize) -> Result<Arc<TableReader>> {
        let key = place(table.id(), at);
        // As with tables, one that was opened at another place is not taken.
        if let Some(Entry::Table(partition)) = self.entry(&key)
            && partition.extent() == table.extent()
        {
            return Ok(partition);
        }
        let file = self.packs.table_file(table.extent())?;
        let mut partition = table.open_partition(&file, at)?;
        let charge = self.charge(partition.memory_bytes() as u64);
        let fits = charge.is_some();
        partition.set_charge(charge);
        let partition = Arc::new(partition);
        if fits {
            table.keep_partition(at, partition.clone());
        } else {
            self.keep(key, Entry::Table(partition.clone()), None);
        }
        Ok(partition)
    }

    /// Charges a partition that a job has just written, if it is to be kept in its open table.
    pub(super) fn has_room_for(&self, partition: &mut TableReader) -> bool {
        let is_full = self.attached_bytes.load(Relaxed) >= self.capacity.load(Relaxed) / WRITTEN_SHARE;
        let charge = if is_full { None } else { self.charge(partition.memory_bytes() as u64) };
        let fits = charge.is_some();
        partition.set_charge(charge);
        fits
    }

    /// Drops the partitions of a table, and the blocks of those that are in memory.
    pub(super) fn forget_partitions(&self, table: &TableReader) {
        for at in 0..table.partitions() {
            let key = place(table.id(), at);
            if let Some(partition) = table.kept_partition(at) {
                self.forget_units(partition);
            } else if let Some(Entry::Table(partition)) = self.entry(&key) {
                self.forget_units(&partition);
                self.entries.remove(&key);
            }
        }
    }
}
