//! Zipfian ranks after Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), as in YCSB.
//!
//! Rank i (from 0) has a probability close to 1 / ((i + 1)^theta * zeta(n)). Ranks 0 and 1 are exact; the others come
//! from the paper's closed form, which is within a few percent of the law. zeta(n) is a sum of n terms: it is computed
//! once and only extended when the number of items grows.

use super::Rng;

/// YCSB's skew.
pub const THETA: f64 = 0.99;

/// Ranks in [0, items), rank 0 the most frequent.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta2: f64,
    zetan: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Ranks of `items` items (at least 1) with skew `theta` in (0, 1); costs one power per item.
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        Self::with_zeta(items, theta, zeta(0, items, theta, 0.0))
    }

    /// As [`Zipfian::new`], with zeta(items) known.
    #[must_use]
    pub fn with_zeta(items: u64, theta: f64, zetan: f64) -> Self {
        let zeta2 = zeta(0, 2, theta, 0.0);
        let mut zipfian = Self { items, theta, zeta2, zetan, alpha: 1.0 / (1.0 - theta), eta: 0.0 };
        zipfian.set_eta();
        zipfian
    }

    /// Makes room for ranks up to `items`, extending zeta by the new terms; fewer items than before change nothing.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zetan = zeta(self.items, items, self.theta, self.zetan);
            self.items = items;
            self.set_eta();
        }
    }

    /// Number of items.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// zeta(items), the normalising sum.
    #[must_use]
    pub fn zeta(&self) -> f64 {
        self.zetan
    }

    /// The next rank.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        let u = rng.next_f64();
        let uz = u * self.zetan;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(self.theta) {
            return 1.min(self.items - 1);
        }
        let rank = (self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64;
        rank.min(self.items - 1)
    }

    fn set_eta(&mut self) {
        let tail = 1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta);
        self.eta = tail / (1.0 - self.zeta2 / self.zetan);
    }
}

/// `sum` of the first `from` terms of the zeta series, extended to `to` terms.
fn zeta(from: u64, to: u64, theta: f64, mut sum: f64) -> f64 {
    for i in from..to {
        sum += 1.0 / ((i + 1) as f64).powf(theta);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_frequencies_follow_the_law() {
        const ITEMS: u64 = 1000;
        const DRAWS: u64 = 1_000_000;
        let zipfian = Zipfian::new(ITEMS, THETA);
        let mut rng = Rng::new(1);
        let mut counts = vec![0_u64; ITEMS as usize];
        for _ in 0..DRAWS {
            counts[zipfian.next(&mut rng) as usize] += 1;
        }
        let probability = |rank: u64| 1.0 / (((rank + 1) as f64).powf(THETA) * zipfian.zeta());
        for rank in [0, 1] {
            let (p, n) = (probability(rank), DRAWS as f64);
            let sigma = (n * p * (1.0 - p)).sqrt();
            let off = (counts[rank as usize] as f64 - n * p).abs();
            assert!(off < 4.0 * sigma, "rank {rank}: {off} off, sigma {sigma}");
        }
        // The closed form is an approximation: whole decades of ranks are within a tenth of the law.
        for decade in [2..10_u64, 10..100, 100..1000] {
            let expected: f64 = decade.clone().map(probability).sum::<f64>() * DRAWS as f64;
            let got: u64 = decade.clone().map(|rank| counts[rank as usize]).sum();
            let ratio = got as f64 / expected;
            assert!((0.9..1.1).contains(&ratio), "ranks {decade:?}: {got}, expected {expected}");
        }
    }

    #[test]
    fn growing_equals_starting_large() {
        let mut grown = Zipfian::new(10, THETA);
        grown.grow(500);
        grown.grow(1000);
        let whole = Zipfian::new(1000, THETA);
        assert!((grown.zeta() - whole.zeta()).abs() < 1e-9);
        let (mut a, mut b) = (Rng::new(3), Rng::new(3));
        for _ in 0..1000 {
            assert_eq!(grown.next(&mut a), whole.next(&mut b));
        }
    }

    #[test]
    fn few_items_stay_in_range() {
        for items in 1..4 {
            let zipfian = Zipfian::new(items, THETA);
            let mut rng = Rng::new(items);
            assert!((0..1000).all(|_| zipfian.next(&mut rng) < items));
        }
    }
}
