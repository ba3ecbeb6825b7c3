//! RocksDB by its C interface, with two background jobs; values are read without a copy of the library's own.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;

use terrace_bench::Result;

use super::c_api::{Api, CStore, Failure, Handle, NO_COMPRESSION, declare};
use super::{CACHE_BYTES, FILTER_BITS_PER_KEY, MEMTABLE_BYTES, OPEN_FILES_MAX, Sync, TABLE_BYTES};

/// Flushes and compactions at a time.
const BACKGROUND_JOBS: c_int = 2;

declare!("rocksdb", get);

unsafe extern "C" {
    fn rocksdb_options_set_target_file_size_base(options: Handle, bytes: u64);
    fn rocksdb_options_set_max_background_jobs(options: Handle, jobs: c_int);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_block_cache(options: Handle, cache: Handle);
    fn rocksdb_block_based_options_set_filter_policy(options: Handle, policy: Handle);
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> Handle;
    fn rocksdb_get_pinned(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_bytes: usize,
        failure: Failure,
    ) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
}

/// Opens or creates the store in `path`.
pub fn open(path: &Path, sync: Sync) -> Result<CStore> {
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed.
    unsafe {
        let table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, cache_create_lru(CACHE_BYTES));
        let filter = rocksdb_filterpolicy_create_bloom_full(FILTER_BITS_PER_KEY.into());
        rocksdb_block_based_options_set_filter_policy(table, filter);
        let options = options_create();
        rocksdb_options_set_block_based_table_factory(options, table);
        rocksdb_options_set_target_file_size_base(options, TABLE_BYTES as u64);
        rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
        open_with(options, path, sync, true)
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
