//! LSbM's workload (section VI-B): most reads within one contiguous range, writes everywhere.
//!
//! The writes walk a shuffled order of all records round and round, as the authors' program does: independent draws would
//! repeat keys within a round of a level, which LSbM takes for a reason to stop retaining.

use std::ops::Range;

use super::{Action, Permutation};
use crate::generator::Rng;

/// Reads in a hot range and writes in a shuffled order.
#[derive(Clone, Debug)]
pub struct RangeHot {
    records: u64,
    hot: Range<u64>,
    hot_share: f64,
    order: Permutation,
    written: u64,
}

impl RangeHot {
    /// The share of reads that lie in the hot range.
    pub const HOT_SHARE: f64 = 0.98;

    /// Over `records` records, `hot` of them hot, in the middle.
    #[must_use]
    pub fn new(records: u64, hot: u64, seed: u64) -> Self {
        let start = records.saturating_sub(hot) / 2;
        let hot = start..start + hot.min(records);
        Self { records, hot, hot_share: Self::HOT_SHARE, order: Permutation::new(records, seed), written: 0 }
    }

    /// The hot records.
    #[must_use]
    pub fn hot(&self) -> Range<u64> {
        self.hot.clone()
    }

    /// The next read; those outside of the hot range are uniform there.
    pub fn read(&self, rng: &mut Rng) -> Action {
        let hot = self.hot.end - self.hot.start;
        if hot == self.records || rng.next_f64() < self.hot_share {
            return Action::Get(self.hot.start + rng.below(hot));
        }
        let cold = rng.below(self.records - hot);
        Action::Get(if cold < self.hot.start { cold } else { cold + hot })
    }

    /// The next write.
    pub fn write(&mut self) -> Action {
        let record = self.order.at(self.written);
        self.written += 1;
        Action::Put(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(workload: &RangeHot, seed: u64, count: usize) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        let record = |action| match action {
            Action::Get(record) => record,
            other => panic!("{other:?} is no read"),
        };
        (0..count).map(|_| record(workload.read(&mut rng))).collect()
    }

    #[test]
    fn reads_are_hot_in_their_share_and_uniform_on_either_side() {
        const DRAWS: usize = 200_000;
        let workload = RangeHot::new(1000, 150, 1);
        let reads = reads(&workload, 3, DRAWS);
        let count = |range: Range<u64>| reads.iter().filter(|record| range.contains(record)).count() as f64;
        let near = |got: f64, share: f64| {
            let expected = share * DRAWS as f64;
            assert!((got - expected).abs() < 5.0 * expected.sqrt(), "{got} reads, expected {expected}");
        };
        assert_eq!(workload.hot(), 425..575);
        near(count(425..575), 0.98);
        near(count(425..440), 0.098);
        near(count(0..425), 0.01);
        near(count(575..1000), 0.01);
        assert!(reads.iter().all(|&record| record < 1000));
    }

    #[test]
    fn a_round_of_writes_visits_each_record_once() {
        let mut workload = RangeHot::new(500, 75, 9);
        let mut round = || -> Vec<Action> { (0..500).map(|_| workload.write()).collect() };
        let (first, second) = (round(), round());
        assert_eq!(first, second);
        let visited = |record| first.iter().filter(|&&write| write == Action::Put(record)).count();
        assert!((0..500).all(|record| visited(record) == 1));
    }

    #[test]
    fn a_seed_replays_it() {
        let workload = RangeHot::new(1000, 150, 1);
        assert_eq!(reads(&workload, 4, 100), reads(&workload, 4, 100));
        assert_ne!(reads(&workload, 4, 100), reads(&workload, 5, 100));
    }
}
