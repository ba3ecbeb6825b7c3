//! Placement: which run of a level below level 0 a table lies in.
//!
//! **The rule.** A table lies in the lowest run that is above all tables of its level that overlap it and have a lower
//! epoch. So runs are searched in the order of epochs, wherever tables overlap, and a level of disjoint tables has one
//! run. Where a table lies depends on nothing but the ranges and epochs of the level's tables. (Pebble makes the
//! sublevels of its level 0 so: `l0_sublevels.go`.)
//!
//! **A change.** Tables that come, and those that overlap a change and have a higher epoch, are placed again, in the
//! order of their epochs. One that lands in another run than before is a change itself. So a level of one run costs a
//! search or two for each table that comes or goes.
//!
//! Runs are numbered from the oldest one, 0, here. [`LevelState`](super::LevelState) has the newest one first.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::inconsistent::ensure;
use super::{Inconsistent, Run, TableMeta};
use crate::types::{Epoch, Key, TableId, UpperBound};

/// `runs` of a level, newest first, without the tables of `drop` and with those of `add`.
///
/// # Errors
///
/// When a table to drop is not there, or two tables of the result overlap and have one epoch.
pub(super) fn place(
    runs: &[Run],
    drop: &[Arc<TableMeta>],
    add: Vec<Arc<TableMeta>>,
) -> Result<Vec<Run>, Inconsistent> {
    let mut level = Level { runs, left: BTreeMap::new(), placed: Vec::new(), waiting: BTreeMap::new() };
    for table in drop {
        let from = level.find(table);
        let from = from.ok_or_else(|| Inconsistent::new(format!("{table:?} is in no run")))?;
        level.left.insert(table.id, (from, Arc::clone(table)));
    }
    if !planted!("tables-over-a-dropped-one-not-placed-again") {
        drop.iter().for_each(|table| level.wait_for(table));
    }
    for table in add {
        level.waiting.insert((table.epoch, table.id), (table, None));
    }
    while let Some((_, (table, from))) = level.waiting.pop_first() {
        level.settle(table, from)?;
    }
    level.into_runs()
}

/// A level that changes.
struct Level<'a> {
    /// As they were, newest first.
    runs: &'a [Run],
    /// The tables that are no longer where they were in `runs`, with the number of their run.
    left: BTreeMap<TableId, (usize, Arc<TableMeta>)>,
    /// The tables that are not where they were, by run and start. They are in their final places.
    placed: Vec<BTreeMap<Key, Arc<TableMeta>>>,
    /// Tables to be placed, with the number of their run so far.
    waiting: BTreeMap<(Epoch, TableId), (Arc<TableMeta>, Option<usize>)>,
}

impl<'a> Level<'a> {
    /// The run with this number, as it was.
    fn run(&self, number: usize) -> Option<&'a Run> {
        self.runs.get(self.runs.len().checked_sub(number + 1)?)
    }

    /// The number of the run that `table` was in.
    fn find(&self, table: &TableMeta) -> Option<usize> {
        let holds = |run: &Run| run.find(&table.range.start).is_some_and(|found| found.id == table.id);
        self.runs.iter().rev().position(holds)
    }

    /// Lets the tables that overlap `changed`, which comes, goes or has another place, and have a higher epoch, wait
    /// to be placed again.
    fn wait_for(&mut self, changed: &TableMeta) {
        for (number, run) in self.runs.iter().rev().enumerate() {
            let above = run.overlapping(&changed.range).filter(|table| table.epoch > changed.epoch);
            for table in above.filter(|table| !self.left.contains_key(&table.id)) {
                self.waiting.insert((table.epoch, table.id), (Arc::clone(table), Some(number)));
            }
        }
    }

    /// Places `table`, which was in run `from`. All tables of lower epochs are in their places.
    fn settle(&mut self, table: Arc<TableMeta>, from: Option<usize>) -> Result<(), Inconsistent> {
        let count = self.runs.len().max(self.placed.len());
        let mut to = 0;
        for number in 0..count {
            if self.meets(number, &table)? {
                to = number + 1;
            } else if planted!("table-placed-in-the-first-free-run") {
                break;
            }
        }
        if from == Some(to) {
            return Ok(());
        }
        self.wait_for(&table);
        if let Some(from) = from {
            self.left.insert(table.id, (from, Arc::clone(&table)));
        }
        if self.placed.len() <= to {
            self.placed.resize_with(to + 1, BTreeMap::new);
        }
        self.placed[to].insert(table.range.start.clone(), table);
        Ok(())
    }

    /// Whether `table` overlaps a table of a lower epoch in run `number`.
    fn meets(&self, number: usize, table: &TableMeta) -> Result<bool, Inconsistent> {
        let placed = self.placed.get(number).into_iter().flat_map(|placed| {
            // From the last one that begins before the end, back to the first that does not overlap.
            let to = match &table.range.end {
                UpperBound::Excluded(end) => Bound::Excluded(&**end),
                UpperBound::Unbounded => Bound::Unbounded,
            };
            let back = placed.range::<[u8], _>((Bound::Unbounded, to)).rev().map(|(_, placed)| placed);
            back.take_while(|other| other.range.overlaps(&table.range))
        });
        let before = self.run(number).into_iter().flat_map(|run| run.overlapping(&table.range));
        let before = before.filter(|other| !self.left.contains_key(&other.id) && other.id != table.id);
        let mut meets = false;
        for other in before.chain(placed) {
            // INVARIANT(I1): tables of one epoch share no user key.
            ensure!(other.epoch != table.epoch, "I1: {other:?} and {table:?} overlap and have one epoch");
            meets |= other.epoch < table.epoch;
        }
        Ok(meets)
    }

    /// The runs of the result, newest first. A run exists only while it has tables.
    fn into_runs(mut self) -> Result<Vec<Run>, Inconsistent> {
        let count = self.runs.len().max(self.placed.len());
        let mut left: Vec<Vec<Arc<TableMeta>>> = vec![Vec::new(); count];
        std::mem::take(&mut self.left).into_values().for_each(|(from, table)| left[from].push(table));
        self.placed.resize_with(count, BTreeMap::new);
        let mut runs = Vec::with_capacity(count);
        for (number, placed) in std::mem::take(&mut self.placed).into_iter().enumerate().rev() {
            let before = self.run(number).cloned().unwrap_or_else(Run::empty);
            let add = placed.into_values().collect::<Vec<_>>();
            let run = if add.is_empty() && left[number].is_empty() {
                before
            } else {
                before.with(&left[number], add)?
            };
            runs.extend((!run.is_empty()).then_some(run));
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests;
