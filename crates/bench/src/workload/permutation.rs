//! A shuffled order of the numbers below a bound, without a table: a Feistel network of four rounds, walked along its
//! cycles until it lands below the bound (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).

use crate::generator::mix;

const ROUNDS: u64 = 4;

/// A bijection of the numbers below a bound.
#[derive(Clone, Debug)]
pub struct Permutation {
    bound: u64,
    seed: u64,
    half_bits: u32,
}

impl Permutation {
    /// The one of the numbers below `bound` (at least 1) that `seed` names.
    #[must_use]
    pub const fn new(bound: u64, seed: u64) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        let half_bits = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self { bound, seed: mix(seed), half_bits }
    }

    /// How many numbers there are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.bound
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bound == 0
    }

    /// The number at `place`; beyond the last one the order begins anew.
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        let mut number = self.shuffle(place % self.bound.max(1));
        // The network covers less than four times the bound, so this is a matter of a few steps.
        while number >= self.bound.max(1) {
            number = self.shuffle(number);
        }
        number
    }

    fn shuffle(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ mix(self.seed ^ right ^ (round << 60)) & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_once_a_round() {
        for bound in [1, 2, 3, 7, 64, 65, 1000] {
            let permutation = Permutation::new(bound, 5);
            let mut seen: Vec<u64> = (0..bound).map(|place| permutation.at(place)).collect();
            assert_eq!(seen[0], permutation.at(bound), "the next round repeats the first");
            seen.sort_unstable();
            assert_eq!(seen, (0..bound).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_is_the_seeds_and_no_run_of_neighbours() {
        const BOUND: u64 = 10_000;
        let (a, b) = (Permutation::new(BOUND, 1), Permutation::new(BOUND, 2));
        let same = (0..BOUND).filter(|&place| a.at(place) == b.at(place)).count();
        // Two random orders agree once on average.
        assert!(same < 10, "{same} places agree");
        // The mean distance of random neighbours is a third of the range.
        let distance: u64 = (1..BOUND).map(|place| a.at(place).abs_diff(a.at(place - 1))).sum();
        let mean = distance as f64 / BOUND as f64;
        assert!((mean / (BOUND as f64 / 3.0) - 1.0).abs() < 0.05, "mean distance {mean}");
    }
}
