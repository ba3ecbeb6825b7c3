//! Time in which users leave the machine alone pays for fewer runs in level 0.
//!
//! Readers pay for a fold once they have been held up for as long as it takes ([`payments`](super::payments)). While nobody is
//! there it holds up nobody, so it is done before they come. ("DLC: A New Compaction Scheme for LSM-tree with High Stability and Low
//! Latency", section 3, has merges of level 0 wait for times of low load; these have no other reason to wait.) What it writes is
//! bounded ([`Layout::idle_price`]). When users come back, a fold that has begun goes on, part by part, at the priority of all
//! merges.
//!
//! [`Layout::idle_price`]: crate::policy::Layout::idle_price

use std::time::Duration;

use super::Engine;
use super::courtesy::{Counts, Seen};
use crate::env::sync::Mutex;

/// For so long, and so often, a merging thread that has nothing to do looks at users.
pub(super) const IDLE_PERIOD: Duration = Duration::from_millis(100);

/// What users did, as merging threads without work saw it last.
#[derive(Debug, Default)]
pub(super) struct Idleness(Mutex<Seen>);

impl Engine {
    /// Nothing is due: if users have been idle for a period, that pays for what is worth folding now. Otherwise whether to look again
    /// after another one.
    pub(super) fn idleness_pays(&self) -> bool {
        if self.is_short_of_space() {
            return false;
        }
        let layout = &self.settings().policy.layout;
        let trees = self.trees();
        let prices = trees.values().filter_map(|tree| {
            let price = layout.idle_price(&tree.view().version)?;
            (price > tree.payments.paid()).then_some((tree, price))
        });
        let unpaid: Vec<_> = prices.collect();
        if unpaid.is_empty() || !self.is_idle() {
            return !unpaid.is_empty();
        }
        unpaid.into_iter().for_each(|(tree, price)| tree.payments.raise(price));
        self.scheduler.wake();
        false
    }

    fn is_idle(&self) -> bool {
        let users = self.idleness.0.lock().look(self.env.now(), IDLE_PERIOD, || Counts::of(self));
        // Nobody has looked yet; or for so long that users who were seen may have come just now.
        (IDLE_PERIOD..2 * IDLE_PERIOD).contains(&users.period) && users.is_idle()
    }
}
