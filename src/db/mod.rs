//! The public API: an open store and its keyspaces.

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
use crate::engine::keyspace::tree::Tree;
use crate::engine::{Engine, Opening, open};
use crate::error::{ErrorKind, Result};
use crate::options::{KeyspaceOptions, Options};
use crate::stats::{RepairReport, Stats, VerifyReport};

/// An open store: ordered keys and values in one or more keyspaces.
///
/// A `Db` is a handle: clones share the store, and any number of threads may use it. The store closes when the last
/// handle is dropped, or with [`Db::close`]. The methods for reading and writing work on the keyspace "default";
/// [`Db::keyspace`] gives others.
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

/// Builds a new store in `target`, an empty or new directory, from everything in the store in `path` whose checksums
/// are right, and lists the rest. The old store is not changed, so the repair can be repeated. It is for stores that
/// do not open, or whose tables are damaged; no store needs it after a crash alone.
///
/// Each key has the newest version that is left. A batch whose log record is damaged is lost, while later ones are
/// not. So the new store may have a state that the old one never had.
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
/// `NotFound` when `path` has no file of a store; `Busy` when the store is open; `InvalidInput` when `target` is not
/// empty; `Io` and `DiskFull` from the operating system.
pub fn repair(path: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<RepairReport> {
    Db::builder(path).repair(target)
}

/// Closes the store when its last user is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    engine: Arc<Engine>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The error is dropped here; `Db::close` returns it.
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
    /// `Busy` when the store is open already, here or in another process; `Corruption` when its files are damaged;
    /// `Io` and `DiskFull` from the operating system.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Opens a store with other settings than the defaults. See [`Builder`].
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

    /// Opens the store in the directory `path` read-only, also while another process writes it. See
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
    /// `NotFound` when there is no store; `Busy` when its writer, again and again, replaces files faster than they
    /// are opened; `Corruption` and `Io` as for [`Db::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).read_only().open()
    }

    /// Brings this handle of a read-only store up to date with the writer. Clones, keyspaces, snapshots and iterators
    /// that were made earlier keep their moment. A store that was opened for writing is always up to date.
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
    /// As [`Db::open_read_only`]; `Closed` when the store has been closed. The handle then keeps its moment.
    pub fn refresh(&mut self) -> Result<()> {
        if let Some(opening) = self.engine().reopening()? {
            *self = Self::start(opening)?;
        }
        Ok(())
    }

    fn start(opening: Opening) -> Result<Self> {
        let handle = Arc::new(Handle { engine: open(&opening)? });
        let default = handle.engine.keyspaces.tree(DEFAULT_KEYSPACE)?;
        Ok(Self { handle, default })
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.handle.engine
    }

    /// A snapshot of the store as it is now, over all keyspaces.
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
        let tree = self.engine().keyspaces.create(name, &options)?;
        Ok(Keyspace::new(self.clone(), tree))
    }

    /// The keyspaces `names`, in this order. Those that there are none of are created with `options`: all of them or none,
    /// whatever happens. That costs as much waiting for the device as one does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let users = db.create_keyspaces(&["ada", "bob"], terrace::KeyspaceOptions::default())?;
    /// users[1].put("colour", "red")?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::keyspace`], for any of them.
    pub fn create_keyspaces<N: AsRef<str>>(
        &self,
        names: &[N],
        options: KeyspaceOptions,
    ) -> Result<Vec<Keyspace>> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let trees = self.engine().keyspaces.create_all(&names, &options)?;
        Ok(trees.into_iter().map(|tree| Keyspace::new(self.clone(), tree)).collect())
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
        let tree = self.engine().keyspaces.find(name)?;
        Ok(tree.map(|tree| Keyspace::new(self.clone(), tree)))
    }

    /// Removes the keyspace `name` and everything in it. Open iterators go on; handles and snapshots of the keyspace
    /// fail with `NotFound` from then on.
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
        self.drop_keyspaces(&[name])
    }

    /// Removes the keyspaces `names` and everything in them: all of them or none, whatever happens. That costs as much
    /// waiting for the device as one does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.create_keyspaces(&["ada", "bob", "eve"], terrace::KeyspaceOptions::default())?;
    /// db.drop_keyspaces(&["ada", "eve"])?;
    /// assert_eq!(db.keyspaces(), ["bob", "default"]);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::drop_keyspace`], for any of them.
    pub fn drop_keyspaces<N: AsRef<str>>(&self, names: &[N]) -> Result<()> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.engine().keyspaces.remove(&names)
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
            self.engine().keyspaces.all().values().map(|tree| tree.record.name.clone()).collect();
        names.sort();
        names
    }

    fn default_keyspace(&self) -> Keyspace {
        Keyspace::new(self.clone(), self.default.clone())
    }

    /// Makes all acknowledged writes durable: they survive a power cut.
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
        self.engine().write.sync()
    }

    /// Writes all memtables to tables, in all keyspaces.
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
        self.engine().write.seal_all()?;
        self.engine().background.wait_flushed()
    }

    /// Compacts everything that is there now into the deepest level, in all keyspaces. Tables that are in that level
    /// already are compacted only where values have expired, a compaction filter is set, tombstones are left, or
    /// entries were kept for a snapshot or transaction that has gone. What nobody can see any more is gone afterwards,
    /// also where background jobs make the tree deeper meanwhile.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.delete("key")?;
    /// db.compact()?;
    /// db.wait_idle()?; // no thread looks at what was there before
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
                    // The keyspace was dropped meanwhile.
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

    /// Changes settings of the open store: all of [`Options`] but `reserve_bytes` and those of keyspaces, which
    /// [`Keyspace::set_options`] changes. They are in force when the call returns: waiting writers check the new
    /// limits, blocks beyond a smaller budget are freed (indexes and filters when their tables go), and compaction
    /// threads are started, or end after their job. New sizes of tables, packs and blocks apply to what is written
    /// from then on. Nothing is stored: the next opening has its own settings. One change runs at a time: `change`
    /// must not call `set_options` or `close`, which would wait for it. To replace all settings, start from
    /// [`Db::options`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::tree::{Governor, Pacer};
    ///
    /// let slow_at = |l0_slow| Pacer::Governor(Governor { l0_slow, ..Governor::default() });
    /// db.set_options(|options| {
    ///     options.memory_bytes = Some(64 << 20);
    ///     options.tree.pacer = slow_at(30);
    /// })?;
    /// assert_eq!(db.options().tree.pacer, slow_at(30));
    /// let refused = db.set_options(|options| options.tree.pacer = slow_at(1)).unwrap_err();
    /// assert_eq!(refused.kind(), terrace::ErrorKind::InvalidInput);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` with the name of the first setting that is out of its range or cannot be changed; nothing is
    /// changed then. `Io` when a thread cannot be started.
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

    /// Copies the store as it is now to the directory `dir`, which must be empty or not exist. The copy is an
    /// independent store, on the same file system or another, and durable when the call returns. All keyspaces are
    /// copied at one moment, with every write that was acknowledged before the call. Whatever the copy has is visible in
    /// this store when the call returns. (The copy of a poisoned store may have writes that have failed, as a reopening
    /// may.) Writes, flushes and compactions go on meanwhile. On a file system that can share storage between files, tables cost no space; elsewhere their
    /// live bytes are copied. An interrupted checkpoint is no store: remove its directory.
    ///
    /// A read-only store copies the moment that it sees, without later writes. So another process can back up a store
    /// that is in use.
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
    /// cannot be read; `Busy` when this store is read-only and its writer has cut off an incomplete write: after
    /// [`Db::refresh`] it can be copied. A partial copy is removed.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(dir.as_ref())
    }

    /// Makes `dir` a device of the store while it is in use, as [`Builder::device`] does when it is opened.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path().join("store"))?;
    /// let second = dir.path().join("second");
    /// db.add_device(&second)?;
    /// db.remove_device(&second)?;
    /// assert_eq!(db.stats().devices.len(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::device`]; `InvalidInput` if it is a device of the store already.
    pub fn add_device(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().add_device(dir.as_ref())
    }

    /// Moves all tables away from the device in `dir`, and places no more there until the store is opened anew. Everything else
    /// goes on meanwhile. It waits for jobs that were writing there before. What iterators and snapshots hold stays until they let go,
    /// and an ingest that began before may still bring tables there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (home, second) = (dir.path().join("home"), dir.path().join("second"));
    /// let db = terrace::Db::builder(&home).device(&second).open()?;
    /// db.drain_device(&second)?;
    /// assert_eq!(db.stats().devices[1].table_bytes, 0);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if there is no such device, or it is the directory of the store itself; whatever a compaction may meet.
    pub fn drain_device(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().drain_device(dir.as_ref())
    }

    /// Drains the device in `dir`, and lets it go: its directory is no store's any more. See [`Db::add_device`].
    ///
    /// # Errors
    /// As [`Db::drain_device`]; `Busy` while iterators or snapshots hold tables there.
    pub fn remove_device(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().remove_device(dir.as_ref())
    }

    /// Closes the store: makes every acknowledged write durable, ends the background threads, and refuses all later
    /// calls through other handles. The directory can be opened again once all of these are dropped too: clones,
    /// keyspaces, transactions, ingests, iterators, snapshots.
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
        f.debug_struct("Db").field("dir", &self.engine().dir()).finish_non_exhaustive()
    }
}
