//! Statistics, as plain numbers.

use std::ffi::{CString, c_char};

use engine::Stats;

use super::db::terrace_db;
use super::error::{c_text, call, terrace_error};
use crate::border::{hand_over, release, shared, store};
use crate::failure::Failure;

/// Counters and sizes of a store at one moment: see terrace_stats_read().
pub struct terrace_stats {
    stats: Stats,
    reasons: Vec<CString>,
    keyspaces: Vec<CString>,
    devices: Vec<CString>,
}

/// A count for each reason to write.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct terrace_by_cause {
    /// The write-ahead log.
    pub wal: u64,
    /// Flushes.
    pub flush: u64,
    /// Compactions.
    pub compaction: u64,
    /// Tables copied so that the space of dead ones is freed.
    pub rewrite: u64,
    /// The manifest.
    pub manifest: u64,
    /// Names of files; syncs only.
    pub directory: u64,
    /// Holes, where space was needed at once; syncs only.
    pub reclaim: u64,
    /// Names of preallocated files; syncs only.
    pub preallocate: u64,
}

/// Counters since the store was opened, and sizes as of now.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct terrace_counters {
    /// Bytes of keys and values that callers have written.
    pub user_bytes_written: u64,
    /// Operations that callers have written.
    pub user_ops_written: u64,
    /// Lookups of a single key.
    pub gets: u64,
    /// Keys of lookups of many keys.
    pub multi_get_keys: u64,
    /// Keys of both that had a value.
    pub found: u64,
    /// Seeks of iterators and cursors that have been released.
    pub seeks: u64,
    /// Entries that these have returned.
    pub steps: u64,
    /// Bytes that callers have read.
    pub user_bytes_read: u64,
    /// Bytes handed to the operating system.
    pub written: terrace_by_cause,
    /// Barriers.
    pub syncs: terrace_by_cause,
    /// Bytes read from files by lookups.
    pub read_by_gets: u64,
    /// Bytes read from files by iterators and cursors.
    pub read_by_scans: u64,
    /// Bytes read from files by compactions and rewrites.
    pub read_by_compactions: u64,
    /// Bytes read from files to open the store and its tables.
    pub read_by_openings: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks read from a file instead.
    pub cache_misses: u64,
    /// Bytes that the cache holds, open tables included.
    pub cache_bytes: u64,
    /// Bytes that it may hold.
    pub cache_capacity: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Bytes that flushes have written.
    pub flush_bytes: u64,
    /// Compactions finished.
    pub compactions: u64,
    /// Jobs that moved tables to the next level without rewriting them.
    pub moves: u64,
    /// Bytes that compactions have read.
    pub compaction_bytes_in: u64,
    /// Bytes that compactions have written.
    pub compaction_bytes_out: u64,
    /// Time that compactions have taken, in microseconds.
    pub compaction_micros: u64,
    /// Bytes of live tables and values.
    pub live_bytes: u64,
    /// Bytes of dead tables that are not freed yet.
    pub dead_bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Files of tables.
    pub pack_files: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Sequence number of the newest write.
    pub last_seq: u64,
    /// Snapshots and transactions that are open.
    pub snapshots: u64,
    /// Flushes that run.
    pub running_flushes: u64,
    /// Compactions and rewrites that run.
    pub running_compactions: u64,
    /// Background jobs that have failed and are tried again.
    pub background_errors: u64,
    /// Bytes written for each byte that callers have written; 0 before the first write.
    pub write_amplification: f64,
}

/// Waits of writers for one reason.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_stall {
    /// The reason, a text of the statistics.
    pub reason: *const c_char,
    /// Number of waits.
    pub count: u64,
    /// Duration of all waits together, in microseconds.
    pub micros: u64,
}

/// One keyspace.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_keyspace_stats {
    /// Its name, a text of the statistics.
    pub name: *const c_char,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Entries in its memtables, tombstones included.
    pub memtable_entries: u64,
    /// Memtables that wait for their flush.
    pub sealed_memtables: u64,
    /// Bytes that compactions must still move before all levels are within their limits.
    pub debt_bytes: u64,
    /// Number of levels of its tree.
    pub levels: usize,
}

