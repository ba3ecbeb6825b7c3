//! What the C interfaces of LevelDB and RocksDB have in common, which is nearly everything: the same calls, the same
//! conventions, another prefix.
//!
//! [`declare`] says what is common to both once for each; only options that one of them has, and how it reads, are its own.
//!
//! Handles are created once and only destroyed by [`CStore::close`]; both libraries let any number of threads use an
//! open store and its options at a time.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use terrace_bench::Result;
use terrace_bench::store::{Counters, Records, Store};

/// Says to either library not to compress.
pub const NO_COMPRESSION: c_int = 0;

/// A handle of the library.
pub type Handle = *mut c_void;

/// Where a call leaves a message that it allocated.
pub type Failure = *mut *mut c_char;

/// The calls of one library.
pub struct Api {
    pub engine: &'static str,
    pub get:
        unsafe fn(db: Handle, options: Handle, key: &[u8], value: &mut Vec<u8>, failure: Failure) -> bool,
    pub put: unsafe extern "C" fn(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
        failure: Failure,
    ),
    pub create_iterator: unsafe extern "C" fn(db: Handle, options: Handle) -> Handle,
    pub iter_seek: unsafe extern "C" fn(iter: Handle, key: *const u8, key_bytes: usize),
    pub iter_valid: unsafe extern "C" fn(iter: Handle) -> c_uchar,
    pub iter_next: unsafe extern "C" fn(iter: Handle),
    pub iter_key: unsafe extern "C" fn(iter: Handle, bytes: *mut usize) -> *const u8,
    pub iter_value: unsafe extern "C" fn(iter: Handle, bytes: *mut usize) -> *const u8,
    pub iter_get_error: unsafe extern "C" fn(iter: Handle, failure: Failure),
    pub iter_destroy: unsafe extern "C" fn(iter: Handle),
    pub close: unsafe extern "C" fn(db: Handle),
    pub free: unsafe extern "C" fn(memory: *mut c_void),
}

/// Declares the calls of the library whose names begin with `$library`, an [`Api`] of them with `$get`, and `open_with`.
macro_rules! declare {
    ($library:literal, $get:ident) => {
        #[link(name = $library)]
        unsafe extern "C" {
            #[link_name = concat!($library, "_options_create")]
            fn options_create() -> Handle;
            #[link_name = concat!($library, "_options_set_create_if_missing")]
            fn options_set_create_if_missing(options: Handle, value: c_uchar);
            #[link_name = concat!($library, "_options_set_write_buffer_size")]
            fn options_set_write_buffer_size(options: Handle, bytes: usize);
            #[link_name = concat!($library, "_options_set_max_open_files")]
            fn options_set_max_open_files(options: Handle, files: c_int);
            #[link_name = concat!($library, "_options_set_compression")]
            fn options_set_compression(options: Handle, compression: c_int);
            #[link_name = concat!($library, "_cache_create_lru")]
            fn cache_create_lru(bytes: usize) -> Handle;
            #[link_name = concat!($library, "_readoptions_create")]
            fn readoptions_create() -> Handle;
            #[link_name = concat!($library, "_readoptions_set_verify_checksums")]
            fn readoptions_set_verify_checksums(options: Handle, value: c_uchar);
            #[link_name = concat!($library, "_writeoptions_create")]
            fn writeoptions_create() -> Handle;
            #[link_name = concat!($library, "_writeoptions_set_sync")]
            fn writeoptions_set_sync(options: Handle, value: c_uchar);
            #[link_name = concat!($library, "_open")]
            fn open_store(options: Handle, path: *const c_char, failure: Failure) -> Handle;
            #[link_name = concat!($library, "_close")]
            fn close(db: Handle);
            #[link_name = concat!($library, "_put")]
            fn put(
                db: Handle,
                options: Handle,
                key: *const u8,
                key_bytes: usize,
                value: *const u8,
                value_bytes: usize,
                failure: Failure,
            );
            #[link_name = concat!($library, "_create_iterator")]
            fn create_iterator(db: Handle, options: Handle) -> Handle;
            #[link_name = concat!($library, "_iter_seek")]
            fn iter_seek(iter: Handle, key: *const u8, key_bytes: usize);
            #[link_name = concat!($library, "_iter_valid")]
            fn iter_valid(iter: Handle) -> c_uchar;
            #[link_name = concat!($library, "_iter_next")]
            fn iter_next(iter: Handle);
            #[link_name = concat!($library, "_iter_key")]
            fn iter_key(iter: Handle, bytes: *mut usize) -> *const u8;
            #[link_name = concat!($library, "_iter_value")]
            fn iter_value(iter: Handle, bytes: *mut usize) -> *const u8;
            #[link_name = concat!($library, "_iter_get_error")]
            fn iter_get_error(iter: Handle, failure: Failure);
            #[link_name = concat!($library, "_iter_destroy")]
            fn iter_destroy(iter: Handle);
            #[link_name = concat!($library, "_free")]
            fn free(memory: *mut c_void);
        }

        static API: Api = Api {
            engine: $library,
            get: $get,
            put,
            create_iterator,
            iter_seek,
            iter_valid,
            iter_next,
            iter_key,
            iter_value,
            iter_get_error,
            iter_destroy,
            close,
            free,
        };

        /// Opens or creates the store in `path` with `options`, once those are set that both libraries have.
        ///
        /// # Safety
        /// `options` are the library's own, and never destroyed.
        unsafe fn open_with(options: Handle, path: &Path, sync: Sync, checked: bool) -> Result<CStore> {
            // SAFETY: the caller vouches for `options`; every other handle is the library's own and never destroyed.
            unsafe {
                options_set_create_if_missing(options, 1);
                options_set_write_buffer_size(options, MEMTABLE_BYTES);
                options_set_max_open_files(options, OPEN_FILES_MAX);
                options_set_compression(options, NO_COMPRESSION);
                let read_options = readoptions_create();
                readoptions_set_verify_checksums(read_options, checked.into());
                let write_options = writeoptions_create();
                writeoptions_set_sync(write_options, u8::from(sync == Sync::EveryPut));
                CStore::open(&API, open_store, path, [options, read_options, write_options])
            }
        }
    };
}

