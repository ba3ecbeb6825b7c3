//! Errors of the store as exceptions of the Python module `terrace.errors`.

use std::error::Error as _;
use std::io;

use pyo3::import_exception;
use pyo3::prelude::*;
use terrace::ErrorKind;

import_exception!(terrace.errors, Error);
import_exception!(terrace.errors, InvalidInputError);
import_exception!(terrace.errors, BusyError);
import_exception!(terrace.errors, NotFoundError);
import_exception!(terrace.errors, CorruptionError);
import_exception!(terrace.errors, DiskFullError);
import_exception!(terrace.errors, OverBudgetError);
import_exception!(terrace.errors, IoError);
import_exception!(terrace.errors, PoisonedError);
import_exception!(terrace.errors, InconsistentError);
import_exception!(terrace.errors, ConflictError);
import_exception!(terrace.errors, ClosedError);
import_exception!(terrace.errors, ReadOnlyError);
import_exception!(terrace.errors, ForkedError);

/// The exception for `error`: of the class of its kind, with its message, file, offset and the number of the operating
/// system's error. The earlier failure for which a store refuses writes is its cause.
pub fn exception(py: Python<'_>, error: &terrace::Error) -> PyErr {
    let file = error.file().map(|file| file.display().to_string());
    let errno = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    let arguments = (error.to_string(), file, error.offset(), errno);
    let exception = match error.kind() {
        ErrorKind::InvalidInput => InvalidInputError::new_err(arguments),
        ErrorKind::Busy => BusyError::new_err(arguments),
        ErrorKind::NotFound => NotFoundError::new_err(arguments),
        ErrorKind::Corruption => CorruptionError::new_err(arguments),
        ErrorKind::DiskFull => DiskFullError::new_err(arguments),
        ErrorKind::OverBudget => OverBudgetError::new_err(arguments),
        ErrorKind::Io => IoError::new_err(arguments),
        ErrorKind::Poisoned => PoisonedError::new_err(arguments),
        ErrorKind::Inconsistent => InconsistentError::new_err(arguments),
        ErrorKind::Conflict => ConflictError::new_err(arguments),
        ErrorKind::Closed => ClosedError::new_err(arguments),
        ErrorKind::ReadOnly => ReadOnlyError::new_err(arguments),
        // A kind that this crate does not know yet.
        _ => Error::new_err(arguments),
    };
    if let Some(cause) = error.source().and_then(|source| source.downcast_ref::<terrace::Error>()) {
        exception.set_cause(py, Some(self::exception(py, cause)));
    }
    exception
}

/// Turns the store's results into Python's.
pub trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for terrace::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

/// An argument that makes no sense.
pub fn invalid(message: impl Into<String>) -> PyErr {
    InvalidInputError::new_err(message.into())
}

/// A use of something that is closed.
pub fn closed(message: impl Into<String>) -> PyErr {
    ClosedError::new_err(message.into())
}
