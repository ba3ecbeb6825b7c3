//! The checker: verifies the invariants that metadata alone can show, with the ids of `docs/invariants.md`.
//!
//! [`check_version`] checks a whole tree (I1, I3). [`check_edit`] checks the step from one tree to the next (I2, I3),
//! since a tree does not show where its tables came from. [`check_merged`] adds what holds of steps that put nothing on
//! top of anything. For k tables that come and go it costs about k log n, and a look at each table that one of them
//! overlaps in its old level or on its way down.
//!
//! # The rule for edits
//!
//! A table that the edit drops is *moved* if the edit adds it again, otherwise *compacted*. The *destination* of a
//! moved table is the level to which it is added. The destination of all compacted tables is the one level that
//! receives new tables (the deepest compacted level if none does). A table whose destination is its old level only
//! changes its place on disk: it *stays*. The *new epoch* of a moved table is that with which it is added; that of a
//! compacted one is the epoch of the outputs, which all have the same.
//!
//! 1. Nothing rises: a destination is not above the level that the table comes from.
//! 2. New tables made by a compaction lie within the hull of the compacted tables.
//! 3. Downward closed: let X leave its level for a deeper one. Every table that overlaps X and is older (in an older
//!    run of X's level, or in a deeper level down to X's destination) leaves too, to X's destination or deeper, or
//!    stays in X's destination. Of those that end there, the epoch is lower than the new epoch of X, unless both are
//!    compacted.
//! 4. New tables without any compacted one are a flush or an ingest. In level 0 they carry a new highest epoch. In a
//!    deeper level they overlap no table of that level or of one above.
//! 5. Below level 0, a table that stays in the target of a compaction is older or newer than the outputs, by its epoch,
//!    as it is older or newer than each input there that it overlaps, and it has another epoch than the outputs. (A key
//!    that it has in common with an output it has in common with an input.) A compaction within level 0 is convex: its
//!    outputs carry the highest epoch of its inputs, and no table that stays overlaps the hull of the inputs with an
//!    epoch between theirs, or with the highest.
//! 6. By sequence numbers: new tables without any compacted one are newer than all tables that they overlap, in every
//!    level. In level 0 a new table is wholly newer than a table that stays, overlaps it and has a lower epoch, and
//!    wholly older than one with a higher epoch. (In deeper levels the numbers of a compaction's output prove
//!    nothing: it may overlap another table without sharing a key.) An exception: the output may contradict a table
//!    that a compacted table contradicted before, since compactions are how a store with such tables is mended.
//! 7. Of a step that puts nothing on top ([`check_merged`]): what comes to a level below level 0 from above, or from
//!    outside, overlaps nothing that stays there or comes with it; nor do the tables from above that it is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inconsistent::ensure;
use super::{Inconsistent, Run, TableMeta, Version};
use crate::format::edit::{TableRecord, TreeEdit};
use crate::types::{Epoch, Extent, KeyRange, PAGE_BYTES, Seq, TableId};

/// Checks I1 and I3 of the whole version: runs, the order of epochs, and where tables lie.
///
/// # Errors
///
/// The first violation found.
pub fn check_version(version: &Version) -> Result<(), Inconsistent> {
    for (level, state) in version.levels() {
        for run in &state.runs {
            check_run(level, run)?;
        }
        if level > 0 {
            check_placement(level, &state.runs)?;
        }
    }
    check_level0(&version.level(0).runs)?;
    let mut count = 0;
    for (level, table) in version.tables() {
        count += 1;
        let found =
            version.table(table.id).is_some_and(|(at, found)| at == level && Arc::ptr_eq(found, table));
        ensure!(found, "I1: level {level} has {table:?}, of which the index knows nothing");
    }
    ensure!(count == version.len(), "I1: {} ids stand for {count} tables", version.len());
    let values = version.values().iter().map(|table| (table.record.extent, table.record.id));
    check_extents(version.tables().map(|(_, table)| (table.extent, table.id)).chain(values))
}

