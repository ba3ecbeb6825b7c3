//! The planner: asks the policies in order of precedence, over all keyspaces and levels, and returns one plan.
//!
//! 1. Tables of which all is deleted by a range delete, has expired, or is hidden by newer ones: dropping them costs nothing.
//! 2. Parts of a level 0 that the pacer lets nobody compact away.
//! 3. Level 0 of a keyspace whose runs hold writers up, the fullest first. If its level 1 is fuller, then level 1,
//!    and the next levels as far as each is fuller than the one above. Reason: each compaction of level 0 writes all
//!    of level 1 again, so it would take longer the more often it went first.
//! 4. Rewrites of packs, once far too much is dead and cannot be punched. Otherwise nothing would bound the dead
//!    space under writers that never rest (I11).
//! 5. Every other level that is due, by score, or in the picker's order if it has one; level 0 before the others if the
//!    pacer says so.
//! 6. Tables that point into value tables that are to be left; tables of which much has expired, then those that hold much for readers that have gone, then those whose tombstones
//!    hide much; then merges within a
//!    level, where the layout has several runs there, or folds, where it is to have one.
//! 7. In a level 0 that is not due: in idle time its dense parts; then intra-L0 compactions that readers have paid
//!    for, or that idle time is used for. (A level 0 that is due is compacted away.)
//! 8. Rewrites that can wait.
//! 9. Copies of tables to the device where reads wait less.
//!
//! If a level 0 waits for jobs in level 1 to end, that level's next jobs do not start, or they would hold it up for
//! ever; nor does a rewrite start in its keyspace.
//!
//! The picker decides which tables are taken, the pacer whether a plan may run.

use std::cell::Cell;
use std::iter;

use super::collector::{is_collection_due, next_to_collect};
use super::deleted::next_deleted;
use super::expiry::{next_drop, next_expiry_compaction};
use super::hidden::next_hidden;
use super::release::next_release;
use crate::policy::config::PolicyConfig;
use crate::policy::costs::Costs;
use crate::policy::load::LoadState;
use crate::policy::pacer::{Admission, Deferral, Pacer};
use crate::policy::picker::{Evenness, Picker};
use crate::policy::plan::{Plan, Reason};
use crate::policy::relocation::next_relocation;
use crate::policy::rewriter::next_rewrite;
use crate::policy::view::{SpaceView, TreeShape, TreeView};
use crate::types::KeyspaceId;

/// Divisor: tables are compacted for their tombstones alone if these hide this part of what is read.
const HIDDEN_PARTS: u64 = 2;

/// The same in idle time. What is left takes an eighth of the space.
const HIDDEN_PARTS_IDLE: u64 = 8;

/// A level that is due.
struct Due<'a> {
    view: &'a TreeView<'a>,
    level: u8,
    pressed: bool,
    score: f64,
    /// Of equal scores, the least comes first.
    turn: u8,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Planned {
    /// The plan to run: due, free of running jobs, admitted.
    pub plan: Option<Plan>,
    /// Why the pacer has put off the first of the plans that would have come before it.
    pub deferred: Option<Deferral>,
}

/// The plan to run next, and whether one was put off for the load.
#[must_use]
pub fn decide(views: &[TreeView<'_>], space: &SpaceView, load: &LoadState, config: &PolicyConfig) -> Planned {
    let deferred = Cell::new(None);
    let admitted = |plan: &Plan| match config.pacer.admit(load, plan) {
        Admission::Run => true,
        Admission::Defer(reason) => {
            deferred.set(deferred.get().or(Some(reason)));
            false
        }
    };
    let plan = admitted_plan(views, space, (load, config), admitted);
    Planned { plan, deferred: deferred.get() }
}

/// Whether a tree is at rest: without a change of its tables or options there is nothing to do for its own sake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// Something is due, or may become so by itself.
    No,
    /// There may be something to do in idle time, and then alone.
    UntilIdle,
    /// Whatever the load and the prices.
    Yes,
}

