//! Iterators: entries in key order, from both ends.

mod cursor;
mod keys;

use std::fmt;

pub use cursor::Cursor;
pub use keys::Keys;

use crate::engine::read::scan::Scan;
use crate::error::Result;
use crate::slice::Slice;

/// Entries in key order, from both ends.
///
/// It shows the store as it was when the iterator was made, or as its snapshot sees it; later writes do not change
/// that. It owns what it needs, and holds the tables that it reads: an iterator that is kept for long keeps their
/// space.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// for n in 0..5 {
///     db.put(format!("key{n}"), format!("value{n}"))?;
/// }
/// let mut iter = db.range("key1".."key4")?;
/// assert_eq!(iter.next().unwrap()?.0, "key1");
/// assert_eq!(iter.next_back().unwrap()?.0, "key3");
/// assert_eq!(iter.next().unwrap()?.1, "value2");
/// assert!(iter.next().is_none() && iter.next_back().is_none());
/// # Ok::<(), terrace::Error>(())
/// ```
///
/// A failure (a damaged block, say) is returned once and ends the iteration. To seek, or to turn round, use a
/// [`Cursor`].
pub struct Iter(Scan);

impl Iter {
    pub(crate) fn new(scan: Scan) -> Self {
        Self(scan)
    }

    /// The keys alone. Values that lie apart from their keys ([`KeyspaceOptions::separate_from`](crate::KeyspaceOptions::separate_from)),
    /// and others of 2 MiB and more, are not read.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let keys: Vec<_> = db.iter()?.keys().collect::<Result<_, _>>()?;
    /// assert_eq!(keys, ["a", "b"]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn keys(mut self) -> Keys {
        self.0.leave_values();
        Keys::new(self)
    }

    /// The next entry from the front, borrowed: cheaper than [`Iterator::next`], which copies the key.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut bytes = 0;
    /// let mut iter = db.iter()?;
    /// while let Some((key, value)) = iter.advance()? {
    ///     bytes += key.len() + value.len();
    /// }
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn advance(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if !self.0.advance()? {
            return Ok(None);
        }
        Ok(self.0.counted_front())
    }

    /// The next entry from the back, borrowed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut iter = db.iter()?;
    /// assert_eq!(iter.advance_back()?.unwrap().0, b"b");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn advance_back(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if !self.0.advance_back()? {
            return Ok(None);
        }
        Ok(self.0.counted_back())
    }
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.advance() {
            Ok(true) => self.0.front_pinned().map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.0.advance_back() {
            Ok(true) => self.0.back_pinned().map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl std::iter::FusedIterator for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Iter")
    }
}
