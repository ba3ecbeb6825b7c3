//! The picker of the guarded layout: groups of a level go down together, and are added to what the next level has.
//!
//! 1. Level 0 goes down as a whole.
//! 2. Of a deeper level, the groups that are due go down, the fullest first, and with them the groups that a new guard parts: so
//!    guards come into force. A job takes no more bytes than a guard of the level may have, but at least one group.
//! 3. Tables of the target stay as they are. The exception: target groups that the job meets and that a new guard parts are
//!    inputs as wholes.
//! 4. Groups of the deepest level are compacted in place: all runs but one that has most of the bytes, if that is the oldest.
//!    (PebblesDB leaves such a table wherever it stands by age, and its comment says that old versions may be returned.)
//!
//! Outputs are cut at the guards of the target and where a claim ends (`fences`), so they lie in one group each.
//!
//! # Invariants
//!
//! * Inputs of the source are whole groups, so they are closed (I2).
//! * Inputs of the target are whole groups, too. So whatever stays there and overlaps an output is older, and outputs may carry
//!   a new epoch ([`Plan::stacks`]).
//! * What is compacted in place is convex (I3).

use std::sync::Arc;

use crate::catalog::TableMeta;
use crate::policy::closure::convex;
use crate::policy::layout::{GuardGroup, GuardKeys, GuardedConfig};
use crate::policy::plan::{OutputAge, Plan, PlanInput, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::{Epoch, Key, KeyRange};

/// A run with more than this share of the bytes of its group is not compacted in place: as PebblesDB has it, one and a half
/// times as much as each of two would have.
const LARGE: (u64, u64) = (3, 4);

/// What to take next from `level`.
pub(super) fn choose(config: &GuardedConfig, view: &TreeView<'_>, level: u8) -> Option<Plan> {
    let guards = config.guards(view.version);
    if level == 0 {
        return choose_level0(view, &guards);
    }
    if config.is_in_place(view.version, level) {
        return choose_in_place(config, view, &guards, level);
    }
    let target = level + 1;
    let groups = taken(config, view, &guards, level);
    let met = config
        .groups(view.version, &guards, target)
        .into_iter()
        .filter(|below| below.is_straddled && groups.iter().any(|group| group.range.overlaps(&below.range)));
    let met: Vec<GuardGroup<'_>> = met.collect();
    let claims = union(groups.iter().chain(&met).map(|group| group.range.clone()).collect());
    if groups.is_empty() || claims.iter().any(|range| is_busy(view, level, range)) {
        return None;
    }
    let inputs = [(level, &groups), (target, &met)].map(|(at, groups)| {
        // In their order, the first table of a group lies in its newest run and the last one in its oldest.
        let newest = planted!("part-of-a-guard-taken") && at == level;
        let oldest = planted!("part-of-a-target-guard-taken") && at == target;
        let tables = groups.iter().flat_map(|group| match &group.tables[..] {
            [.., last] if oldest => std::slice::from_ref(last),
            [first, ..] if newest => std::slice::from_ref(first),
            all => all,
        });
        tables.map(|table| (at, *table)).collect::<Vec<_>>()
    });
    let job = Job { source: level, target, inputs: inputs.concat(), stacks: true };
    job.plan(view, &guards, claims, Reason::LevelBytes)
}

/// All of level 0.
fn choose_level0(view: &TreeView<'_>, guards: &GuardKeys<'_>) -> Option<Plan> {
    let inputs: Vec<_> = view.version.level(0).tables().map(|table| (0, table)).collect();
    let hull = inputs.iter().map(|(_, table)| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
    if is_busy(view, 0, &hull) {
        return None;
    }
    let job = Job { source: 0, target: 1, inputs, stacks: true };
    job.plan(view, guards, vec![hull], Reason::Level0Runs)
}

/// The groups of `level` for one job, in key order; none if there is none that is due and free of running jobs.
fn taken<'a>(
    config: &GuardedConfig,
    view: &TreeView<'a>,
    guards: &GuardKeys<'_>,
    level: u8,
) -> Vec<GuardGroup<'a>> {
    let groups = config.groups(view.version, guards, level);
    let score = |group: &GuardGroup<'_>| config.group_score(view.version, level, group);
    let mut free: Vec<_> = groups.into_iter().filter(|group| !is_busy(view, level, &group.range)).collect();
    free.sort_by(|one, other| score(other).total_cmp(&score(one)));
    let mut bytes = 0;
    let mut taken = Vec::new();
    for group in free {
        let suits = score(&group) >= 1.0 || group.is_straddled && !taken.is_empty();
        if suits && (taken.is_empty() || bytes + group.bytes <= config.guard_bytes_max(level)) {
            bytes += group.bytes;
            taken.push(group);
        }
    }
    taken.sort_by(|one, other| one.range.start.cmp(&other.range.start));
    taken
}

