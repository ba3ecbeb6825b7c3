//! Arrivals of an open loop: requests come on time, whether or not earlier ones are done.

use std::time::Duration;

use crate::generator::Rng;

/// How many requests come, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// A constant number of requests per second.
    Sustained(f64),
    /// A peak, then a trough, again and again.
    SquareWave {
        /// Requests per second of a peak.
        high: f64,
        /// Length of a peak.
        high_time: Duration,
        /// Requests per second of a trough.
        low: f64,
        /// Length of a trough.
        low_time: Duration,
    },
}

impl Rate {
    /// Requests per second at `time`, and when that next changes.
    #[must_use]
    pub fn at(&self, time: Duration) -> (f64, Duration) {
        match *self {
            Self::Sustained(rate) => (rate, Duration::MAX),
            Self::SquareWave { high, high_time, low, low_time } => {
                let period = (high_time + low_time).as_nanos().max(1);
                let since = Duration::from_nanos(u64::try_from(time.as_nanos() % period).unwrap_or(u64::MAX));
                let start = time - since;
                if since < high_time {
                    (high, start + high_time)
                } else {
                    (low, start + high_time + low_time)
                }
            }
        }
    }
}

/// The times at which requests come, evenly spaced while the rate stays the same.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rate: Rate,
    next: Duration,
}

impl Arrivals {
    /// From time 0 on; the rates must be above 0.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate, next: Duration::ZERO }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    /// When the next request comes; there is always another one.
    fn next(&mut self) -> Option<Duration> {
        let arrival = self.next;
        // The part of a request that is still to come passes at the rate of each stretch of time.
        let (mut time, mut part) = (arrival, 1.0);
        loop {
            let (rate, until) = self.rate.at(time);
            let needed = Duration::from_secs_f64(part / rate);
            if needed <= until - time {
                self.next = time + needed.max(Duration::from_nanos(1));
                return Some(arrival);
            }
            part -= (until - time).as_secs_f64() * rate;
            time = until;
        }
    }
}

/// The times at which requests come by themselves, independent of one another (a Poisson process): gaps are exponential.
#[derive(Clone, Debug)]
pub struct Poisson {
    rate: f64,
    /// Seconds from the start to the arrival before the next.
    last: f64,
    rng: Rng,
}

impl Poisson {
    /// `rate` requests per second on average, above 0; gaps are drawn from `rng`.
    #[must_use]
    pub fn new(rate: f64, rng: Rng) -> Self {
        Self { rate, last: 0.0, rng }
    }
}

impl Iterator for Poisson {
    type Item = Duration;

    /// When the next request comes; there is always another one.
    fn next(&mut self) -> Option<Duration> {
        self.last -= (1.0 - self.rng.next_f64()).ln() / self.rate;
        Some(Duration::try_from_secs_f64(self.last).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_independent_requests() {
        let second = |seed: u64| {
            let arrivals = Poisson::new(1000.0, Rng::new(seed));
            arrivals.take_while(|at| *at < Duration::from_secs(1)).count() as f64
        };
        let counts: Vec<f64> = (0..400).map(second).collect();
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((mean - 1000.0).abs() < 10.0, "{mean}");
        // The variance of a Poisson count is its mean; that of 400 samples is within a fifth of it.
        assert!((variance / 1000.0 - 1.0).abs() < 0.2, "{variance}");
        let times: Vec<Duration> = Poisson::new(1000.0, Rng::new(1)).take(1000).collect();
        assert!(times.is_sorted() && times[0] > Duration::ZERO);
    }

    fn arrivals(rate: Rate, range: std::ops::Range<u64>) -> usize {
        let range = Duration::from_millis(range.start)..Duration::from_millis(range.end);
        Arrivals::new(rate).take_while(|at| *at < range.end).filter(|at| *at >= range.start).count()
    }

    #[test]
    fn a_sustained_rate_is_kept_evenly() {
        let rate = Rate::Sustained(1000.0);
        assert_eq!(arrivals(rate, 0..1000), 1000);
        assert_eq!(arrivals(rate, 500..510), 10);
        let times: Vec<_> = Arrivals::new(rate).take(3).collect();
        assert_eq!(times, [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(2)]);
    }

    #[test]
    fn a_square_wave_has_peaks_and_troughs() {
        let (high_time, low_time) = (Duration::from_millis(500), Duration::from_millis(100));
        let wave = Rate::SquareWave { high: 1200.0, high_time, low: 300.0, low_time };
        for period in [0, 600, 6000] {
            let peak = arrivals(wave, period..period + 500);
            let trough = arrivals(wave, period + 500..period + 600);
            assert!(
                peak.abs_diff(600) <= 1 && trough.abs_diff(30) <= 1,
                "{peak} and {trough} at {period} ms"
            );
        }
    }

    #[test]
    fn times_rise_and_a_trough_shorter_than_a_gap_is_crossed() {
        let (high_time, low_time) = (Duration::from_millis(10), Duration::from_millis(1));
        let wave = Rate::SquareWave { high: 100.0, high_time, low: 1.0, low_time };
        let times: Vec<_> = Arrivals::new(wave).take(100).collect();
        assert!(times.is_sorted_by(|a, b| a < b));
        assert!(times[99] > Duration::from_millis(99 * 11 - 11), "{:?}", times[99]);
    }
}
