//! HyperLevelDB's pace: a writer sleeps for a moment after each write (`db/db_impl.cc`, `DBImpl::Write`).

use std::time::Duration;

use super::governor::{GovernorConfig, Signal, slowed_rate};
use super::{Pressure, Slowdown, WriterVerdict};
use crate::policy::load::LoadState;

/// How long writers sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftSleepConfig {
    /// Runs in level 0 that cost nothing.
    pub l0_free: u64,
    /// Sleep for each run above that.
    pub per_run: Duration,
    /// Sealed memtables at which writers stop when the active one is full as well; at least 1.
    pub sealed_memtables_max: u64,
    /// The least rate that slowed writers get while memtables wait, in bytes per second; at least 1.
    pub floor_bytes_per_second: u64,
    /// Taken for the rate of flushes until it has been measured, in bytes per second.
    pub unmeasured_bytes_per_second: u64,
}

impl SoftSleepConfig {
    pub(super) fn presses(&self, runs: u64) -> bool {
        runs > self.l0_free
    }

    pub(super) fn writer(&self, load: &LoadState) -> WriterVerdict {
        let Signal { reason, pressure, stops } = GovernorConfig::memtables(self.sealed_memtables_max, load);
        let runs = u32::try_from(load.l0_runs.saturating_sub(self.l0_free)).unwrap_or(u32::MAX);
        if stops {
            WriterVerdict::Stop { reason }
        } else if pressure > 0.0 {
            let drain = match load.flush_bytes_per_second {
                0 => self.unmeasured_bytes_per_second,
                rate => rate,
            };
            let rate = slowed_rate(drain, self.floor_bytes_per_second, pressure);
            WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(rate), reason }
        } else if runs > 0 {
            let slowdown = Slowdown::PerWrite(self.per_run.saturating_mul(runs));
            WriterVerdict::Delay { slowdown, reason: Pressure::Level0Runs }
        } else {
            WriterVerdict::Go
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_above_those_that_are_free_costs_a_microsecond() {
        let soft = SoftSleepConfig {
            l0_free: 8,
            per_run: Duration::from_micros(1),
            sealed_memtables_max: 1,
            floor_bytes_per_second: 1,
            unmeasured_bytes_per_second: 100,
        };
        let load = |l0_runs, sealed_memtables, active_bytes| LoadState {
            l0_runs,
            sealed_memtables,
            active_bytes,
            active_bytes_max: 100,
            ..LoadState::default()
        };
        let slept = |micros| WriterVerdict::Delay {
            slowdown: Slowdown::PerWrite(Duration::from_micros(micros)),
            reason: Pressure::Level0Runs,
        };
        assert_eq!(soft.writer(&load(8, 0, 100)), WriterVerdict::Go);
        assert_eq!(soft.writer(&load(9, 0, 100)), slept(1));
        assert_eq!(soft.writer(&load(508, 1, 50)), slept(500));
        assert_eq!(soft.writer(&load(508, 1, 100)), WriterVerdict::Stop { reason: Pressure::Memtables });
        let slowed =
            WriterVerdict::Delay { slowdown: Slowdown::BytesPerSecond(10), reason: Pressure::Memtables };
        assert_eq!(soft.writer(&load(508, 1, 75)), slowed);
    }
}
