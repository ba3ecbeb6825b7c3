//! Keyspaces: independent, ordered sets of keys in a store.

use std::fmt;
use std::sync::Arc;

use super::{Db, KeyBounds, bounds};
use crate::engine::Engine;
use crate::engine::keyspace::tree::Tree;
use crate::engine::read::sight::Bounds;
use crate::engine::shared::settings::options_of;
use crate::error::Result;
use crate::options::KeyspaceOptions;
use crate::stats::Shape;
use crate::types::KeyspaceId;

/// A keyspace: an independent, ordered set of keys in a store. It has its own tree, and shares log, sequence numbers,
/// caches and atomic batches with the others. A `Keyspace` is a handle: cheap to clone, and it keeps the store open.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let users = db.keyspace("users")?;
/// users.put("1", "Ada")?;
/// assert!(db.get("1")?.is_none());
/// assert_eq!(users.prefix("1")?.count(), 1);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    db: Db,
    tree: Arc<Tree>,
}

/// Names the keyspace in a [`WriteBatch`](crate::WriteBatch).
impl From<&Keyspace> for KeyspaceId {
    fn from(keyspace: &Keyspace) -> Self {
        keyspace.keyspace_id()
    }
}

impl Keyspace {
    pub(super) fn new(db: Db, tree: Arc<Tree>) -> Self {
        Self { db, tree }
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        self.db.engine()
    }

    pub(crate) fn keyspace_id(&self) -> KeyspaceId {
        self.tree.id()
    }

    /// Its name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert_eq!(db.keyspace("users")?.name(), "users");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.tree.record.name
    }

    /// Its id, never reused in this store.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert_ne!(db.keyspace("users")?.id(), db.keyspace("groups")?.id());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        self.tree.id().0
    }

    /// Its options: those of its creation, with the changes by [`Keyspace::set_options`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::KeyspaceOptions;
    /// let few = KeyspaceOptions { filter_bits_per_key: 5, ..KeyspaceOptions::default() };
    /// assert_eq!(db.keyspace_with("users", few.clone())?.options(), few);
    /// assert_eq!(db.keyspace("users")?.options(), few);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn options(&self) -> KeyspaceOptions {
        options_of(&self.db.engine().keyspaces.record_of(&self.tree))
    }

    /// Changes compression and filters for tables that are written from now on, in this opening and all later ones.
    /// Existing tables stay as they are until they are compacted; running jobs end with the options that they began
    /// with. The change is durable when the call returns. Equal options cost nothing.
    ///
    /// A new `ttl` applies to all values, existing ones included, and counts from each value's write. Values that
    /// have expired by now do not come back.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::{Compression, KeyspaceOptions};
    /// let users = db.keyspace("users")?;
    /// users.set_options(&KeyspaceOptions { compression: Compression::Lz4, ..users.options() })?;
    /// assert_eq!(users.options().compression, Compression::Lz4);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when an option is out of its range, when `prefix` changes, or when a time to live is added or
    /// removed: existing keys and values are stored in the form that these two options prescribe. `NotFound` when the
    /// keyspace was dropped; `ReadOnly`; `Poisoned` and `Io` as for [`Db::put`].
    pub fn set_options(&self, options: &KeyspaceOptions) -> Result<()> {
        self.db.engine().keyspaces.alter(&self.tree, options)
    }

    /// Compacts the tables that hold keys of `range` into the deepest level, as [`crate::Db::compact`] does with all
    /// tables.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.put("1", "Ada")?;
    /// users.compact_range("0".."9")?;
    /// users.compact_range(..)?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the background jobs.
    pub fn compact_range(&self, range: impl KeyBounds) -> Result<()> {
        self.db.flush()?;
        self.tree.check_exists()?;
        self.compact_tables(&bounds(&range))
    }

    pub(super) fn compact_tables(&self, bounds: &Bounds) -> Result<()> {
        let engine = self.db.engine();
        self.tree.check_exists()?;
        bounds.range().map_or(Ok(()), |range| engine.background.compact(&self.tree, &range))
    }

    /// The shape of the keyspace's tree.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let levels = db.keyspace("default")?.shape().levels;
    /// // In level 0, unless idle time has moved it down.
    /// assert_eq!(levels.iter().map(|level| level.entries).sum::<u64>(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
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
