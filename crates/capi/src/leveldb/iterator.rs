//! Iterators. An entry is lent to C where it lies: a step copies nothing.

use std::ffi::c_char;

use engine::{Cursor, Result};

use super::db::leveldb_t;
use super::error::put;
use super::options::leveldb_readoptions_t;
use crate::border::{bytes, caught, handle, release};
use crate::failure::Failure;

/// A position among the entries of a database at one moment: see leveldb_create_iterator().
pub struct leveldb_iterator_t {
    /// `None` if it could not be made, or has panicked.
    cursor: Option<Cursor>,
    /// The entry on which it stands.
    entry: Option<Lent>,
    failure: Option<Failure>,
}

/// Where key and value lie, in memory that the cursor holds until it moves.
#[derive(Clone, Copy)]
struct Lent {
    key: *const u8,
    key_bytes: usize,
    value: *const u8,
    value_bytes: usize,
}

/// A movement of a cursor, and the entry to which it leads.
type Moved<'a> = Result<Option<(&'a [u8], &'a [u8])>>;

impl leveldb_iterator_t {
    /// Moves, and takes the entry to which that leads.
    fn go(&mut self, step: impl FnOnce(&mut Cursor) -> Moved<'_>) {
        self.entry = None;
        let Some(cursor) = &mut self.cursor else { return };
        let moved = caught(|| {
            let entry = step(cursor)?;
            Ok(entry.map(|(key, value)| Lent {
                key: key.as_ptr(),
                key_bytes: key.len(),
                value: value.as_ptr(),
                value_bytes: value.len(),
            }))
        });
        match moved {
            Ok(entry) => (self.entry, self.failure) = (entry, None),
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// As [`Self::go`], from an entry.
    fn step(&mut self, step: impl FnOnce(&mut Cursor) -> Moved<'_>) {
        if self.entry.is_some() {
            self.go(step);
        }
    }
}

/// Makes an iterator over the database as it is now, or as the options' snapshot sees it. It stands nowhere before it is
/// moved. It is never NULL: what goes wrong is told by leveldb_iter_get_error(). Release it with leveldb_iter_destroy(), before
/// the database is closed: after that it ends with an error.
///
/// # Safety
/// Database and options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_iterator(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
) -> *mut leveldb_iterator_t {
    let cursor = caught(|| {
        // SAFETY: the caller's contract.
        let (db, snapshot) = unsafe { (&*db, (*options).snapshot.as_ref()) };
        Ok(match snapshot {
            Some(snapshot) => snapshot.snapshot.cursor(..)?,
            None => db.db.cursor(..)?,
        })
    });
    let (cursor, failure) = match cursor {
        Ok(cursor) => (Some(cursor), None),
        Err(failure) => (None, Some(failure)),
    };
    handle(leveldb_iterator_t { cursor, entry: None, failure })
}

/// Releases an iterator.
///
/// # Safety
/// It is from leveldb_create_iterator(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_destroy(iter: *mut leveldb_iterator_t) {
    // SAFETY: the caller's contract.
    unsafe { release(iter) };
}

/// Whether the iterator stands on an entry.
///
/// # Safety
/// The iterator is valid, and no other thread moves it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_valid(iter: *const leveldb_iterator_t) -> u8 {
    // SAFETY: the caller's contract.
    unsafe { &*iter }.entry.is_some().into()
}

/// Moves to the first entry.
///
/// # Safety
/// The iterator is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_first(iter: *mut leveldb_iterator_t) {
    // SAFETY: the caller's contract.
    unsafe { &mut *iter }.go(Cursor::seek_to_first);
}

/// Moves to the last entry.
///
/// # Safety
/// The iterator is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_last(iter: *mut leveldb_iterator_t) {
    // SAFETY: the caller's contract.
    unsafe { &mut *iter }.go(Cursor::seek_to_last);
}

/// Moves to the first entry whose key is at or behind `k`.
///
/// # Safety
/// The iterator is valid, and no other thread uses it; the key has as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek(iter: *mut leveldb_iterator_t, k: *const c_char, klen: usize) {
    // SAFETY: the caller's contract. The key may be one that the iterator lends: it is read before the iterator moves, for
    // the copy here.
    let key = unsafe { bytes(k, klen) }.to_vec();
    // SAFETY: the caller's contract.
    unsafe { &mut *iter }.go(|cursor| cursor.seek(key));
}

/// Moves to the next entry. The iterator must stand on one; if not, it stays.
///
/// # Safety
/// The iterator is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_next(iter: *mut leveldb_iterator_t) {
    // SAFETY: the caller's contract.
    unsafe { &mut *iter }.step(Cursor::next);
}

/// Moves to the previous entry. The iterator must stand on one; if not, it stays.
///
/// # Safety
/// The iterator is valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_prev(iter: *mut leveldb_iterator_t) {
    // SAFETY: the caller's contract.
    unsafe { &mut *iter }.step(Cursor::prev);
}

/// The key of the entry on which the iterator stands, and its length; NULL if there is none. It is the iterator's, and
/// valid until that moves.
///
/// # Safety
/// The iterator is valid, and no other thread moves it; `klen` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_key(
    iter: *const leveldb_iterator_t,
    klen: *mut usize,
) -> *const c_char {
    // SAFETY: the caller's contract.
    let entry = unsafe { &*iter }.entry;
    let (key, bytes) = entry.map_or((std::ptr::null(), 0), |entry| (entry.key, entry.key_bytes));
    // SAFETY: the caller's contract.
    unsafe { *klen = bytes };
    key.cast()
}

/// The value of the entry on which the iterator stands, and its length; NULL if there is none. It is the iterator's, and
/// valid until that moves.
///
/// # Safety
/// The iterator is valid, and no other thread moves it; `vlen` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(
    iter: *const leveldb_iterator_t,
    vlen: *mut usize,
) -> *const c_char {
    // SAFETY: the caller's contract.
    let entry = unsafe { &*iter }.entry;
    let (value, bytes) = entry.map_or((std::ptr::null(), 0), |entry| (entry.value, entry.value_bytes));
    // SAFETY: the caller's contract.
    unsafe { *vlen = bytes };
    value.cast()
}

/// What has ended the iteration, if it was a failure: a table that cannot be read, or is damaged.
///
/// # Safety
/// The iterator is valid, and no other thread moves it; `errptr` points to NULL or to a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(iter: *const leveldb_iterator_t, errptr: *mut *mut c_char) {
    // SAFETY: the caller's contract.
    if let Some(failure) = &unsafe { &*iter }.failure {
        // SAFETY: the caller's contract.
        unsafe { put(errptr, failure) };
    }
}
