//! Latencies: one histogram for each thread and operation, added up when the phase is over.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::recording::Tail;

/// Longest latency that the histogram distinguishes, in nanoseconds: an hour.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// Longest latency that a new histogram has room for, about 16 ms; few are longer, and room costs time to clear.
const NANOS_USUAL: u64 = 1 << 24;

/// Points of a curve by which the distance to quantile 1 is halved.
const CURVE_POINTS_PER_HALF: u32 = 4;

/// Latencies of one kind of operation, recorded in nanoseconds with three significant digits.
#[derive(Clone, Debug)]
pub struct Latency {
    nanos: Histogram<u64>,
}

/// Digests of the latencies of one kind of operation, all but the count in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of operations.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

impl Latency {
    pub fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, NANOS_USUAL, 3);
        let mut nanos = nanos.expect("invariant: the bounds are far apart and 3 digits are supported");
        nanos.auto(true);
        Self { nanos }
    }

    /// With two significant digits: a sixth of the memory, figures within 1 %.
    pub fn coarse() -> Self {
        let nanos = Histogram::new_with_bounds(1, NANOS_USUAL, 2);
        let mut nanos = nanos.expect("invariant: the bounds are far apart and 2 digits are supported");
        nanos.auto(true);
        Self { nanos }
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.nanos.reset();
    }

    /// The latencies that occurred, as nanoseconds and how often each, in rising order.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.nanos.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Adds a latency that occurred `count` times.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        let nanos = nanos.min(NANOS_MAX);
        self.nanos.record_n(nanos, count).expect("invariant: histograms grow up to the longest latency");
    }

    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(NANOS_MAX);
        self.nanos.record(nanos).expect("invariant: histograms grow up to the longest latency");
    }

    pub fn merge(&mut self, other: &Self) {
        self.nanos.add(&other.nanos).expect("invariant: histograms grow");
    }

    pub fn is_empty(&self) -> bool {
        self.nanos.is_empty()
    }

    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.nanos.len(),
            mean: self.nanos.mean() / 1000.0,
            p50: self.micros(0.50),
            p95: self.micros(0.95),
            p99: self.micros(0.99),
            p999: self.micros(0.999),
            max: self.nanos.max() as f64 / 1000.0,
        }
    }

    pub fn tail(&self) -> Tail {
        let max = self.nanos.max() as f64 / 1000.0;
        Tail { count: self.nanos.len(), p50: self.micros(0.50), p99: self.micros(0.99), max }
    }

    /// Points of the distribution, as quantile and microseconds: the nearer to 1, the closer together.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let points = self.nanos.iter_quantiles(CURVE_POINTS_PER_HALF);
        points.map(|point| (point.quantile(), point.value_iterated_to() as f64 / 1000.0)).collect()
    }

    fn micros(&self, quantile: f64) -> f64 {
        self.nanos.value_at_quantile(quantile) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_any_length_are_told() {
        let mut latency = Latency::new();
        for duration in [Duration::ZERO, Duration::from_secs(50), Duration::from_secs(90_000)] {
            latency.record(duration);
        }
        let summary = latency.summary();
        assert!((summary.p50 / 50e6 - 1.0).abs() < 0.002, "{summary:?}");
        assert!((summary.max / 3600e6 - 1.0).abs() < 0.002, "longer than an hour is an hour: {summary:?}");
    }

    #[test]
    fn merged_percentiles_cover_both_threads() {
        let (mut a, mut b) = (Latency::new(), Latency::new());
        for micros in 1..=500 {
            a.record(Duration::from_micros(micros));
            b.record(Duration::from_micros(micros + 500));
        }
        a.merge(&b);
        let summary = a.summary();
        assert_eq!(summary.count, 1000);
        for (got, expected) in
            [(summary.p50, 500.0), (summary.p95, 950.0), (summary.p99, 990.0), (summary.max, 1000.0)]
        {
            assert!((got / expected - 1.0_f64).abs() < 0.002, "{got}, expected {expected}");
        }
    }
}
