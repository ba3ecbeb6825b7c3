//! What the C interfaces of LevelDB and RocksDB have in common, which is nearly everything: the same calls, the same
//! conventions, another prefix.
//!
//! [`declare`] says what is common to both once for each; only options that one of them has, and how it reads, are its own.
//!
//! Handles are created once and only destroyed by [`CStore::close`]; both libraries let any number of threads use an
//! open store and its options at a time.

use std::ffi::{CStr, CString, c_char, c_uchar, c_void};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Result, anyhow};

use super::{Direction, See, SeeValue, Store};

/// A handle of the library.
pub type Handle = *mut c_void;

/// Where a call leaves a message that it allocated.
pub type Failure = *mut *mut c_char;

/// The calls of one library.
pub struct Api {
    /// Shows the value of a key; whether there is one.
    pub get: unsafe fn(store: &CStore, key: &[u8], see: SeeValue<'_>, failure: Failure) -> bool,
    pub families: Option<Families>,
    pub put: unsafe extern "C" fn(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
        failure: Failure,
    ),
    pub delete:
        unsafe extern "C" fn(db: Handle, options: Handle, key: *const u8, key_bytes: usize, failure: Failure),
    pub compact_range:
        unsafe extern "C" fn(db: Handle, from: *const u8, from_bytes: usize, to: *const u8, to_bytes: usize),
    pub write: unsafe extern "C" fn(db: Handle, options: Handle, batch: Handle, failure: Failure),
    pub writebatch_create: unsafe extern "C" fn() -> Handle,
    pub writebatch_put: unsafe extern "C" fn(
        batch: Handle,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
    ),
    pub writebatch_destroy: unsafe extern "C" fn(batch: Handle),
    pub create_iterator: unsafe extern "C" fn(db: Handle, options: Handle) -> Handle,
    pub iter_seek: unsafe extern "C" fn(iter: Handle, key: *const u8, key_bytes: usize),
    pub iter_seek_to_last: unsafe extern "C" fn(iter: Handle),
    pub iter_valid: unsafe extern "C" fn(iter: Handle) -> c_uchar,
    pub iter_next: unsafe extern "C" fn(iter: Handle),
    pub iter_prev: unsafe extern "C" fn(iter: Handle),
    pub iter_key: unsafe extern "C" fn(iter: Handle, bytes: *mut usize) -> *const u8,
    pub iter_value: unsafe extern "C" fn(iter: Handle, bytes: *mut usize) -> *const u8,
    pub iter_get_error: unsafe extern "C" fn(iter: Handle, failure: Failure),
    pub iter_destroy: unsafe extern "C" fn(iter: Handle),
    pub close: unsafe extern "C" fn(db: Handle),
    pub free: unsafe extern "C" fn(memory: *mut c_void),
}

/// What RocksDB alone has: column families with lookups of many keys and deletes of ranges, and a flush.
pub struct Families {
    /// Shows the values of many keys; how many have one.
    pub multi_get: unsafe fn(store: &CStore, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize>,
    pub destroy: unsafe extern "C" fn(family: Handle),
    /// Deletes all keys from the first one to before the second.
    pub delete_range: unsafe fn(store: &CStore, from: &[u8], to: &[u8], failure: Failure),
    /// Moves all that is in memory to tables.
    pub flush: unsafe fn(store: &CStore, failure: Failure),
}

/// Declares the calls of the library whose names begin with `$library`, an [`Api`] of them with `$get` and `$families`,
/// and `prepare`.
macro_rules! declare {
    ($library:literal, $get:expr, $families:expr) => {
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
            #[link_name = concat!($library, "_delete")]
            fn delete(db: Handle, options: Handle, key: *const u8, key_bytes: usize, failure: Failure);
            #[link_name = concat!($library, "_compact_range")]
            fn compact_range(db: Handle, from: *const u8, from_bytes: usize, to: *const u8, to_bytes: usize);
            #[link_name = concat!($library, "_write")]
            fn write(db: Handle, options: Handle, batch: Handle, failure: Failure);
            #[link_name = concat!($library, "_writebatch_create")]
            fn writebatch_create() -> Handle;
            #[link_name = concat!($library, "_writebatch_put")]
            fn writebatch_put(
                batch: Handle,
                key: *const u8,
                key_bytes: usize,
                value: *const u8,
                value_bytes: usize,
            );
            #[link_name = concat!($library, "_writebatch_destroy")]
            fn writebatch_destroy(batch: Handle);
            #[link_name = concat!($library, "_create_iterator")]
            fn create_iterator(db: Handle, options: Handle) -> Handle;
            #[link_name = concat!($library, "_iter_seek")]
            fn iter_seek(iter: Handle, key: *const u8, key_bytes: usize);
            #[link_name = concat!($library, "_iter_seek_to_last")]
            fn iter_seek_to_last(iter: Handle);
            #[link_name = concat!($library, "_iter_valid")]
            fn iter_valid(iter: Handle) -> c_uchar;
            #[link_name = concat!($library, "_iter_next")]
            fn iter_next(iter: Handle);
            #[link_name = concat!($library, "_iter_prev")]
            fn iter_prev(iter: Handle);
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
            get: $get,
            families: $families,
            put,
            delete,
            compact_range,
            write,
            writebatch_create,
            writebatch_put,
            writebatch_destroy,
            create_iterator,
            iter_seek,
            iter_seek_to_last,
            iter_valid,
            iter_next,
            iter_prev,
            iter_key,
            iter_value,
            iter_get_error,
            iter_destroy,
            close,
            free,
        };

        /// Sets those of `options` that both libraries have, and makes options for reads and writes to go with them.
        ///
        /// # Safety
        /// `options` are the library's own, and never destroyed.
        unsafe fn prepare(
            options: Handle,
            opening: &Opening,
            checked: bool,
            compression: c_int,
        ) -> [Handle; 2] {
            // SAFETY: the caller vouches for `options`; every other handle is the library's own and never destroyed.
            unsafe {
                options_set_create_if_missing(options, 1);
                options_set_write_buffer_size(options, opening.memtable_bytes);
                options_set_max_open_files(options, OPEN_FILES_MAX);
                options_set_compression(options, compression);
                let read_options = readoptions_create();
                readoptions_set_verify_checksums(read_options, checked.into());
                let write_options = writeoptions_create();
                writeoptions_set_sync(write_options, opening.synced().into());
                [read_options, write_options]
            }
        }
    };
}

pub(super) use declare;

/// An open store of one of the libraries.
pub struct CStore {
    pub api: &'static Api,
    pub db: Handle,
    /// The one column family, in RocksDB; null otherwise.
    pub family: Handle,
    pub read_options: Handle,
    pub write_options: Handle,
}

// SAFETY: both libraries document that an open store and its options may be used by any threads at a time.
unsafe impl Send for CStore {}
// SAFETY: as above.
unsafe impl Sync for CStore {}

/// `path` as the libraries take it.
pub fn c_path(path: &Path) -> Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

impl Api {
    /// Makes a call, and an error of the message that it left.
    pub fn checked<T>(&self, call: impl FnOnce(Failure) -> T) -> Result<T> {
        let mut failure = std::ptr::null_mut();
        let returned = call(&raw mut failure);
        self.failed(failure)?;
        Ok(returned)
    }

