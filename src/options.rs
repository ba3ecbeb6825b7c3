//! Options: the settings of a store, as plain values. They are validated when the store is opened.

mod caching;
mod cutter;
mod files;
mod layout;
mod pacer;
mod picker;
mod placer;
mod profiles;
mod retainer;
mod tree;
mod values;

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Prefix, VALUE_BYTES_MAX};

pub use caching::Caching;
pub use cutter::{Cutter, Flushes, TableSize};
pub use files::{Descriptors, Files, PackLayout};
pub use layout::{Adaptive, Geared, Guarded, Layout, Leveled, Prefixed, Tiered};
pub use pacer::{Bandwidth, Burst, Dlc, Gear, Governor, LoadEstimator, Pacer, Peak, Silk, SoftSleep, Steady};
pub use picker::{Components, Drain, Group, Levels, Picker, RatioWindow};
pub use placer::{Placer, Unit};
pub use retainer::{Buffer, Retainer};
pub use tree::TreeOptions;
pub use values::ValueOrder;

/// What must hold when a write returns.
///
/// ```
/// use terrace::{Durability, Options};
/// assert_eq!(Options::default().durability, Durability::Buffered);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The write survives the death of the process: its bytes are with the operating system. A power cut may take
    /// the latest such writes, always from the end: what is left is a prefix of the history.
    #[default]
    Buffered,
    /// The write, and every one before it, survives a power cut.
    Synced,
}

/// How the blocks of a keyspace's tables are stored.
///
/// ```
/// use terrace::{Compression, KeyspaceOptions};
/// let options = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// With LZ4, where that saves at least an eighth.
    Lz4,
}

/// Settings of a keyspace: `prefix` is fixed when it is created, and whether there is a `ttl`, [`Keyspace::set_options`](crate::Keyspace::set_options)
/// changes the others.
///
/// ```
/// use terrace::{Compression, KeyspaceOptions};
/// let options = KeyspaceOptions::default();
/// assert_eq!(options.compression, Compression::None);
/// assert_eq!(options.filter_bits_per_key, 10);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyspaceOptions {
    /// Compression of table blocks. LZ4 costs about a microsecond per block read and saves space and bandwidth with
    /// compressible values.
    pub compression: Compression,
    /// Bits of Bloom filter per key, 0 (no filter) to 20. 10 lets about 1 % of lookups of absent keys through.
    pub filter_bits_per_key: u8,
    /// By which rule keys have prefixes, for scans within one prefix. Default: none.
    ///
    /// The filter of a table then holds the distinct prefixes of its keys, too, at as many bits each; without a filter the
    /// rule means nothing. A scan whose range lies within one prefix (`prefix` of at least that many bytes, or a `range` all
    /// of whose keys have the same) reads no block of a table whose filter denies it. What a scan shows is the same with
    /// any rule and with none; keys without a prefix are found as any others.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// use terrace::{KeyspaceOptions, Prefix};
    /// let prefix = Some(Prefix::Delimited { delimiter: b'/', count: 1 });
    /// let events = db.keyspace_with("events", KeyspaceOptions { prefix, ..KeyspaceOptions::default() })?;
    /// events.put("ada/0001", "login")?;
    /// assert_eq!(events.prefix("ada/")?.count(), 1);
    /// # Ok::<(), terrace::Error>(())
    /// ```
    pub prefix: Option<Prefix>,
    /// From which size on a value lies apart from its key, in bytes; 1 to 1 GiB. `None`: never. Default: 16 KiB, from which on
    /// updates gain far more than scans with values lose (`docs/benchmarks/values.md`).
    ///
    /// Compactions then move a pointer of about 20 bytes in the place of such a value, which is written once behind the log.
    /// A lookup reads once more if neither is in the cache; a scan reads the values where they lie, in the order in which they
    /// were flushed. A change holds for what is flushed or compacted from then on; both kinds are read. On a file system that does not
    /// free parts of files (punch holes), values stay with their keys.
    pub separate_from: Option<u32>,
    /// How long a value lives from its write on; whole seconds, 1 to 4,294,967,295. Default: for ever. It can be made longer or
    /// shorter ([`Keyspace::set_options`](crate::Keyspace::set_options)).
    ///
    /// An expired value is hidden at once from every reader, snapshots and transactions included, and removed when a flush
    /// or compaction next comes upon it. Where none does, a table goes once all of its values have expired (and no snapshot or
    /// transaction is older than they are), and is compacted by itself once about half of them have, or some for an eighth of their time. [`crate::Db::compact`] removes all that has expired. Each value
    /// takes 4 bytes more, and the longest one may be so much shorter. An iterator judges by the time at which it was made.
    ///
    /// The store's time is the latest that the machine's wall clock has shown it, so it never goes back; across openings,
    /// the latest that a flush or compaction has recorded. So a clock that is set back brings no removed value back, and lets
    /// those written meanwhile live longer, by as much; a clock that jumps ahead makes values expire at once.
    pub ttl: Option<Duration>,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            filter_bits_per_key: 10,
            prefix: None,
            separate_from: Some(16 << 10),
            ttl: None,
        }
    }
}

