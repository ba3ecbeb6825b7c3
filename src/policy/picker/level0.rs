//! Sections of level 0: all of its runs in a range of keys, compacted with what level 1 has there.
//!
//! **Which section.** Each compaction of level 0 writes a part of level 1 again, whatever it brings. So the section
//! is taken in which the runs hold most for each byte of level 1: where no compaction has been for longest, or where
//! keys come thickest. It must have a part of the oldest run, because only an emptied run lowers the count. If keys
//! come in no order, this sweeps through all keys, with as many jobs at a time as there are, and needs no cursor. In
//! idle time, where nothing is due, a section is taken only if it is dense: the best one with a part of the oldest
//! run, or else any.
//!
//! **Where a section may end.** Where no table reaches over, if there are enough such places. Flushes are cut where the run
//! before them was (`policy::cutter`), and what is compacted within level 0 is cut there, too, and finer. A section that ended
//! at one of the finer cuts would take those tables alone, and little for each byte of level 1: flushed tables reach beyond
//! it, so they stay.
//!
//! Where they are few, or too much lies between two of them, also where tables of one run begin: the run with most tables. Few tables of
//! other runs reach over these places. Where other runs are much finer, as when keys move on, the starts of their tables
//! are added.

use std::cmp::Reverse;
use std::sync::Arc;

use super::Source;
use super::choice::Choice;
use crate::catalog::{Run, TableMeta};
use crate::policy::clusters::{OverlapCluster, clusters};
use crate::types::{Key, KeyRange, UpperBound};

/// A section takes up to this many times the bytes of a group, of all runs and the target together.
pub(super) const GROUPS: u64 = 2;

/// The starts of another run's tables are added where more than this many lie between two places of the grid.
const COARSE: usize = 4;

/// Where there are no more than so many places over which no table reaches, sections end elsewhere, too.
const PARTED_MIN: usize = 32;

/// What lies between two places over which no table reaches may have this many times the bytes of a group, with the target.
const CELL_GROUPS: u64 = 8;

/// Divisor: or this part of all.
const CELL_PARTS: u64 = 16;

/// At most this many sections, none of which overlap, are tried for a dense one.
const SECTIONS_MAX: usize = 64;

/// What lies between two places at which a section may end.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// Bytes of the runs.
    bytes: u64,
    /// Whether the oldest run has a table here.
    is_oldest: bool,
    is_busy: bool,
}

/// A range of a section's size, of which no part is a running job's.
struct Section {
    range: KeyRange,
    /// What it holds for each byte that is written.
    gain: f64,
    /// Whether the oldest run has a table here.
    is_oldest: bool,
}

/// What to take next.
pub(super) fn choose(source: Source<'_>) -> Option<Choice<'_>> {
    choose_oldest(source, &sections(source))
}

/// What to take next of sections that hold at least one part in `parts` of what they meet.
pub(super) fn choose_dense(source: Source<'_>, parts: u64) -> Option<Choice<'_>> {
    let sections = sections(source);
    choose_oldest(source, &sections).filter(|choice| choice.is_dense(parts)).or_else(|| {
        // Of a section, only tables that reach no further are taken. That may be much less, so another section may do.
        let likely = sections.iter().take_while(|section| section.gain * (parts + 1) as f64 >= 1.0);
        let mut tried: Vec<&KeyRange> = Vec::new();
        let apart = likely.filter(|Section { range, .. }| {
            let is_apart = !tried.iter().any(|other| other.overlaps(range));
            tried.extend(is_apart.then_some(range));
            is_apart
        });
        let mut choices =
            apart.take(SECTIONS_MAX).filter_map(|section| source.choose_section(&section.range));
        choices.find(|choice| choice.is_dense(parts))
    })
}

/// What to take next of sections that are `worth` it, at any age.
pub(super) fn choose_worth<'a>(
    source: Source<'a>,
    is_worth: impl Fn(&Choice<'_>) -> bool,
) -> Option<Choice<'a>> {
    let sections = sections(source);
    let mut choices = sections.iter().filter_map(|section| source.choose_section(&section.range));
    choices.find(|choice| is_worth(choice))
}

/// What to take next of the oldest run, and of what lies over it.
fn choose_oldest<'a>(source: Source<'a>, sections: &[Section]) -> Option<Choice<'a>> {
    let oldest = source.state.runs.last()?;
    let suits = |section: &&Section| section.is_oldest || planted!("section-without-the-oldest-run");
    let best = sections.iter().find(suits).and_then(|section| source.choose_section(&section.range));
    best.or_else(|| {
        let mut free = oldest.iter().filter(|table| !source.view.busy.conflicts(0, &table.range));
        free.find_map(|table| source.choose_section(&table.range))
    })
}