/// INVARIANT(I1): tables of a run are disjoint in user keys, in order, and sound by themselves.
fn check_run(level: u8, run: &Run) -> Result<(), Inconsistent> {
    ensure!(!run.is_empty(), "I1: level {level} has a run without tables");
    let mut previous: Option<&TableMeta> = None;
    for table in run.iter() {
        let inverted = table.range.is_inverted();
        ensure!(!inverted, "I1: {table:?} of level {level} has an inverted key range");
        ensure!(table.min_seq <= table.max_seq, "I1: {table:?} has an inverted range of sequence numbers");
        if let Some(previous) = previous {
            let apart = !previous.range.end.admits(&table.range.start);
            ensure!(apart, "I1: {previous:?} and {table:?} of level {level} overlap or are out of order");
        }
        previous = Some(table);
    }
    Ok(())
}

/// INVARIANT(I3): a run of level 0 has one epoch, epochs descend, and where two runs overlap the one with the higher
/// epoch holds the newer entries only.
fn check_level0(runs: &[Run]) -> Result<(), Inconsistent> {
    let mut newer: Option<Epoch> = None;
    for (position, run) in runs.iter().enumerate() {
        let epoch = run.first().map(|table| table.epoch);
        ensure!(run.iter().all(|table| Some(table.epoch) == epoch), "I3: run {run:?} mixes epochs");
        ensure!(newer.is_none() || epoch < newer, "I3: run {run:?} stands behind one that is not newer");
        newer = epoch;
        for (table, older) in
            run.iter().flat_map(|table| runs[position + 1..].iter().map(move |r| (table, r)))
        {
            let bad = older.overlapping(&table.range).find(|older| older.max_seq >= table.min_seq);
            ensure!(bad.is_none(), "I3: {table:?} stands before {bad:?}, which has newer entries");
        }
    }
    Ok(())
}

/// INVARIANT(I3): in a level below level 0, of two tables that overlap the one with the higher epoch lies in the newer
/// run, and no table lies higher than it must.
fn check_placement(level: u8, runs: &[Run]) -> Result<(), Inconsistent> {
    for (position, run) in runs.iter().enumerate() {
        let Some((next, further)) = runs[position + 1..].split_first() else { continue };
        for table in run.iter() {
            let mut below = next.overlapping(&table.range).peekable();
            ensure!(
                below.peek().is_some(),
                "I3: {table:?} of level {level} lies in a higher run than it must"
            );
            let older = below.chain(further.iter().flat_map(|run| run.overlapping(&table.range)));
            let newer = older.into_iter().find(|older| older.epoch >= table.epoch);
            ensure!(newer.is_none(), "I3: {table:?} of level {level} lies in a run above {newer:?}");
        }
    }
    Ok(())
}

/// INVARIANT(I1): extents start at pages, and those of one pack are disjoint.
pub(super) fn check_extents(extents: impl Iterator<Item = (Extent, TableId)>) -> Result<(), Inconsistent> {
    let mut extents: Vec<_> = extents.collect();
    extents.sort_by_key(|(extent, _)| (extent.device, extent.pack, extent.offset));
    for (extent, id) in &extents {
        ensure!(extent.offset.is_multiple_of(PAGE_BYTES), "I1: table {id} does not start at a page");
    }
    for pair in extents.windows(2) {
        let [(left, a), (right, b)] = pair else { continue };
        let apart = left.pack != right.pack || left.device != right.device || left.end() <= right.offset;
        ensure!(apart, "I1: tables {a} and {b} share bytes of pack {}", left.pack);
    }
    Ok(())
}

/// Checks I2 and I3 of the step that `edit` makes from `version`, by the rule of the module's documentation.
///
/// # Errors
///
/// The first violation found.
pub fn check_edit(version: &Version, edit: &TreeEdit) -> Result<(), Inconsistent> {
    check_pointers(version, edit)?;
    let step = Step::new(version, edit)?;
    step.check_new_tables()?;
    for leaving in step.leaving.values() {
        step.check_closed(leaving)?;
    }
    step.check_convex()?;
    step.check_order_in_target()?;
    step.check_numbers()
}

