//! The compaction iterator: which entries a flush or compaction keeps of its inputs, and where its tables end.
//!
//! Entries come from cursors, in order. Tables go to a [`Sink`]. Nothing here knows files or plans.

use std::collections::HashSet;

use super::expiry::RecordFilter;
use super::pointers::{Fates, Pointers};
use crate::catalog::{Run, TableMeta, Version};
use crate::engine::shared::statistics::IterationStats;
use crate::error::{Error, Result};
use crate::merge::{Coverage, Cursor, MergeForward, VersionFilter};
use crate::policy::{CutState, CutView};
use crate::types::{Holders, KeyRange, Kind, RangeTombstone, Seq, Stamp, TableId, UpperBound};

/// A job looks this often, in records, whether it should stop.
const RECORDS_PER_CHECK: u64 = 1024;

/// What takes the tables of a job, one behind the other.
pub(in crate::engine) trait Sink {
    /// The range tombstones that the tables are to share, fragmented.
    fn set_range_tombstones(&mut self, tombstones: Vec<KeptRange>);

    /// Whether some of them are in no table yet.
    fn has_range_tombstones(&self) -> bool;

    /// Whether the current table holds, or will hold, anything before `bound`.
    fn reaches(&self, bound: &UpperBound) -> bool;

    /// Appends an entry. Entries come in order. One may be kept for `held` alone.
    fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8], held: Option<Holders>) -> Result<()>;

    /// Bytes of the table that is being written; 0 between tables.
    fn table_bytes(&self) -> u64;

    /// Ends the current table, if there is one, before `bound`, where the next one may begin. The table takes the
    /// range tombstones up to there along. Between tables they are clipped, so that the run is disjoint (I1).
    fn cut(&mut self, bound: &UpperBound) -> Result<()>;
}

/// A range tombstone that a job keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::engine) struct KeptRange {
    pub(in crate::engine) tombstone: RangeTombstone,
    /// The readers for whom alone it is kept; `None` if it is kept anyway.
    pub(in crate::engine) held: Option<Holders>,
}

/// The iteration of a job over its inputs.
pub(in crate::engine) struct CompactionIterator<'a, S> {
    pub(in crate::engine) output: S,
    /// Where tables end; `None` for a single one.
    pub(in crate::engine) cutting: Option<CutState>,
    /// Sequence numbers at which somebody reads, ascending.
    pub(in crate::engine) snapshots: Vec<Seq>,
    /// Its range tombstones, fragmented for `snapshots`.
    pub(in crate::engine) coverage: Coverage,
    pub(in crate::engine) outside: Outside<'a>,
    pub(in crate::engine) record_filter: RecordFilter,
    /// Values that lie apart.
    pub(in crate::engine) pointers: Pointers<'a>,
}

/// The tables of a version that a job does not read (I5). Tables that have come since hold newer entries only.
pub(in crate::engine) struct Outside<'a> {
    pub(in crate::engine) version: &'a Version,
    pub(in crate::engine) inputs: &'a HashSet<TableId>,
}

impl Outside<'_> {
    /// Whether one of them may hold an older version of `key` than `seq`.
    fn may_hold(&self, key: &[u8], seq: Seq) -> bool {
        !planted!("tombstone-dropped-above-older-tables")
            && self.runs().filter_map(|run| run.find(key)).any(|table| self.is_older(table, seq))
    }

    /// Whether one of them may hold an older version than `seq` of a key of `range`.
    fn may_hold_any(&self, range: &KeyRange, seq: Seq) -> bool {
        !planted!("range-tombstone-dropped-above-older-tables")
            && self.runs().flat_map(|run| run.overlapping(range)).any(|table| self.is_older(table, seq))
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.version.runs().map(|(_, run)| run)
    }

    fn is_older(&self, table: &TableMeta, seq: Seq) -> bool {
        let newest = planted!("table-judged-by-its-newest-entry");
        let oldest = if newest { table.max_seq } else { table.min_seq };
        oldest < seq && !self.inputs.contains(&table.id)
    }
}

