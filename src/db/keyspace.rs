//! Keyspaces.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::{Db, bounds, single};
use crate::engine::scan::{Bounds, Scan};
use crate::engine::tree::Tree;
use crate::error::Result;
use crate::iter::Iter;
use crate::slice::Slice;
use crate::stats::Shape;
use crate::types::{KeyRange, KeyspaceId, Kind};

/// An independent, ordered set of keys in a store: it has its own tree, and shares log, sequence numbers, caches and
/// atomic batches with the others. A handle, cheap to clone; it keeps the store open.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let users = db.keyspace("users")?;
/// users.put("1", "Ada")?;
/// assert!(db.get("1")?.is_none());
/// assert_eq!(users.prefix("1")?.count(), 1);
/// # terrace::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    db: Db,
    tree: Arc<Tree>,
}

impl Keyspace {
    pub(super) fn new(db: Db, tree: Arc<Tree>) -> Self {
        Self { db, tree }
    }

    pub(super) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub(crate) fn keyspace_id(&self) -> KeyspaceId {
        self.tree.id()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.tree.record.name
    }

    /// Its id, never reused in this store.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.tree.id().0
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.db.engine().get(&self.tree, key.as_ref(), None)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Gives `key` the value `value`.
    ///
    /// # Errors
    /// As [`Db::put`]; `NotFound` when the keyspace was dropped.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(single(self, Kind::Put, key.as_ref(), value.as_ref()))
    }

    /// Removes `key`; fine if it has no value.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(single(self, Kind::Delete, key.as_ref(), &[]))
    }

    /// All entries.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self) -> Result<Iter> {
        self.scan(Bounds { from: Bound::Unbounded, to: Bound::Unbounded })
    }

    /// The entries whose keys lie in `range`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.scan(bounds(&range))
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.scan(Bounds::prefix(prefix.as_ref()))
    }

    fn scan(&self, bounds: Bounds) -> Result<Iter> {
        Ok(Iter::new(Scan::new(self.db.engine(), &self.tree, bounds, None)?))
    }

    /// Merges the tables that hold keys of `range` into the deepest level.
    ///
    /// # Errors
    /// Those of the background jobs.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.db.flush()?;
        let engine = self.db.engine();
        // Tables end somewhere: the ends of the tree stand for an open end.
        match engine.hull(&self.tree, &bounds(&range)) {
            Some((smallest, largest)) => engine.compact(&self.tree, Some(&KeyRange::new(smallest, largest))),
            None => Ok(()),
        }
    }

    /// How the tree looks.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.db.engine().shape(&self.tree)
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.name()).finish_non_exhaustive()
    }
}
