//! The builder: opens a store with settings and components of the caller.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Db;
use crate::engine::{Listener, Opening};
use crate::env::Env;
use crate::env::posix::PosixEnv;
use crate::error::Result;
use crate::events::EventListener;
use crate::filter::{CompactionFilter, Filters};
use crate::options::Options;
use crate::stats::RepairReport;

/// Settings ([`Options`]) and components (the environment) of a store that is about to be opened.
///
/// ```
/// use terrace::{Db, Options};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::builder(dir.path()).options(Options { memory_bytes: Some(64 << 20), ..Options::default() }).open()?;
/// # drop(db);
/// let reader = Db::builder(dir.path()).read_only().open()?;
/// assert!(reader.put("key", "value").is_err());
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing before `open`"]
pub struct Builder {
    opening: Opening,
}

impl Builder {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            opening: Opening {
                dir: PathBuf::from(dir),
                devices: Vec::new(),
                env: PosixEnv::shared(),
                options: Options::default(),
                read_only: false,
                must_exist: false,
                listener: Listener::default(),
                filters: Filters::default(),
            },
        }
    }

    /// Settings; the defaults suit most uses.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// drop(db);
    /// let options = terrace::Options { memtable_bytes: 8 << 20, ..Default::default() };
    /// let db = terrace::Db::builder(dir.path()).options(options).open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn options(mut self, options: Options) -> Self {
        self.opening.options = options;
        self
    }

    /// The environment to run on; the operating system by default.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::env::simulated::{SimConfig, SimEnv};
    /// let db = terrace::Db::builder("/in/memory").env(SimEnv::new(SimConfig::default())).open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.opening.env = env;
        self
    }

    /// The listener that receives events: flushes, compactions, stalls and failures. See [`EventListener`].
    ///
    /// ```
    /// struct Log;
    ///
    /// impl terrace::EventListener for Log {
    ///     fn poisoned(&self, error: &terrace::Error) {
    ///         eprintln!("writes are refused: {error}");
    ///     }
    /// }
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::builder(dir.path()).listener(std::sync::Arc::new(Log)).open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.opening.listener = Listener(Some(listener));
        self
    }

    /// The compaction filter of the keyspace `name`, which need not exist yet. See [`CompactionFilter`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// struct Shorten;
    ///
    /// impl terrace::CompactionFilter for Shorten {
    ///     fn decide(&self, _key: &[u8], value: &[u8]) -> terrace::Decision {
    ///         let short = value.get(..100).map(<[u8]>::to_vec);
    ///         short.map_or(terrace::Decision::Keep, terrace::Decision::Change)
    ///     }
    /// }
    /// let db = terrace::Db::builder(dir.path()).compaction_filter("log", std::sync::Arc::new(Shorten)).open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn compaction_filter(mut self, name: &str, filter: Arc<dyn CompactionFilter>) -> Self {
        self.opening.filters.0.insert(name.into(), filter);
        self
    }

    /// Another directory for tables, on another device: a second disk, fast or slow. It is made if it does not exist, and is the
    /// store's from then on: it need not be given again, unless it has moved. The store chooses for each table the device that will
    /// have written it first; the log stays at home, so that should be the device that syncs faster.
    ///
    /// The store needs all of its devices. Whoever loses one loses the tables there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (fast, slow) = (dir.path().join("fast"), dir.path().join("slow"));
    /// let db = terrace::Db::builder(&fast).device(&slow).open()?;
    /// db.put("key", "value")?;
    /// drop(db);
    /// let db = terrace::Db::open(&fast)?;
    /// assert_eq!(db.stats().devices.len(), 2);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The opening fails with `InvalidInput` if the directory is one of another store, has other files of a store, or was removed
    /// from this one; with `NotFound` if a device of the store is missing; with `Busy` if it is open elsewhere.
    pub fn device(mut self, dir: impl AsRef<Path>) -> Self {
        self.opening.devices.push(dir.as_ref().into());
        self
    }

    /// Opens the store read-only: as it is at the moment, without any change, not even to recover from a crash. Any
    /// number of processes may do so at once, and beside one that writes. They see a prefix of the history, over all
    /// keyspaces, with every write that was acknowledged before the opening, and see no more until [`Db::refresh`].
    /// The last writes that they see may not be acknowledged yet: readers in the writing process see those that wait for
    /// their sync later, and a power cut or a failing sync may take them. Every write fails with `ReadOnly`. Until the refresh, each pack and log segment that was read keeps its space
    /// and takes a file descriptor. Opening fails with `NotFound` if there is no store, and with `Busy` if its writer
    /// replaces files faster than they are opened.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = terrace::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let reader = terrace::Db::builder(dir.path()).read_only().open()?;
    /// assert_eq!(reader.get("key")?.unwrap(), "value");
    /// assert_eq!(reader.put("key", "other").unwrap_err().kind(), terrace::ErrorKind::ReadOnly);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn read_only(mut self) -> Self {
        self.opening.read_only = true;
        self
    }

    /// Fails with `NotFound` instead of creating a store.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let error = terrace::Db::builder(dir.path().join("none")).must_exist().open().unwrap_err();
    /// assert_eq!(error.kind(), terrace::ErrorKind::NotFound);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub fn must_exist(mut self) -> Self {
        self.opening.must_exist = true;
        self
    }

    /// As [`crate::repair`], with the settings and the environment of this builder.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (store, target) = (dir.path().join("store"), dir.path().join("target"));
    /// # drop(terrace::Db::open(&store)?);
    /// let report = terrace::Db::builder(&store).repair(&target)?;
    /// assert!(report.lost.is_empty());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::repair`].
    pub fn repair(self, target: impl AsRef<Path>) -> Result<RepairReport> {
        crate::engine::repair(&self.opening, target.as_ref())
    }

    /// Opens the store.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// drop(db);
    /// let db = terrace::Db::builder(dir.path()).open()?;
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidInput` when a setting is out of its range.
    pub fn open(self) -> Result<Db> {
        Db::start(self.opening)
    }
}
