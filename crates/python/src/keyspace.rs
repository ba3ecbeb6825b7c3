//! Keyspaces: maps that can be written.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Bytes;
use crate::cursor::Cursor;
use crate::errors::invalid;
use crate::ingest::{Ingest, feed};
use crate::map::Map;
use crate::options::{Durability, KeyspaceOptions, keyspace_options};
use crate::record::ToPython;
use crate::source::{Bounds, Source, range};
use crate::store::{Slot, Store};

/// An independent, ordered map in a store. It shares log, caches and atomic batches with the others.
///
/// >>> users = db.keyspace("users")
/// >>> users[b"1"] = b"Ada"
/// >>> b"1" in users, b"1" in db
/// (True, False)
#[pyclass(frozen, subclass, extends = Map, module = "terrace")]
pub struct Keyspace {
    /// The keyspace; the one that the map reads.
    pub keyspace: Slot<terrace::Keyspace>,
    /// Its store.
    pub db: Slot<terrace::Db>,
}

impl Keyspace {
    /// What Python's object is made of.
    pub fn initializer(
        db: &Slot<terrace::Db>,
        keyspace: &Slot<terrace::Keyspace>,
    ) -> PyClassInitializer<Self> {
        let map = Map { source: Source::Keyspace(keyspace.clone()) };
        PyClassInitializer::from(map).add_subclass(Self { keyspace: keyspace.clone(), db: db.clone() })
    }

    /// Python's object for `keyspace`.
    pub fn object(py: Python<'_>, db: &Slot<terrace::Db>, keyspace: terrace::Keyspace) -> PyResult<Py<Self>> {
        let keyspace = Slot::new(db.store(), "keyspace", keyspace)?;
        Py::new(py, Self::initializer(db, &keyspace))
    }

    /// Its slot, if it is of `store`.
    pub fn of_store(&self, store: &Arc<Store>) -> PyResult<&Slot<terrace::Keyspace>> {
        if Arc::ptr_eq(self.keyspace.store(), store) {
            Ok(&self.keyspace)
        } else {
            Err(invalid("the keyspace is one of another store, or of an earlier opening"))
        }
    }

    /// Takes `key` away and returns its value, atomically.
    fn take(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Vec<u8>>> {
        self.keyspace.read(py, |keyspace| {
            if !keyspace.contains(key)? {
                return Ok(None);
            }
            let mut taken = None;
            keyspace.update(key, |value| {
                taken = value.map(<[u8]>::to_vec);
                None::<Vec<u8>>
            })?;
            Ok(taken)
        })
    }
}

/// The items of a mapping, or what an iterable gives.
pub fn pairs<'py>(items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if items.hasattr("keys")? { items.call_method0("items") } else { Ok(items.clone()) }
}

