//! A sorted run: tables in key order, no two of which share a user key (invariant I1).
//!
//! A run is immutable and persistent: an edit of k tables among n costs about k log n and shares the rest with the
//! run before it. Because the tables are disjoint, their order by start and by end is the same. The run is sorted by
//! the ends, so that the only table that may hold a key is the first one that is not wholly before it.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use super::inconsistent::ensure;
use super::sequence::{Change, Element, Iter, Sequence};
use super::{Inconsistent, Lease, TableMeta};
use crate::types::{KeyRange, Seq, Share, UpperBound};

/// Tables in key order that share no user key. Cloning shares everything.
#[derive(Clone, Default)]
pub struct Run {
    tables: Sequence<Arc<TableMeta>>,
}

/// Where a table ends, with the first 16 bytes as a number of the same order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TableEnd {
    prefix: u128,
    bound: UpperBound,
}

/// Sums over tables, and their highest sequence number.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sums {
    bytes: u64,
    entries: u64,
    tombstones: u64,
    range_tombstones: u64,
    max_seq: Seq,
    held: Share,
    /// Tables of which it is known which keys they have.
    keyed: u64,
    /// Bytes of the values that they point to.
    value_bytes: u64,
    pointers: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.entries += other.entries;
        self.tombstones += other.tombstones;
        self.range_tombstones += other.range_tombstones;
        self.max_seq = self.max_seq.max(other.max_seq);
        self.held.records += other.held.records;
        self.held.bytes += other.held.bytes;
        self.keyed += other.keyed;
        self.value_bytes += other.value_bytes;
        self.pointers += other.pointers;
    }
}

impl Element for Arc<TableMeta> {
    type Key = TableEnd;
    type Total = Sums;

    fn key(&self) -> TableEnd {
        let bound = self.range.end.clone();
        let prefix = match &bound {
            UpperBound::Excluded(key) => prefix(key),
            UpperBound::Unbounded => u128::MAX,
        };
        TableEnd { prefix, bound }
    }

    fn total(&self) -> Sums {
        Sums {
            bytes: self.bytes(),
            entries: self.entries,
            tombstones: self.tombstones,
            range_tombstones: self.range_tombstones,
            max_seq: self.max_seq,
            held: self.holds.held(),
            keyed: self.keys.is_some().into(),
            value_bytes: self.values.bytes,
            pointers: self.values.count,
        }
    }
}

/// The first 16 bytes of `key`, padded with zeros, as a number: different numbers order as the keys do.
fn prefix(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    // Never stored: the byte order is that of keys, not of a format.
    u128::from_le_bytes(bytes).swap_bytes()
}

/// Whether a table that ends there lies wholly before `key`.
fn before(key: &[u8]) -> impl Fn(&TableEnd) -> bool {
    let prefix = prefix(key);
    move |end| end.prefix < prefix || end.prefix == prefix && !end.bound.admits(key)
}

impl Run {
    /// The run without tables.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The run of `tables`, given in key order.
    #[cfg(test)]
    pub fn from_sorted(tables: Vec<Arc<TableMeta>>) -> Result<Self, Inconsistent> {
        for pair in tables.windows(2) {
            ensure_disjoint(&pair[0], &pair[1])?;
        }
        Self::empty().with(&[], tables)
    }

    /// The run without the tables of `drop` and with those of `add`, each in any order.
    ///
    /// # Errors
    ///
    /// When a table to drop is not in the run, or one to add overlaps a table of the result.
    pub fn with(&self, drop: &[Arc<TableMeta>], add: Vec<Arc<TableMeta>>) -> Result<Self, Inconsistent> {
        for table in drop {
            let found = self.find(&table.range.start);
            ensure!(found.is_some_and(|found| found.id == table.id), "{table:?} is not in the run");
        }
        let mut changes: Vec<_> = drop.iter().map(|table| (table.key(), Change::Remove)).collect();
        changes.extend(add.iter().map(|table| (table.key(), Change::Insert(Arc::clone(table)))));
        // Stable: removals stay before arrivals at the same key.
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        let tables = self.tables.with(&changes).map_err(|end| {
            let end = end.bound.as_bytes().escape_ascii().to_string();
            Inconsistent::new(format!("two tables of a run end at bound {end}"))
        })?;
        let run = Self { tables };
        for table in &add {
            let index = run.lower_bound(&table.range.start);
            if let Some(left) = index.checked_sub(1).and_then(|left| run.get(left)) {
                ensure_disjoint(left, table)?;
            }
            if let Some(right) = run.get(index + 1) {
                ensure_disjoint(table, right)?;
            }
        }
        Ok(run)
    }

