//! Upkeep of a store: flushes, compactions, checkpoints, verification, repair, devices.

use std::ffi::{c_char, c_void};

use super::db::terrace_db;
use super::error::{call, terrace_error};
use crate::border::{path, shared, store};
use crate::failure::Failure;

/// What terrace_verify() has read.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct terrace_verify_report {
    /// Tables.
    pub tables: u64,
    /// Data blocks of these tables.
    pub blocks: u64,
    /// Entries in them, tombstones included.
    pub entries: u64,
    /// Values that lie apart from their keys.
    pub values: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Bytes of storage that neither live tables nor dead ones that are not freed yet explain.
    pub unexplained_bytes: u64,
    /// How many problems there are; 0 when all is well.
    pub problems: u64,
}

/// What terrace_repair() has saved.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct terrace_repair_report {
    /// Keyspaces of the new store.
    pub keyspaces: u64,
    /// Tables of the old store that were read.
    pub tables: u64,
    /// Entries in the new store.
    pub entries: u64,
    /// How many things could not be saved.
    pub lost: u64,
    /// Whether the old manifest could be read. If not, keyspaces may have lost their names, and what was deleted may be back.
    pub whole_catalog: bool,
}

/// What C wants to have called with each problem.
type Each = Option<unsafe extern "C" fn(state: *mut c_void, problem: *const terrace_error)>;

/// Calls `each` with each of `problems`.
///
/// # Safety
/// The function may be called with `state`, and returns to its caller.
unsafe fn tell(problems: Vec<engine::Error>, each: Each, state: *mut c_void) {
    let Some(each) = each else { return };
    for problem in problems {
        let problem = terrace_error::from(Failure::from(problem));
        // SAFETY: as this function's; the problem lives until the function returns.
        unsafe { each(state, &raw const problem) };
    }
}

/// Writes all memtables to tables, in all keyspaces.
///
/// # Safety
/// The handle is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_flush(db: *const terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { shared(db, "db") }?.db.flush()?))
}

/// Compacts everything that is there now into the deepest level, in all keyspaces.
///
/// # Safety
/// The handle is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_compact(db: *const terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { shared(db, "db") }?.db.compact()?))
}

/// Waits until no flush, compaction or reclaim is due.
///
/// # Safety
/// The handle is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_wait_idle(db: *const terrace_db) -> *mut terrace_error {
    // SAFETY: the caller's contract.
    call(|| Ok(unsafe { shared(db, "db") }?.db.wait_idle()?))
}

/// Copies the store as it is now to the directory `dir`, which must be empty or not exist: an independent store, durable when
/// the call returns. Writes go on meanwhile.
///
/// # Safety
/// The handle is valid; the path ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_checkpoint(db: *const terrace_db, dir: *const c_char) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, dir) = unsafe { (shared(db, "db")?, path(dir, "dir")?) };
        Ok(db.db.checkpoint(dir)?)
    })
}

/// Reads the whole store and checks every block against its checksum, its neighbours and the manifest. Calls `each`, unless it
/// is NULL, with each problem, which is valid during the call. Damage is no error of this function.
///
/// # Safety
/// The handle is valid; `each` is NULL or may be called with `state`, and returns to its caller; `report` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_verify(
    db: *const terrace_db,
    each: Option<unsafe extern "C" fn(state: *mut c_void, problem: *const terrace_error)>,
    state: *mut c_void,
    report: *mut terrace_verify_report,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let found = unsafe { shared(db, "db") }?.db.verify()?;
        let told = terrace_verify_report {
            tables: found.tables,
            blocks: found.blocks,
            entries: found.entries,
            values: found.values,
            bytes: found.bytes,
            unexplained_bytes: found.unexplained_bytes,
            problems: found.problems.len() as u64,
        };
        // SAFETY: the caller's contract.
        unsafe { tell(found.problems, each, state) };
        // SAFETY: the caller's contract.
        unsafe { store(report, told, "report") }
    })
}

/// Builds a new store in `target`, an empty or new directory, from everything in the store in `path` whose checksums are
/// right. The old store is not changed. Calls `each`, unless it is NULL, with all that is lost.
///
/// # Safety
/// The paths end with a zero; `each` is NULL or may be called with `state`, and returns to its caller; `report` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_repair(
    path: *const c_char,
    target: *const c_char,
    each: Option<unsafe extern "C" fn(state: *mut c_void, problem: *const terrace_error)>,
    state: *mut c_void,
    report: *mut terrace_repair_report,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (path, target) = unsafe { (self::path(path, "path")?, self::path(target, "target")?) };
        let done = engine::repair(path, target)?;
        let told = terrace_repair_report {
            keyspaces: done.keyspaces,
            tables: done.tables,
            entries: done.entries,
            lost: done.lost.len() as u64,
            whole_catalog: done.whole_catalog,
        };
        // SAFETY: the caller's contract.
        unsafe { tell(done.lost, each, state) };
        // SAFETY: the caller's contract.
        unsafe { store(report, told, "report") }
    })
}

/// Makes the directory `dir`, on another device, one of the store's while it is in use.
///
/// # Safety
/// The handle is valid; the path ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_add_device(db: *const terrace_db, dir: *const c_char) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, dir) = unsafe { (shared(db, "db")?, path(dir, "dir")?) };
        Ok(db.db.add_device(dir)?)
    })
}

/// Moves all tables away from the device in `dir`, and lets it go.
///
/// # Safety
/// The handle is valid; the path ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_remove_device(
    db: *const terrace_db,
    dir: *const c_char,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (db, dir) = unsafe { (shared(db, "db")?, path(dir, "dir")?) };
        Ok(db.db.remove_device(dir)?)
    })
}
