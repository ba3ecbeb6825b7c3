//! Exponentially distributed distances from the newest record, as YCSB's `ExponentialGenerator`.

use super::Rng;

/// Percentage of the draws that fall within [`Exponential::RANGE_FRACTION`] of the records.
const PERCENTILE: f64 = 95.0;

/// Distances from 0 up, unbounded, smaller ones more frequent.
#[derive(Clone, Debug)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// Fraction of the records that YCSB's default sends 95 % of the requests to.
    pub const RANGE_FRACTION: f64 = 0.857_142_857_1;

    /// Distances of which 95 % are below `range`.
    #[must_use]
    pub fn new(range: f64) -> Self {
        Self { gamma: -(1.0 - PERCENTILE / 100.0).ln() / range.max(f64::MIN_POSITIVE) }
    }

    /// YCSB's default for a store of `records` records.
    #[must_use]
    pub fn for_records(records: u64) -> Self {
        Self::new(records as f64 * Self::RANGE_FRACTION)
    }

    /// The next distance.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        (-(1.0 - rng.next_f64()).ln() / self.gamma) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_and_mean_are_as_defined() {
        const DRAWS: u32 = 200_000;
        let exponential = Exponential::for_records(70_000);
        let mut rng = Rng::new(21);
        let draws: Vec<u64> = (0..DRAWS).map(|_| exponential.next(&mut rng)).collect();
        let within = draws.iter().filter(|&&draw| draw < 60_000).count() as f64 / f64::from(DRAWS);
        assert!((within - 0.95).abs() < 0.003, "{within} of the draws within the range");
        let mean = draws.iter().sum::<u64>() as f64 / f64::from(DRAWS);
        let expected = 60_000.0 / 20.0_f64.ln();
        assert!((mean / expected - 1.0).abs() < 0.02, "mean {mean}, expected {expected}");
    }
}
