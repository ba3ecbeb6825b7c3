//! The governor: jobs always run, and writers are slowed before they would have to stop.
//!
//! It keeps LevelDB's signals and limits (`DBImpl::MakeRoomForWrite`), but slows writers to a rate where LevelDB
//! sleeps for a fixed time. Each signal has a pressure: 0 where it begins to slow writers, 1 where it stops them. The
//! worst one sets the rate. It falls geometrically, from the rate at which the store drains, at pressure 0, to a
//! floor, at pressure 1. So a writer that is too fast by any factor finds its balance on the way, and is seldom
//! stopped. The rules of level 0 (`level0`) say when level 0 holds writers up. Writers stop only at the hard limits.

use super::{Pressure, Slowdown, WriterVerdict};
use crate::policy::load::{LoadState, UserLoad};

/// Seconds until writers would be slowed: below the first number jobs begin to hurry, at the second they hurry as much as
/// they can.
const HURRY_SECONDS: (f64, f64) = (20.0, 5.0);

/// Writers are not held up as long as they may write so many times as much as they do.
const ROOM_FACTOR: f64 = 2.0;

/// What a byte that is written adds to the debt, about: it is compacted once for each level that it passes.
const DEBT_PER_BYTE: f64 = 4.0;

/// Divisors: dead values of this part of what lives begin to slow writers, and of this one bring them to the floor.
const DEAD_PARTS: (f64, f64) = (10.0, 4.0);

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
}

/// A signal, measured against where it slows (0) and stops (1) writers.
pub(super) struct Signal {
    pub(super) reason: Pressure,
    pub(super) pressure: f64,
    pub(super) stops: bool,
}

impl GovernorConfig {
    pub(super) fn writer(&self, load: &LoadState) -> WriterVerdict {
        self.verdict(load, self.signals(load))
    }

    /// What writers may do by level 0 and by the debt alone.
    pub(super) fn writer_by_levels(&self, load: &LoadState) -> WriterVerdict {
        let [_, level0, debt, _] = self.signals(load);
        self.verdict(load, [level0, debt])
    }

    /// What the worst of `signals`, at least one, lets writers do.
    fn verdict<const N: usize>(&self, load: &LoadState, mut signals: [Signal; N]) -> WriterVerdict {
        signals.sort_by(|a, b| b.stops.cmp(&a.stops).then(b.pressure.total_cmp(&a.pressure)));
        let Signal { reason, pressure, stops } = signals[0];
        if stops {
            WriterVerdict::Stop { reason }
        } else if pressure > 0.0 {
            let slowdown = Slowdown::BytesPerSecond(self.rate(load, pressure));
            WriterVerdict::Delay { slowdown, reason }
        } else {
            WriterVerdict::Go
        }
    }

    /// How much jobs must hurry, from 0 to 1, lest writers be slowed: by how soon they would be if they went on as in `users`
    /// and nothing were compacted.
    pub(super) fn hurry(&self, load: &LoadState, users: &UserLoad) -> f64 {
        let seconds = self.room_bytes(load, self.bearable(load, users)) / users.write_rate();
        // Nothing over nothing: writers would be slowed, but there are none.
        if seconds.is_nan() { 0.0 } else { between(-seconds, -HURRY_SECONDS.0, -HURRY_SECONDS.1) }
    }

    /// Whether writers get less than they want, or nearly: at the load's pressure their rate is below what they could bear.
    pub(super) fn is_slowing(&self, load: &LoadState, users: &UserLoad) -> bool {
        let bearable = self.bearable(load, users);
        // Of writers who wait, the load tells otherwise.
        users.written_bytes > 0
            && self.signals(load).iter().any(|signal| signal.stops || signal.pressure > bearable)
    }

