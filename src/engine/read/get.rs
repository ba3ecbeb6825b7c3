//! Lookups of single keys.
//!
//! A lookup asks the memtables of the view, newest first, then one table of each run, newest run first. The first
//! version that it finds is the newest one that the reader sees (I2). Where the filter of a table lets the key pass, the compaction
//! buffer of its level is asked before the table. A lookup touches what [`ReadPath`] holds and takes no lock of the engine.

use std::sync::Arc;

use super::path::ReadPath;
use crate::catalog::{BufferList, TableMeta};
use crate::engine::keyspace::tree::{Tree, View};
use crate::error::Result;
use crate::format::filter;
use crate::merge::newest_over;
use crate::slice::Slice;
use crate::store::cache::Unit;
use crate::store::files::meter::ReadCause;
use crate::store::table::TableReader;
use crate::types::{Seq, Stamp};

/// An entry that has a value: its stamp, and the value or the pointer to it.
pub(in crate::engine) type Found = (Stamp, Slice);

/// Number of tables that are located before the first of them is asked, so that their filters can be prefetched
/// together.
const ABREAST: usize = 8;

impl ReadPath {
    /// The value of `key` at `upto`, or at the newest visible state.
    pub(crate) fn get(&self, tree: &Tree, key: &[u8], upto: Option<Seq>) -> Result<Option<Slice>> {
        self.look(tree, key, upto, |view, stamp, value| self.followed(view, stamp, value))
    }

    /// Whether `key` has a value at `upto`, or at the newest visible state. One that lies apart is not read.
    pub(crate) fn contains(&self, tree: &Tree, key: &[u8], upto: Option<Seq>) -> Result<bool> {
        Ok(self.look(tree, key, upto, |_, _, value| Ok(value))?.is_some())
    }

    /// What `read` makes of the entry that `key` has, if it has one that is alive.
    #[inline(always)]
    fn look(
        &self,
        tree: &Tree,
        key: &[u8],
        upto: Option<Seq>,
        read: impl FnOnce(&View, Stamp, Slice) -> Result<Slice>,
    ) -> Result<Option<Slice>> {
        self.health.check_open()?;
        // The view is taken before the sequence number: a compaction that ends in between may drop versions that only
        // an older number sees.
        let view = tree.view();
        tree.check_exists()?;
        let upto = upto.unwrap_or_else(|| self.visible());
        let hash = filter::hash(key);
        let mut tables = 0;
        let (value, has_passed) = self.get_in(&view, (hash, key), upto, &mut tables)?;
        if has_passed && self.lookups.count() {
            let costs = self.pressure.load().costs;
            if tree.read_debt.looked(&self.settings.load().policy.layout, &costs) {
                tree.changed();
                self.scheduler.wake();
            }
        }
        let value = value.map(|(stamp, value)| read(&view, stamp, value)).transpose()?;
        let value = match self.clock.expiry(tree) {
            Some(expiry) => value.and_then(|value| expiry.keep(value)),
            None => value,
        };
        self.reads.looked(value.as_ref().map(|value| value.len()), tables);
        Ok(value)
    }

    /// The value of an entry with this stamp: that to which it has a pointer, where the value lies apart.
    #[inline]
    pub(in crate::engine) fn followed(&self, view: &View, stamp: Stamp, value: Slice) -> Result<Slice> {
        if !stamp.is_separated() {
            return Ok(value);
        }
        let found = self.cache.value(view.version.values(), &value, ReadCause::Get)?;
        Ok(Slice::from_block(found))
    }

    /// The entry of `key` in `view`, and whether several tables of level 0 were asked in vain. Counts the `tables` that it asks.
    fn get_in(
        &self,
        view: &View,
        (hash, key): (u64, &[u8]),
        upto: Seq,
        tables: &mut u64,
    ) -> Result<(Option<Found>, bool)> {
        for memtable in view.memtables().filter(|memtable| !memtable.is_empty()) {
            let over = memtable.newest_over(key, upto);
            if let Some(found) = decide(memtable.get(key, hash, upto), over) {
                return Ok((found.map(|(stamp, value)| (stamp, Slice::from_memtable(value))), false));
            }
        }
        // Runs come newest first: the first version met is the newest that is visible (I2).
        let mut covering = view.version.runs().filter_map(|(level, run)| Some((level, run.find(key)?)));
        let mut asked_in_level0 = 0;
        loop {
            let mut abreast = [None; ABREAST];
            for (place, (level, table)) in abreast.iter_mut().zip(covering.by_ref()) {
                if let Some(reader) = table.attachment.get::<TableReader>() {
                    reader.prefetch_filter(hash);
                }
                *place = Some((level, table));
            }
            for &place in &abreast {
                let Some((level, table)) = place else { return Ok((None, asked_in_level0 > 1)) };
                *tables += 1;
                if let Some(found) = self.get_from(view, (level, table), (hash, key), upto)? {
                    return Ok((found, level > 0 && asked_in_level0 > 1));
                }
                asked_in_level0 += u32::from(level == 0);
            }
        }
    }

