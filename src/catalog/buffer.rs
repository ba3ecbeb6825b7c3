//! The compaction buffer: tables that compactions have replaced, and that stay readable because clients' blocks of them
//! are in the cache.
//!
//! Teng et al., "LSbM-tree: Re-enabling Buffer Caching in Data Management for Mixed Reads and Writes" (ICDCS 2017),
//! sections III and IV; `docs/mechanisms/lsbm.md` says what is different here.
//!
//! Each level below level 0 has a [`BufferList`]: what came into it from the level above, newest first. Each table of
//! the list is one of three:
//!
//! * *kept*: its entries can be read here;
//! * *gone*: it was removed, or never kept. Only its range is known. It says that newer entries than those of older tables
//!   may be missing here;
//! * no longer known, where no older table is kept.
//!
//! # Invariants
//!
//! * I6: whatever is found in the list of a level is what the tree would have answered from that level on. So removing every
//!   buffer changes no answer.
//! * Whatever comes into a level is kept in the level's list or is gone there, on top of all older tables that it overlaps.
//!   What comes otherwise than from the level above, or leaves otherwise than into the next one, is gone in the lists above, too.
//! * Where a list *lacks* nothing, its kept tables together are as complete as the level, within the ranges of the level's
//!   tables.
//!
//! A buffer is volatile: the manifest knows nothing of it. A kept table holds its extent by its lease.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::{Run, TableMeta, Version};
use crate::format::edit::TreeEdit;
use crate::types::{KeyRange, KeyRanges, LEVELS, TableId};

/// A list knows the ranges of its gaps by at most so many ranges. Beyond that it takes what lies between two for a gap.
const GAPS_MAX: usize = 1024;

/// The buffers of one tree: a list for each level. Immutable; a clone shares the lists.
#[derive(Clone, Default)]
pub struct CompactionBuffer {
    lists: [Arc<BufferList>; LEVELS],
}

/// What is kept of the tables that came into one level.
#[derive(Clone, Default)]
pub struct BufferList {
    /// Newest first. Where two overlap, what is in the first one is newer.
    sorted: Vec<SortedTable>,
    /// Where entries of the level may be missing in the kept tables.
    lacks: KeyRanges,
    /// When each kept table came, in trimming periods.
    ages: BTreeMap<TableId, u64>,
    /// Length of the kept tables, in bytes.
    bytes: u64,
    /// Bytes that came into the level since it was empty last, or since the list began.
    arrived_bytes: u64,
    /// Bytes of the level that came otherwise than from the level above, or before the list began.
    other_bytes: u64,
    /// Whether nothing is kept any more, because the level gets the same keys again and again.
    is_frozen: bool,
    /// When the round of the level above began that still goes on.
    round_began: Option<u64>,
    /// Bytes of the list and of its level when the level began to go down as a whole.
    full: Option<(u64, u64)>,
}

/// Tables that do not overlap each other: one sorted table of a list.
#[derive(Clone, Default)]
struct SortedTable {
    kept: Run,
    gone: KeyRanges,
}

/// What an edit has brought down from one level to the next.
#[derive(Clone, Debug)]
pub struct Descent {
    /// The level that they left.
    pub source: u8,
    /// The level that their entries came to.
    pub target: u8,
    /// Tables that left the source, merged or as they were; where two overlap, the older one first.
    pub tables: Vec<Arc<TableMeta>>,
    /// Whether they may stay readable.
    pub is_kept: bool,
    /// Whether they are the whole source, and the target was empty.
    pub is_whole: bool,
}

