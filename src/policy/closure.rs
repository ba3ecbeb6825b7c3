//! Closures: which tables of a level with several runs go together. Pure functions over a level, for the pickers.
//!
//! Of two tables of a level that overlap, the one in the newer run has the newer entry of every common key. So a job
//! may not take whatever it likes:
//!
//! * What goes to a deeper level is *downward closed* (I2): with a table go all older ones that overlap it.
//! * What becomes one run within its level is *convex* (I3): with its tables go all those of middle age that overlap
//!   their hull, since the outputs are as new as the newest input. Without that, the outputs would bring old entries
//!   above newer ones of a table of middle age. (PTierDB's and PebblesDB's merges within a level do.) If it is downward
//!   closed, the outputs may be as old as the oldest input instead (`picker/fold.rs`).
//! * A *component* is both: tables that overlap each other, directly or through others, and no other table.
//!
//! In level 0, runs stand for ages as they do below, and the tables of a run have one epoch.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::catalog::{LevelState, Run, TableMeta};
use crate::types::{KeyRange, TableId};

/// `seed` and every table of the level that overlaps one of the result and is older. Newest run first, in key order
/// within a run.
#[must_use]
pub fn downward<'a>(state: &'a LevelState, seed: &[&'a Arc<TableMeta>]) -> Vec<&'a Arc<TableMeta>> {
    let mut taken: Vec<&Arc<TableMeta>> = Vec::new();
    // Newest first: what a run adds concerns older ones alone.
    for run in &state.runs {
        let is_here =
            |table: &&&Arc<TableMeta>| run.find(&table.range.start).is_some_and(|it| it.id == table.id);
        let mut here: Vec<_> = seed.iter().filter(is_here).copied().collect();
        here.extend(taken.iter().flat_map(|newer| run.overlapping(&newer.range)));
        taken.extend(in_key_order(here));
    }
    taken
}

/// `seed` and every table of the level that overlaps the hull of the result and is of middle age: newer than the oldest
/// table of the result and older than its newest, or as old as the newest. Newest run first, in key order within a run.
#[must_use]
pub fn convex<'a>(state: &'a LevelState, seed: &[&'a Arc<TableMeta>]) -> Vec<&'a Arc<TableMeta>> {
    let mut taken: Vec<&Arc<TableMeta>> = seed.to_vec();
    while let Some(hull) = hull(&taken).filter(|_| !planted!("convexity-left-out")) {
        let epochs = || taken.iter().map(|table| table.epoch);
        let (lowest, highest) = (epochs().min(), epochs().max());
        let is_taken: BTreeSet<TableId> = taken.iter().map(|table| table.id).collect();
        let is_between = |table: &&Arc<TableMeta>| {
            let epoch = Some(table.epoch);
            lowest < epoch && epoch < highest || epoch == highest || is_taken.contains(&table.id)
        };
        let wider: Vec<_> = state.overlapping(&hull).filter(is_between).collect();
        if wider.len() == taken.len() {
            return wider;
        }
        taken = wider;
    }
    taken
}

/// The tables that overlap `range`, and all those that overlap one of the result, newer or older. Newest run first, in
/// key order within a run.
#[must_use]
pub fn connected<'a>(state: &'a LevelState, range: &KeyRange) -> Vec<&'a Arc<TableMeta>> {
    if let [run] = &state.runs[..] {
        return run.overlapping(range).collect();
    }
    let mut reach = range.clone();
    // In each run, the places of the tables that are in reach. They grow outwards, so each table is looked at once.
    let mut places: Vec<Range<usize>> =
        (state.runs.iter()).map(|run| run.lower_bound(&range.start)).map(|first| first..first).collect();
    let mut is_growing = true;
    while is_growing {
        is_growing = false;
        for (run, places) in state.runs.iter().zip(&mut places) {
            let before = |places: &Range<usize>| run.get(places.start.checked_sub(1)?);
            while let Some(table) = before(places).filter(|table| table.range.end.admits(&reach.start)) {
                places.start -= 1;
                is_growing |= extend(&mut reach, &table.range);
            }
            while let Some(table) = run.get(places.end).filter(|table| reach.end.admits(&table.range.start)) {
                places.end += 1;
                is_growing |= extend(&mut reach, &table.range);
            }
        }
    }
    let in_reach = |(run, places): (&'a Run, Range<usize>)| run.iter_from(places.start).take(places.len());
    state.runs.iter().zip(places).flat_map(in_reach).collect()
}

/// Extends `reach` by `range`, which overlaps it; whether it is wider now.
fn extend(reach: &mut KeyRange, range: &KeyRange) -> bool {
    let is_wider = range.start < reach.start || range.end > reach.end;
    if is_wider {
        *reach = reach.hull(range);
    }
    is_wider
}

/// The components of the level, in key order; each by the starts of its tables.
#[must_use]
pub fn components(state: &LevelState) -> Vec<Vec<&Arc<TableMeta>>> {
    let mut components: Vec<(KeyRange, Vec<&Arc<TableMeta>>)> = Vec::new();
    for table in in_key_order(state.runs.iter().flat_map(Run::iter).collect()) {
        match components.last_mut().filter(|(range, _)| range.overlaps(&table.range)) {
            Some((range, tables)) => {
                if !planted!("component-torn") {
                    *range = range.hull(&table.range);
                }
                tables.push(table);
            }
            None => components.push((table.range.clone(), vec![table])),
        }
    }
    components.into_iter().map(|(_, tables)| tables).collect()
}

/// Each of `tables` once, by their starts.
fn in_key_order(mut tables: Vec<&Arc<TableMeta>>) -> Vec<&Arc<TableMeta>> {
    tables.sort_by(|one, other| (&one.range.start, one.id).cmp(&(&other.range.start, other.id)));
    tables.dedup_by_key(|table| table.id);
    tables
}

/// The smallest range that covers all of `tables`.
fn hull(tables: &[&Arc<TableMeta>]) -> Option<KeyRange> {
    let ranges = tables.iter().map(|table| table.range.clone());
    ranges.reduce(|hull, range| hull.hull(&range))
}

#[cfg(test)]
mod tests;
