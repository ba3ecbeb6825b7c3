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
use super::{Admission, Budget, Deferral, GovernorConfig};
use crate::catalog::Version;
use crate::options::{Bandwidth, Burst, LoadEstimator, Peak};
use crate::policy::load::{JobClass, LoadClass, LoadState, Pace, UserLoad};
use crate::policy::plan::{Plan, Reason};

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
        let is_low = client < percent(limit, self.low_percent)
            && (!users.held_up || planted!("writers-who-wait-look-idle"));
        let (class, streak) = class(seen, (is_high, is_low), self.softness);
        Pace {
            class,
            streak,
            is_repaying: class == LoadClass::High && self.is_repaying(load),
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
            JobClass::Level0 if self.is_repaying(load) => Admission::Run,
            JobClass::IntraLevel0 if self.peak == Peak::DelayPart || plan.reason == Reason::Part => {
                Admission::Run
            }
            // Reads are what makes a merge within a level due, so it would come at the peak. The request is kept: tables stay
            // as often searched as they are.
            JobClass::Level0 | JobClass::IntraLevel0 | JobClass::IntraLevel => {
                Admission::Defer(Deferral::Peak)
            }
            JobClass::Deep | JobClass::Upkeep => {
                let running = load.running.of(JobClass::Deep) + load.running.of(JobClass::Upkeep);
                if running == 0 { Admission::Run } else { Admission::Defer(Deferral::OneAtAPeak) }
            }
            JobClass::Manual => Admission::Run,
        }
    }

    /// Whether level 0 is compacted away although the load is high. What has begun goes on until little is left: each job takes
    /// a part of the keys, and runs that are partly gone are no longer what the burst has begun with.
    fn is_repaying(&self, load: &LoadState) -> bool {
        let is_begun = load.pace.is_repaying && !planted!("burst-forgotten-half-way");
        self.resumes_full(load) || (is_begun && load.l0_flushed_runs + load.l0_part_runs > self.left_runs())
    }

    /// Runs of level 0 with which a compaction of all of it ends: about what was flushed meanwhile.
    fn left_runs(&self) -> u64 {
        match self.burst {
            Burst::Never => u64::MAX,
            Burst::Full { runs } => runs as u64 / 4,
            Burst::Part { runs, parts } => (runs as u64 / 4).min(parts as u64),
        }
    }

    /// Whether a burst begins.
    fn resumes_full(&self, load: &LoadState) -> bool {
        match self.burst {
            Burst::Never => false,
            Burst::Full { runs } => load.l0_flushed_runs + load.l0_part_runs >= runs as u64,
            Burst::Part { parts, .. } => load.l0_part_runs >= parts as u64,
        }
    }

    pub(super) fn level0_part(&self, load: &LoadState, version: &Version) -> Option<Range<usize>> {
        if load.pace.class == LoadClass::Low || self.is_repaying(load) {
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
    Budget { bytes_per_second: load.pace.background_bytes_per_second, is_urgent: false, ..Budget::FREE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing::{flushed, record, version};
    use crate::policy::config::PolicyConfig;
    use crate::policy::load::RunningJobs;
    use crate::policy::pacer::Pacer;

    const LIMIT: u64 = 350_000_000;

    fn dlc(change: impl FnOnce(&mut DlcConfig)) -> DlcConfig {
        let Pacer::Governor(limits) = PolicyConfig::leveldb().pacer else { panic!("LevelDB's") };
        let mut config = DlcConfig {
            limits,
            bandwidth: Bandwidth { device: Some(LIMIT), floor_percent: 5 },
            estimator: LoadEstimator::Blocks,
            interval: Duration::from_secs(1),
            high_percent: 86,
            low_percent: 51,
            softness: (1, 3),
            peak: Peak::DelayFull,
            burst: Burst::Never,
        };
        change(&mut config);
        config
    }

    /// A second in which clients brought this many megabytes into the cache.
    fn missed(megabytes: u64) -> UserLoad {
        UserLoad {
            period: Duration::from_secs(1),
            missed_bytes: megabytes * 1_000_000,
            ..UserLoad::default()
        }
    }

    #[test]
    fn the_load_is_high_at_once_and_low_after_three_samples() {
        let config = dlc(|_| {});
        let mut load = LoadState::default();
        let mut sample = |users: UserLoad| {
            load.pace = config.pace(&load.pace, &load, &users);
            (load.pace.class, load.pace.background_bytes_per_second.unwrap() / 1_000_000)
        };
        use LoadClass::{High, Low};
        assert_eq!(sample(missed(300)), (Low, 50), "table 2: 300 of 350 MB/s is not above the limit");
        assert_eq!(sample(missed(302)), (High, 48));
        assert_eq!(sample(missed(200)), (High, 150), "between the limits it stays what it was");
        assert_eq!([sample(missed(100)), sample(missed(100))], [(High, 250); 2]);
        assert_eq!(sample(missed(100)), (Low, 250));
        assert_eq!(sample(missed(900)), (High, 17), "the floor: a twentieth");
    }

    #[test]
    fn writers_who_wait_are_no_leisure() {
        let config = dlc(|config| config.softness = (1, 1));
        let high = Pace { class: LoadClass::High, ..Pace::default() };
        let class = |held_up| {
            let users = UserLoad { held_up, ..missed(1) };
            config.pace(&high, &LoadState::default(), &users).class
        };
        assert_eq!([class(false), class(true)], [LoadClass::Low, LoadClass::High]);
    }

    /// Runs of level 0, the newest first, in mebibytes.
    fn level0(runs: &[u64]) -> Version {
        let tables = runs.iter().zip(1..).map(|(mebibytes, id)| {
            let mut table = flushed(runs.len() as u64 + 1 - id, record(id, "a", "z"));
            table.extent.length = mebibytes << 20;
            (0, table)
        });
        version(tables.collect())
    }

    #[test]
    fn parts_are_told_by_their_size_and_are_never_part_of_another() {
        for (runs, expected) in [
            (&[][..], (0, 0)),
            (&[4, 4, 4], (3, 0)),
            (&[4, 4, 80, 4], (2, 1)),
            (&[80, 70, 90], (0, 3)),
            (&[8, 4], (2, 0)),
        ] {
            assert_eq!(flushed_and_parts(&level0(runs), 4 << 20), expected, "{runs:?}");
        }
    }

    #[test]
    fn a_part_takes_all_flushed_runs_once_they_are_enough() {
        let part = |config: DlcConfig, class, runs: &[u64]| {
            let pace = Pace { class, ..Pace::default() };
            let load = LoadState { active_bytes_max: 4 << 20, pace, ..LoadState::default() };
            config.level0_part(&load, &level0(runs))
        };
        use LoadClass::{High, Low};
        let bursts = dlc(|config| config.burst = Burst::Part { runs: 3, parts: 4 });
        assert_eq!(part(bursts, High, &[4, 4]), None);
        assert_eq!(part(bursts, High, &[4, 4, 4, 80, 4]), Some(0..3));
        assert_eq!(part(bursts, Low, &[4, 4, 4]), None, "then level 0 is compacted away");
        let delayed = dlc(|config| config.peak = Peak::DelayPart);
        assert_eq!([part(delayed, High, &[4; 3]), part(delayed, High, &[4; 4])], [None, Some(0..4)]);
        let full = dlc(|config| config.burst = Burst::Full { runs: 3 });
        assert_eq!(part(full, High, &[4; 9]), None);
    }

    #[test]
    fn at_a_peak_level_0_waits_for_a_burst_and_one_deep_job_runs() {
        let plan = |source, target| Plan {
            source,
            target,
            reason: if source == 0 { Reason::Level0Runs } else { Reason::LevelBytes },
            ..crate::policy::tests::any_plan()
        };
        let pace = Pace { class: LoadClass::High, ..Pace::default() };
        let load = |l0_flushed_runs, l0_part_runs, deep| LoadState {
            pace,
            l0_flushed_runs,
            l0_part_runs,
            running: RunningJobs([0, 0, deep, 0, 0, 0]),
            ..LoadState::default()
        };
        let admit =
            |burst, load: LoadState, plan: &Plan| dlc(|config| config.burst = burst).admit(&load, plan);
        use Admission::{Defer, Run};
        let (full, parts) = (Burst::Full { runs: 20 }, Burst::Part { runs: 20, parts: 4 });
        assert_eq!(admit(Burst::Never, load(50, 0, 0), &plan(0, 1)), Defer(Deferral::Peak));
        assert_eq!(admit(full, load(19, 0, 0), &plan(0, 1)), Defer(Deferral::Peak));
        assert_eq!(admit(full, load(20, 0, 0), &plan(0, 1)), Run);
        assert_eq!(admit(parts, load(20, 3, 0), &plan(0, 1)), Defer(Deferral::Peak));
        assert_eq!(admit(parts, load(0, 4, 0), &plan(0, 1)), Run);
        assert_eq!(admit(parts, load(20, 0, 0), &plan(0, 0)), Defer(Deferral::Peak), "no part");
        assert_eq!(admit(parts, load(20, 0, 0), &Plan { reason: Reason::Part, ..plan(0, 0) }), Run);
        assert_eq!(admit(Burst::Never, load(0, 0, 0), &plan(1, 2)), Run);
        assert_eq!(admit(Burst::Never, load(0, 0, 1), &plan(2, 3)), Defer(Deferral::OneAtAPeak));
    }

    #[test]
    fn a_burst_goes_on_until_little_of_level_0_is_left() {
        let config = dlc(|config| config.burst = Burst::Part { runs: 20, parts: 4 });
        let mut load = LoadState {
            pace: Pace { class: LoadClass::High, ..Pace::default() },
            l0_part_runs: 4,
            ..LoadState::default()
        };
        load.pace = config.pace(&load.pace, &load, &missed(340));
        let plan = Plan { source: 0, target: 1, ..crate::policy::tests::any_plan() };
        let plan = Plan { reason: Reason::Level0Runs, ..plan };
        // The first job took so much of the oldest part that this is none any more.
        (load.l0_flushed_runs, load.l0_part_runs) = (2, 3);
        assert_eq!(config.admit(&load, &plan), Admission::Run);
        load.pace = config.pace(&load.pace, &load, &missed(340));
        assert_eq!(config.admit(&load, &plan), Admission::Run);
        (load.l0_flushed_runs, load.l0_part_runs) = (3, 0);
        load.pace = config.pace(&load.pace, &load, &missed(340));
        assert_eq!(config.admit(&load, &plan), Admission::Defer(Deferral::Peak));
        load.l0_flushed_runs = 9;
        assert_eq!(config.admit(&load, &plan), Admission::Defer(Deferral::Peak), "it has ended");
    }

    #[test]
    fn i11_limits_for_writers_and_callers_who_wait_beat_every_delay() {
        let pacer = Pacer::Dlc(dlc(|_| {}));
        let plan =
            Plan { reason: Reason::Level0Runs, source: 0, target: 1, ..crate::policy::tests::any_plan() };
        let pace = Pace { class: LoadClass::High, background_bytes_per_second: Some(1), ..Pace::default() };
        let load = LoadState { pace, ..LoadState::default() };
        let is_held = |load: &LoadState| {
            let budget = pacer.budget(load, &UserLoad::default(), JobClass::Level0);
            let is_limited = budget != Budget::FREE;
            assert_eq!(is_limited, pacer.admit(load, &plan) != Admission::Run);
            is_limited
        };
        assert!(is_held(&load));
        for pressed in [
            LoadState { l0_runs: 8, ..load },
            LoadState { debt_bytes: 64 << 30, ..load },
            LoadState { waiting_writers: 1, ..load },
            LoadState { is_awaited: true, ..load },
        ] {
            assert!(!is_held(&pressed), "{pressed:?}");
        }
    }
}
