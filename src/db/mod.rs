//! The store, as its users see it.

mod bounds;
mod builder;
mod ingest;
mod keyspace;
mod multi_get;
mod properties;
mod read;
mod snapshot;
mod ticket;
mod transaction;
mod write;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bounds::EVERYTHING;
pub(crate) use bounds::bounds;
pub use builder::Builder;
pub use ingest::Ingest;
pub use keyspace::Keyspace;
pub use snapshot::{KeyspaceSnapshot, Snapshot};
pub use ticket::Ticket;
pub use transaction::{Isolation, Transaction, TransactionIter, TransactionOptions};

use crate::batch::DEFAULT_KEYSPACE;
use crate::bounds::KeyBounds;
use crate::engine::read::tree::Tree;
use crate::engine::{Engine, Opening, open};
use crate::error::{ErrorKind, Result};
use crate::options::{KeyspaceOptions, Options};
use crate::stats::{RepairReport, Stats, VerifyReport};

/// An open store: ordered keys and values in one or more keyspaces.
///
/// A handle; clones share the store, and any number of threads may use it. The store closes when the last handle is
/// dropped, or with [`Db::close`]. The methods for reading and writing work on the keyspace "default"; others are had
/// from [`Db::keyspace`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// assert_eq!(db.get("key")?.unwrap(), "value");
/// db.delete("key")?;
/// assert!(db.get("key")?.is_none());
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
    /// The keyspace "default", which cannot be dropped.
    default: Arc<Tree>,
}

/// Builds a new store in `target`, an empty or new directory, of everything that checks in the store in `path`, and lists
/// what does not. The old store is not changed, so it can be tried again, or with better tools. For stores that do not open,
/// or whose tables are damaged; no store needs it after a mere crash.
///
/// Of each key the newest version that is left counts. A batch whose log record is damaged is lost, later ones are not, so
/// the new store need not be one that the old one ever was.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let (store, target) = (dir.path().join("store"), dir.path().join("target"));
/// let db = terrace::Db::open(&store)?;
/// db.put("key", "value")?;
/// drop(db);
/// std::fs::remove_file(store.join("CURRENT")).unwrap();
/// assert!(terrace::Db::open(&store).is_err());
/// let report = terrace::repair(&store, &target)?;
/// assert_eq!((report.entries, report.lost.len()), (1, 1));
/// assert_eq!(terrace::Db::open(&target)?.get("key")?.unwrap(), "value");
/// # Ok::<(), terrace::Error>(())
/// ```
///
/// # Errors
/// `NotFound` when there is nothing of a store in `path`; `Busy` when it is open; `InvalidInput` when `target` is not empty;
/// `Io` and `DiskFull` as the operating system has it.
pub fn repair(path: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<RepairReport> {
    Db::builder(path).repair(target)
}

/// Closes the store when the last of its users is gone.
#[derive(Debug)]
pub(crate) struct Handle {
    engine: Arc<Engine>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Whoever wants to know calls `Db::close`.
        let _ = self.engine.close();
    }
}

impl Db {
    /// Opens the store in the directory `path`, and creates it if there is none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let again = terrace::Db::open(dir.path());
    /// assert_eq!(again.unwrap_err().kind(), terrace::ErrorKind::Busy);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` when the store is open already, here or in another process; `Corruption` when its files are damaged; `Io`
    /// and `DiskFull` as the operating system has it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Opens a store with settings of one's own. See [`Builder`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// drop(db);
    /// let db = terrace::Db::builder(dir.path()).must_exist().open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }

