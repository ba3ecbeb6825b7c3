//! Pickers: what is compacted or moved next.
//!
//! `Cursor` follows LevelDB (`db/version_set.cc`: `PickCompaction`, `SetupOtherInputs`, `IsTrivialMove`):
//!
//! 1. The victim is the first table behind the level's cursor, then the ones after it, around the end.
//! 2. In level 0, whatever is older and overlaps a victim is a victim, too: inputs are downward closed (I2).
//! 3. All tables of the target that overlap the victims are target inputs. If others of the target overlap those, the
//!    target is folded there first (`fold`).
//! 4. Victims are added where that brings in no further target input and the whole stays below a limit.
//! 5. Victims that are disjoint and have no target inputs are moved, unless one overlaps too much of the level after
//!    the target: its later compaction would cost more than cutting it up now.
//!
//! It differs from LevelDB in these ways:
//!
//! * A victim that overlaps the claim of a running job is passed over, so several jobs can run in one level (I12).
//! * The victim is joined by the tables behind it in its run, up to a number of bytes, so that small tables do not
//!   mean small jobs with a barrier each. (BoLT, section 4.2: group compaction.)
//! * Level 0 is compacted in sections (`level0`). LevelDB takes whatever overlaps a victim, newer tables too, and
//!   what overlaps those: for keys in no order, all of levels 0 and 1 in one job. Here newer tables may stay. So
//!   inputs and outputs exist together for a shorter time and in less space, and two jobs can work on level 0.
//! * Readers may pay for less: runs of level 0 become one of them (`intra_l0`).
//! * With `settle` (BoLT's settled compaction) victims are judged one by one (`choice`). Target inputs are what
//!   overlaps a victim, not what lies between victims. A victim that step 5 would move by itself moves.
//!
//! `LeastOverlap` takes the group's other victims wherever their compaction costs least (`overlap`). `RatioWindow` is
//! HyperLevelDB's (`window`): it takes level 0 by whole runs, and chooses the level by itself.
//!
//! `Components` puts on top of the target what it takes, and merges nothing with what is there (`components`). `Guards` takes
//! what lies between the guards of a level (`guards`). `Levels` merges whole levels, or all that lies in a part of one
//! (`levels`). `Drain` takes geared levels down (`drain`).
//!
//! Where what goes down is merged, tables are also taken for what their tombstones hide (`tombstones`).

mod choice;
mod components;
mod cursor;
mod drain;
mod fold;
mod guards;
mod intra_l0;
mod level0;
mod levels;
mod overlap;
mod tombstones;
mod window;
mod within;

use std::ops::Range;
use std::sync::Arc;

use super::closure::{components, connected};
use super::expiry::{alone, within_level};
use crate::catalog::{LevelState, TableMeta};
use crate::policy::layout::GuardedConfig;
use crate::policy::plan::{Plan, PlanKind, Reason};
use crate::policy::view::TreeView;
use crate::types::{Key, KeyRange, LEVELS};

use choice::Choice;
pub use components::ComponentsConfig;
pub use intra_l0::Evenness;
pub use window::WindowConfig;

/// The pickers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picker {
    /// Victims behind the level's cursor, one after the other.
    Cursor(PickerConfig),
    /// Victims that overlap little of the target, and some behind the cursor, so that all have their turn.
    LeastOverlap(PickerConfig),
    /// The window of neighbours that holds most for each byte that it overlaps.
    RatioWindow(WindowConfig),
    /// The fullest guards of a level; the limits are those of manual compactions.
    Guards(PickerConfig, GuardedConfig),
    /// Tables that overlap each other, which go on top of the target.
    Components(ComponentsConfig),
    /// Whole levels, as one if a group is of 0 bytes, or else in parts of about that many.
    Levels(PickerConfig),
    /// Of a pair of geared levels what goes down, in units of a group.
    Drain(PickerConfig),
}

