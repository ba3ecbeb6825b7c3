//! Errors as LevelDB gives them: a text that begins with one of its classes.

use std::ffi::c_char;

use crate::border::{free, malloced};
use crate::failure::{Failure, terrace_error_kind as Kind};

/// The class that LevelDB would give a failure, as its texts begin.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidInput | Kind::NotFound => "Invalid argument",
        Kind::Corruption | Kind::Inconsistent => "Corruption",
        Kind::Busy
        | Kind::DiskFull
        | Kind::OverBudget
        | Kind::Io
        | Kind::Poisoned
        | Kind::Conflict
        | Kind::Closed
        | Kind::ReadOnly
        | Kind::Panic
        | Kind::Other => "IO error",
    }
}

/// The whole text of a failure.
pub(super) fn text(failure: &Failure) -> String {
    format!("{}: {}", class(failure.kind), failure.message)
}

/// Puts a failure where LevelDB's functions put it, in the place of an earlier one.
///
/// # Safety
/// `place` points to null or to a text from `malloc`.
pub(super) unsafe fn put(place: *mut *mut c_char, failure: &Failure) {
    // SAFETY: as this function's.
    unsafe {
        free((*place).cast());
        *place = malloced(text(failure).as_bytes());
    }
}

/// What `outcome` has; a failure goes to `place`.
///
/// # Safety
/// As for [`put`].
pub(super) unsafe fn told<T>(place: *mut *mut c_char, outcome: Result<T, Failure>) -> Option<T> {
    // SAFETY: as this function's.
    outcome.map_err(|failure| unsafe { put(place, &failure) }).ok()
}
