//! LevelDB by its C interface: tables of 64 MiB, which are quicker than its 2 MiB.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use terrace_bench::Result;

use super::c_api::{Api, CStore, Failure, Handle, NO_COMPRESSION, declare};
use super::{CACHE_BYTES, FILTER_BITS_PER_KEY, MEMTABLE_BYTES, OPEN_FILES_MAX, Sync, TABLE_BYTES};

declare!("leveldb", get);

unsafe extern "C" {
    fn leveldb_options_set_max_file_size(options: Handle, bytes: usize);
    fn leveldb_options_set_cache(options: Handle, cache: Handle);
    fn leveldb_options_set_filter_policy(options: Handle, policy: Handle);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Handle;
    fn leveldb_get(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_bytes: usize,
        value_bytes: *mut usize,
        failure: Failure,
    ) -> *mut u8;
}

/// Opens or creates the store in `path`; `checked` if checksums are to be verified when blocks are read, which LevelDB does
/// not do unless it is told to.
pub fn open(path: &Path, sync: Sync, checked: bool) -> Result<CStore> {
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed.
    unsafe {
        let options = options_create();
        leveldb_options_set_max_file_size(options, TABLE_BYTES);
        leveldb_options_set_cache(options, cache_create_lru(CACHE_BYTES));
        let filter = leveldb_filterpolicy_create_bloom(FILTER_BITS_PER_KEY.into());
        leveldb_options_set_filter_policy(options, filter);
        open_with(options, path, sync, checked)
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
            free(found.cast());
        }
        !found.is_null()
    }
}
