//! Views: keys, values or items within bounds, as `dict` has them, and the iterators over them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Bytes;
use crate::scan::{Direction, Entry, Readahead};
use crate::source::{Bounds, Source};
use crate::store::Slot;

/// What a view shows of each entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Its key.
    Keys,
    /// Its value.
    Values,
    /// Both.
    Items,
}

/// Keys, values or items of a keyspace, snapshot or transaction, within bounds, in the order of the keys.
///
/// As with the views of a `dict`, nothing is read until it is iterated, and each iteration starts anew. An iteration shows the
/// moment at which it began, whatever is written meanwhile. `reversed` goes in descending order.
///
/// >>> db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
/// >>> view = db.keys(b"b")
/// >>> list(view), list(reversed(view))
/// ([b'b', b'c'], [b'c', b'b'])
/// >>> b"a" in view
/// False
#[pyclass(frozen, generic, module = "terrace")]
pub struct View {
    source: Source,
    bounds: Bounds,
    shows: Shows,
}

impl View {
    /// A view of `source`.
    pub fn new(source: Source, bounds: Bounds, shows: Shows) -> Self {
        Self { source, bounds, shows }
    }

    /// Begins an iteration.
    pub fn iterator(&self, py: Python<'_>, direction: Direction) -> PyResult<ViewIterator> {
        let scan = self.source.scan(py, &self.bounds, self.shows == Shows::Keys)?;
        let store = self.source.keyspace().store();
        let readahead = Slot::new(store, "iterator", Readahead::new(scan, direction))?;
        Ok(ViewIterator { readahead, shows: self.shows })
    }
}

#[pymethods]
impl View {
    fn __iter__(&self, py: Python<'_>) -> PyResult<ViewIterator> {
        self.iterator(py, Direction::Forwards)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<ViewIterator> {
        self.iterator(py, Direction::Backwards)
    }

    /// A view of keys or items looks the key up; one of values walks.
    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = item.py();
        match self.shows {
            Shows::Keys => {
                let key: Bytes = item.extract()?;
                Ok(self.bounds.contains(&key) && self.source.contains(py, &key)?)
            }
            Shows::Items => {
                let (key, value): (Bytes, Bytes) = item.extract()?;
                let found = if self.bounds.contains(&key) { self.source.get(py, &key)? } else { None };
                Ok(found.is_some_and(|found| found[..] == value[..]))
            }
            Shows::Values => {
                let value: Bytes = item.extract()?;
                let mut readahead =
                    Readahead::new(self.source.scan(py, &self.bounds, false)?, Direction::Forwards);
                while let Some((_, found)) = readahead.step(py)? {
                    if found.is_some_and(|found| found[..] == value[..]) {
                        return Ok(true);
                    }
                    py.check_signals()?;
                }
                Ok(false)
            }
        }
    }
}

/// An iteration over a view. Threads may share it: each entry goes to one of them.
#[pyclass(frozen, module = "terrace")]
pub struct ViewIterator {
    readahead: Slot<Readahead>,
    shows: Shows,
}

#[pymethods]
impl ViewIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = self.readahead.attached(py, |readahead| readahead.step(py))?;
        entry.map(|entry| shown(py, self.shows, &entry)).transpose()
    }
}

fn shown<'py>(py: Python<'py>, shows: Shows, (key, value): &Entry) -> PyResult<Bound<'py, PyAny>> {
    let value = || PyBytes::new(py, value.as_deref().unwrap_or_default());
    Ok(match shows {
        Shows::Keys => PyBytes::new(py, key).into_any(),
        Shows::Values => value().into_any(),
        Shows::Items => PyTuple::new(py, [PyBytes::new(py, key), value()])?.into_any(),
    })
}

/// An entry as Python's tuple of key and value.
pub fn item<'py>(
    py: Python<'py>,
    entry: Option<(terrace::Slice, terrace::Slice)>,
) -> Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    entry.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value)))
}
