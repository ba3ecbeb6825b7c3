//! Cursors. An entry is lent to C where it lies: a step copies nothing.

use engine::{Cursor, Result};

use super::bytes::{terrace_range, terrace_slice};
use super::error::{call, terrace_error};
use super::keyspace::terrace_keyspace;
use super::read::terrace_snapshot;
use crate::border::{exclusive, hand_over, release, shared, store};

/// A position among the entries of a range, at one moment: see terrace_cursor_open().
pub struct terrace_cursor {
    cursor: Cursor,
}

/// An entry. The key's `data` is NULL if there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_entry {
    /// The key.
    pub key: terrace_slice,
    /// The value.
    pub value: terrace_slice,
}

impl terrace_entry {
    pub(super) const NONE: Self = Self { key: terrace_slice::NONE, value: terrace_slice::NONE };

    pub(super) fn of((key, value): (&[u8], &[u8])) -> Self {
        Self { key: terrace_slice::of(key), value: terrace_slice::of(value) }
    }
}

/// A movement of a cursor, and the entry to which it leads.
type Moved<'a> = Result<Option<(&'a [u8], &'a [u8])>>;

/// Moves `cursor` and writes the entry to which that leads; none if it fails.
///
/// # Safety
/// The cursor is null or valid, and nobody else uses it; `entry` is null or may be written.
unsafe fn go(
    cursor: *mut terrace_cursor,
    entry: *mut terrace_entry,
    step: impl FnOnce(&mut Cursor) -> Moved<'_>,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: as this function's.
        let cursor = unsafe { exclusive(cursor, "cursor") }?;
        let (found, error) = match step(&mut cursor.cursor) {
            Ok(found) => (found.map_or(terrace_entry::NONE, terrace_entry::of), None),
            Err(error) => (terrace_entry::NONE, Some(error)),
        };
        // SAFETY: as this function's.
        unsafe { store(entry, found, "entry") }?;
        error.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// A cursor over the entries of `range`: as they are now, or as `snapshot` sees them unless that is NULL. It stands before the
/// first one. Release it with terrace_cursor_free().
///
/// Each movement writes the entry to which it leads, whose bytes are the cursor's and valid until it moves again. It leads
/// nowhere beyond an end of the range; from there a movement in the other direction leads back. After a failure the cursor
/// stands nowhere until the next seek.
///
/// # Safety
/// Keyspace and snapshot are valid; the range's keys have as many bytes as it says; `cursor` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_open(
    keyspace: *const terrace_keyspace,
    snapshot: *const terrace_snapshot,
    range: terrace_range,
    cursor: *mut *mut terrace_cursor,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, snapshot, bounds) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, snapshot.as_ref(), range.bounds()) };
        let opened = match snapshot {
            Some(snapshot) => snapshot.snapshot.keyspace(keyspace).cursor(bounds)?,
            None => keyspace.cursor(bounds)?,
        };
        // SAFETY: the caller's contract.
        unsafe { hand_over(cursor, terrace_cursor { cursor: opened }, "cursor") }
    })
}

/// As terrace_cursor_open(), over the entries whose keys begin with `prefix`.
///
/// # Safety
/// Keyspace and snapshot are valid; the prefix has as many bytes as it says; `cursor` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_open_prefix(
    keyspace: *const terrace_keyspace,
    snapshot: *const terrace_snapshot,
    prefix: terrace_slice,
    cursor: *mut *mut terrace_cursor,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (keyspace, snapshot, prefix) =
            unsafe { (&shared(keyspace, "keyspace")?.keyspace, snapshot.as_ref(), prefix.get()) };
        let opened = match snapshot {
            Some(snapshot) => snapshot.snapshot.keyspace(keyspace).prefix_cursor(prefix)?,
            None => keyspace.prefix_cursor(prefix)?,
        };
        // SAFETY: the caller's contract.
        unsafe { hand_over(cursor, terrace_cursor { cursor: opened }, "cursor") }
    })
}

/// Releases a cursor; nothing if it is NULL.
///
/// # Safety
/// It is NULL or from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_free(cursor: *mut terrace_cursor) {
    // SAFETY: the caller's contract.
    unsafe { release(cursor) };
}

/// Moves to the first entry.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_first(
    cursor: *mut terrace_cursor,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, Cursor::seek_to_first) }
}

/// Moves to the last entry.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_last(
    cursor: *mut terrace_cursor,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, Cursor::seek_to_last) }
}

/// Moves to the first entry at or behind `key`, which may be one that the cursor lends.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; the key has as many bytes as it says; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_seek(
    cursor: *mut terrace_cursor,
    key: terrace_slice,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract. Copied, for the cursor may lend it.
    let key = unsafe { key.get() }.to_vec();
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, |cursor| cursor.seek(key)) }
}

/// Moves to the last entry at or before `key`, which may be one that the cursor lends.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; the key has as many bytes as it says; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_seek_for_prev(
    cursor: *mut terrace_cursor,
    key: terrace_slice,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract. Copied, for the cursor may lend it.
    let key = unsafe { key.get() }.to_vec();
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, |cursor| cursor.seek_for_prev(key)) }
}

/// Moves to the next entry; from before the first entry, to the first one.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_next(
    cursor: *mut terrace_cursor,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, Cursor::next) }
}

/// Moves to the previous entry; from behind the last entry, to the last one.
///
/// # Safety
/// The cursor is valid, and no other thread uses it; `entry` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_cursor_prev(
    cursor: *mut terrace_cursor,
    entry: *mut terrace_entry,
) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    unsafe { go(cursor, entry, Cursor::prev) }
}
