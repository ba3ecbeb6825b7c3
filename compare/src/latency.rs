//! Latencies in HdrHistograms, and the percentiles that are reported of them.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency that is told apart from longer ones: an hour.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// Halvings of the distance to the longest latency in a curve.
const CURVE_POINTS: i32 = 18;

/// Latencies of one kind of operation, in nanoseconds with three significant digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// What is reported of latencies, in microseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Percentiles {
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub p9999: f64,
    pub max: f64,
    /// Pairs of a quantile, each half as far from 1 as the one before, and its latency.
    pub curve: Vec<(f64, f64)>,
}

impl Latencies {
    /// None so far.
    pub fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, NANOS_MAX, 3);
        Self(nanos.expect("invariant: the bounds are far apart and 3 digits are supported"))
    }

    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("invariant: all histograms have the same bounds");
    }

    /// The percentiles, unless there are no latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let micros = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        let curve = (0..CURVE_POINTS).map(|point| 1.0 - 0.5_f64.powi(point));
        (!self.0.is_empty()).then(|| Percentiles {
            count: self.0.len(),
            mean: self.0.mean() / 1e3,
            p50: micros(0.5),
            p90: micros(0.9),
            p99: micros(0.99),
            p999: micros(0.999),
            p9999: micros(0.9999),
            max: self.0.max() as f64 / 1e3,
            curve: curve.map(|quantile| (quantile, micros(quantile))).collect(),
        })
    }
}

/// Latencies of one kind of operation, by the second since the start in which each ended.
#[derive(Clone, Debug, Default)]
pub struct Course(Vec<Latencies>);

impl Course {
    /// Adds one that ended `since_start`.
    pub fn record(&mut self, latency: Duration, since_start: Duration) {
        let second = since_start.as_secs() as usize;
        if self.0.len() <= second {
            self.0.resize_with(second + 1, Latencies::new);
        }
        self.0[second].record(latency);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.resize_with(self.0.len().max(other.0.len()), Latencies::new);
        self.0.iter_mut().zip(&other.0).for_each(|(all, one)| all.merge(one));
    }

    /// Those of all seconds together.
    pub fn all(&self) -> Latencies {
        let mut all = Latencies::new();
        self.0.iter().for_each(|second| all.merge(second));
        all
    }

    /// The 99th percentile of each second, in microseconds, where there is one.
    pub fn p99(&self) -> Vec<Option<f64>> {
        self.0.iter().map(|second| second.percentiles().map(|percentiles| percentiles.p99)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_cover_what_was_merged() {
        let (mut a, mut b) = (Latencies::new(), Latencies::new());
        for micros in 1..=500 {
            a.record(Duration::from_micros(micros));
            b.record(Duration::from_micros(micros + 500));
        }
        a.merge(&b);
        let percentiles = a.percentiles().unwrap();
        assert_eq!(percentiles.count, 1000);
        for (got, expected) in [(percentiles.p50, 500.0), (percentiles.p99, 990.0), (percentiles.max, 1000.0)]
        {
            assert!((got / expected - 1.0_f64).abs() < 0.002, "{got}, expected {expected}");
        }
        assert!(percentiles.curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert_eq!(Latencies::new().percentiles(), None);
    }

    #[test]
    fn a_course_has_each_second_and_all_of_them() {
        let (mut one, mut other) = (Course::default(), Course::default());
        one.record(Duration::from_micros(10), Duration::from_millis(999));
        one.record(Duration::from_micros(30), Duration::from_millis(2500));
        other.record(Duration::from_micros(20), Duration::from_millis(3000));
        one.merge(&other);
        let close = |got: Option<f64>, expected: Option<f64>| match (got, expected) {
            (Some(got), Some(expected)) => (got / expected - 1.0).abs() < 0.002,
            (got, expected) => got == expected,
        };
        let expected = [Some(10.0), None, Some(30.0), Some(20.0)];
        assert!(one.p99().into_iter().zip(expected).all(|(got, expected)| close(got, expected)), "{one:?}");
        assert_eq!((one.p99().len(), one.all().percentiles().unwrap().count), (4, 3));
    }
}
