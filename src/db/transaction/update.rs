//! Read-modify-write updates of a key, and lookups of many keys in a transaction.

use super::{Isolation, Transaction};
use crate::db::{Db, Keyspace};
use crate::error::{ErrorKind, Result};
use crate::slice::Slice;

impl Db {
    /// Replaces the value of `key` by the result of `change`, atomically; `None` removes the key. If others write the
    /// key meanwhile, `change` is called again with the newer value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.update("visits", |old| Some(vec![old.map_or(0, |bytes| bytes[0]) + 1]))?;
    /// assert_eq!(db.get("visits")?.unwrap(), [1]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`] and [`Db::put`].
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<()> {
        self.default_keyspace().update(key, change)
    }
}

impl Keyspace {
    /// Replaces the value of `key` by the result of `change`, as [`Db::update`] does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let leases = db.keyspace("leases")?;
    /// leases.put("lamp", "ada")?;
    /// leases.update("lamp", |holder| holder.filter(|name| *name != b"ada").map(<[u8]>::to_vec))?;
    /// assert!(!leases.contains("lamp")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::update`]; `NotFound` when the keyspace was dropped.
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<()> {
        let key = key.as_ref();
        loop {
            let mut transaction = self.db().transaction();
            let old = transaction.get_in(self, key)?;
            match change(old.as_deref()) {
                Some(new) => transaction.put_in(self, key, new),
                None => transaction.delete_in(self, key),
            };
            match transaction.commit() {
                // Another write has succeeded, so the loop always makes progress: two updates cannot stop each other.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                outcome => return outcome,
            }
        }
    }
}

impl Transaction {
    /// Replaces the value of `key` by the result of `change`; `None` removes the key. It is a read and a write: the
    /// commit fails if others have written the key since the transaction began. [`Db::update`] tries again by itself.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("from", [9])?;
    /// let mut transaction = db.transaction();
    /// transaction.update("from", |old| Some([old.map_or(0, |bytes| bytes[0]) - 1]))?;
    /// transaction.update("to", |old| Some([old.map_or(0, |bytes| bytes[0]) + 1]))?;
    /// transaction.commit()?;
    /// assert_eq!((db.get("from")?.unwrap(), db.get("to")?.unwrap()), ([8][..].into(), [1][..].into()));
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`]; nothing is written then.
    pub fn update<V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<V>,
    ) -> Result<&mut Self> {
        self.update_in(&self.db.default_keyspace(), key, change)
    }

    /// Replaces the value of `key` in `keyspace` by the result of `change`, as [`Transaction::update`] does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let leases = db.keyspace("leases")?;
    /// leases.put("lamp", "ada")?;
    /// let mut transaction = db.transaction();
    /// transaction.update_in(&leases, "lamp", |_| None::<&str>)?;
    /// transaction.commit()?;
    /// assert!(!leases.contains("lamp")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get_in`]; nothing is written then.
    pub fn update_in<V: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<V>,
    ) -> Result<&mut Self> {
        let key = key.as_ref();
        let old = self.get_in(keyspace, key)?;
        Ok(match change(old.as_deref()) {
            Some(new) => self.put_in(keyspace, key, new),
            None => self.delete_in(keyspace, key),
        })
    }

    /// The values of `keys`, in the order of the keys, as [`Db::multi_get`] returns them, overlaid with the
    /// transaction's own writes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("b", "2");
    /// let values = transaction.multi_get(["b", "none", "a"])?;
    /// assert_eq!(values, [Some("2".as_bytes().into()), None, Some("1".as_bytes().into())]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Slice>>> {
        self.multi_get_in(&self.db.default_keyspace(), keys)
    }

    /// The values of `keys` in `keyspace`, as [`Transaction::multi_get`] returns them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(db.transaction().multi_get_in(&users, ["1", "2"])?.iter().flatten().count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get_in`].
    pub fn multi_get_in<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Slice>>> {
        let id = keyspace.keyspace_id();
        let keys: Vec<K> = keys.into_iter().collect();
        let own = |key: &K| self.writes.get(&id).and_then(|writes| writes.get(key.as_ref()));
        let mut values: Vec<Option<Option<Slice>>> = keys.iter().map(own).collect();
        let asked: Vec<&[u8]> =
            keys.iter().zip(&values).filter(|(_, own)| own.is_none()).map(|(key, _)| key.as_ref()).collect();
        if self.isolation == Isolation::Serializable {
            self.read_keys.extend(asked.iter().map(|key| (id, key.to_vec())));
        }
        let mut stored = self.snapshot.keyspace(keyspace).multi_get(&asked)?.into_iter();
        values.iter_mut().filter(|own| own.is_none()).for_each(|own| *own = stored.next());
        Ok(values.into_iter().map(Option::flatten).collect())
    }
}
