//! Options, and what they point to: comparators, filter policies, caches, environments.
//!
//! LevelDB keeps the pointers that it is given. Here an option takes what it needs when it is set: a comparator's name, a
//! cache's size, a filter's bits.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::db::leveldb_snapshot_t;
use super::settings::{BYTEWISE, Settings};
use crate::border::{caught_or, handle, release};

/// Options of a database: see leveldb_options_create().
pub struct leveldb_options_t {
    pub(super) settings: Settings,
}

/// Options of reads: see leveldb_readoptions_create().
pub struct leveldb_readoptions_t {
    pub(super) snapshot: *const leveldb_snapshot_t,
}

/// Options of writes: see leveldb_writeoptions_create().
pub struct leveldb_writeoptions_t {
    pub(super) sync: bool,
}

/// A cache of blocks: see leveldb_cache_create_lru().
pub struct leveldb_cache_t {
    bytes: u64,
}

/// An order of keys: see leveldb_comparator_create().
pub struct leveldb_comparator_t {
    /// Lets the caller's state go.
    _owned: Owned,
    name: String,
}

/// A way to make filters: see leveldb_filterpolicy_create_bloom().
pub struct leveldb_filterpolicy_t {
    /// Lets the caller's state go, if there is one.
    _owned: Option<Owned>,
    bits_per_key: Option<u8>,
}

/// The operating system: see leveldb_create_default_env().
pub struct leveldb_env_t {
    /// An object has an address of its own.
    _place: u8,
}

/// A log for messages. No function makes one.
pub struct leveldb_logger_t {
    _place: u8,
}

/// The caller's state, with what is to be called when it goes.
struct Owned {
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: whoever made the object has promised that this may be called once, with this state.
            unsafe { destructor(self.state) };
        }
    }
}

/// Makes options with LevelDB's defaults. Release them with leveldb_options_destroy().
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> *mut leveldb_options_t {
    handle(leveldb_options_t { settings: Settings::default() })
}

/// Releases options.
///
/// # Safety
/// They are from leveldb_options_create(), and are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_destroy(options: *mut leveldb_options_t) {
    // SAFETY: the caller's contract.
    unsafe { release(options) };
}

/// Sets the order of keys. Terrace has one, bytewise: with any comparator but one that is called
/// "leveldb.BytewiseComparator", leveldb_open() fails and says so. The comparator is never called. NULL takes it back.
///
/// # Safety
/// The options are valid; so is the comparator, unless it is NULL. It may be destroyed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_comparator(
    options: *mut leveldb_options_t,
    comparator: *mut leveldb_comparator_t,
) {
    // SAFETY: the caller's contract.
    let (options, comparator) = unsafe { (&mut *options, comparator.as_ref()) };
    options.settings.comparator =
        comparator.map(|comparator| comparator.name.clone()).filter(|name| name != BYTEWISE);
}

/// Sets the filters of tables. A Bloom filter gives its bits for each key, at most 20. With a policy of the caller's own, and
/// with NULL, Terrace has filters of 10 bits for each key: its own are never switched off here, and others never called.
///
/// # Safety
/// The options are valid; so is the policy, unless it is NULL. It may be destroyed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_filter_policy(
    options: *mut leveldb_options_t,
    policy: *mut leveldb_filterpolicy_t,
) {
    // SAFETY: the caller's contract.
    let (options, policy) = unsafe { (&mut *options, policy.as_ref()) };
    options.settings.filter_bits = policy.and_then(|policy| policy.bits_per_key);
}

/// Sets whether a database that does not exist is created. Default: 0.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_create_if_missing(options: *mut leveldb_options_t, value: u8) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.create_if_missing = value != 0 };
}

/// Sets whether a database that exists is refused. Default: 0.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_error_if_exists(options: *mut leveldb_options_t, value: u8) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.error_if_exists = value != 0 };
}

/// Taken for whoever sets it: Terrace always checks all that LevelDB checks with it. Damage keeps a database from opening,
/// or fails the read that meets it.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_paranoid_checks(options: *mut leveldb_options_t, value: u8) {
    let _ = (options, value);
}

/// Taken and not used: there is one environment, the operating system.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_env(options: *mut leveldb_options_t, env: *mut leveldb_env_t) {
    let _ = (options, env);
}

