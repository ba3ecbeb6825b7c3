//! Batches: writes that take effect together.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyType;
use terrace::WriteBatch;
use terrace::types::KeyspaceId;

use crate::bytes::Bytes;
use crate::keyspace::{Keyspace, pairs};
use crate::options::Durability;
use crate::source::{prefix_range, range};
use crate::store::Slot;
use crate::ticket::Ticket;

/// Puts and deletes that take effect together, over any number of keyspaces.
///
/// A `with` block writes them when it ends, and drops them if an exception ends it. Later operations on a key win over earlier
/// ones. Nothing is read: `del` of a key without a value is fine here. After a write the batch is empty, whatever the outcome,
/// and can be filled again.
///
/// >>> users = db.keyspace("users")
/// >>> with db.batch(durability="synced") as batch:
/// ...     batch[b"ada"] = b"1"
/// ...     batch.keyspace(users)[b"1"] = b"Ada"
/// ...     del batch[b"charles"]
/// >>> users[db[b"ada"]]
/// b'Ada'
#[pyclass(frozen, module = "terrace")]
pub struct Batch {
    /// Shared by the views of it at other keyspaces.
    batch: Arc<Mutex<WriteBatch>>,
    keyspace: KeyspaceId,
    db: Slot<terrace::Db>,
    durability: Option<Durability>,
}

impl Batch {
    /// An empty batch of writes to `keyspace`.
    pub fn new(db: &Slot<terrace::Db>, keyspace: KeyspaceId, durability: Option<Durability>) -> Self {
        Self { batch: Arc::default(), keyspace, db: db.clone(), durability }
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, WriteBatch> {
        self.batch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self, py: Python<'_>) -> WriteBatch {
        mem::take(&mut *self.lock(py))
    }
}

#[pymethods]
impl Batch {
    /// Gives `key` the value `value`.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) {
        self.lock(py).put_in(self.keyspace, &*key, &*value);
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) {
        self.put(py, key, value);
    }

    /// Removes `key`.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) {
        self.lock(py).delete_in(self.keyspace, &*key);
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) {
        self.delete(py, key);
    }

    /// Removes all keys from `start` on, up to and without `stop`; `None` is no bound.
    fn delete_range<'py>(&self, py: Python<'py>, start: Option<Bytes<'py>>, stop: Option<Bytes<'py>>) {
        self.lock(py).delete_range_in(self.keyspace, range(start, stop));
    }

    /// Removes all keys that start with `prefix`.
    fn delete_prefix(&self, py: Python<'_>, prefix: Bytes<'_>) {
        self.lock(py).delete_range_in(self.keyspace, prefix_range(&prefix));
    }

    /// Puts the items of a mapping, or pairs of key and value.
    #[pyo3(signature = (items, /))]
    fn update(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in pairs(items)?.try_iter()? {
            let (key, value): (Bytes, Bytes) = pair?.extract()?;
            self.put(py, key, value);
        }
        Ok(())
    }

    /// The same batch, for writes to another keyspace.
    #[pyo3(signature = (keyspace, /))]
    fn keyspace(&self, py: Python<'_>, keyspace: PyRef<'_, Keyspace>) -> PyResult<Self> {
        let keyspace = keyspace.of_store(self.db.store())?.read(py, |keyspace| Ok(keyspace.into()))?;
        let Self { batch, db, durability, .. } = self;
        Ok(Self { batch: batch.clone(), keyspace, db: db.clone(), durability: *durability })
    }

    /// Drops all operations.
    fn clear(&self, py: Python<'_>) {
        drop(self.taken(py));
    }

    /// Number of operations.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock(py).len()
    }

    /// Bytes of memory that the operations take, and about as many in the log.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.lock(py).bytes()
    }

    /// Writes all operations.
    ///
    /// >>> batch = db.batch()
    /// >>> batch.put(b"a", b"1")
    /// >>> batch.write()
    /// >>> len(batch), db[b"a"]
    /// (0, b'1')
    #[pyo3(signature = (*, durability=None))]
    fn write(&self, py: Python<'_>, durability: Option<Durability>) -> PyResult<()> {
        let batch = self.taken(py);
        self.db.read(py, |db| match durability.or(self.durability) {
            None => db.write(batch),
            Some(Durability(durability)) => db.write_with(batch, durability),
        })
    }

    /// Writes all operations as buffered ones and returns at once. The ticket says when they are durable.
    ///
    /// >>> batch = db.batch()
    /// >>> batch.put(b"a", b"1")
    /// >>> batch.write_ticket().wait()
    fn write_ticket(&self, py: Python<'_>) -> PyResult<Ticket> {
        let batch = self.taken(py);
        let ticket = self.db.read(py, |db| db.write_ticket(batch))?;
        Ok(Ticket::new(self.db.store(), ticket))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_some() {
            self.clear(py);
            return Ok(());
        }
        self.write(py, None)
    }
}
