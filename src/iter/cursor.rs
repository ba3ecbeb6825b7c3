//! Cursors: positions that seek, and step in both directions.

use std::fmt;

use crate::engine::read::bidirectional::BidirectionalScan;
use crate::error::Result;
use crate::slice::Slice;

/// A position among entries that can seek any number of times and step in both directions.
///
/// Use an [`Iter`](super::Iter) to walk a range once, from one end or both: it is cheaper and shorter to write. Use a
/// cursor for joins, for pages, or to skip from one prefix to the next: a seek costs less than a new iterator, and
/// the cursor sees the same moment all the time.
///
/// It stands on an entry, before the first one, or behind the last one. A new cursor stands before the first. Every
/// movement returns the entry that it leads to, or `None` if it leads beyond an end of the bounds; from there a
/// movement in the other direction leads back. The cursor sees the store as it was when it was made, or as its
/// snapshot sees it. Like an `Iter`, it holds the tables that it reads.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// for key in ["apple", "banana", "cherry"] {
///     db.put(key, "")?;
/// }
/// let mut cursor = db.cursor(..)?;
/// assert_eq!(cursor.seek("b")?.unwrap().0, b"banana");
/// assert_eq!(cursor.next()?.unwrap().0, b"cherry");
/// assert!(cursor.next()?.is_none());
/// assert_eq!(cursor.prev()?.unwrap().0, b"cherry"); // back from behind the last one
/// assert_eq!(cursor.prev()?.unwrap().0, b"banana");
/// assert_eq!(cursor.seek_for_prev("b")?.unwrap().0, b"apple");
/// assert_eq!(cursor.current().unwrap().0, b"apple");
/// # Ok::<(), terrace::Error>(())
/// ```
///
/// A step in the direction of the last movement costs as much as in an `Iter`; to turn round costs a seek. After a
/// failure (a damaged block, say) it stands nowhere: it has no current entry, and no step leads to one, until the
/// next seek.
pub struct Cursor(BidirectionalScan);

impl Cursor {
    pub(crate) fn new(bidirectional: BidirectionalScan) -> Self {
        Self(bidirectional)
    }

    /// Moves to the first entry at or behind `key`. A key before the bounds leads to their first entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("b", "1")?;
    /// let mut cursor = db.cursor(..)?;
    /// assert_eq!(cursor.seek("a")?, Some((&b"b"[..], &b"1"[..])));
    /// assert!(cursor.seek("c")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<(&[u8], &[u8])>> {
        self.0.seek(key.as_ref())?;
        Ok(self.0.current())
    }

    /// Moves to the last entry at or before `key`. A key behind the bounds leads to their last entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("b", "1")?;
    /// let mut cursor = db.cursor(..)?;
    /// assert_eq!(cursor.seek_for_prev("c")?, Some((&b"b"[..], &b"1"[..])));
    /// assert!(cursor.seek_for_prev("a")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<Option<(&[u8], &[u8])>> {
        self.0.seek_for_prev(key.as_ref())?;
        Ok(self.0.current())
    }

    /// Moves to the first entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.cursor(..)?.seek_to_first()?.unwrap().0, b"a");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn seek_to_first(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.0.seek_first()?;
        Ok(self.0.current())
    }

    /// Moves to the last entry.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.cursor(.."b")?.seek_to_last()?.unwrap().0, b"a");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn seek_to_last(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.0.seek_last()?;
        Ok(self.0.current())
    }

    /// Moves to the next entry; from before the first entry, to the first one. Behind the last entry it stays.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// let mut cursor = db.cursor(..)?;
    /// while let Some((key, value)) = cursor.next()? {
    ///     assert_eq!((key, value), (&b"a"[..], &b"1"[..]));
    /// }
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend what it shows, nor turn round"
    )]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.0.next()?;
        Ok(self.0.current())
    }

    /// Moves to the previous entry; from behind the last entry, to the last one. Before the first entry it stays.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut cursor = db.cursor(..)?;
    /// cursor.seek("b")?;
    /// assert_eq!(cursor.prev()?.unwrap().0, b"a");
    /// assert!(cursor.prev()?.is_none());
    /// assert_eq!(cursor.next()?.unwrap().0, b"a");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn prev(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.0.prev()?;
        Ok(self.0.current())
    }

    /// The current entry, borrowed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// let mut cursor = db.cursor(..)?;
    /// assert!(cursor.current().is_none());
    /// cursor.next()?;
    /// assert_eq!(cursor.current(), Some((&b"a"[..], &b"1"[..])));
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn current(&self) -> Option<(&[u8], &[u8])> {
        self.0.current()
    }

    /// The current entry, to keep. The value is not copied.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// let mut cursor = db.cursor(..)?;
    /// cursor.next()?;
    /// let (key, value) = cursor.entry().unwrap();
    /// cursor.next()?;
    /// assert!(key == "a" && value == "1");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn entry(&self) -> Option<(Slice, Slice)> {
        self.0.current_pinned()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursor")
    }
}