/// One level of the tree of a keyspace.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_level_stats {
    /// Its number.
    pub level: usize,
    /// Sorted runs.
    pub runs: usize,
    /// Tables.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones of single keys.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// How urgent a compaction of the level is; due from 1.
    pub score: f64,
}

/// One directory of the store.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct terrace_device_stats {
    /// The directory, a text of the statistics.
    pub dir: *const c_char,
    /// Bytes of the tables there.
    pub table_bytes: u64,
    /// Bytes that are free there.
    pub free_bytes: u64,
}

fn by_cause(counts: &engine::ByCause) -> terrace_by_cause {
    let engine::ByCause { wal, flush, compaction, rewrite, manifest, directory, reclaim, preallocate } =
        *counts;
    terrace_by_cause { wal, flush, compaction, rewrite, manifest, directory, reclaim, preallocate }
}

fn counters(stats: &Stats) -> terrace_counters {
    let Stats { user_reads: reads, read, cache, flush, compaction, space, .. } = stats;
    terrace_counters {
        user_bytes_written: stats.user_bytes_written,
        user_ops_written: stats.user_ops_written,
        gets: reads.gets,
        multi_get_keys: reads.multi_get_keys,
        found: reads.found,
        seeks: reads.seeks,
        steps: reads.steps,
        user_bytes_read: reads.bytes,
        written: by_cause(&stats.written),
        syncs: by_cause(&stats.syncs),
        read_by_gets: read.get,
        read_by_scans: read.scan,
        read_by_compactions: read.compaction,
        read_by_openings: read.open,
        cache_hits: cache.hits,
        cache_misses: cache.misses,
        cache_bytes: cache.bytes,
        cache_capacity: cache.capacity,
        flushes: flush.jobs,
        flush_bytes: flush.bytes,
        compactions: compaction.jobs,
        moves: compaction.moves,
        compaction_bytes_in: compaction.bytes_in,
        compaction_bytes_out: compaction.bytes_out,
        compaction_micros: compaction.micros,
        live_bytes: space.live_bytes,
        dead_bytes: space.dead_bytes,
        wal_bytes: space.wal_bytes,
        total_bytes: space.total_bytes,
        pack_files: space.pack_files,
        memtable_bytes: stats.memtable_bytes,
        last_seq: stats.last_seq,
        snapshots: stats.snapshots,
        running_flushes: stats.running_flushes,
        running_compactions: stats.running_compactions,
        background_errors: stats.background_errors,
        write_amplification: stats.write_amplification(),
    }
}

/// The element `index` of `all`.
fn element<'a, T>(all: &'a [T], index: usize, what: &str) -> Result<&'a T, Failure> {
    all.get(index).ok_or_else(|| Failure::argument(format!("there is no {what} {index}, only {}", all.len())))
}

fn pointer(texts: &[CString], index: usize) -> *const c_char {
    texts.get(index).map_or(std::ptr::null(), |text| text.as_ptr())
}

/// The statistics of the store as of now. Release them with terrace_stats_free().
///
/// # Safety
/// The handle is valid; `stats` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_read(
    db: *const terrace_db,
    stats: *mut *mut terrace_stats,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let read = unsafe { shared(db, "db") }?.db.stats();
        let made = terrace_stats {
            reasons: read.stalls.iter().map(|stall| c_text(stall.reason.as_bytes())).collect(),
            keyspaces: read.keyspaces.iter().map(|keyspace| c_text(keyspace.name.as_bytes())).collect(),
            devices: read
                .devices
                .iter()
                .map(|device| c_text(device.dir.as_os_str().as_encoded_bytes()))
                .collect(),
            stats: read,
        };
        // SAFETY: the caller's contract.
        unsafe { hand_over(stats, made, "stats") }
    })
}

