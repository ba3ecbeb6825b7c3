//! Options of a store and of a keyspace.

use std::ffi::c_char;
use std::path::PathBuf;
use std::time::Duration;

use engine::{Builder, Compression, Db, Durability, KeyspaceOptions, Options, Prefix};

use super::error::{call, terrace_error};
use crate::border::{exclusive, handle, path, release, shared, text};
use crate::failure::Failure;

/// What must hold when a write returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum terrace_durability {
    /// As the options of the store say.
    Default = 0,
    /// The write survives the death of the process. A power cut may take the latest such writes, always from the end.
    Buffered = 1,
    /// The write, and every one before it, survives a power cut.
    Synced = 2,
}

/// `None` stands for that of the options.
pub(super) fn durability(durability: u32) -> Result<Option<Durability>, Failure> {
    match durability {
        0 => Ok(None),
        1 => Ok(Some(Durability::Buffered)),
        2 => Ok(Some(Durability::Synced)),
        other => Err(Failure::argument(format!("durability is {other}, which is no terrace_durability"))),
    }
}

/// Options of a store: see terrace_options_create().
pub struct terrace_options {
    options: Options,
    devices: Vec<PathBuf>,
    must_exist: bool,
    read_only: bool,
}

impl terrace_options {
    /// A builder of the store in `dir`.
    pub(super) fn builder(&self, dir: &std::path::Path) -> Builder {
        let mut builder = Db::builder(dir).options(self.options.clone());
        for device in &self.devices {
            builder = builder.device(device);
        }
        if self.must_exist {
            builder = builder.must_exist();
        }
        if self.read_only { builder.read_only() } else { builder }
    }
}

/// Makes options with their defaults, which suit most uses. Release them with terrace_options_free(). What is out of its range
/// is refused by terrace_open().
#[unsafe(no_mangle)]
pub extern "C" fn terrace_options_create() -> *mut terrace_options {
    handle(terrace_options {
        options: Options::default(),
        devices: Vec::new(),
        must_exist: false,
        read_only: false,
    })
}

/// Releases options; nothing if they are NULL.
///
/// # Safety
/// They are NULL or from terrace_options_create(), and are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_free(options: *mut terrace_options) {
    // SAFETY: the caller's contract.
    unsafe { release(options) };
}

/// Sets the durability of writes that ask for TERRACE_DURABILITY_DEFAULT. Default: buffered.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_durability(
    options: *mut terrace_options,
    durability: u32,
) -> *mut terrace_error {
    call(|| {
        let chosen = self::durability(durability)?.unwrap_or_default();
        // SAFETY: the caller's contract.
        unsafe { exclusive(options, "options") }?.options.durability = chosen;
        Ok(())
    })
}

/// Sets the one budget for cache, open tables and memtables, in bytes, at least 1 MiB; 0 for the default: a quarter of the
/// machine's memory, at most 1 GiB.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_memory_bytes(options: *mut terrace_options, bytes: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.memory_bytes = (bytes > 0).then_some(bytes) };
}

/// Sets the budget for files, in bytes, at least 1 MiB; 0 for none, which is the default.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_space_bytes(options: *mut terrace_options, bytes: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.space_bytes = (bytes > 0).then_some(bytes) };
}

/// Sets the size at which a memtable is flushed, in bytes, 4 KiB to 4 GiB. Default: 64 MiB.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_memtable_bytes(options: *mut terrace_options, bytes: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.memtable_bytes = bytes };
}

/// Sets the size of the log at which memtables are flushed, in bytes, at least 64 KiB. Default: 256 MiB.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_wal_bytes_max(options: *mut terrace_options, bytes: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.wal_bytes_max = bytes };
}

/// Sets the size of a file that keeps space free for a full disk, in bytes. Default: 0, none.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_reserve_bytes(options: *mut terrace_options, bytes: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.reserve_bytes = bytes };
}

/// Sets how many threads compact, 1 to 64; 0 for the default: 2, on machines with one processor 1.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_background_threads(
    options: *mut terrace_options,
    threads: usize,
) {
    // SAFETY: the caller's contract.
    unsafe { (*options).options.background_threads = (threads > 0).then_some(threads) };
}

/// Sets the options of the keyspace "default", used when the store is created.
///
/// # Safety
/// Both are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_keyspace(
    options: *mut terrace_options,
    keyspace: *const terrace_keyspace_options,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (options, keyspace) = unsafe { (exclusive(options, "options")?, shared(keyspace, "keyspace")?) };
        options.options.keyspace = keyspace.options()?;
        Ok(())
    })
}

/// Sets all that a named profile sets, such as "default" or "leveldb-2m": call it before the other setters.
///
/// # Safety
/// The options are valid; the name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_profile(
    options: *mut terrace_options,
    name: *const c_char,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (options, name) = unsafe { (exclusive(options, "options")?, text(name, "name")?) };
        options.options = Options::profile(name).ok_or_else(|| {
            Failure::argument(format!("{name:?} is no profile; there are {}", Options::profiles().join(", ")))
        })?;
        Ok(())
    })
}

