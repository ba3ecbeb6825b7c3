//! What can be read of keyspaces, snapshots and transactions alike.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::scan::{Direction, Readahead};
use crate::source::{Bounds, Source};
use crate::view::{Shows, View, ViewIterator, item};

/// Python's `(key, value)`.
pub type Item<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// An ordered map from bytes to bytes that can be read: a keyspace, a snapshot or a transaction.
///
/// It reads as a `dict` does, in ascending order of the keys. There is no `len`: counting means reading, which `count` says,
/// and `list(db)` would ask for it unnoticed.
#[pyclass(frozen, subclass, module = "terrace")]
pub struct Map {
    /// What is read.
    pub source: Source,
}

impl Map {
    fn view(
        &self,
        shows: Shows,
        start: Option<Bytes>,
        stop: Option<Bytes>,
        prefix: Option<Bytes>,
    ) -> PyResult<View> {
        Ok(View::new(self.source.clone(), Bounds::new(start, stop, prefix)?, shows))
    }

    fn end<'py>(&self, py: Python<'py>, direction: Direction) -> PyResult<Option<Item<'py>>> {
        let mut scan = self.source.scan(py, &Bounds::new(None, None, None)?, false)?;
        let entry = py.detach(|| {
            let entry = scan.step(direction).transpose();
            drop(scan);
            entry
        });
        let entry = crate::errors::OrRaise::or_raise(entry, py)?;
        Ok(item(py, entry.and_then(|(key, value)| Some((key, value?)))))
    }
}

#[pymethods]
impl Map {
    /// The value of `key`, or `default` if it has none.
    ///
    /// >>> db[b"ada"] = b"Lovelace"
    /// >>> db.get(b"ada"), db.get(b"alan"), db.get(b"alan", b"?")
    /// (b'Lovelace', None, b'?')
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.source.get(py, &key)?;
        Ok(value.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match self.source.get(py, &key)? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(PyKeyError::new_err(key.into_object().unbind())),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        self.source.contains(py, &key)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<ViewIterator> {
        self.view(Shows::Keys, None, None, None)?.iterator(py, Direction::Forwards)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<ViewIterator> {
        self.view(Shows::Keys, None, None, None)?.iterator(py, Direction::Backwards)
    }

    /// The keys from `start` on, up to and without `stop`; or those that start with `prefix`.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    /// >>> list(db.keys(b"a", b"c"))
    /// [b'a', b'b']
    /// >>> list(reversed(db.keys()))
    /// [b'c', b'b', b'a']
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn keys<'py>(
        &self,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<View> {
        self.view(Shows::Keys, start, stop, prefix)
    }

    /// The values of these keys.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    /// >>> list(db.values(b"b"))
    /// [b'2', b'3']
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn values<'py>(
        &self,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<View> {
        self.view(Shows::Values, start, stop, prefix)
    }

    /// These keys with their values.
    ///
    /// >>> db.update({b"user:1": b"Ada", b"user:2": b"Alan", b"word:1": b"terrace"})
    /// >>> for key, value in db.items(prefix=b"user:"):
    /// ...     print(key, value)
    /// b'user:1' b'Ada'
    /// b'user:2' b'Alan'
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn items<'py>(
        &self,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<View> {
        self.view(Shows::Items, start, stop, prefix)
    }

    /// The number of these keys, counted by reading them.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    /// >>> db.count(), db.count(b"b")
    /// (3, 2)
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'py>>,
        stop: Option<Bytes<'py>>,
        prefix: Option<Bytes<'py>>,
    ) -> PyResult<u64> {
        let scan = self.source.scan(py, &Bounds::new(start, stop, prefix)?, true)?;
        let mut readahead = Readahead::new(scan, Direction::Forwards);
        let mut count = 0;
        while readahead.step(py)?.is_some() {
            count += 1;
            if count % 4096 == 0 {
                py.check_signals()?;
            }
        }
        Ok(count)
    }

    /// The values of `keys` at one moment, in the order of the keys; `None` for those that have none. Cheaper than as many
    /// `get`.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2"})
    /// >>> db.multi_get([b"b", b"none", b"a"])
    /// [b'2', None, b'1']
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let keys: Vec<Bytes> = keys.try_iter()?.map(|key| key?.extract()).collect::<PyResult<_>>()?;
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let values = self.source.multi_get(py, &keys)?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    /// The entry with the smallest key, or `None`.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2"})
    /// >>> db.first()
    /// (b'a', b'1')
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.end(py, Direction::Forwards)
    }

    /// The entry with the largest key, or `None`.
    ///
    /// >>> db.update({b"a": b"1", b"b": b"2"})
    /// >>> db.last()
    /// (b'b', b'2')
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.end(py, Direction::Backwards)
    }

    /// Whether there is no entry.
    ///
    /// >>> db.is_empty()
    /// True
    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.end(py, Direction::Forwards)?.is_none())
    }
}
