//! The sequence numbers at which somebody is reading.
//!
//! A merge keeps what a listed number can see. A number enters the list together with the look at the newest visible
//! one, under the list's lock: a merge that took the list before has only inputs that are older.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use crate::env::sync::Mutex;
use crate::types::Seq;

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// How many hold each number.
    held: Mutex<BTreeMap<Seq, usize>>,
}

impl Snapshots {
    /// The numbers held, ascending.
    pub(crate) fn list(&self) -> Vec<Seq> {
        self.held.lock().keys().copied().collect()
    }

    /// How many hold a number, and the lowest that is held; 0 if none is.
    pub(crate) fn count(&self) -> (u64, u64) {
        let held = self.held.lock();
        (held.values().sum::<usize>() as u64, held.keys().next().map_or(0, |seq| seq.0))
    }
}

/// Holds a sequence number, and with it everything that is visible there.
#[derive(Debug)]
pub(crate) struct Pin {
    engine: Arc<Engine>,
    seq: Seq,
}

impl Pin {
    /// Holds the newest visible number.
    pub(crate) fn newest(engine: &Arc<Engine>) -> Self {
        let mut held = engine.snapshots.held.lock();
        let seq = engine.visible();
        *held.entry(seq).or_insert(0) += 1;
        drop(held);
        Self { engine: engine.clone(), seq }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.engine.snapshots.held.lock();
        if let Some(count) = held.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 || planted!("snapshot-let-go-with-its-twin") {
                held.remove(&self.seq);
            }
        }
    }
}
