//! Time in which users leave the machine alone is used for folds of level 0.
//!
//! Readers pay for a fold once they have been held up for as long as it takes ([`payments`](super::payments)). While nobody is
//! there it holds up nobody, so it is done before they come. ("DLC: A New Compaction Scheme for LSM-tree with High Stability and Low
//! Latency", section 3, has merges of level 0 wait for times of low load; these have no other reason to wait.) What it writes is
//! bounded ([`Layout::idle_folds`]). It is done part by part, and when users come back the next part waits.
//!
//! [`Layout::idle_folds`]: crate::policy::Layout::idle_folds

use std::time::Duration;

use super::Engine;
use super::courtesy::{Counts, Seen};
use crate::env::sync::Mutex;

/// Users are looked at over this long at least; so often, if they are there and something waits until they are not.
pub(super) const IDLE_PERIOD: Duration = Duration::from_millis(100);

/// What users did, as merging threads without work saw it last.
#[derive(Debug)]
pub(super) struct Idleness(Mutex<Seen>);

impl Idleness {
    /// For a store that is opened now.
    pub(super) fn since(now: Duration) -> Self {
        Self(Mutex::new(Seen::since(now)))
    }
}

impl Engine {
    /// Whether there may be something to do in idle time.
    pub(super) fn could_use_idle_time(&self) -> bool {
        self.settings().policy.layout.has_folds()
            && !self.is_short_of_space()
            && self.trees().values().any(|tree| !tree.view().version.level(0).runs.is_empty())
    }

    /// Whether users leave the machine alone, or next to.
    pub(super) fn is_idle(&self) -> bool {
        self.idleness.0.lock().look(self.env.now(), IDLE_PERIOD, || Counts::of(self)).is_idle()
    }
}
