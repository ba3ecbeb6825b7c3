//! The engines under comparison behind one small trait, and what each of them can promise.
//!
//! All are opened with the same memory, filters of 10 bits per key where they have filters, checksums verified where
//! they have checksums, and no compression, except for the engines whose names say otherwise. `README.md` has the
//! settings of each and why.

mod c_api;
mod empty;
mod fjall;
mod leveldb;
mod lmdb;
mod redb;
mod rocksdb;
mod solistore;
mod sorted;
mod surrealkv;
mod terrace;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use ::terrace::Options;
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Bits of filter per key.
const FILTER_BITS_PER_KEY: u8 = 10;

/// Files that an engine of the LevelDB family keeps open.
const OPEN_FILES_MAX: i32 = 5000;

/// Size of a table in an engine of the LevelDB family.
const TABLE_BYTES: usize = 64 << 20;

/// What a workload asks of an engine; shared by all load threads.
pub trait Store: Send + Sync {
    /// Shows the value of `key` to `see` where it lies, or as it was copied; whether there is one.
    fn get(&self, key: &[u8], see: SeeValue<'_>) -> Result<bool>;

    /// Whether `key` has a value, by the call for it where the engine has one.
    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.get(key, &mut |_| ())
    }

    /// Shows the values of those of `keys` that have one, in any order; how many have.
    fn multi_get(&self, keys: &[&[u8]], see: SeeValue<'_>) -> Result<usize> {
        let mut found = 0;
        for key in keys {
            found += usize::from(self.get(key, see)?);
        }
        Ok(found)
    }

    /// Stores `value` under `key`, with the durability that the store was opened with.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Stores all of `records`, or none of them, with that durability.
    fn put_batch(&self, records: &[(&[u8], &[u8])]) -> Result<()>;

    /// Deletes `key`, with that durability.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Deletes all keys from `from` to before `to` in one call; false, and nothing is done, if the engine has none.
    fn delete_range(&self, _from: &[u8], _to: &[u8]) -> Result<bool> {
        Ok(false)
    }

    /// Moves all that is in memory to tables; false if the engine has no call for it.
    fn flush(&self) -> Result<bool> {
        Ok(false)
    }

    /// Compacts everything; false if the engine has no call for it.
    fn compact(&self) -> Result<bool> {
        Ok(false)
    }

    /// Shows keys and values from `from` on, itself included, in `direction`, until there are no more or `see` breaks.
    fn scan(&self, from: &[u8], direction: Direction, see: See<'_>) -> Result<()>;

    /// Shows keys from `from` on, itself included, in ascending order, until there are no more or `see` breaks; without reading values
    /// where the engine can.
    fn scan_keys(&self, from: &[u8], see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        self.scan(from, Direction::Forward, &mut |key, _| see(key))
    }

    /// What tells the counters and jobs of the engine, where one does; no figure rests on it.
    fn self_report(&self) -> Option<&dyn terrace_bench::store::Store> {
        None
    }

    /// Closes the store and says whether that went well.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Sees a value.
pub type SeeValue<'a> = &'a mut dyn FnMut(&[u8]);

/// Sees a key and its value.
pub type See<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Order of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Durability {
    /// The death of the process may take it.
    #[serde(rename = "U")]
    Unsafe,
    /// Survives the death of the process, not a power cut.
    #[serde(rename = "N")]
    Kill,
    /// Survives a power cut.
    #[serde(rename = "S")]
    Power,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsafe => "U",
            Self::Kill => "N",
            Self::Power => "S",
        })
    }
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// Cache of blocks or pages, in bytes.
    pub cache_bytes: usize,
    /// Size of a full memtable, in bytes.
    pub memtable_bytes: usize,
    /// What is asked of writes; [`Engine::durability`] says what an engine makes of it.
    pub durability: Durability,
}

impl Opening {
    /// Cache, one memtable that fills and two that are flushed: for engines that have one budget for all.
    pub fn memory_bytes(&self) -> usize {
        self.cache_bytes + 3 * self.memtable_bytes
    }

    fn synced(&self) -> bool {
        self.durability == Durability::Power
    }
}

/// A profile of Terrace, and parts of its tree set otherwise, as [`terrace_bench::store::options`] takes them.
type Profile = &'static str;

/// What the name of [`Engine::Shaped`] begins with.
const SHAPED: &str = "terrace@";

/// An engine, in text its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Engine {
    Terrace,
    /// In another shape; a peer of the default.
    #[value(skip)]
    Shaped(Profile),
    /// With LZ4, to be compared with the others that have it on.
    TerraceLz4,
    /// With checksums verified at every read, as the others do.
    Leveldb,
    /// With tables of the size that it comes with.
    #[value(name = "leveldb-2m")]
    Leveldb2m,
    /// As it comes: checksums are written, not verified.
    LeveldbUnchecked,
    Rocksdb,
    RocksdbLz4,
    /// With its rate limiter on.
    RocksdbLimited,
    /// With large values in blob files.
    RocksdbBlob,
    Fjall,
    FjallLz4,
    /// With large values in blob files.
    FjallBlob,
    /// With large values in its value log.
    Surrealkv,
    /// Compresses what it compacts, always.
    Solistore,
    Redb,
    Lmdb,
    /// No engine at all: what the load generator costs by itself.
    Empty,
    /// Nor this: a sorted array in memory, which is filled once and then read.
    Sorted,
}

