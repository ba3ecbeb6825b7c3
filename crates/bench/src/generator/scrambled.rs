//! Zipfian popularity spread over the whole key space, as YCSB's `ScrambledZipfianGenerator`.
//!
//! Ranks are drawn from 10^10 items with the precomputed zeta, hashed by FNV and reduced to the number of records. So
//! the popular records are scattered, and the popularity of a record does not depend on how many there are. Every
//! record collects the hits of many ranks: the head is a little less skewed than a plain zipfian over the records.

use super::{Rng, THETA, Zipfian, ycsb_hash};

/// Items that ranks are drawn from.
const ITEMS: u64 = 10_000_000_000;

/// zeta(`ITEMS`) for a skew of 0.99, as published with YCSB.
const ZETA: f64 = 26.469_028_201_783_02;

/// Numbers in [first, first + items), popular ones scattered.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    ranks: Zipfian,
    first: u64,
    items: u64,
}

impl ScrambledZipfian {
    /// Numbers of `items` records (at least 1) from `first` on.
    #[must_use]
    pub fn new(first: u64, items: u64) -> Self {
        Self { ranks: Zipfian::with_zeta(ITEMS, THETA, ZETA), first, items: items.max(1) }
    }

    /// The next record number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        self.first + ycsb_hash(self.ranks.next(rng)) % self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_records_are_the_hashes_of_the_first_ranks() {
        const RECORDS: u64 = 10_000;
        const DRAWS: u64 = 400_000;
        let scrambled = ScrambledZipfian::new(0, RECORDS);
        let mut rng = Rng::new(5);
        let mut counts = vec![0_u64; RECORDS as usize];
        for _ in 0..DRAWS {
            counts[scrambled.next(&mut rng) as usize] += 1;
        }
        for rank in 0..2 {
            let p = 1.0 / (((rank + 1) as f64).powf(THETA) * ZETA);
            // Other ranks that fold onto the same record add about 1 / RECORDS of the rest.
            let expected = DRAWS as f64 * (p + (1.0 - p) / RECORDS as f64);
            let got = counts[(ycsb_hash(rank) % RECORDS) as usize] as f64;
            assert!(
                (got - expected).abs() < 5.0 * expected.sqrt(),
                "rank {rank}: {got}, expected {expected}"
            );
        }
        let touched = counts.iter().filter(|&&count| count > 0).count() as u64;
        assert!(touched > RECORDS * 9 / 10, "only {touched} records touched");
    }

    #[test]
    fn numbers_start_at_the_first_record() {
        let scrambled = ScrambledZipfian::new(100, 10);
        let mut rng = Rng::new(6);
        assert!((0..1000).all(|_| (100..110).contains(&scrambled.next(&mut rng))));
    }

    /// The integral of the series' terms plus the Euler-Maclaurin correction at its start.
    #[test]
    fn precomputed_zeta_is_that_of_the_item_count() {
        let head = Zipfian::new(1_000_000, THETA).zeta();
        let power = 1.0 - THETA;
        let tail = ((ITEMS as f64).powf(power) - 1e6_f64.powf(power)) / power;
        assert!((head + tail - ZETA).abs() < 1e-4);
    }
}
