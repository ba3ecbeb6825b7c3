//! Sequential numbers, shared by all threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers from a first one up, each handed out once, as YCSB's `CounterGenerator`.
#[derive(Debug)]
pub struct Sequential {
    next: AtomicU64,
}

impl Sequential {
    /// Numbers from `first` on.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self { next: AtomicU64::new(first) }
    }

    /// The next number; no other caller gets it.
    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The next number below `end`, or `None` when they are all handed out.
    pub fn next_below(&self, end: u64) -> Option<u64> {
        let step = |next| (next < end).then_some(next + 1);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_and_stop_at_the_end() {
        let counter = Sequential::new(5);
        assert_eq!((counter.next(), counter.next()), (5, 6));
        assert_eq!(counter.next_below(8), Some(7));
        assert_eq!((counter.next_below(8), counter.next_below(8)), (None, None));
    }
}
