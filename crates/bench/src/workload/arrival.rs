//! Arrivals of an open loop: requests come on time, whether or not earlier ones are done.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;

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
