//! Visibility: the sequence number up to which readers see everything.
//!
//! Writers finish in any order. Their batches become visible in the order of the numbers, and a writer returns when
//! its own batch is visible. Most often that is a moment later, so it looks several times before it sleeps.
//!
//! Invariant: what is visible is a prefix of the numbers, in whole batches (I16).
//!
//! It touches only its own lock, which is a leaf.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::wake::Waiters;
use crate::env::sync::{Condvar, OrderedMutex, look};
use crate::error::Error;
use crate::types::Seq;

#[derive(Debug)]
pub(crate) struct Visibility {
    newest: AtomicU64,
    state: OrderedMutex<State>,
    advanced: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Finished ranges of numbers that wait for one before them: first and last.
    finished: BTreeMap<Seq, Seq>,
    waiting: usize,
    given_up: bool,
}

/// Some write before will never be visible.
#[derive(Debug)]
pub(crate) struct GaveUp;

impl Visibility {
    pub(crate) fn new(newest: Seq) -> Self {
        Self {
            newest: newest.0.into(),
            state: OrderedMutex::leaf(State::default()),
            advanced: Condvar::new(),
        }
    }

    /// The number up to which everything may be read.
    #[inline]
    pub(crate) fn newest(&self) -> Seq {
        Seq(self.newest.load(Ordering::Acquire))
    }

    /// The operations `first ..= last` are in the memtables. Returns when they are visible.
    pub(crate) fn publish(&self, first: Seq, last: Seq) -> Result<(), GaveUp> {
        let mut state = self.state.lock();
        assert!(self.newest() < first && first <= last, "I16: {first} is visible before it is published");
        if self.newest().plus(1) != first && !planted!("shown-before-what-came-earlier") {
            state.finished.insert(first, last);
            drop(state);
            return self.wait_for(last);
        }
        let mut newest = last;
        while let Some(last) = state.finished.remove(&newest.plus(1)) {
            newest = last;
        }
        self.newest.store(newest.0, Ordering::Release);
        if state.waiting > 0 {
            self.advanced.notify_all();
        }
        Ok(())
    }

    /// Waits until everything up to `seq` is visible.
    pub(crate) fn wait_for(&self, seq: Seq) -> Result<(), GaveUp> {
        let seen = || (self.newest() >= seq).then_some(());
        if seen().or_else(|| look(seen)).is_some() {
            return Ok(());
        }
        let mut state = self.state.lock();
        while self.newest() < seq {
            if state.given_up {
                return Err(GaveUp);
            }
            state.waiting += 1;
            self.advanced.wait(&mut state);
            state.waiting -= 1;
        }
        Ok(())
    }
}

impl Waiters for Visibility {
    /// Nobody waits any more for what is not visible yet.
    fn give_up(&self, _: &Error) {
        self.state.lock().given_up = true;
        self.advanced.notify_all();
    }
}

#[cfg(test)]
mod tests;
