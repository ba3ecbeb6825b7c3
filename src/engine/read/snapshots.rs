//! The list of the sequence numbers at which somebody reads.
//!
//! A compaction keeps every version that a listed number sees. A reader takes the newest visible number and enters it
//! into the list under the list's lock. So a compaction that read the list earlier has only inputs that are older.
//!
//! Tables record what they keep only for which readers ([`Holds`]). A number for which a table keeps something is
//! marked: when its last reader drops it, the compaction threads check whether a job is worth it. So is a number that sees
//! what an ingest has come to lie on. Unmarked numbers come and go without a notice. A number that is dropped while a job is running needs no mark, since the threads
//! check again at the end of every job.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::path::ReadPath;
use crate::env::sync::OrderedMutex;
use crate::types::{Holds, Seq};

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    held: OrderedMutex<BTreeMap<Seq, Held>>,
}

/// The readers at one number.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// How many there are.
    count: usize,
    /// Whether a table keeps something for this number.
    keeps: bool,
}

impl Snapshots {
    /// The listed numbers, ascending.
    pub(crate) fn list(&self) -> Vec<Seq> {
        self.held.lock().keys().copied().collect()
    }

    /// How many readers there are, and the lowest listed number; 0 if there is none.
    pub(crate) fn count(&self) -> (u64, u64) {
        let held = self.held.lock();
        (
            held.values().map(|held| held.count).sum::<usize>() as u64,
            held.keys().next().map_or(0, |seq| seq.0),
        )
    }

    /// Marks the numbers below `number`. Tables of that number may hide older ones, which stay for these readers.
    pub(crate) fn mark_below(&self, number: Seq) {
        if !planted!("hidden-table-kept-after-its-reader") {
            self.held.lock().range_mut(..number).for_each(|(_, held)| held.keeps = true);
        }
    }

    /// Marks the numbers for which a new table keeps something, by its `holds`.
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

/// One reader at a sequence number. It keeps everything that is visible there.
#[derive(Debug)]
pub(crate) struct Pin {
    path: Arc<ReadPath>,
    seq: Seq,
}

impl Pin {
    /// Enters a reader at the newest visible number.
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
        // Released before the scheduler's lock is taken.
        drop(pins);
        if keeps {
            self.path.scheduler.wake();
        }
    }
}
