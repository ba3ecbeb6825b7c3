//! Lookups and iterators over the newest state.

use super::{Db, EVERYTHING, KeyBounds, Keyspace, bounds};
use crate::engine::read::bidirectional::BidirectionalScan;
use crate::engine::read::scan::Scan;
use crate::engine::read::sight::Bounds;
use crate::error::Result;
use crate::iter::{Cursor, Iter};
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
        self.engine().read.get(&self.default, key.as_ref(), None)
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
        self.engine().read.contains(&self.default, key.as_ref(), None)
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

    /// A cursor over the entries whose keys lie in `range`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut cursor = db.cursor("a"..)?;
    /// assert_eq!(cursor.seek("aa")?.unwrap().0, b"b");
    /// assert_eq!(cursor.prev()?.unwrap().0, b"a");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn cursor(&self, range: impl KeyBounds) -> Result<Cursor> {
        self.default_keyspace().cursor(range)
    }

    /// A cursor over the entries whose keys start with `prefix`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("word:1", "terrace")?;
    /// assert_eq!(db.prefix_cursor("user:")?.seek_to_last()?.unwrap().0, b"user:1");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.default_keyspace().prefix_cursor(prefix)
    }

    /// The entry with the smallest key. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.first()?.unwrap().0, "a");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.default_keyspace().first()
    }

    /// The entry with the largest key. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.last()?.unwrap().0, "b");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.default_keyspace().last()
    }

    /// Whether the keyspace "default" has no entry. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert!(db.is_empty()?);
    /// db.put("a", "1")?;
    /// assert!(!db.is_empty()?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn is_empty(&self) -> Result<bool> {
        self.default_keyspace().is_empty()
    }

    /// About how many entries the keyspace "default" has. See [`Keyspace::approximate_len`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.approximate_len(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self) -> u64 {
        self.default_keyspace().approximate_len()
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
        self.engine().read.get(self.tree(), key.as_ref(), None)
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
        self.engine().read.contains(self.tree(), key.as_ref(), None)
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

    /// A cursor over the entries whose keys lie in `range`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.cursor(..)?.seek_for_prev("9")?.unwrap().0, b"1");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn cursor(&self, range: impl KeyBounds) -> Result<Cursor> {
        self.bidirectional(bounds(&range))
    }

    /// A cursor over the entries whose keys start with `prefix`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert!(users.prefix_cursor("2")?.seek_to_first()?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.bidirectional(Bounds::prefix(prefix.as_ref()))
    }

    /// The entry with the smallest key. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.first()?.unwrap().1, "Ada");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter()?.next().transpose()
    }

    /// The entry with the largest key. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.last()?.unwrap().1, "Ada");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter()?.next_back().transpose()
    }

    /// Whether there is no entry. Costs as much as a seek.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert!(!users.is_empty()? && db.is_empty()?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.iter()?.advance()?.is_none())
    }

    /// About how many entries there are, from sums in memory: nothing is read, whatever the size. `iter()?.count()`
    /// counts exactly.
    ///
    /// It is the number of stored entries, minus two for each tombstone in a table: as if each tombstone hid one
    /// entry and every other entry were the only version of its key. So it is exact after [`Db::compact`], as long as
    /// no snapshot has kept older versions, no value has expired since, and nothing is written. Otherwise it may be
    /// too large by the number of stored entries that no reader sees: overwritten, deleted or expired ones, and
    /// tombstones in memory. It may be too small by the number of tombstones in tables, which [`Keyspace::shape`]
    /// counts: those of keys that did not exist.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// users.put("1", "Ada Lovelace")?; // counts twice until it is compacted
    /// assert_eq!(users.approximate_len(), 2);
    /// db.compact()?;
    /// assert_eq!(users.approximate_len(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self) -> u64 {
        self.tree().approximate_len()
    }

    /// About how many bytes of tables the entries take whose keys lie in `range`, from what is in memory: nothing is read.
    ///
    /// A table that lies in the range counts whole, one that reaches over an end of it by half. So each level is wrong by
    /// at most a table, and what is in memtables does not count. Overwritten and deleted entries do, until they are
    /// compacted.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.approximate_bytes(..), 0, "it is in the memtable");
    /// db.flush()?;
    /// assert!(users.approximate_bytes(..) > 0);
    /// assert_eq!(users.approximate_bytes("2"..), 0);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn approximate_bytes(&self, range: impl KeyBounds) -> u64 {
        bounds(&range).range().map_or(0, |range| self.tree().approximate_bytes(&range))
    }

    fn bidirectional(&self, bounds: Bounds) -> Result<Cursor> {
        Ok(Cursor::new(BidirectionalScan::new(Scan::new(&self.engine().read, self.tree(), bounds, None)?)))
    }

    fn scan(&self, bounds: Bounds) -> Result<Iter> {
        Ok(Iter::new(Scan::new(&self.engine().read, self.tree(), bounds, None)?))
    }
}
