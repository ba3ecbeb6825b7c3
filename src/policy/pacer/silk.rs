//! SILK's pace: compactions get the bandwidth that clients leave, and those of level 0 go first.
//!
//! "SILK: Preventing Latency Spikes in Log-Structured Merge Key-Value Stores" (ATC 2019), section 4. The policy is the one that
//! the paper describes. (The authors' code never resumes some of the compactions that it has paused.) Its constants, in parts of
//! the device's bandwidth, are those of the authors' benchmark, `LongPeakTest` in `tools/db_bench_tool.cc`.

use std::time::Duration;

use super::estimate::{class, percent};
use super::{Admission, Budget, Deferral, GovernorConfig};
use crate::options::{Bandwidth, LoadEstimator};
use crate::policy::load::{JobClass, LoadClass, LoadState, Pace, UserLoad};

/// In percent of the device's bandwidth: smaller changes leave the limit of compactions as it is.
const STEP_PERCENT: u8 = 5;

/// SILK's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SilkConfig {
    /// Limits for writers.
    pub limits: GovernorConfig,
    /// What there is to share out.
    pub bandwidth: Bandwidth,
    /// What clients take of it.
    pub estimator: LoadEstimator,
    /// How often it is shared out anew.
    pub interval: Duration,
    /// Clients that take more than this are at a peak, in percent.
    pub pause_percent: u8,
}

impl SilkConfig {
    pub(super) fn pace(&self, seen: &Pace, load: &LoadState, users: &UserLoad) -> Pace {
        let limit = self.bandwidth.limit(seen);
        let client = self.estimator.client_rate(seen, load, users, limit);
        let is_high = client > percent(limit, self.pause_percent);
        let (class, streak) = class(seen, (is_high, !is_high), (1, 1));
        let rest = self.bandwidth.rest(limit, client);
        let step = percent(limit, STEP_PERCENT);
        let kept = seen.background_bytes_per_second.filter(|kept| kept.abs_diff(rest) < step);
        Pace {
            class,
            streak,
            client_bytes_per_second: client,
            background_bytes_per_second: Some(kept.unwrap_or(rest)),
            ..*seen
        }
    }

    pub(super) fn admit(&self, load: &LoadState, class: JobClass) -> Admission {
        match class {
            JobClass::Deep | JobClass::IntraLevel if load.pace.class == LoadClass::High => {
                Admission::Defer(Deferral::Peak)
            }
            // Upkeep bounds space, and waits for nobody; it is limited as all jobs are.
            JobClass::Level0
            | JobClass::IntraLevel0
            | JobClass::Deep
            | JobClass::IntraLevel
            | JobClass::Upkeep
            | JobClass::Manual => Admission::Run,
        }
    }
}

/// How fast jobs of `class` may go on.
pub(super) fn budget(load: &LoadState, class: JobClass) -> Budget {
    let deep = load.running.of(JobClass::Deep) + load.running.of(JobClass::IntraLevel);
    let is_preempted = load.running.of(JobClass::Level0) > 0 && deep >= load.compaction_threads.max(1);
    let is_deep = matches!(class, JobClass::Deep | JobClass::IntraLevel);
    let is_suspended = is_deep && (load.pace.class == LoadClass::High || is_preempted);
    Budget {
        bytes_per_second: load.pace.background_bytes_per_second,
        is_suspended,
        is_urgent: false,
        ..Budget::FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::PolicyConfig;
    use crate::policy::load::RunningJobs;
    use crate::policy::pacer::Pacer;

    fn silk() -> SilkConfig {
        let Pacer::Governor(limits) = PolicyConfig::leveldb().pacer else { panic!("LevelDB's") };
        SilkConfig {
            limits,
            bandwidth: Bandwidth { device: Some(200_000_000), floor_percent: 5 },
            estimator: LoadEstimator::Operations,
            interval: Duration::from_millis(10),
            pause_percent: 75,
        }
    }

    #[test]
    fn jobs_get_the_rest_in_steps_and_never_less_than_the_floor() {
        let mut load = LoadState::default();
        let mut sample = |megabytes: u64| {
            let (period, returned_bytes) = (Duration::from_secs(1), megabytes * 1_000_000);
            let users = UserLoad { period, returned_bytes, ..UserLoad::default() };
            load.pace = silk().pace(&load.pace, &load, &users);
            (load.pace.class, load.pace.background_bytes_per_second.unwrap() / 1_000_000)
        };
        use LoadClass::{High, Low};
        assert_eq!([0, 9, 10].map(&mut sample), [(Low, 200), (Low, 200), (Low, 190)], "steps of 10 MB/s");
        assert_eq!([150, 151, 195, 20].map(&mut sample), [(Low, 50), (High, 50), (High, 10), (Low, 180)]);
    }

    #[test]
    fn deep_jobs_pause_at_a_peak_and_where_they_take_every_thread_from_level_0() {
        let load = |class, level0, deep| LoadState {
            pace: Pace { class, ..Pace::default() },
            running: RunningJobs([level0, 0, deep, 0, 0, 0]),
            compaction_threads: 2,
            ..LoadState::default()
        };
        let suspended = |load: &LoadState| budget(load, JobClass::Deep).is_suspended;
        use LoadClass::{High, Low};
        assert!(suspended(&load(High, 0, 1)));
        assert!(!suspended(&load(Low, 0, 2)) && !suspended(&load(Low, 1, 1)));
        assert!(suspended(&load(Low, 1, 2)));
        assert!(!budget(&load(High, 1, 2), JobClass::Level0).is_suspended);
        assert_eq!(silk().admit(&load(High, 0, 0), JobClass::Deep), Admission::Defer(Deferral::Peak));
        assert_eq!(silk().admit(&load(High, 0, 0), JobClass::Level0), Admission::Run);
    }
}
