//! Options of the pacer: when compactions run, and how long writers wait.

mod limits;
mod load;

use std::time::Duration;

use super::range;
use crate::error::Result;

pub use limits::Governor;
pub use load::{Bandwidth, Burst, LoadEstimator, Peak};

/// When compactions run, and how long writers wait for them.
///
/// ```
/// use terrace::tree::{Governor, Pacer};
/// let Pacer::Steady(steady) = Pacer::default() else { panic!("the default") };
/// assert_eq!(steady.limits, Governor::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pacer {
    /// Compactions take what clients leave of processor and disk, as long as writers are not slowed for it.
    Steady(Steady),
    /// Compactions run once they are due. Writers are slowed to a rate, which is lower the further they are ahead of
    /// compactions, and wait at hard limits. (LevelDB's `MakeRoomForWrite` has the same limits, and sleeps.)
    Governor(Governor),
    /// Compactions run once they are due. Writers sleep for microseconds after a write, and never wait for compactions.
    SoftSleep(SoftSleep),
    /// Compactions get the bandwidth that clients leave; those of level 0 go first, deeper ones pause at a peak.
    Silk(Silk),
    /// Compactions of level 0 are delayed while the load is high.
    Dlc(Dlc),
    /// Each level is compacted as fast as data comes into it, and writers are slowed by how full memory is.
    Gear(Gear),
}

/// The default pace, [`Pacer::Steady`]. Each of its parts can be switched off.
///
/// ```
/// use terrace::tree::Steady;
/// assert!(Steady::default().yield_disk && Steady::default().yield_processor);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steady {
    /// Limits for writers. Below them, and while writers are not about to reach them:
    pub limits: Governor,
    /// Compactions pause while lookups and scans wait for the disk. On a disk of limited bandwidth, these would wait
    /// behind compactions. Default: true.
    pub yield_disk: bool,
    /// Compactions and flushes together leave one processor to clients. Default: true.
    pub yield_processor: bool,
}

/// HyperLevelDB's pace, [`Pacer::SoftSleep`]: after each write a writer sleeps for each run that level 0 has above a
/// number (`db/db_impl.cc`). Level 0 never stops it; only memtables do.
///
/// ```
/// use terrace::tree::SoftSleep;
/// assert_eq!(SoftSleep::default().l0_free, 8);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftSleep {
    /// Runs in level 0 that cost a writer nothing; at least the layout's `l0_trigger` or `l0_runs`, at most 10,000.
    /// Default: 8.
    pub l0_free: usize,
    /// Sleep for each run above that, in nanoseconds; 1 to 1,000,000. Default: 1000.
    pub nanos_per_run: u32,
}

/// SILK's pace, [`Pacer::Silk`] ("SILK: Preventing Latency Spikes in Log-Structured Merge Key-Value Stores", section 4):
///
/// * All compactions together get the bandwidth of the device that clients leave, but never less than a floor.
/// * Compactions of level 0 go before deeper ones. If all threads are busy with deeper ones, these pause.
/// * At a peak of clients deeper compactions pause.
///
/// Flushes are not limited. At the limits for writers every compaction runs freely.
///
/// ```
/// use terrace::tree::{LoadEstimator, Silk};
/// let star = Silk { estimator: LoadEstimator::Blocks, ..Silk::default() };
/// assert_eq!(star.pause_percent, 75);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silk {
    /// Limits for writers.
    pub limits: Governor,
    /// What the device can do, and how little compactions get.
    pub bandwidth: Bandwidth,
    /// How the bandwidth that clients take is told. Default: [`LoadEstimator::Operations`].
    pub estimator: LoadEstimator,
    /// How often it is told; 1 ms to 1 minute. Default: 10 ms.
    pub interval: Duration,
    /// Clients that take more than this part of the device's bandwidth are at a peak, in percent; 1 to 100. Default: 75.
    pub pause_percent: u8,
}

/// DLC's pace, [`Pacer::Dlc`] ("DLC: A New Compaction Scheme for LSM-tree with High Stability and Low Latency", sections
/// 3 to 5):
///
/// * The load is high or low, by the bandwidth that clients take.
/// * While it is high, level 0 is not compacted, and of the deeper levels one at a time.
/// * While it is low, level 0 goes first.
/// * All compactions together get the bandwidth of the device that clients leave, reads and writes alike, but never
///   less than a floor.
///
/// Flushes are not limited. At the limits for writers every compaction runs freely.
///
/// ```
/// use terrace::tree::{Burst, Dlc};
/// let bursty = Dlc { burst: Burst::Full { runs: 20 }, ..Dlc::default() };
/// assert_eq!(bursty.softness, 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dlc {
    /// Limits for writers. They beat every delay.
    pub limits: Governor,
    /// What the device can do, and how little compactions get.
    pub bandwidth: Bandwidth,
    /// How the bandwidth that clients take is told. Default: [`LoadEstimator::Composite`].
    pub estimator: LoadEstimator,
    /// How often it is told (table 2: `time_interval`); 1 ms to 1 minute. Default: 1 s.
    pub interval: Duration,
    /// The load is high if clients take more than this part of the device's bandwidth, in percent; 1 to 100.
    /// Default: 86, the paper's 300 of 350 MB/s.
    pub high_percent: u8,
    /// The load is low if clients take less than this part, in percent; below `high_percent`. In between it stays
    /// what it was. Default: 51, the paper's 180 of 350 MB/s.
    pub low_percent: u8,
    /// As many samples in a row must be below `low_percent` before the load counts as low (table 2: `softness`); 1 to
    /// 1000. Default: 3.
    pub softness: u32,
    /// The same for `high_percent`. Default: 1.
    pub high_softness: u32,
    /// What may be done in level 0 while the load is high. Default: [`Peak::DelayFull`].
    pub peak: Peak,
    /// What is done in level 0 when the load has been high for too long. Default: [`Burst::Never`].
    pub burst: Burst,
}

