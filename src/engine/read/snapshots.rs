//! The sequence numbers at which somebody is reading.
//!
//! A compaction keeps what a listed number can see. A number enters the list together with the look at the newest visible
//! one, under the list's lock: a compaction that took the list before has only inputs that are older.
//!
//! Tables tell what they hold for which numbers alone ([`Holds`]). Such a number is marked: when its last reader lets it go, the
//! compaction threads look whether that is worth a job. All others come and go without a word to anybody. A number that goes while a job
//! is running needs no mark, for whoever ends a job has them look again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::path::ReadPath;
use crate::env::sync::OrderedMutex;
use crate::types::{Holds, Seq};

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    held: OrderedMutex<BTreeMap<Seq, Held>>,
}

/// A number at which somebody reads.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// How many do.
    count: usize,
    /// Whether a table holds something for it.
    keeps: bool,
}

impl Snapshots {
    /// The numbers held, ascending.
    pub(crate) fn list(&self) -> Vec<Seq> {
        self.held.lock().keys().copied().collect()
    }

    /// How many hold a number, and the lowest that is held; 0 if none is.
    pub(crate) fn count(&self) -> (u64, u64) {
        let held = self.held.lock();
        (
            held.values().map(|held| held.count).sum::<usize>() as u64,
            held.keys().next().map_or(0, |seq| seq.0),
        )
    }

    /// A table that is there from now on has `holds`.
    pub(crate) fn mark(&self, holds: &Holds) {
        if holds.groups().is_empty() {
            return;
        }
        let mut held = self.held.lock();
        for hold in holds.groups() {
            held.range_mut(hold.by.first..=hold.by.last).for_each(|(_, held)| held.keeps = true);
        }
    }
}

/// Holds a sequence number, and with it everything that is visible there.
#[derive(Debug)]
pub(crate) struct Pin {
    path: Arc<ReadPath>,
    seq: Seq,
}

impl Pin {
    /// Holds the newest visible number.
    pub(crate) fn newest(path: &Arc<ReadPath>) -> Self {
        let mut held = path.snapshots.held.lock();
        let seq = path.visible();
        held.entry(seq).or_default().count += 1;
        drop(held);
        Self { path: path.clone(), seq }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.path.snapshots.held.lock();
        let Some(held) = pins.get_mut(&self.seq) else { return };
        held.count -= 1;
        if held.count > 0 && !planted!("snapshot-let-go-with-its-twin") {
            return;
        }
        let keeps = held.keeps && !planted!("release-not-told");
        pins.remove(&self.seq);
        // Before the scheduler's lock is taken.
        drop(pins);
        if keeps {
            self.path.scheduler.wake();
        }
    }
}
