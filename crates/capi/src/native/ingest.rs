//! Ingests: sorted entries that go straight into tables.

use engine::Ingest;

use super::bytes::terrace_slice;
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use crate::border::{exclusive, hand_over, release, shared, take};

/// Sorted entries on their way into the tables of a keyspace: see terrace_ingest_begin().
pub struct terrace_ingest {
    ingest: Ingest,
}

/// Begins an ingest: the cheapest way to load much sorted data. Nothing is visible before terrace_ingest_finish();
/// terrace_ingest_free() gives it up.
///
/// # Safety
/// The keyspace is valid; `ingest` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ingest_begin(
    keyspace: *const terrace_keyspace,
    ingest: *mut *mut terrace_ingest,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let begun = unsafe { shared(keyspace, "keyspace") }?.keyspace.ingest()?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(ingest, terrace_ingest { ingest: begun }, "ingest") }
    })
}

/// Appends an entry, whose key must lie behind the last one.
///
/// # Safety
/// The ingest is valid, and no other thread uses it; key and value have as many bytes as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ingest_put(
    ingest: *mut terrace_ingest,
    key: terrace_slice,
    value: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (ingest, key, value) = unsafe { (exclusive(ingest, "ingest")?, key.get(), value.get()) };
        Ok(ingest.ingest.push(key, value)?)
    })
}

/// Removes a key, which must lie behind the last one; fine if it has no value.
///
/// # Safety
/// The ingest is valid, and no other thread uses it; the key has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ingest_delete(
    ingest: *mut terrace_ingest,
    key: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (ingest, key) = unsafe { (exclusive(ingest, "ingest")?, key.get()) };
        Ok(ingest.ingest.delete(key)?)
    })
}

/// Makes all entries durable, and visible at one moment, and releases the ingest in any case.
///
/// # Safety
/// The ingest is from terrace_ingest_begin(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ingest_finish(ingest: *mut terrace_ingest) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { take(ingest, "ingest") }?.ingest.finish()?))
}

/// Gives an ingest up; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from terrace_ingest_begin(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_ingest_free(ingest: *mut terrace_ingest) {
    // SAFETY: the caller's contract.
    unsafe { release(ingest) };
}