pub(super) use declare;

/// An open store of one of the libraries.
pub struct CStore {
    api: &'static Api,
    db: Handle,
    read_options: Handle,
    write_options: Handle,
}

// SAFETY: both libraries document that an open store and its options may be used by any threads at a time.
unsafe impl Send for CStore {}
// SAFETY: as above.
unsafe impl Sync for CStore {}

impl CStore {
    /// Opens the store in `path` with `open`, the library's own call.
    ///
    /// # Safety
    /// The handles are the library's of `api`, live until the process ends, and fit `open`.
    pub unsafe fn open(
        api: &'static Api,
        open: unsafe extern "C" fn(options: Handle, path: *const c_char, failure: Failure) -> Handle,
        path: &Path,
        [options, read_options, write_options]: [Handle; 3],
    ) -> Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: `path` ends with a zero and outlives the call; the handles are the caller's promise.
        let db = api.checked(|failure| unsafe { open(options, path.as_ptr(), failure) })?;
        Ok(Self { api, db, read_options, write_options })
    }
}

impl Api {
    /// Makes a call, and an error of the message that it left.
    fn checked<T>(&self, call: impl FnOnce(Failure) -> T) -> Result<T> {
        let mut failure = std::ptr::null_mut();
        let returned = call(&raw mut failure);
        if failure.is_null() {
            return Ok(returned);
        }
        // SAFETY: the library left a string that ends with a zero and is the caller's to free.
        let message = unsafe { CStr::from_ptr(failure).to_string_lossy().into_owned() };
        // SAFETY: as above; it is not used again.
        unsafe { (self.free)(failure.cast()) };
        Err(message.into())
    }
}

impl Store for CStore {
    fn engine(&self) -> &str {
        self.api.engine
    }

    fn profile(&self) -> &str {
        "compare"
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        // SAFETY: the handles are open.
        self.api.checked(|failure| unsafe { (self.api.get)(self.db, self.read_options, key, value, failure) })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the handles are open; the library copies key and value before it returns.
        self.api.checked(|failure| unsafe {
            let (key_bytes, value_bytes) = (key.len(), value.len());
            (self.api.put)(
                self.db,
                self.write_options,
                key.as_ptr(),
                key_bytes,
                value.as_ptr(),
                value_bytes,
                failure,
            );
        })
    }

    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()> {
        let api = self.api;
        // SAFETY: the iterator is destroyed once, after its last use; key and value are valid until the next step, and
        // are copied before it.
        unsafe {
            let iter = (api.create_iterator)(self.db, self.read_options);
            (api.iter_seek)(iter, from.as_ptr(), from.len());
            for _ in 0..limit {
                if (api.iter_valid)(iter) == 0 {
                    break;
                }
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = (api.iter_key)(iter, &raw mut key_bytes);
                let value = (api.iter_value)(iter, &raw mut value_bytes);
                records.push(
                    std::slice::from_raw_parts(key, key_bytes),
                    std::slice::from_raw_parts(value, value_bytes),
                );
                (api.iter_next)(iter);
            }
            let outcome = api.checked(|failure| (api.iter_get_error)(iter, failure));
            (api.iter_destroy)(iter);
            outcome
        }
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: nobody else holds the store, and it is not used again.
        unsafe { (self.api.close)(self.db) };
        Ok(())
    }
}
