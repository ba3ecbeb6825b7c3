//! What to merge or move next.
//!
//! `Cursor` follows LevelDB (`db/version_set.cc`: `PickCompaction`, `SetupOtherInputs`, `IsTrivialMove`):
//!
//! 1. The victim is the first table behind the level's cursor, then the ones after it, around the end. In level 0 the
//!    oldest run is drained first, since only an emptied run lowers the count.
//! 2. In level 0, run by run from the newest to the oldest, all tables that overlap the victims so far become victims,
//!    too. So of each, everything older is among the inputs, which are downward closed (I2).
//! 3. All tables of the target that overlap the victims are partners.
//! 4. Victims are added when that brings in no partner more and the whole stays below a limit.
//! 5. Victims that are disjoint and have no partners are moved, unless one overlaps too much of the level after the
//!    target: merging it later would cost more than cutting it up now.
//!
//! Ours: what overlaps the claim of a running job is passed over for the next victim, so that several jobs can run in
//! one level (I12). And from BoLT ("group compaction", section 4.2): the victim is joined by the tables behind it in its
//! run, up to a number of bytes, so that small tables do not mean small jobs, each with its barriers.
//!
//! And step 2 goes through the runs once. LevelDB repeats it until no table overlaps a victim, which takes in whatever is
//! newer than the victims, too, and by way of that more: where keys come in no order, all of level 0 and of level 1 in one
//! job. What is newer may stay: a job takes a section of all runs, inputs and outputs of a job stand beside each other for a
//! shorter while and in less space, and two jobs can work on level 0. The sections of one round, told by the oldest run's
//! groups and the cursor, lie side by side without a gap, so that a round leaves nothing between them of any run that it met.

use std::sync::Arc;

use super::{Plan, PlanInput, PlanKind, Reason, TreeView};
use crate::catalog::{LevelState, Run, TableMeta};
use crate::types::{Key, KeyRange, LEVELS, UpperBound};

/// The pickers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picker {
    /// One victim behind the level's cursor.
    Cursor(CursorConfig),
}

/// Limits of the cursor picker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CursorConfig {
    /// The first victim is joined by those behind it up to this many bytes; 0 for a single one.
    pub group_bytes: u64,
    /// Victims are added while all inputs together stay below this many bytes. Bounds a manual merge, too.
    pub expansion_bytes_max: u64,
    /// A table is moved only if it overlaps at most this many bytes of the level after the target.
    pub grandparent_bytes_max: u64,
}

/// What there is to do for a manual merge of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RangePick {
    /// Run this, then ask again.
    Plan(Plan),
    /// A running job is in the way: ask again when it has ended.
    Busy,
    /// The level holds nothing of the range any more, or is the deepest one.
    Done,
}

impl Picker {
    /// The next plan for `level`, if there is work that no running job is in the way of.
    #[must_use]
    pub fn pick(&self, view: &TreeView<'_>, level: u8) -> Option<Plan> {
        let Self::Cursor(config) = self;
        let source = Source::new(view, level)?;
        let cursor = source.state.cursor.as_ref();
        let reason = if level == 0 { Reason::Level0Runs } else { Reason::LevelBytes };
        (source.state.runs.iter().rev())
            .flat_map(|run| behind_cursor(run, cursor).map(move |victim| (run, victim)))
            .filter(|(_, victim)| !view.busy.conflicts(level, &victim.range))
            .find_map(|(run, victim)| {
                let group = source.group(run, victim, config);
                let section = source.section(run, victim, &group);
                let choose = |range: &KeyRange| Some((source.choose(range, config)?, range.clone()));
                choose(&section).or_else(|| choose(&group)).or_else(|| choose(&victim.range))
            })
            .map(|(choice, range)| choice.plan(reason, &range, config))
    }

    /// The next step of a manual merge: what `level` holds of `range` (`None`: of everything) goes into the next
    /// level, never merely moved, so that what is obsolete goes away.
    #[must_use]
    pub fn pick_range(&self, view: &TreeView<'_>, level: u8, range: Option<&KeyRange>) -> RangePick {
        let Self::Cursor(config) = self;
        let Some(source) = Source::new(view, level) else { return RangePick::Done };
        let mut hull: Option<KeyRange> = None;
        let mut bytes = 0;
        for table in source.state.tables() {
            if range.is_some_and(|range| !table.range.overlaps(range)) {
                continue;
            }
            bytes += table.bytes();
            if level > 0 && hull.is_some() && bytes >= config.expansion_bytes_max {
                break;
            }
            hull = Some(hull.map_or_else(|| table.range.clone(), |hull| hull.hull(&table.range)));
        }
        let Some(hull) = hull else { return RangePick::Done };
        let choice = source.closed(&hull);
        if choice.is_busy() { RangePick::Busy } else { RangePick::Plan(choice.merge(Reason::Manual, None)) }
    }
}

/// The tables of `run` in the order in which the cursor reaches them.
fn behind_cursor<'a>(run: &'a Run, cursor: Option<&Key>) -> impl Iterator<Item = &'a Arc<TableMeta>> {
    let start = cursor.map_or(0, |cursor| run.lower_bound(cursor));
    run.iter_from(start).chain(run.iter().take(start))
}

/// A level to take tables from.
#[derive(Clone, Copy)]
struct Source<'a> {
    view: &'a TreeView<'a>,
    level: u8,
    state: &'a LevelState,
}