/// INVARIANT(I22): as many values are alive as there are pointers to them. What comes and goes is counted.
fn check_pointers(version: &Version, edit: &TreeEdit) -> Result<(), Inconsistent> {
    let dropped = edit.drop.iter().filter_map(|(_, id)| version.table(*id));
    let gone: u64 = dropped.map(|(_, table)| table.values.count).sum();
    let come: u64 = edit.add.iter().map(|(_, record)| record.values.count).sum();
    let new: u64 = edit.values.iter().map(|record| record.count).sum();
    let died: u64 = edit.deaths.iter().map(|deaths| deaths.count).sum();
    ensure!(
        come + died == gone + new,
        "I22: {come} pointers come and {gone} go, but {new} values come and {died} die"
    );
    Ok(())
}

/// Checks rule 7 of the step that `edit` makes from `version`: nothing is put on top of anything. Where every step
/// keeps to that, no level below level 0 gets a second run.
///
/// # Errors
///
/// The first violation found.
pub fn check_merged(version: &Version, edit: &TreeEdit) -> Result<(), Inconsistent> {
    let step = Step::new(version, edit)?;
    let moved = step.leaving.values().filter(|leaving| leaving.fate == Fate::Moved);
    let moved = moved.map(|leaving| (leaving.destination, &leaving.table.range, leaving.table.id));
    let new = step.new.iter().filter(|_| !step.is_within_a_level());
    let new = new.map(|(level, record)| (*level, &record.range, record.id));
    let mut arriving: Vec<_> = moved.chain(new).filter(|(level, ..)| *level > 0).collect();
    for (level, range, id) in &arriving {
        let stays =
            version.level(*level).overlapping(range).find(|table| !step.leaving.contains_key(&table.id));
        ensure!(stays.is_none(), "I1: table {id} would come to lie on {stays:?} of level {level}");
    }
    for Leaving { level, table, destination, .. } in
        step.compacted().filter(|from| from.level < from.destination)
    {
        let mut met = version.level(*destination).overlapping(&table.range);
        let stays = met.find(|older| !step.leaving.contains_key(&older.id));
        ensure!(
            stays.is_none(),
            "I2: {table:?} would be compacted from level {level} to {destination} without older {stays:?}"
        );
    }
    arriving.sort_by(|one, other| (one.0, &one.1.start).cmp(&(other.0, &other.1.start)));
    for pair in arriving.windows(2) {
        let [(level, range, id), (other_level, other_range, other)] = pair else { continue };
        let apart = level != other_level || !range.overlaps(other_range);
        ensure!(apart, "I1: tables {id} and {other} would overlap in level {level}");
    }
    Ok(())
}

/// An edit, with the tree that it is applied to.
struct Step<'a> {
    version: &'a Version,
    /// Tables that are compacted, or moved to another level.
    leaving: BTreeMap<TableId, Leaving<'a>>,
    /// Tables that did not exist before, with their levels.
    new: Vec<(u8, &'a TableRecord)>,
    /// Hull of the compacted tables.
    compacted_hull: Option<KeyRange>,
}

struct Leaving<'a> {
    level: u8,
    table: &'a TableMeta,
    destination: u8,
    fate: Fate,
    /// The new epoch; `None` of a compacted table of which nothing is left.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Compacted,
    Moved,
}

