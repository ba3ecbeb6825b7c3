//! Plain values of the store as Python's: structs as dataclasses.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyTuple};

use crate::errors::exception;

/// A value that Python has, too.
pub trait ToPython {
    /// The value in Python.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// The class `name` of `terrace.stats`.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || PyModule::import(py, "terrace.stats").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Structs with the names of their fields: each becomes the dataclass of its name.
macro_rules! records {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl $crate::record::ToPython for terrace::$name {
            fn to_python<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                use pyo3::types::{PyAnyMethods, PyDictMethods};
                let fields = pyo3::types::PyDict::new(py);
                $(fields.set_item(stringify!($field), self.$field.to_python(py)?)?;)*
                $crate::record::class(py, stringify!($name))?.call((), Some(&fields))
            }
        }
    )*};
}

pub(crate) use records;

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl ToPython for $kind {
            fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                Ok(self.into_pyobject(py)?.to_owned().into_any())
            }
        }
    )*};
}

plain!(u16, u64, usize, f64, bool, String, Duration);

/// Directories are Python's `str`.
impl ToPython for PathBuf {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.as_os_str().into_pyobject(py)?.into_any())
    }
}

impl ToPython for terrace::Error {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(exception(py, self).into_value(py).into_bound(py).into_any())
    }
}

impl<T: ToPython> ToPython for Option<T> {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.as_ref().map_or_else(|| Ok(py.None().into_bound(py)), |value| value.to_python(py))
    }
}

impl<T: ToPython> ToPython for [T] {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let items = self.iter().map(|item| item.to_python(py)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, items)?.into_any())
    }
}

impl<T: ToPython> ToPython for Vec<T> {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self[..].to_python(py)
    }
}

impl<T: ToPython, const N: usize> ToPython for [T; N] {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self[..].to_python(py)
    }
}

/// Calls a class of the module `terrace.options` with `fields`.
pub fn options_class<'py>(
    py: Python<'py>,
    name: &str,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, "terrace.options")?.getattr(name)?.call((), Some(fields))
}
