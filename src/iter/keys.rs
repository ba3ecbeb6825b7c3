//! Keys without their values.

use std::fmt;

use super::Iter;
use crate::error::Result;
use crate::slice::Slice;

/// Keys in order, from both ends, without their values: see [`Iter::keys`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// db.put("a", "1")?;
/// db.put("b", "2")?;
/// let mut keys = db.iter()?.keys();
/// assert_eq!(keys.next_back().unwrap()?, "b");
/// assert_eq!(keys.advance()?, Some(&b"a"[..]));
/// # Ok::<(), terrace::Error>(())
/// ```
pub struct Keys(Iter);

impl Keys {
    pub(super) fn new(iter: Iter) -> Self {
        Self(iter)
    }

    /// The next key from the front, borrowed: cheaper than [`Iterator::next`], which copies it.
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn advance(&mut self) -> Result<Option<&[u8]>> {
        Ok(self.0.advance()?.map(|(key, _)| key))
    }

    /// The next key from the back, borrowed.
    ///
    /// # Errors
    /// When a table cannot be read, or is damaged.
    pub fn advance_back(&mut self) -> Result<Option<&[u8]>> {
        Ok(self.0.advance_back()?.map(|(key, _)| key))
    }
}

impl Iterator for Keys {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().map(|key| key.map(Slice::from)).transpose()
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance_back().map(|key| key.map(Slice::from)).transpose()
    }
}

impl std::iter::FusedIterator for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}