impl<'a> Step<'a> {
    fn new(version: &'a Version, edit: &'a TreeEdit) -> Result<Self, Inconsistent> {
        let added: BTreeMap<_, _> =
            edit.add.iter().map(|(level, record)| (record.id, (*level, record.epoch))).collect();
        let dropped: BTreeSet<TableId> = edit.drop.iter().map(|(_, id)| *id).collect();
        let new: Vec<_> = (edit.add.iter().filter(|(_, record)| !dropped.contains(&record.id)))
            .map(|(level, record)| (*level, record))
            .collect();
        let compacted_level =
            edit.drop.iter().filter(|(_, id)| !added.contains_key(id)).map(|(l, _)| *l).max();
        let target = new.iter().map(|(level, _)| *level).max().or(compacted_level);
        let written = new.first().map(|(_, record)| record.epoch);
        let mut step = Self { version, leaving: BTreeMap::new(), new, compacted_hull: None };
        for (level, id) in &edit.drop {
            let Some((_, table)) = version.table(*id).filter(|(at, _)| at == level) else {
                return Err(Inconsistent::new(format!("level {level} has no table {id} to drop")));
            };
            let (destination, fate, epoch) = match (added.get(id), target) {
                (Some((to, epoch)), _) => (*to, Fate::Moved, Some(*epoch)),
                (None, to) => (to.unwrap_or(*level), Fate::Compacted, written),
            };
            ensure!(destination >= *level, "I2: {table:?} would rise from level {level} to {destination}");
            if fate == Fate::Compacted {
                let hull = step.compacted_hull.as_ref().map(|hull| hull.hull(&table.range));
                step.compacted_hull = Some(hull.unwrap_or_else(|| table.range.clone()));
            } else if destination == *level {
                continue;
            }
            step.leaving.insert(*id, Leaving { level: *level, table, destination, fate, epoch });
        }
        Ok(step)
    }