/// bLSM's pace, [`Pacer::Gear`] (Sears and Ramakrishnan, "bLSM: A General Purpose Log Structured Merge Tree", section 4, and
/// `mergeManager.cpp` of the authors' code), in bytes:
///
/// * *Spring.* A write sleeps the longer the fuller the memtables are. Below a part of their size it does not sleep, so they
///   absorb bursts.
/// * *Gear.* While users write, data leaves a level below level 0 as fast as other data comes into it, in proportion to how
///   full the level is. And nothing comes into a level over its limit that is behind with what it owes the next one.
///
/// While nobody writes, and at the limits for writers, every compaction runs.
///
/// ```
/// use std::time::Duration;
/// use terrace::tree::Gear;
/// assert_eq!((Gear::default().spring_percent, Gear::default().spring), (95, Duration::from_secs(5)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gear {
    /// Limits for writers. Of memtables, only those at which writers wait; below these is the spring.
    pub limits: Governor,
    /// Writes sleep once the memtables hold more than this part of what they may hold, in percent; 1 to 99. Default: 95.
    pub spring_percent: u8,
    /// Beside a millisecond, a write sleeps for this long for each time that the memtables hold more than that part, in
    /// proportion: a hundredth of it where they hold a hundredth more; 1 ms to 1 minute. Default: 5 s.
    pub spring: Duration,
}

impl Default for Pacer {
    fn default() -> Self {
        Self::Steady(Steady::default())
    }
}

impl Default for Steady {
    fn default() -> Self {
        Self { limits: Governor::default(), yield_disk: true, yield_processor: true }
    }
}

impl Default for SoftSleep {
    fn default() -> Self {
        Self { l0_free: 8, nanos_per_run: 1000 }
    }
}

impl Default for Silk {
    fn default() -> Self {
        Self {
            limits: Governor::default(),
            bandwidth: Bandwidth::default(),
            estimator: LoadEstimator::Operations,
            interval: Duration::from_millis(10),
            pause_percent: 75,
        }
    }
}

impl Default for Dlc {
    fn default() -> Self {
        Self {
            limits: Governor::default(),
            bandwidth: Bandwidth::default(),
            estimator: LoadEstimator::Composite,
            interval: Duration::from_secs(1),
            high_percent: 86,
            low_percent: 51,
            softness: 3,
            high_softness: 1,
            peak: Peak::DelayFull,
            burst: Burst::Never,
        }
    }
}

impl Default for Gear {
    fn default() -> Self {
        Self { limits: Governor::default(), spring_percent: 95, spring: Duration::from_secs(5) }
    }
}

impl Pacer {
    /// Runs of level 0 from which writers are slowed.
    pub(crate) fn l0_slow(&self) -> usize {
        match self {
            Self::Governor(limits)
            | Self::Steady(Steady { limits, .. })
            | Self::Silk(Silk { limits, .. })
            | Self::Dlc(Dlc { limits, .. })
            | Self::Gear(Gear { limits, .. }) => limits.l0_slow,
            Self::SoftSleep(soft) => soft.l0_free,
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Governor(limits) | Self::Steady(Steady { limits, yield_disk: _, yield_processor: _ }) => {
                limits.validate()
            }
            Self::SoftSleep(SoftSleep { l0_free, nanos_per_run }) => {
                range("tree.pacer.l0_free", *l0_free as u64, 1, 10_000)?;
                range("tree.pacer.nanos_per_run", u64::from(*nanos_per_run), 1, 1_000_000)
            }
            Self::Silk(Silk { limits, bandwidth, estimator, interval, pause_percent }) => {
                limits.validate()?;
                bandwidth.validate()?;
                estimator.validate()?;
                range_of_time("interval", *interval)?;
                range("tree.pacer.pause_percent", (*pause_percent).into(), 1, 100)
            }
            Self::Dlc(dlc) => dlc.validate(),
            Self::Gear(Gear { limits, spring_percent, spring }) => {
                limits.validate()?;
                range("tree.pacer.spring_percent", (*spring_percent).into(), 1, 99)?;
                range_of_time("spring", *spring)
            }
        }
    }
}

impl Dlc {
    fn validate(&self) -> Result<()> {
        let Self { limits, bandwidth, estimator, interval, peak, burst, .. } = self;
        limits.validate()?;
        bandwidth.validate()?;
        estimator.validate()?;
        range_of_time("interval", *interval)?;
        range("tree.pacer.high_percent", self.high_percent.into(), 1, 100)?;
        range("tree.pacer.low_percent", self.low_percent.into(), 0, u64::from(self.high_percent) - 1)?;
        range("tree.pacer.softness", self.softness.into(), 1, 1000)?;
        range("tree.pacer.high_softness", self.high_softness.into(), 1, 1000)?;
        match peak {
            Peak::DelayFull | Peak::DelayPart => {}
        }
        burst.validate(limits)
    }
}

/// A millisecond to a minute.
fn range_of_time(name: &str, time: Duration) -> Result<()> {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    range(&format!("tree.pacer.{name}, in microseconds,"), micros, 1000, 60_000_000)
}
