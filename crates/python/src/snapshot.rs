//! Snapshots: the store as it was at one moment.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bytes::Bytes;
use crate::cursor::Cursor;
use crate::keyspace::Keyspace;
use crate::map::Map;
use crate::source::{Bounds, Source};
use crate::store::Slot;

/// The store as it was at one moment, over all keyspaces. It reads "default"; `keyspace` gives the others.
///
/// While it lives, compactions keep what it can see: close it, or use it in a `with` block.
///
/// >>> db[b"key"] = b"old"
/// >>> with db.snapshot() as snapshot:
/// ...     db[b"key"] = b"new"
/// ...     snapshot[b"key"], db[b"key"]
/// (b'old', b'new')
#[pyclass(frozen, extends = Map, module = "terrace")]
pub struct Snapshot {
    snapshot: Slot<terrace::Snapshot>,
    keyspace: Slot<terrace::Keyspace>,
}

impl Snapshot {
    /// Python's object for `snapshot`, at `keyspace`.
    pub fn object(
        py: Python<'_>,
        snapshot: &Slot<terrace::Snapshot>,
        keyspace: &Slot<terrace::Keyspace>,
    ) -> PyResult<Py<Self>> {
        let map = Map { source: Source::Snapshot(snapshot.clone(), keyspace.clone()) };
        let this = Self { snapshot: snapshot.clone(), keyspace: keyspace.clone() };
        Py::new(py, PyClassInitializer::from(map).add_subclass(this))
    }
}

#[pymethods]
impl Snapshot {
    /// Sequence number of the newest write that it sees.
    ///
    /// >>> before = db.snapshot().seq
    /// >>> db[b"a"] = b"1"
    /// >>> db.snapshot().seq > before
    /// True
    #[getter]
    fn seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.snapshot.read(py, |snapshot| Ok(snapshot.seq()))
    }

    /// The same snapshot, at another keyspace. It is closed with this one.
    ///
    /// >>> users = db.keyspace("users")
    /// >>> users[b"1"] = b"Ada"
    /// >>> snapshot = db.snapshot()
    /// >>> del users[b"1"]
    /// >>> snapshot.keyspace(users)[b"1"]
    /// b'Ada'
    #[pyo3(signature = (keyspace, /))]
    fn keyspace(&self, py: Python<'_>, keyspace: PyRef<'_, Keyspace>) -> PyResult<Py<Self>> {
        Self::object(py, &self.snapshot, keyspace.of_store(self.snapshot.store())?)
    }

    /// A cursor over the keys from `start` on, up to and without `stop`, or over those that start with `prefix`.
    ///
    /// >>> db[b"key"] = b"value"
    /// >>> db.snapshot().cursor().next()
    /// (b'key', b'value')
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn cursor<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<Cursor> {
        let bounds = &Bounds::new(start, stop, prefix)?;
        let keyspace = self.keyspace.handle(py)?;
        let cursor = self.snapshot.read(py, |snapshot| {
            let snapshot = snapshot.keyspace(&keyspace);
            crate::source::scan!(bounds, snapshot, cursor(), prefix_cursor())
        })?;
        Cursor::new(self.snapshot.store(), cursor)
    }

    /// Lets the moment go. Nothing happens if that was done before.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.snapshot.release(py)
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
}
