//! How pacers tell the load, what bandwidth there is, and what is done in level 0 at a peak.

use super::Governor;
use crate::error::Result;
use crate::options::range;

/// The bandwidth that a pacer shares out on each device, in bytes per second, reads and writes alike.
///
/// ```
/// use terrace::tree::Bandwidth;
/// let disk = Bandwidth { device: Some(350_000_000), ..Bandwidth::default() };
/// assert_eq!(disk.floor_percent, 5);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// What a device can do; at least 1 MiB. Default: `None`, the most that was seen of it lately.
    pub device: Option<u64>,
    /// Compactions always get this part of it, in percent, whatever clients take; 1 to 100. Default: 5.
    pub floor_percent: u8,
}

/// How the bandwidth that clients take of the device is told. All but the last are the papers'.
///
/// ```
/// use terrace::tree::LoadEstimator;
/// let weights = LoadEstimator::Weights { get_bytes: 16_000, scan_bytes: 64_000 };
/// assert_ne!(weights, LoadEstimator::Blocks);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LoadEstimator {
    /// SILK's: the bytes of the records that clients read and write (DLC, equation 1).
    Operations,
    /// A number of bytes for each lookup and each seek of a scan (DLC, equations 3 to 5).
    Weights {
        /// For a lookup; 0 to 1 GiB.
        get_bytes: u64,
        /// For a seek of an iterator; 0 to 1 GiB.
        scan_bytes: u64,
    },
    /// DLC's: the blocks that lookups and scans have brought into the block cache (DLC, equation 6). A load that only writes
    /// looks idle.
    Blocks,
    /// The worst of what users read from the device, what the log writes, how much of their time flushes need, and how long
    /// users wait for a read.
    Composite,
}

/// What may be done in level 0 while the load is high (DLC, section 4.2).
///
/// ```
/// use terrace::tree::{Dlc, Peak};
/// assert_eq!(Dlc::default().peak, Peak::DelayFull);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Peak {
    /// Nothing.
    DelayFull,
    /// Intra-L0 compactions.
    DelayPart,
}

/// What is done in level 0 although the load is high, once too much is in it (DLC, section 5: bursty compaction).
///
/// ```
/// use terrace::tree::Burst;
/// assert_ne!(Burst::Never, Burst::Part { runs: 20, parts: 4 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Burst {
    /// Nothing, up to the limits for writers.
    Never,
    /// *Resume full*: level 0 is compacted into level 1.
    Full {
        /// At this many runs; 2 to `l0_slow`.
        runs: usize,
    },
    /// *Resume part*: the flushed runs become one run of level 0, and after a number of these level 0 is compacted into
    /// level 1.
    Part {
        /// At this many flushed runs; 2 to `l0_slow`.
        runs: usize,
        /// This many parts come before a compaction of all of level 0; 1 to 1000.
        parts: usize,
    },
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self { device: None, floor_percent: 5 }
    }
}

impl Bandwidth {
    pub(super) fn validate(&self) -> Result<()> {
        let Self { device, floor_percent } = *self;
        range("tree.pacer.bandwidth.device", device.unwrap_or(u64::MAX), 1 << 20, u64::MAX)?;
        range("tree.pacer.bandwidth.floor_percent", floor_percent.into(), 1, 100)
    }
}

impl LoadEstimator {
    pub(super) fn validate(&self) -> Result<()> {
        match *self {
            Self::Weights { get_bytes, scan_bytes } => {
                range("tree.pacer.estimator.get_bytes", get_bytes, 0, 1 << 30)?;
                range("tree.pacer.estimator.scan_bytes", scan_bytes, 0, 1 << 30)
            }
            Self::Operations | Self::Blocks | Self::Composite => Ok(()),
        }
    }
}

impl Burst {
    pub(super) fn validate(&self, limits: &Governor) -> Result<()> {
        let runs_in_range =
            |runs: usize| range("tree.pacer.burst.runs", runs as u64, 2, limits.l0_slow.max(2) as u64);
        match *self {
            Self::Never => Ok(()),
            Self::Full { runs } => runs_in_range(runs),
            Self::Part { runs, parts } => {
                runs_in_range(runs)?;
                range("tree.pacer.burst.parts", parts as u64, 1, 1000)
            }
        }
    }
}
