//! Zipfian popularity counted back from the newest record, as YCSB's `SkewedLatestGenerator`.

use super::{Rng, THETA, Zipfian};

/// Record numbers, the newest the most popular.
#[derive(Clone, Debug)]
pub struct SkewedLatest {
    ranks: Zipfian,
}

impl SkewedLatest {
    /// For a store that holds `records` records so far; costs one power per record.
    #[must_use]
    pub fn new(records: u64) -> Self {
        Self { ranks: Zipfian::new(records, THETA) }
    }

    /// How far before the newest of `records` records the next one lies: 0 is the newest.
    pub fn next_age(&mut self, records: u64, rng: &mut Rng) -> u64 {
        self.ranks.grow(records);
        self.ranks.next(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_zipfian_ranks_and_follow_growth() {
        let mut latest = SkewedLatest::new(100);
        let mut rng = Rng::new(9);
        for _ in 0..1000 {
            assert!(latest.next_age(100, &mut rng) < 100);
        }
        let zipfian = Zipfian::new(5000, THETA);
        let (mut a, mut b) = (Rng::new(10), Rng::new(10));
        for _ in 0..1000 {
            assert_eq!(latest.next_age(5000, &mut a), zipfian.next(&mut b));
        }
    }

    #[test]
    fn newest_record_is_the_most_popular() {
        let mut latest = SkewedLatest::new(1000);
        let mut rng = Rng::new(11);
        let newest = (0..100_000).filter(|_| latest.next_age(1000, &mut rng) == 0).count() as f64;
        let expected = 100_000.0 / Zipfian::new(1000, THETA).zeta();
        assert!((newest - expected).abs() < 5.0 * expected.sqrt(), "{newest}, expected {expected}");
    }
}
