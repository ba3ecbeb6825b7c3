//! RocksDB by its C interface, as its tuning guide has it for two cores; values are read without a copy.

use std::ffi::{CStr, c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;

use anyhow::{Context, Result};

use super::c_api::{Api, CStore, Failure, Families, Handle, c_path, declare};
use super::{FILTER_BITS_PER_KEY, OPEN_FILES_MAX, Opening, SeeValue, Store, TABLE_BYTES};

/// Flushes and compactions at a time.
const BACKGROUND_JOBS: c_int = 2;

/// Bytes of a table between two requests to the operating system to write them back.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// What flushes and compactions may write in a second where a limit is set: a quarter of a SATA disk's rate, as the
/// tuning guide's example leaves most of the disk to clients.
const LIMITED_BYTES_PER_SECOND: i64 = 128 << 20;

/// Time after which the limiter grants anew, in microseconds, and one in how many grants a lower priority comes first: as the
/// library has them.
const REFILL_MICROS: i64 = 100_000;
const FAIRNESS: i32 = 10;

/// Blobs: from which size on values are put into blob files, which share of these, the oldest, is collected, and the share of
/// garbage in them that forces it.
const BLOB_BYTES_MIN: u64 = 1 << 10;
const BLOB_AGE_CUTOFF: c_double = 0.25;
const BLOB_FORCE_THRESHOLD: c_double = 0.5;

const NO_COMPRESSION: c_int = 0;
const LZ4_COMPRESSION: c_int = 4;

/// The column family that every store has.
const DEFAULT_FAMILY: &CStr = c"default";

declare!(
    "rocksdb",
    get,
    Some(Families { multi_get, destroy: rocksdb_column_family_handle_destroy, delete_range, flush })
);

unsafe extern "C" {
    fn rocksdb_open_column_families(
        options: Handle,
        path: *const c_char,
        count: c_int,
        names: *const *const c_char,
        family_options: *const Handle,
        families: *mut Handle,
        failure: Failure,
    ) -> Handle;
    fn rocksdb_column_family_handle_destroy(family: Handle);
    fn rocksdb_delete_range_cf(
        db: Handle,
        options: Handle,
        family: Handle,
        from: *const u8,
        from_bytes: usize,
        to: *const u8,
        to_bytes: usize,
        failure: Failure,
    );
    fn rocksdb_flushoptions_create() -> Handle;
    fn rocksdb_flushoptions_destroy(options: Handle);
    fn rocksdb_flush(db: Handle, options: Handle, failure: Failure);
    fn rocksdb_options_set_target_file_size_base(options: Handle, bytes: u64);
    fn rocksdb_options_set_max_background_jobs(options: Handle, jobs: c_int);
    fn rocksdb_options_set_bytes_per_sync(options: Handle, bytes: u64);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: Handle, value: c_uchar);
    fn rocksdb_options_set_enable_blob_files(options: Handle, value: c_uchar);
    fn rocksdb_options_set_min_blob_size(options: Handle, bytes: u64);
    fn rocksdb_options_set_blob_compression_type(options: Handle, compression: c_int);
    fn rocksdb_options_set_enable_blob_gc(options: Handle, value: c_uchar);
    fn rocksdb_options_set_blob_gc_age_cutoff(options: Handle, share: c_double);
    fn rocksdb_options_set_blob_gc_force_threshold(options: Handle, share: c_double);
    fn rocksdb_options_set_blob_cache(options: Handle, cache: Handle);
    fn rocksdb_options_set_ratelimiter(options: Handle, limiter: Handle);
    fn rocksdb_ratelimiter_create(bytes_per_second: i64, refill_micros: i64, fairness: i32) -> Handle;
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_block_cache(options: Handle, cache: Handle);
    fn rocksdb_block_based_options_set_filter_policy(options: Handle, policy: Handle);
    fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(options: Handle, value: c_uchar);
    fn rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
        options: Handle,
        value: c_uchar,
    );
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> Handle;
    fn rocksdb_get_pinned(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_bytes: usize,
        failure: Failure,
    ) -> Handle;
    fn rocksdb_batched_multi_get_cf(
        db: Handle,
        options: Handle,
        family: Handle,
        count: usize,
        keys: *const *const u8,
        key_bytes: *const usize,
        values: *mut Handle,
        failures: *mut *mut c_char,
        sorted: bool,
    );
    fn rocksdb_pinnableslice_value(slice: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
}

/// Version of the library, as it writes it into the store in `path`.
pub fn version(path: &Path) -> Result<String> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("OPTIONS-") {
            let text = std::fs::read_to_string(entry.path())?;
            let version = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
            return Ok(version.context("no version among RocksDB's options")?.to_owned());
        }
    }
    anyhow::bail!("{} has no options of RocksDB's", path.display())
}

/// What differs between the rows of RocksDB.
#[derive(Clone, Copy, Default)]
pub struct Shape {
    /// Tables are compressed with LZ4.
    pub compressed: bool,
    /// Flushes and compactions share a rate limiter.
    pub limited: bool,
    /// Large values lie in blob files.
    pub blobs: bool,
}