    /// The tables that overlap one of `ranges`, which are disjoint and ascend.
    #[must_use]
    pub fn within(&self, ranges: &[KeyRange]) -> Self {
        let mut tables: Vec<_> = ranges.iter().flat_map(|range| self.overlapping(range)).cloned().collect();
        // One that reaches from one range to the next.
        tables.dedup_by_key(|table| table.id);
        Self { tables: Sequence::from_sorted(tables) }
    }

    /// The first `count` tables that are not wholly before `key`, as metadata alone: it holds no extent.
    #[must_use]
    pub fn outline(&self, key: &[u8], count: usize) -> Self {
        let tables = self.iter_from(self.lower_bound(key)).take(count);
        let outlined = tables.map(|table| Arc::new(TableMeta::new(&table.record(), Lease::none())));
        Self { tables: Sequence::from_sorted(outlined.collect()) }
    }

    /// Number of tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are no tables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of all tables together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tables.total().bytes
    }

    /// Number of entries, tombstones included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.tables.total().entries
    }

    /// Number of tombstones.
    #[must_use]
    pub fn tombstones(&self) -> u64 {
        self.tables.total().tombstones
    }

    /// Number of range tombstones; one that several tables share counts in each.
    #[must_use]
    pub fn range_tombstones(&self) -> u64 {
        self.tables.total().range_tombstones
    }

    /// The highest sequence number of any table.
    #[must_use]
    pub fn max_seq(&self) -> Seq {
        self.tables.total().max_seq
    }

    /// What of the tables is kept only for readers at past sequence numbers.
    #[must_use]
    pub fn held(&self) -> Share {
        self.tables.total().held
    }

    /// Bytes of the values that lie apart and that the tables point to.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.tables.total().value_bytes
    }

    /// Number of pointers to such values.
    #[must_use]
    pub fn pointers(&self) -> u64 {
        self.tables.total().pointers
    }

    /// Whether it is known of any table which keys it has.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.tables.total().keyed > 0
    }

    /// The table at `index` in key order.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.tables.get(index)
    }

    /// The first table.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<TableMeta>> {
        self.get(0)
    }

    /// The last table.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<TableMeta>> {
        self.get(self.len().wrapping_sub(1))
    }

    /// The table whose range contains `user_key`: the only one that may hold it.
    #[must_use]
    pub fn find(&self, user_key: &[u8]) -> Option<&Arc<TableMeta>> {
        let table = self.tables.find(before(user_key))?;
        (*table.range.start <= *user_key).then_some(table)
    }

    /// Index of the first table that is not wholly before `user_key`; the number of tables if there is none.
    #[must_use]
    pub fn lower_bound(&self, user_key: &[u8]) -> usize {
        self.tables.position(before(user_key))
    }

    /// The tables that overlap `range`, in key order.
    pub fn overlapping<'a>(&'a self, range: &KeyRange) -> impl Iterator<Item = &'a Arc<TableMeta>> {
        self.iter_from(self.lower_bound(&range.start))
            .take_while(|table| range.end.admits(&table.range.start))
    }

    /// Length of the tables that overlap `range`, in bytes. Costs two searches.
    #[must_use]
    pub fn overlap_bytes(&self, range: &KeyRange) -> u64 {
        let from = self.tables.seek(before(&range.start)).total.bytes;
        let to = self.tables.seek(|end| end.bound <= range.end);
        let last = to.element.filter(|table| range.end.admits(&table.range.start));
        to.total.bytes - from + last.map_or(0, |table| table.bytes())
    }

    /// The tables in key order.
    #[must_use]
    pub fn iter(&self) -> RunIter<'_> {
        self.iter_from(0)
    }

    /// The tables in key order, from the one at `index` on.
    #[must_use]
    pub fn iter_from(&self, index: usize) -> RunIter<'_> {
        RunIter(self.tables.iter_from(index))
    }
}

/// Walk along the tables of a [`Run`].
#[derive(Clone)]
pub struct RunIter<'a>(Iter<'a, Arc<TableMeta>>);

impl<'a> Iterator for RunIter<'a> {
    type Item = &'a Arc<TableMeta>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// INVARIANT(I1): neighbours of a run share no user key.
fn ensure_disjoint(left: &TableMeta, right: &TableMeta) -> Result<(), Inconsistent> {
    ensure!(
        !left.range.end.admits(&right.range.start),
        "I1: {left:?} and {right:?} of one run overlap or are out of order"
    );
    Ok(())
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
