//! LevelDB by its C interface: tables of 64 MiB, which are quicker than its 2 MiB.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use terrace_bench::Result;

use super::c_api::{Api, CStore, Failure, Handle};
use super::{CACHE_BYTES, FILTER_BITS_PER_KEY, MEMTABLE_BYTES, OPEN_FILES_MAX, Sync, TABLE_BYTES};

/// No compression.
const NO_COMPRESSION: c_int = 0;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_options_create() -> Handle;
    fn leveldb_options_set_create_if_missing(options: Handle, value: c_uchar);
    fn leveldb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn leveldb_options_set_max_file_size(options: Handle, bytes: usize);
    fn leveldb_options_set_max_open_files(options: Handle, files: c_int);
    fn leveldb_options_set_compression(options: Handle, compression: c_int);
    fn leveldb_options_set_cache(options: Handle, cache: Handle);
    fn leveldb_options_set_filter_policy(options: Handle, policy: Handle);
    fn leveldb_cache_create_lru(bytes: usize) -> Handle;
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Handle;
    fn leveldb_readoptions_create() -> Handle;
    fn leveldb_writeoptions_create() -> Handle;
    fn leveldb_writeoptions_set_sync(options: Handle, value: c_uchar);
    fn leveldb_open(options: Handle, path: *const c_char, failure: Failure) -> Handle;
    fn leveldb_close(db: Handle);
    fn leveldb_put(
        db: Handle,
        options: Handle,
        k: *const u8,
        kn: usize,
        v: *const u8,
        vn: usize,
        failure: Failure,
    );
    fn leveldb_get(
        db: Handle,
        options: Handle,
        k: *const u8,
        kn: usize,
        vn: *mut usize,
        failure: Failure,
    ) -> *mut u8;
    fn leveldb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn leveldb_iter_seek(iter: Handle, k: *const u8, kn: usize);
    fn leveldb_iter_valid(iter: Handle) -> c_uchar;
    fn leveldb_iter_next(iter: Handle);
    fn leveldb_iter_key(iter: Handle, bytes: *mut usize) -> *const u8;
    fn leveldb_iter_value(iter: Handle, bytes: *mut usize) -> *const u8;
    fn leveldb_iter_get_error(iter: Handle, failure: Failure);
    fn leveldb_iter_destroy(iter: Handle);
    fn leveldb_free(memory: *mut c_void);
}

static API: Api = Api {
    engine: "leveldb",
    get,
    put: leveldb_put,
    create_iterator: leveldb_create_iterator,
    iter_seek: leveldb_iter_seek,
    iter_valid: leveldb_iter_valid,
    iter_next: leveldb_iter_next,
    iter_key: leveldb_iter_key,
    iter_value: leveldb_iter_value,
    iter_get_error: leveldb_iter_get_error,
    iter_destroy: leveldb_iter_destroy,
    close: leveldb_close,
    free: leveldb_free,
};

/// Opens or creates the store in `path`.
pub fn open(path: &Path, sync: Sync) -> Result<CStore> {
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed.
    unsafe {
        let options = leveldb_options_create();
        leveldb_options_set_create_if_missing(options, 1);
        leveldb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
        leveldb_options_set_max_file_size(options, TABLE_BYTES);
        leveldb_options_set_max_open_files(options, OPEN_FILES_MAX);
        leveldb_options_set_compression(options, NO_COMPRESSION);
        leveldb_options_set_cache(options, leveldb_cache_create_lru(CACHE_BYTES));
        leveldb_options_set_filter_policy(
            options,
            leveldb_filterpolicy_create_bloom(FILTER_BITS_PER_KEY.into()),
        );
        let write_options = leveldb_writeoptions_create();
        leveldb_writeoptions_set_sync(write_options, u8::from(sync == Sync::EveryPut));
        CStore::open(&API, leveldb_open, path, [options, leveldb_readoptions_create(), write_options])
    }
}

unsafe fn get(db: Handle, options: Handle, key: &[u8], value: &mut Vec<u8>, failure: Failure) -> bool {
    let mut bytes = 0;
    // SAFETY: the caller vouches for the handles; what is found is a copy of that many bytes, freed once.
    unsafe {
        let found = leveldb_get(db, options, key.as_ptr(), key.len(), &raw mut bytes, failure);
        value.clear();
        if !found.is_null() {
            value.extend_from_slice(std::slice::from_raw_parts(found, bytes));
            leveldb_free(found.cast());
        }
        !found.is_null()
    }
}
