//! Options of the pacer: when compactions run, and how long writers wait.

use super::range;
use crate::error::Result;

/// When compactions run, and how long writers wait for them.
///
/// ```
/// use terrace::tree::{Governor, Pacer};
/// assert_eq!(Pacer::default(), Pacer::Governor(Governor::default()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pacer {
    /// Compactions run once they are due. Writers are slowed to a rate, which is lower the further they are ahead of
    /// compactions, and wait at hard limits. (LevelDB's `MakeRoomForWrite` has the same limits, and sleeps.)
    Governor(Governor),
}

/// Limits of [`Pacer::Governor`].
///
/// ```
/// use terrace::tree::Governor;
/// let leveldb = Governor { l0_slow: 8, l0_stop: 12, ..Governor::default() };
/// assert!(leveldb.throttle_compactions);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Governor {
    /// Flushed runs in level 0 at which writers begin to slow down; at least the layout's `l0_trigger` or `l0_runs`,
    /// at most 10,000. With [`Layout::Adaptive`](super::Layout::Adaptive) they also slow down when updates have filled
    /// level 0 to about a ninth more than it is compacted at, because so much of it is obsolete; new records may fill
    /// it up to the largest level 0. Default: 60.
    pub l0_slow: usize,
    /// Flushed runs in level 0 at which writers wait; more than `l0_slow`, at most 100,000. With
    /// [`Layout::Adaptive`](super::Layout::Adaptive) they also wait when level 0 holds more than where they begin to
    /// slow down, in the same proportion as `l0_stop` to `l0_slow`. Default: 96.
    pub l0_stop: usize,
    /// Bytes waiting to be compacted at which writers begin to slow down. Default: 4 GiB.
    pub debt_slow_bytes: u64,
    /// Bytes waiting to be compacted at which writers wait; more than `debt_slow_bytes`. Default: 64 GiB.
    pub debt_stop_bytes: u64,
    /// Whether compactions that hold up no writer pause while lookups and scans wait for the disk. On a disk of
    /// limited bandwidth, lookups and scans would wait behind compactions. Default: true.
    pub throttle_compactions: bool,
}

impl Default for Pacer {
    fn default() -> Self {
        Self::Governor(Governor::default())
    }
}

impl Default for Governor {
    fn default() -> Self {
        Self {
            l0_slow: 60,
            l0_stop: 96,
            debt_slow_bytes: 4 << 30,
            debt_stop_bytes: 64 << 30,
            throttle_compactions: true,
        }
    }
}

impl Pacer {
    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Governor(governor) => {
                let Governor { l0_slow, l0_stop, debt_slow_bytes, debt_stop_bytes, throttle_compactions: _ } =
                    *governor;
                range("tree.pacer.l0_slow", l0_slow as u64, 1, 10_000)?;
                range("tree.pacer.l0_stop", l0_stop as u64, l0_slow as u64 + 1, 100_000)?;
                let debt_min = debt_slow_bytes.saturating_add(1);
                range("tree.pacer.debt_stop_bytes", debt_stop_bytes, debt_min, u64::MAX)
            }
        }
    }
}
