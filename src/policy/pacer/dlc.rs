//! DLC's pace: level 0 is not compacted while the load is high.
//!
//! "DLC: A New Compaction Scheme for LSM-tree with High Stability and Low Latency" (EDBT 2021), sections 3 to 5. What differs,
//! and why, is in `docs/mechanisms/dlc.md`.
//!
//! *Parts.* A part merge makes one run of the flushed runs of level 0. That run is never part of a later one. It is told by
//! its size: no flush makes a run of more than about a memtable.

use std::ops::Range;
use std::time::Duration;

use super::estimate::{class, percent};
use super::{Admission, Budget, Deferral, GovernorConfig, JobClass, LoadClass, Pace, UserLoad};
use crate::catalog::Version;
use crate::options::{Bandwidth, Burst, LoadEstimator, Peak};
use crate::policy::{LoadState, Plan, Reason};

/// Runs of level 0 of more than this many memtables were made by a part merge.
const PART_MEMTABLES: u64 = 2;

/// Intra-L0 compactions of [`Peak::DelayPart`] take at least this many runs, as RocksDB's do (`FindIntraL0Compaction`).
const INTRA_L0_RUNS_MIN: usize = 4;

/// DLC's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlcConfig {
    /// Limits for writers.
    pub limits: GovernorConfig,
    /// What there is to share out.
    pub bandwidth: Bandwidth,
    /// What clients take of it.
    pub estimator: LoadEstimator,
    /// How often it is shared out anew.
    pub interval: Duration,
    /// The load is high above this part of the bandwidth, in percent.
    pub high_percent: u8,
    /// It is low below this part.
    pub low_percent: u8,
    /// Samples in a row after which it counts as high, and as low; at least 1.
    pub softness: (u32, u32),
    /// What may be done in level 0 while it is high.
    pub peak: Peak,
    /// What is done there once too much is in it.
    pub burst: Burst,
}

impl DlcConfig {
    pub(super) fn pace(&self, seen: &Pace, load: &LoadState, users: &UserLoad) -> Pace {
        let limit = self.bandwidth.limit(seen);
        let client = self.estimator.client_rate(seen, load, users, limit);
        let is_high = client > percent(limit, self.high_percent);
        // Writers who wait do little because of the store. That is no leisure.
        let is_low = client < percent(limit, self.low_percent) && !users.held_up;
        let (class, streak) = class(seen, (is_high, is_low), self.softness);
        Pace {
            class,
            streak,
            client_bytes_per_second: client,
            background_bytes_per_second: Some(self.bandwidth.rest(limit, client)),
            ..*seen
        }
    }

    pub(super) fn admit(&self, load: &LoadState, plan: &Plan) -> Admission {
        if load.pace.class == LoadClass::Low || planted!("level-0-not-delayed") {
            return Admission::Run;
        }
        match JobClass::of(plan) {
            JobClass::Level0 if self.resumes_full(load) => Admission::Run,
            JobClass::IntraLevel0 if self.peak == Peak::DelayPart || plan.reason == Reason::Part => {
                Admission::Run
            }
            JobClass::Level0 | JobClass::IntraLevel0 => Admission::Defer(Deferral::Peak),
            JobClass::Deep | JobClass::Upkeep => {
                let running = load.running.of(JobClass::Deep) + load.running.of(JobClass::Upkeep);
                if running == 0 { Admission::Run } else { Admission::Defer(Deferral::OneAtAPeak) }
            }
            JobClass::Manual => Admission::Run,
        }
    }

    /// Whether level 0 is compacted away although the load is high.
    fn resumes_full(&self, load: &LoadState) -> bool {
        match self.burst {
            Burst::Never => false,
            Burst::Full { runs } => load.l0_flushed_runs + load.l0_part_runs >= runs as u64,
            Burst::Part { parts, .. } => load.l0_part_runs >= parts as u64,
        }
    }

    pub(super) fn level0_part(&self, load: &LoadState, version: &Version) -> Option<Range<usize>> {
        if load.pace.class == LoadClass::Low {
            return None;
        }
        let runs_min = match (self.peak, self.burst) {
            (_, Burst::Part { runs, .. }) => runs,
            (Peak::DelayPart, Burst::Never | Burst::Full { .. }) => INTRA_L0_RUNS_MIN,
            (Peak::DelayFull, Burst::Never | Burst::Full { .. }) => return None,
        };
        let (flushed, _) = flushed_and_parts(version, load.active_bytes_max);
        (flushed >= runs_min).then_some(0..flushed)
    }
}

/// How many runs of level 0 are newer than every part, which are those that flushes made, and how many are parts. Memtables are
/// sealed at `memtable_bytes`.
pub fn flushed_and_parts(version: &Version, memtable_bytes: u64) -> (usize, usize) {
    let part_bytes = memtable_bytes.saturating_mul(PART_MEMTABLES);
    let runs = &version.level(0).runs;
    let is_part = |run: &crate::catalog::Run| run.bytes() > part_bytes;
    let flushed = runs.iter().position(is_part).unwrap_or(runs.len());
    (flushed, runs.iter().filter(|run| is_part(run)).count())
}

/// How fast jobs may go on: all alike.
pub(super) fn budget(load: &LoadState) -> Budget {
    Budget { bytes_per_second: load.pace.background_bytes_per_second, ..Budget::FREE }
}