impl Engine {
    /// Name in reports and on the command line.
    pub fn name(self) -> String {
        match self {
            Self::Shaped(profile) => format!("{SHAPED}{profile}"),
            named => named.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
        }
    }

    /// What writes survive when `asked` is wanted: what was asked for, or less where the engine cannot.
    pub fn durability(self, asked: Durability) -> Durability {
        match (self, asked) {
            // Without a sync it keeps commits in its own memory.
            (Self::Redb, Durability::Kill) | (Self::Empty | Self::Sorted, _) => Durability::Unsafe,
            (_, asked) => asked,
        }
    }

    /// Whether tables are compressed with LZ4.
    pub fn compresses(self) -> bool {
        matches!(self, Self::TerraceLz4 | Self::RocksdbLz4 | Self::FjallLz4 | Self::Solistore)
    }

    /// Whether what is read is held against a checksum.
    pub fn verifies(self) -> bool {
        !matches!(self, Self::LeveldbUnchecked | Self::Lmdb | Self::Redb) && self.is_store()
    }

    /// Whether it is Terrace as it comes, but for compression: what all others are peers of.
    pub fn is_terrace(self) -> bool {
        matches!(self, Self::Terrace | Self::TerraceLz4)
    }

    /// Whether it keeps what it is given.
    pub fn is_store(self) -> bool {
        !matches!(self, Self::Empty | Self::Sorted)
    }

    /// Opens or creates the store in the directory `path`.
    pub fn open(self, path: &Path, opening: &Opening) -> Result<Box<dyn Store>> {
        let opened: Result<Box<dyn Store>> = match self {
            Self::Terrace | Self::TerraceLz4 => {
                terrace::open(path, opening, Options::default(), self.compresses())
            }
            Self::Shaped(profile) => terrace::open(path, opening, shape(profile)?, false),
            Self::Leveldb | Self::LeveldbUnchecked => {
                leveldb::open(path, opening, TABLE_BYTES, self.verifies())
            }
            Self::Leveldb2m => leveldb::open(path, opening, 2 << 20, true),
            Self::Rocksdb | Self::RocksdbLz4 | Self::RocksdbLimited | Self::RocksdbBlob => {
                let (limited, blobs) = (self == Self::RocksdbLimited, self == Self::RocksdbBlob);
                rocksdb::open(path, opening, rocksdb::Shape { compressed: self.compresses(), limited, blobs })
            }
            Self::Fjall | Self::FjallLz4 | Self::FjallBlob => {
                fjall::open(path, opening, self.compresses(), self == Self::FjallBlob)
            }
            Self::Surrealkv => surrealkv::open(path, opening),
            Self::Solistore => solistore::open(path, opening),
            Self::Redb => redb::open(path, opening),
            Self::Lmdb => lmdb::open(path, opening),
            Self::Empty => Ok(Box::new(empty::Empty::new())),
            Self::Sorted => Ok(Box::new(sorted::Sorted::default())),
        };
        opened.with_context(|| format!("cannot open {}", self.name()))
    }

    /// Version of the library that is linked; `path` is the directory of a store that it has made.
    pub fn version(self, path: &Path) -> Result<String> {
        match self {
            Self::Terrace | Self::Shaped(_) | Self::TerraceLz4 => locked_version("terrace"),
            Self::Leveldb | Self::Leveldb2m | Self::LeveldbUnchecked => Ok(leveldb::version()),
            Self::Rocksdb | Self::RocksdbLz4 | Self::RocksdbLimited | Self::RocksdbBlob => {
                rocksdb::version(path)
            }
            Self::Fjall | Self::FjallLz4 | Self::FjallBlob => locked_version("fjall"),
            Self::Surrealkv => locked_version("surrealkv"),
            Self::Solistore => locked_version("solistore"),
            Self::Redb => locked_version("redb"),
            Self::Lmdb => Ok(lmdb::version()),
            Self::Empty | Self::Sorted => Ok(String::new()),
        }
    }
}

impl From<Engine> for String {
    fn from(engine: Engine) -> Self {
        engine.name()
    }
}

impl TryFrom<String> for Engine {
    type Error = anyhow::Error;

    fn try_from(name: String) -> Result<Self> {
        if let Some(profile) = name.strip_prefix(SHAPED) {
            shape(profile).map_err(|error| anyhow!("{name} is no engine: {error}"))?;
            // Names are few, and an engine is copied everywhere.
            return Ok(Self::Shaped(profile.to_owned().leak()));
        }
        Self::from_str(&name, false).map_err(|_| {
            let variants = Self::value_variants().iter().filter(|&&engine| engine != Self::Empty);
            let names: Vec<String> = variants.map(|engine| engine.name()).collect();
            anyhow!("{name} is no engine: there are {} and {SHAPED}PROFILE", names.join(", "))
        })
    }
}

/// The options of a profile.
fn shape(profile: &str) -> Result<Options> {
    terrace_bench::store::options(profile).map_err(|error| anyhow!("{error}"))
}

/// Version of a crate by the lock file that this program was built with.
fn locked_version(name: &str) -> Result<String> {
    let lock = include_str!("../../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"\n")));
    let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
    Ok(version.with_context(|| format!("{name} is not in Cargo.lock"))?.to_owned())
}

/// The options that Terrace is opened with, uncompressed.
#[cfg(test)]
pub fn terrace_options(opening: &Opening) -> Options {
    terrace::options(opening, Options::default(), false)
}
