//! The pacer: decides when a job runs, and how long a writer waits.
//!
//! # Writers
//!
//! `Governor` keeps LevelDB's signals and limits (`DBImpl::MakeRoomForWrite`), but slows writers to a rate where
//! LevelDB sleeps for a fixed time. Each signal has a pressure: 0 where it begins to slow writers, 1 where it stops
//! them. The worst one sets the rate. It falls geometrically, from the rate at which the store drains, at pressure 0,
//! to a floor, at pressure 1. So a writer that is too fast by any factor finds its balance on the way, and is seldom
//! stopped. The rules of level 0 (`level0`) say when level 0 holds writers up. Writers stop only at the hard limits.
//!
//! # Jobs
//!
//! Compactions and moves are always admitted, and flushes do not ask. A rewrite makes no room for writers, so it
//! waits while level 0 holds them up.
//!
//! Compactions take all of the disk that they can get, and readers wait behind them (`docs/benchmarks/choices.md`,
//! "Level 0 and compactions"). So while readers wait for the disk, a compaction works only a share of its time
//! ([`Pacer::compaction_share`]). The share is smaller, the later writers would be slowed if they went on at their
//! present rate and nothing were compacted. Debt hurries no compaction where nobody writes.

use super::{Costs, LoadState, Plan, PlanKind};
use std::time::Duration;

/// Share of its time that a compaction works while writers are far from being slowed. (Standing still would serve
/// readers only for a while: what is not compacted costs them, too.)
const COMPACTION_SHARE_MIN: f64 = 0.1;

/// Seconds until writers would be slowed: below the first number the share begins to rise, at the second it is all of
/// the time.
const HURRY_SECONDS: (f64, f64) = (20.0, 5.0);

/// What a byte that is written adds to the debt, about: it is compacted once for each level that it passes.
const DEBT_PER_BYTE: f64 = 4.0;

/// Divisor: readers wait for the disk if together they spend at least this part of the time in waiting for it.
const WAITING_PARTS: u32 = 10;

/// Idle users take no more of the processor than this for blocks that they ask for, and no more for bytes that they
/// write. It does not grow with the length of the period: users who came only at its end are not idle. In a tenth of a
/// second, it is a hundredth of a processor.
const IDLE_NANOS: f64 = 1e6;

/// The pacers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacer {
    /// Jobs always run; writers slow down smoothly before the hard limits.
    Governor(GovernorConfig),
}

/// Limits of the governor. Each `slow` is below its `stop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GovernorConfig {
    /// Runs in level 0 from which writers are slowed.
    pub l0_slow: u64,
    /// Runs in level 0 at which writers stop.
    pub l0_stop: u64,
    /// Bytes of debt from which writers are slowed.
    pub debt_slow_bytes: u64,
    /// Bytes of debt at which writers stop.
    pub debt_stop_bytes: u64,
    /// Sealed memtables at which writers stop when the active one is full as well; at least 1. They are slowed when
    /// it is more than half full.
    pub sealed_memtables_max: u64,
    /// The least rate that slowed writers get together, in bytes per second; at least 1.
    pub floor_bytes_per_second: u64,
    /// Taken for the drain rate until one has been measured, in bytes per second.
    pub unmeasured_bytes_per_second: u64,
    /// Whether compactions leave the disk to readers while they hold up no writer.
    pub throttle_compactions: bool,
}

/// What users did over a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UserLoad {
    /// How long the while was.
    pub period: Duration,
    /// Number of blocks that lookups and iterators asked for, and of those of 4 KiB that iterators read in longer pieces.
    pub asked: u64,
    /// Number of reads of lookups and iterators that were not answered from memory.
    pub reads: u32,
    /// What those took together.
    pub read_time: Duration,
    /// Bytes of keys and values that were written.
    pub written_bytes: u64,
}

impl UserLoad {
    /// Whether readers wait for a disk.
    #[must_use]
    pub fn waits_for_disk(&self, costs: &Costs) -> bool {
        let from_memory_max = costs.memory_read_max * f64::from(self.reads);
        self.read_time.as_nanos() as f64 > from_memory_max && self.read_time > self.period / WAITING_PARTS
    }

    /// Whether users left the machine alone for a while, or next to.
    #[must_use]
    pub fn is_idle(&self, costs: &Costs) -> bool {
        !self.period.is_zero()
            && self.asked as f64 * costs.asked_block <= IDLE_NANOS
            && self.read_time <= self.period / WAITING_PARTS
            && self.written_bytes as f64 * costs.written_byte <= IDLE_NANOS
    }