    fn compacted(&self) -> impl Iterator<Item = &Leaving<'a>> {
        self.leaving.values().filter(|leaving| leaving.fate == Fate::Compacted)
    }

    /// Whether it is a compaction of one level into that level.
    fn is_within_a_level(&self) -> bool {
        self.compacted_hull.is_some() && self.compacted().all(|leaving| leaving.level == leaving.destination)
    }

    /// Rules 2 and 4.
    fn check_new_tables(&self) -> Result<(), Inconsistent> {
        let newest = self.version.level(0).runs.first().and_then(Run::first).map(|table| table.epoch);
        for (level, record) in &self.new {
            let id = record.id;
            if let Some(hull) = &self.compacted_hull {
                ensure!(
                    hull.covers(&record.range),
                    "I2: new table {id} reaches beyond the tables it was compacted from"
                );
                let first = self.new.first().map(|(level, record)| (*level, record.epoch));
                let is_one = first.is_some_and(|(to, _)| to == *level);
                ensure!(is_one, "I2: a compaction puts its outputs into more than one level");
                let is_one = first.is_some_and(|(_, epoch)| epoch == record.epoch);
                ensure!(is_one, "I3: the outputs of a compaction have more than one epoch");
            } else if *level == 0 {
                ensure!(newest < Some(record.epoch), "I3: flushed table {id} is not the newest of level 0");
            } else {
                let above = (0..=*level).flat_map(|level| self.version.level(level).runs.iter());
                let shade = above.flat_map(|run| run.overlapping(&record.range)).next();
                ensure!(
                    shade.is_none(),
                    "I2: flushed table {id} would lie in or below {shade:?}, which is older"
                );
            }
        }
        Ok(())
    }

    /// Rule 3.
    fn check_closed(&self, leaving: &Leaving<'_>) -> Result<(), Inconsistent> {
        let Leaving { level, table, destination, fate, epoch } = *leaving;
        if destination == level {
            return Ok(());
        }
        let state = self.version.level(level);
        let behind = state.run_of(table).map_or(&[][..], |at| &state.runs[at + 1..]);
        let behind = behind.iter().map(|run| (level, run));
        let deeper = (level + 1..=destination)
            .flat_map(|level| self.version.level(level).runs.iter().map(move |run| (level, run)));
        for (at, run) in behind.chain(deeper) {
            for older in run.overlapping(&table.range) {
                let (ends_in, new_epoch, together) = match self.leaving.get(&older.id) {
                    // It is gone with all that it held.
                    Some(older) if older.epoch.is_none() => continue,
                    Some(older) => {
                        let compacted = fate == Fate::Compacted && older.fate == Fate::Compacted;
                        (older.destination, older.epoch, compacted)
                    }
                    None => (at, Some(older.epoch), false),
                };
                let is_below = ends_in > destination;
                let is_older = epoch.is_none() || new_epoch < epoch;
                ensure!(
                    is_below || ends_in == destination && (together || is_older),
                    "I2: {table:?} would go from level {level} to {destination}, below older {older:?}"
                );
            }
        }
        Ok(())
    }

    /// Rule 5, of a compaction within level 0.
    fn check_convex(&self) -> Result<(), Inconsistent> {
        let epochs = || self.compacted().map(|leaving| leaving.table.epoch);
        let level = self.new.first().map(|(level, _)| *level);
        let (Some(level), Some(lowest), Some(highest), Some(hull)) =
            (level, epochs().min(), epochs().max(), &self.compacted_hull)
        else {
            return Ok(());
        };
        if level > 0 || !self.is_within_a_level() {
            return Ok(());
        }
        for (_, record) in &self.new {
            ensure!(record.epoch == highest, "I3: table {} does not carry epoch {highest}", record.id);
        }
        for table in self.version.level(level).overlapping(hull) {
            let stays = !self.leaving.contains_key(&table.id);
            let between = lowest < table.epoch && table.epoch < highest || table.epoch == highest;
            ensure!(!(stays && between), "I3: {table:?} stays between epochs {lowest} and {highest}");
        }
        Ok(())
    }

    /// Rule 5, below level 0.
    fn check_order_in_target(&self) -> Result<(), Inconsistent> {
        let in_target = |input: &&Leaving<'_>| input.level > 0 && input.level == input.destination;
        for input in self.compacted().filter(in_target) {
            let Some(epoch) = input.epoch else { continue };
            for table in self.version.level(input.level).overlapping(&input.table.range) {
                let stays = !self.leaving.contains_key(&table.id);
                let same = (table.epoch < input.table.epoch) == (table.epoch < epoch);
                ensure!(
                    !stays || same && table.epoch != epoch,
                    "I3: {table:?} stays between {:?}, an input, and epoch {epoch} of the outputs",
                    input.table
                );
            }
        }
        Ok(())
    }

    /// Rule 6.
    fn check_numbers(&self) -> Result<(), Inconsistent> {
        let is_compaction = self.compacted_hull.is_some();
        for (level, record) in self.new.iter().filter(|(level, _)| !is_compaction || *level == 0) {
            for (at, run) in self.version.runs().take_while(|(at, _)| !is_compaction || *at == 0) {
                let is_newer = at == 0 && run.first().is_some_and(|table| table.epoch > record.epoch);
                if !is_newer && run.max_seq() < record.min_seq {
                    continue;
                }
                let contradicts = |table: &Arc<TableMeta>| {
                    !self.leaving.contains_key(&table.id)
                        && is_contradicted(table, is_newer, (record.min_seq, record.max_seq))
                        && !self.was_contradicted(table)
                };
                let Some(table) = run.overlapping(&record.range).find(|table| contradicts(table)) else {
                    continue;
                };
                let rule = if *level == 0 && at == 0 { "I3" } else { "I2" };
                let (id, order) = (record.id, if is_newer { "behind" } else { "before" });
                let sentence = format!(
                    "{rule}: new table t{id} (#{}..#{}) would stand {order} {table:?}",
                    record.min_seq, record.max_seq
                );
                return Err(Inconsistent::new(sentence));
            }
        }
        Ok(())
    }

    /// Whether `stays`, a table of level 0, contradicts a table that is compacted there.
    fn was_contradicted(&self, stays: &TableMeta) -> bool {
        let compacted =
            self.leaving.values().filter(|leaving| leaving.fate == Fate::Compacted && leaving.level == 0);
        compacted.map(|leaving| leaving.table).any(|table| {
            table.range.overlaps(&stays.range)
                && is_contradicted(stays, stays.epoch > table.epoch, (table.min_seq, table.max_seq))
        })
    }
}

/// Whether `table`, which must be newer (`is_newer`) or older than entries with the numbers `from ..= to`, has an
/// entry that is not.
fn is_contradicted(table: &TableMeta, is_newer: bool, (from, to): (Seq, Seq)) -> bool {
    if is_newer { table.min_seq <= to } else { table.max_seq >= from }
}

#[cfg(test)]
mod tests;
