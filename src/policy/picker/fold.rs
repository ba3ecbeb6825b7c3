//! Folds: a level below level 0 that is to have one run, and has several, gets there by jobs of bounded size.
//!
//! Such a level comes from another layout. Runs whose tables end at different keys hang together by their overlaps, so
//! to merge all that is connected may be to merge the whole level. A fold takes less:
//!
//! 1. Some neighbours of the second oldest run, as many as make a group together with what they overlap, or a single
//!    one.
//! 2. All tables of the oldest run between the first and the last key of these.
//!
//! They become tables of the oldest run. What is older than a table of the second oldest run lies in the oldest one
//! (`catalog/placement.rs`), so the inputs are downward closed. What stays and overlaps an input is newer than it, and
//! stays above the outputs, for these have the lowest epoch of the inputs ([`OutputAge::Oldest`]).
//!
//! Outputs may reach over gaps between inputs. No table of the two oldest runs lies there. One of another run lies over an
//! input, directly or through others, so it has a higher epoch, and stays above, too.
//!
//! **Folds end.** Each takes tables out of the upper runs and puts none there. What stays lies as high as before, or
//! lower.
//!
//! **When.** A compaction meets tables in its target that others overlap which it does not meet: they are *tangled*.
//! Then the place is folded first, and what waits for the compaction waits for a few such jobs. What no compaction
//! meets is folded when nothing else is due, and put off for a while if that fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::PickerConfig;
use crate::catalog::{LevelState, Run, TableMeta};
use crate::policy::expiry::within_level;
use crate::policy::plan::{OutputAge, Plan, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::{KeyRange, TableId};

/// The next fold of a level that is to have one run, if there is one that no running job is in the way of.
pub(super) fn next(view: &TreeView<'_>, config: &PickerConfig) -> Option<Plan> {
    if view.shape.put_off {
        return None;
    }
    let levels = view.version.levels().skip(1);
    let mut levels = levels.filter(|(level, _)| !view.shape.stacks[usize::from(*level)]);
    levels.find_map(|(level, _)| of_level(view, config, level))
}

/// The next fold of `level`, if it has several runs and no running job is in the way.
pub(super) fn of_level(view: &TreeView<'_>, config: &PickerConfig, level: u8) -> Option<Plan> {
    let (upper, _) = oldest_two(view.version.level(level))?;
    upper.iter().find_map(|first| from(view, config, level, first))
}

/// A fold that brings `table`, which is in no oldest run, further down; nothing if a running job is in the way.
pub(super) fn at(view: &TreeView<'_>, config: &PickerConfig, level: u8, table: &TableMeta) -> Option<Plan> {
    let state = view.version.level(level);
    let (mut table, mut place) = (table, state.run_of(table)?);
    // It lies over a table of the next run, and so on.
    while place + 2 < state.depth() {
        place += 1;
        table = state.runs[place].overlapping(&table.range).next()?;
    }
    from(view, config, level, table)
}

/// Of `tables`, or of those that stay in their level and overlap them, one that lies on top of another one, where some
/// stay; nothing if none does.
pub(super) fn tangled<'a>(
    state: &'a LevelState,
    tables: &[&'a Arc<TableMeta>],
) -> Option<&'a Arc<TableMeta>> {
    if state.depth() < 2 {
        return None;
    }
    let is_taken: BTreeSet<TableId> = tables.iter().map(|table| table.id).collect();
    tables.iter().find_map(|table| {
        let stays = state.overlapping(&table.range).find(|other| !is_taken.contains(&other.id))?;
        Some(if state.run_of(stays) < state.run_of(table) { stays } else { *table })
    })
}

/// The second oldest run and the oldest one, if there are two.
fn oldest_two(state: &LevelState) -> Option<(&Run, &Run)> {
    match &state.runs[..] {
        [.., upper, oldest] => Some((upper, oldest)),
        _ => None,
    }
}

/// The fold of `first`, a table of the second oldest run, and of those behind it.
fn from(view: &TreeView<'_>, config: &PickerConfig, level: u8, first: &TableMeta) -> Option<Plan> {
    let (upper, oldest) = oldest_two(view.version.level(level))?;
    // What a fold of the upper tables in `range` claims.
    let reach = |range: &KeyRange| {
        oldest.overlapping(range).fold(range.clone(), |reach, below| reach.hull(&below.range))
    };
    let is_busy = |range: &KeyRange| view.busy.conflicts(level, &reach(range));
    let mut range = first.range.clone();
    if is_busy(&range) {
        return None;
    }
    for table in upper.iter_from(upper.lower_bound(&first.range.start)).skip(1) {
        let wider = range.hull(&table.range);
        let bytes = upper.overlap_bytes(&wider) + oldest.overlap_bytes(&wider);
        if bytes > config.group_bytes || is_busy(&wider) {
            break;
        }
        range = wider;
    }
    let mut tables: Vec<&TableMeta> = upper.overlapping(&range).map(|table| &**table).collect();
    if !planted!("fold-without-the-older-tables-below-it") {
        tables.extend(oldest.overlapping(&range).map(|table| &**table));
    }
    let plan = within_level(view, level, PlanKind::Compact, &tables, vec![reach(&range)])?;
    Some(Plan { age: OutputAge::Oldest, reason: Reason::Fold, ..plan })
}