    /// The answer of one table, or of the buffer of its level, for `key` at `upto`; `None` if older tables must be asked.
    fn get_from(
        &self,
        view: &View,
        (level, meta): (u8, &Arc<TableMeta>),
        (hash, key): (u64, &[u8]),
        upto: Seq,
    ) -> Result<Option<Option<Found>>> {
        if meta.min_seq > upto {
            return Ok(None);
        }
        let table = self.cache.table(meta)?;
        let over = newest_over(table.range_tombstones(), key, upto);
        let table = self.cache.open_for(&table, key)?;
        if !table.may_contain(hash) {
            return Ok(decide(None, over));
        }
        if let Some(list) = view.buffer_of(level)
            && let Some(found) = self.get_from_buffer(list, level, (hash, key), upto)?
        {
            #[cfg(debug_assertions)]
            self.assert_same(view, level, (hash, key), (upto, found.as_ref()));
            return Ok(Some(found));
        }
        self.count_search(&view.version, (level, meta), key);
        let newest = self.newest_of((level, meta), &table, (hash, key), upto)?;
        #[cfg(debug_assertions)]
        if let Some((stamp, _)) = &newest {
            self.assert_newest(&view.version, (level, meta), (hash, key), (stamp.seq(), upto));
        }
        Ok(decide(newest, over))
    }

    /// The answer of the compaction buffer of `level` for `key` at `upto`; `None` if it does not know.
    ///
    /// LSbM-tree, algorithm 3, but that what is gone ends the search for older tables alone: newer ones were asked by then.
    pub(in crate::engine) fn get_from_buffer(
        &self,
        list: &BufferList,
        level: u8,
        (hash, key): (u64, &[u8]),
        upto: Seq,
    ) -> Result<Option<Option<Found>>> {
        for meta in list.about(key).filter(|meta| meta.min_seq <= upto) {
            let table = self.cache.table(meta)?;
            let over = newest_over(table.range_tombstones(), key, upto);
            let table = self.cache.open_for(&table, key)?;
            let newest = if table.may_contain(hash) {
                self.newest_of((level, meta), &table, (hash, key), upto)?
            } else {
                None
            };
            if let Some(found) = decide(newest, over) {
                self.reads.found_in_buffer();
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The newest version of `key` in one table that is visible at `upto`, through the row cache where that has it.
    fn newest_of(
        &self,
        (level, meta): (u8, &TableMeta),
        table: &TableReader,
        (hash, key): (u64, &[u8]),
        upto: Seq,
    ) -> Result<Option<(Stamp, Slice)>> {
        if self.cache.has_rows(meta, upto) {
            self.newest_row(table, Unit::of_level(level), (hash, key), upto)
        } else {
            self.newest_in(table, key, upto)
        }
    }

    /// The newest version of `key` in one table that is visible at `upto`.
    pub(in crate::engine) fn newest_in(
        &self,
        table: &TableReader,
        key: &[u8],
        upto: Seq,
    ) -> Result<Option<(Stamp, Slice)>> {
        let fetch = |at| self.cache.block(table, at, ReadCause::Get);
        let found = table.find(key, Stamp::upto(upto), fetch)?;
        Ok(found.map(|(block, entry)| {
            (table.stamp(block.stamp(entry)), Slice::from_block(block.pin_value(entry)))
        }))
    }

    /// The same through the row cache, in a table of large records that are all visible at `upto`.
    fn newest_row(
        &self,
        table: &TableReader,
        unit: Unit,
        (hash, key): (u64, &[u8]),
        upto: Seq,
    ) -> Result<Option<(Stamp, Slice)>> {
        if let Some((stamp, value)) = self.cache.row(table.id(), hash, key) {
            return Ok(Some((stamp, Slice::from_block(value))));
        }
        let mut is_kept = false;
        let found = table.find(key, Stamp::upto(upto), |at| {
            let (block, kept) = self.cache.block_for_row(table, at, unit)?;
            is_kept = kept;
            Ok(block)
        })?;
        Ok(found.map(|(block, entry)| {
            let stamp = table.stamp(block.stamp(entry));
            let value = if is_kept {
                block.pin_value(entry)
            } else {
                self.cache.keep_row(table, (hash, key), (stamp, block, entry))
            };
            (stamp, Slice::from_block(value))
        }))
    }
}

/// The answer of a source that has the version `newest` of a key, and a range tombstone `over` it: that version, unless it is
/// dead. `None` if it has
/// neither: older sources must be asked. Otherwise older sources do not matter (I2).
pub(in crate::engine) fn decide<V>(
    newest: Option<(Stamp, V)>,
    over: Option<Seq>,
) -> Option<Option<(Stamp, V)>> {
    match newest {
        Some((stamp, value)) if over.is_none_or(|over| over < stamp.seq()) => {
            Some(stamp.kind().is_put().then_some((stamp, value)))
        }
        Some(_) => Some(None),
        None => over.map(|_| None),
    }
}