    /// Opens the store in the directory `path` for reading alone, beside a process that writes it if there is one. See
    /// [`Builder::read_only`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let reader = terrace::Db::open_read_only(dir.path())?;
    /// assert_eq!(reader.get("key")?.unwrap(), "value");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is no store; `Busy` when its writer replaces files faster than they are opened, again and
    /// again; `Corruption` and `Io` as [`Db::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).read_only().open()
    }

    /// Lets this handle of a store that is read beside its writer catch up with it. Clones, keyspaces, snapshots and
    /// iterators that were made before keep their moment. A store that was opened for writing is always up to date.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::open(dir.path())?;
    /// let mut reader = terrace::Db::open_read_only(dir.path())?;
    /// db.put("key", "value")?;
    /// assert!(!reader.contains("key")?);
    /// reader.refresh()?;
    /// assert!(reader.contains("key")?);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_read_only`], `Closed` when the store has been closed; the handle keeps its moment then.
    pub fn refresh(&mut self) -> Result<()> {
        if let Some(opening) = self.engine().reopening()? {
            *self = Self::start(opening)?;
        }
        Ok(())
    }

    fn start(opening: Opening) -> Result<Self> {
        let handle = Arc::new(Handle { engine: open(&opening)? });
        let default = handle.engine.tree(DEFAULT_KEYSPACE)?;
        Ok(Self { handle, default })
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.handle.engine
    }

    /// The store as it is now, to be read again and again, over all keyspaces.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// let snapshot = db.snapshot();
    /// db.put("key", "new")?;
    /// assert_eq!(snapshot.get("key")?.unwrap(), "old");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.clone())
    }

    /// The keyspace `name`, created with default settings if there is none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.keyspace("users")?.put("1", "Ada")?;
    /// assert_eq!(db.keyspaces(), ["default", "users"]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when the name is empty or longer than 255 bytes; otherwise as [`Db::put`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, KeyspaceOptions::default())
    }

    /// The keyspace `name`, created with `options` if there is none; a keyspace that exists keeps its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::{Compression, KeyspaceOptions};
    /// let options = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    /// db.keyspace_with("pages", options)?.put("/", "<html>")?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::keyspace`].
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let tree = self.engine().create_keyspace(name, &options)?;
        Ok(Keyspace::new(self.clone(), tree))
    }

    /// The keyspace `name`, if there is one.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert!(db.existing_keyspace("users")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed` when the store has been closed.
    pub fn existing_keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        let tree = self.engine().find_keyspace(name)?;
        Ok(tree.map(|tree| Keyspace::new(self.clone(), tree)))
    }

    /// Removes the keyspace `name` and all that is in it. Iterators that are open go on; handles and snapshots of it fail
    /// with `NotFound` from then on.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.keyspace("scratch")?.put("key", "value")?;
    /// db.drop_keyspace("scratch")?;
    /// assert!(db.existing_keyspace("scratch")?.is_none());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is none; `InvalidInput` for "default", which stays; otherwise as [`Db::put`].
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.engine().drop_keyspace(name)
    }

    /// Names of the keyspaces, sorted.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert_eq!(db.keyspaces(), ["default"]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn keyspaces(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.engine().trees().values().map(|tree| tree.record.name.clone()).collect();
        names.sort();
        names
    }

    fn default_keyspace(&self) -> Keyspace {
        Keyspace::new(self.clone(), self.default.clone())
    }

    /// Makes everything acknowledged so far survive a power cut.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.sync()?; // "key" survives a power cut from here on
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` when the log cannot be synced; the store is poisoned then.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync()
    }

    /// Moves what is in memory into tables, in all keyspaces.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// assert_eq!(db.stats().flush.jobs, 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the background jobs.
    pub fn flush(&self) -> Result<()> {
        self.engine().seal_all()?;
        self.engine().background.wait_flushed()
    }

    /// Compacts everything that is there at the moment into the deepest level, in all keyspaces, and what is in that level already where
    /// values have expired, a compaction filter is set, or tombstones are left. Entries that nobody can see any more are gone
    /// afterwards, but for older versions in the deepest level that a snapshot has kept: they go with the next compaction there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.delete("key")?;
    /// db.compact()?;
    /// assert_eq!(db.stats().space.live_bytes, 0);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the background jobs.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        for keyspace in self.keyspaces() {
            if let Some(keyspace) = self.existing_keyspace(&keyspace)? {
                match keyspace.compact_tables(&EVERYTHING) {
                    // Dropped meanwhile.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    compacted => compacted?,
                }
            }
        }
        self.engine().background.wait_idle_or_written()
    }

    /// Waits until no flush, compaction or reclaim is due.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.wait_idle()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the background jobs.
    pub fn wait_idle(&self) -> Result<()> {
        self.engine().background.wait_idle()
    }

    /// Counters since the store was opened, and sizes as of now.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.user_bytes_written, 8);
    /// assert!(stats.written.wal > 8);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// The settings in force; `keyspace` are those of the keyspace "default" ([`Keyspace::options`] has those of the others).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// assert_eq!(db.options(), terrace::Options::default());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    #[must_use]
    pub fn options(&self) -> Options {
        self.engine().options()
    }

    /// Changes settings of the open store: all of [`Options`] but `reserve_bytes`, and those of keyspaces, which
    /// [`Keyspace::set_options`] changes. In force when the call returns: waiting writers look again, blocks beyond a smaller
    /// budget are given back (indexes and filters when their tables go), compaction threads are started, or end after their
    /// job. Sizes of tables, packs and blocks hold for what is written
    /// from then on. Nothing is stored: the next opening has its own settings. One change at a time: `change` must not call
    /// `set_options` or `close`, which would wait for it. To replace them all, start from [`Db::options`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.set_options(|options| {
    ///     options.memory_bytes = Some(64 << 20);
    ///     options.tree.l0_trigger = 8;
    /// })?;
    /// assert_eq!(db.options().tree.l0_trigger, 8);
    /// let refused = db.set_options(|options| options.tree.l0_slow = 1).unwrap_err();
    /// assert_eq!(refused.kind(), terrace::ErrorKind::InvalidInput);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` with the name of the first setting that is out of its range, or fixed; nothing is changed then. `Io`
    /// when a thread cannot be started.
    pub fn set_options(&self, change: impl FnOnce(&mut Options)) -> Result<()> {
        self.engine().change_options(change)
    }

    /// Reads the whole store and checks every block against its checksum, its neighbours and the manifest. Damage is
    /// listed in the report.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let report = db.verify()?;
    /// assert_eq!((report.entries, report.problems.len()), (1, 0));
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed` when the store has been closed.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine().verify()
    }

    /// Copies the store as it is now to the directory `dir`, which must be empty or not exist: an independent store, on
    /// the same file system or another, durable when the call returns. All keyspaces are copied at one moment, with every
    /// write that was acknowledged before. Writes, flushes and compactions go on meanwhile. On a file system that can share
    /// storage between files, tables cost no space; elsewhere their live bytes are copied. A checkpoint that was cut off
    /// is no store: remove the directory.
    ///
    /// An opening for reading alone copies the moment that it sees, which may be long past, without the writes since: so another
    /// process can back a store up while it is in use.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path().join("store"))?;
    /// let copy = dir.path().join("copy");
    /// db.put("key", "value")?;
    /// db.checkpoint(&copy)?;
    /// assert_eq!(terrace::Db::open(&copy)?.get("key")?.unwrap(), "value");
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when the directory is not empty; `DiskFull` and `Io` of the directory; `Corruption` when a file
    /// cannot be read; `Busy` when the writer of a store that is only read has cut off what it could not write whole: after
    /// [`Db::refresh`] it can be copied. What was copied by then is removed.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(dir.as_ref())
    }

    /// Closes the store: makes every acknowledged write durable, ends the background threads, and refuses all later
    /// calls through other handles. The directory is free for the next opening once all of those are gone, too: clones, keyspaces,
    /// transactions, ingests, iterators, snapshots.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let other = db.clone();
    /// db.close()?;
    /// assert_eq!(other.get("key").unwrap_err().kind(), terrace::ErrorKind::Closed);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the log cannot be synced, or the store was poisoned before.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("dir", &self.engine().device.dir()).finish_non_exhaustive()
    }
}