/// Taken and not used: Terrace writes no log of messages.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_info_log(
    options: *mut leveldb_options_t,
    logger: *mut leveldb_logger_t,
) {
    let _ = (options, logger);
}

/// Sets the size of a memtable, in bytes, 4 KiB to 4 GiB. Default: 4 MiB.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_write_buffer_size(
    options: *mut leveldb_options_t,
    bytes: usize,
) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.write_buffer_bytes = bytes as u64 };
}

/// Sets how much memory open tables get: 32 KiB for each of these files, in one budget with cache and memtables. It limits no
/// descriptors: see README.md. Default: 1000.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_open_files(options: *mut leveldb_options_t, files: c_int) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.open_files_max = u64::try_from(files).unwrap_or(0) };
}

/// Sets the cache, of which only the size counts: each database has a cache of its own. Default, and with NULL: 8 MiB.
///
/// # Safety
/// The options are valid; so is the cache, unless it is NULL. It may be destroyed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_cache(
    options: *mut leveldb_options_t,
    cache: *mut leveldb_cache_t,
) {
    // SAFETY: the caller's contract.
    let (options, cache) = unsafe { (&mut *options, cache.as_ref()) };
    options.settings.cache_bytes = cache.map(|cache| cache.bytes);
}

/// Sets the size of a block of a table, in bytes, 256 to 1 MiB. Default: 4 KiB.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_block_size(options: *mut leveldb_options_t, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.block_bytes = bytes as u64 };
}

/// Taken and not used: Terrace's blocks have no such points.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_block_restart_interval(
    options: *mut leveldb_options_t,
    keys: c_int,
) {
    let _ = (options, keys);
}

/// Taken and not used: Terrace's tables are of about 1 MiB, many to a file.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_file_size(options: *mut leveldb_options_t, bytes: usize) {
    let _ = (options, bytes);
}

/// Sets the compression of what is written from now on. Any but leveldb_no_compression is LZ4. Default:
/// leveldb_snappy_compression, so LZ4.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_compression(
    options: *mut leveldb_options_t,
    compression: c_int,
) {
    // SAFETY: the caller's contract.
    unsafe { (*options).settings.compressed = compression != 0 };
}

/// Makes an order of keys, for leveldb_options_set_comparator(), which says what becomes of it. `destructor` is called with
/// `state` by leveldb_comparator_destroy().
///
/// # Safety
/// The functions may be called with `state` until then; `name` returns a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(state: *mut c_void)>,
    compare: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            a: *const c_char,
            alen: usize,
            b: *const c_char,
            blen: usize,
        ) -> c_int,
    >,
    name: Option<unsafe extern "C" fn(state: *mut c_void) -> *const c_char>,
) -> *mut leveldb_comparator_t {
    let _ = compare;
    // SAFETY: the caller's contract.
    let name = name.map(|name| unsafe { CStr::from_ptr(name(state)) }.to_string_lossy().into_owned());
    handle(leveldb_comparator_t { _owned: Owned { state, destructor }, name: name.unwrap_or_default() })
}

/// Releases an order of keys.
///
/// # Safety
/// It is from leveldb_comparator_create(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_destroy(comparator: *mut leveldb_comparator_t) {
    // SAFETY: the caller's contract.
    unsafe { release(comparator) };
}

/// Makes a way to make filters, for leveldb_options_set_filter_policy(), which says what becomes of it. `destructor` is called
/// with `state` by leveldb_filterpolicy_destroy(), and nothing else is ever called.
///
/// # Safety
/// The destructor may be called with `state`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(state: *mut c_void)>,
    create_filter: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            key_array: *const *const c_char,
            key_length_array: *const usize,
            num_keys: c_int,
            filter_length: *mut usize,
        ) -> *mut c_char,
    >,
    key_may_match: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            key: *const c_char,
            length: usize,
            filter: *const c_char,
            filter_length: usize,
        ) -> u8,
    >,
    name: Option<unsafe extern "C" fn(state: *mut c_void) -> *const c_char>,
) -> *mut leveldb_filterpolicy_t {
    let _ = (create_filter, key_may_match, name);
    handle(leveldb_filterpolicy_t { _owned: Some(Owned { state, destructor }), bits_per_key: None })
}