/// Tables to merge: victims of the source, partners of the target.
struct Choice<'a> {
    source: Source<'a>,
    victims: Vec<&'a Arc<TableMeta>>,
    partners: Vec<&'a Arc<TableMeta>>,
    /// Hull of the victims.
    victim_range: KeyRange,
    /// Hull of both.
    range: KeyRange,
}

impl<'a> Source<'a> {
    /// Nothing for the deepest level, which has no target.
    fn new(view: &'a TreeView<'a>, level: u8) -> Option<Self> {
        (usize::from(level) + 1 < LEVELS).then(|| Self { view, level, state: view.version.level(level) })
    }

    fn target(&self) -> u8 {
        self.level + 1
    }

    /// Hull of `victim` and those behind it in its run that make a group with it.
    fn group(self, run: &Run, victim: &TableMeta, config: &CursorConfig) -> KeyRange {
        let mut bytes = victim.bytes();
        let mut range = victim.range.clone();
        for table in run.iter_from(run.lower_bound(&victim.range.start)).skip(1) {
            bytes += table.bytes();
            let wider = range.hull(&table.range);
            if bytes > config.group_bytes || self.view.busy.conflicts(self.level, &wider) {
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

    /// Steps 2 and 3 for the tables that overlap `range`.
    fn closed(self, range: &KeyRange) -> Choice<'a> {
        let mut reach = range.clone();
        let mut victims = Vec::new();
        // Newest first: what a run adds to the range concerns older ones alone.
        for run in &self.state.runs {
            let overlapping: Vec<_> = run.overlapping(&reach).collect();
            reach = hull(reach, &overlapping);
            victims.extend(overlapping);
        }
        let victim_range = victims.first().map_or(reach, |first| hull(first.range.clone(), &victims));
        let partners = overlapping(self.view.version.level(self.target()), &victim_range);
        let range = hull(victim_range.clone(), &partners);
        Choice { source: self, victims, partners, victim_range, range }
    }

    /// Steps 2 to 4; nothing when a running job is in the way.
    fn choose(self, victim: &KeyRange, config: &CursorConfig) -> Option<Choice<'a>> {
        let choice = self.closed(victim);
        if choice.is_busy() {
            return None;
        }
        if choice.partners.is_empty() {
            return Some(choice);
        }
        let wider = self.closed(&choice.range);
        let gains = wider.victims.len() > choice.victims.len()
            && wider.partners.len() == choice.partners.len()
            && wider.bytes() < config.expansion_bytes_max
            && !wider.is_busy();
        Some(if gains { wider } else { choice })
    }
}

impl Choice<'_> {
    fn is_busy(&self) -> bool {
        let Source { view, level, .. } = self.source;
        view.busy.conflicts(level, &self.range) || view.busy.conflicts(self.source.target(), &self.range)
    }

    fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.victims.iter().chain(&self.partners).copied()
    }

    fn bytes(&self) -> u64 {
        self.tables().map(|table| table.bytes()).sum()
    }

    /// Step 5, of what was chosen for `range`.
    fn plan(self, reason: Reason, range: &KeyRange, config: &CursorConfig) -> Plan {
        let start = Key::default();
        let cursor = match (self.source.level, &range.end, &self.victim_range.end) {
            // Newer runs may have tables behind the range that victims reach over.
            (0, UpperBound::Excluded(end), _) | (1.., _, UpperBound::Excluded(end)) => end,
            (0, UpperBound::Unbounded, _) => &start,
            // Nothing comes behind: the victim gone, the cursor goes around the end.
            (1.., _, UpperBound::Unbounded) => &self.victim_range.start,
        };
        let mut plan = self.merge(reason, Some(cursor.clone()));
        let mut in_order = self.victims.clone();
        in_order.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        let disjoint = in_order.windows(2).all(|pair| pair[0].range.is_before(&pair[1].range));
        let movable =
            |victim: &&Arc<TableMeta>| self.grandparent_bytes(&victim.range) <= config.grandparent_bytes_max;
        if self.partners.is_empty() && disjoint && self.victims.iter().all(movable) {
            plan.kind = PlanKind::Move;
            plan.moves = self.victims.iter().map(|victim| victim.id).collect();
            plan.inputs.clear();
        }
        plan
    }

    fn grandparent_bytes(&self, range: &KeyRange) -> u64 {
        let after_target = self.source.view.version.levels().nth(usize::from(self.source.target()) + 1);
        let run = after_target.and_then(|(_, state)| state.run());
        run.map_or(0, |run| run.overlap_bytes(range))
    }

    fn merge(&self, reason: Reason, cursor: Option<Key>) -> Plan {
        let Source { view, level, .. } = self.source;
        let target = self.source.target();
        let input = |level| move |table: &&Arc<TableMeta>| PlanInput { level, table: table.id };
        let victims = self.victims.iter().map(input(level));
        Plan {
            keyspace: view.keyspace,
            kind: PlanKind::Merge,
            source: level,
            target,
            inputs: victims.chain(self.partners.iter().map(input(target))).collect(),
            moves: Vec::new(),
            range: self.range.clone(),
            bytes: self.bytes(),
            cursor,
            reason,
        }
    }
}

/// The tables of `state` that overlap `range`, newest run first.
fn overlapping<'a>(state: &'a LevelState, range: &KeyRange) -> Vec<&'a Arc<TableMeta>> {
    let mut tables = Vec::new();
    for run in &state.runs {
        tables.extend(run.overlapping(range));
    }
    tables
}

fn hull(range: KeyRange, tables: &[&Arc<TableMeta>]) -> KeyRange {
    tables.iter().fold(range, |hull, table| hull.hull(&table.range))
}
