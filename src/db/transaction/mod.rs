//! Optimistic transactions: they read a snapshot, collect writes, and check for conflicts at the commit.

mod iter;
mod update;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

pub use iter::TransactionIter;

use super::{Db, EVERYTHING, KeyBounds, Keyspace, Snapshot, Ticket, bounds};
use crate::batch::WriteBatch;
use crate::engine::Condition;
use crate::engine::read::sight::Bounds;
use crate::error::Result;
use crate::options::Durability;
use crate::slice::Slice;
use crate::types::{KeyRange, KeyspaceId, Seq};

/// The isolation of a transaction: which writes by others make its commit fail.
///
/// ```
/// use terrace::{Isolation, TransactionOptions};
/// assert_eq!(TransactionOptions::default().isolation, Isolation::Snapshot);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Snapshot isolation: the commit fails if others have written a key that the transaction writes since it began;
    /// the first to commit wins. Keys that it only read may have changed (write skew).
    #[default]
    Snapshot,
    /// As if the transaction had run alone at the moment of its commit: the commit fails if others have written
    /// anything that it read since it began. That includes keys that it looked up and did not find, and all keys of
    /// the ranges that it asked for, whether it walked to the end or not.
    ///
    /// Keys that it only writes count as under [`Isolation::Snapshot`]: a *blind* write, of a key that it has not
    /// read, also conflicts if others have written that key, even where some order of the two would be correct. So
    /// one rule holds for all writes: the first to commit wins.
    ///
    /// ```
    /// use terrace::{ErrorKind, Isolation, TransactionOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut blind = db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
    /// blind.put("key", "mine"); // not read before
    /// db.put("key", "theirs")?;
    /// assert_eq!(blind.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    Serializable,
}

/// Settings of a transaction.
///
/// ```
/// use terrace::{Isolation, TransactionOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let transaction = db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    /// Its isolation. Default: [`Isolation::Snapshot`].
    pub isolation: Isolation,
}

/// A transaction: reads and writes that take effect together, and only if nobody else has committed a conflicting
/// write first.
///
/// It reads the store as it was when the transaction began, overlaid with its own writes. Its writes stay in memory
/// until [`Transaction::commit`], which applies all of them, or fails with
/// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) and applies none; then run the transaction again. Nothing is
/// locked: nobody waits for an open transaction, and a dropped one leaves nothing behind. Like a snapshot, an open
/// transaction keeps the versions that it can see.
///
/// Methods without a keyspace work on the keyspace "default". A write without a transaction counts as a transaction
/// that writes and reads nothing.
///
/// Writes conflict with writes, whether the key was read or not: of two transactions that put the same key blindly,
/// the second to commit fails, under either isolation. For writes that depend on nothing use a [`crate::WriteBatch`],
/// which never conflicts.
///
/// A transaction has iterators but no [`Cursor`](crate::Cursor): in a serialisable transaction a cursor would count
/// as having read all of its range, and the transaction's own writes could change under it. A new iterator for each
/// place says exactly what is read.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("stock", "1")?;
/// let (mut first, mut second) = (db.transaction(), db.transaction());
/// for buyer in [&mut first, &mut second] {
///     assert_eq!(buyer.get("stock")?.unwrap(), "1");
///     buyer.put("stock", "0");
/// }
/// first.commit()?;
/// assert_eq!(second.commit().unwrap_err().kind(), terrace::ErrorKind::Conflict);
/// # Ok::<(), terrace::Error>(())
/// ```
#[must_use = "a transaction does nothing before `commit`"]
pub struct Transaction {
    db: Db,
    snapshot: Snapshot,
    isolation: Isolation,
    writes: BTreeMap<KeyspaceId, Writes>,
    /// Keys that it has read; kept only if serialisable.
    read_keys: BTreeSet<(KeyspaceId, Vec<u8>)>,
    read_ranges: Vec<(KeyspaceId, KeyRange)>,
}

/// A transaction's writes to one keyspace.
#[derive(Default)]
struct Writes {
    /// Ranges to delete before `keys` are written.
    ranges: Vec<KeyRange>,
    /// Keys to write; `None` removes the key.
    keys: BTreeMap<Vec<u8>, Option<Slice>>,
}

impl Writes {
    /// The transaction's own write to `key`, if there is one: its value, or `None` for a removal.
    fn get(&self, key: &[u8]) -> Option<Option<Slice>> {
        let deleted = || self.ranges.iter().any(|range| range.contains(key)).then_some(None);
        self.keys.get(key).cloned().or_else(deleted)
    }

    fn delete_range(&mut self, range: KeyRange) {
        self.keys.retain(|key, _| !range.contains(key));
        self.ranges.push(range);
    }
}