/// Releases a way to make filters.
///
/// # Safety
/// It is from one of the two functions that make one, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_destroy(policy: *mut leveldb_filterpolicy_t) {
    // SAFETY: the caller's contract.
    unsafe { release(policy) };
}

/// Makes a Bloom filter with this many bits for each key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut leveldb_filterpolicy_t {
    // LevelDB has at least one probe, whatever it is given.
    let bits_per_key = Some(bits_per_key.clamp(1, 20) as u8);
    handle(leveldb_filterpolicy_t { _owned: None, bits_per_key })
}

/// Makes options of reads. Release them with leveldb_readoptions_destroy().
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> *mut leveldb_readoptions_t {
    handle(leveldb_readoptions_t { snapshot: std::ptr::null() })
}

/// Releases options of reads.
///
/// # Safety
/// They are from leveldb_readoptions_create(), and are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_destroy(options: *mut leveldb_readoptions_t) {
    // SAFETY: the caller's contract.
    unsafe { release(options) };
}

/// Taken for whoever sets it: Terrace verifies the checksum of each block that it reads from a file.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_verify_checksums(
    options: *mut leveldb_readoptions_t,
    value: u8,
) {
    let _ = (options, value);
}

/// Taken and not used: Terrace's cache decides by itself what of a scan it keeps.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut leveldb_readoptions_t, value: u8) {
    let _ = (options, value);
}

/// Sets the snapshot that reads see; with NULL they see the newest state.
///
/// # Safety
/// The options are valid; the snapshot is not released as long as they are used with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_snapshot(
    options: *mut leveldb_readoptions_t,
    snapshot: *const leveldb_snapshot_t,
) {
    // SAFETY: the caller's contract.
    unsafe { (*options).snapshot = snapshot };
}

/// Makes options of writes. Release them with leveldb_writeoptions_destroy().
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> *mut leveldb_writeoptions_t {
    handle(leveldb_writeoptions_t { sync: false })
}

/// Releases options of writes.
///
/// # Safety
/// They are from leveldb_writeoptions_create(), and are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_destroy(options: *mut leveldb_writeoptions_t) {
    // SAFETY: the caller's contract.
    unsafe { release(options) };
}

/// Sets whether a write, and every one before it, survives a power cut when the call returns. Without it, writes survive the
/// death of the process. Default: 0.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_set_sync(options: *mut leveldb_writeoptions_t, value: u8) {
    // SAFETY: the caller's contract.
    unsafe { (*options).sync = value != 0 };
}

/// Makes a cache of this size, for leveldb_options_set_cache(), which says what becomes of it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> *mut leveldb_cache_t {
    handle(leveldb_cache_t { bytes: capacity as u64 })
}

/// Releases a cache.
///
/// # Safety
/// It is from leveldb_cache_create_lru(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_cache_destroy(cache: *mut leveldb_cache_t) {
    // SAFETY: the caller's contract.
    unsafe { release(cache) };
}

/// The operating system. Release it with leveldb_env_destroy().
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> *mut leveldb_env_t {
    handle(leveldb_env_t { _place: 0 })
}

/// Releases an environment.
///
/// # Safety
/// It is from leveldb_create_default_env(), and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_destroy(env: *mut leveldb_env_t) {
    // SAFETY: the caller's contract.
    unsafe { release(env) };
}

/// A directory for tests, which is created; NULL if that fails. Release it with leveldb_free(). It is what the variable
/// TEST_TMPDIR says, or one below /tmp for each user.
///
/// # Safety
/// The environment is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_get_test_directory(env: *mut leveldb_env_t) -> *mut c_char {
    let _ = env;
    caught_or(std::ptr::null_mut(), || {
        use std::os::unix::ffi::OsStrExt;
        let named = std::env::var_os("TEST_TMPDIR").filter(|dir| !dir.is_empty());
        let own = || format!("/tmp/leveldbtest-{}", rustix::process::geteuid().as_raw()).into();
        let dir = named.unwrap_or_else(own);
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => std::ptr::null_mut(),
            _ => crate::border::malloced(dir.as_bytes()),
        }
    })
}
