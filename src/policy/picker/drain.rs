//! Geared levels: what goes down next (LSbM-tree, algorithm 1).
//!
//! Of a pair of levels, the one that goes down gives its first tables in key order, a unit at a time, to be merged with what
//! they overlap in the next level. Once it is empty and both are full, the other level moves into its place as a whole. Of level 0
//! a section is taken (`level0`).

use super::choice::Choice;
use super::{Source, fold, level0};
use crate::catalog::Run;
use crate::policy::layout::goes_down;
use crate::policy::plan::{OutputAge, Plan, PlanKind, Reason};
use crate::types::{KeyRange, LEVELS};

/// What to take next from the level of `source`.
pub(super) fn next(source: Source<'_>) -> Option<Plan> {
    if waits_for_round(source) {
        return None;
    }
    match source.level {
        0 => source.plan(&level0::choose(source)?, Reason::Level0Runs, None),
        level if goes_down(level) => source.plan(&unit(source)?, Reason::LevelBytes, None),
        // What moves must not overlap. Such a level comes from another layout.
        level if source.state.depth() > 1 => {
            let fold = fold::of_level(source.view, source.config, level)?;
            Some(Plan { reason: Reason::LevelBytes, ..fold })
        }
        _ => whole(source),
    }
}

/// The levels that are due, from the deepest: then a pair of levels never holds more than a unit above its limit.
pub(super) fn turns(scores: &[f64; LEVELS]) -> Vec<u8> {
    (0..LEVELS as u8).rev().filter(|level| scores[usize::from(*level)] >= 1.0).collect()
}

/// Whether the target is to move down as a whole, but waits for jobs to end: others that begin meanwhile might make it wait
/// for ever.
fn waits_for_round(source: Source<'_>) -> bool {
    let Source { view, level, .. } = source;
    let target = level + 1;
    let is_due = !goes_down(target) && view.shape.scores[usize::from(target)] >= 1.0;
    let everything = KeyRange::everything();
    is_due && (view.busy.conflicts(target, &everything) || view.busy.conflicts(target + 1, &everything))
}

/// The first tables of a level that no running job is in the way of, up to a unit.
fn unit(source: Source<'_>) -> Option<Choice<'_>> {
    let run = source.state.runs.last()?;
    let free = run.iter().filter(|table| !source.view.busy.conflicts(source.level, &table.range));
    let choice =
        |range: &KeyRange| Choice::of(source, source.closed(range)).filter(|choice| !choice.is_busy());
    free.into_iter().find_map(|first| choice(&source.group(run, first)).or_else(|| choice(&first.range)))
}

/// The move of a whole level into the empty next one.
fn whole(source: Source<'_>) -> Option<Plan> {
    let Source { view, level, state, target, .. } = source;
    let tables = || state.runs.iter().flat_map(Run::iter);
    let range = tables().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
    if !target.runs.is_empty() || source.is_busy(&KeyRange::everything()) {
        return None;
    }
    let mut in_order: Vec<_> = tables().collect();
    in_order.sort_by(|one, other| one.range.start.cmp(&other.range.start));
    Some(Plan {
        keyspace: view.keyspace,
        kind: PlanKind::Move,
        source: level,
        target: level + 1,
        stacks: false,
        age: OutputAge::Newest,
        inputs: Vec::new(),
        moves: in_order.iter().map(|table| table.id).collect(),
        fences: Vec::new(),
        // Nothing may come into either level meanwhile, wherever its keys lie.
        claims: vec![KeyRange::everything()],
        range,
        bytes: state.bytes(),
        cursor: None,
        reason: Reason::LevelBytes,
    })
}
