//! Functions beside a database that is open: removal, repair, versions, memory.

use std::ffi::{c_char, c_int, c_void};

use engine::Db;

use super::error::told;
use super::files;
use super::options::leveldb_options_t;
use crate::border::{caught, free, path};

/// The version of LevelDB whose interface this is.
const VERSION: (c_int, c_int) = (1, 23);

/// Removes the database `name`; fine if there is none. Files of others in its directory stay, and so does a database that
/// LevelDB has written, with an error.
///
/// # Safety
/// The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let _ = options;
    // SAFETY: the caller's contract.
    let destroyed = caught(|| files::destroy(unsafe { path(name, "name") }?));
    // SAFETY: the caller's contract.
    unsafe { told(errptr, destroyed) };
}

/// Repairs the database `name` in place, for one that does not open: it has everything then whose checksums are right. Old
/// files of which something was lost stay in a directory beside it, whose name ends with ".terrace-lost".
///
/// # Safety
/// The options are valid; `name` ends with a zero; `errptr` points to NULL or to a text from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_repair_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let repaired = caught(|| {
        // SAFETY: the caller's contract.
        let (options, dir) = unsafe { (&*options, path(name, "name")?) };
        files::repair(dir, |dir| Db::builder(dir).options(options.settings.options()))
    });
    // SAFETY: the caller's contract.
    unsafe { told(errptr, repaired) };
}

/// Releases what a function of this header has returned from `malloc`, as `free` does.
///
/// # Safety
/// `ptr` is NULL or such a text or value, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe { free(ptr) };
}

/// The major version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    VERSION.0
}

/// The minor version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    VERSION.1
}