impl BufferList {
    /// Whether no table is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ages.is_empty()
    }

    /// Number of kept tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ages.len()
    }

    /// Length of the kept tables, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of ranges that stand for tables that are gone.
    #[must_use]
    pub fn gone(&self) -> usize {
        self.sorted.iter().map(|sorted| sorted.gone.len()).sum()
    }

    /// Bytes that came into the level since it was empty last, or since the list began.
    #[must_use]
    pub fn arrived_bytes(&self) -> u64 {
        self.arrived_bytes
    }

    /// Bytes of the level that came otherwise than from the level above, or before the list began.
    #[must_use]
    pub fn other_bytes(&self) -> u64 {
        self.other_bytes
    }

    /// Whether nothing is kept any more.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Bytes of the list and of its level when the level began to go down as a whole, if it does.
    #[must_use]
    pub fn full(&self) -> Option<(u64, u64)> {
        self.full
    }

    /// When the round of the level above began, in trimming periods, if that level goes down in rounds.
    #[must_use]
    pub fn round_began(&self) -> Option<u64> {
        self.round_began
    }

    /// Where the kept tables may lack entries of the level.
    #[must_use]
    pub fn lacks(&self) -> &KeyRanges {
        &self.lacks
    }

    /// The kept tables, newest first, each with when it came, in trimming periods.
    pub fn tables(&self) -> impl Iterator<Item = (&Arc<TableMeta>, u64)> {
        let kept = self.sorted.iter().flat_map(|sorted| sorted.kept.iter());
        kept.map(|table| (table, self.came(table.id)))
    }

    /// When a kept table came, in trimming periods.
    #[must_use]
    pub fn came(&self, table: TableId) -> u64 {
        self.ages.get(&table).copied().unwrap_or(0)
    }

    /// The kept tables as runs, newest first.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.sorted.iter().map(|sorted| &sorted.kept).filter(|run| !run.is_empty())
    }

    /// Whether the table is kept.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        self.ages.contains_key(&table)
    }

    /// The kept tables that may tell of `key`, newest first: up to where something newer may be missing.
    pub fn about<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Arc<TableMeta>> {
        let is_whole = |sorted: &&SortedTable| {
            !sorted.gone.contains(key) || planted!("search-goes-on-behind-what-is-gone")
        };
        self.sorted.iter().take_while(is_whole).filter_map(|sorted| sorted.kept.find(key))
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let gone: usize = self.sorted.iter().map(|sorted| sorted.gone.memory_bytes()).sum();
        self.lacks.memory_bytes() + gone + self.ages.len() * size_of::<TableMeta>()
    }

    /// The list once its level is empty.
    fn anew(&self) -> Self {
        Self { round_began: self.round_began, ..Self::default() }
    }

    /// Stops to keep anything.
    pub fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Notes what came into the level.
    fn arrive(&mut self, table: &Arc<TableMeta>, is_kept: bool, now: u64) {
        self.arrived_bytes = self.arrived_bytes.saturating_add(table.bytes());
        if is_kept && !self.is_frozen {
            self.keep(table, now);
        } else {
            self.pass(&table.range);
        }
    }

    /// Keeps `table`, on top of what it overlaps.
    fn keep(&mut self, table: &Arc<TableMeta>, now: u64) {
        if self.has(table.id) {
            return;
        }
        let meets = |sorted: &SortedTable| {
            sorted.gone.overlaps(&table.range) || sorted.kept.overlapping(&table.range).next().is_some()
        };
        let place = self.place_above(meets);
        match self.sorted[place].kept.with(&[], vec![Arc::clone(table)]) {
            Ok(kept) => {
                self.sorted[place].kept = kept;
                self.bytes += table.bytes();
                self.ages.insert(table.id, now);
            }
            // It overlaps none there. If it did, it would count as gone.
            Err(_) => self.pass(&table.range),
        }
    }

    /// Notes that something of `range` has changed in the level of which nothing is kept.
    fn pass(&mut self, range: &KeyRange) {
        self.lack(range);
        if planted!("unkept-table-not-noted-in-the-buffer") {
            return;
        }
        let meets = |sorted: &SortedTable| sorted.kept.overlapping(range).next().is_some();
        if self.sorted.iter().any(meets) {
            let place = self.place_above(meets);
            self.sorted[place].gone.add(range);
            self.sorted[place].gone.widen_to(GAPS_MAX);
        }
    }

    /// Index of the lowest sorted table above all that `meets` names; a new one on top if need be.
    fn place_above(&mut self, meets: impl Fn(&SortedTable) -> bool) -> usize {
        match self.sorted.iter().position(meets) {
            Some(0) => self.sorted.insert(0, SortedTable::default()),
            Some(met) => return met - 1,
            None if self.sorted.is_empty() => self.sorted.push(SortedTable::default()),
            None => return self.sorted.len() - 1,
        }
        0
    }

    fn lack(&mut self, range: &KeyRange) {
        self.lacks.add(range);
        self.lacks.widen_to(GAPS_MAX);
    }

    /// Removes `tables`: from here on they are gone.
    pub fn remove(&mut self, tables: &BTreeSet<TableId>) {
        for (table, at) in self.places_of(tables) {
            if let Ok(kept) = self.sorted[at].kept.with(std::slice::from_ref(&table), Vec::new()) {
                self.sorted[at].kept = kept;
                self.bytes -= table.bytes();
                self.ages.remove(&table.id);
            }
            self.lack(&table.range);
            if !planted!("removed-table-not-noted-in-the-buffer") {
                self.sorted[at].gone.add(&table.range);
            }
            self.tidy(&table.range);
        }
        self.sorted.retain(|sorted| !sorted.kept.is_empty() || !sorted.gone.is_empty());
    }

    /// Replaces a kept table by `table`, the same elsewhere.
    fn relocate(&mut self, table: &Arc<TableMeta>) {
        for (old, at) in self.places_of(&BTreeSet::from([table.id])) {
            let is_elsewhere = old.extent != table.extent;
            let kept = &mut self.sorted[at].kept;
            if is_elsewhere && let Ok(moved) = kept.with(std::slice::from_ref(&old), vec![Arc::clone(table)])
            {
                *kept = moved;
            }
        }
    }

    fn places_of(&self, tables: &BTreeSet<TableId>) -> Vec<(Arc<TableMeta>, usize)> {
        let all = self
            .sorted
            .iter()
            .enumerate()
            .flat_map(|(at, sorted)| sorted.kept.iter().map(move |table| (table, at)));
        all.filter(|(table, _)| tables.contains(&table.id))
            .map(|(table, at)| (Arc::clone(table), at))
            .collect()
    }

    /// Forgets what is gone in `range` where no older table is kept.
    fn tidy(&mut self, range: &KeyRange) {
        for at in 0..self.sorted.len() {
            let (newer, older) = self.sorted.split_at_mut(at + 1);
            let is_over =
                |gone: &KeyRange| older.iter().any(|sorted| sorted.kept.overlapping(gone).next().is_some());
            newer[at].gone.retain_overlapping(range, is_over);
        }
    }
}