/// Limits of the pickers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PickerConfig {
    /// The first victim is joined by others up to this many bytes; 0 for a single one.
    pub group_bytes: u64,
    /// Below level 0, a group is at most one of this many equal parts of its level, but at least one table.
    pub group_parts: u64,
    /// Whether victims are judged one by one, or else are all compacted or all moved.
    pub settle: bool,
    /// Victims are added while all inputs together stay below this many bytes. Bounds a manual compaction, too.
    pub expansion_bytes_max: u64,
    /// A table is moved only if it overlaps at most this many bytes of the level after the target.
    pub grandparent_bytes_max: u64,
}

/// What there is to do for a manual compaction of a range.
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
        if let Self::Guards(_, guarded) = self {
            return guards::choose(guarded, view, level);
        }
        if let Self::Levels(config) = self
            && view.shape.merges_within[usize::from(level)]
        {
            return levels::within(view, config, level);
        }
        let source = self.source(view, level)?;
        let reason = if level == 0 { Reason::Level0Runs } else { Reason::LevelBytes };
        let with_cursor = |(choice, cursor)| (choice, Some(cursor));
        let (choice, cursor) = match self {
            Self::RatioWindow(config) => (window::choose(source, config)?, None),
            Self::Components(components) => return components::choose(source, components),
            Self::Levels(_) => return levels::next(source),
            Self::Drain(_) => return drain::next(source),
            _ if level == 0 => (level0::choose(source)?, None),
            Self::LeastOverlap(_) => overlap::choose(source).map(with_cursor)?,
            Self::Cursor(_) | Self::Guards(..) => cursor::choose(source).map(with_cursor)?,
        };
        source.plan(&choice, reason, cursor)
    }

    /// The levels that are due by `scores`, in the order in which they are to be taken; `None` for the order of their scores.
    #[must_use]
    pub fn turns(&self, scores: &[f64; LEVELS]) -> Option<Vec<u8>> {
        match self {
            Self::Cursor(_)
            | Self::LeastOverlap(_)
            | Self::Levels(_)
            | Self::Guards(..)
            | Self::Components(_) => None,
            Self::RatioWindow(_) => Some(window::turns(scores)),
            Self::Drain(_) => Some(drain::turns(scores)),
        }
    }

    /// The next compaction of a dense part of level 0, one that holds at least one part in `parts` of what it meets;
    /// if there is one among the best that no running job is in the way of.
    #[must_use]
    pub fn pick_dense(&self, view: &TreeView<'_>, parts: u64) -> Option<Plan> {
        let source = self.source(view, 0)?;
        source.plan(&level0::choose_dense(source, parts)?, Reason::Idle, None)
    }

    /// The next intra-L0 compaction of the runs of level 0 in `window`, if there is one that no running job is in the
    /// way of.
    #[must_use]
    pub fn intra_l0(&self, view: &TreeView<'_>, window: &Range<usize>, evenness: Evenness) -> Option<Plan> {
        intra_l0::choose(self.source(view, 0)?, window, evenness)
    }

    /// The next step of a manual compaction: what `level` holds of `range` (`None`: of everything) goes into the next
    /// level, never merely moved, so that what is obsolete goes away.
    #[must_use]
    pub fn pick_range(&self, view: &TreeView<'_>, level: u8, range: Option<&KeyRange>) -> RangePick {
        let Some(source) = self.source(view, level) else { return RangePick::Done };
        let mut hull: Option<KeyRange> = None;
        let mut bytes = 0;
        let wanted = |table: &&Arc<TableMeta>| range.is_none_or(|range| table.range.overlaps(range));
        let mut tables: Vec<_> = source.state.tables().filter(wanted).collect();
        tables.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        for table in tables {
            bytes += table.bytes();
            if level > 0 && hull.is_some() && bytes >= source.config.expansion_bytes_max {
                break;
            }
            hull = Some(hull.map_or_else(|| table.range.clone(), |hull| hull.hull(&table.range)));
        }
        let Some(hull) = hull else { return RangePick::Done };
        // Below level 0 the caller goes on behind what was taken, so nothing of that range may stay above it.
        let folds = self.folds(view, level);
        let victims = match level {
            0 => source.closed(&hull),
            _ if folds => source.state.overlapping(&hull).collect(),
            _ => connected(source.state, &hull),
        };
        if let Some(table) = fold::tangled(source.state, &victims).filter(|_| folds) {
            return manual(fold::at(view, source.config, level, table));
        }
        let choice = Choice::of(source, victims).map(Choice::all_compacted);
        let Some(choice) = choice else { return RangePick::Done };
        if choice.is_busy() { RangePick::Busy } else { manual(source.plan(&choice, Reason::Manual, None)) }
    }

    /// Whether a level that is to have one run, and has several, is folded step by step. Otherwise what is compacted takes
    /// with it all that is connected there.
    fn folds(&self, view: &TreeView<'_>, level: u8) -> bool {
        let in_one = matches!(self, Self::Levels(PickerConfig { group_bytes: 0, .. }));
        level > 0 && !view.shape.stacks[usize::from(level)] && !in_one
    }

    /// The next step of a manual compaction of the deepest level into itself: tables that overlap `range` and are `due`,
    /// or overlap each other. Levels above it are the caller's to compact down before.
    #[must_use]
    pub fn pick_alone(
        &self,
        view: &TreeView<'_>,
        range: &KeyRange,
        is_due: impl Fn(&TableMeta) -> bool,
    ) -> RangePick {
        let config = self.config();
        let Some(level) = view.version.deepest().filter(|level| *level > 0) else { return RangePick::Done };
        let state = view.version.level(level);
        let overlaps = |table: &TableMeta| table.range.overlaps(range);
        let is_due = |table: &TableMeta| overlaps(table) && is_due(table);
        let plan = match &state.runs[..] {
            [run] => alone(view, level, run, config.expansion_bytes_max, is_due),
            [upper @ .., oldest] if self.folds(view, level) => {
                if let Some(table) = upper.iter().find_map(|run| run.overlapping(range).next()) {
                    return manual(fold::at(view, config, level, table));
                }
                alone(view, level, oldest, config.expansion_bytes_max, is_due)
            }
            _ => {
                let wanted = |tables: &Vec<&Arc<TableMeta>>| match tables[..] {
                    [table] => is_due(table),
                    _ => tables.iter().any(|table| overlaps(table)),
                };
                let tables = components(state).into_iter().find(wanted).unwrap_or_default();
                let claim =
                    tables.iter().map(|table| table.range.clone()).reduce(|hull, range| hull.hull(&range));
                let tables: Vec<&TableMeta> = tables.into_iter().map(|table| &**table).collect();
                within_level(view, level, PlanKind::Compact, &tables, claim.into_iter().collect())
            }
        };
        let Some(plan) = plan else { return RangePick::Done };
        manual(Some(plan).filter(|plan| !view.busy.conflicts_with(plan)))
    }

    /// The next merge within a level, if there is one that no running job is in the way of: of tables of the largest level
    /// that readers search often, or of those of the deepest that hold many tombstones; or a fold of a level that is to
    /// have one run.
    #[must_use]
    pub fn pick_within(&self, view: &TreeView<'_>) -> Option<Plan> {
        match self {
            Self::Components(components) => within::choose(view, components),
            Self::Cursor(config)
            | Self::LeastOverlap(config)
            | Self::Drain(config)
            | Self::RatioWindow(WindowConfig { victims: config, .. }) => fold::next(view, config),
            Self::Levels(_) | Self::Guards(..) => None,
        }
    }

    /// The next compaction of tables whose tombstones hide at least one part in `parts` of what it reads, the highest level first; or
    /// of tables with little else than tombstones that hide nothing. Only where what goes down is merged.
    #[must_use]
    pub fn pick_tombstones(&self, view: &TreeView<'_>, parts: u64) -> Option<Plan> {
        if !matches!(self, Self::Cursor(_) | Self::LeastOverlap(_)) {
            return None;
        }
        let has_some = |level: &u8| view.version.level(*level).runs.iter().any(|run| run.tombstones() > 0);
        let mut levels = (0..LEVELS as u8).filter(has_some);
        let down = levels.find_map(|level| {
            let source = self.source(view, level).filter(|_| !view.shape.stacks[usize::from(level) + 1])?;
            source.plan(&tombstones::choose(source, parts)?, Reason::Tombstones, None)
        });
        down.or_else(|| tombstones::bare(view, self.config()))
    }

    /// How often a table of so many bytes of the largest level is searched by lookups before it is merged with those that
    /// overlap it; `None` for never.
    #[must_use]
    pub fn accesses_max(&self, bytes: u64) -> Option<u64> {
        match self {
            Self::Components(components) => components.accesses_max(bytes),
            Self::Cursor(_)
            | Self::LeastOverlap(_)
            | Self::RatioWindow(_)
            | Self::Levels(_)
            | Self::Drain(_)
            | Self::Guards(..) => None,
        }
    }

    /// The limits that all pickers have.
    fn config(&self) -> &PickerConfig {
        match self {
            Self::Cursor(config)
            | Self::LeastOverlap(config)
            | Self::Levels(config)
            | Self::Drain(config)
            | Self::Guards(config, _)
            | Self::RatioWindow(WindowConfig { victims: config, .. }) => config,
            Self::Components(components) => &components.base,
        }
    }

    /// Bytes of a group, at most.
    #[must_use]
    pub fn group_bytes(&self) -> u64 {
        self.config().group_bytes
    }

    /// Nothing for the deepest level, which has no target.
    fn source<'a>(&'a self, view: &'a TreeView<'a>, level: u8) -> Option<Source<'a>> {
        let config = self.config();
        let scattered = matches!(self, Self::LeastOverlap(_)) && level > 0;
        let (_, target) = view.version.levels().nth(usize::from(level) + 1)?;
        let state = view.version.level(level);
        let one_by_one = config.settle || scattered;
        let folds = self.folds(view, level + 1);
        Some(Source { view, level, state, target, stacks: false, folds, one_by_one, config })
    }
}

