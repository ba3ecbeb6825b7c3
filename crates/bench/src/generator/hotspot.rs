//! Hotspot distribution: most draws fall into the first part of a range.

use super::Rng;

/// Numbers of a range, of which the first ones are drawn more often, as YCSB's `HotspotIntegerGenerator`.
#[derive(Clone, Debug)]
pub struct Hotspot {
    low: u64,
    hot: u64,
    count: u64,
    hot_share: f64,
}

impl Hotspot {
    /// `count` numbers from `low`; the first `hot_part` of them take `hot_share` of the draws. Shares are 0 to 1.
    #[must_use]
    pub fn new(low: u64, count: u64, hot_part: f64, hot_share: f64) -> Self {
        Self {
            low,
            hot: ((count as f64 * hot_part) as u64).clamp(1, count.max(1)),
            count: count.max(1),
            hot_share,
        }
    }

    /// The next number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        if self.hot == self.count || rng.next_f64() < self.hot_share {
            self.low + rng.below(self.hot)
        } else {
            self.low + self.hot + rng.below(self.count - self.hot)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_fall_into_the_hot_part_as_often_as_said() {
        let hotspot = Hotspot::new(100, 1000, 0.2, 0.9);
        let mut rng = Rng::new(7);
        let draws: Vec<u64> = (0..100_000).map(|_| hotspot.next(&mut rng)).collect();
        assert!(draws.iter().all(|draw| (100..1100).contains(draw)));
        let hot = draws.iter().filter(|draw| **draw < 300).count() as f64;
        assert!((hot - 90_000.0).abs() < 5.0 * (90_000.0_f64 * 0.1).sqrt(), "{hot} of 100,000");
        assert!(
            draws.contains(&100) && draws.contains(&299) && draws.contains(&300) && draws.contains(&1099)
        );
    }

    #[test]
    fn one_number_and_nothing_cold_are_possible() {
        let mut rng = Rng::new(8);
        assert_eq!(Hotspot::new(5, 1, 0.5, 0.5).next(&mut rng), 5);
        assert!(Hotspot::new(5, 3, 1.0, 0.0).next(&mut rng) < 8);
    }
}