    /// The pressure up to which the rate of slowed writers is well above what they wrote in `users`.
    fn bearable(&self, load: &LoadState, users: &UserLoad) -> f64 {
        let (drain, floor) = (self.drain(load) as f64, self.floor_bytes_per_second.max(1) as f64);
        let wanted = (ROOM_FACTOR * users.write_rate()).max(1.0);
        // Of two rates that are equal, or the wrong way round, nothing can be said.
        let pressure = (wanted / drain).ln() / (floor / drain).ln();
        if pressure.is_finite() { pressure.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The memtables, as a signal.
    pub(super) fn memtables(sealed_memtables_max: u64, load: &LoadState) -> Signal {
        let fill = load.active_fill();
        let sealed = load.sealed_memtables >= sealed_memtables_max;
        Signal {
            reason: Pressure::Memtables,
            pressure: if sealed { between(fill, 0.5, 1.0) } else { 0.0 },
            stops: sealed && fill >= 1.0,
        }
    }

    /// What dies faster than it is given back, as a signal. It stops nobody: at the floor, space comes back faster.
    fn dead_values(load: &LoadState) -> Signal {
        let live = load.value_bytes.max(2 * load.active_bytes_max) as f64;
        let dead = load.dead_value_bytes as f64;
        let pressure = between(dead, live / DEAD_PARTS.0, live / DEAD_PARTS.1);
        Signal { reason: Pressure::DeadValues, pressure, stops: false }
    }

    fn signals(&self, load: &LoadState) -> [Signal; 4] {
        [
            Self::memtables(self.sealed_memtables_max, load),
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
            Self::dead_values(load),
        ]
    }

    /// Bytes that can be written before the pressure is more than `bearable`, if nothing is compacted.
    fn room_bytes(&self, load: &LoadState, bearable: f64) -> f64 {
        let runs = self.level0_room_bytes(load, bearable);
        let span = self.debt_stop_bytes.saturating_sub(self.debt_slow_bytes) as f64;
        let debt_max = self.debt_slow_bytes as f64 + bearable * span;
        let debt = (debt_max - load.debt_bytes as f64).max(0.0) / DEBT_PER_BYTE;
        runs.min(debt)
    }

    /// Bytes per second at `pressure`, over all writers.
    fn rate(&self, load: &LoadState, pressure: f64) -> u64 {
        slowed_rate(self.drain(load), self.floor_bytes_per_second, pressure)
    }

    /// Bytes per second that flushes and compactions take in, at least the floor.
    fn drain(&self, load: &LoadState) -> u64 {
        let measured = [load.flush_bytes_per_second, load.compaction_bytes_per_second];
        let drain = measured.into_iter().filter(|rate| *rate > 0).min();
        drain.unwrap_or(self.unmeasured_bytes_per_second).max(self.floor_bytes_per_second)
    }
}

/// The rate of writers at `pressure`, from `drain` at 0 to `floor` at 1, geometrically; in bytes per second.
pub(super) fn slowed_rate(drain: u64, floor: u64, pressure: f64) -> u64 {
    let floor = floor.max(1);
    let drain = drain.max(floor);
    let ratio = floor as f64 / drain as f64;
    ((drain as f64 * ratio.powf(pressure)) as u64).max(floor)
}

/// Where `value` lies between `slow` and `stop`, from 0 to 1.
pub(in crate::policy) fn between(value: f64, slow: f64, stop: f64) -> f64 {
    if value >= stop { 1.0 } else { ((value - slow) / (stop - slow)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::load::JobClass;
    use crate::policy::pacer::{Pacer, SteadyConfig};

    const LIMITS: GovernorConfig = GovernorConfig {
        l0_slow: 10,
        l0_stop: 20,
        debt_slow_bytes: 1000,
        debt_stop_bytes: 2000,
        sealed_memtables_max: 1,
        floor_bytes_per_second: 1,
        unmeasured_bytes_per_second: 1,
    };

    fn pacer(yield_disk: bool) -> Pacer {
        if yield_disk {
            Pacer::Steady(SteadyConfig { limits: LIMITS, yield_disk, yield_processor: false })
        } else {
            Pacer::Governor(LIMITS)
        }
    }

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

    fn share_of(pacer: &Pacer, load: &LoadState, users: &UserLoad) -> f64 {
        // Nobody is told to hurry but by the share.
        pacer.budget(load, users, JobClass::Deep).share
    }

    #[test]
    fn an_active_memtable_takes_the_pressure_of_level_0_no_more_than_half_of_the_way() {
        let rate = |l0_run_bytes, active_bytes| {
            let drain = 64 << 20;
            let load = LoadState { l0_runs: 10, l0_run_bytes, active_bytes, ..LoadState::default() };
            let load = LoadState { active_bytes_max: 100, compaction_bytes_per_second: drain, ..load };
            match pacer(true).writer(&load) {
                WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(rate), .. } => {
                    rate as f64 / drain as f64
                }
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
        let share = |l0_runs, debt_bytes, users| share_of(&pacer(true), &load(l0_runs, debt_bytes), &users);
        let writing = |written_bytes| UserLoad { written_bytes, ..reads(5_000, 100) };
        // Room for a thousand bytes in memtables, for 250 in the debt.
        assert_eq!([5, 50, 60].map(|rate| share(0, 0, writing(rate))), [0.1, 1.0, 1.0]);
        assert!((share(0, 0, writing(20)) - 0.55).abs() < 1e-9);
        assert_eq!([0, 9, 10, 11].map(|runs| share(runs, 0, writing(4))), [0.1, 0.1, 1.0, 1.0]);
        assert_eq!([0, 1000, 1500].map(|debt| share(1, debt, writing(4))), [0.1, 1.0, 1.0]);
        assert_eq!([0, 10, 20].map(|runs| share(runs, 2000, writing(0))), [0.1; 3], "nobody writes");
        assert_eq!(share(0, 0, reads(100_000, 3)), 1.0);
        assert_eq!(share_of(&pacer(false), &LoadState::default(), &writing(0)), 1.0);
    }
}