impl<S: Sink> CompactionIterator<'_, S> {
    /// Writes those entries of `compaction` that somebody may still read. `check` is called now and then with the number and
    /// the bytes of the records since the last call; its error ends the job.
    pub(in crate::engine) fn run<C: Cursor<Error = Error>>(
        mut self,
        mut merge: MergeForward<C>,
        check: impl Fn(u64, u64) -> Result<()>,
    ) -> Result<(S, IterationStats, Fates)> {
        let mut filter = VersionFilter::new(&self.snapshots);
        self.output.set_range_tombstones(self.kept_ranges(&filter));
        let mut iteration = IterationStats::default();
        let mut last_read: Option<Vec<u8>> = None;
        let mut key_is_written = false;
        let (mut records, mut bytes) = (0, 0);
        check(0, 0)?;
        merge.seek_first()?;
        while merge.valid() {
            if records == RECORDS_PER_CHECK {
                check(records, bytes)?;
                (records, bytes) = (0, 0);
            }
            records += 1;
            bytes += (merge.key().len() + merge.value().len()) as u64;
            iteration.records_in += 1;
            let key = merge.key();
            let same_key = last_read.as_deref() == Some(key);
            key_is_written &= same_key;
            let over = self.coverage.newer_than(key, merge.stamp().seq());
            let newest = !same_key && over.is_none();
            let read = |stored: &[u8]| self.pointers.read(stored);
            let (stamp, value) =
                self.record_filter.pass(key, (merge.stamp(), merge.value()), newest, read)?;
            let older = || self.outside.may_hold(key, stamp.seq());
            let verdict = if same_key {
                filter.judge_next(stamp, over, older)
            } else {
                filter.judge_first(stamp, over, older)
            };
            if verdict.is_kept() {
                // Never inside a user key (I1); asked where a new key begins, even if its newest version went.
                let inside_key = key_is_written && !planted!("user-key-split-over-two-tables");
                if !inside_key && let Some(cutting) = &mut self.cutting {
                    cut_between_keys(cutting, &mut self.output, |boundary| !boundary.admits(key))?;
                    if cutting.cut(&CutView { output_bytes: self.output.table_bytes(), next_key: key }) {
                        self.output.cut(&UpperBound::Excluded(key.into()))?;
                    }
                }
                let read = (merge.stamp(), merge.value());
                bytes += write_kept(
                    (&mut self.output, &mut self.pointers),
                    (key, stamp, &value),
                    read,
                    verdict.holders(),
                )?;
                iteration.records_out += 1;
                key_is_written = true;
            } else if merge.stamp().is_separated() {
                self.pointers.died(merge.value())?;
            }
            if !same_key {
                let last = last_read.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            merge.step()?;
        }
        check(records, bytes)?;
        if let Some(cutting) = &mut self.cutting {
            cut_between_keys(cutting, &mut self.output, |_| true)?;
        }
        Ok((self.output, iteration, self.pointers.fates()?))
    }

    /// The range tombstones that stay.
    fn kept_ranges(&self, filter: &VersionFilter) -> Vec<KeptRange> {
        let mut newer: Option<&RangeTombstone> = None;
        let mut kept = Vec::new();
        for tombstone in self.coverage.fragments() {
            let RangeTombstone { range, seq } = tombstone;
            let next = newer.replace(tombstone).filter(|newer| newer.range == *range);
            let outside = || self.outside.may_hold_any(range, *seq);
            let verdict = filter.judge_range(*seq, next.map(|newer| newer.seq), outside);
            if verdict.is_kept() {
                kept.push(KeptRange { tombstone: tombstone.clone(), held: verdict.holders() });
            }
        }
        kept
    }
}

/// Writes the entry that stays of one that was `read`: with its value in the place of a pointer into a value table that is to be
/// left. Returns the bytes of that value.
fn write_kept(
    (output, pointers): (&mut impl Sink, &mut Pointers<'_>),
    (key, stamp, value): (&[u8], Stamp, &[u8]),
    (read_stamp, read_value): (Stamp, &[u8]),
    held: Option<Holders>,
) -> Result<u64> {
    if !pointers.is_left(stamp, value)? {
        output.add(key, stamp, value, held)?;
        if read_stamp.is_separated() && !stamp.is_separated() {
            // The owner's filter has changed it.
            pointers.died(read_value)?;
        }
        return Ok(0);
    }
    let Some(moved) = pointers.take(value)? else {
        output.add(key, stamp, value, held)?;
        return Ok(0);
    };
    if planted!("collected-value-kept-under-its-old-pointer") {
        output.add(key, stamp, value, held)?;
    } else {
        output.add(key, Stamp::new(stamp.seq(), Kind::Put), &moved, held)?;
    }
    pointers.collected(read_value, moved.len())?;
    Ok(moved.len() as u64)
}

/// Cuts the output where it must end whatever keys follow, as far as `reached` goes: at fences, and where its range
/// tombstones span much of the level after the target, at the ends of that level's tables. In the order of the keys, so
/// that no table takes range tombstones from behind a fence along.
fn cut_between_keys(
    cutting: &mut CutState,
    output: &mut impl Sink,
    reached: impl Fn(&UpperBound) -> bool,
) -> Result<()> {
    loop {
        let next = if output.has_range_tombstones() { cutting.next_boundary() } else { cutting.next_fence() };
        let Some(boundary) = next.filter(|boundary| reached(boundary)).cloned() else { return Ok(()) };
        let UpperBound::Excluded(next_key) = &boundary else { return Ok(()) };
        // A range tombstone is something, though it takes no place before the table ends.
        let output_bytes = output.table_bytes().max(output.reaches(&boundary).into());
        if cutting.cut(&CutView { output_bytes, next_key }) {
            output.cut(&boundary)?;
        }
    }
}
