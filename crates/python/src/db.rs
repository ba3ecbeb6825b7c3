//! An open store: opening, keyspaces, what spans them, and looking after it.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyType;
use terrace::TransactionOptions;
use terrace::types::KeyspaceId;

use crate::batch::Batch;
use crate::errors::{ClosedError, NotFoundError, OrRaise};
use crate::keyspace::Keyspace;
use crate::options::{Durability, IsolationWord, KeyspaceOptions, Options, options};
use crate::record::ToPython;
use crate::snapshot::Snapshot;
use crate::store::{Slot, Store};
use crate::ticket::Ticket;
use crate::transaction::Transaction;

/// An open store. As a map it is its keyspace "default"; `keyspace` gives others.
///
/// `terrace.open` opens one. Close it, or use it in a `with` block: then the directory is free at once, and whatever is left of
/// it (keyspaces, snapshots, iterators) raises `ClosedError`. Any number of threads may use it; a child process may not.
///
/// >>> with terrace.open(path / "example.db") as example:
/// ...     example[b"key"] = b"value"
/// >>> example[b"key"]
/// Traceback (most recent call last):
///     ...
/// terrace.errors.ClosedError: the store has been closed
#[pyclass(frozen, extends = Keyspace, module = "terrace")]
pub struct Db {
    db: Slot<terrace::Db>,
    default: Slot<terrace::Keyspace>,
    path: PathBuf,
}

/// Opens the store in the directory `path`, and creates it if there is none.
///
/// `read_only` opens it beside a process that writes: it shows the moment of its opening until `Db.refresh`. `must_exist` raises
/// `NotFoundError` instead of creating a store. `devices` are more directories for tables, on other disks.
///
/// >>> db = terrace.open(path / "people.db")
/// >>> db[b"ada"] = b"Lovelace"
/// >>> db.close()
///
/// >>> options = terrace.Options(memory_bytes=64 << 20)
/// >>> with terrace.open(path / "people.db", options=options, must_exist=True) as db:
/// ...     list(db.items())
/// [(b'ada', b'Lovelace')]
#[pyfunction]
#[pyo3(signature = (path, *, read_only=false, must_exist=false, options=None, devices=Vec::new()), text_signature = "(path, *, read_only=False, must_exist=False, options=None, devices=())")]
pub fn open<'py>(
    py: Python<'py>,
    path: PathBuf,
    read_only: bool,
    must_exist: bool,
    options: Option<Options<'py>>,
    devices: Vec<PathBuf>,
) -> PyResult<Py<Db>> {
    let mut builder = terrace::Db::builder(&path);
    if let Some(options) = options {
        builder = builder.options(options.settings(&terrace::Options::default())?);
    }
    for device in devices {
        builder = builder.device(device);
    }
    if read_only {
        builder = builder.read_only();
    }
    if must_exist {
        builder = builder.must_exist();
    }
    let (db, default) = py.detach(|| opened(builder)).or_raise(py)?;
    let default = default.ok_or_else(|| NotFoundError::new_err("the store has no keyspace 'default'"))?;
    let store = Store::new();
    let (db, default) = (Slot::new(&store, "store", db)?, Slot::new(&store, "keyspace", default)?);
    let this = Db { db: db.clone(), default: default.clone(), path };
    Py::new(py, Keyspace::initializer(&db, &default).add_subclass(this))
}

fn opened(builder: terrace::Builder) -> terrace::Result<(terrace::Db, Option<terrace::Keyspace>)> {
    let db = builder.open()?;
    let default = db.existing_keyspace("default")?;
    Ok((db, default))
}

/// Builds a new store in `target`, an empty or new directory, from everything in the store in `path` that is undamaged, and
/// lists the rest in a `stats.RepairReport`. The old store is not changed.
///
/// >>> terrace.open(path / "old.db").close()
/// >>> terrace.repair(path / "old.db", path / "new.db").lost
/// ()
#[pyfunction]
pub fn repair<'py>(py: Python<'py>, path: PathBuf, target: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    py.detach(|| terrace::repair(path, target)).or_raise(py)?.to_python(py)
}

