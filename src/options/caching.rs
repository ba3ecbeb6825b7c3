//! Options of the block cache: what is kept in it, besides the blocks that readers have read.

/// What the block cache keeps.
///
/// ```
/// use terrace::tree::Caching;
/// assert_eq!(Caching::default(), Caching::Adaptive);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Caching {
    /// Blocks; single records and spans of blocks where records are large; and where it has room for all data, whole tables.
    /// Where reads find most of what they want, what a compaction writes in the place of a cached block or table is cached, too, so
    /// that compactions do not show in the hit ratio (after Ahmad and Kemme, "Compaction management in distributed key-value datastores", section 5, and Yang et al.,
    /// "Leaper: A Learned Prefetcher for Cache Invalidation in LSM-tree based Storage Engines", which names the problem).
    #[default]
    Adaptive,
    /// As [`Caching::Adaptive`], but nothing that compactions write, until it is read.
    OnRead,
    /// Index and filter of tables alone: blocks are left to the operating system's cache.
    Tables,
    /// Blocks that readers have read, and nothing else; the least recently used goes first. It stands for the stores that the
    /// papers compare.
    Blocks,
    /// As [`Caching::Blocks`], and what a compaction writes in the place of cached blocks of its inputs (incremental warming up:
    /// Ahmad and Kemme, "Compaction management in distributed key-value datastores", section 5). Compressed blocks are not.
    WarmUp,
}