    /// Bytes written per second.
    fn write_rate(&self) -> f64 {
        if self.period.is_zero() { 0.0 } else { self.written_bytes as f64 / self.period.as_secs_f64() }
    }
}

/// What slows or stops writers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// Memtables fill faster than they are flushed.
    Memtables,
    /// Level 0 has too many runs, or too much in them.
    Level0Runs,
    /// The levels are too far over their limits.
    Debt,
}

/// What writers may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterVerdict {
    /// Write freely.
    Go,
    /// Write at this rate, all writers together.
    Delay {
        /// The rate.
        bytes_per_second: u64,
        /// The worst signal.
        reason: Pressure,
    },
    /// Wait until the next verdict.
    Stop {
        /// The signal that is at its limit.
        reason: Pressure,
    },
}

impl WriterVerdict {
    /// What holds writers back, and whether they are stopped.
    #[must_use]
    pub fn pressed(self) -> Option<(Pressure, bool)> {
        match self {
            Self::Go => None,
            Self::Delay { reason, .. } => Some((reason, false)),
            Self::Stop { reason } => Some((reason, true)),
        }
    }
}

/// Whether a job may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Now.
    Run,
    /// Not under this load.
    Defer,
}

/// A signal, measured against where it slows (0) and stops (1) writers.
struct Signal {
    reason: Pressure,
    pressure: f64,
    stops: bool,
}

impl Pacer {
    /// What writers may do under `load`.
    #[must_use]
    pub fn writer(&self, load: &LoadState) -> WriterVerdict {
        let Self::Governor(config) = self;
        let mut signals = config.signals(load);
        signals.sort_by(|a, b| b.stops.cmp(&a.stops).then(b.pressure.total_cmp(&a.pressure)));
        let Signal { reason, pressure, stops } = signals[0];
        if stops {
            WriterVerdict::Stop { reason }
        } else if pressure > 0.0 {
            WriterVerdict::Delay { bytes_per_second: config.rate(load, pressure), reason }
        } else {
            WriterVerdict::Go
        }
    }

    /// Whether `plan` may run under `load`. Flushes do not ask.
    #[must_use]
    pub fn admit(&self, load: &LoadState, plan: &Plan) -> Admission {
        match plan.kind {
            PlanKind::Rewrite if self.presses(load.l0_runs) => Admission::Defer,
            PlanKind::Compact | PlanKind::Move | PlanKind::Drop | PlanKind::Rewrite => Admission::Run,
        }
    }

    /// The share of its time, above 0 and up to 1, that a compaction may work under `load` and `users`.
    #[must_use]
    pub fn compaction_share(&self, load: &LoadState, users: &UserLoad) -> f64 {
        let Self::Governor(config) = self;
        if !config.throttle_compactions || !users.waits_for_disk(&load.costs) {
            return 1.0;
        }
        let seconds = config.room_bytes(load) / users.write_rate();
        // Nothing over nothing: writers would be slowed, but there are none.
        let hurry =
            if seconds.is_nan() { 0.0 } else { between(-seconds, -HURRY_SECONDS.0, -HURRY_SECONDS.1) };
        COMPACTION_SHARE_MIN + (1.0 - COMPACTION_SHARE_MIN) * hurry
    }

    /// Whether a level 0 that counts for `runs` ([`super::Layout::level0_runs`]) holds writers up, or is about to.
    #[must_use]
    pub fn presses(&self, runs: u64) -> bool {
        let Self::Governor(config) = self;
        config.level0_slows(runs)
    }
}

impl GovernorConfig {
    fn signals(&self, load: &LoadState) -> [Signal; 3] {
        let fill = load.active_fill();
        let sealed = load.sealed_memtables >= self.sealed_memtables_max;
        [
            Signal {
                reason: Pressure::Memtables,
                pressure: if sealed { between(fill, 0.5, 1.0) } else { 0.0 },
                stops: sealed && fill >= 1.0,
            },
            Signal {
                reason: Pressure::Level0Runs,
                pressure: self.level0_pressure(load),
                stops: self.level0_stops(load.l0_runs),
            },
            Signal {
                reason: Pressure::Debt,
                pressure: between(
                    load.debt_bytes as f64,
                    self.debt_slow_bytes as f64,
                    self.debt_stop_bytes as f64,
                ),
                stops: load.debt_bytes >= self.debt_stop_bytes,
            },
        ]
    }