/// The sections in which there is something, those with most gain first.
fn sections(source: Source<'_>) -> Vec<Section> {
    let runs = &source.state.runs;
    let starts = places(source);
    let starts: Vec<&Key> = starts.iter().collect();
    let range = |from: usize, to: usize| KeyRange {
        start: from.checked_sub(1).map_or_else(Key::default, |at| starts[at].clone()),
        end: starts.get(to).map_or(UpperBound::Unbounded, |start| UpperBound::Excluded((*start).clone())),
    };
    let mut cells = vec![Cell::default(); starts.len() + 1];
    for run in runs {
        each(run, &starts, |at, table| cells[at].bytes += table.bytes());
    }
    let oldest = runs.last().into_iter();
    oldest.for_each(|run| each(run, &starts, |at, _| cells[at].is_oldest = true));
    for (at, cell) in cells.iter_mut().enumerate() {
        cell.is_busy = source.is_busy(&range(at, at));
    }
    let bytes_max = source.config.group_bytes.saturating_mul(GROUPS);
    let mut sections = Vec::new();
    for from in 0..cells.len() {
        let (mut bytes, mut met, mut is_oldest, mut to) = (0, 0, false, from);
        for (at, cell) in cells.iter().enumerate().skip(from) {
            let meets = source.target.overlap_bytes(&range(from, at));
            if cell.is_busy || bytes > 0 && bytes + cell.bytes + meets > bytes_max {
                break;
            }
            (bytes, met, is_oldest, to) = (bytes + cell.bytes, meets, is_oldest || cell.is_oldest, at);
        }
        if bytes > 0 {
            sections.push(Section {
                range: range(from, to),
                gain: bytes as f64 / (bytes + met) as f64,
                is_oldest,
            });
        }
    }
    // Of equal ones the first.
    sections.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    sections
}

/// The places at which a section may end, in their order.
fn places(source: Source<'_>) -> Vec<Key> {
    let runs = &source.state.runs;
    let part = (source.state.bytes() + source.target.bytes()) / CELL_PARTS;
    let bytes_max = part.max(CELL_GROUPS * source.config.group_bytes);
    let is_large =
        |cluster: &OverlapCluster| cluster.bytes() + source.target.overlap_bytes(&cluster.range) > bytes_max;
    let clusters = clusters(runs);
    let is_parted = clusters.len() > PARTED_MIN;
    let is_whole = |place: &Key| {
        let at = clusters.partition_point(|cluster| cluster.range.start <= *place);
        let cluster = at.checked_sub(1).and_then(|at| clusters.get(at));
        is_parted && cluster.is_some_and(|cluster| cluster.range.contains(place) && !is_large(cluster))
    };
    let starts = clusters.iter().skip(1).filter(|_| is_parted).map(|cluster| &cluster.range.start);
    let mut places: Vec<Key> = starts.cloned().collect();
    places.extend(grid(runs).into_iter().filter(|place| !is_whole(place)).cloned());
    places.sort_unstable();
    places.dedup();
    places
}

/// The same where tables reach over each other.
fn grid(runs: &[Run]) -> Vec<&Key> {
    let mut by_size: Vec<_> = runs.iter().collect();
    by_size.sort_by_key(|run| Reverse(run.len()));
    let mut grid: Vec<&Key> = Vec::new();
    for run in by_size {
        let starts: Vec<_> = run.iter().skip(1).map(|table| &table.range.start).collect();
        let mut finer: Vec<&Key> = Vec::new();
        for within in starts.chunk_by(|a, b| place(&grid, a) == place(&grid, b)) {
            if grid.is_empty() || within.len() > COARSE {
                finer.extend(within);
            }
        }
        grid.extend(finer);
        grid.sort_unstable();
    }
    grid.dedup();
    grid
}

/// Behind how many of `places` a key lies, or at them.
fn place(places: &[&Key], key: &Key) -> usize {
    places.partition_point(|place| *place <= key)
}

/// Tells each table of `run`, and before how many of `starts`, which ascend, it begins.
fn each(run: &Run, starts: &[&Key], mut tell: impl FnMut(usize, &TableMeta)) {
    let mut at = 0;
    for table in run.iter() {
        while starts.get(at).is_some_and(|start| **start <= table.range.start) {
            at += 1;
        }
        tell(at, table);
    }
}

/// Whether `table` is one of `taken`, which are of its run and in its order.
fn is_among(taken: &[&Arc<TableMeta>], table: &TableMeta) -> bool {
    taken.binary_search_by(|one| one.range.start.cmp(&table.range.start)).is_ok()
}

impl<'a> Source<'a> {
    /// Steps 2 to 4; nothing when a running job is in the way, or nothing can be taken.
    fn choose_section(self, range: &KeyRange) -> Option<Choice<'a>> {
        let choice = Choice::of(self, self.section(range)).filter(|choice| !choice.is_busy())?;
        if !choice.has_target_inputs() {
            return Some(choice);
        }
        let wider = Choice::of(self, self.section(choice.range()));
        Some(wider.filter(|wider| wider.gains_over(&choice) && !wider.is_busy()).unwrap_or(choice))
    }

    /// The tables that overlap `range`, do not reach beyond its end, and lie over no older one that is left (I2).
    /// Newest run first.
    fn section(self, range: &KeyRange) -> Vec<&'a Arc<TableMeta>> {
        let runs = &self.state.runs;
        let mut reach = range.clone();
        // Oldest run first.
        let mut taken: Vec<Vec<&Arc<TableMeta>>> = Vec::new();
        for run in runs.iter().rev() {
            let is_taken = |older: &Run, taken: &[&Arc<TableMeta>], range: &KeyRange| {
                older.overlapping(range).all(|below| is_among(taken, below))
            };
            let is_free = |table: &TableMeta| {
                let mut older = runs.iter().rev().zip(&taken);
                planted!("older-runs-left-out-of-a-section")
                    || older.all(|(run, taken)| is_taken(run, taken, &table.range))
            };
            let tables: Vec<_> = (run.overlapping(&reach))
                .filter(|table| table.range.end <= range.end && is_free(table))
                .collect();
            // What reaches over the start is taken, and what is newer may lie over that.
            reach = tables.iter().fold(reach, |reach, table| reach.hull(&table.range));
            taken.push(tables);
        }
        taken.into_iter().rev().flatten().collect()
    }
}
