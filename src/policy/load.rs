//! The load: what pacers go by, as plain values.

use std::time::Duration;

use crate::policy::costs::Costs;
use crate::policy::plan::{Plan, Reason};
use crate::types::LEVELS;

/// One sample of the load. Rates are recent averages over the time in which the work was going on; 0 while nothing has
/// been measured.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LoadState {
    /// Bytes in the memtables that take writes, of all keyspaces.
    pub active_bytes: u64,
    /// Bytes at which a memtable is sealed.
    pub active_bytes_max: u64,
    /// Sealed memtables that wait for their flush, of all keyspaces. Small ones that are flushed together count as one.
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
    /// Bytes of values that lie apart from their keys, of all keyspaces.
    pub value_bytes: u64,
    /// Dead bytes that lie beside these and take up space.
    pub dead_value_bytes: u64,
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

/// What users did over a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UserLoad {
    /// How long the while was.
    pub period: Duration,
    /// Number of blocks that lookups and iterators asked for, and of those of 4 KiB that iterators read in longer pieces.
    pub asked: u64,
    /// Number of reads of lookups and iterators that were not answered from memory.
    pub reads: u32,
    /// What those took together.
    pub read_time: Duration,
    /// Bytes that those read.
    pub read_bytes: u64,
    /// Bytes of keys and values that were written.
    pub written_bytes: u64,
    /// Keys that were looked up.
    pub lookups: u64,
    /// Seeks of iterators.
    pub seeks: u64,
    /// Bytes of keys and values that lookups and iterators returned.
    pub returned_bytes: u64,
    /// Bytes of the blocks that were not in the cache when they were asked for.
    pub missed_bytes: u64,
    /// Bytes that were written to the log.
    pub log_bytes: u64,
    /// Bytes that were read from and written to files, for whatever cause.
    pub file_bytes: u64,
    /// Whether writers were slowed or stopped meanwhile.
    pub held_up: bool,
}

/// What a job is to pacers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobClass {
    /// Level 0 into level 1, and the folds of level 1 that come before it.
    Level0,
    /// Within level 0.
    IntraLevel0,
    /// A level below level 0 into the next one, and what comes before it.
    Deep,
    /// Within a level below level 0: for readers, or a fold that no compaction waits for.
    IntraLevel,
    /// What makes space: rewrites, and compactions of what has expired, or was deleted or released.
    Upkeep,
    /// A caller asked for it and waits.
    Manual,
}

impl JobClass {
    /// Number of classes.
    pub const COUNT: usize = Self::Manual as usize + 1;

    /// The class of the job that `plan` describes.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        match plan.reason {
            Reason::Manual => Self::Manual,
            Reason::Tombstones if plan.target > plan.source => Self::Upkeep,
            Reason::Searched | Reason::Tombstones | Reason::Fold => Self::IntraLevel,
            Reason::Expiry | Reason::Deleted | Reason::Hidden | Reason::Released | Reason::Values => {
                Self::Upkeep
            }
            Reason::DeadSpace | Reason::Read | Reason::Room => Self::Upkeep,
            Reason::Level0Runs | Reason::Readers | Reason::Idle | Reason::Part => match plan.target {
                0 => Self::IntraLevel0,
                _ => Self::Level0,
            },
            Reason::LevelBytes | Reason::LevelRuns => Self::Deep,
        }
    }
}

/// Jobs that are running, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunningJobs(pub [u64; JobClass::COUNT]);

impl RunningJobs {
    /// Those of `class`.
    #[must_use]
    pub fn of(&self, class: JobClass) -> u64 {
        self.0[class as usize]
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// How high the load is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoadClass {
    /// Clients leave enough of the device.
    #[default]
    Low,
    /// Clients are at a peak.
    High,
}

/// What a pacer has made of the samples up to now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// How high the load is.
    pub class: LoadClass,
    /// Number of samples in a row that speak for the other class.
    pub streak: u32,
    /// Whether level 0 is being compacted away although the load is high. It takes several jobs.
    pub is_repaying: bool,
    /// What clients take of the device, in bytes per second, as the pacer's estimator has it.
    pub client_bytes_per_second: u64,
    /// What all jobs together may read and write, in bytes per second; `None` if nothing limits them.
    pub background_bytes_per_second: Option<u64>,
    /// The most that was read and written together lately, in bytes per second.
    pub device_bytes_per_second: u64,
    /// The shortest mean time of a user's read lately, in nanoseconds; 0 before the first.
    pub quick_read_nanos: u64,
    /// Since when it is counted what comes into each level and leaves it.
    pub rounds: [Round; LEVELS],
}

/// The beginning of a level's round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// Bytes that the level held; 0 if none has begun.
    pub bytes: u64,
    /// What had come into it by then.
    pub moved_in: u64,
    /// What had left it by then.
    pub moved_out: u64,
}
