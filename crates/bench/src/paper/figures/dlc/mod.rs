//! DLC: compactions of level 0 under an OLTP-like load, and how to detect the load.
//!
//! The paper runs sysbench's transactions on 64 tables of 10 million rows, 16-byte keys and 184-byte values, with
//! memtables of 128 MB, level 1 of 2 GB, tables of 64 MB, blocks of 64 KB, a cache of 12 GB and a disk of 350 MB/s;
//! level 0 neither slows nor stops writers before it has 100 runs. It finds the greatest throughput first and then
//! offers 90 % of it.
//!
//! [`Testbed`] is the paper's machine at the scale of a run, [`load`] drives a store on it. `waves` has the loads that rise
//! and fall, `sustained` those that stay, `estimators` how the load is told, `readers` what delay costs reads, and `limit` what
//! comes at the limits for writers.

mod estimators;
mod limit;
mod load;
mod readers;
mod sustained;
mod waves;

use std::time::Duration;

use terrace::Options;
use terrace::tree::{Cutter, Dlc, Flushes, Governor, Layout, Leveled, LoadEstimator, Pacer, Silk, TableSize};

use super::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, memory_for, seconds, series};
use crate::paper::experiment::Setting;
use crate::paper::machine::Machine;

pub use estimators::{figure_3, figure_writes};
pub use limit::figure_limit;
pub use readers::{figure_11, figure_12};
pub use sustained::{figure_1, figure_2, figure_4, figure_9a, figure_9b};
pub use waves::{figure_6, figure_7, figure_8, figure_10};

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 184;
const RECORD_BYTES: f64 = (KEY_BYTES + VALUE_BYTES) as f64;
const TABLES: u64 = 64;
const ROWS: u64 = 10_000_000;
const MEMTABLE_BYTES: u64 = 128 << 20;
const LEVEL1_BYTES: u64 = 2 << 30;
const TABLE_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u32 = 64 << 10;
const CACHE_BYTES: u64 = 12 << 30;
const DEVICE_BANDWIDTH: u64 = 350_000_000;

/// Clients.
const THREADS: u64 = 32;

/// The share of the greatest throughput that is offered.
const OFFERED_SHARE: f64 = 0.9;

/// Sizes are divided by the scale. Times are divided by no more than this, and the machine is slower instead: what a store
/// does in milliseconds on any machine, such as pauses of compactions, keeps its proportion to seconds.
const TIME_SCALE: f64 = 10.0;

/// A machine is no slower than this, so that it stays one that the store takes for a disk.
const SLOWDOWN_MAX: f64 = 64.0;

/// In milliseconds: how often DLC and SILK look at the load, and the least that the store takes.
const DLC_INTERVAL: Duration = Duration::from_millis(1000);
const SILK_INTERVAL: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The load is high above this share of what clients take at the peak, and low below that one: the paper's 180 of 300 MB/s.
const HIGH_SHARE: f64 = 0.85;
const LOW_SHARE: f64 = HIGH_SHARE * 180.0 / 300.0;

const DEVIATIONS: &[&str] = &[
    "no SQL: the transaction's reads and writes go to the store one by one, without its locks",
    "sizes are divided by the scale, times by 10 and speeds by the rest; all figures are given in the paper's units",
    "ten seconds take the place of one, so that each has enough transactions",
    "log and data on one device",
    "each thread has a processor of its own, compactions too",
];

/// And where a pacer tells the load.
const LIMITS_DEVIATION: &str = "DLC's limits of load are set to the peak of this machine, as the authors' are to theirs: 0.85 and 0.51 of it";

/// The paper's machine at the scale of a run.
#[derive(Clone, Debug)]
struct Testbed {
    setting: Setting,
    /// How many times as slow the machine is as the paper's.
    slowdown: f64,
}

impl Testbed {
    fn new(setting: &Setting) -> Self {
        let at_350 = setting.on("at 350 MB/s", |model| {
            model.read_bandwidth = DEVICE_BANDWIDTH;
            model.write_bandwidth = DEVICE_BANDWIDTH;
        });
        let slowdown = match setting.machine {
            Machine::Simulated { .. } => (setting.scale / TIME_SCALE).clamp(1.0, SLOWDOWN_MAX),
            Machine::Real { .. } => 1.0,
        };
        let machine = at_350.machine.clone().slowed(slowdown);
        Self { setting: Setting { machine, ..at_350 }, slowdown }
    }

    /// A time of the paper in this run.
    fn time(&self, papers: Duration) -> Duration {
        self.setting.scaled_time(papers).mul_f64(self.slowdown)
    }

    /// A time of this run in the paper's seconds.
    fn seconds(&self, time: Duration) -> f64 {
        seconds(time) * self.setting.scale / self.slowdown
    }

