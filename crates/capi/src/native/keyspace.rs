//! Keyspaces: what they are called, their options and sizes.

use std::ffi::{CString, c_char};

use engine::Keyspace;

use super::bytes::terrace_range;
use super::error::{c_text, call, terrace_error};
use super::options::terrace_keyspace_options;
use crate::border::{caught_or, release, shared, store};

/// A keyspace: an ordered set of keys in a store. What is read and written is read and written in one of them. It shares log,
/// caches, snapshots and batches with the others, and holds the store open.
pub struct terrace_keyspace {
    pub(super) keyspace: Keyspace,
    name: CString,
}

impl terrace_keyspace {
    pub(super) fn of(keyspace: Keyspace) -> Self {
        let name = c_text(keyspace.name().as_bytes());
        Self { keyspace, name }
    }
}

/// Releases the handle of a keyspace; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_free(keyspace: *mut terrace_keyspace) {
    // SAFETY: the caller's contract.
    unsafe { release(keyspace) };
}

/// Its name, which is the handle's.
///
/// # Safety
/// The keyspace is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_name(keyspace: *const terrace_keyspace) -> *const c_char {
    // SAFETY: the caller's contract.
    unsafe { &*keyspace }.name.as_ptr()
}

/// Its id, never used again in this store.
///
/// # Safety
/// The keyspace is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_id(keyspace: *const terrace_keyspace) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { &*keyspace }.keyspace.id()
}

/// Its options.
///
/// # Safety
/// The keyspace is valid; `options` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_get_options(
    keyspace: *const terrace_keyspace,
    options: *mut terrace_keyspace_options,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let keyspace = unsafe { shared(keyspace, "keyspace") }?;
        let found = terrace_keyspace_options::of(&keyspace.keyspace.options());
        // SAFETY: the caller's contract.
        unsafe { store(options, found, "options") }
    })
}

/// Changes its options, for what is written from now on. The change is durable when the call returns.
///
/// # Safety
/// Both are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_set_options(
    keyspace: *const terrace_keyspace,
    options: *const terrace_keyspace_options,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, options) = unsafe { (shared(keyspace, "keyspace")?, shared(options, "options")?) };
        Ok(keyspace.keyspace.set_options(&options.options()?)?)
    })
}

/// About how many entries it has; nothing is read for that.
///
/// # Safety
/// The keyspace is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_approximate_len(keyspace: *const terrace_keyspace) -> u64 {
    // SAFETY: the caller's contract.
    let keyspace = unsafe { &*keyspace };
    caught_or(0, || keyspace.keyspace.approximate_len())
}

/// About how many bytes of tables its entries in `range` take; nothing is read for that.
///
/// # Safety
/// The keyspace is valid; the range's keys have as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_approximate_bytes(
    keyspace: *const terrace_keyspace,
    range: terrace_range,
) -> u64 {
    // SAFETY: the caller's contract.
    let (keyspace, bounds) = unsafe { (&*keyspace, range.bounds()) };
    caught_or(0, || keyspace.keyspace.approximate_bytes(bounds))
}

/// Compacts the tables that hold keys of `range` into the deepest level, and waits for it.
///
/// # Safety
/// The keyspace is valid; the range's keys have as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_compact_range(
    keyspace: *const terrace_keyspace,
    range: terrace_range,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, bounds) = unsafe { (shared(keyspace, "keyspace")?, range.bounds()) };
        Ok(keyspace.keyspace.compact_range(bounds)?)
    })
}