impl KeyspaceOptions {
    pub(crate) fn validate(&self) -> Result<()> {
        range("filter_bits_per_key", u64::from(self.filter_bits_per_key), 0, 20)?;
        match self.prefix {
            Some(Prefix::Fixed(bytes)) => range("prefix bytes", bytes.into(), 1, u16::MAX.into())?,
            Some(Prefix::Delimited { count, .. }) => range("prefix count", count.into(), 1, u8::MAX.into())?,
            None => {}
        }
        if let Some(bytes) = self.separate_from {
            range("separate_from", bytes.into(), 1, VALUE_BYTES_MAX as u64)?;
        }
        let Some(ttl) = self.ttl else { return Ok(()) };
        if ttl.subsec_nanos() > 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "option ttl is not in whole seconds"));
        }
        range("ttl", ttl.as_secs(), 1, u32::MAX.into())
    }
}

/// Settings of a store. Plain data; [`crate::Builder::open`] validates it.
///
/// ```
/// use terrace::{Db, Durability, Options};
/// # let dir = tempfile::tempdir().unwrap();
/// let options = Options { durability: Durability::Synced, ..Options::default() };
/// let db = Db::builder(dir.path()).options(options).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Durability of writes that do not ask for one of their own. Default: [`Durability::Buffered`].
    pub durability: Durability,
    /// One budget, in bytes, for the block cache, open tables with their indexes and filters, and memtables together, those that
    /// wait for their flush included; at least 1 MiB. Memtables take at most three quarters of it and a sixteenth; a batch that
    /// is longer than a 64th part waits until there is room for it beside the others. On top of the budget come:
    ///
    /// * a batch that is larger than memtables may be, while it waits for its flush, which it has memory for itself: what it is
    ///   longer than that, and about 60 bytes for each of its operations;
    /// * batches and transactions that callers hold or write at the moment, a batch up to twice where values expire
    ///   ([`KeyspaceOptions::ttl`]); a `put` holds a batch of its value;
    /// * what callers hold of what they have read: a value keeps its block, or the memtable that it came from, an iterator or a
    ///   transaction the memtables that were there when it began; an iterator up to one block for each run besides;
    /// * for each job in the background a block of each of its inputs and about 2 MiB for its output; where values are
    ///   compressed, up to twice the largest value;
    /// * while the store is opened, the longest batch of the log, at least 64 KiB; and what memtables of an earlier opening with a
    ///   larger budget had, for all that is in the log and in no table becomes memtables again before the first of them is flushed.
    ///
    /// A block has one value where that is larger than [`TreeOptions::block_bytes`]. What takes 2 MiB and more goes back to the
    /// operating system when it is let go of. What is smaller, and what memtables are made of, goes back to the allocator of the
    /// process, which may keep it for later allocations: after a large transaction of small writes as much as it had gathered.
    /// Default: a quarter of the machine's memory, at most 1 GiB.
    pub memory_bytes: Option<u64>,
    /// Budget for packs and log together, in bytes; at least 1 MiB. A write that puts anything is refused with
    /// [`ErrorKind::OverBudget`] if the store, once all memtables are flushed, would exceed four fifths of the budget.
    /// The last fifth is for deletes, which are always taken, and for compactions and rewrites, which write their
    /// outputs before their inputs go. One that is larger exceeds the budget while it runs. An ingest is refused once
    /// another table would not fit. After deletes, [`crate::Db::compact`] brings the space back. Default: none.
    pub space_bytes: Option<u64>,
    /// Size at which a memtable is flushed, in bytes; 4 KiB to 4 GiB, and at most a quarter of the budget is used.
    /// Larger memtables mean fewer compactions and longer recoveries. Default: 64 MiB.
    pub memtable_bytes: u64,
    /// Size of the log, in bytes, at which the keyspace with the oldest entry in it is flushed; at least 64 KiB.
    /// Bounds recovery time. Default: 256 MiB.
    pub wal_bytes_max: u64,
    /// Bytes of a file that keeps space free for a full disk. When the disk is full the file is given up, so that
    /// deletes, and the compactions that turn them into free space, go on while everything else is refused. Deletes
    /// may take half of it; further ones are refused, too, until [`crate::Db::compact`] has freed what is deleted.
    /// Twice the room for the largest flush or compaction, some 64 MiB each with the default memtable and tables, is
    /// enough. Default: 0, none.
    pub reserve_bytes: u64,
    /// Threads that compact, 1 to 64. Default: 2, on machines with one processor 1.
    pub background_threads: Option<usize>,
    /// Settings of the keyspace "default", used when the store is created.
    pub keyspace: KeyspaceOptions,
    /// Shape of the trees.
    pub tree: TreeOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Buffered,
            memory_bytes: None,
            space_bytes: None,
            memtable_bytes: 64 << 20,
            wal_bytes_max: 256 << 20,
            reserve_bytes: 0,
            background_threads: None,
            keyspace: KeyspaceOptions::default(),
            tree: TreeOptions::default(),
        }
    }
}

