//! Windows of neighbours: HyperLevelDB's choice (`db/version_set.cc`: `PickCompaction`).
//!
//! * Level 0: its oldest runs, whole, with all of level 1 that they overlap.
//! * Below: tables that overlap nothing of the next level have a near-zero cost, so all of them move first. Otherwise the window
//!   of neighbours is compacted that has most bytes for each byte that it overlaps, the smaller one of equal windows.
//!
//! A window overlaps something, or it would have moved. With groups (HyperBoLT) a window takes as many neighbours as the group
//! allows, and those compete that have at least half of the bytes of the largest; without, all windows compete.
//!
//! A level of several runs, from another layout, has no neighbours; until it has one run, the cursor compacts it.
//!
//! It differs from HyperLevelDB in that several jobs may run in one level: what a running job is in the way of ends a window.
//! It keeps no cursor. So nothing bounds for how long a table over a dense part of the next level stays where it is.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::choice::Choice;
use super::{PickerConfig, Source, cursor};
use crate::catalog::{Run, TableMeta};
use crate::types::{KeyRange, LEVELS};

/// Limits of the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowConfig {
    /// What a window may have of its level.
    pub victims: PickerConfig,
    /// A window has fewer bytes than this, together with what it overlaps in the next level.
    pub bytes_max: u64,
    /// Runs of level 0 that a compaction takes, at most; at least 1.
    pub oldest_runs: u64,
}

/// The levels that are due by `scores`, in their order: level 0 before the others unless level 1 is over its limit; then
/// each that is at least as full as the next one; then level 0.
pub(super) fn turns(scores: &[f64; LEVELS]) -> Vec<u8> {
    let is_due = |level: usize| scores[level] >= 1.0;
    let level0 = is_due(0).then_some(0);
    let is_first = scores[1] <= 1.0;
    let next = |level: usize| scores.get(level + 1).copied().unwrap_or(0.0);
    let deeper = (1..LEVELS).filter(|&level| is_due(level) && scores[level] >= next(level));
    let deeper = deeper.map(|level| level as u8);
    level0.filter(|_| is_first).into_iter().chain(deeper).chain(level0.filter(|_| !is_first)).collect()
}

/// What to take next.
pub(super) fn choose<'a>(source: Source<'a>, config: &WindowConfig) -> Option<Choice<'a>> {
    if source.level == 0 {
        let runs = &source.state.runs;
        let newer = runs.len().saturating_sub(usize::try_from(config.oldest_runs).unwrap_or(usize::MAX));
        let victims = runs[newer..].iter().flat_map(Run::iter).collect();
        return Choice::of(source, victims).filter(|choice| !choice.is_busy());
    }
    if source.state.depth() > 1 || source.target.depth() > 1 {
        return cursor::choose(source).map(|(choice, _)| choice);
    }
    let victims: Vec<_> = source.state.tables().map(|table| Victim::of(source, table)).collect();
    let free: Vec<_> = victims.iter().filter(|victim| victim.is_free && victim.met.is_empty()).collect();
    if !free.is_empty() {
        // One by one: between them lies what overlaps something.
        let source = Source { one_by_one: true, ..source };
        return Choice::of(source, free.into_iter().map(|victim| victim.table).collect());
    }
    let fewest = || {
        let free = (0..victims.len()).filter(|at| victims[*at].is_free);
        free.min_by_key(|at| victims[*at].met.len()).map(|at| at..at + 1)
    };
    let window = best(&windows(source, config, &victims)).or_else(fewest)?;
    let chosen = victims[window].iter().map(|victim| victim.table).collect();
    Choice::of(source, chosen).filter(|choice| !choice.is_busy())
}

/// A table of the source.
struct Victim<'a> {
    table: &'a Arc<TableMeta>,
    /// Places of the tables of the target that it overlaps.
    met: Range<usize>,
    /// Hull of both.
    reach: KeyRange,
    /// Whether no running job is in the way of it.
    is_free: bool,
}

