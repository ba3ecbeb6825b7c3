//! The cursor picker: takes victims in key order, round and round the level.

use std::sync::Arc;

use super::Source;
use super::choice::Choice;
use crate::catalog::{Run, TableMeta};
use crate::types::{Key, KeyRange, UpperBound};

/// The tables of `run` in the order in which the cursor reaches them.
pub(super) fn behind_cursor<'a>(
    run: &'a Run,
    cursor: Option<&Key>,
) -> impl Iterator<Item = &'a Arc<TableMeta>> {
    let start = cursor.map_or(0, |cursor| run.lower_bound(cursor));
    run.iter_from(start).chain(run.iter().take(start))
}

/// Where the cursor of a deeper level goes once what lies in `taken` has left it.
pub(super) fn cursor_behind(taken: &KeyRange) -> Key {
    match &taken.end {
        UpperBound::Excluded(end) => end.clone(),
        // Nothing comes behind: with these gone, the cursor goes around the end.
        UpperBound::Unbounded => taken.start.clone(),
    }
}

/// What to take next from a level below level 0, and its new cursor.
pub(super) fn choose(source: Source<'_>) -> Option<(Choice<'_>, Key)> {
    // The oldest run: what lies over a victim goes with it.
    let run = source.state.runs.last()?;
    let choice = behind_cursor(run, source.state.cursor.as_ref())
        .filter(|victim| !source.view.busy.conflicts(source.level, &victim.range))
        .find_map(|victim| {
            let group = source.group(run, victim);
            source.choose(&group).or_else(|| source.choose(&victim.range))
        })?;
    let cursor = cursor_behind(choice.victim_range());
    Some((choice, cursor))
}

impl<'a> Source<'a> {
    /// Hull of `victim` and those behind it in its run that make a group with it.
    pub(super) fn group(self, run: &Run, victim: &TableMeta) -> KeyRange {
        let bytes_max = self.group_bytes();
        let mut bytes = victim.bytes();
        let mut range = victim.range.clone();
        for table in run.iter_from(run.lower_bound(&victim.range.start)).skip(1) {
            bytes += table.bytes();
            let wider = range.hull(&table.range);
            if bytes > bytes_max || self.view.busy.conflicts(self.level, &wider) {
                break;
            }
            range = wider;
        }
        range
    }

    /// The tables that overlap it, and what of older runs they overlap.
    pub(super) fn closed(self, range: &KeyRange) -> Vec<&'a Arc<TableMeta>> {
        let mut reach = range.clone();
        let mut victims = Vec::new();
        // Newest first: what a run adds to the range concerns older ones alone.
        for run in &self.state.runs {
            let before = victims.len();
            victims.extend(run.overlapping(&reach));
            reach = victims[before..].iter().fold(reach, |reach, table| reach.hull(&table.range));
        }
        victims
    }

    /// Steps 2 to 4; nothing when a running job is in the way.
    pub(super) fn choose(self, range: &KeyRange) -> Option<Choice<'a>> {
        let choice = Choice::of(self, self.closed(range)).filter(|choice| !choice.is_busy())?;
        if !choice.has_target_inputs() {
            return Some(choice);
        }
        let wider = Choice::of(self, self.closed(choice.range()));
        Some(wider.filter(|wider| wider.gains_over(&choice) && !wider.is_busy()).unwrap_or(choice))
    }
}
