//! Holds: for how long threads of a simulation hold the locks of the store, in virtual time.
//!
//! Who waits for a lock waits for all that its holder does under it: calls that take time, and the moments for which the
//! holder is preempted. So the longest hold is the longest time for which anybody may wait for that lock alone.
#![expect(clippy::disallowed_types, reason = "the locks of the store tell it of themselves")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::env::sync::{Hold, Rank};

/// The longest hold of each rank.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<BTreeMap<Rank, Hold>>);

impl Holds {
    /// Counts a hold that has ended.
    #[cfg(debug_assertions)]
    pub(super) fn note(&self, hold: Hold) {
        let mut longest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = longest.entry(hold.rank).or_insert(hold);
        if before.time < hold.time {
            *before = hold;
        }
    }

    /// The longest ones, the outermost locks first.
    pub(super) fn longest(&self) -> Vec<Hold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
    }
}
