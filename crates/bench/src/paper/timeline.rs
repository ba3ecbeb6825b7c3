//! The timeline of an experiment: latencies of requests by interval, and samples of counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use terrace::env::Priority;
use terrace::env::sync::Mutex;

use super::machine::{Body, Lab};
use crate::Result;

/// Longest latency that the histogram distinguishes: an hour.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// Latencies, in nanoseconds to two digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let mut nanos = Histogram::new(2).expect("invariant: two digits are supported");
        nanos.auto(true);
        Self(nanos)
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(NANOS_MAX).min(NANOS_MAX);
        self.0.record(nanos).expect("invariant: a histogram that grows takes any value");
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("invariant: a histogram that grows takes any value");
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Arithmetic mean, in microseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean() / 1000.0
    }

    /// The latency, in microseconds, that `percent` in a hundred do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1000.0
    }

    /// The share of latencies above `micros` microseconds, 0 to 1.
    #[must_use]
    pub fn share_above(&self, micros: f64) -> f64 {
        let below = self.0.count_between(0, (micros * 1000.0) as u64);
        1.0 - below as f64 / self.0.len().max(1) as f64
    }

    /// Points of the cumulative distribution: latency in microseconds, percent that do not exceed it.
    #[must_use]
    pub fn distribution(&self) -> Vec<[f64; 2]> {
        PERCENTILES.iter().map(|&percent| [self.percentile(percent), percent]).collect()
    }
}

/// Where a distribution is sampled.
pub const PERCENTILES: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 98.0, 99.0, 99.5,
    99.9, 99.99,
];

/// Requests by the interval in which they ended.
#[derive(Clone, Debug)]
pub struct Timeline {
    started: Duration,
    interval: Duration,
    intervals: Vec<Latencies>,
}

impl Timeline {
    /// Intervals of that length, the first from `started` on.
    #[must_use]
    pub fn new(started: Duration, interval: Duration) -> Self {
        Self { started, interval, intervals: Vec::new() }
    }

    /// A request that ended at `end`.
    pub fn record(&mut self, end: Duration, latency: Duration) {
        let place = end.saturating_sub(self.started).as_nanos() / self.interval.as_nanos().max(1);
        let place = usize::try_from(place).unwrap_or(usize::MAX - 1);
        if self.intervals.len() <= place {
            self.intervals.resize_with(place + 1, Latencies::default);
        }
        self.intervals[place].record(latency);
    }

    /// Adds the requests of a timeline with the same start and intervals.
    pub fn merge(&mut self, other: &Self) {
        let length = self.intervals.len().max(other.intervals.len());
        self.intervals.resize_with(length, Latencies::default);
        for (mine, theirs) in self.intervals.iter_mut().zip(&other.intervals) {
            mine.merge(theirs);
        }
    }

    /// The intervals that ended within `time`.
    #[must_use]
    pub fn within(&self, time: Duration) -> &[Latencies] {
        let whole = usize::try_from(time.as_nanos() / self.interval.as_nanos().max(1)).unwrap_or(usize::MAX);
        &self.intervals[..whole.min(self.intervals.len())]
    }
}

/// Something that was looked at, and when.
#[derive(Clone, Debug)]
pub struct Sample<T> {
    /// Time since the first sample.
    pub at: Duration,
    /// What was seen.
    pub seen: T,
}

/// Runs `bodies` on a thread each while another one calls `probe` every `interval` (above 0), at the beginning first and at
/// last once they have ended; no two samples have the same time. The samples, and what the bodies return.
///
/// # Errors
/// As [`Lab::threads`].
pub fn sampled<T: Send + 'static, R: Send + 'static>(
    lab: &Lab,
    interval: Duration,
    mut probe: impl FnMut() -> T + Send + 'static,
    bodies: Vec<Body<R>>,
) -> Result<(Vec<Sample<T>>, Vec<R>)> {
    let (env, started) = (lab.env().clone(), lab.env().now());
    let stop = Arc::new(AtomicBool::new(false));
    let samples = Arc::new(Mutex::new(vec![Sample { at: Duration::ZERO, seen: probe() }]));
    let sampling = {
        let (samples, stop) = (samples.clone(), stop.clone());
        Box::new(move || {
            let mut next = interval;
            while !stop.load(Ordering::Relaxed) {
                env.sleep((started + next).saturating_sub(env.now()));
                // A probe may have to wait for the store, even beyond the next sample, which is left out then.
                let seen = probe();
                let at = env.now() - started;
                samples.lock().push(Sample { at, seen });
                while next <= at {
                    next += interval;
                }
            }
        })
    };
    let sampler = lab.env().spawn("sampler", Priority::Normal, sampling)?;
    let results = lab.threads(bodies);
    stop.store(true, Ordering::Relaxed);
    sampler.join();
    let samples = std::mem::take(&mut *samples.lock());
    Ok((samples, results?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_into_the_interval_in_which_they_end() {
        let second = Duration::from_secs(1);
        let mut timeline = Timeline::new(10 * second, second);
        timeline.record(Duration::from_millis(10_999), Duration::from_millis(3));
        timeline.record(11 * second, Duration::from_millis(5));
        timeline.record(Duration::from_millis(11_500), Duration::from_millis(7));
        let counts: Vec<u64> = timeline.within(2 * second).iter().map(Latencies::count).collect();
        assert_eq!(counts, [1, 2]);
        assert_eq!(timeline.within(second).len(), 1);
        let mut other = Timeline::new(10 * second, second);
        other.record(13 * second, second);
        timeline.merge(&other);
        let counts: Vec<u64> = timeline.within(4 * second).iter().map(Latencies::count).collect();
        assert_eq!(counts, [1, 2, 0, 1]);
        assert!((timeline.within(second)[0].percentile(50.0) / 3000.0 - 1.0).abs() < 0.02);
    }
}
