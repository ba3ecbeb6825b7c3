//! Databases: opening and closing, reads, writes, snapshots, and what they tell of themselves.

use std::ffi::{c_char, c_int};
use std::ops::Bound;

use engine::{Db, Durability, Keyspace, Snapshot};

use super::batch::leveldb_writebatch_t;
use super::error::told;
use super::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::border::{bytes, caught, caught_or, handle, malloced, path, release};

/// An open database: the keyspace "default" of a store.
pub struct leveldb_t {
    pub(crate) db: Db,
    default: Keyspace,
}

/// A database at one moment: see leveldb_create_snapshot().
pub struct leveldb_snapshot_t {
    pub(super) snapshot: Snapshot,
}

/// Opens the database `name`, a directory. Returns NULL if that fails. Close it with leveldb_close().
///
/// # Safety
/// The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_open(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut leveldb_t {
    let opened = caught(|| {
        // SAFETY: the caller's contract.
        let (options, dir) = unsafe { (&*options, path(name, "name")?) };
        let db = options.settings.open(dir)?;
        let default = db.keyspace("default")?;
        Ok(handle(leveldb_t { db, default }))
    });
    // SAFETY: the caller's contract.
    unsafe { told(errptr, opened) }.unwrap_or(std::ptr::null_mut())
}

/// Closes a database: all that was written is durable then. Iterators and snapshots should have been released before; they
/// fail from now on, and keep the directory from being opened until they are.
///
/// # Safety
/// It is from leveldb_open(), and no thread uses it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_close(db: *mut leveldb_t) {
    caught_or((), || {
        // SAFETY: it is from `handle`, and this is its only release.
        let database = *unsafe { Box::from_raw(db) };
        // LevelDB has nowhere to tell of it either.
        let _ = database.db.close();
    });
}

fn durability(options: &leveldb_writeoptions_t) -> Durability {
    if options.sync { Durability::Synced } else { Durability::Buffered }
}

/// Gives `key` the value `val`.
///
/// # Safety
/// Database and options are valid; key and value have as many bytes as is said; `errptr` points to NULL or to a text from
/// `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_put(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller's contract.
    let (db, options, key, value) = unsafe { (&*db, &*options, bytes(key, keylen), bytes(val, vallen)) };
    let put = caught(|| Ok(db.db.put_with(key, value, durability(options))?));
    // SAFETY: the caller's contract.
    unsafe { told(errptr, put) };
}

/// Removes `key`; fine if it has no value.
///
/// # Safety
/// Database and options are valid; the key has as many bytes as is said; `errptr` points to NULL or to a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_delete(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller's contract.
    let (db, options, key) = unsafe { (&*db, &*options, bytes(key, keylen)) };
    let deleted = caught(|| Ok(db.db.delete_with(key, durability(options))?));
    // SAFETY: the caller's contract.
    unsafe { told(errptr, deleted) };
}

/// Applies all of a batch, or nothing of it. The batch stays as it is.
///
/// # Safety
/// Database and options are valid; so is the batch, and no other thread changes it; `errptr` points to NULL or to a text from
/// `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_write(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    batch: *mut leveldb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller's contract.
    let (db, options, batch) = unsafe { (&*db, &*options, &*batch) };
    let written = caught(|| Ok(db.db.write_with(batch.batch(), durability(options))?));
    // SAFETY: the caller's contract.
    unsafe { told(errptr, written) };
}

/// The value of `key` and its length, or NULL if it has none. Release it with leveldb_free().
///
/// # Safety
/// Database and options are valid; the key has as many bytes as is said; `vallen` may be written; `errptr` points to NULL or to
/// a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_get(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: the caller's contract.
    let (db, snapshot, key) = unsafe { (&*db, (*options).snapshot.as_ref(), bytes(key, keylen)) };
    let value = caught(|| {
        let value = match snapshot {
            Some(snapshot) => snapshot.snapshot.get(key)?,
            None => db.db.get(key)?,
        };
        Ok(value.map(|value| (malloced(&value), value.len())))
    });
    // SAFETY: the caller's contract.
    let (copy, length) = unsafe { told(errptr, value) }.flatten().unwrap_or((std::ptr::null_mut(), 0));
    // SAFETY: the caller's contract.
    unsafe { *vallen = length };
    copy
}

/// The database as it is now, for leveldb_readoptions_set_snapshot(). Release it with leveldb_release_snapshot().
///
/// # Safety
/// The database is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_snapshot(db: *mut leveldb_t) -> *const leveldb_snapshot_t {
    // SAFETY: the caller's contract.
    let db = unsafe { &*db };
    caught_or(std::ptr::null(), || handle(leveldb_snapshot_t { snapshot: db.db.snapshot() }).cast_const())
}

/// Releases a snapshot.
///
/// # Safety
/// It is from leveldb_create_snapshot() with the same database, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_release_snapshot(db: *mut leveldb_t, snapshot: *const leveldb_snapshot_t) {
    let _ = db;
    // SAFETY: the caller's contract.
    unsafe { release(snapshot.cast_mut()) };
}

/// What the database tells of itself under the name `propname`, or NULL if there is no such property. Release it with
/// leveldb_free(). All of LevelDB's names are known, and those that README.md lists.
///
/// # Safety
/// The database is valid; `propname` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_property_value(db: *mut leveldb_t, propname: *const c_char) -> *mut c_char {
    let value = caught(|| {
        // SAFETY: the caller's contract.
        let (db, name) = unsafe { (&*db, crate::border::text(propname, "propname")?) };
        Ok(property(&db.db, name))
    });
    value.ok().flatten().map_or(std::ptr::null_mut(), |value| malloced(value.as_bytes()))
}

/// A property by LevelDB's name or Terrace's. A table has no file of its own, so for "sstables" there is a line for each level.
pub(crate) fn property(db: &Db, name: &str) -> Option<String> {
    let name = if name == "leveldb.sstables" { "terrace.levelstats" } else { name };
    db.property(name)
}

/// About how many bytes of files each range of keys takes, from its start up to and without its limit. What is in memory
/// alone does not count.
///
/// # Safety
/// The database is valid; there are `num_ranges` of everything, and keys have as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_approximate_sizes(
    db: *mut leveldb_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    // SAFETY: the caller's contract.
    let db = unsafe { &*db };
    for at in 0..usize::try_from(num_ranges).unwrap_or(0) {
        // SAFETY: the caller's contract.
        let (start, limit) = unsafe {
            let start = bytes(*range_start_key.add(at), *range_start_key_len.add(at));
            (start, bytes(*range_limit_key.add(at), *range_limit_key_len.add(at)))
        };
        let size = caught_or(0, || db.default.approximate_bytes(start..limit));
        // SAFETY: the caller's contract.
        unsafe { *sizes.add(at) = size };
    }
}

/// Compacts all tables that hold keys from `start_key` to `limit_key`, both included, and waits for it. A key that is NULL
/// stands for the first or the last.
///
/// # Safety
/// The database is valid; keys that are not NULL have as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_compact_range(
    db: *mut leveldb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    let bound = |key: *const c_char, length| match key.is_null() {
        true => Bound::Unbounded,
        // SAFETY: the caller's contract.
        false => Bound::Included(unsafe { bytes(key, length) }),
    };
    // SAFETY: the caller's contract.
    let db = unsafe { &*db };
    let range = (bound(start_key, start_key_len), bound(limit_key, limit_key_len));
    // LevelDB has nowhere to tell of a failure either: the next write does.
    let _ = caught(|| Ok(db.default.compact_range(range)?));
}
