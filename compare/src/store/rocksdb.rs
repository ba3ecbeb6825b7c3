//! RocksDB by its C interface, with two background jobs; values are read without a copy of the library's own.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;

use terrace_bench::Result;

use super::c_api::{Api, CStore, Failure, Handle};
use super::{CACHE_BYTES, FILTER_BITS_PER_KEY, MEMTABLE_BYTES, OPEN_FILES_MAX, Sync, TABLE_BYTES};

/// No compression.
const NO_COMPRESSION: c_int = 0;

/// Flushes and compactions at a time.
const BACKGROUND_JOBS: c_int = 2;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, value: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn rocksdb_options_set_target_file_size_base(options: Handle, bytes: u64);
    fn rocksdb_options_set_max_open_files(options: Handle, files: c_int);
    fn rocksdb_options_set_max_background_jobs(options: Handle, jobs: c_int);
    fn rocksdb_options_set_compression(options: Handle, compression: c_int);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_block_cache(options: Handle, cache: Handle);
    fn rocksdb_block_based_options_set_filter_policy(options: Handle, policy: Handle);
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> Handle;
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_set_sync(options: Handle, value: c_uchar);
    fn rocksdb_open(options: Handle, path: *const c_char, failure: Failure) -> Handle;
    fn rocksdb_close(db: Handle);
    fn rocksdb_put(
        db: Handle,
        options: Handle,
        k: *const u8,
        kn: usize,
        v: *const u8,
        vn: usize,
        failure: Failure,
    );
    fn rocksdb_get_pinned(db: Handle, options: Handle, k: *const u8, kn: usize, failure: Failure) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
    fn rocksdb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_seek(iter: Handle, k: *const u8, kn: usize);
    fn rocksdb_iter_valid(iter: Handle) -> c_uchar;
    fn rocksdb_iter_next(iter: Handle);
    fn rocksdb_iter_key(iter: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_value(iter: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_get_error(iter: Handle, failure: Failure);
    fn rocksdb_iter_destroy(iter: Handle);
    fn rocksdb_free(memory: *mut c_void);
}

static API: Api = Api {
    engine: "rocksdb",
    get,
    put: rocksdb_put,
    create_iterator: rocksdb_create_iterator,
    iter_seek: rocksdb_iter_seek,
    iter_valid: rocksdb_iter_valid,
    iter_next: rocksdb_iter_next,
    iter_key: rocksdb_iter_key,
    iter_value: rocksdb_iter_value,
    iter_get_error: rocksdb_iter_get_error,
    iter_destroy: rocksdb_iter_destroy,
    close: rocksdb_close,
    free: rocksdb_free,
};

/// Opens or creates the store in `path`.
pub fn open(path: &Path, sync: Sync) -> Result<CStore> {
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed.
    unsafe {
        let table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(CACHE_BYTES));
        let filter = rocksdb_filterpolicy_create_bloom_full(FILTER_BITS_PER_KEY.into());
        rocksdb_block_based_options_set_filter_policy(table, filter);
        let options = rocksdb_options_create();
        rocksdb_options_set_block_based_table_factory(options, table);
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
        rocksdb_options_set_target_file_size_base(options, TABLE_BYTES as u64);
        rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
        rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
        rocksdb_options_set_compression(options, NO_COMPRESSION);
        let write_options = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(write_options, u8::from(sync == Sync::EveryPut));
        CStore::open(&API, rocksdb_open, path, [options, rocksdb_readoptions_create(), write_options])
    }
}

unsafe fn get(db: Handle, options: Handle, key: &[u8], value: &mut Vec<u8>, failure: Failure) -> bool {
    let mut bytes = 0;
    // SAFETY: the caller vouches for the handles; what is found stays in place until it is destroyed, once.
    unsafe {
        let found = rocksdb_get_pinned(db, options, key.as_ptr(), key.len(), failure);
        value.clear();
        if !found.is_null() {
            let start = rocksdb_pinnableslice_value(found, &raw mut bytes);
            value.extend_from_slice(std::slice::from_raw_parts(start, bytes));
            rocksdb_pinnableslice_destroy(found);
        }
        !found.is_null()
    }
}