/// Puts large values into blob files, which share `cache` with blocks and are collected.
///
/// # Safety
/// Both handles are the library's own, and never destroyed.
unsafe fn with_blobs(options: Handle, cache: Handle) {
    // SAFETY: the caller vouches for the handles.
    unsafe {
        rocksdb_options_set_enable_blob_files(options, 1);
        rocksdb_options_set_min_blob_size(options, BLOB_BYTES_MIN);
        rocksdb_options_set_blob_compression_type(options, NO_COMPRESSION);
        rocksdb_options_set_enable_blob_gc(options, 1);
        rocksdb_options_set_blob_gc_age_cutoff(options, BLOB_AGE_CUTOFF);
        rocksdb_options_set_blob_gc_force_threshold(options, BLOB_FORCE_THRESHOLD);
        rocksdb_options_set_blob_cache(options, cache);
    }
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, opening: &Opening, shape: Shape) -> Result<Box<dyn Store>> {
    let path = c_path(path)?;
    let compression = if shape.compressed { LZ4_COMPRESSION } else { NO_COMPRESSION };
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed; `path` ends with a zero.
    unsafe {
        let table = rocksdb_block_based_options_create();
        let cache = cache_create_lru(opening.cache_bytes);
        rocksdb_block_based_options_set_block_cache(table, cache);
        let filter = rocksdb_filterpolicy_create_bloom_full(FILTER_BITS_PER_KEY.into());
        rocksdb_block_based_options_set_filter_policy(table, filter);
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
        let options = options_create();
        rocksdb_options_set_block_based_table_factory(options, table);
        rocksdb_options_set_target_file_size_base(options, TABLE_BYTES as u64);
        rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
        rocksdb_options_set_bytes_per_sync(options, BYTES_PER_SYNC);
        rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
        if shape.blobs {
            with_blobs(options, cache);
        }
        if shape.limited {
            let limiter = rocksdb_ratelimiter_create(LIMITED_BYTES_PER_SECOND, REFILL_MICROS, FAIRNESS);
            rocksdb_options_set_ratelimiter(options, limiter);
        }
        let [read_options, write_options] = prepare(options, opening, true, compression);
        let (name, mut family) = (DEFAULT_FAMILY.as_ptr(), std::ptr::null_mut());
        let db = API.checked(|failure| {
            let (names, families) = (&raw const name, &raw mut family);
            rocksdb_open_column_families(
                options,
                path.as_ptr(),
                1,
                names,
                &raw const options,
                families,
                failure,
            )
        })?;
        Ok(Box::new(CStore { api: &API, db, family, read_options, write_options }))
    }
}

/// Shows what is in `slice` and gives it back; whether there is something.
unsafe fn show(slice: Handle, see: SeeValue<'_>) -> bool {
    if slice.is_null() {
        return false;
    }
    let mut bytes = 0;
    // SAFETY: the caller vouches for the slice, which points to that many bytes until it is destroyed, once.
    unsafe {
        let start = rocksdb_pinnableslice_value(slice, &raw mut bytes);
        see(std::slice::from_raw_parts(start, bytes));
        rocksdb_pinnableslice_destroy(slice);
    }
    true
}

unsafe fn get(store: &CStore, key: &[u8], see: SeeValue<'_>, failure: Failure) -> bool {
    // SAFETY: the caller vouches for the handles; the library's slice is shown once.
    unsafe { show(rocksdb_get_pinned(store.db, store.read_options, key.as_ptr(), key.len(), failure), see) }
}

unsafe fn delete_range(store: &CStore, from: &[u8], to: &[u8], failure: Failure) {
    let (db, options, family) = (store.db, store.write_options, store.family);
    let ([from, to], bytes) = ([from.as_ptr(), to.as_ptr()], [from.len(), to.len()]);
    // SAFETY: the caller vouches for the handles; the library copies both keys before it returns.
    unsafe { rocksdb_delete_range_cf(db, options, family, from, bytes[0], to, bytes[1], failure) };
}

/// A flush waits by default.
unsafe fn flush(store: &CStore, failure: Failure) {
    // SAFETY: the caller vouches for the handle; the options are destroyed once, after their only use.
    unsafe {
        let options = rocksdb_flushoptions_create();
        rocksdb_flush(store.db, options, failure);
        rocksdb_flushoptions_destroy(options);
    }
}

unsafe fn multi_get(store: &CStore, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
    let starts: Vec<*const u8> = keys.iter().map(|key| key.as_ptr()).collect();
    let bytes: Vec<usize> = keys.iter().map(|key| key.len()).collect();
    let mut values = vec![std::ptr::null_mut(); keys.len()];
    let mut failures = vec![std::ptr::null_mut(); keys.len()];
    // SAFETY: the caller vouches for the handles; all four arrays are as long as the count; each slice is shown once.
    unsafe {
        let (db, options, family) = (store.db, store.read_options, store.family);
        let (values_to, failures_to) = (values.as_mut_ptr(), failures.as_mut_ptr());
        rocksdb_batched_multi_get_cf(
            db,
            options,
            family,
            keys.len(),
            starts.as_ptr(),
            bytes.as_ptr(),
            values_to,
            failures_to,
            false,
        );
        let found = values.into_iter().filter(|&value| show(value, see)).count();
        failures.into_iter().try_for_each(|failure| store.api.failed(failure))?;
        Ok(found)
    }
}