/// Whether the tree of `view` is at rest. Values live for ever there, and readers have paid nothing for its level 0; `view`
/// has no claims and no pins, for these only stand in the way of plans.
#[must_use]
pub fn rest(view: &TreeView<'_>, config: &PolicyConfig) -> Rest {
    let version = view.version;
    let level0 = version.level(0).depth();
    let holds_for_readers = || version.runs().any(|(_, run)| run.held().records > 0);
    let counts_searches = || matches!(config.picker, Picker::Components(_));
    let has_parts = || level0 > 0 && matches!(config.pacer, Pacer::Dlc(_));
    let is_due = || !due_levels(view, config).is_empty();
    if counts_searches()
        || has_parts()
        || holds_for_readers()
        || is_due()
        || next_hidden(view).is_some()
        || config.picker.pick_within(view).is_some()
        || collects(view)
    {
        return Rest::No;
    }
    if for_tombstones(view, config).is_some() {
        return Rest::No;
    }
    let idle = TreeShape { idle: true, ..*view.shape }.pressed_by_values(version, &config.layout);
    let idle = TreeView { shape: &idle, ..*view };
    if for_tombstones(&idle, config).is_some() || collects(&idle) || !due_levels(&idle, config).is_empty() {
        return Rest::UntilIdle;
    }
    let dense = || {
        let parts = config.layout.idle_parts()?;
        config.picker.pick_dense(view, parts)
    };
    match level0 {
        0 => Rest::Yes,
        1 if dense().is_none() => Rest::Yes,
        _ if config.layout.has_intra_l0() => Rest::UntilIdle,
        _ => Rest::Yes,
    }
}

/// Whether value tables are left, or are to be.
fn collects(view: &TreeView<'_>) -> bool {
    let TreeShape { hole_bytes, idle, .. } = *view.shape;
    view.collection.is_some() || is_collection_due(view.version.values(), hole_bytes, idle)
}