impl Db {
    /// Begins a transaction under snapshot isolation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "value");
    /// assert!(!db.contains("key")?);
    /// transaction.commit()?;
    /// assert!(db.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    ///
    /// ```
    /// use terrace::{ErrorKind, Isolation, TransactionOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
    /// if transaction.prefix("on-call:")?.count() == 0 {
    ///     transaction.put("alarm", "on");
    /// }
    /// db.put("on-call:ada", "")?;
    /// assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        Transaction {
            db: self.clone(),
            snapshot: self.snapshot(),
            isolation: options.isolation,
            writes: BTreeMap::new(),
            read_keys: BTreeSet::new(),
            read_ranges: Vec::new(),
        }
    }
}

impl Transaction {
    /// The value of `key`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "mine");
    /// db.put("other", "theirs")?;
    /// assert_eq!(transaction.get("key")?.unwrap(), "mine");
    /// assert!(transaction.get("other")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.get_in(&self.db.default_keyspace(), key)
    }

    /// The value of `key` in `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(db.transaction().get_in(&users, "1")?.unwrap(), "Ada");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`]; `NotFound` when the keyspace was dropped.
    pub fn get_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let (id, key) = (keyspace.keyspace_id(), key.as_ref());
        if let Some(own) = self.writes.get(&id).and_then(|writes| writes.get(key)) {
            return Ok(own);
        }
        if self.isolation == Isolation::Serializable {
            self.read_keys.insert((id, key.to_vec()));
        }
        self.snapshot.keyspace(keyspace).get(key)
    }

    /// Whether `key` has a value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "");
    /// assert!(transaction.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether `key` has a value in `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// assert!(!db.transaction().contains_in(&users, "1")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get_in`].
    pub fn contains_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_in(keyspace, key)?.is_some())
    }

    /// All entries.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "value");
    /// assert_eq!(transaction.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&mut self) -> Result<TransactionIter> {
        self.scan(&self.db.default_keyspace(), EVERYTHING)
    }

    /// The entries whose keys lie in `range`. For a serialisable transaction this counts as a read of the whole
    /// range, however far it walks.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("a", "1").put("b", "2");
    /// assert_eq!(transaction.range("b"..)?.next().unwrap()?.0, "b");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&mut self, range: impl KeyBounds) -> Result<TransactionIter> {
        self.scan(&self.db.default_keyspace(), bounds(&range))
    }

    /// The entries of `keyspace` whose keys lie in `range`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(db.transaction().range_in(&users, "0".."9")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get_in`].
    pub fn range_in(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> Result<TransactionIter> {
        self.scan(keyspace, bounds(&range))
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("user:1", "Ada").put("word:1", "terrace");
    /// assert_eq!(transaction.prefix("user:")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<TransactionIter> {
        self.scan(&self.db.default_keyspace(), Bounds::prefix(prefix.as_ref()))
    }

    /// The entries of `keyspace` whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// assert_eq!(db.transaction().prefix_in(&users, "ada")?.count(), 0);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get_in`].
    pub fn prefix_in(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<TransactionIter> {
        self.scan(keyspace, Bounds::prefix(prefix.as_ref()))
    }

    fn scan(&mut self, keyspace: &Keyspace, bounds: Bounds) -> Result<TransactionIter> {
        let id = keyspace.keyspace_id();
        let (mut own, mut deleted) = (VecDeque::new(), Vec::new());
        if let Some(range) = bounds.range() {
            if let Some(writes) = self.writes.get(&id) {
                let keys = writes.keys.range::<[u8], _>(bounds.as_refs());
                own.extend(keys.map(|(key, value)| (key.clone(), value.clone())));
                deleted.extend(writes.ranges.iter().filter(|deleted| deleted.overlaps(&range)).cloned());
            }
            if self.isolation == Isolation::Serializable {
                self.read_ranges.push((id, range));
            }
        }
        Ok(TransactionIter::new(own, deleted, self.snapshot.keyspace(keyspace).scan(bounds)?))
    }

    /// Gives `key` the value `value`. If the key or value is too long, the commit fails.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("a", "1").put("b", "2");
    /// transaction.commit()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.write(self.db.default.id(), key.as_ref(), Some(value.as_ref()))
    }

    /// Gives `key` the value `value` in `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// let mut transaction = db.transaction();
    /// transaction.put_in(&users, "1", "Ada");
    /// transaction.commit()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.write(keyspace.keyspace_id(), key.as_ref(), Some(value.as_ref()))
    }

    /// Removes `key`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete("key");
    /// assert!(!transaction.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.write(self.db.default.id(), key.as_ref(), None)
    }

    /// Removes `key` from `keyspace`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_in(&users, "1");
    /// transaction.commit()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> &mut Self {
        self.write(keyspace.keyspace_id(), key.as_ref(), None)
    }

    /// Removes all keys that lie in `range`, also those that the transaction has put. This counts as a write of the
    /// whole range: the commit fails if others have written any key of it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("log:1", "old")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("log:2", "mine").delete_range("log:".."log;").put("log:3", "new");
    /// assert_eq!(transaction.iter()?.count(), 1);
    /// transaction.commit()?;
    /// assert!(!db.contains("log:1")? && db.contains("log:3")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_range(&mut self, range: impl KeyBounds) -> &mut Self {
        self.write_range(self.db.default.id(), &bounds(&range))
    }

    /// Removes all keys of `keyspace` that lie in `range`, as [`Transaction::delete_range`] does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_range_in(&users, ..);
    /// transaction.commit()?;
    /// assert_eq!(users.iter()?.count(), 0);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn delete_range_in(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> &mut Self {
        self.write_range(keyspace.keyspace_id(), &bounds(&range))
    }

    fn write_range(&mut self, keyspace: KeyspaceId, bounds: &Bounds) -> &mut Self {
        if let Some(range) = bounds.range() {
            self.writes.entry(keyspace).or_default().delete_range(range);
        }
        self
    }

    fn write(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<&[u8]>) -> &mut Self {
        self.writes.entry(keyspace).or_default().keys.insert(key.to_vec(), value.map(Slice::from));
        self
    }

    /// Applies all writes, with the durability of the options, or none of them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "mine");
    /// db.put("key", "theirs")?;
    /// let error = transaction.commit().unwrap_err();
    /// assert_eq!(error.kind(), terrace::ErrorKind::Conflict);
    /// assert!(error.to_string().contains(r#"key "key" of keyspace "default""#));
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Conflict` when others have written something that the transaction depends on since it began ([`Isolation`]);
    /// otherwise as [`Db::write`]. Nothing is written then.
    pub fn commit(self) -> Result<()> {
        let durability = self.db.engine().settings().options.durability;
        self.commit_with(durability)
    }

    /// Applies all writes, or none of them. A transaction without writes never conflicts: it has seen one moment.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "value");
    /// transaction.commit_with(terrace::Durability::Synced)?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        if self.writes.is_empty() && durability == Durability::Buffered {
            return Ok(());
        }
        self.apply(durability).map(drop)
    }

    /// Applies all writes, or none of them, as buffered ones, and returns at once. The ticket says when they have
    /// become durable. See [`Db::write_ticket`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "value");
    /// transaction.commit_ticket()?.wait()?; // survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit`] and [`Db::write_ticket`].
    pub fn commit_ticket(self) -> Result<Ticket> {
        let write = self.db.engine().write.clone();
        let seq = write.commit_for_ticket(|| self.apply(Durability::Buffered))?;
        Ok(Ticket::new(write.tickets.clone(), seq))
    }

    fn apply(self, durability: Durability) -> Result<Seq> {
        let Self { db, snapshot, writes, read_keys, read_ranges, .. } = self;
        let checks_reads = !writes.is_empty() && !planted!("read-set-not-checked");
        let batch = into_batch(writes);
        let (mut keys, mut ranges) = (Vec::new(), Vec::new());
        if checks_reads {
            keys.extend(read_keys.iter().map(|(id, key)| (*id, &key[..])));
            ranges.extend(read_ranges);
        }
        let condition = Condition::of_batch(Seq(snapshot.seq()), &batch, keys, ranges);
        db.engine().write.commit_if(&batch, durability, condition)
    }

    /// Drops the writes. Dropping the transaction does the same.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let mut transaction = db.transaction();
    /// transaction.put("key", "value");
    /// transaction.rollback();
    /// assert!(!db.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn rollback(self) {}
}

/// Turns all writes into a batch. Each write is freed when the batch has it, and the batch's memory is reserved at
/// once: together they take hardly more memory than the larger of the two.
fn into_batch(writes: BTreeMap<KeyspaceId, Writes>) -> WriteBatch {
    let bytes = |(key, value): (&Vec<u8>, &Option<Slice>)| {
        WriteBatch::bytes_of(key.len(), value.as_ref().map_or(0, |value| value.len()))
    };
    let mut batch = WriteBatch::new();
    batch.reserve(writes.values().flat_map(|writes| writes.keys.iter().map(bytes)).sum());
    for (id, Writes { ranges, keys }) in writes {
        for range in ranges {
            batch.add_range(id, Some(range));
        }
        for (key, value) in keys {
            batch.write(id, &key, value.as_deref());
        }
    }
    batch
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes: usize = self.writes.values().map(|writes| writes.keys.len() + writes.ranges.len()).sum();
        f.debug_struct("Transaction")
            .field("seq", &self.snapshot.seq())
            .field("isolation", &self.isolation)
            .field("writes", &writes)
            .finish_non_exhaustive()
    }
}
