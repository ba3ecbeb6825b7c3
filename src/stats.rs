//! Plain pictures of what a store has done and how its trees look.

use crate::error::Error;

/// Counters since the store was opened, and sizes as of now. See [`crate::Db::stats`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// db.flush()?;
/// let stats = db.stats();
/// assert!(stats.written.total() > 0 && stats.syncs.flush == 1 && stats.write_amplification() > 1.0);
/// assert_eq!(stats.keyspaces[0].shape.levels[0].entries, 1);
/// assert!(stats.cache.hit_ratio() <= 1.0 && stats.compaction.records_per_second() == 0.0);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of keys and values that callers have written.
    pub user_bytes_written: u64,
    /// Operations (puts and deletes, of a key or of a range) that callers have written.
    pub user_ops_written: u64,
    /// What callers have read.
    pub user_reads: UserReads,
    /// Bytes handed to the operating system.
    pub written: ByCause,
    /// Barriers (`fdatasync` of a file, `fsync` of a directory).
    pub syncs: ByCause,
    /// Bytes read from files.
    pub read: ReadByCause,
    /// Times that a pack was opened for reading, because nobody had it open: see [`crate::Descriptors`].
    pub packs_opened: u64,
    /// Times that writers were slowed down or stopped.
    pub stalls: Vec<StallStats>,
    /// The block cache.
    pub cache: CacheStats,
    /// Filters that were asked for the prefix of a scan.
    pub prefix_filter: PrefixFilterStats,
    /// Compactions and moves.
    pub compaction: CompactionStats,
    /// Flushes.
    pub flush: FlushStats,
    /// Packs given up by copying what lives in them.
    pub rewrite: RewriteStats,
    /// Space on the device.
    pub space: SpaceStats,
    /// Space given back by packs that live on.
    pub punch: PunchStats,
    /// What the machine takes for what, as far as it has been measured.
    pub costs: CostStats,
    /// Memory of all memtables, in bytes.
    pub memtable_bytes: u64,
    /// Number of the newest write.
    pub last_seq: u64,
    /// Snapshots and transactions that are held.
    pub snapshots: u64,
    /// Number of the newest write that the oldest of them sees; 0 if there is none.
    pub oldest_snapshot: u64,
    /// Flushes that are running.
    pub running_flushes: u64,
    /// Compactions and rewrites that are running.
    pub running_compactions: u64,
    /// Background jobs that have failed and were, or will be, tried again.
    pub background_errors: u64,
    /// Every keyspace, the default first.
    pub keyspaces: Vec<KeyspaceStats>,
}

impl Stats {
    /// Bytes written to tables, log and manifest for each byte that callers have written; 0 before the first write.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes_written == 0 {
            return 0.0;
        }
        self.written.total() as f64 / self.user_bytes_written as f64
    }
}

/// What callers have read, of the newest state, of snapshots and in transactions.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// db.get("key")?;
/// db.get("none")?;
/// db.multi_get(["key", "none"])?;
/// db.iter()?.count();
/// let reads = db.stats().user_reads;
/// assert_eq!((reads.gets, reads.multi_get_keys, reads.found), (2, 2, 2));
/// assert_eq!((reads.seeks, reads.steps, reads.bytes), (1, 1, 5 + 5 + 8));
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct UserReads {
    /// Lookups of a single key: `get`, `contains`, `update`.
    pub gets: u64,
    /// Keys that `multi_get` was asked for.
    pub multi_get_keys: u64,
    /// Keys of both that had a value.
    pub found: u64,
    /// Times that an iterator or cursor has looked for its place: where it begins, from each end, where it seeks or turns
    /// round. As the two below, it counts when the iterator or cursor is dropped.
    pub seeks: u64,
    /// Entries that iterators and cursors have shown.
    pub steps: u64,
    /// Bytes of the values that lookups have found, and of the keys and values of these entries.
    pub bytes: u64,
}

/// A count for each reason to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByCause {
    /// The write-ahead log.
    pub wal: u64,
    /// Memtables becoming tables.
    pub flush: u64,
    /// Tables becoming tables.
    pub compaction: u64,
    /// Tables taken over into other packs, so that the space of dead ones comes back.
    pub rewrite: u64,
    /// The manifest.
    pub manifest: u64,
    /// Names of files that somebody waited for; syncs only.
    pub directory: u64,
    /// Holes in packs, where space is needed at once; syncs only.
    pub reclaim: u64,
    /// Names of files that were made before anybody needed them; syncs only.
    pub preallocate: u64,
}