    /// An error of the message that a call left, unless it left none.
    pub fn failed(&self, failure: *mut c_char) -> Result<()> {
        if failure.is_null() {
            return Ok(());
        }
        // SAFETY: the library left a string that ends with a zero and is the caller's to free.
        let message = unsafe { CStr::from_ptr(failure).to_string_lossy().into_owned() };
        // SAFETY: as above; it is not used again.
        unsafe { (self.free)(failure.cast()) };
        Err(anyhow!(message))
    }
}

/// An iterator of a library, destroyed when it is dropped.
struct CIter<'a> {
    api: &'a Api,
    handle: Handle,
}

impl CIter<'_> {
    /// Goes to the first key at or behind `from`, or to the last one at or before it.
    fn seek(&self, from: &[u8], direction: Direction) {
        // SAFETY: the handle is open; the library copies the key.
        unsafe { (self.api.iter_seek)(self.handle, from.as_ptr(), from.len()) };
        if direction == Direction::Backward {
            match self.row() {
                Some((key, _)) if key == from => {}
                Some(_) => self.step(Direction::Backward),
                // SAFETY: the handle is open.
                None => unsafe { (self.api.iter_seek_to_last)(self.handle) },
            }
        }
    }

    /// Key and value here, valid until the next step.
    fn row(&self) -> Option<(&[u8], &[u8])> {
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: the handle is open; where it is valid, both point to that many bytes, which stay until the next step.
        unsafe {
            if (self.api.iter_valid)(self.handle) == 0 {
                return None;
            }
            let key = (self.api.iter_key)(self.handle, &raw mut key_bytes);
            let value = (self.api.iter_value)(self.handle, &raw mut value_bytes);
            let of = |start, bytes| std::slice::from_raw_parts(start, bytes);
            Some((of(key, key_bytes), of(value, value_bytes)))
        }
    }

    /// Goes on; must be at a row.
    fn step(&self, direction: Direction) {
        let step = match direction {
            Direction::Forward => self.api.iter_next,
            Direction::Backward => self.api.iter_prev,
        };
        // SAFETY: the handle is open and at a row.
        unsafe { step(self.handle) };
    }
}

