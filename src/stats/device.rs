//! Statistics of the devices of a store.

use std::path::PathBuf;

/// One of the directories of a store ([`Builder::device`](crate::Builder::device)).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let home = &db.stats().devices[0];
/// assert_eq!((home.id, home.pending_bytes), (0, 0));
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DeviceStats {
    /// Which one; 0 is the one with log and manifest.
    pub id: u16,
    /// The directory.
    pub dir: PathBuf,
    /// Bytes of tables there.
    pub table_bytes: u64,
    /// Bytes of tables that it was given since the store was opened.
    pub given_bytes: u64,
    /// Of these, bytes of tables that were moved there because users read them much.
    pub brought_bytes: u64,
    /// How long users have waited for a block from there lately, in nanoseconds on average; 0 if none was read.
    pub read_nanos: u64,
    /// Bytes that it was given and has not written yet.
    pub pending_bytes: u64,
    /// Bytes per second that it was measured to write when it was added; 0 in a store that has only one.
    pub rated_bandwidth: u64,
    /// Bytes per second that it has written lately; 0 in a store that has only one.
    pub bandwidth: u64,
    /// Bytes that are left there for tables.
    pub free_bytes: u64,
}