impl ByCause {
    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let background = self.flush + self.compaction + self.rewrite + self.reclaim + self.preallocate;
        self.wal + background + self.manifest + self.directory
    }
}

/// Bytes for each reason to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadByCause {
    /// Lookups.
    pub get: u64,
    /// Iterators.
    pub scan: u64,
    /// Compactions and rewrites.
    pub compaction: u64,
    /// Opening the store and its tables.
    pub open: u64,
}

impl ReadByCause {
    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.get + self.scan + self.compaction + self.open
    }
}

/// Waits of writers, ingests among them, for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StallStats {
    /// The reason.
    pub reason: String,
    /// How many waits.
    pub count: u64,
    /// All waits together, in microseconds.
    pub micros: u64,
}

/// The block cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Blocks found.
    pub hits: u64,
    /// Blocks read from a file instead.
    pub misses: u64,
    /// Bytes held, open tables included.
    pub bytes: u64,
    /// Bytes that it may hold.
    pub capacity: u64,
}

impl CacheStats {
    /// Share of block requests that were found, 0 to 1; 0 before the first.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

/// What the filters of tables said to scans within one prefix (see [`crate::KeyspaceOptions::prefix`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefixFilterStats {
    /// Tables that were asked; an iterator that goes both ways asks twice.
    pub asked: u64,
    /// Tables of these that do not have the prefix.
    pub denied: u64,
}

/// Compactions and moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    /// Compactions finished.
    pub jobs: u64,
    /// Of these, intra-L0 compactions: runs of level 0 have become one of them, for the sake of readers.
    pub intra_l0: u64,
    /// Jobs in which tables sank to the next level without being rewritten, alone or beside a compaction.
    pub moves: u64,
    /// Bytes of these tables.
    pub moved_bytes: u64,
    /// Compacts among them of tables that held much for readers that had gone.
    pub releases: u64,
    /// Tables that were given up unread, for every value in them had expired.
    pub expired_tables: u64,
    /// Entries read.
    pub records_in: u64,
    /// Entries written.
    pub records_out: u64,
    /// Bytes of the tables read.
    pub bytes_in: u64,
    /// Bytes of the packs written.
    pub bytes_out: u64,
    /// Time taken, in microseconds.
    pub micros: u64,
}

impl CompactionStats {
    /// Entries read per second of compaction; 0 before the first compaction.
    #[must_use]
    pub fn records_per_second(&self) -> f64 {
        if self.micros == 0 { 0.0 } else { self.records_in as f64 * 1e6 / self.micros as f64 }
    }
}

/// Flushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlushStats {
    /// Memtables flushed.
    pub jobs: u64,
    /// Entries written.
    pub records: u64,
    /// Bytes of the packs written.
    pub bytes: u64,
    /// Time taken, in microseconds.
    pub micros: u64,
}

/// Packs given up by copying what lives in them: where the file system knows no holes and most of a pack is dead, or where
/// very little is left of many packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriteStats {
    /// Rewrites finished.
    pub jobs: u64,
    /// Packs that they left without a live table.
    pub packs: u64,
    /// Bytes of the tables copied. [`ByCause::rewrite`] counts what was written, of rewrites that failed, too.
    pub bytes: u64,
    /// Time taken, in microseconds.
    pub micros: u64,
}

/// Space on the device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceStats {
    /// Tables that a version names.
    pub live_bytes: u64,
    /// The rest of the packs, without their holes: dead tables that share a pack with live ones, and padding.
    pub dead_bytes: u64,
    /// Of these, bytes that could not be given back when that was tried last: somebody reads the pack, it has another name,
    /// as in a backup by hard links, the operating system refused, or a table that was to be copied is damaged.
    pub kept_bytes: u64,
    /// Number of packs.
    pub pack_files: u64,
    /// Pieces that the packs are stored in, between their holes.
    pub data_ranges: u64,
    /// Pieces of the pack that has most. The file system may store each in several extents.
    pub data_ranges_max: u64,
    /// Number of packs that were made ahead and hold nothing yet.
    pub preallocated_files: u64,
    /// The write-ahead log.
    pub wal_bytes: u64,
    /// Packs and log, and dead files that are kept to be written over.
    pub total_bytes: u64,
}

