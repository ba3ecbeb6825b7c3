//! Victims in the order in which a level's cursor goes round.

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

/// What to take next, and the level's new cursor.
pub(super) fn choose(source: Source<'_>) -> Option<(Choice<'_>, Key)> {
    let cursor = source.state.cursor.as_ref();
    let (choice, range) = (source.state.runs.iter().rev())
        .flat_map(|run| behind_cursor(run, cursor).map(move |victim| (run, victim)))
        .filter(|(_, victim)| !source.view.busy.conflicts(source.level, &victim.range))
        .find_map(|(run, victim)| {
            let group = source.group(run, victim);
            let section = source.section(run, victim, &group);
            let choose = |range: &KeyRange| Some((source.choose(range)?, range.clone()));
            choose(&section).or_else(|| choose(&group)).or_else(|| choose(&victim.range))
        })?;
    let cursor = match (source.level, range.end) {
        // Newer runs may have tables behind the range that victims reach over.
        (0, UpperBound::Excluded(end)) => end,
        (0, UpperBound::Unbounded) => Key::default(),
        (1.., _) => cursor_behind(choice.victim_range()),
    };
    Some((choice, cursor))
}

impl<'a> Source<'a> {
    /// Hull of `victim` and those behind it in its run that make a group with it.
    fn group(self, run: &Run, victim: &TableMeta) -> KeyRange {
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

    /// In level 0: `group` with the gaps of its run before and behind it, from the cursor on, or else from the start. So the
    /// sections of one round leave no table of any run between them. Elsewhere, where there is one run: the group.
    fn section(self, run: &Run, victim: &TableMeta, group: &KeyRange) -> KeyRange {
        if self.level > 0 {
            return group.clone();
        }
        let start = match &self.state.cursor {
            Some(cursor) if victim.range.end.admits(cursor) => cursor.min(&group.start).clone(),
            _ => Key::default(),
        };
        let last = run.len().checked_sub(1).and_then(|at| run.get(at));
        let is_last = last.is_none_or(|last| last.range.end <= group.end);
        KeyRange { start, end: if is_last { UpperBound::Unbounded } else { group.end.clone() } }
    }

    /// Step 2: the tables that overlap `range`, and what of older runs they overlap.
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
    fn choose(self, range: &KeyRange) -> Option<Choice<'a>> {
        let choice = Choice::of(self, self.closed(range)).filter(|choice| !choice.is_busy())?;
        if !choice.has_partners() {
            return Some(choice);
        }
        let wider = Choice::of(self, self.closed(choice.range()));
        Some(wider.filter(|wider| wider.gains_over(&choice) && !wider.is_busy()).unwrap_or(choice))
    }
}
