//! Lookups.

use std::sync::Arc;

use super::Engine;
use super::tree::{Tree, View};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::filter;
use crate::merge::newest_over;
use crate::slice::Slice;
use crate::store::cache::TableCache;
use crate::store::meter::ReadCause;
use crate::store::table::TableReader;
use crate::types::{Kind, Seq, Stamp};

impl Engine {
    /// The value of `key` at `upto`, or at the newest visible state.
    pub(crate) fn get(&self, tree: &Tree, key: &[u8], upto: Option<Seq>) -> Result<Option<Slice>> {
        self.health.check_open()?;
        // The view before the number: a merge that ends in between may drop what only an older number could see.
        let view = tree.view();
        tree.check_exists()?;
        let upto = upto.unwrap_or_else(|| self.visible());
        let value = self.get_in(&view, key, upto)?;
        Ok(match self.expiry(tree) {
            Some(expiry) => value.and_then(|value| expiry.keep(value)),
            None => value,
        })
    }

    fn get_in(&self, view: &View, key: &[u8], upto: Seq) -> Result<Option<Slice>> {
        let hash = filter::hash(key);
        for memtable in view.memtables() {
            let over = memtable.newest_over(key, upto);
            if let Some(found) = decide(memtable.get(key, hash, upto), over) {
                return Ok(found.map(Slice::from_memtable));
            }
        }
        // Ordered slots, newest first: the first version met is the newest that is visible (I2).
        for (_, level) in view.version.levels() {
            for table in level.runs.iter().filter_map(|run| run.find(key)) {
                if let Some(found) = self.get_from(table, key, hash, upto)? {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// What one table says of `key` at `upto`; nothing if older tables are to be asked.
    fn get_from(
        &self,
        meta: &Arc<TableMeta>,
        key: &[u8],
        hash: u64,
        upto: Seq,
    ) -> Result<Option<Option<Slice>>> {
        if meta.min_seq > upto {
            return Ok(None);
        }
        let table = self.cache.table(meta)?;
        let over = newest_over(table.range_tombstones(), key, upto);
        let newest = if !table.may_contain(hash) {
            None
        } else if TableCache::has_rows(meta, upto) {
            self.newest_row(&table, key, hash, upto)?
        } else {
            self.newest_in(&table, key, upto)?
        };
        Ok(decide(newest, over))
    }

    /// The newest version of `key` in one table that is visible at `upto`.
    fn newest_in(&self, table: &TableReader, key: &[u8], upto: Seq) -> Result<Option<(Stamp, Slice)>> {
        let fetch = |handle| self.cache.block(table, handle, ReadCause::Get);
        let found = table.find(key, Stamp::upto(upto), fetch)?;
        Ok(found.map(|(block, entry)| {
            (table.stamp(block.stamp(entry)), Slice::from_block(block.pin_value(entry)))
        }))
    }

    /// The same in a table of large records all of which are visible at `upto`.
    fn newest_row(
        &self,
        table: &TableReader,
        key: &[u8],
        hash: u64,
        upto: Seq,
    ) -> Result<Option<(Stamp, Slice)>> {
        if let Some((stamp, value)) = self.cache.row(table.id(), hash, key) {
            return Ok(Some((stamp, Slice::from_block(value))));
        }
        let mut is_kept = false;
        let found = table.find(key, Stamp::upto(upto), |handle| {
            let (block, kept) = self.cache.block_for_row(table, handle)?;
            is_kept = kept;
            Ok(block)
        })?;
        Ok(found.map(|(block, entry)| {
            let stamp = table.stamp(block.stamp(entry));
            let value = if is_kept {
                block.pin_value(entry)
            } else {
                self.cache.keep_row(table.id(), (hash, key), (stamp, block, entry))
            };
            (stamp, Slice::from_block(value))
        }))
    }
}

/// What a source says of a key of which it has the version `newest` and, `over` it, a range tombstone. Nothing if it has
/// neither; otherwise older sources have nothing to say (I2).
pub(super) fn decide<V>(newest: Option<(Stamp, V)>, over: Option<Seq>) -> Option<Option<V>> {
    match newest {
        Some((stamp, value)) if over.is_none_or(|over| over < stamp.seq()) => {
            Some((stamp.kind() == Kind::Put).then_some(value))
        }
        Some(_) => Some(None),
        None => over.map(|_| None),
    }
}