impl Options {
    /// A named configuration: `default`, or the shape of a store from the literature. Sizes are in binary units.
    ///
    /// * `leveldb-2m`, `leveldb-64m`: LevelDB's levels (10 MB, then ten times more each) and limits on level 0 (4, 8, 12), a
    ///   file per table of 2 or 64 MB, one table per flush, one victim per compaction, one thread that compacts.
    /// * `rocksdb-64m`: the same with RocksDB's defaults: tables of 64 MB, 256 MB in level 1, limits of 4, 20, 36, and of 64
    ///   and 256 GB that wait to be compacted.
    /// * `hyperleveldb-32m`: LevelDB's with HyperLevelDB's larger tables and levels (64 MB, then five times more each), victims
    ///   of least overlap, and writers that wait for no level.
    /// * `bolt-ls`, `bolt-gc`, `bolt-stl`, `bolt`: LevelDB's with the parts of BoLT, each on top of those before it: +LS, tables of
    ///   1 MB in files of up to 128 MB, one for each flush or compaction; +GC, groups of 64 MB, in a smaller level all of it;
    ///   +STL, settled compaction; +FC, a descriptor for each file.
    /// * `hyperbolt-ls`, `hyperbolt-gc`, `hyperbolt-stl`, `hyperbolt`: the same on HyperLevelDB's.
    /// * `ptier-split`, `ptier-move`, `ptier`: PTierDB by its parts, each on top of those before it: levels of tables that
    ///   overlap, cut between prefixes from 4 MB on; tables that overlap little move; in the largest level, what lookups search
    ///   often is merged.
    /// * `pebblesdb`: PebblesDB's guards, at its sizes, with HyperLevelDB's pace (`docs/mechanisms/guards.md`).
    /// * `l-lsm`, `t-lsm`, `ll-lsm`, `sm`: PTierDB's baselines on LevelDB's: whole levels of runs of one table each; leveling,
    ///   tiering and lazy leveling with up to 10 runs, and LSbM's stepped merge (`docs/mechanisms/layouts.md`).
    /// * `blsm`, `blsm-warm-up`, `lsbm`: bLSM's levels of two components each, of which one goes down in key order as fast as the
    ///   other fills; on top of that, incremental warming up of the cache, or LSbM's compaction buffer (`docs/mechanisms/lsbm.md`).
    ///
    /// What these leave out of the stores that they are named after is in `docs/mechanisms/bolt.md`.
    ///
    /// ```
    /// use terrace::Options;
    /// assert_eq!(Options::profile("default"), Some(Options::default()));
    /// let rocksdb = Options::profile("rocksdb-64m").unwrap();
    /// assert_eq!(rocksdb.tree.picker, Options::profile("leveldb-64m").unwrap().tree.picker);
    /// assert_eq!(Options::profile("no such profile"), None);
    /// ```
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        profiles::named(name)
    }

    /// Names that [`Options::profile`] knows.
    #[must_use]
    pub fn profiles() -> &'static [&'static str] {
        profiles::NAMES
    }

    /// The name of the profile whose tree these options describe, or "custom".
    #[must_use]
    pub fn profile_name(&self) -> &'static str {
        let same = |name: &&&str| Self::profile(name).is_some_and(|profile| profile.tree == self.tree);
        profiles::NAMES.iter().find(same).copied().unwrap_or("custom")
    }

    /// Fails with [`ErrorKind::InvalidInput`] and the name of the first setting that is out of its range.
    pub fn validate(&self) -> Result<()> {
        if let Some(bytes) = self.memory_bytes {
            range("memory_bytes", bytes, 1 << 20, u64::MAX)?;
        }
        if let Some(bytes) = self.space_bytes {
            range("space_bytes", bytes, 1 << 20, u64::MAX)?;
        }
        range("memtable_bytes", self.memtable_bytes, 4 << 10, 4 << 30)?;
        range("wal_bytes_max", self.wal_bytes_max, 64 << 10, u64::MAX)?;
        range("background_threads", self.background_threads.unwrap_or(1) as u64, 1, 64)?;
        self.keyspace.validate()?;
        self.tree.validate()
    }
}

fn range(name: &str, value: u64, min: u64, max: u64) -> Result<()> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        let message = format!("option {name} is {value}, outside {min} ..= {max}");
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}
