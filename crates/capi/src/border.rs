//! The border to C: panics end here, and pointers become what Rust takes and gives.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::failure::Failure;

/// Runs `body`. A panic ends here and becomes a failure: nothing unwinds into C, which has no place for it.
///
/// What `body` was changing may be half changed. It is still sound, and the store's files are as a crash would leave them.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(Failure::panic(&*payload)))
}

/// As [`caught`], for functions that cannot tell of a failure: the result of one that panics is `otherwise`. The panic's
/// text is on standard error by then.
pub(crate) fn caught_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(|| Ok(body())).unwrap_or(otherwise)
}

/// Hands `value` over to C, which gives it back to [`release`].
pub(crate) fn handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes back what [`handle`] gave, and drops it; nothing if `pointer` is null.
///
/// # Safety
/// `pointer` is null or from [`handle`], and is not used again.
pub(crate) unsafe fn release<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it is from `Box::into_raw`, and this is its only release.
        caught_or((), || drop(unsafe { Box::from_raw(pointer) }));
    }
}

/// Takes back what [`handle`] gave, for a call that consumes it.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn take<T>(pointer: *mut T, name: &str) -> Result<T, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: it is from `Box::into_raw`, and C does not use it again.
    Ok(*unsafe { Box::from_raw(pointer) })
}

/// The object behind `pointer`; a failure if it is null.
///
/// # Safety
/// `pointer` is null, or its object lives and is not changed for `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: as this function's.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format!("{name} is NULL")))
}

/// The object behind `pointer`, to be changed; a failure if it is null.
///
/// # Safety
/// `pointer` is null, or its object lives and nobody else uses it for `'a`.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as this function's.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::argument(format!("{name} is NULL")))
}

/// Writes `value` to where C wants it; a failure if that is null.
///
/// # Safety
/// `place` is null, or may be written; what is there is not dropped.
pub(crate) unsafe fn store<T>(place: *mut T, value: T, name: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: as this function's.
    unsafe { place.write(value) };
    Ok(())
}

/// Hands `value` over to C, at `place`; a failure, and the value is dropped, if that is null.
///
/// # Safety
/// As for [`store`].
pub(crate) unsafe fn hand_over<T>(place: *mut *mut T, value: T, name: &str) -> Result<(), Failure> {
    // SAFETY: as this function's.
    unsafe { store(place, std::ptr::null_mut(), name) }?;
    // SAFETY: as this function's.
    unsafe { store(place, handle(value), name) }
}

/// The `length` bytes at `data`, which may be null if there are none.
///
/// # Safety
/// There are as many bytes, and they do not change for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: as this function's; nothing is empty here.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// The text at `text`, which ends with a zero.
///
/// # Safety
/// `text` is null, or ends with a zero and does not change for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: as this function's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
}

/// The path at `path`, which ends with a zero; any bytes, as the operating system has it.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: as this function's.
    let path = unsafe { CStr::from_ptr(path) };
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

/// A copy of `bytes` and a zero behind it, which C releases with `free`.
pub(crate) fn malloced(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` takes any size; the copy and the zero fill what it gave.
    unsafe {
        let copy = libc::malloc(bytes.len() + 1).cast::<u8>();
        if copy.is_null() {
            // As the rest of Rust does when there is no memory.
            std::alloc::handle_alloc_error(std::alloc::Layout::for_value(bytes));
        }
        copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        copy.add(bytes.len()).write(0);
        copy.cast()
    }
}

/// Releases what [`malloced`] gave; nothing if `pointer` is null.
///
/// # Safety
/// `pointer` is null or from `malloc`, and is not used again.
pub(crate) unsafe fn free(pointer: *mut c_void) {
    // SAFETY: as this function's.
    unsafe { libc::free(pointer) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::terrace_error_kind;

    #[test]
    fn a_panic_becomes_a_failure() {
        let failure = caught::<()>(|| panic!("as planned")).unwrap_err();
        assert_eq!(failure.kind, terrace_error_kind::Panic);
        assert!(failure.message.contains("as planned"));
        assert_eq!(caught_or(7, || panic!("as planned")), 7);
    }

    #[test]
    fn what_is_null_is_named() {
        // SAFETY: null is what these check for.
        unsafe {
            assert_eq!(shared::<u8>(std::ptr::null(), "db").unwrap_err().message, "db is NULL");
            assert_eq!(bytes(std::ptr::null(), 0), b"");
            release::<u8>(std::ptr::null_mut());
            let (value, dropped) = (std::rc::Rc::new(()), std::ptr::null_mut());
            assert!(hand_over(dropped, value.clone(), "place").is_err());
            assert_eq!(std::rc::Rc::strong_count(&value), 1, "what cannot be handed over is dropped");
        }
    }
}
