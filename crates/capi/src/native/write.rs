//! Writes of single keys and ranges.

use super::bytes::{terrace_range, terrace_slice};
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use super::options;
use crate::border::shared;

/// Gives `key` the value `value`. `durability` is a terrace_durability.
///
/// # Safety
/// The keyspace is valid; key and value have as many bytes as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_put(
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
    value: terrace_slice,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, key, value) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, key.get(), value.get()) };
        match options::durability(durability)? {
            Some(durability) => keyspace.put_with(key, value, durability)?,
            None => keyspace.put(key, value)?,
        }
        Ok(())
    })
}

/// Removes `key`; fine if it has no value. `durability` is a terrace_durability.
///
/// # Safety
/// The keyspace is valid; the key has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_delete(
    keyspace: *const terrace_keyspace,
    key: terrace_slice,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, key) = unsafe { (&shared(keyspace, "keyspace")?.keyspace, key.get()) };
        match options::durability(durability)? {
            Some(durability) => keyspace.delete_with(key, durability)?,
            None => keyspace.delete(key)?,
        }
        Ok(())
    })
}

/// Removes all keys of `range`, at the cost of one write. `durability` is a terrace_durability.
///
/// # Safety
/// The keyspace is valid; the range's keys have as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_delete_range(
    keyspace: *const terrace_keyspace,
    range: terrace_range,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, bounds) = unsafe { (&shared(keyspace, "keyspace")?.keyspace, range.bounds()) };
        match options::durability(durability)? {
            Some(durability) => keyspace.delete_range_with(bounds, durability)?,
            None => keyspace.delete_range(bounds)?,
        }
        Ok(())
    })
}

/// Removes all keys that begin with `prefix`, with the durability of the options.
///
/// # Safety
/// The keyspace is valid; the prefix has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_delete_prefix(
    keyspace: *const terrace_keyspace,
    prefix: terrace_slice,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, prefix) = unsafe { (&shared(keyspace, "keyspace")?.keyspace, prefix.get()) };
        Ok(keyspace.delete_prefix(prefix)?)
    })
}
