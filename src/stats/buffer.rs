//! Statistics of compaction buffers.

/// The compaction buffer of a keyspace: tables that compactions have replaced and that are kept for the block cache
/// ([`crate::tree::Retainer::Buffer`]).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// assert_eq!(db.stats().keyspaces[0].buffer.tables, 0, "the default keeps nothing");
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BufferStats {
    /// Tables that are kept.
    pub tables: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Of these, bytes that the tree has no more: what the buffer takes on the disk.
    pub held_bytes: u64,
    /// Of the kept bytes, how many are in the block cache.
    pub cached_bytes: u64,
    /// Ranges of keys that are remembered because newer tables of them are not kept.
    pub gone_ranges: u64,
    /// Levels that get the same keys again and again, so that nothing more is kept of what comes there.
    pub frozen_levels: u64,
    /// Memory that all this takes, in bytes, about.
    pub memory_bytes: u64,
}
