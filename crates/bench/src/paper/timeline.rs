//! The timeline of an experiment: latencies of requests by interval, and samples of counters.

use std::borrow::Cow;
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

/// So many latencies take less memory one by one than as a histogram.
const FEW: usize = 1000;

/// Latencies, in nanoseconds to two digits.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// As they came, while they are few: an interval of one client has some dozens, and there are thousands of these.
    few: Vec<u64>,
    /// All of them, once they are many.
    many: Option<Histogram<u64>>,
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, time: Duration) {
        self.add(u64::try_from(time.as_nanos()).unwrap_or(NANOS_MAX).min(NANOS_MAX));
    }

    fn add(&mut self, nanos: u64) {
        if self.many.is_none() && self.few.len() < FEW {
            self.few.push(nanos);
        } else {
            put(self.as_many(), nanos);
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        match &other.many {
            Some(many) => {
                self.as_many().add(many).expect("invariant: a histogram that grows takes any value")
            }
            None => other.few.iter().for_each(|&nanos| self.add(nanos)),
        }
    }

    /// Makes a histogram of them.
    fn as_many(&mut self) -> &mut Histogram<u64> {
        let few = std::mem::take(&mut self.few);
        self.many.get_or_insert_with(|| histogram(&few))
    }

    fn all(&self) -> Cow<'_, Histogram<u64>> {
        self.many.as_ref().map_or_else(|| Cow::Owned(histogram(&self.few)), Cow::Borrowed)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.few.len() as u64 + self.many.as_ref().map_or(0, Histogram::len)
    }

    /// Arithmetic mean, in microseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.all().mean() / 1000.0
    }

    /// The latency, in microseconds, that `percent` in a hundred do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        self.all().value_at_percentile(percent) as f64 / 1000.0
    }

    /// The share of latencies above `micros` microseconds, 0 to 1.
    #[must_use]
    pub fn share_above(&self, micros: f64) -> f64 {
        let below = self.all().count_between(0, (micros * 1000.0) as u64);
        1.0 - below as f64 / self.count().max(1) as f64
    }

    /// Points of the cumulative distribution: latency in microseconds, percent that do not exceed it.
    #[must_use]
    pub fn distribution(&self) -> Vec<[f64; 2]> {
        let all = self.all();
        let at = |percent| all.value_at_percentile(percent) as f64 / 1000.0;
        PERCENTILES.iter().map(|&percent| [at(percent), percent]).collect()
    }
}

/// A histogram of `latencies`, which grows.
fn histogram(latencies: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(2).expect("invariant: two digits are supported");
    histogram.auto(true);
    latencies.iter().for_each(|&nanos| put(&mut histogram, nanos));
    histogram
}

fn put(histogram: &mut Histogram<u64>, nanos: u64) {
    histogram.record(nanos).expect("invariant: a histogram that grows takes any value");
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
    fn few_and_many_latencies_are_told_alike() {
        let nanos = |n: u64| 50_000 + n * 7919 % 1_000_003;
        for count in [0, 1, FEW - 1, FEW, FEW + 1, 3 * FEW] {
            let (mut one_by_one, mut parts) = (Latencies::default(), vec![Latencies::default(); 7]);
            let all = histogram(&(0..count as u64).map(nanos).collect::<Vec<_>>());
            for n in 0..count {
                one_by_one.record(Duration::from_nanos(nanos(n as u64)));
                // The first part has most of them.
                parts[if n % 3 > 0 { 0 } else { n % 7 }].record(Duration::from_nanos(nanos(n as u64)));
            }
            let merged = parts.iter().skip(1).fold(parts[0].clone(), |mut sum, part| {
                sum.merge(part);
                sum
            });
            for told in [&one_by_one, &merged] {
                assert_eq!((told.count(), told.mean()), (count as u64, all.mean() / 1000.0));
                assert_eq!(told.percentile(99.0), all.value_at_percentile(99.0) as f64 / 1000.0);
                assert_eq!(told.many.is_some(), count > FEW, "{count}");
            }
        }
    }

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