    /// Bytes that can be written before writers are slowed, if nothing is compacted.
    fn room_bytes(&self, load: &LoadState) -> f64 {
        let runs = self.level0_room_bytes(load);
        let debt = self.debt_slow_bytes.saturating_sub(load.debt_bytes) as f64 / DEBT_PER_BYTE;
        runs.min(debt)
    }

    /// Bytes per second at `pressure`, over all writers.
    fn rate(&self, load: &LoadState, pressure: f64) -> u64 {
        let measured = [load.flush_bytes_per_second, load.compaction_bytes_per_second];
        let drain = measured.into_iter().filter(|rate| *rate > 0).min();
        let floor = self.floor_bytes_per_second.max(1);
        let drain = drain.unwrap_or(self.unmeasured_bytes_per_second).max(floor);
        let ratio = floor as f64 / drain as f64;
        ((drain as f64 * ratio.powf(pressure)) as u64).max(floor)
    }
}

/// Where `value` lies between `slow` and `stop`, from 0 to 1.
pub(super) fn between(value: f64, slow: f64, stop: f64) -> f64 {
    if value >= stop { 1.0 } else { ((value - slow) / (stop - slow)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(throttle_compactions: bool) -> Pacer {
        Pacer::Governor(GovernorConfig {
            l0_slow: 10,
            l0_stop: 20,
            debt_slow_bytes: 1000,
            debt_stop_bytes: 2000,
            sealed_memtables_max: 1,
            floor_bytes_per_second: 1,
            unmeasured_bytes_per_second: 1,
            throttle_compactions,
        })
    }

    /// Reads that took so many microseconds each, of a second.
    fn reads(reads: u32, micros: u64) -> UserLoad {
        let read_time = Duration::from_micros(micros) * reads;
        UserLoad { period: Duration::from_secs(1), asked: reads.into(), reads, read_time, written_bytes: 0 }
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
    fn an_active_memtable_takes_the_pressure_of_level_0_no_more_than_half_of_the_way() {
        let rate = |l0_run_bytes, active_bytes| {
            let drain = 64 << 20;
            let load = LoadState { l0_runs: 10, l0_run_bytes, active_bytes, ..LoadState::default() };
            let load = LoadState { active_bytes_max: 100, compaction_bytes_per_second: drain, ..load };
            match pacer(true).writer(&load) {
                WriterVerdict::Delay { bytes_per_second, .. } => bytes_per_second as f64 / drain as f64,
                verdict => panic!("{verdict:?}"),
            }
        };
        let [as_one, as_four, as_many] = [None, Some(25), Some(1)].map(|run_bytes| rate(run_bytes, 100));
        assert!(as_one > as_four && as_four > as_many, "{as_one} {as_four} {as_many}");
        assert_eq!(as_many, rate(Some(20), 100));
    }

    #[test]
    fn compactions_leave_readers_the_less_the_sooner_writers_are_slowed() {
        let load = |l0_runs, debt_bytes| LoadState {
            l0_runs,
            debt_bytes,
            active_bytes_max: 100,
            ..LoadState::default()
        };
        let share =
            |l0_runs, debt_bytes, users| pacer(true).compaction_share(&load(l0_runs, debt_bytes), &users);
        let writing = |written_bytes| UserLoad { written_bytes, ..reads(5_000, 100) };
        // Room for a thousand bytes in memtables, for 250 in the debt.
        assert_eq!([5, 50, 60].map(|rate| share(0, 0, writing(rate))), [0.1, 1.0, 1.0]);
        assert!((share(0, 0, writing(20)) - 0.55).abs() < 1e-9);
        assert_eq!([0, 9, 10, 11].map(|runs| share(runs, 0, writing(4))), [0.1, 0.1, 1.0, 1.0]);
        assert_eq!([0, 1000, 1500].map(|debt| share(1, debt, writing(4))), [0.1, 1.0, 1.0]);
        assert_eq!([0, 10, 20].map(|runs| share(runs, 2000, writing(0))), [0.1; 3], "nobody writes");
        assert_eq!(share(0, 0, reads(100_000, 3)), 1.0);
        assert_eq!(pacer(false).compaction_share(&LoadState::default(), &writing(0)), 1.0);
    }
}
