//! Keys and values as Python passes them: objects with the buffer protocol.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// A key or value that a caller has passed.
///
/// `bytes` are borrowed. Whatever else has a buffer (`bytearray`, `memoryview`, an array) is copied, because another thread
/// could change it once the interpreter's lock is let go.
pub struct Bytes<'py>(Bound<'py, PyBytes>);

impl<'py> FromPyObject<'_, 'py> for Bytes<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self(bytes.to_owned()));
        }
        let Ok(view) = PyMemoryView::from(&object) else {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a bytes-like object is required, not '{kind}'")));
        };
        let copy = view.call_method0(intern!(object.py(), "tobytes"))?;
        Ok(Self(copy.cast_into::<PyBytes>()?))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'py> Bytes<'py> {
    /// As Python's object.
    pub fn into_object(self) -> Bound<'py, PyBytes> {
        self.0
    }
}
