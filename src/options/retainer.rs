//! Options of the retainer: what becomes of the tables that a compaction has replaced.

use std::time::Duration;

use super::range;
use crate::error::Result;

/// What becomes of the tables that a compaction has replaced.
///
/// ```
/// use terrace::tree::Retainer;
/// assert_eq!(Retainer::default(), Retainer::Drop);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Retainer {
    /// Their space is given back once no reader holds them.
    #[default]
    Drop,
    /// Those that went down stay readable on disk while much of them is in the block cache, so that a compaction does not take
    /// the cached blocks of hot keys away (LSbM-tree: the compaction buffer). It needs levels of one run: it does not go with
    /// [`Layout::Tiered`](super::Layout::Tiered), [`Layout::Prefixed`](super::Layout::Prefixed) and
    /// [`Layout::Guarded`](super::Layout::Guarded). Nothing is kept of a keyspace with a compaction filter, while space is
    /// short, and across openings.
    Buffer(Buffer),
}

/// Limits of [`Retainer::Buffer`]. The defaults are the paper's (Teng et al., "LSbM-tree", section VI-A), but for the share,
/// which it has not.
///
/// ```
/// use std::time::Duration;
/// use terrace::tree::Buffer;
/// let eager = Buffer { period: Duration::from_secs(5), ..Buffer::default() };
/// assert_eq!((eager.cached_percent, eager.share_percent), (80, 10));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// A table stays while at least this part of it is in the block cache, in percent; 1 to 100. A smaller part means that
    /// more is kept, and more space taken. Default: 80.
    pub cached_percent: u32,
    /// How often tables of which less is in the cache are removed; 1 ms to 1 day. Default: 30 s.
    pub period: Duration,
    /// What is kept takes at most this part of the data, in percent; 1 to 1000. The coldest tables go first. Default: 10.
    pub share_percent: u32,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { cached_percent: 80, period: Duration::from_secs(30), share_percent: 10 }
    }
}

impl Retainer {
    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Drop => Ok(()),
            Self::Buffer(Buffer { cached_percent, period, share_percent }) => {
                range("tree.retainer.cached_percent", (*cached_percent).into(), 1, 100)?;
                let millis = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
                range("tree.retainer.period in ms", millis, 1, 24 * 60 * 60 * 1000)?;
                range("tree.retainer.share_percent", (*share_percent).into(), 1, 1000)
            }
        }
    }
}
