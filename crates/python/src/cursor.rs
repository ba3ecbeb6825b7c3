//! Cursors: positions that seek, and step in both directions.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::bytes::Bytes;
use crate::map::Item;
use crate::store::{Slot, Store};
use crate::view::item;

/// A position among entries that can seek any number of times and step in both directions.
///
/// It stands on an entry, before the first one, or behind the last one; a new one stands before the first. Every movement
/// returns the entry that it leads to, or `None` if it leads beyond an end. It shows the moment at which it was made.
///
/// >>> db.update({b"apple": b"1", b"banana": b"2", b"cherry": b"3"})
/// >>> cursor = db.cursor()
/// >>> cursor.seek(b"b"), cursor.next(), cursor.next(), cursor.prev()
/// ((b'banana', b'2'), (b'cherry', b'3'), None, (b'cherry', b'3'))
#[pyclass(frozen, module = "terrace")]
pub struct Cursor {
    cursor: Slot<terrace::Cursor>,
}

impl Cursor {
    /// Python's object for `cursor`.
    pub fn new(store: &Arc<Store>, cursor: terrace::Cursor) -> PyResult<Self> {
        Ok(Self { cursor: Slot::new(store, "cursor", cursor)? })
    }

    fn moved<'py>(
        &self,
        py: Python<'py>,
        go: impl FnOnce(&mut terrace::Cursor) -> terrace::Result<()> + Send,
    ) -> PyResult<Option<Item<'py>>> {
        let entry = self.cursor.write(py, |cursor| {
            go(cursor)?;
            Ok(cursor.entry())
        })?;
        Ok(item(py, entry))
    }
}

#[pymethods]
impl Cursor {
    /// Moves to the first entry at or behind `key`.
    fn seek<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Option<Item<'py>>> {
        let key = &key[..];
        self.moved(py, |cursor| cursor.seek(key).map(drop))
    }

    /// Moves to the last entry at or before `key`.
    fn seek_for_prev<'py>(&self, py: Python<'py>, key: Bytes<'py>) -> PyResult<Option<Item<'py>>> {
        let key = &key[..];
        self.moved(py, |cursor| cursor.seek_for_prev(key).map(drop))
    }

    /// Moves to the first entry.
    fn seek_to_first<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.moved(py, |cursor| cursor.seek_to_first().map(drop))
    }

    /// Moves to the last entry.
    fn seek_to_last<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.moved(py, |cursor| cursor.seek_to_last().map(drop))
    }

    /// Moves to the next entry.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.moved(py, |cursor| cursor.next().map(drop))
    }

    /// Moves to the previous entry.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.moved(py, |cursor| cursor.prev().map(drop))
    }

    /// The entry on which it stands, or `None`.
    fn current<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        self.moved(py, |_| Ok(()))
    }
}
