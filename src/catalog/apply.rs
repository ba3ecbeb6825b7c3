//! Applies an edit to a version: makes a new version in four steps.
//!
//! 1. Look up every table to drop by its id. It must be in the level that the edit names.
//! 2. Make a [`TableMeta`] of every table to add. A table that the edit also drops is a move: it keeps its object,
//!    unless its extent changes (a rewrite) or it gets a higher epoch in another level. Nothing else of it may change.
//! 3. Sort drops and adds by level, in level 0 also by epoch: that tells the run. In a deeper level, `placement` tells
//!    it.
//! 4. Rebuild each run that changes along the paths to the changes. Remove runs that are left empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inconsistent::ensure;
use super::sequence::Change;
use super::version::Place;
use super::{Inconsistent, Lease, LevelState, Run, TableMeta, Version, placement};
use crate::format::edit::{TableRecord, TreeEdit};
use crate::types::{Epoch, LEVELS, PAGE_BYTES, TableId};

/// Drops and adds of one run of level 0, which has one per epoch, or of a deeper level as a whole.
#[derive(Default)]
struct RunChange {
    drop: Vec<Arc<TableMeta>>,
    add: Vec<Arc<TableMeta>>,
}

/// Changes by level, in level 0 by epoch; those of a deeper level are listed under epoch 0.
type RunChanges = BTreeMap<(u8, Epoch), RunChange>;

impl Version {
    /// Applies `edit` and returns the new version. `adopt` gives the lease for each table whose extent is new.
    ///
    /// When the edit is refused, the leases that were given by then end.
    ///
    /// # Errors
    ///
    /// When the edit drops what is not there, adds what is there already, changes a table while moving it, names a
    /// level that does not exist, or makes tables of one epoch overlap.
    pub fn apply(
        &self,
        edit: &TreeEdit,
        adopt: &mut dyn FnMut(&TableRecord) -> Lease,
    ) -> Result<Self, Inconsistent> {
        let mut changes = RunChanges::new();
        let mut places = Vec::with_capacity(edit.drop.len() + edit.add.len());
        let dropped = self.dropped(edit)?;
        for (level, table) in dropped.values() {
            changes.entry(run_of(*level, table.epoch)).or_default().drop.push(Arc::clone(table));
            places.push((table.id, Change::Remove));
        }
        let mut added = BTreeSet::new();
        for (level, record) in &edit.add {
            ensure_sound(*level, record)?;
            let moved = dropped.get(&record.id);
            ensure!(
                moved.is_some() || self.table(record.id).is_none(),
                "table {} is there already",
                record.id
            );
            ensure!(added.insert(record.id), "table {} is added twice", record.id);
            let table = match moved {
                Some((from, table)) => moved_table((*from, table), (*level, record), adopt)?,
                None => Arc::new(TableMeta::new(record, adopt(record))),
            };
            changes.entry(run_of(*level, table.epoch)).or_default().add.push(Arc::clone(&table));
            places.push((table.id, Change::Insert(Place { level: *level, table })));
        }
        let mut version = Self { values: self.values.apply(edit)?, ..self.clone() };
        for ((level, epoch), change) in changes {
            let state = &mut version.levels[usize::from(level)];
            let changed = if level == 0 {
                state.change_run(epoch, change)
            } else {
                placement::place(&state.runs, &change.drop, change.add).map(|runs| state.runs = runs)
            };
            changed.map_err(|error| Inconsistent::new(format!("level {level}: {error}")))?;
        }
        // Stable: removals stay before arrivals of the same table.
        places.sort_by_key(|(id, _)| *id);
        version.places = (self.places.with(&places))
            .map_err(|id| Inconsistent::new(format!("table {id} is there twice or not at all")))?;
        for (level, key) in &edit.cursors {
            let state = version.levels.get_mut(usize::from(*level));
            let state = state.ok_or_else(|| no_level(*level))?;
            state.cursor = Some(key.clone());
        }
        Ok(version)
    }

    /// The tables that `edit` drops, with their levels.
    fn dropped(&self, edit: &TreeEdit) -> Result<BTreeMap<TableId, (u8, Arc<TableMeta>)>, Inconsistent> {
        let mut dropped = BTreeMap::new();
        for (level, id) in &edit.drop {
            let found = self.table(*id).filter(|(found, _)| found == level);
            let Some((_, table)) = found else {
                return Err(Inconsistent::new(format!("level {level} has no table {id} to drop")));
            };
            let twice = dropped.insert(*id, (*level, Arc::clone(table)));
            ensure!(twice.is_none(), "table {id} is dropped twice");
        }
        Ok(dropped)
    }
}