/// Releases statistics, with the texts in them; nothing if they are NULL.
///
/// # Safety
/// They are NULL or from terrace_stats_read(), and are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_free(stats: *mut terrace_stats) {
    // SAFETY: the caller's contract.
    unsafe { release(stats) };
}

/// The counters and sizes.
///
/// # Safety
/// The statistics are valid; `counters` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_counters(
    stats: *const terrace_stats,
    counters: *mut terrace_counters,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let found = self::counters(&unsafe { shared(stats, "stats") }?.stats);
        // SAFETY: the caller's contract.
        unsafe { store(counters, found, "counters") }
    })
}

/// For how many reasons writers have waited.
///
/// # Safety
/// The statistics are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_stalls(stats: *const terrace_stats) -> usize {
    // SAFETY: the caller's contract.
    unsafe { &*stats }.stats.stalls.len()
}

/// The waits of writers for the reason with number `index`.
///
/// # Safety
/// The statistics are valid; `stall` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_stall(
    stats: *const terrace_stats,
    index: usize,
    stall: *mut terrace_stall,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let stats = unsafe { shared(stats, "stats") }?;
        let found = element(&stats.stats.stalls, index, "stall")?;
        let reason = pointer(&stats.reasons, index);
        let told = terrace_stall { reason, count: found.count, micros: found.micros };
        // SAFETY: the caller's contract.
        unsafe { store(stall, told, "stall") }
    })
}

/// How many keyspaces there are.
///
/// # Safety
/// The statistics are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_keyspaces(stats: *const terrace_stats) -> usize {
    // SAFETY: the caller's contract.
    unsafe { &*stats }.stats.keyspaces.len()
}

/// The keyspace with number `index`; "default" is the first.
///
/// # Safety
/// The statistics are valid; `keyspace` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_keyspace(
    stats: *const terrace_stats,
    index: usize,
    keyspace: *mut terrace_keyspace_stats,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let stats = unsafe { shared(stats, "stats") }?;
        let found = element(&stats.stats.keyspaces, index, "keyspace")?;
        let told = terrace_keyspace_stats {
            name: pointer(&stats.keyspaces, index),
            memtable_bytes: found.memtable_bytes,
            memtable_entries: found.memtable_entries,
            sealed_memtables: found.sealed_memtables,
            debt_bytes: found.debt_bytes,
            levels: found.shape.levels.len(),
        };
        // SAFETY: the caller's contract.
        unsafe { store(keyspace, told, "keyspace") }
    })
}

/// The level with number `level` of the keyspace with number `index`.
///
/// # Safety
/// The statistics are valid; `shape` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_level(
    stats: *const terrace_stats,
    index: usize,
    level: usize,
    shape: *mut terrace_level_stats,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let stats = unsafe { shared(stats, "stats") }?;
        let found =
            element(&element(&stats.stats.keyspaces, index, "keyspace")?.shape.levels, level, "level")?;
        let told = terrace_level_stats {
            level: found.level,
            runs: found.runs,
            tables: found.tables,
            bytes: found.bytes,
            entries: found.entries,
            tombstones: found.tombstones,
            range_tombstones: found.range_tombstones,
            score: found.score,
        };
        // SAFETY: the caller's contract.
        unsafe { store(shape, told, "shape") }
    })
}

/// How many directories the store has.
///
/// # Safety
/// The statistics are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_devices(stats: *const terrace_stats) -> usize {
    // SAFETY: the caller's contract.
    unsafe { &*stats }.stats.devices.len()
}

/// The directory with number `index`; the one with log and manifest is the first.
///
/// # Safety
/// The statistics are valid; `device` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_stats_device(
    stats: *const terrace_stats,
    index: usize,
    device: *mut terrace_device_stats,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let stats = unsafe { shared(stats, "stats") }?;
        let found = element(&stats.stats.devices, index, "device")?;
        let told = terrace_device_stats {
            dir: pointer(&stats.devices, index),
            table_bytes: found.table_bytes,
            free_bytes: found.free_bytes,
        };
        // SAFETY: the caller's contract.
        unsafe { store(device, told, "device") }
    })
}
