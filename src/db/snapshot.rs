//! Snapshots: the store as it was at one moment.

use std::fmt;
use std::sync::Arc;

use super::{Db, EVERYTHING, KeyBounds, Keyspace, bounds};
use crate::engine::keyspace::tree::Tree;
use crate::engine::read::bidirectional::BidirectionalScan;
use crate::engine::read::scan::Scan;
use crate::engine::read::sight::Bounds;
use crate::engine::{Engine, Pin};
use crate::error::Result;
use crate::iter::{Cursor, Iter};
use crate::slice::Slice;
use crate::types::Seq;

/// The store as it was at one moment, over all keyspaces. Cheap to make and to clone.
///
/// While it lives, compactions keep every version that it can see. The methods read the keyspace "default";
/// [`Snapshot::keyspace`] reads another.
#[derive(Clone)]
pub struct Snapshot {
    db: Db,
    pin: Arc<Pin>,
}

impl Snapshot {
    pub(super) fn new(db: Db) -> Self {
        let pin = Arc::new(Pin::newest(&db.engine().read));
        Self { db, pin }
    }

    /// Sequence number of the newest write that it sees.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let before = db.snapshot();
    /// db.put("key", "value")?;
    /// assert!(db.snapshot().seq() > before.seq());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.pin.seq().0
    }

    /// The same moment in another keyspace.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// let snapshot = db.snapshot();
    /// users.delete("1")?;
    /// assert_eq!(snapshot.keyspace(&users).get("1")?.unwrap(), "Ada");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn keyspace(&self, keyspace: &Keyspace) -> KeyspaceSnapshot {
        KeyspaceSnapshot { snapshot: self.clone(), tree: keyspace.tree().clone() }
    }

    pub(super) fn default_keyspace(&self) -> KeyspaceSnapshot {
        KeyspaceSnapshot { snapshot: self.clone(), tree: self.db.default.clone() }
    }

    /// The value that `key` had.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.get("key")?.unwrap(), "old");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default_keyspace().get(key)
    }

    /// Whether `key` had a value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert!(snapshot.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default_keyspace().contains(key)
    }

    /// All entries of the moment.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.iter()?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<Iter> {
        self.default_keyspace().iter()
    }

    /// The entries of the moment whose keys lie in `range`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.range("a".."z")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.default_keyspace().range(range)
    }

    /// The entries of the moment whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.prefix("k")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default_keyspace().prefix(prefix)
    }

    /// A cursor over the entries of the moment whose keys lie in `range`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.cursor(..)?.seek("a")?.unwrap().0, b"key");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn cursor(&self, range: impl KeyBounds) -> Result<Cursor> {
        self.default_keyspace().cursor(range)
    }

    /// A cursor over the entries of the moment whose keys start with `prefix`. See [`Cursor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(snapshot.prefix_cursor("k")?.next()?.unwrap().0, b"key");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.default_keyspace().prefix_cursor(prefix)
    }
}

/// A keyspace as it was at the moment of a [`Snapshot`]. Its methods are those of [`Snapshot`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let users = db.keyspace("users")?;
/// users.put("1", "Ada")?;
/// let then = db.snapshot().keyspace(&users);
/// users.put("2", "Grace")?;
/// assert_eq!((then.iter()?.count(), then.range("2"..)?.count(), then.prefix("1")?.count()), (1, 0, 1));
/// assert!(then.contains("1")? && then.get("2")?.is_none());
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct KeyspaceSnapshot {
    snapshot: Snapshot,
    tree: Arc<Tree>,
}

impl KeyspaceSnapshot {
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The engine, and the sequence number at which it reads.
    pub(super) fn moment(&self) -> (&Engine, Seq) {
        (self.snapshot.db.engine(), self.snapshot.pin.seq())
    }

    /// The value that `key` had.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let (engine, seq) = self.moment();
        engine.read.get(&self.tree, key.as_ref(), Some(seq))
    }

    /// Whether `key` had a value.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let (engine, seq) = self.moment();
        engine.read.contains(&self.tree, key.as_ref(), Some(seq))
    }

    /// All entries of the moment.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<Iter> {
        self.scan(EVERYTHING)
    }

    /// The entries of the moment whose keys lie in `range`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.scan(bounds(&range))
    }

    /// The entries of the moment whose keys start with `prefix`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.scan(Bounds::prefix(prefix.as_ref()))
    }

    /// A cursor over the entries of the moment whose keys lie in `range`. See [`Cursor`].
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn cursor(&self, range: impl KeyBounds) -> Result<Cursor> {
        self.bidirectional(bounds(&range))
    }

    /// A cursor over the entries of the moment whose keys start with `prefix`. See [`Cursor`].
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.bidirectional(Bounds::prefix(prefix.as_ref()))
    }

    fn bidirectional(&self, bounds: Bounds) -> Result<Cursor> {
        let Snapshot { db, pin } = &self.snapshot;
        Ok(Cursor::new(BidirectionalScan::new(Scan::new(
            &db.engine().read,
            &self.tree,
            bounds,
            Some(pin.clone()),
        )?)))
    }

    pub(super) fn scan(&self, bounds: Bounds) -> Result<Iter> {
        let Snapshot { db, pin } = &self.snapshot;
        Ok(Iter::new(Scan::new(&db.engine().read, &self.tree, bounds, Some(pin.clone()))?))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("seq", &self.seq()).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyspaceSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyspaceSnapshot").field("keyspace", &self.tree.record.name).finish_non_exhaustive()
    }
}
