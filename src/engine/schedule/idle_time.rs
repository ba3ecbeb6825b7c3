//! Idle-time compaction: level 0 is compacted while nobody uses the store.
//!
//! Readers pay for an intra-L0 compaction once they have been held up for as long as it takes
//! ([`read_debt`](crate::engine::keyspace::read_debt)). In idle time it holds up nobody, so it is done before
//! they come. It runs part by part, and when users come back the next part waits. What it writes is bounded
//! ([`Layout::idle_intra_l0`]).
//!
//! (Section 3 of "DLC: A New Compaction Scheme for LSM-tree with High Stability and Low Latency" lets compactions of
//! level 0 wait for times of low load. These have no other reason to wait.)
//!
//! [`Layout::idle_intra_l0`]: crate::policy::Layout::idle_intra_l0

use std::time::Duration;

use crate::engine::pace::users::Seen;
use crate::engine::schedule::background::Background;
use crate::env::sync::OrderedMutex;

/// The shortest period over which users are watched. While they are there and something waits for idle time, this is
/// also how often they are looked at.
pub(in crate::engine) const IDLE_PERIOD: Duration = Duration::from_millis(100);

/// What users did, as compaction threads without work saw it last.
#[derive(Debug)]
pub(in crate::engine) struct IdleTime(OrderedMutex<Seen>);

impl IdleTime {
    /// For a store that is opened now.
    pub(in crate::engine) fn since(now: Duration) -> Self {
        Self(OrderedMutex::leaf(Seen::since(now)))
    }
}

impl Background {
    /// Whether there may be something to do in idle time.
    pub(in crate::engine) fn could_use_idle_time(&self) -> bool {
        self.jobs.settings.load().policy.layout.has_intra_l0()
            && !self.jobs.storage.is_short_of_space()
            && self.trees().values().any(|tree| !tree.view().version.level(0).runs.is_empty())
    }

    /// Whether users leave the machine alone, or almost.
    pub(in crate::engine) fn is_idle(&self) -> bool {
        let costs = self.pressure.load().costs;
        let users = &self.jobs.throttle.sampler.users;
        self.idle_time.0.lock().look(self.jobs.env.now(), IDLE_PERIOD, || users.counts()).is_idle(&costs)
    }
}
