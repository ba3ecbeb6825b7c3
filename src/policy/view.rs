//! Views: what decisions depend on besides the load. A tree with the claims of running jobs, and the space of packs.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::catalog::Version;
use crate::policy::devices::DeviceView;
use crate::policy::plan::Plan;
use crate::types::{KeyRange, KeyspaceId, LEVELS, PackId, Prefix, RangeTombstone, Seq, TableId};

/// One tree, as pickers see it.
#[derive(Clone, Copy, Debug)]
pub struct TreeView<'a> {
    /// Whose tree.
    pub keyspace: KeyspaceId,
    /// The tables.
    pub version: &'a Version,
    /// What running jobs have claimed of this tree.
    pub busy: &'a Claims,
    /// The tree measured by the layout; must belong to `version`.
    pub shape: &'a TreeShape,
    /// The numbers at which somebody reads, ascending.
    pub pins: &'a [Seq],
    /// Range deletes that may hide whole tables. All readers that `pins` does not name see them.
    pub deletes: &'a [RangeTombstone],
    /// Which value tables are to be left, if any are.
    pub collection: Option<&'a Collection>,
}

#[cfg(test)]
impl<'a> TreeView<'a> {
    /// A tree of the first keyspace, without readers at past numbers and without range deletes.
    pub fn of(version: &'a Version, busy: &'a Claims, shape: &'a TreeShape) -> Self {
        TreeView { keyspace: KeyspaceId(0), version, busy, shape, pins: &[], deletes: &[], collection: None }
    }
}

/// A choice of value tables that are to be left: each job that meets a pointer into one writes the value anew.
///
/// Invariant: a table is listed as clean only if the job that wrote it began after the choice. So it has no such pointer.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// The value tables.
    pub tables: Arc<BTreeSet<TableId>>,
    /// Tables without a pointer into them.
    pub clean: HashSet<TableId>,
}

impl Collection {
    /// Whether both are the same choice, whatever is clean by now.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tables, &other.tables)
    }
}

/// Claims of the running jobs of one tree: no two jobs work on overlapping ranges of a level (I12).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Claims {
    claims: Vec<(u8, KeyRange)>,
}

impl Claims {
    /// Whether a running job has claimed a part of `range` in `level`.
    #[must_use]
    pub fn conflicts(&self, level: u8, range: &KeyRange) -> bool {
        self.claims.iter().any(|(claimed, other)| *claimed == level && other.overlaps(range))
    }

    /// Whether `plan` could not run beside the running jobs.
    #[must_use]
    pub fn conflicts_with(&self, plan: &Plan) -> bool {
        claims_of(plan).any(|(level, range)| self.conflicts(level, range))
    }

    /// Claims what `plan` touches in its source and target level.
    pub fn claim(&mut self, plan: &Plan) {
        debug_assert!(!self.conflicts_with(plan), "I12: two jobs work on one range");
        self.claims.extend(claims_of(plan).map(|(level, range)| (level, range.clone())));
    }

    /// Takes back what [`Claims::claim`] claimed.
    pub fn release(&mut self, plan: &Plan) {
        let mine: HashSet<_> = claims_of(plan).collect();
        let before = self.claims.len();
        // Claims of other jobs are disjoint from these, so none of them is equal to one.
        self.claims.retain(|(level, range)| !mine.contains(&(*level, range)));
        debug_assert!(self.claims.len() < before, "I12: a job releases what it has not claimed");
    }

    /// Whether nothing is claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

fn claims_of(plan: &Plan) -> impl Iterator<Item = (u8, &KeyRange)> {
    let levels = [plan.source, plan.target].into_iter();
    levels.flat_map(move |level| plan.claims.iter().map(move |range| (level, range)))
}

/// The space that tables take: how much of it is dead, and in which packs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpaceView {
    /// All packs together.
    pub totals: SpaceTotals,
    /// Packs that may be rewritten; empty unless [`SpaceTotals::is_due`].
    pub packs: Vec<PackView>,
    /// Bytes that can still be written to the device.
    pub free_bytes: u64,
    /// What users read from several devices.
    pub reads: ReadView,
}

/// Users' reads from several devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadView {
    /// The devices; empty if no table is to move for its readers.
    pub devices: Vec<DeviceView>,
    /// Bytes that a move may write before it gives any back.
    pub bytes_max: u64,
    /// Packs that are left alone for a while.
    pub blocked: HashSet<PackId>,
    /// The age at which tables tell what was read of them ([`Heat::read_bytes`](crate::catalog::Heat::read_bytes)).
    pub age: u16,
}

/// Sums over all packs that could be rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceTotals {
    /// The file system has said that it knows no holes.
    pub no_holes: bool,
    /// Somebody needs space.
    pub is_short: bool,
    /// Live tables, in bytes.
    pub live_bytes: u64,
    /// Dead tables that take up space, in bytes.
    pub dead_bytes: u64,
    /// Number of packs of which very little is left: [`PackView::is_sparse`].
    pub sparse_packs: u64,
}

/// One pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackView {
    /// Which.
    pub pack: PackId,
    /// Length of the file, holes included.
    pub length: u64,
    /// Bytes of dead tables that take up space.
    pub dead_bytes: u64,
    /// Bytes of holes.
    pub hole_bytes: u64,
}

/// A version measured by a layout.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TreeShape {
    /// Fill of each level; due from 1 on.
    pub scores: [f64; LEVELS],
    /// Of each level, whether what comes there from above lies on top of it.
    pub stacks: [bool; LEVELS],
    /// Of each level, whether it becomes one run in its place when it is due, instead of going to the next level.
    pub merges_within: [bool; LEVELS],
    /// Bytes to compact until no level is due, as far as can be told.
    pub debt_bytes: u64,
    /// What readers have paid for each run of level 0, in bytes of compaction ([`super::Costs::seeks_worth`],
    /// [`Layout::filter_probes_worth`](super::Layout::filter_probes_worth)).
    pub read_debt_bytes: u64,
    /// Whether level 0 is due for the number of its runs alone: it is not full by its bytes, nor have readers paid for it.
    pub only_runs_due: bool,
    /// Whether users leave the store alone, so that a job holds up nobody.
    pub idle: bool,
    /// The share of what is flushed that replaces something older (the overwrite ratio).
    pub overwrite_ratio: f64,
    /// What has expired of it; `None` if values live for ever.
    pub expiring: Option<Expiring>,
    /// Whether no table is compacted alone, and no level folded, for its own sake (unless a caller asks for it), because that
    /// failed a while ago.
    pub put_off: bool,
    /// The shortest dead range of a value table that is punched; `None` if there are no holes.
    pub hole_bytes: Option<u64>,
    /// The rule by which tables are cut, if they are cut between prefixes.
    pub prefix: Option<Prefix>,
    /// Tables of the largest level that lookups have searched as often as [`super::Picker::accesses_max`] says, those with most
    /// searches first.
    pub searched: [Option<TableId>; SEARCHED_MAX],
}

/// Requests for merges within the largest level that are known at a time. The others are found when these are done.
pub const SEARCHED_MAX: usize = 8;

/// The time that values of a tree live, and what it has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expiring {
    /// Values of this second or before have expired, in seconds since 1970.
    pub upto: u64,
    /// Seconds for which values live.
    pub ttl: u64,
    /// The oldest number at which somebody reads, if anybody does.
    pub oldest_pin: Option<Seq>,
}