impl CompactionBuffer {
    /// The buffer of a tree of which nothing is kept.
    #[must_use]
    pub fn cold(version: &Version) -> Self {
        let list = |level: usize| {
            let other_bytes = version.bytes(level as u8);
            let lacks = if other_bytes > 0 { KeyRanges::everything() } else { KeyRanges::default() };
            BufferList { lacks, other_bytes, ..BufferList::default() }
        };
        Self { lists: std::array::from_fn(|level| Arc::new(list(level))) }
    }

    /// Whether no table is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.is_empty())
    }

    /// The list of `level`.
    ///
    /// # Panics
    ///
    /// When there is no such level.
    #[must_use]
    pub fn list(&self, level: u8) -> &BufferList {
        &self.lists[usize::from(level)]
    }

    /// The same, to change.
    ///
    /// # Panics
    ///
    /// When there is no such level.
    pub fn list_mut(&mut self, level: u8) -> &mut BufferList {
        Arc::make_mut(&mut self.lists[usize::from(level)])
    }

    /// The lists with their levels, from the top.
    pub fn lists(&self) -> impl Iterator<Item = (u8, &BufferList)> {
        (0u8..).zip(self.lists.iter().map(|list| &**list))
    }

    /// Whether the table is kept.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        self.lists.iter().any(|list| list.has(table))
    }

    /// The buffer behind `edit`, which made `after` out of `before`. If it brought tables down from one level to the next,
    /// `descent` says so. `now` is the time, in trimming periods.
    #[must_use]
    pub fn behind(
        &self,
        edit: &TreeEdit,
        (before, after): (&Version, &Version),
        descent: Option<&Descent>,
        now: u64,
    ) -> Self {
        let mut buffer = self.clone();
        // The layout may have changed since it was planned: then a part of a level may move as if it were all of it.
        let sinks = |Descent { source, target, is_whole, .. }: &Descent| {
            *is_whole && after.level(*source).runs.is_empty() && before.level(*target).runs.is_empty()
        };
        match descent {
            Some(descent) if sinks(descent) => buffer.sink(descent, after, now),
            Some(Descent { target, tables, is_kept, .. }) => {
                let list = buffer.list_mut(*target);
                tables.iter().for_each(|table| list.arrive(table, *is_kept, now));
            }
            None => buffer.change(edit, before),
        }
        for (_, table) in edit.add.iter().filter(|(_, table)| self.has(table.id)) {
            after.table(table.id).iter().for_each(|(_, table)| buffer.relocate(table));
        }
        for (level, list) in (0u8..).zip(&mut buffer.lists) {
            // Nothing is missing in the list of an empty level.
            if after.level(level).runs.is_empty() {
                *list = Arc::new(list.anew());
            }
        }
        buffer
    }

    /// Reads `table` where it lies now, if it is kept: a rewrite has copied it, and its old extent is to be free.
    fn relocate(&mut self, table: &Arc<TableMeta>) {
        for list in self.lists.iter_mut().filter(|list| list.has(table.id)) {
            Arc::make_mut(list).relocate(table);
        }
    }

    /// A whole level has sunk into the next one, which was empty: its list goes with it, and a round of the level after that
    /// begins.
    fn sink(&mut self, descent: &Descent, after: &Version, now: u64) {
        let (source, target) = (usize::from(descent.source), usize::from(descent.target));
        let list = (*self.lists[source]).clone();
        let full = Some((list.bytes, after.bytes(descent.target)));
        self.lists[source] = Arc::new(list.anew());
        self.lists[target] = Arc::new(BufferList { full, ..list });
        if target + 1 < LEVELS {
            self.list_mut(descent.target + 1).round_began = Some(now);
        }
    }

    /// An edit that brings nothing down from one level to the next: what it adds to a level or takes from it is gone there,
    /// and in the lists above. These may keep tombstones that are older than what it adds; and values that it drops, whose
    /// tombstones need not be kept in the tree any more.
    fn change(&mut self, edit: &TreeEdit, before: &Version) {
        let dropped: BTreeSet<(u8, TableId)> = edit.drop.iter().copied().collect();
        let added: BTreeSet<(u8, TableId)> =
            edit.add.iter().map(|(level, table)| (*level, table.id)).collect();
        for (level, table) in edit.add.iter().filter(|(level, table)| !dropped.contains(&(*level, table.id)))
        {
            (1..=*level).for_each(|level| self.list_mut(level).pass(&table.range));
            self.list_mut(*level).other_bytes += table.extent.length;
        }
        for &(level, id) in dropped.difference(&added) {
            let Some((_, table)) = before.table(id) else { continue };
            (1..=level).for_each(|level| self.list_mut(level).pass(&table.range));
            let list = self.list_mut(level);
            list.other_bytes = list.other_bytes.saturating_sub(table.bytes());
        }
    }
}

impl fmt::Debug for BufferList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for SortedTable { kept, gone } in &self.sorted {
            write!(f, "\n  {kept:?}")?;
            gone.iter().try_for_each(|range| write!(f, " gone:{range}"))?;
        }
        write!(f, "\n  lacks:")?;
        self.lacks.iter().try_for_each(|range| write!(f, " {range}"))
    }
}

impl fmt::Debug for CompactionBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompactionBuffer")?;
        let lists = self.lists().filter(|(_, list)| !list.is_empty());
        for (level, list) in lists {
            write!(f, "\nB{level}{list:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
