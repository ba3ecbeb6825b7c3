//! Optimistic transactions: reads and writes that take effect together, or conflict.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bytes::Bytes;
use crate::keyspace::{Keyspace, pairs};
use crate::map::Map;
use crate::options::Durability;
use crate::source::{Range, Source, prefix_range, range};
use crate::store::Slot;
use crate::ticket::Ticket;

/// Reads and writes that take effect together, and only if nobody else has committed a conflicting write first.
///
/// It reads the moment at which it began, overlaid with its own writes, which stay in memory until the commit. A `with` block
/// commits when it ends, and rolls back if an exception ends it. A commit that conflicts raises `ConflictError` and writes
/// nothing; run the transaction again then. Nothing is locked.
///
/// >>> db[b"stock"] = b"1"
/// >>> def buy():
/// ...     with db.transaction(isolation="serializable") as transaction:
/// ...         left = int(transaction[b"stock"])
/// ...         transaction[b"stock"] = b"%d" % (left - 1)
/// >>> while True:
/// ...     try:
/// ...         buy()
/// ...         break
/// ...     except terrace.ConflictError:
/// ...         pass
/// >>> db[b"stock"]
/// b'0'
#[pyclass(frozen, extends = Map, module = "terrace")]
pub struct Transaction {
    transaction: Slot<terrace::Transaction>,
    keyspace: Slot<terrace::Keyspace>,
    durability: Option<Durability>,
}

impl Transaction {
    /// Python's object for `transaction`, at `keyspace`.
    pub fn object(
        py: Python<'_>,
        transaction: &Slot<terrace::Transaction>,
        keyspace: &Slot<terrace::Keyspace>,
        durability: Option<Durability>,
    ) -> PyResult<Py<Self>> {
        let map = Map { source: Source::Transaction(transaction.clone(), keyspace.clone()) };
        let this = Self { transaction: transaction.clone(), keyspace: keyspace.clone(), durability };
        Py::new(py, PyClassInitializer::from(map).add_subclass(this))
    }

    fn remove(&self, py: Python<'_>, range: Range) -> PyResult<()> {
        let keyspace = self.keyspace.handle(py)?;
        self.transaction.write(py, |transaction| {
            transaction.delete_range_in(&keyspace, range);
            Ok(())
        })
    }
}

#[pymethods]
impl Transaction {
    /// Gives `key` the value `value`. A key or value that is too long fails the commit.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.put(b"a", b"1")
    /// >>> db[b"a"]
    /// b'1'
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.keyspace.handle(py)?;
        self.transaction.attached(py, |transaction| {
            transaction.put_in(&keyspace, &*key, &*value);
            Ok(())
        })
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value)
    }

    /// Removes `key`; fine if it has no value. It does not read, as `del` does.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.delete(b"nobody")
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.keyspace.handle(py)?;
        self.transaction.attached(py, |transaction| {
            transaction.delete_in(&keyspace, &*key);
            Ok(())
        })
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let (keyspace, at) = (self.keyspace.handle(py)?, &key[..]);
        let found = self.transaction.write(py, |transaction| {
            let found = transaction.contains_in(&keyspace, at)?;
            if found {
                transaction.delete_in(&keyspace, at);
            }
            Ok(found)
        })?;
        if found { Ok(()) } else { Err(PyKeyError::new_err(key.into_object().unbind())) }
    }

    /// Removes all keys from `start` on, up to and without `stop`; `None` is no bound. It counts as a write of the whole range.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.delete_range(b"log:", b"log;")
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
    ) -> PyResult<()> {
        self.remove(py, range(start, stop))
    }

    /// Removes all keys that start with `prefix`. It counts as a write of all of them.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.delete_prefix(b"log:")
    fn delete_prefix(&self, py: Python<'_>, prefix: Bytes<'_>) -> PyResult<()> {
        self.remove(py, prefix_range(&prefix))
    }

    /// Puts the items of a mapping, or pairs of key and value.
    ///
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.update({b"a": b"1", b"b": b"2"})
    #[pyo3(signature = (items, /))]
    fn update(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in pairs(items)?.try_iter()? {
            let (key, value): (Bytes, Bytes) = pair?.extract()?;
            self.put(py, key, value)?;
        }
        Ok(())
    }

    /// The same transaction, at another keyspace.
    ///
    /// >>> users = db.keyspace("users")
    /// >>> with db.transaction() as transaction:
    /// ...     transaction.keyspace(users)[b"1"] = b"Ada"
    /// ...     transaction[b"ada"] = b"1"
    /// >>> users[b"1"]
    /// b'Ada'
    #[pyo3(signature = (keyspace, /))]
    fn keyspace(&self, py: Python<'_>, keyspace: PyRef<'_, Keyspace>) -> PyResult<Py<Self>> {
        Self::object(py, &self.transaction, keyspace.of_store(self.transaction.store())?, self.durability)
    }

    /// Applies all writes, or none of them.
    ///
    /// >>> transaction = db.transaction()
    /// >>> transaction[b"key"] = b"mine"
    /// >>> db[b"key"] = b"theirs"
    /// >>> transaction.commit()
    /// Traceback (most recent call last):
    ///     ...
    /// terrace.errors.ConflictError: ...
    #[pyo3(signature = (*, durability=None))]
    fn commit(&self, py: Python<'_>, durability: Option<Durability>) -> PyResult<()> {
        self.transaction.end(py, |transaction| match durability.or(self.durability) {
            None => transaction.commit(),
            Some(Durability(durability)) => transaction.commit_with(durability),
        })
    }

    /// Applies all writes, or none of them, as buffered ones, and returns at once. The ticket says when they are durable.
    ///
    /// >>> transaction = db.transaction()
    /// >>> transaction[b"key"] = b"value"
    /// >>> transaction.commit_ticket().wait()
    fn commit_ticket(&self, py: Python<'_>) -> PyResult<Ticket> {
        let ticket = self.transaction.end(py, terrace::Transaction::commit_ticket)?;
        Ok(Ticket::new(self.transaction.store(), ticket))
    }

    /// Drops the writes. Nothing happens if the transaction has ended.
    ///
    /// >>> transaction = db.transaction()
    /// >>> transaction[b"key"] = b"value"
    /// >>> transaction.rollback()
    /// >>> b"key" in db
    /// False
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.transaction.release(py)
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
        // It may have ended by a commit or rollback within the block.
        if kind.is_some() || self.transaction.is_empty(py)? {
            return self.rollback(py);
        }
        self.commit(py, None)
    }
}
