//! The limiter: how long jobs must pause so that together they keep to a rate, in bytes read and written.
//!
//! A token bucket that counts what has been done, not what is asked for: jobs work in pieces, and pause after a piece that was too
//! much. Unused bytes are kept for a tenth of a second, so a pause that took too long is made up for.
//!
//! Invariant: a clock that stands still or jumps back adds no bytes; one that jumps ahead adds a tenth of a second's.

use std::time::Duration;

use crate::env::sync::OrderedMutex;

/// Unused bytes are kept for this long.
const KEPT: Duration = Duration::from_millis(100);

/// A token bucket. For all jobs of a device.
#[derive(Debug, Default)]
pub(in crate::engine) struct Limiter(OrderedMutex<Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    at: Duration,
    /// What jobs had read and written by then.
    done: u64,
    /// What jobs have done too much; below zero, what they may do at once.
    owed: f64,
}

impl Limiter {
    /// How long jobs must pause now, if `done` bytes have been read and written by `now` and `bytes_per_second` are allowed.
    pub(in crate::engine) fn pause(&self, now: Duration, done: u64, bytes_per_second: u64) -> Duration {
        let rate = bytes_per_second.max(1) as f64;
        let mut bucket = self.0.lock();
        let allowed = rate * now.saturating_sub(bucket.at).as_secs_f64();
        let grown = done.saturating_sub(bucket.done) as f64;
        bucket.owed = (bucket.owed + grown - allowed).max(-rate * KEPT.as_secs_f64());
        (bucket.at, bucket.done) = (now, done);
        Duration::try_from_secs_f64((bucket.owed / rate).max(0.0)).unwrap_or(Duration::MAX)
    }

    /// Jobs may do as much as they can. What they do meanwhile is not held against them.
    pub(in crate::engine) fn free(&self, now: Duration, done: u64) {
        *self.0.lock() = Bucket { at: now, done, owed: 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn jobs_keep_to_the_rate() {
        let limiter = Limiter::default();
        limiter.free(Duration::ZERO, 0);
        let (mut now, mut done) = (Duration::ZERO, 0);
        for _ in 0..1000 {
            done += 70_000;
            now += MS;
            now += limiter.pause(now, done, 10_000_000);
        }
        let rate = done as f64 / now.as_secs_f64();
        assert!((9_900_000.0..=11_200_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_pause_that_took_too_long_is_made_up_for_and_a_long_rest_is_not() {
        let limiter = Limiter::default();
        assert_eq!(limiter.pause(1000 * MS, 0, 1000), Duration::ZERO);
        assert_eq!(limiter.pause(1000 * MS, 100, 1000), Duration::ZERO, "kept for a tenth of a second");
        assert_eq!(limiter.pause(1000 * MS, 200, 1000), 100 * MS);
        assert_eq!(limiter.pause(9000 * MS, 200, 1000), Duration::ZERO);
        assert_eq!(limiter.pause(9000 * MS, 500, 1000), 200 * MS);
    }

    #[test]
    fn a_clock_that_jumps_back_adds_nothing() {
        let limiter = Limiter::default();
        limiter.free(1000 * MS, 0);
        assert_eq!(limiter.pause(1000 * MS, 100, 1000), 100 * MS);
        assert_eq!(limiter.pause(500 * MS, 100, 1000), 100 * MS);
        assert_eq!(limiter.pause(550 * MS, 100, 1000), 50 * MS);
    }

    #[test]
    fn what_was_done_freely_is_not_owed() {
        let limiter = Limiter::default();
        limiter.free(10 * MS, 1 << 30);
        assert_eq!(limiter.pause(10 * MS, 1 << 30, 1000), Duration::ZERO);
    }
}
