//! Whole levels: a level that is full is merged as one, or part by part.
//!
//! **As one** (`group_bytes` is 0), as the tiered stores of the literature do: all tables of the level become one run.
//! That lies on top of the next level where this keeps several runs, and is merged with its run where it keeps one.
//! Tables that are disjoint, and meet nothing that they would be merged with, move.
//!
//! **In parts**: the tables that lie on top, some of them in key order, with all older tables of the level that lie
//! below them. What is left has fewer runs there, so the level is merged where it is deepest, and a part is an edit of
//! its own. Of level 0 a part is a section (`level0`). In a part, tables that overlap nothing move.
//!
//! A level that the layout merges in its place (`TreeShape::merges_within`) becomes one run there; in parts, component
//! by component, which is as little as can be (`policy/closure.rs`).

use std::sync::Arc;

use super::choice::Choice;
use super::cursor::{behind_cursor, cursor_behind};
use super::{PickerConfig, Source, level0};
use crate::catalog::{LevelState, Run, TableMeta};
use crate::policy::closure::{components, downward};
use crate::policy::expiry::within_level;
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::Key;

/// What is met in a level that lets what arrives lie on top of it.
static NOTHING: LevelState = LevelState { runs: Vec::new(), cursor: None };

/// The next merge of the level of `source` into the next level, if no running job is in the way.
pub(super) fn next(source: Source<'_>) -> Option<Plan> {
    let stacks = source.view.shape.stacks[usize::from(source.level) + 1];
    let target = if stacks { &NOTHING } else { source.target };
    let source = Source { target, stacks, ..source };
    let (choice, cursor) = match source.level {
        _ if source.config.group_bytes == 0 => (Choice::of(source, whole(source.state))?, None),
        0 => (level0::choose(source)?, None),
        _ => part(source).map(|(choice, cursor)| (choice, Some(cursor)))?,
    };
    if choice.is_busy() {
        return None;
    }
    let reason = match source.level {
        0 => Reason::Level0Runs,
        _ if source.state.depth() > 1 => Reason::LevelRuns,
        _ => Reason::LevelBytes,
    };
    source.plan(&choice, reason, cursor)
}

/// All tables of a level, newest run first.
fn whole(state: &LevelState) -> Vec<&Arc<TableMeta>> {
    let left = usize::from(planted!("oldest-run-left-out-of-a-whole-level") && state.depth() > 1);
    state.runs[..state.depth() - left].iter().flat_map(Run::iter).collect()
}

/// The first part behind the cursor that no running job is in the way of, and the new cursor.
fn part(source: Source<'_>) -> Option<(Choice<'_>, Key)> {
    let Source { state, view, level, .. } = source;
    let newest = state.runs.first()?;
    let is_free = |table: &&Arc<TableMeta>| !view.busy.conflicts(level, &table.range);
    behind_cursor(newest, state.cursor.as_ref()).filter(is_free).find_map(|first| {
        let (mut seeds, mut victims) = (vec![first], downward(state, &[first]));
        let alone = Choice::of(source, victims.clone()).filter(|choice| !choice.is_busy())?;
        let (mut best, mut last) = (alone, first);
        for table in newest.iter_from(newest.lower_bound(&first.range.start)).skip(1).take_while(is_free) {
            seeds.push(table);
            victims = downward(state, &seeds);
            if victims.iter().map(|victim| victim.bytes()).sum::<u64>() > source.config.group_bytes {
                break;
            }
            match Choice::of(source, victims.clone()).filter(|choice| !choice.is_busy()) {
                Some(wider) => (best, last) = (wider, table),
                None => break,
            }
        }
        Some((best, cursor_behind(&last.range)))
    })
}

/// The merge of `level` into one run in its place, or of a part of it, if no running job is in the way.
pub(super) fn within(view: &TreeView<'_>, config: &PickerConfig, level: u8) -> Option<Plan> {
    let state = view.version.level(level);
    let parts = match config.group_bytes {
        0 => vec![state.tables().collect()],
        _ => components(state),
    };
    parts.into_iter().filter(|tables| tables.len() > 1).find_map(|tables: Vec<&Arc<TableMeta>>| {
        let claim = tables.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
        if view.busy.conflicts(level, &claim) {
            return None;
        }
        let tables: Vec<&TableMeta> = tables.into_iter().map(|table| &**table).collect();
        let plan = within_level(view, level, PlanKind::Compact, &tables, vec![claim])?;
        Some(Plan { reason: Reason::LevelRuns, ..plan })
    })
}
