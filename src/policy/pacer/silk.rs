//! SILK's pace: compactions get the bandwidth that clients leave, and those of level 0 go first.
//!
//! "SILK: Preventing Latency Spikes in Log-Structured Merge Key-Value Stores" (ATC 2019), section 4. The policy is the one that
//! the paper describes. (The authors' code never resumes some of the compactions that it has paused.) Its constants, in parts of
//! the device's bandwidth, are those of the authors' benchmark, `LongPeakTest` in `tools/db_bench_tool.cc`.

use std::time::Duration;

use super::estimate::{class, percent};
use super::{Admission, Budget, Deferral, GovernorConfig, JobClass, LoadClass, Pace, UserLoad};
use crate::options::{Bandwidth, LoadEstimator};
use crate::policy::LoadState;

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
            JobClass::Deep if load.pace.class == LoadClass::High => Admission::Defer(Deferral::Peak),
            // Upkeep bounds space, and waits for nobody; it is limited as all jobs are.
            JobClass::Level0
            | JobClass::IntraLevel0
            | JobClass::Deep
            | JobClass::Upkeep
            | JobClass::Manual => Admission::Run,
        }
    }
}

/// How fast jobs of `class` may go on.
pub(super) fn budget(load: &LoadState, class: JobClass) -> Budget {
    let is_preempted = load.running.of(JobClass::Level0) > 0
        && load.running.of(JobClass::Deep) >= load.compaction_threads.max(1);
    let is_suspended = class == JobClass::Deep && (load.pace.class == LoadClass::High || is_preempted);
    Budget { bytes_per_second: load.pace.background_bytes_per_second, is_suspended, ..Budget::FREE }
}
