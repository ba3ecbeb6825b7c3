//! Uniform distribution: every number of a range equally often.

use super::Rng;

/// Numbers in [low, high], both included, as YCSB's `UniformLongGenerator`.
#[derive(Clone, Debug)]
pub struct Uniform {
    low: u64,
    span: u64,
}

impl Uniform {
    /// Numbers from `low` to `high`; a `high` below `low` counts as `low`.
    #[must_use]
    pub fn new(low: u64, high: u64) -> Self {
        Self { low, span: high.saturating_sub(low).saturating_add(1) }
    }

    /// The next number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        self.low + rng.below(self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_are_equally_frequent() {
        const DRAWS: u32 = 160_000;
        let uniform = Uniform::new(10, 25);
        let mut rng = Rng::new(31);
        let mut counts = [0_u32; 16];
        for _ in 0..DRAWS {
            counts[uniform.next(&mut rng) as usize - 10] += 1;
        }
        // Chi square with 15 degrees of freedom: 37.7 is its 99.9th percentile.
        let expected = f64::from(DRAWS) / 16.0;
        let chi2: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi2 < 37.7, "chi square {chi2}");
    }
}
