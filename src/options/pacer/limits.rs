//! Limits at which writers are slowed and stopped.

use crate::error::Result;
use crate::options::range;

/// Limits for writers: where they are slowed, and where they wait. By themselves they are [`Pacer::Governor`](super::Pacer::Governor); other pacers keep
/// them too.
///
/// ```
/// use terrace::tree::Governor;
/// let leveldb = Governor { l0_slow: 8, l0_stop: 12, ..Governor::default() };
/// assert_eq!(leveldb.debt_slow_bytes, 4 << 30);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Governor {
    /// Flushed runs in level 0 at which writers begin to slow down; at least the layout's `l0_trigger` or `l0_runs`,
    /// at most 10,000. With [`Layout::Adaptive`](super::super::Layout::Adaptive) they also slow down when updates have filled
    /// level 0 to about a ninth more than it is compacted at, because so much of it is obsolete; new records may fill
    /// it up to the largest level 0. Default: 60.
    pub l0_slow: usize,
    /// Flushed runs in level 0 at which writers wait; more than `l0_slow`, at most 100,000. With
    /// [`Layout::Adaptive`](super::super::Layout::Adaptive) they also wait when level 0 holds more than where they begin to
    /// slow down, in the same proportion as `l0_stop` to `l0_slow`. Default: 96.
    pub l0_stop: usize,
    /// Bytes waiting to be compacted at which writers begin to slow down. Default: 4 GiB.
    pub debt_slow_bytes: u64,
    /// Bytes waiting to be compacted at which writers wait; more than `debt_slow_bytes`. Default: 64 GiB.
    pub debt_stop_bytes: u64,
}

impl Default for Governor {
    fn default() -> Self {
        Self { l0_slow: 60, l0_stop: 96, debt_slow_bytes: 4 << 30, debt_stop_bytes: 64 << 30 }
    }
}

impl Governor {
    pub(super) fn validate(&self) -> Result<()> {
        let Self { l0_slow, l0_stop, debt_slow_bytes, debt_stop_bytes } = *self;
        range("tree.pacer.l0_slow", l0_slow as u64, 1, 10_000)?;
        range("tree.pacer.l0_stop", l0_stop as u64, l0_slow as u64 + 1, 100_000)?;
        range("tree.pacer.debt_stop_bytes", debt_stop_bytes, debt_slow_bytes.saturating_add(1), u64::MAX)
    }
}