impl LevelState {
    /// Changes the run of `epoch` of level 0. A run exists only while it has tables.
    fn change_run(&mut self, epoch: Epoch, change: RunChange) -> Result<(), Inconsistent> {
        // Newest first: epochs descend.
        let slot = self.runs.partition_point(|run| epoch_of(run) > Some(epoch));
        let there = self.runs.get(slot).is_some_and(|run| epoch_of(run) == Some(epoch));
        let slot = if planted!("level-0-run-in-the-wrong-place") && !there { self.runs.len() } else { slot };
        if !there {
            self.runs.insert(slot, Run::empty());
        }
        let run = self.runs[slot].with(&change.drop, change.add)?;
        if run.is_empty() {
            self.runs.remove(slot);
        } else {
            self.runs[slot] = run;
        }
        Ok(())
    }
}

/// Under what the change of a table of `level` with `epoch` is listed.
fn run_of(level: u8, epoch: Epoch) -> (u8, Epoch) {
    (level, if level == 0 { epoch } else { Epoch(0) })
}

/// The epoch of a run of level 0.
fn epoch_of(run: &Run) -> Option<Epoch> {
    run.first().map(|table| table.epoch)
}

/// The metadata of a moved `table`: the same object, unless its bytes lie elsewhere now, or it gets a higher epoch in
/// its new level.
fn moved_table(
    (from, table): (u8, &Arc<TableMeta>),
    (to, record): (u8, &TableRecord),
    adopt: &mut dyn FnMut(&TableRecord) -> Lease,
) -> Result<Arc<TableMeta>, Inconsistent> {
    let kept = TableRecord { extent: record.extent, epoch: record.epoch, ..table.record() };
    ensure!(kept == *record, "I9: table {} is not what it was before it moved", record.id);
    let ages = record.epoch == table.epoch || record.epoch > table.epoch && to != from;
    ensure!(ages, "I3: table {} of level {from} gets epoch {} in level {to}", record.id, record.epoch);
    if record.extent == table.extent {
        let same = record.epoch == table.epoch;
        return Ok(if same { Arc::clone(table) } else { Arc::new(table.with_epoch(record.epoch)) });
    }
    ensure!(record.extent.length == table.extent.length, "I9: table {} changed its length", record.id);
    Ok(Arc::new(table.relocated(record, adopt(record))))
}

/// Most bytes and entries that a table may claim to have: sums over many tables stay within a word.
const TABLE_MAX: u64 = 1 << 40;

/// Checks what every record must fulfil by itself.
fn ensure_sound(level: u8, record: &TableRecord) -> Result<(), Inconsistent> {
    let TableRecord { id, extent, range, .. } = record;
    ensure!(usize::from(level) < LEVELS, "{}", no_level(level));
    ensure!(!range.is_inverted(), "table {id} has an inverted key range");
    ensure!(record.min_seq <= record.max_seq, "table {id} has an inverted range of sequence numbers");
    let timestamped = record.timestamps.is_none_or(|timestamps| timestamps.oldest <= timestamps.newest);
    ensure!(timestamped, "table {id} has inverted dates");
    let held = record.holds.held();
    let has = held.records <= record.entries.saturating_add(record.range_tombstones);
    ensure!(has && held.bytes <= extent.length, "table {id} holds back more than it has");
    ensure!(record.tombstones <= record.entries, "table {id} has more tombstones than entries");
    ensure!(record.values.count <= record.entries, "table {id} has more pointers than entries");
    let contents = [record.entries, record.range_tombstones, extent.length];
    ensure!(record.entries.max(record.range_tombstones) > 0 && extent.length > 0, "table {id} is empty");
    ensure!(contents.iter().all(|part| *part <= TABLE_MAX), "table {id} is larger than any table can be");
    ensure!(extent.offset.is_multiple_of(PAGE_BYTES), "table {id} does not start at a page");
    ensure!(extent.offset.checked_add(extent.length).is_some(), "table {id} ends beyond any file");
    Ok(())
}

fn no_level(level: u8) -> Inconsistent {
    Inconsistent::new(format!("there is no level {level}"))
}

#[cfg(test)]
mod tests;
