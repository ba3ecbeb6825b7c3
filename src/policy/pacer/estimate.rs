//! The load of the device, told from what users did.

use crate::options::{Bandwidth, LoadEstimator};
use crate::policy::costs::Costs;
use crate::policy::load::{LoadClass, LoadState, Pace, UserLoad};

/// Divisor: readers wait for the disk if together they spend at least this part of the time in waiting for it.
const WAITING_PARTS: u32 = 10;

/// Idle users take no more of the processor than this for blocks that they ask for, and no more for bytes that they
/// write. It does not grow with the length of the period: users who came only at its end are not idle. In a tenth of a
/// second, it is a hundredth of a processor.
const IDLE_NANOS: f64 = 1e6;

/// What a device can do, in bytes per second, before more has been seen of it: a disk on a SATA port.
const UNSEEN_BYTES_PER_SECOND: u64 = 500_000_000;

/// Divisor: the most that was seen of a device is forgotten by this part with each sample, down to
/// [`UNSEEN_BYTES_PER_SECOND`].
const FORGOTTEN_PARTS: u64 = 1000;

/// Means of fewer reads say nothing of how quick a read is.
const READS_MIN: u32 = 16;

/// Reads that take this many times as long as quick ones show a device that is fully loaded.
const SLOW_READS: f64 = 8.0;

impl UserLoad {
    /// Whether readers wait for a disk.
    #[must_use]
    pub fn waits_for_disk(&self, costs: &Costs) -> bool {
        self.reads_from_disk(costs) && self.read_time > self.period / WAITING_PARTS
    }

    /// Whether users left the machine alone for a while, or next to.
    #[must_use]
    pub fn is_idle(&self, costs: &Costs) -> bool {
        !self.period.is_zero()
            && self.asked as f64 * costs.asked_block <= IDLE_NANOS
            && self.read_time <= self.period / WAITING_PARTS
            && self.written_bytes as f64 * costs.written_byte <= IDLE_NANOS
    }

    /// What users read from the device, in bytes per second; 0 if the operating system has answered from memory.
    #[must_use]
    pub fn device_read_rate(&self, costs: &Costs) -> u64 {
        if self.reads_from_disk(costs) { self.per_second(self.read_bytes) } else { 0 }
    }

    /// Bytes written per second.
    pub(super) fn write_rate(&self) -> f64 {
        if self.period.is_zero() { 0.0 } else { self.written_bytes as f64 / self.period.as_secs_f64() }
    }

    fn reads_from_disk(&self, costs: &Costs) -> bool {
        let from_memory_max = costs.memory_read_max * f64::from(self.reads);
        self.read_time.as_nanos() as f64 > from_memory_max
    }

    /// The mean time of a read, in nanoseconds; `None` of too few reads.
    fn mean_read_nanos(&self) -> Option<u64> {
        let nanos = (self.read_time / self.reads.max(1)).as_nanos();
        (self.reads >= READS_MIN).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn per_second(&self, bytes: u64) -> u64 {
        if self.period.is_zero() { 0 } else { (bytes as f64 / self.period.as_secs_f64()) as u64 }
    }
}

/// What is known of the device after `users`; the rest of `last` as it was.
pub(super) fn device(last: &Pace, users: &UserLoad, costs: &Costs) -> Pace {
    let seen = users.per_second(users.file_bytes);
    let kept = last.device_bytes_per_second - last.device_bytes_per_second / FORGOTTEN_PARTS;
    let quick = match (last.quick_read_nanos, users.mean_read_nanos()) {
        // What comes from memory tells nothing of the device.
        (quick, None) => quick,
        (quick, Some(mean)) if (mean as f64) < costs.memory_read_max => quick,
        (0, Some(mean)) => mean,
        (quick, Some(mean)) => mean.min(quick + quick / FORGOTTEN_PARTS + 1),
    };
    Pace {
        device_bytes_per_second: seen.max(kept).max(UNSEEN_BYTES_PER_SECOND),
        quick_read_nanos: quick,
        ..*last
    }
}

impl Bandwidth {
    /// What the device can do, in bytes per second.
    pub(super) fn limit(&self, pace: &Pace) -> u64 {
        self.device.unwrap_or(pace.device_bytes_per_second).max(1)
    }

