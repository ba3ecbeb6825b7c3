//! Errors as objects: a kind, a message, and where.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;

use crate::border::{caught, handle, release};
use crate::failure::{Failure, terrace_error_kind};

/// What went wrong. Functions return NULL if nothing did; release others with terrace_error_free().
pub struct terrace_error {
    kind: terrace_error_kind,
    message: CString,
    file: Option<CString>,
    offset: Option<u64>,
}

impl From<Failure> for terrace_error {
    fn from(Failure { kind, message, file, offset }: Failure) -> Self {
        let file = file.map(|file| c_text(file.as_os_str().as_bytes()));
        Self { kind, message: c_text(message.as_bytes()), file, offset }
    }
}

/// Text for C; what is behind a zero would be lost, so zeros are left out.
pub(super) fn c_text(text: &[u8]) -> CString {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(text).unwrap_or_default()
}

/// Runs `body`, and tells of what went wrong. Null if nothing did.
pub(super) fn call(body: impl FnOnce() -> Result<(), Failure>) -> *mut terrace_error {
    match caught(body) {
        Ok(()) => std::ptr::null_mut(),
        Err(failure) => handle(failure.into()),
    }
}

/// What the caller can do about the error.
///
/// # Safety
/// The error is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_error_get_kind(error: *const terrace_error) -> terrace_error_kind {
    // SAFETY: the caller's contract.
    unsafe { &*error }.kind
}

/// What happened, in a sentence; it is the error's.
///
/// # Safety
/// The error is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_error_message(error: *const terrace_error) -> *const c_char {
    // SAFETY: the caller's contract.
    unsafe { &*error }.message.as_ptr()
}

/// The file that the error is about, or NULL; it is the error's.
///
/// # Safety
/// The error is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_error_file(error: *const terrace_error) -> *const c_char {
    // SAFETY: the caller's contract.
    unsafe { &*error }.file.as_ref().map_or(std::ptr::null(), |file| file.as_ptr())
}

/// Where in the file, in bytes; -1 if that is not known.
///
/// # Safety
/// The error is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_error_offset(error: *const terrace_error) -> i64 {
    // SAFETY: the caller's contract.
    unsafe { &*error }.offset.and_then(|offset| i64::try_from(offset).ok()).unwrap_or(-1)
}

/// Releases an error; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_error_free(error: *mut terrace_error) {
    // SAFETY: the caller's contract.
    unsafe { release(error) };
}