impl Drop for CIter<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle, and it is not used again.
        unsafe { (self.api.iter_destroy)(self.handle) };
    }
}

impl Store for CStore {
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool> {
        // SAFETY: the handles are open.
        self.api.checked(|failure| unsafe { (self.api.get)(self, key, see, failure) })
    }

    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        match &self.api.families {
            // SAFETY: the handles are open.
            Some(families) => unsafe { (families.multi_get)(self, keys, see) },
            None => keys.iter().try_fold(0, |found, key| Ok(found + usize::from(self.get(key, see)?))),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (db, options) = (self.db, self.write_options);
        // SAFETY: the handles are open; the library copies key and value before it returns.
        self.api.checked(|failure| unsafe {
            (self.api.put)(db, options, key.as_ptr(), key.len(), value.as_ptr(), value.len(), failure);
        })
    }

    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()> {
        let api = self.api;
        // SAFETY: the handles are open, the batch is destroyed once, after its last use; the library copies what is put.
        unsafe {
            let batch = (api.writebatch_create)();
            for (key, value) in records {
                (api.writebatch_put)(batch, key.as_ptr(), key.len(), value.as_ptr(), value.len());
            }
            let outcome = api.checked(|failure| (api.write)(self.db, self.write_options, batch, failure));
            (api.writebatch_destroy)(batch);
            outcome
        }
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let (db, options) = (self.db, self.write_options);
        // SAFETY: the handles are open; the library copies the key before it returns.
        self.api.checked(|failure| unsafe {
            (self.api.delete)(db, options, key.as_ptr(), key.len(), failure);
        })
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let Some(families) = &self.api.families else { return Ok(false) };
        // SAFETY: the handles are open.
        self.api.checked(|failure| unsafe { (families.delete_range)(self, from, to, failure) })?;
        Ok(true)
    }

    fn flush(&self) -> Result<bool> {
        let Some(families) = &self.api.families else { return Ok(false) };
        // SAFETY: the handles are open.
        self.api.checked(|failure| unsafe { (families.flush)(self, failure) })?;
        Ok(true)
    }

    fn compact(&self) -> Result<bool> {
        // SAFETY: the handle is open; no keys stand for the ends of the store.
        unsafe { (self.api.compact_range)(self.db, std::ptr::null(), 0, std::ptr::null(), 0) };
        Ok(true)
    }

    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()> {
        // SAFETY: the handles are open.
        let handle = unsafe { (self.api.create_iterator)(self.db, self.read_options) };
        let iter = CIter { api: self.api, handle };
        iter.seek(from, direction);
        while let Some((key, value)) = iter.row() {
            if let ControlFlow::Break(()) = see(key, value) {
                break;
            }
            iter.step(direction);
        }
        // SAFETY: the handle is open.
        self.api.checked(|failure| unsafe { (self.api.iter_get_error)(iter.handle, failure) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: nobody else holds the store, and it is not used again, nor is its family.
        unsafe {
            if let Some(families) = &self.api.families {
                (families.destroy)(self.family);
            }
            (self.api.close)(self.db);
        }
        Ok(())
    }
}
