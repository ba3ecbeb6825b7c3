//! Keyspaces.

use std::fmt;
use std::sync::Arc;

use super::{Db, KeyBounds, bounds};
use crate::engine::Engine;
use crate::engine::lifecycle::settings::options_of;
use crate::engine::read::scan::Bounds;
use crate::engine::read::tree::Tree;
use crate::error::Result;
use crate::options::KeyspaceOptions;
use crate::stats::Shape;
use crate::types::KeyspaceId;

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
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    db: Db,
    tree: Arc<Tree>,
}

/// Names the keyspace in a [`WriteBatch`].
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

    /// Its options: those that it was created with, but for what [`Keyspace::set_options`] has changed since.
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
        options_of(&self.db.engine().record_of(&self.tree))
    }

    /// Has tables be written with other compression or filters from now on, in this opening and all later ones. Tables that are
    /// there stay as they are until they are compacted, and those of jobs under way end as they began. Durable when the call
    /// returns; the same options as before cost nothing.
    ///
    /// Values live for another `ttl` from now on, those that are there as well, counted from their writes. What has expired by now
    /// does not come back, however long the new one is.
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
    /// `InvalidInput` when an option is out of its range, when `prefix` is another than before, or when values lived for ever and
    /// are not to, or the other way round: by these, keys and values are stored that are there already. `NotFound` when the keyspace was dropped; `ReadOnly`; `Poisoned` and `Io`
    /// as for [`Db::put`].
    pub fn set_options(&self, options: &KeyspaceOptions) -> Result<()> {
        self.db.engine().alter_keyspace(&self.tree, options)
    }

    /// Compacts the tables that hold keys of `range` into the deepest level, as [`crate::Db::compact`] does with all.
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

    /// How the tree looks.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// assert_eq!(db.keyspace("default")?.shape().levels[0].entries, 1);
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