#[pymethods]
impl Db {
    /// Closes the store: makes every acknowledged write durable and lets go of the directory. Running calls in other threads
    /// end first. Nothing happens if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.db.store();
        store.check_process()?;
        let closed = self.db.read(py, |db| db.clone().close());
        py.detach(|| store.release());
        match closed {
            Err(error) if error.is_instance_of::<ClosedError>(py) => Ok(()),
            closed => closed,
        }
    }

    /// Whether it was closed.
    ///
    /// >>> db.closed
    /// False
    #[getter]
    fn closed(&self) -> bool {
        self.db.store().is_closed()
    }

    /// Its directory.
    ///
    /// >>> db.path.is_dir()
    /// True
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    /// The keyspace `name`, created with `options` if there is none; one that exists keeps its own.
    ///
    /// >>> db.keyspace("users")[b"1"] = b"Ada"
    /// >>> db.keyspaces()
    /// ['default', 'users']
    #[pyo3(signature = (name, options=None))]
    fn keyspace(
        &self,
        py: Python<'_>,
        name: &str,
        options: Option<KeyspaceOptions<'_>>,
    ) -> PyResult<Py<Keyspace>> {
        let settings = settings(options)?;
        let keyspace = self.db.read(py, |db| db.keyspace_with(name, settings))?;
        Keyspace::object(py, &self.db, keyspace)
    }

    /// The keyspace `name`, or `None`.
    ///
    /// >>> db.existing_keyspace("users")
    fn existing_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<Keyspace>>> {
        let keyspace = self.db.read(py, |db| db.existing_keyspace(name))?;
        keyspace.map(|keyspace| Keyspace::object(py, &self.db, keyspace)).transpose()
    }

    /// The keyspaces `names`, in this order, created with `options` where there are none: all of them or none.
    ///
    /// >>> ada, bob = db.create_keyspaces(["ada", "bob"])
    #[pyo3(signature = (names, options=None))]
    fn create_keyspaces(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        options: Option<KeyspaceOptions<'_>>,
    ) -> PyResult<Vec<Py<Keyspace>>> {
        let settings = settings(options)?;
        let keyspaces = self.db.read(py, |db| db.create_keyspaces(&names, settings))?;
        keyspaces.into_iter().map(|keyspace| Keyspace::object(py, &self.db, keyspace)).collect()
    }

    /// Names of the keyspaces, sorted.
    ///
    /// >>> db.keyspaces()
    /// ['default']
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.db.read(py, |db| Ok(db.keyspaces()))
    }

    /// Removes keyspaces and everything in them: all of them or none.
    ///
    /// >>> ada, bob = db.create_keyspaces(["ada", "bob"])
    /// >>> db.drop_keyspaces(["ada", "bob"])
    fn drop_keyspaces(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        self.db.read(py, |db| db.drop_keyspaces(&names))
    }

    /// Removes the keyspace `name` and everything in it.
    ///
    /// >>> db.drop_keyspace("users")
    /// Traceback (most recent call last):
    ///     ...
    /// terrace.errors.NotFoundError: ...
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.db.read(py, |db| db.drop_keyspace(name))
    }

    /// A snapshot of the store as it is now, over all keyspaces.
    ///
    /// >>> with db.snapshot() as snapshot:
    /// ...     snapshot.get(b"key")
    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        let snapshot = self.db.read(py, |db| Ok(db.snapshot()))?;
        Snapshot::object(py, &Slot::new(self.db.store(), "snapshot", snapshot)?, &self.default)
    }

    /// A batch of writes that take effect together; a `with` block writes it. See `Batch`.
    ///
    /// >>> with db.batch() as batch:
    /// ...     batch[b"a"] = b"1"
    /// ...     batch[b"b"] = b"2"
    #[pyo3(signature = (*, durability=None))]
    fn batch(&self, py: Python<'_>, durability: Option<Durability>) -> PyResult<Batch> {
        let default = self.default.read(py, |keyspace| Ok(KeyspaceId::from(keyspace)))?;
        Ok(Batch::new(&self.db, default, durability))
    }

    /// Begins a transaction; a `with` block commits it. See `Transaction`.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction[b"seen"] = transaction.get(b"seen", b"") + b"x"
    #[pyo3(signature = (*, isolation=None, durability=None), text_signature = "($self, *, isolation='snapshot', durability=None)")]
    fn transaction(
        &self,
        py: Python<'_>,
        isolation: Option<IsolationWord>,
        durability: Option<Durability>,
    ) -> PyResult<Py<Transaction>> {
        let isolation = isolation.map(|word| word.0).unwrap_or_default();
        let transaction = self.db.read(py, |db| Ok(db.transaction_with(TransactionOptions { isolation })))?;
        let slot = Slot::new(self.db.store(), "transaction", transaction)?;
        Transaction::object(py, &slot, &self.default, durability)
    }

    /// Makes all acknowledged writes durable: they survive a power cut.
    ///
    /// >>> db.sync()
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, terrace::Db::sync)
    }

    /// As `sync`, without waiting: the ticket says when everything that is acknowledged by now is durable.
    ///
    /// >>> db.sync_ticket().wait()
    fn sync_ticket(&self, py: Python<'_>) -> PyResult<Ticket> {
        let ticket = self.db.read(py, terrace::Db::sync_ticket)?;
        Ok(Ticket::new(self.db.store(), ticket))
    }

    /// Writes all memtables to tables, in all keyspaces.
    ///
    /// >>> db.flush()
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, terrace::Db::flush)
    }

    /// Compacts everything that is there now into the deepest level, in all keyspaces.
    ///
    /// >>> db.compact()
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, terrace::Db::compact)
    }

    /// Waits until no flush, compaction or reclaim is due.
    ///
    /// >>> db.wait_idle()
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, terrace::Db::wait_idle)
    }

    /// Brings a store that is open read-only up to date with its writer. Keyspaces, snapshots and iterators that were made
    /// earlier keep their moment.
    ///
    /// >>> with terrace.open(path / "shared.db") as writer, terrace.open(path / "shared.db", read_only=True) as reader:
    /// ...     writer[b"key"] = b"value"
    /// ...     before = b"key" in reader
    /// ...     reader.refresh()
    /// ...     before, b"key" in reader
    /// (False, True)
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let fresh = self.db.write(py, |db| {
            db.refresh()?;
            db.existing_keyspace("default")
        })?;
        let fresh = fresh.ok_or_else(|| NotFoundError::new_err("the store has no keyspace 'default'"))?;
        self.default.write(py, |default| {
            *default = fresh;
            Ok(())
        })
    }

    /// Counters since the store was opened, and sizes as of now: a `stats.Stats`.
    ///
    /// >>> db[b"key"] = b"value"
    /// >>> stats = db.stats()
    /// >>> stats.user_bytes_written, stats.cache.hit_ratio
    /// (8, 0.0)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.db.read(py, |db| Ok(db.stats()))?.to_python(py)
    }

    /// The value of a property by its name in RocksDB or LevelDB, with "terrace." before it, or `None`.
    ///
    /// >>> db.get_property("terrace.num-files-at-level0")
    /// '0'
    fn get_property(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.db.read(py, |db| Ok(db.property(name)))
    }

    /// The names that `get_property` knows.
    ///
    /// >>> "terrace.stats" in terrace.Db.properties()
    /// True
    #[staticmethod]
    fn properties() -> Vec<&'static str> {
        terrace::Db::properties().to_vec()
    }

    /// Reads the whole store and checks every block. Damage is listed in a `stats.VerifyReport`.
    ///
    /// >>> db.verify().problems
    /// ()
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.db.read(py, terrace::Db::verify)?.to_python(py)
    }

    /// Copies the store as it is now to the directory `path`, which must be empty or not exist.
    ///
    /// >>> db[b"key"] = b"value"
    /// >>> db.checkpoint(path / "copy.db")
    /// >>> with terrace.open(path / "copy.db") as copy:
    /// ...     copy[b"key"]
    /// b'value'
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.db.read(py, |db| db.checkpoint(path))
    }

    /// The settings in force, an `Options`.
    ///
    /// >>> db.options() == terrace.Options()
    /// True
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        options(py, &self.db.read(py, |db| Ok(db.options()))?)
    }

    /// Changes settings of the open store: all but `reserve_bytes` and those of keyspaces. The next opening has its own.
    ///
    /// >>> from dataclasses import replace
    /// >>> db.set_options(replace(db.options(), memory_bytes=64 << 20))
    /// >>> db.options().memory_bytes
    /// 67108864
    #[pyo3(signature = (options, /))]
    fn set_options(&self, py: Python<'_>, options: Options<'_>) -> PyResult<()> {
        let current = self.db.read(py, |db| Ok(db.options()))?;
        let settings = options.settings(&current)?;
        self.db.read(py, |db| db.set_options(|options| *options = settings))
    }

    /// Makes the directory `path` a device of the store while it is in use.
    ///
    /// >>> db.add_device(path / "second")
    /// >>> len(db.stats().devices)
    /// 2
    fn add_device(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.db.read(py, |db| db.add_device(path))
    }

    /// Moves all tables away from the device in `path`, and places no more there until the store is opened anew.
    ///
    /// >>> db.add_device(path / "second")
    /// >>> db.drain_device(path / "second")
    fn drain_device(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.db.read(py, |db| db.drain_device(path))
    }

    /// Drains the device in `path`, and lets it go.
    ///
    /// >>> db.add_device(path / "second")
    /// >>> db.remove_device(path / "second")
    fn remove_device(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.db.read(py, |db| db.remove_device(path))
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { " (closed)" } else { "" };
        format!("<terrace.Db '{}'{state}>", self.path.display())
    }
}

/// The settings of a new keyspace.
fn settings(options: Option<KeyspaceOptions<'_>>) -> PyResult<terrace::KeyspaceOptions> {
    options.map_or_else(|| Ok(terrace::KeyspaceOptions::default()), |options| options.settings())
}
