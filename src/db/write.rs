//! Writes of keys, of ranges of keys, and of batches.

use super::{Db, KeyBounds, Keyspace};
use crate::batch::WriteBatch;
use crate::engine::read::sight::Bounds;
use crate::error::Result;
use crate::options::Durability;

impl Db {
    /// Gives `key` the value `value`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "first")?;
    /// db.put("key", "second")?;
    /// assert_eq!(db.get("key")?.unwrap(), "second");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when a length limit is broken; `DiskFull`, `Io`; `Poisoned` after an earlier failure.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, value);
        self.write(batch)
    }

    /// Removes `key`; fine if it has no value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.delete("key")?;
    /// assert!(!db.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(key);
        self.write(batch)
    }

    /// Removes all keys that lie in `range`; fine if there are none. It costs no more than a put, whatever the range
    /// holds: a *range tombstone* hides the keys at once, from all but older snapshots and iterators, and later
    /// compactions free their space. [`Keyspace::compact_range`] frees it now.
    ///
    /// A range that is empty, or ends before it starts, does nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("2025-12-31", "old")?;
    /// db.put("2026-01-01", "new")?;
    /// db.delete_range(.."2026")?;
    /// assert_eq!(db.iter()?.next().unwrap()?.1, "new");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_range(range);
        self.write(batch)
    }

    /// As [`Db::put`], with this durability instead of the one in the options.
    ///
    /// ```
    /// use terrace::Durability;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put_with("vote", "ada", Durability::Synced)?; // survives a power cut from here on
    /// db.put_with("cache", "warm", Durability::Buffered)?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, value);
        self.write_with(batch, durability)
    }

    /// As [`Db::delete`], with this durability instead of the one in the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.delete_with("vote", terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(key);
        self.write_with(batch, durability)
    }

    /// As [`Db::delete_range`], with this durability instead of the one in the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.delete_range_with(.."2026", terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete_range_with(&self, range: impl KeyBounds, durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_range(range);
        self.write_with(batch, durability)
    }

    /// Removes all keys that start with `prefix`: [`Db::delete_range`] over them, atomic and as cheap.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("word:1", "terrace")?;
    /// db.delete_prefix("user:")?;
    /// assert_eq!(db.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.default_keyspace().delete_prefix(prefix)
    }

    /// Removes all keys of the keyspace "default": [`Db::delete_range`] over everything, atomic and as cheap. Other
    /// keyspaces stay as they are.
    ///
    /// Flushes and compactions free the space in time; [`Db::compact`] frees it at once. Data that snapshots,
    /// transactions and iterators see stays until they are dropped.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.clear()?;
    /// assert!(db.is_empty()?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }

    /// Applies `batch` atomically, with the durability of the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut batch = terrace::WriteBatch::new();
    /// batch.put("a", "1").put("b", "2");
    /// db.write(batch)?;
    /// assert_eq!(db.iter()?.count(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `NotFound` when a keyspace of the batch was dropped. Nothing of the batch is applied then.
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_with(batch, self.engine().settings().options.durability)
    }

    /// Applies `batch` atomically.
    ///
    /// ```
    /// use terrace::{Db, Durability, WriteBatch};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Db::open(dir.path())?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("from", "90").put("to", "110");
    /// db.write_with(batch, Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_with(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        self.engine().write.commit(&batch, durability).map(drop)
    }
}

impl Keyspace {
    /// Gives `key` the value `value`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert!(users.contains("1")? && !db.contains("1")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]; `NotFound` when the keyspace was dropped.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put_in(self, key, value);
        self.db().write(batch)
    }

    /// Removes `key`; fine if it has no value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.delete("1")?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_in(self, key);
        self.db().write(batch)
    }

    /// Removes all keys that lie in `range`. See [`Db::delete_range`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// users.delete_range("0".."9")?;
    /// assert!(!users.contains("1")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_range_in(self, range);
        self.db().write(batch)
    }

    /// As [`Keyspace::put`], with this durability instead of the one in the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put_with("1", "Ada", terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put_in(self, key, value);
        self.db().write_with(batch, durability)
    }

    /// As [`Keyspace::delete`], with this durability instead of the one in the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.delete_with("1", terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_in(self, key);
        self.db().write_with(batch, durability)
    }

    /// As [`Keyspace::delete_range`], with this durability instead of the one in the options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.delete_range_with(.., terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range_with(&self, range: impl KeyBounds, durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_range_in(self, range);
        self.db().write_with(batch, durability)
    }

    /// Removes all keys that start with `prefix`. See [`Db::delete_prefix`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("ada@home", "1")?;
    /// users.put("grace@home", "2")?;
    /// users.delete_prefix("ada@")?;
    /// assert_eq!(users.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.add_range(self.keyspace_id(), Bounds::prefix(prefix.as_ref()).range());
        self.db().write(batch)
    }

    /// Removes all keys. See [`Db::clear`]; [`Db::drop_keyspace`] removes the keyspace itself.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// users.clear()?;
    /// assert!(users.is_empty()?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }
}