/// The fullest group of a level that goes nowhere, if no running job is in the way.
fn choose_in_place(
    config: &GuardedConfig,
    view: &TreeView<'_>,
    guards: &GuardKeys<'_>,
    level: u8,
) -> Option<Plan> {
    let mut groups = config.groups(view.version, guards, level);
    groups.retain(|group| config.group_score(view.version, level, group) >= 1.0);
    groups.sort_by_key(|group| std::cmp::Reverse(group.runs));
    groups.into_iter().find_map(|group| {
        let chosen = if group.is_straddled { group.tables.clone() } else { small(&group) };
        let tables = convex(view.version.level(level), &chosen);
        let hull = tables.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range))?;
        if is_busy(view, level, &hull) {
            return None;
        }
        let inputs = tables.into_iter().map(|table| (level, table)).collect();
        let job = Job { source: level, target: level, inputs, stacks: false };
        job.plan(view, guards, vec![hull], Reason::LevelBytes)
    })
}

/// The tables of `group` but for a run that has most of its bytes.
fn small<'a>(group: &GuardGroup<'a>) -> Vec<&'a Arc<TableMeta>> {
    let epochs: std::collections::BTreeSet<Epoch> = group.tables.iter().map(|table| table.epoch).collect();
    let bytes_of = |epoch: Epoch| {
        group.tables.iter().filter(|table| table.epoch == epoch).map(|table| table.bytes()).sum::<u64>()
    };
    let is_large =
        |epoch: &Epoch| bytes_of(*epoch).saturating_mul(LARGE.1) > group.bytes.saturating_mul(LARGE.0);
    let large = epochs.iter().copied().find(is_large);
    let small: Vec<_> = group.tables.iter().copied().filter(|table| Some(table.epoch) != large).collect();
    // One run alone would not become less.
    let is_one = small.windows(2).all(|pair| pair[0].epoch == pair[1].epoch);
    if is_one { group.tables.clone() } else { small }
}

fn is_busy(view: &TreeView<'_>, level: u8, range: &KeyRange) -> bool {
    view.busy.conflicts(level, range) || view.busy.conflicts(level + 1, range)
}

/// The union of `ranges`: disjoint, ascending.
fn union(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|one, other| one.start.cmp(&other.start));
    let mut union: Vec<KeyRange> = Vec::new();
    for range in ranges {
        match union.last_mut().filter(|last| last.overlaps(&range)) {
            Some(last) => *last = last.hull(&range),
            None => union.push(range),
        }
    }
    union
}

/// A compaction to be.
struct Job<'a> {
    source: u8,
    target: u8,
    /// With their levels: of the source, then of the target, newest run first.
    inputs: Vec<(u8, &'a Arc<TableMeta>)>,
    stacks: bool,
}

impl Job<'_> {
    fn plan(
        self,
        view: &TreeView<'_>,
        guards: &GuardKeys<'_>,
        claims: Vec<KeyRange>,
        reason: Reason,
    ) -> Option<Plan> {
        let range = claims.iter().cloned().reduce(|hull, range| hull.hull(&range))?;
        let inside = guards.of_level(self.target).into_iter().filter(|guard| range.contains(guard));
        let mut fences: Vec<Key> = inside
            .chain(claims.iter().map(|claim| &claim.start))
            .filter(|key| **key > range.start)
            .cloned()
            .collect();
        fences.sort_unstable();
        fences.dedup();
        Some(Plan {
            keyspace: view.keyspace,
            kind: PlanKind::Compact,
            source: self.source,
            target: self.target,
            bytes: self.inputs.iter().map(|(_, table)| table.bytes()).sum(),
            inputs: self
                .inputs
                .iter()
                .map(|(level, table)| PlanInput { level: *level, table: table.id })
                .collect(),
            moves: Vec::new(),
            stacks: self.stacks,
            age: OutputAge::Newest,
            fences,
            range,
            claims,
            cursor: None,
            reason,
        })
    }
}
