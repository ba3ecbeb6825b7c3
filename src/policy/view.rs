//! Views: what decisions depend on. A tree with the claims of running jobs, the space of packs, and a sample of the
//! load.

use std::collections::HashSet;

use super::{Costs, Pace, Plan, RunningJobs, TreeShape, UserLoad};
use crate::catalog::Version;
use crate::types::{KeyRange, KeyspaceId, LEVELS, PackId, Seq};

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

/// One sample of the load. Rates are recent averages over the time in which the work was going on; 0 while nothing has
/// been measured.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LoadState {
    /// Bytes in the memtables that take writes, of all keyspaces.
    pub active_bytes: u64,
    /// Bytes at which a memtable is sealed.
    pub active_bytes_max: u64,
    /// Sealed memtables that wait for their flush, of all keyspaces.
    pub sealed_memtables: u64,
    /// Bytes in all sealed memtables.
    pub sealed_bytes: u64,
    /// What level 0 counts for, in runs ([`super::Layout::level0_runs`]); the largest of all keyspaces.
    pub l0_runs: u64,
    /// Bytes of that level 0 that count as one run ([`super::Layout::level0_run_bytes`]); `None` if only its runs
    /// count.
    pub l0_run_bytes: Option<u64>,
    /// Bytes in level 0; the largest of all keyspaces.
    pub l0_bytes: u64,
    /// Runs of level 0 that flushes have made, newer than every part; the most of all keyspaces.
    pub l0_flushed_runs: u64,
    /// Runs of level 0 that part merges have made; the most of all keyspaces.
    pub l0_part_runs: u64,
    /// Bytes to compact until no level is over its limit, over all keyspaces.
    pub debt_bytes: u64,
    /// Each level, of all keyspaces together.
    pub levels: [LevelLoad; LEVELS],
    /// What flushes write, in bytes per second.
    pub flush_bytes_per_second: u64,
    /// What compactions write, in bytes per second.
    pub compaction_bytes_per_second: u64,
    /// Compactions and rewrites that are running.
    pub running: RunningJobs,
    /// Whether a memtable is being flushed.
    pub is_flushing: bool,
    /// Processors that the store may use; at least 1.
    pub processors: u64,
    /// Threads that compact.
    pub compaction_threads: u64,
    /// Writers that wait, or sleep, until there is less to do.
    pub waiting_writers: u64,
    /// Whether a caller waits until nothing is left to do.
    pub is_awaited: bool,
    /// What users did over the last interval.
    pub users: UserLoad,
    /// What the pacer has made of that.
    pub pace: Pace,
    /// The prices of the machine.
    pub costs: Costs,
}

/// A level of all keyspaces together, and what has passed through it since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LevelLoad {
    /// Bytes of its tables.
    pub bytes: u64,
    /// Bytes at which it is due, in the keyspaces that have tables in it; 0 for level 0, [`u64::MAX`] for one that never is.
    pub bytes_max: u64,
    /// Bytes that compactions have taken from the level above.
    pub moved_in: u64,
    /// Bytes that compactions have taken from it into the next level.
    pub moved_out: u64,
}

impl LoadState {
    /// How full the active memtable is, from 0 to 1.
    #[must_use]
    pub(super) fn active_fill(&self) -> f64 {
        (self.active_bytes as f64 / self.active_bytes_max.max(1) as f64).min(1.0)
    }

    /// Bytes of the active memtable that will be a run of level 0, or count as one.
    #[must_use]
    pub(super) fn l0_run_bytes(&self) -> f64 {
        self.l0_run_bytes.unwrap_or(u64::MAX).min(self.active_bytes_max).max(1) as f64
    }
}