/// A step of a manual compaction; `None` if a running job is in its way.
fn manual(plan: Option<Plan>) -> RangePick {
    plan.map_or(RangePick::Busy, |plan| RangePick::Plan(Plan { reason: Reason::Manual, ..plan }))
}

/// A level to take tables from.
#[derive(Clone, Copy)]
struct Source<'a> {
    view: &'a TreeView<'a>,
    level: u8,
    state: &'a LevelState,
    /// The next level; nothing if what comes there lies on top of it.
    target: &'a LevelState,
    /// Whether it does.
    stacks: bool,
    /// Whether tangled tables of the target are folded, or else taken with all that is connected.
    folds: bool,
    config: &'a PickerConfig,
    /// Whether target inputs are sought for each victim, or else for all that lies between the first and the last.
    one_by_one: bool,
}

impl Source<'_> {
    /// The plan of `choice`, or the fold that must come before it; nothing if a running job is in the way of that.
    fn plan(self, choice: &Choice<'_>, reason: Reason, cursor: Option<Key>) -> Option<Plan> {
        match choice.tangle() {
            Some(table) => {
                fold::at(self.view, self.config, self.level + 1, table).map(|fold| Plan { reason, ..fold })
            }
            None => Some(choice.plan(reason, cursor)),
        }
    }

    /// Bytes that a group below level 0 may have.
    fn group_bytes(self) -> u64 {
        let PickerConfig { group_bytes, group_parts, .. } = *self.config;
        group_bytes.min(self.state.bytes() / group_parts.max(1))
    }

    /// Whether a running job has claimed a part of `range` in this level or the target.
    fn is_busy(self, range: &KeyRange) -> bool {
        let busy = self.view.busy;
        !planted!("running-jobs-not-avoided")
            && (busy.conflicts(self.level, range) || busy.conflicts(self.level + 1, range))
    }
}
