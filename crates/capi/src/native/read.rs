//! Lookups, and the snapshots that they may see.

use engine::Snapshot;

use super::bytes::{keys, terrace_slice, terrace_value};
use super::db::terrace_db;
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use crate::border::{hand_over, release, shared, store};
use crate::failure::Failure;

/// The store at one moment, over all keyspaces: see terrace_snapshot_create().
pub struct terrace_snapshot {
    pub(super) snapshot: Snapshot,
}

/// A snapshot of the store as it is now. Release it with terrace_snapshot_free(); until then it keeps what it sees.
///
/// # Safety
/// The handle is valid; `snapshot` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_snapshot_create(
    db: *const terrace_db,
    snapshot: *mut *mut terrace_snapshot,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let db = unsafe { shared(db, "db") }?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(snapshot, terrace_snapshot { snapshot: db.db.snapshot() }, "snapshot") }
    })
}

/// Sequence number of the newest write that the snapshot sees.
///
/// # Safety
/// The snapshot is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_snapshot_seq(snapshot: *const terrace_snapshot) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { &*snapshot }.snapshot.seq()
}

/// Releases a snapshot; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from terrace_snapshot_create(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_snapshot_free(snapshot: *mut terrace_snapshot) {
    // SAFETY: the caller's contract.
    unsafe { release(snapshot) };
}

/// The value of `key`: of now, or as `snapshot` sees it unless that is NULL. Its `data` is NULL if there is none. Release it
/// with terrace_value_free().
///
/// # Safety
/// Keyspace and snapshot are valid; the key has as many bytes as it says; `value` may be written, and what is there is not
/// released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_get(
    keyspace: *const terrace_keyspace,
    snapshot: *const terrace_snapshot,
    key: terrace_slice,
    value: *mut terrace_value,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, snapshot, key) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, snapshot.as_ref(), key.get()) };
        // SAFETY: the caller's contract.
        unsafe { terrace_value::clear(value) }?;
        let found = match snapshot {
            Some(snapshot) => snapshot.snapshot.keyspace(keyspace).get(key)?,
            None => keyspace.get(key)?,
        };
        // SAFETY: the caller's contract.
        unsafe { store(value, terrace_value::of(found), "value") }
    })
}

/// Whether `key` has a value: now, or as `snapshot` sees it unless that is NULL.
///
/// # Safety
/// Keyspace and snapshot are valid; the key has as many bytes as it says; `found` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_contains(
    keyspace: *const terrace_keyspace,
    snapshot: *const terrace_snapshot,
    key: terrace_slice,
    found: *mut bool,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, snapshot, key) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, snapshot.as_ref(), key.get()) };
        let has = match snapshot {
            Some(snapshot) => snapshot.snapshot.keyspace(keyspace).contains(key)?,
            None => keyspace.contains(key)?,
        };
        // SAFETY: the caller's contract.
        unsafe { store(found, has, "found") }
    })
}

/// The values of `count` keys at one moment, in their order: cheaper than terrace_get() for each. Release each of them with
/// terrace_value_free(). After a failure there are none to release.
///
/// # Safety
/// Keyspace and snapshot are valid; there are `count` keys with as many bytes as they say; as many values may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_multi_get(
    keyspace: *const terrace_keyspace,
    snapshot: *const terrace_snapshot,
    keys: *const terrace_slice,
    count: usize,
    values: *mut terrace_value,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, snapshot, keys) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, snapshot.as_ref(), self::keys(keys, count)?) };
        if values.is_null() && count > 0 {
            return Err(Failure::argument("values is NULL"));
        }
        let found = match snapshot {
            Some(snapshot) => snapshot.snapshot.keyspace(keyspace).multi_get(keys)?,
            None => keyspace.multi_get(keys)?,
        };
        for (at, value) in found.into_iter().enumerate() {
            // SAFETY: the caller's contract; there are as many as keys.
            unsafe { values.add(at).write(terrace_value::of(value)) };
        }
        Ok(())
    })
}