/// Holes that dead tables have left in packs that live on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PunchStats {
    /// Holes punched; neighbours that die together make one.
    pub punches: u64,
    /// Bytes given back by them.
    pub bytes: u64,
    /// Time taken, syncs included, in microseconds.
    pub micros: u64,
    /// Attempts that the operating system refused. They are made again later.
    pub failures: u64,
    /// Whether the file system has said that it cannot: packs of which most is dead are then rewritten ([`RewriteStats`]).
    pub unsupported: bool,
}

/// What the machine takes for what: prices that decisions about compactions go by. They start from those of the machine that the policies
/// were tuned on, and follow what the store measures (`docs/design/costs.md`).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let costs = db.stats().costs;
/// assert!(costs.compacted_mebibyte_micros > 0.0 && costs.barrier_micros > 0.0);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CostStats {
    /// To compact a mebibyte of tables, without barriers, in microseconds.
    pub compacted_mebibyte_micros: f64,
    /// What one run more takes of a scan whose blocks are cached, in nanoseconds.
    pub seek_cached_nanos: f64,
    /// What one run more takes of a lookup: a look into a filter, in nanoseconds.
    pub filter_probe_nanos: f64,
    /// To read a block that is not in the block cache, in nanoseconds.
    pub block_read_nanos: f64,
    /// To make a few bytes durable, in microseconds.
    pub barrier_micros: f64,
}

/// One keyspace.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Memory of its memtables, in bytes.
    pub memtable_bytes: u64,
    /// Of these, bytes in memtables that wait for their flush.
    pub sealed_bytes: u64,
    /// Memtables that wait for their flush.
    pub sealed_memtables: u64,
    /// Entries in its memtables, tombstones included.
    pub memtable_entries: u64,
    /// Bytes that compactions must still move before all levels are within their limits.
    pub debt_bytes: u64,
    /// Its tree.
    pub shape: Shape,
}

/// How a tree looks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shape {
    /// The levels, from 0 down to the deepest that holds anything.
    pub levels: Vec<LevelShape>,
}

/// One level of a tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LevelShape {
    /// Its number.
    pub level: usize,
    /// Sorted runs.
    pub runs: usize,
    /// Tables.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones of single keys.
    pub tombstones: u64,
    /// Range tombstones; one that several tables share counts in each.
    pub range_tombstones: u64,
    /// About how many of the bytes are there only because somebody reads, or has read, the past: a snapshot or a transaction.
    pub held_bytes: u64,
    /// Of these, about how many nobody holds any more. Where they are a quarter of a table or more, background work gives them up by
    /// itself; [`crate::Db::compact`] gives up all.
    pub released_bytes: u64,
    /// Size beyond which tables move on, in bytes; 0 where runs are counted instead, [`u64::MAX`] where none do.
    pub limit_bytes: u64,
    /// How urgent it is to move on; due from 1.
    pub score: f64,
}

/// What [`crate::Db::verify`] has read, and what was wrong with it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Data blocks of these tables.
    pub blocks: u64,
    /// Entries in them, tombstones included.
    pub entries: u64,
    /// Range tombstones in them.
    pub range_tombstones: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Packs whose directory is sound.
    pub packs: u64,
    /// Bytes of storage that the packs take, as the file system counts.
    pub allocated_bytes: u64,
    /// Bytes of the packs that are holes.
    pub hole_bytes: u64,
    /// Of these, bytes of live tables that check all the same: zeros that the file system, or whoever copied the store, did
    /// not store. A hole in a live table that does not check is among the problems.
    pub zero_bytes: u64,
    /// Storage beyond what live tables, dead ones that were not given back, and the file system's own records can take.
    pub unexplained_bytes: u64,
    /// Packs of which the file system does not tell holes: nothing is said of theirs.
    pub hole_unknown_packs: u64,
    /// What is damaged, each with file and offset. Empty when all is well.
    pub problems: Vec<Error>,
}

/// What [`crate::repair`] has taken, and what it could not.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Keyspaces of the new store.
    pub keyspaces: u64,
    /// Tables of the old one that were looked at.
    pub tables: u64,
    /// Entries in the new store.
    pub entries: u64,
    /// Whether the old manifest could be read. If not, keyspaces may have lost their names, and what had been deleted may
    /// be back.
    pub whole_catalog: bool,
    /// What could not be taken, each with file, offset and reason.
    pub lost: Vec<Error>,
    /// Tables of nothing but zeros, passed over where the old manifest could not be read: dead ones whose space had been
    /// given back, as a full disk makes the store do, or live ones that something else has erased.
    pub zeroed_tables: u64,
}