    /// A rate of this run, in anything per second, in the paper's.
    fn rate(&self, per_second: f64) -> f64 {
        per_second * self.slowdown
    }

    /// A latency of this run in the paper's microseconds.
    fn micros(&self, micros: f64) -> f64 {
        micros / self.slowdown
    }

    /// Bandwidth of the device, in bytes per second.
    fn bandwidth(&self) -> u64 {
        ((DEVICE_BANDWIDTH as f64 / self.slowdown) as u64).max(1 << 20)
    }

    /// How often a pacer looks at the load.
    fn interval(&self, papers: Duration) -> Duration {
        self.time(papers).max(INTERVAL_MIN)
    }

    /// The store of a profile. At a peak, clients take `peak` bytes per second of the device.
    fn options(&self, profile: &str, peak: f64) -> Options {
        let setting = &self.setting;
        let mut options = Options::profile(profile).unwrap_or_default();
        options.memtable_bytes = setting.scaled(MEMTABLE_BYTES).max(MEMTABLE_BYTES_MIN);
        options.memory_bytes = Some(memory_for(setting.scaled(CACHE_BYTES), options.memtable_bytes));
        let tree = &mut options.tree;
        let level1_bytes = setting.scaled(LEVEL1_BYTES).max(LEVEL1_BYTES_MIN);
        tree.layout = Layout::Leveled(Leveled { level1_bytes, ..Leveled::default() });
        let table_bytes = setting.scaled(TABLE_BYTES).max(u64::from(BLOCK_BYTES));
        tree.cutter = Cutter::Size(TableSize { table_bytes, flushes: Flushes::Whole });
        tree.block_bytes = BLOCK_BYTES;
        self.set_pace(&mut tree.pacer, peak);
        options
    }

    fn set_pace(&self, pacer: &mut Pacer, peak: f64) {
        let device = Some(self.bandwidth());
        match pacer {
            Pacer::Governor(limits) => self.scale_limits(limits),
            Pacer::Silk(Silk { limits, bandwidth, estimator, interval, .. }) => {
                self.scale_limits(limits);
                bandwidth.device = device;
                let papers = match estimator {
                    LoadEstimator::Operations => SILK_INTERVAL,
                    _ => DLC_INTERVAL,
                };
                *interval = self.interval(papers);
            }
            Pacer::Dlc(Dlc { limits, bandwidth, interval, high_percent, low_percent, .. }) => {
                self.scale_limits(limits);
                bandwidth.device = device;
                *interval = self.interval(DLC_INTERVAL);
                let percent = |share: f64| (share * peak / self.bandwidth() as f64 * 100.0).round();
                *high_percent = percent(HIGH_SHARE).clamp(1.0, 100.0) as u8;
                *low_percent = (percent(LOW_SHARE) as u8).min(*high_percent - 1);
            }
            _ => {}
        }
    }

    fn scale_limits(&self, limits: &mut Governor) {
        for bytes in [&mut limits.debt_slow_bytes, &mut limits.debt_stop_bytes] {
            *bytes = self.setting.scaled(*bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn testbed(scale: f64) -> Testbed {
        let machine = Machine::preset("datacenter-sata-ssd").unwrap();
        Testbed::new(&Setting { machine, scale, seed: 1 })
    }

    #[test]
    fn bandwidth_and_time_together_are_scaled_as_sizes_are() {
        for (scale, slowdown, millis) in [(8.0, 1.0, 125), (128.0, 12.8, 100), (16384.0, 64.0, 3)] {
            let testbed = testbed(scale);
            assert!((testbed.slowdown - slowdown).abs() < 1e-9);
            let second = testbed.time(Duration::from_secs(1));
            assert_eq!(second.as_millis(), millis);
            assert!((testbed.seconds(second) - 1.0).abs() < 1e-5);
            let moved = testbed.bandwidth() as f64 * seconds(second);
            assert!((moved * scale / DEVICE_BANDWIDTH as f64 - 1.0).abs() < 1e-3, "{moved}");
        }
    }

    #[test]
    fn pacers_get_the_device_and_the_limits_of_the_peak() {
        let testbed = testbed(128.0);
        let peak = 0.8 * testbed.bandwidth() as f64;
        let options = testbed.options("dlc-full", peak);
        let Pacer::Dlc(dlc) = options.tree.pacer else { panic!("{options:?}") };
        assert_eq!((dlc.high_percent, dlc.low_percent), (68, 41));
        assert_eq!(dlc.interval, Duration::from_millis(100));
        assert_eq!(dlc.bandwidth.device, Some(testbed.bandwidth()));
        let options = testbed.options("silk", peak);
        let Pacer::Silk(silk) = options.tree.pacer else { panic!("{options:?}") };
        assert_eq!(silk.interval, Duration::from_millis(1));
    }
}
