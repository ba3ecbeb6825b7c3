//! A histogram of times: counts by size, under fixed bounds, without locks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bounds for calls of the store, in seconds: from what memory answers to what a stalled disk does.
pub(crate) const CALL_BOUNDS: &[f64] = &[
    1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Bounds for jobs and stalls, in seconds.
pub(crate) const JOB_BOUNDS: &[f64] =
    &[1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 300.0];

/// Counts of times.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// How many were at most each bound, but above the one before; the last is for all beyond.
    counts: Box<[AtomicU64]>,
    nanos: AtomicU64,
}

/// A picture of a histogram.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Buckets {
    /// The upper bounds, in seconds, each included in its bucket.
    pub bounds: &'static [f64],
    /// How many values are in each bucket and in no smaller one. There is one more than bounds, for what is beyond all of
    /// them.
    pub counts: Vec<u64>,
    /// All values together, in seconds.
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            nanos: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn buckets(&self) -> Buckets {
        Buckets {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.nanos.load(Relaxed) as f64 / 1e9,
        }
    }
}

impl Buckets {
    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_is_not_below_it() {
        let histogram = Histogram::new(&[0.001, 0.01]);
        for micros in [1, 1000, 1001, 10_000, 10_001, 5_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let buckets = histogram.buckets();
        assert_eq!((buckets.counts.as_slice(), buckets.count()), ([2, 2, 2].as_slice(), 6));
        assert!((buckets.sum - 5.022_003).abs() < 1e-9, "{}", buckets.sum);
    }

    #[test]
    fn bounds_grow() {
        for bounds in [CALL_BOUNDS, JOB_BOUNDS] {
            assert!(bounds.is_sorted_by(|a, b| a < b));
        }
    }
}
