//! Lookups and iterators of the newest state.

use super::{Db, EVERYTHING, KeyBounds, Keyspace, bounds};
use crate::engine::scan::{Bounds, Scan};
use crate::error::Result;
use crate::iter::Iter;
use crate::slice::Slice;

impl Db {
    /// The value of `key`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.get("key")?.unwrap(), "value");
    /// assert!(db.get("other")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption` or `Io` when a table cannot be read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.engine().get(&self.default, key.as_ref(), None)
    }

    /// Whether `key` has a value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "")?;
    /// assert!(db.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// All entries.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// for entry in db.iter()? {
    ///     let (key, value) = entry?;
    ///     assert_eq!((key, value), ("a".as_bytes().into(), "1".as_bytes().into()));
    /// }
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<Iter> {
        self.default_keyspace().iter()
    }

    /// The entries whose keys lie in `range`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.range("a"..="b")?.rev().next().unwrap()?.0, "b");
    /// assert_eq!(db.range(..)?.count(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.default_keyspace().range(range)
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("word:1", "terrace")?;
    /// assert_eq!(db.prefix("user:")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default_keyspace().prefix(prefix)
    }
}

impl Keyspace {
    /// The value of `key`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.get("1")?.unwrap(), "Ada");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.engine().get(self.tree(), key.as_ref(), None)
    }

    /// Whether `key` has a value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// assert!(!users.contains("1")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// All entries.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<Iter> {
        self.scan(EVERYTHING)
    }

    /// The entries whose keys lie in `range`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.range("0".."9")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.scan(bounds(&range))
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("ada@home", "1")?;
    /// assert_eq!(users.prefix("ada")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.scan(Bounds::prefix(prefix.as_ref()))
    }

    fn scan(&self, bounds: Bounds) -> Result<Iter> {
        Ok(Iter::new(Scan::new(self.engine(), self.tree(), bounds, None)?))
    }
}
