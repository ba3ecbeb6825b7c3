//! Lookups of many keys at once.

use super::{Db, Keyspace, KeyspaceSnapshot, Snapshot};
use crate::error::Result;
use crate::slice::Slice;

impl Db {
    /// The values of `keys` at one moment, in the order of the keys. Cheaper than a [`Db::get`] for each, the more so the
    /// closer together the keys lie.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let values = db.multi_get(["b", "none", "a"])?;
    /// assert_eq!(values, [Some("2".as_bytes().into()), None, Some("1".as_bytes().into())]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`]; one key that cannot be read fails the call.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.default_keyspace().multi_get(keys)
    }
}

impl Keyspace {
    /// The values of `keys`, as [`Db::multi_get`] has them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.multi_get(["1", "2"])?.iter().flatten().count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::multi_get`]; `NotFound` when the keyspace was dropped.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        self.db().engine().read.multi_get(self.tree(), &keys, None)
    }
}

impl Snapshot {
    /// The values that `keys` had, in the order of the keys.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.multi_get(["key", "none"])?, [Some("old".as_bytes().into()), None]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.default_keyspace().multi_get(keys)
    }
}

impl KeyspaceSnapshot {
    /// The values that `keys` had, in the order of the keys.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// let then = db.snapshot().keyspace(&users);
    /// users.delete("1")?;
    /// assert_eq!(then.multi_get(["1"])?, [Some("Ada".as_bytes().into())]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let (engine, seq) = self.moment();
        engine.read.multi_get(self.tree(), &keys, Some(seq))
    }
}