impl<'a> Victim<'a> {
    fn of(source: Source<'a>, table: &'a Arc<TableMeta>) -> Self {
        let (mut met, mut reach) = (0..0, table.range.clone());
        if let Some(target) = source.target.runs.first() {
            let start = target.lower_bound(&table.range.start);
            met = start..start;
            for other in target.overlapping(&table.range) {
                met.end += 1;
                reach = reach.hull(&other.range);
            }
        }
        let is_free = !source.is_busy(&reach);
        Self { table, met, reach, is_free }
    }
}

/// Neighbours of the source, with what they overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Window {
    victims: Range<usize>,
    bytes: u64,
    /// Bytes of the tables of the target that it overlaps.
    met_bytes: u64,
}

impl Window {
    /// Less: it holds less for each byte that it overlaps, or as much and is larger.
    fn cmp_ratio(&self, other: &Self) -> Ordering {
        let cost = |one: &Self, other: &Self| u128::from(one.bytes) * u128::from(other.met_bytes);
        let size = |window: &Self| window.bytes + window.met_bytes;
        cost(self, other).cmp(&cost(other, self)).then_with(|| size(other).cmp(&size(self)))
    }
}

/// The windows that compete.
fn windows(source: Source<'_>, config: &WindowConfig, victims: &[Victim<'_>]) -> Vec<Window> {
    let mut until = vec![0];
    for table in source.target.tables() {
        until.push(until[until.len() - 1] + table.bytes());
    }
    let group_bytes = source.group_bytes();
    let mut windows = Vec::new();
    for from in 0..victims.len() {
        let (mut bytes, mut met_bytes, mut met_end) = (0, 0, 0);
        let mut reach = victims[from].reach.clone();
        let mut largest = None;
        for (to, victim) in (from + 1..).zip(&victims[from..]) {
            reach = reach.hull(&victim.reach);
            // Without settling, what lies between victims is compacted too.
            let first = if source.one_by_one || to == from + 1 { victim.met.start } else { met_end };
            met_bytes += until[victim.met.end] - until[first.max(met_end).min(victim.met.end)];
            bytes += victim.table.bytes();
            met_end = met_end.max(victim.met.end);
            let is_full = group_bytes > 0 && to > from + 1 && bytes > group_bytes;
            let is_too_large = bytes + met_bytes >= config.bytes_max;
            if is_full || is_too_large || !victim.is_free || source.is_busy(&reach) {
                break;
            }
            let window = Window { victims: from..to, bytes, met_bytes };
            if group_bytes == 0 {
                windows.push(window);
            } else {
                largest = Some(window);
            }
        }
        windows.extend(largest);
    }
    let most = windows.iter().map(|window| window.bytes).max().unwrap_or(0);
    windows.retain(|window| group_bytes == 0 || window.bytes >= most / 2);
    windows
}

/// The window with the best ratio, the first of equal ones.
fn best(windows: &[Window]) -> Option<Range<usize>> {
    let best = windows.iter().reduce(
        |best, window| {
            if window.cmp_ratio(best) == Ordering::Greater { window } else { best }
        },
    );
    best.map(|window| window.victims.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(scores: &[f64]) -> [f64; LEVELS] {
        let mut all = [0.0; LEVELS];
        all[..scores.len()].copy_from_slice(scores);
        all
    }

    #[test]
    fn a_level_waits_until_the_next_one_is_not_fuller() {
        for (given, expected) in [
            (&[0.5, 0.9][..], &[][..]),
            (&[2.0, 1.0], &[0, 1]),
            (&[2.0, 1.1], &[1, 0]),
            (&[9.0, 1.1, 1.2], &[2, 0]),
            (&[9.0, 1.2, 1.1, 1.3], &[1, 3, 0]),
            (&[0.0, 1.2, 1.2], &[1, 2]),
        ] {
            assert_eq!(turns(&scores(given)), expected, "{given:?}");
        }
    }

    #[test]
    fn of_windows_with_the_best_ratio_the_smaller_one_wins() {
        let window = |at, bytes, met_bytes| Window { victims: at..at + 1, bytes, met_bytes };
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[window(0, 2, 6), window(1, 4, 8), window(2, 2, 4), window(3, 2, 4)]), Some(2..3));
    }
}
