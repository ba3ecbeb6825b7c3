//! Users' reads of blocks from a device: how long they take, and how much is read.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A read that is quicker came from the operating system's cache.
const FROM_MEMORY: Duration = Duration::from_micros(20);

/// How long reads of blocks wait for a device, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct ReadTimes {
    /// Of the last ones, on average.
    lately: AtomicU64,
    /// The least that this has been: how long they take when nothing is in the way.
    least: AtomicU64,
    /// How many there were.
    count: AtomicU64,
    /// When the last one ended.
    last: AtomicU64,
}

/// A read counts one part in this many for the average.
const AVERAGED: u64 = 32;

/// Readers wait if reads take so many times as long as they should.
const WAIT_FACTOR: u64 = 3;

/// Reads that are so long ago tell nothing of the load.
const READ_LATELY: Duration = Duration::from_secs(1);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl ReadTimes {
    /// Notes a read. Returns whether it came from the device.
    pub(super) fn note(&self, (started, ended): (Duration, Duration)) -> bool {
        let time = ended.saturating_sub(started);
        if time < FROM_MEMORY {
            return false;
        }
        let taken = nanos(time);
        let before = self.lately.load(Relaxed);
        let lately = if before == 0 { taken } else { before - before / AVERAGED + taken / AVERAGED };
        self.lately.store(lately, Relaxed);
        self.last.store(nanos(ended), Relaxed);
        if self.count.fetch_add(1, Relaxed) >= AVERAGED {
            let least = self.least.load(Relaxed);
            self.least.store(if least == 0 { lately } else { least.min(lately) }, Relaxed);
        }
        true
    }

    fn is_recent(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.last.load(Relaxed)) + READ_LATELY.as_nanos()
    }

    /// Whether they take longer than they should.
    pub(super) fn are_slow(&self, now: Duration) -> bool {
        let (lately, least) = (self.lately.load(Relaxed), self.least.load(Relaxed));
        least > 0 && lately > least.saturating_mul(WAIT_FACTOR) && self.is_recent(now)
    }

    /// How long one takes: of late, and with nothing in the way; 0 if that is unknown.
    pub(super) fn nanos(&self, now: Duration) -> [u64; 2] {
        let (lately, least) = (self.lately.load(Relaxed), self.least.load(Relaxed));
        let least = if least == 0 { lately } else { least };
        [if self.is_recent(now) { lately } else { least }, least]
    }
}

/// How much users have read from all devices, as the age of what they have read.
#[derive(Debug, Default)]
pub(super) struct ReadVolume {
    /// Bytes since the age has changed.
    bytes: AtomicU64,
    age: AtomicU16,
}

impl ReadVolume {
    /// Counts `bytes`. Returns the age.
    pub(super) fn note(&self, bytes: u64) -> u16 {
        self.bytes.fetch_add(bytes, Relaxed);
        self.age.load(Relaxed)
    }

    /// The age; it grows by one when `bytes_max` have been read.
    pub(super) fn age(&self, bytes_max: u64) -> u16 {
        let bytes = self.bytes.load(Relaxed);
        if bytes >= bytes_max.max(1) && self.bytes.compare_exchange(bytes, 0, Relaxed, Relaxed).is_ok() {
            self.age.fetch_add(1, Relaxed);
        }
        self.age.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: Duration = Duration::from_micros(1);

    #[test]
    fn reads_from_memory_tell_nothing_and_old_ones_only_the_least() {
        let (times, second) = (ReadTimes::default(), Duration::from_secs(1));
        assert!(!times.note((second, second + MICRO)));
        assert_eq!(times.nanos(second), [0, 0]);
        for _ in 0..2 * AVERAGED {
            assert!(times.note((second, second + 100 * MICRO)));
        }
        assert!(times.nanos(second).iter().all(|nanos| (90_000..=100_000).contains(nanos)));
        for _ in 0..10 * AVERAGED {
            times.note((second, second + 1000 * MICRO));
        }
        let [lately, least] = times.nanos(second);
        assert!(times.are_slow(second) && lately > 900_000 && least <= 100_000);
        assert!(!times.are_slow(3 * second));
        assert_eq!(times.nanos(3 * second), [least, least]);
    }

    #[test]
    fn the_age_grows_with_what_is_read() {
        let volume = ReadVolume::default();
        assert_eq!((volume.note(60), volume.age(100)), (0, 0));
        assert_eq!((volume.note(60), volume.age(100), volume.age(100)), (0, 1, 1));
    }
}