    /// What jobs get if clients take `client`, in bytes per second.
    pub(super) fn rest(&self, limit: u64, client: u64) -> u64 {
        limit.saturating_sub(client).max(percent(limit, self.floor_percent)).max(1)
    }
}

impl LoadEstimator {
    /// What clients take of a device of `limit` bytes per second, in bytes per second. `pace` is what is known of the device.
    pub(super) fn client_rate(self, pace: &Pace, load: &LoadState, users: &UserLoad, limit: u64) -> u64 {
        match self {
            Self::Operations => users.per_second(users.returned_bytes + users.written_bytes),
            Self::Weights { get_bytes, scan_bytes } => {
                let gets = users.lookups.saturating_mul(get_bytes);
                users.per_second(gets.saturating_add(users.seeks.saturating_mul(scan_bytes)))
            }
            Self::Blocks => users.per_second(users.missed_bytes),
            Self::Composite => (composite(pace, load, users, limit) * limit as f64) as u64,
        }
    }
}

/// How loaded the device and the flushes are, from 0 to 1 or more: the worst signal.
fn composite(pace: &Pace, load: &LoadState, users: &UserLoad, limit: u64) -> f64 {
    let reads = users.device_read_rate(&load.costs) as f64 / limit as f64;
    let log = users.per_second(users.log_bytes) as f64 / limit as f64;
    let flushes = match load.flush_bytes_per_second {
        0 => 0.0,
        rate => users.write_rate() / rate as f64,
    };
    let waits = match users.mean_read_nanos().filter(|_| pace.quick_read_nanos > 0) {
        Some(mean) if users.waits_for_disk(&load.costs) => {
            (mean as f64 / pace.quick_read_nanos as f64 - 1.0) / (SLOW_READS - 1.0)
        }
        _ => 0.0,
    };
    [reads, log, flushes, waits].into_iter().fold(0.0, f64::max)
}

/// The class after a sample that speaks for `High` if `is_high`, and for `Low` if `is_low`. It takes as many samples in a
/// row to change it as `softness` says: for high, for low.
pub(super) fn class(last: &Pace, (is_high, is_low): (bool, bool), softness: (u32, u32)) -> (LoadClass, u32) {
    let (other, speaks, needed) = match last.class {
        LoadClass::Low => (LoadClass::High, is_high, softness.0),
        LoadClass::High => (LoadClass::Low, is_low, softness.1),
    };
    match speaks {
        false => (last.class, 0),
        true if last.streak + 1 >= needed => (other, 0),
        true => (last.class, last.streak + 1),
    }
}

/// So many percent of `whole`.
pub(super) fn percent(whole: u64, percent: u8) -> u64 {
    (u128::from(whole) * u128::from(percent) / 100) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Reads that took so many microseconds each, of a second.
    fn reads(reads: u32, micros: u64) -> UserLoad {
        let read_time = Duration::from_micros(micros) * reads;
        UserLoad {
            period: Duration::from_secs(1),
            asked: reads.into(),
            reads,
            read_time,
            ..UserLoad::default()
        }
    }

    #[test]
    fn readers_wait_for_a_disk_if_reads_take_long_and_much_of_the_time() {
        assert!(reads(1_500, 100).waits_for_disk(&Costs::TUNED));
        assert!(!reads(500, 100).waits_for_disk(&Costs::TUNED), "a twentieth of the time");
        assert!(!reads(100_000, 3).waits_for_disk(&Costs::TUNED), "from memory");
        assert!(!UserLoad::default().waits_for_disk(&Costs::TUNED));
    }

    #[test]
    fn users_are_idle_if_they_next_to_neither_read_nor_write() {
        let users = |asked, written_bytes| UserLoad { asked, written_bytes, ..reads(0, 0) };
        assert!(users(100, 102_400).is_idle(&Costs::TUNED));
        assert!(!users(101, 0).is_idle(&Costs::TUNED));
        assert!(!users(0, 102_401).is_idle(&Costs::TUNED));
        assert!(
            reads(50, 1_000).is_idle(&Costs::TUNED) && !reads(50, 3_000).is_idle(&Costs::TUNED),
            "from a slow disk"
        );
        assert!(!UserLoad::default().is_idle(&Costs::TUNED), "nothing is known yet");
    }

    #[test]
    fn each_estimator_counts_what_its_paper_says() {
        let users = UserLoad {
            period: Duration::from_secs(2),
            returned_bytes: 3000,
            written_bytes: 1000,
            lookups: 10,
            seeks: 4,
            missed_bytes: 64 << 10,
            ..UserLoad::default()
        };
        let rate = |estimator: LoadEstimator| {
            estimator.client_rate(&Pace::default(), &LoadState::default(), &users, 1_000_000)
        };
        assert_eq!(rate(LoadEstimator::Operations), 2000);
        assert_eq!(rate(LoadEstimator::Weights { get_bytes: 16_000, scan_bytes: 500 }), 81_000);
        assert_eq!(rate(LoadEstimator::Blocks), 32 << 10);
        assert_eq!(rate(LoadEstimator::Composite), 0, "from memory, and no flush has been measured");
    }

    #[test]
    fn writers_alone_load_the_composite_and_no_blocks() {
        let users = UserLoad { written_bytes: 90_000_000, log_bytes: 95_000_000, ..reads(0, 0) };
        let load = LoadState { flush_bytes_per_second: 100_000_000, ..LoadState::default() };
        let rate =
            |estimator: LoadEstimator| estimator.client_rate(&Pace::default(), &load, &users, 1_000_000_000);
        assert_eq!(rate(LoadEstimator::Blocks), 0);
        assert_eq!(rate(LoadEstimator::Composite), 900_000_000, "flushes are busy nine tenths of the time");
    }

    #[test]
    fn slow_reads_show_a_loaded_device() {
        let load = LoadState::default();
        let quick = device(&Pace::default(), &reads(2_000, 100), &load.costs);
        assert_eq!(quick.quick_read_nanos, 100_000);
        let after = device(&quick, &reads(2_000, 450), &load.costs);
        assert!(after.quick_read_nanos < 101_000, "it is forgotten slowly");
        assert_eq!(device(&quick, &reads(2_000, 3), &load.costs).quick_read_nanos, 100_000, "from memory");
        let rate = LoadEstimator::Composite.client_rate(&quick, &load, &reads(2_000, 450), 1000);
        assert_eq!(rate, 500, "half of the way to eight times as slow");
    }

    #[test]
    fn the_device_can_do_what_was_seen_of_it_lately() {
        let seen = |last: &Pace, file_bytes| {
            device(last, &UserLoad { file_bytes, ..reads(0, 0) }, &Costs::TUNED).device_bytes_per_second
        };
        assert_eq!(seen(&Pace::default(), 7), UNSEEN_BYTES_PER_SECOND);
        let last = Pace { device_bytes_per_second: 2_000_000_000, ..Pace::default() };
        assert_eq!(seen(&last, 7), 1_998_000_000);
        assert_eq!(seen(&last, 3_000_000_000), 3_000_000_000);
    }

    #[test]
    fn a_class_changes_after_as_many_samples_in_a_row_as_it_is_soft() {
        let mut pace = Pace::default();
        let mut sample = |is_high, is_low| {
            (pace.class, pace.streak) = class(&pace, (is_high, is_low), (1, 3));
            pace.class
        };
        use LoadClass::{High, Low};
        assert_eq!(sample(false, false), Low);
        assert_eq!(sample(true, false), High);
        assert_eq!(
            [sample(false, true), sample(false, true), sample(false, false)],
            [High; 3],
            "not in a row"
        );
        assert_eq!([sample(false, true), sample(false, true), sample(false, true)], [High, High, Low]);
    }
}
