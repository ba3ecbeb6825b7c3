//! Stores: opening, closing, keyspaces by name.

use std::ffi::{c_char, c_void};

use engine::Db;

use super::error::{c_text, call, terrace_error};
use super::keyspace::terrace_keyspace;
use super::options::{terrace_keyspace_options, terrace_options};
use crate::border::{exclusive, hand_over, path, release, shared, store, take, text};
use crate::failure::Failure;
use crate::leveldb::leveldb_t;

/// A handle of an open store. Any number of threads may use it.
pub struct terrace_db {
    pub(super) db: Db,
}

/// Opens the store in the directory `path`, and creates it if there is none. Options may be NULL. Close it with
/// terrace_close().
///
/// # Safety
/// The path ends with a zero; the options are NULL or valid; `db` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_open(
    path: *const c_char,
    options: *const terrace_options,
    db: *mut *mut terrace_db,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (dir, options) = unsafe { (self::path(path, "path")?, options.as_ref()) };
        let builder = options.map_or_else(|| Db::builder(dir), |options| options.builder(dir));
        // SAFETY: the caller's contract.
        unsafe { store(db, std::ptr::null_mut(), "db") }?;
        let opened = terrace_db { db: builder.open()? };
        // SAFETY: the caller's contract.
        unsafe { hand_over(db, opened, "db") }
    })
}

/// Another handle of a store that was opened by LevelDB's interface, for what that lacks. Release it with terrace_db_free().
///
/// # Safety
/// The database is valid; `db` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_db_of_leveldb(
    leveldb: *const leveldb_t,
    db: *mut *mut terrace_db,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let leveldb = unsafe { shared(leveldb, "leveldb") }?;
        // SAFETY: the caller's contract.
        unsafe { hand_over(db, terrace_db { db: leveldb.db.clone() }, "db") }
    })
}

/// Closes the store, and releases the handle in any case: makes every acknowledged write durable, ends the background
/// threads, and lets all later calls through other handles fail with TERRACE_ERROR_KIND_CLOSED. The directory can be opened
/// again once all of these are released, too: keyspaces, snapshots, cursors, transactions, ingests.
///
/// # Safety
/// The handle is from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_close(db: *mut terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { take(db, "db") }?.db.close()?))
}

/// Releases a handle; nothing if it is NULL. The store closes when nothing holds it any more.
///
/// # Safety
/// It is NULL or from a function of this header, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_db_free(db: *mut terrace_db) {
    // SAFETY: the caller's contract.
    unsafe { release(db) };
}

/// Brings a handle of a store that was opened read-only up to date with the writer. Keyspaces, snapshots and cursors that
/// were made earlier keep their moment.
///
/// # Safety
/// The handle is valid, and no other thread uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_refresh(db: *mut terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { exclusive(db, "db") }?.db.refresh()?))
}

/// The keyspace `name`, created if there is none: with `options`, or with the defaults if they are NULL. A keyspace that
/// exists keeps its own. Every store has the keyspace "default". Release it with terrace_keyspace_free().
///
/// # Safety
/// The handle is valid; the name ends with a zero; the options are NULL or valid; `keyspace` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_open(
    db: *const terrace_db,
    name: *const c_char,
    options: *const terrace_keyspace_options,
    keyspace: *mut *mut terrace_keyspace,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, name, options) = unsafe { (shared(db, "db")?, text(name, "name")?, options.as_ref()) };
        let options = options.map(terrace_keyspace_options::options).transpose()?.unwrap_or_default();
        let opened = terrace_keyspace::of(db.db.keyspace_with(name, options)?);
        // SAFETY: the caller's contract.
        unsafe { hand_over(keyspace, opened, "keyspace") }
    })
}

/// The keyspace `name`, or NULL if there is none.
///
/// # Safety
/// The handle is valid; the name ends with a zero; `keyspace` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_find(
    db: *const terrace_db,
    name: *const c_char,
    keyspace: *mut *mut terrace_keyspace,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, name) = unsafe { (shared(db, "db")?, text(name, "name")?) };
        // SAFETY: the caller's contract.
        unsafe { store(keyspace, std::ptr::null_mut(), "keyspace") }?;
        match db.db.existing_keyspace(name)? {
            // SAFETY: the caller's contract.
            Some(found) => unsafe { hand_over(keyspace, terrace_keyspace::of(found), "keyspace") },
            None => Ok(()),
        }
    })
}

/// Removes the keyspace `name` and everything in it. Open cursors go on; handles and snapshots of it fail from then on.
///
/// # Safety
/// The handle is valid; the name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspace_drop(
    db: *const terrace_db,
    name: *const c_char,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, name) = unsafe { (shared(db, "db")?, text(name, "name")?) };
        Ok(db.db.drop_keyspace(name)?)
    })
}

/// Calls `each` with the name of each keyspace, in their order. A name is valid during the call.
///
/// # Safety
/// The handle is valid; `each` may be called with `state`, and returns to its caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_keyspaces(
    db: *const terrace_db,
    each: Option<unsafe extern "C" fn(state: *mut c_void, name: *const c_char)>,
    state: *mut c_void,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let db = unsafe { shared(db, "db") }?;
        let each = each.ok_or_else(|| Failure::argument("each is NULL"))?;
        for name in db.db.keyspaces() {
            let name = c_text(name.as_bytes());
            // SAFETY: the caller's contract.
            unsafe { each(state, name.as_ptr()) };
        }
        Ok(())
    })
}

/// What the store tells of itself under a name such as "terrace.stats"; NULL if there is no such property. Release it with
/// terrace_free().
///
/// # Safety
/// The handle is valid; the name ends with a zero; `value` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_property(
    db: *const terrace_db,
    name: *const c_char,
    value: *mut *mut c_char,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, name) = unsafe { (shared(db, "db")?, text(name, "name")?) };
        // SAFETY: the caller's contract.
        unsafe { store(value, std::ptr::null_mut(), "value") }?;
        match crate::leveldb::property(&db.db, name) {
            // SAFETY: the caller's contract.
            Some(found) => unsafe { store(value, crate::border::malloced(found.as_bytes()), "value") },
            None => Ok(()),
        }
    })
}
