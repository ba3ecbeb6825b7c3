//! Ingests: sorted data that goes straight into tables.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bytes::Bytes;
use crate::errors::invalid;
use crate::keyspace::pairs;
use crate::store::Slot;

/// Pairs that are taken from an iterable before the interpreter's lock is let go to write them, at most.
const CHUNK_PAIRS: usize = 1024;

/// Bytes at which such a chunk is full.
const CHUNK_BYTES: usize = 1 << 20;

/// An ingest: sorted entries that go straight into the tables of a keyspace, past log and memtable.
///
/// They take effect together when `finish` returns, or when a `with` block ends without an exception. An ingest that is
/// dropped or aborted leaves nothing.
///
/// >>> users, names = db.keyspace("users"), db.keyspace("names")
/// >>> rows, index = users.ingestion(), names.ingestion()
/// >>> rows.put(b"1", b"Ada")
/// >>> index.put(b"Ada", b"1")
/// >>> terrace.Ingest.finish_together([rows, index])
/// >>> users[b"1"], names[b"Ada"]
/// (b'Ada', b'1')
#[pyclass(frozen, module = "terrace")]
pub struct Ingest {
    /// The store's ingest.
    pub ingest: Slot<terrace::Ingest>,
}

/// Pushes all pairs of `items`, and returns their number.
pub fn feed(py: Python<'_>, ingest: &Slot<terrace::Ingest>, items: &Bound<'_, PyAny>) -> PyResult<u64> {
    let mut items = pairs(items)?.try_iter()?;
    let mut count = 0;
    loop {
        let (mut chunk, mut bytes): (Vec<(Bytes, Bytes)>, usize) = (Vec::new(), 0);
        while chunk.len() < CHUNK_PAIRS && bytes < CHUNK_BYTES {
            let Some(pair) = items.next() else { break };
            let (key, value): (Bytes, Bytes) = pair?.extract()?;
            bytes += key.len() + value.len();
            chunk.push((key, value));
        }
        if chunk.is_empty() {
            return Ok(count);
        }
        count += chunk.len() as u64;
        let pushed: Vec<(&[u8], &[u8])> = chunk.iter().map(|(key, value)| (&**key, &**value)).collect();
        ingest.write(py, |ingest| pushed.into_iter().try_for_each(|(key, value)| ingest.push(key, value)))?;
        py.check_signals()?;
    }
}

#[pymethods]
impl Ingest {
    /// Appends an entry. Its key must be behind the last one.
    fn put(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (&key[..], &value[..]);
        self.ingest.write(py, |ingest| ingest.push(key, value))
    }

    /// Removes a key, in the same ascending order; fine if it has no value.
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let key = &key[..];
        self.ingest.write(py, |ingest| ingest.delete(key))
    }

    /// Appends pairs of key and value from any iterable. Returns their number.
    #[pyo3(signature = (items, /))]
    fn update(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<u64> {
        feed(py, &self.ingest, items)
    }

    /// Makes all entries durable, and visible at one moment.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.ingest.end(py, terrace::Ingest::finish)
    }

    /// Finishes several ingests, each of another keyspace of one store, at one moment.
    #[staticmethod]
    #[pyo3(signature = (ingests, /))]
    fn finish_together(py: Python<'_>, ingests: Vec<Py<Self>>) -> PyResult<()> {
        let mut taken = Vec::new();
        for (at, ingest) in ingests.iter().enumerate() {
            if ingests[..at].iter().any(|earlier| earlier.is(ingest)) {
                return Err(invalid("the same ingest is given twice"));
            }
        }
        for ingest in &ingests {
            taken.push(ingest.get().ingest.end(py, Ok)?);
        }
        let outcome = py.detach(|| terrace::Ingest::finish_together(taken));
        crate::errors::OrRaise::or_raise(outcome, py)
    }

    /// Gives the ingest up: nothing is written. Nothing happens if it has ended.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.ingest.release(py)
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
        if kind.is_some() || self.ingest.is_empty(py)? { self.abort(py) } else { self.finish(py) }
    }
}