#[pymethods]
impl Keyspace {
    /// Its name.
    ///
    /// >>> db.keyspace("users").name, db.name
    /// ('users', 'default')
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.keyspace.read(py, |keyspace| Ok(keyspace.name().to_owned()))
    }

    /// Its id, never reused in this store.
    ///
    /// >>> db.keyspace("users").id != db.id
    /// True
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<u32> {
        self.keyspace.read(py, |keyspace| Ok(keyspace.id()))
    }

    /// Gives `key` the value `value`.
    ///
    /// >>> db.put(b"ada", b"Lovelace")
    /// >>> db.put(b"alan", b"Turing", durability="synced")  # survives a power cut from here on
    #[pyo3(signature = (key, value, *, durability=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        durability: Option<Durability>,
    ) -> PyResult<()> {
        let (key, value) = (&key[..], &value[..]);
        self.keyspace.read(py, |keyspace| match durability {
            None => keyspace.put(key, value),
            Some(Durability(durability)) => keyspace.put_with(key, value, durability),
        })
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Removes `key`; fine if it has no value. It does not read: cheaper than `del`, which raises `KeyError` then.
    ///
    /// >>> db.delete(b"nobody")
    #[pyo3(signature = (key, *, durability=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, durability: Option<Durability>) -> PyResult<()> {
        let key = &key[..];
        self.keyspace.read(py, |keyspace| match durability {
            None => keyspace.delete(key),
            Some(Durability(durability)) => keyspace.delete_with(key, durability),
        })
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        match self.take(py, &key)? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(key.into_object().unbind())),
        }
    }

    /// Removes all keys from `start` on, up to and without `stop`; `None` is no bound. It costs no more than a put.
    ///
    /// >>> db.update({b"2025-12-31": b"old", b"2026-01-01": b"new"})
    /// >>> db.delete_range(None, b"2026")
    /// >>> list(db)
    /// [b'2026-01-01']
    #[pyo3(signature = (start, stop, *, durability=None))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        durability: Option<Durability>,
    ) -> PyResult<()> {
        let range = range(start, stop);
        self.keyspace.read(py, |keyspace| match durability {
            None => keyspace.delete_range(range),
            Some(Durability(durability)) => keyspace.delete_range_with(range, durability),
        })
    }

    /// Removes all keys that start with `prefix`.
    ///
    /// >>> db.update({b"user:1": b"Ada", b"word:1": b"terrace"})
    /// >>> db.delete_prefix(b"user:")
    /// >>> list(db)
    /// [b'word:1']
    fn delete_prefix(&self, py: Python<'_>, prefix: Bytes<'_>) -> PyResult<()> {
        let prefix = &prefix[..];
        self.keyspace.read(py, |keyspace| keyspace.delete_prefix(prefix))
    }

    /// Removes all keys.
    ///
    /// >>> db.clear()
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.keyspace.read(py, terrace::Keyspace::clear)
    }

    /// Writes the items of a mapping, or pairs of key and value: all of them, or none.
    ///
    /// >>> db.update({b"ada": b"Lovelace"})
    /// >>> db.update((key, key.upper()) for key in [b"a", b"b"])
    /// >>> list(db.items())
    /// [(b'a', b'A'), (b'ada', b'Lovelace'), (b'b', b'B')]
    #[pyo3(signature = (items, /, *, durability=None))]
    fn update(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        durability: Option<Durability>,
    ) -> PyResult<()> {
        let id = self.keyspace.read(py, |keyspace| Ok(terrace::types::KeyspaceId::from(keyspace)))?;
        let mut batch = terrace::WriteBatch::new();
        for pair in pairs(items)?.try_iter()? {
            let (key, value): (Bytes, Bytes) = pair?.extract()?;
            batch.put_in(id, &*key, &*value);
        }
        self.db.read(py, |db| match durability {
            None => db.write(batch),
            Some(Durability(durability)) => db.write_with(batch, durability),
        })
    }

    /// Removes `key` and returns its value, atomically. Without a value it returns `default`, or raises `KeyError`.
    ///
    /// >>> db[b"ada"] = b"Lovelace"
    /// >>> db.pop(b"ada"), db.pop(b"ada", None)
    /// (b'Lovelace', None)
    #[pyo3(signature = (key, /, *default), text_signature = "($self, key, default=..., /)")]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            let given = default.len() + 1;
            let message = format!("pop expected at most 2 arguments, got {given}");
            return Err(pyo3::exceptions::PyTypeError::new_err(message));
        }
        match self.take(py, &key)? {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None if default.is_empty() => Err(PyKeyError::new_err(key.into_object().unbind())),
            None => default.get_item(0),
        }
    }

    /// The value of `key`; where it has none, it gets `default`, atomically.
    ///
    /// >>> db.setdefault(b"visits", b"1"), db.setdefault(b"visits", b"2")
    /// (b'1', b'1')
    #[pyo3(signature = (key, default, /))]
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Bytes<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (at, new) = (&key[..], &default[..]);
        let found = self.keyspace.read(py, |keyspace| {
            if let Some(value) = keyspace.get(at)? {
                return Ok(Some(value.to_vec()));
            }
            let mut found = None;
            keyspace.update(at, |value| {
                found = value.map(<[u8]>::to_vec);
                Some(found.clone().unwrap_or_else(|| new.to_vec()))
            })?;
            Ok(found)
        })?;
        Ok(found.map_or_else(|| default.into_object(), |found| PyBytes::new(py, &found)))
    }

    /// Loads sorted pairs of key and value, from any iterable, straight into tables: the cheapest way to load much. Returns
    /// their number. They take effect together, newer than all that was written before. Keys must ascend strictly.
    ///
    /// >>> db.ingest((b"%04d" % n, b"word") for n in range(1000))
    /// 1000
    /// >>> db.ingest([(b"b", b"1"), (b"a", b"2")])
    /// Traceback (most recent call last):
    ///     ...
    /// terrace.errors.InvalidInputError: ...
    #[pyo3(signature = (items, /))]
    fn ingest(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<u64> {
        let ingest =
            Slot::new(self.keyspace.store(), "ingest", self.keyspace.read(py, terrace::Keyspace::ingest)?)?;
        let count = feed(py, &ingest, items);
        if count.is_err() {
            ingest.release(py)?;
        }
        let count = count?;
        ingest.end(py, terrace::Ingest::finish)?;
        Ok(count)
    }

    /// An ingest to be filled step by step. See `Ingest`.
    ///
    /// >>> with db.ingestion() as ingest:
    /// ...     ingest.put(b"a", b"1")
    /// ...     ingest.delete(b"b")
    /// ...     ingest.put(b"c", b"3")
    /// >>> list(db)
    /// [b'a', b'c']
    fn ingestion(&self, py: Python<'_>) -> PyResult<Ingest> {
        let ingest = self.keyspace.read(py, terrace::Keyspace::ingest)?;
        Ok(Ingest { ingest: Slot::new(self.keyspace.store(), "ingest", ingest)? })
    }

    /// A cursor over the keys from `start` on, up to and without `stop`, or over those that start with `prefix`.
    ///
    /// >>> db.update({b"a": b"1", b"c": b"3"})
    /// >>> db.cursor().seek(b"b")
    /// (b'c', b'3')
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn cursor<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<Cursor> {
        let bounds = &Bounds::new(start, stop, prefix)?;
        let cursor = self
            .keyspace
            .read(py, |keyspace| crate::source::scan!(bounds, keyspace, cursor(), prefix_cursor()))?;
        Cursor::new(self.keyspace.store(), cursor)
    }

    /// About how many entries there are, from sums in memory: nothing is read. Overwritten and deleted ones count until
    /// they are compacted.
    ///
    /// >>> db[b"a"] = b"1"
    /// >>> db.approximate_len()
    /// 1
    fn approximate_len(&self, py: Python<'_>) -> PyResult<u64> {
        self.keyspace.read(py, |keyspace| Ok(keyspace.approximate_len()))
    }

    /// Compacts the tables that hold keys of the range into the deepest level.
    ///
    /// >>> db.compact_range(b"a", b"b")
    #[pyo3(signature = (start=None, stop=None))]
    fn compact_range<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
    ) -> PyResult<()> {
        let range = range(start, stop);
        self.keyspace.read(py, |keyspace| keyspace.compact_range(range))
    }

    /// Changes its settings, all but `prefix` and whether there is a `ttl`, for what is written from now on.
    ///
    /// >>> users = db.keyspace("users")
    /// >>> users.set_keyspace_options(terrace.KeyspaceOptions(compression="lz4"))
    #[pyo3(signature = (options, /))]
    fn set_keyspace_options(&self, py: Python<'_>, options: KeyspaceOptions<'_>) -> PyResult<()> {
        let settings = options.settings()?;
        self.keyspace.read(py, |keyspace| keyspace.set_options(&settings))
    }

    /// Its settings, a `KeyspaceOptions`.
    ///
    /// >>> db.keyspace("users").keyspace_options().filter_bits_per_key
    /// 10
    fn keyspace_options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let settings = self.keyspace.read(py, |keyspace| Ok(keyspace.options()))?;
        keyspace_options(py, &settings)
    }

    /// The shape of its tree, a `stats.Shape`.
    ///
    /// >>> db[b"a"] = b"1"
    /// >>> db.compact()
    /// >>> sum(level.entries for level in db.shape().levels)
    /// 1
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.keyspace.read(py, |keyspace| Ok(keyspace.shape()))?.to_python(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<terrace.Keyspace '{}'>", self.name(py)?))
    }
}
