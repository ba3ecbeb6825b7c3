//! LevelDB by its C interface.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use anyhow::Result;

use super::c_api::{Api, CStore, Failure, Handle, c_path, declare};
use super::{FILTER_BITS_PER_KEY, OPEN_FILES_MAX, Opening, SeeValue, Store};

const NO_COMPRESSION: c_int = 0;

declare!("leveldb", get, None);

unsafe extern "C" {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_open(options: Handle, path: *const c_char, failure: Failure) -> Handle;
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

/// Version of the library.
pub fn version() -> String {
    // SAFETY: both calls only return a number.
    let (major, minor) = unsafe { (leveldb_major_version(), leveldb_minor_version()) };
    format!("{major}.{minor}")
}

/// Opens or creates the store in `path`, with tables of `table_bytes`; `checked` if checksums are to be verified when blocks
/// are read, which LevelDB does not do unless it is told to.
pub fn open(path: &Path, opening: &Opening, table_bytes: usize, checked: bool) -> Result<Box<dyn Store>> {
    let path = c_path(path)?;
    // SAFETY: every handle is the library's own, used as its header says, and never destroyed; `path` ends with a zero.
    unsafe {
        let options = options_create();
        leveldb_options_set_max_file_size(options, table_bytes);
        leveldb_options_set_cache(options, cache_create_lru(opening.cache_bytes));
        let filter = leveldb_filterpolicy_create_bloom(FILTER_BITS_PER_KEY.into());
        leveldb_options_set_filter_policy(options, filter);
        let [read_options, write_options] = prepare(options, opening, checked, NO_COMPRESSION);
        let db = API.checked(|failure| leveldb_open(options, path.as_ptr(), failure))?;
        let family = std::ptr::null_mut();
        Ok(Box::new(CStore { api: &API, db, family, read_options, write_options }))
    }
}

unsafe fn get(store: &CStore, key: &[u8], see: SeeValue<'_>, failure: Failure) -> bool {
    let mut bytes = 0;
    // SAFETY: the caller vouches for the handles; what is found is a copy of that many bytes, freed once.
    unsafe {
        let options = store.read_options;
        let found = leveldb_get(store.db, options, key.as_ptr(), key.len(), &raw mut bytes, failure);
        if !found.is_null() {
            see(std::slice::from_raw_parts(found, bytes));
            free(found.cast());
        }
        !found.is_null()
    }
}