/// Adds a directory for tables, on another device.
///
/// # Safety
/// The options are valid; the path ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_add_device(
    options: *mut terrace_options,
    dir: *const c_char,
) -> *mut terrace_error {
    call(|| {
        // SAFETY: the caller's contract.
        let (options, dir) = unsafe { (exclusive(options, "options")?, path(dir, "dir")?) };
        options.devices.push(dir.into());
        Ok(())
    })
}

/// Sets whether terrace_open() fails where there is no store. Default: false, it creates one.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_must_exist(options: *mut terrace_options, must_exist: bool) {
    // SAFETY: the caller's contract.
    unsafe { (*options).must_exist = must_exist };
}

/// Sets whether the store is opened for reading alone, also beside a process that writes. It shows one moment then, until
/// terrace_refresh(). Default: false.
///
/// # Safety
/// The options are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrace_options_set_read_only(options: *mut terrace_options, read_only: bool) {
    // SAFETY: the caller's contract.
    unsafe { (*options).read_only = read_only };
}

/// How blocks of tables are stored.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum terrace_compression {
    /// As they are.
    None = 0,
    /// With LZ4, where that saves at least an eighth.
    Lz4 = 1,
}

/// By which rule keys have prefixes, for scans within one prefix.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum terrace_prefix {
    /// They have none.
    None = 0,
    /// The first `prefix_bytes` bytes.
    Fixed = 1,
    /// Up to and with the `prefix_count`th `prefix_delimiter`.
    Delimited = 2,
}

/// Options of a keyspace. Start from terrace_keyspace_options_default().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct terrace_keyspace_options {
    /// A terrace_compression.
    pub compression: u32,
    /// A terrace_prefix. It cannot be changed later.
    pub prefix: u32,
    /// From which size on a value lies apart from its key, in bytes; 0: never.
    pub separate_from: u32,
    /// How long a value lives, in seconds; 0: for ever. Whether there is a time cannot be changed later.
    pub ttl_seconds: u32,
    /// See terrace_prefix.
    pub prefix_bytes: u16,
    /// See terrace_prefix.
    pub prefix_delimiter: u8,
    /// See terrace_prefix.
    pub prefix_count: u8,
    /// Bits of Bloom filter per key, 0 (no filter) to 20.
    pub filter_bits_per_key: u8,
}

impl terrace_keyspace_options {
    pub(super) fn of(options: &KeyspaceOptions) -> Self {
        let mut all = Self {
            compression: match options.compression {
                Compression::Lz4 => terrace_compression::Lz4 as u32,
                _ => terrace_compression::None as u32,
            },
            prefix: terrace_prefix::None as u32,
            separate_from: options.separate_from.unwrap_or(0),
            ttl_seconds: options.ttl.map_or(0, |ttl| u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX)),
            prefix_bytes: 0,
            prefix_delimiter: 0,
            prefix_count: 0,
            filter_bits_per_key: options.filter_bits_per_key,
        };
        match options.prefix {
            Some(Prefix::Fixed(bytes)) => {
                (all.prefix, all.prefix_bytes) = (terrace_prefix::Fixed as u32, bytes);
            }
            Some(Prefix::Delimited { delimiter, count }) => {
                all.prefix = terrace_prefix::Delimited as u32;
                (all.prefix_delimiter, all.prefix_count) = (delimiter, count);
            }
            // A rule that this header does not know cannot be shown.
            Some(_) | None => {}
        }
        all
    }

    pub(super) fn options(&self) -> Result<KeyspaceOptions, Failure> {
        let compression = match self.compression {
            0 => Compression::None,
            1 => Compression::Lz4,
            other => {
                return Err(Failure::argument(format!(
                    "compression is {other}, which is no terrace_compression"
                )));
            }
        };
        let prefix = match self.prefix {
            0 => None,
            1 => Some(Prefix::Fixed(self.prefix_bytes)),
            2 => Some(Prefix::Delimited { delimiter: self.prefix_delimiter, count: self.prefix_count }),
            other => return Err(Failure::argument(format!("prefix is {other}, which is no terrace_prefix"))),
        };
        Ok(KeyspaceOptions {
            compression,
            filter_bits_per_key: self.filter_bits_per_key,
            prefix,
            separate_from: (self.separate_from > 0).then_some(self.separate_from),
            ttl: (self.ttl_seconds > 0).then(|| Duration::from_secs(self.ttl_seconds.into())),
        })
    }
}

/// The default options of a keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn terrace_keyspace_options_default() -> terrace_keyspace_options {
    terrace_keyspace_options::of(&KeyspaceOptions::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_keyspace_survive_the_way_to_c_and_back() {
        let ttl = Some(Duration::from_secs(3600));
        for prefix in [None, Some(Prefix::Fixed(7)), Some(Prefix::Delimited { delimiter: b'/', count: 2 })] {
            let options = KeyspaceOptions {
                compression: Compression::Lz4,
                filter_bits_per_key: 7,
                prefix,
                separate_from: Some(4096),
                ttl,
            };
            assert_eq!(terrace_keyspace_options::of(&options).options().unwrap(), options);
        }
        let options = KeyspaceOptions::default();
        assert_eq!(terrace_keyspace_options_default().options().unwrap(), options);
        let wrong = terrace_keyspace_options { compression: 9, ..terrace_keyspace_options_default() };
        assert!(wrong.options().unwrap_err().message.contains("compression"));
    }
}