/// The plan of [`decide`].
#[cfg(test)]
pub fn next_plan(
    views: &[TreeView<'_>],
    space: &SpaceView,
    load: &LoadState,
    config: &PolicyConfig,
) -> Option<Plan> {
    decide(views, space, load, config).plan
}

fn admitted_plan(
    views: &[TreeView<'_>],
    space: &SpaceView,
    (load, config): (&LoadState, &PolicyConfig),
    admitted: impl Fn(&Plan) -> bool,
) -> Option<Plan> {
    let rewrite = |waiting: &[KeyspaceId]| {
        let free: Vec<_> = views.iter().filter(|view| !waiting.contains(&view.keyspace)).copied().collect();
        next_rewrite(&free, space).filter(&admitted)
    };
    let unread =
        |view: &TreeView<'_>| next_deleted(view).or_else(|| next_drop(view)).or_else(|| next_hidden(view));
    if let Some(plan) = views.iter().find_map(unread).filter(&admitted) {
        return Some(plan);
    }
    let mut due: Vec<_> = views.iter().flat_map(|view| due_levels(view, config)).collect();
    // Not while level 1 is so full that level 0 must wait for it.
    let goes_first = |due: &Due<'_>| due.level == 0 && config.pacer.level0_first();
    due.sort_by(|a, b| {
        let by_score = || b.score.total_cmp(&a.score).then(a.turn.cmp(&b.turn));
        b.pressed.cmp(&a.pressed).then_with(|| goes_first(b).cmp(&goes_first(a))).then_with(by_score)
    });
    let part = |view: &TreeView<'_>| {
        let window = config.pacer.level0_part(load, view.version)?;
        config
            .picker
            .intra_l0(view, &window, Evenness::Whole)
            .map(|plan| Plan { reason: Reason::Part, ..plan })
    };
    if let Some(plan) = views.iter().find_map(part).filter(&admitted) {
        return Some(plan);
    }
    let mut waiting: Vec<KeyspaceId> = Vec::new();
    let mut late = space.totals.is_late();
    for Due { view, level, pressed, .. } in due {
        if !pressed && std::mem::take(&mut late) {
            let plan = rewrite(&waiting);
            if plan.is_some() {
                return plan;
            }
        }
        if level == 1 && waiting.contains(&view.keyspace) && lets_level_0_go_first(config) {
            continue;
        }
        match config.picker.pick(view, level).map(|plan| cheaper(view, plan, &load.costs, config)) {
            Some(plan) if admitted(&plan) => return Some(plan),
            // It waits for the load, not for jobs in level 1.
            Some(_) => {}
            None if level == 0 => waiting.push(view.keyspace),
            None => {}
        }
    }
    let late_rewrite = if late { rewrite(&waiting) } else { None };
    let free = |next: &dyn Fn(&TreeView<'_>) -> Option<Plan>| {
        let mut free = views.iter().filter(|view| !waiting.contains(&view.keyspace));
        free.find_map(next).filter(&admitted)
    };
    let group_bytes = config.picker.group_bytes();
    let mut for_readers = views.iter().flat_map(|view| for_readers(view, &load.costs, config));
    (late_rewrite.or_else(|| free(&next_to_collect)))
        .or_else(|| free(&|view| next_expiry_compaction(view, group_bytes)))
        .or_else(|| free(&|view| next_release(view, group_bytes)))
        .or_else(|| free(&|view| for_tombstones(view, config)))
        .or_else(|| free(&|view| config.picker.pick_within(view)))
        .or_else(|| for_readers.find(&admitted))
        .or_else(|| rewrite(&waiting))
        .or_else(|| next_relocation(views, &space.reads).filter(|plan| waiting.is_empty() && admitted(plan)))
}

/// Whether level 1 starts no job while level 0 waits for those that run. A geared level 1 makes room for level 0 by its very move.
fn lets_level_0_go_first(config: &PolicyConfig) -> bool {
    !config.layout.has_rounds() && !planted!("level-0-starved-by-level-1")
}

/// `plan`, or in its place a compaction within level 0 that lowers the number of its runs for less (`Layout::fewer_runs`).
fn cheaper(view: &TreeView<'_>, plan: Plan, costs: &Costs, config: &PolicyConfig) -> Plan {
    if plan.source != 0 || plan.target != 1 || !view.shape.only_runs_due || !plan.moves.is_empty() {
        return plan;
    }
    let bytes = |level: u8| {
        let inputs = plan.inputs.iter().filter(|input| input.level == level);
        inputs.filter_map(|input| view.version.table(input.table)).map(|(_, table)| table.bytes()).sum()
    };
    let mut windows = config.layout.fewer_runs(view.version, (bytes(0), bytes(1)), costs).into_iter();
    let within = windows.find_map(|window| config.picker.intra_l0(view, &window, Evenness::Any));
    within.map_or(plan, |within| Plan { reason: Reason::Level0Runs, ..within })
}

/// What is worth doing for the tombstones of a tree. In idle time nobody pays for what is written.
fn for_tombstones(view: &TreeView<'_>, config: &PolicyConfig) -> Option<Plan> {
    if !config.layout.has_intra_l0() || view.shape.put_off {
        return None;
    }
    let parts = if view.shape.idle { HIDDEN_PARTS_IDLE } else { HIDDEN_PARTS };
    config.picker.pick_tombstones(view, parts)
}

/// What is worth doing in a level 0 that is not due.
fn for_readers(view: &TreeView<'_>, costs: &Costs, config: &PolicyConfig) -> impl Iterator<Item = Plan> {
    let PolicyConfig { layout, picker, .. } = config;
    let is_due = view.shape.scores[0] >= 1.0;
    let is_idle = !is_due && view.shape.idle;
    let dense = layout.idle_parts().filter(|_| is_idle).and_then(|parts| picker.pick_dense(view, parts));
    let intra_l0 = move || {
        let read_debt = if is_due {
            Vec::new()
        } else {
            layout.intra_l0(view.version, view.shape.read_debt_bytes, costs)
        };
        let even = if is_idle { layout.idle_intra_l0(view.version, costs) } else { Vec::new() };
        let read_debt = read_debt.into_iter().map(|(window, _)| (window, Evenness::Any));
        let windows = read_debt.chain(even.into_iter().map(|window| (window, Evenness::Even)));
        windows.filter_map(|(window, evenness)| picker.intra_l0(view, &window, evenness))
    };
    dense.into_iter().chain(iter::once_with(intra_l0).flatten())
}

/// The levels of a tree that are due.
fn due_levels<'a>(view: &'a TreeView<'a>, config: &PolicyConfig) -> Vec<Due<'a>> {
    let scores = view.shape.scores;
    let presses = config.pacer.presses(config.layout.level0_runs(view.version, view.shape.overwrite_ratio));
    let fuller = scores.windows(2).take_while(|pair| pair[1] > pair[0]).count();
    let by_score = || {
        (0u8..).zip(scores).filter(|(_, score)| *score >= 1.0).map(|(level, score)| {
            let is_in_turn = if fuller == 0 { level == 0 } else { (1..=fuller).contains(&level.into()) };
            Due { view, level, pressed: presses && is_in_turn, score, turn: level }
        })
    };
    match config.picker.turns(&scores) {
        None => by_score().collect::<Vec<_>>(),
        Some(turns) => {
            // A keyspace counts by its fullest level, whichever has its turn.
            let score = turns.iter().map(|level| scores[usize::from(*level)]).fold(0.0, f64::max);
            let due =
                (0..).zip(turns).map(|(turn, level)| Due { view, level, pressed: presses, score, turn });
            due.collect()
        }
    }
}
