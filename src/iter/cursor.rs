//! Cursors.

use std::fmt;

use crate::engine::read::bidirectional::BidirectionalScan;
use crate::error::Result;
use crate::slice::Slice;

/// A position among entries that goes anywhere: it seeks again and again, and turns round.
///
/// An [`Iter`](super::Iter) is for a range that is walked once, from one end or both, and is the cheaper and the shorter to
/// write. A cursor is for joins, for skipping from one prefix to the next, for pages: a seek costs less than a new iterator, and one moment is
/// seen all the time.
///
/// It stands on an entry, before the first or behind the last one; a new one stands before the first. Every movement returns
/// the entry that it leads to, or none where it leads beyond either end of the bounds; from there, the movement in the other direction
/// leads back. What it sees is the store as it was when it was made, or as its snapshot sees it, and what an `Iter` says of
/// space that is held is true of it.
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
/// A step on in the same direction costs what it does in an `Iter`; to turn round costs a seek. After a failure (a damaged
/// block, say) it stands nowhere: there is no current entry, and no step leads to one, until it seeks again.
pub struct Cursor(BidirectionalScan);

impl Cursor {
    pub(crate) fn new(bidirectional: BidirectionalScan) -> Self {
        Self(bidirectional)
    }

    /// Goes to the first entry at or behind `key`. A key before the bounds leads to their first entry.
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

    /// Goes to the last entry at or before `key`. A key behind the bounds leads to their last entry.
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

    /// Goes to the first entry.
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

    /// Goes to the last entry.
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

    /// Goes to the next entry: the first one from before it. Behind the last one it stays.
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

    /// Goes to the previous entry: the last one from behind it. Before the first one it stays.
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

    /// The entry that it stands on.
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

    /// The entry that it stands on, to keep: the value is not copied.
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
