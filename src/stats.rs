//! Statistics and reports of a store, as plain values.

mod buffer;
mod device;
mod load;

use crate::error::Error;

pub use buffer::BufferStats;
pub use device::DeviceStats;
pub use load::LoadStats;

/// Counters since the store was opened, and sizes as of now. See [`crate::Db::stats`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// db.flush()?;
/// let stats = db.stats();
/// assert!(stats.written.total() > 0 && stats.syncs.flush == 1 && stats.write_amplification() > 1.0);
/// assert_eq!(stats.keyspaces[0].shape.levels.iter().map(|level| level.entries).sum::<u64>(), 1);
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
    /// How often a pack was opened for reading because it was not open: see [`crate::tree::Descriptors`].
    pub packs_opened: u64,
    /// Waits of writers that were slowed down or stopped, by reason.
    pub stalls: Vec<StallStats>,
    /// The block cache.
    pub cache: CacheStats,
    /// Filters that were asked for the prefix of a scan.
    pub prefix_filter: PrefixFilterStats,
    /// Compactions and moves.
    pub compaction: CompactionStats,
    /// Flushes.
    pub flush: FlushStats,
    /// Rewrites: packs given up by copying their live tables.
    pub rewrite: RewriteStats,
    /// Space on the device.
    pub space: SpaceStats,
    /// The directories of the store, the one with log and manifest first.
    pub devices: Vec<DeviceStats>,
    /// Holes punched into packs.
    pub punch: PunchStats,
    /// What the machine takes for what, as far as it has been measured.
    pub costs: CostStats,
    /// The load, as it was sampled last, and what the pacer makes of it.
    pub load: LoadStats,
    /// Memory of all memtables, in bytes.
    pub memtable_bytes: u64,
    /// Sequence number of the newest write.
    pub last_seq: u64,
    /// Number of snapshots and transactions that are open.
    pub snapshots: u64,
    /// Sequence number of the newest write that the oldest of them sees; 0 if there is none.
    pub oldest_snapshot: u64,
    /// Number of running flushes.
    pub running_flushes: u64,
    /// Number of running compactions and rewrites.
    pub running_compactions: u64,
    /// Background jobs that failed and were, or will be, tried again.
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

/// Reads by callers: of the newest state, of snapshots and in transactions.
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
/// assert_eq!(reads.tables_asked, 0, "all is in the memtable");
/// assert_eq!((reads.seeks, reads.steps, reads.bytes), (1, 1, 5 + 5 + 8));
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct UserReads {
    /// Lookups of a single key: `get`, `contains`, `update`.
    pub gets: u64,
    /// Tables that these have asked: whether their filters know the key, and for a block if so. Each lookup asks the tables
    /// whose range has the key, newest first, until one has the key.
    pub tables_asked: u64,
    /// Keys that `multi_get` was asked for.
    pub multi_get_keys: u64,
    /// Keys of both that were found in a compaction buffer ([`crate::tree::Retainer::Buffer`]).
    pub found_in_buffer: u64,
    /// Keys of both that had a value.
    pub found: u64,
    /// Seeks of iterators and cursors: where one begins, from each end, where it seeks, and where it turns round.
    /// Like the two below, counted when the iterator or cursor is dropped.
    pub seeks: u64,
    /// Entries that iterators and cursors have returned.
    pub steps: u64,
    /// Bytes of the values that lookups have found, and of the keys and values of these entries.
    pub bytes: u64,
}

/// A count for each reason to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByCause {
    /// The write-ahead log.
    pub wal: u64,
    /// Flushes.
    pub flush: u64,
    /// Compactions.
    pub compaction: u64,
    /// Rewrites: tables copied into other packs, so that the space of dead ones is freed.
    pub rewrite: u64,
    /// The manifest.
    pub manifest: u64,
    /// Names of files, while somebody waited for them; syncs only.
    pub directory: u64,
    /// Holes in packs, where space was needed at once; syncs only.
    pub reclaim: u64,
    /// Names of preallocated files; syncs only.
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

/// Stalls for one reason: waits of writers, ingests included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StallStats {
    /// The reason.
    pub reason: String,
    /// Number of waits.
    pub count: u64,
    /// Duration of all waits together, in microseconds.
    pub micros: u64,
}

/// The block cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Blocks found in the cache.
    pub hits: u64,
    /// Blocks read from a file instead.
    pub misses: u64,
    /// Bytes held, open tables included.
    pub bytes: u64,
    /// Bytes that the cache may hold.
    pub capacity: u64,
}

impl CacheStats {
    /// Share of requests for blocks that the cache answered, 0 to 1; 0 before the first request.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

/// Answers of table filters to scans within one prefix (see [`crate::KeyspaceOptions::prefix`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefixFilterStats {
    /// Tables whose filter was asked. An iterator that goes both ways asks twice.
    pub asked: u64,
    /// Of these, tables whose filter said that they do not have the prefix.
    pub denied: u64,
}

/// Compactions and moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    /// Compactions finished.
    pub jobs: u64,
    /// Of these, intra-L0 compactions: they join runs of level 0 so that reads have fewer to search.
    pub intra_l0: u64,
    /// Jobs that moved tables to the next level without rewriting them, alone or beside a compaction.
    pub moves: u64,
    /// Bytes of the tables moved.
    pub moved_bytes: u64,
    /// What has left each level for the next one, by its number.
    pub passed: [PassedBytes; 8],
    /// Of the compactions, those of tables that held many entries for readers that had gone.
    pub releases: u64,
    /// Compactions and rewrites that were given up, because the pacer had suspended them for too long. What they were to do is
    /// planned again.
    pub given_up: u64,
    /// Tables that were dropped unread, because every value in them had expired.
    pub expired_tables: u64,
    /// Tables that were dropped unread, because a range delete hides all of them.
    pub deleted_tables: u64,
    /// Tables that were dropped unread, because newer ones have every key of theirs.
    pub hidden_tables: u64,
    /// Tables that were removed from compaction buffers.
    pub trimmed_tables: u64,
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

/// Bytes of tables that have left a level for the next one, since the store was opened.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// for n in 0..100 {
///     db.put(format!("{n:03}"), "value")?;
/// }
/// db.compact()?;
/// let level0 = db.stats().compaction.passed[0];
/// assert!(level0.moved + level0.merged > 0 && level0.moved_share() <= 1.0);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassedBytes {
    /// Without being written again.
    pub moved: u64,
    /// Into a compaction.
    pub merged: u64,
}

impl PassedBytes {
    /// The share that moved, 0 to 1; 0 if nothing has left the level. ("PTierDB", section III-C, moves what overlaps little.)
    #[must_use]
    pub fn moved_share(&self) -> f64 {
        let all = self.moved + self.merged;
        if all == 0 { 0.0 } else { self.moved as f64 / all as f64 }
    }
}

impl CompactionStats {
    /// Entries read per second of compaction time; 0 before the first compaction.
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

/// Rewrites: packs given up by copying their live tables. This happens where the file system has no holes and most of
/// a pack is dead, or where very little is left of many packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriteStats {
    /// Rewrites finished.
    pub jobs: u64,
    /// Packs that were left without a live table.
    pub packs: u64,
    /// Bytes of the tables copied. [`ByCause::rewrite`] counts the bytes written, those of failed rewrites included.
    pub bytes: u64,
    /// Time taken, in microseconds.
    pub micros: u64,
}

/// Space on the device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceStats {
    /// Tables that a version of a tree names, and values that lie apart and that one of these points to.
    pub live_bytes: u64,
    /// Of these, values that lie apart.
    pub value_bytes: u64,
    /// Number of these values.
    pub values: u64,
    /// Number of value tables, in which they lie.
    pub value_tables: u64,
    /// Bytes of values that background work has written anew, since their value tables were mostly dead.
    pub collected_bytes: u64,
    /// The rest of the packs, holes left out: dead tables that share a pack with live ones, and padding.
    pub dead_bytes: u64,
    /// Of these, bytes that could not be freed at the last attempt: somebody reads the pack, it has a second name (as
    /// in a backup by hard links), the operating system refused, or a table that was to be copied is damaged.
    pub kept_bytes: u64,
    /// Number of packs.
    pub pack_files: u64,
    /// Pieces of packs between holes, in all packs.
    pub data_ranges: u64,
    /// Pieces of the pack that has most of them. The file system may store a piece in several extents.
    pub data_ranges_max: u64,
    /// Number of preallocated packs, which hold nothing yet.
    pub preallocated_files: u64,
    /// The write-ahead log.
    pub wal_bytes: u64,
    /// Packs, log, and recycled files.
    pub total_bytes: u64,
}

/// Holes punched where dead tables lay in packs with live ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PunchStats {
    /// Holes punched. Neighbouring tables that die together make one hole.
    pub punches: u64,
    /// Bytes freed by them.
    pub bytes: u64,
    /// Time taken, syncs included, in microseconds.
    pub micros: u64,
    /// Attempts that the operating system refused. They are repeated later.
    pub failures: u64,
    /// Whether the file system does not support holes. Packs that are mostly dead are then rewritten
    /// ([`RewriteStats`]).
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
    /// Of these, bytes in sealed memtables, which wait for their flush.
    pub sealed_bytes: u64,
    /// Number of sealed memtables.
    pub sealed_memtables: u64,
    /// Entries in its memtables, tombstones included.
    pub memtable_entries: u64,
    /// Bytes that compactions must still move before all levels are within their limits.
    pub debt_bytes: u64,
    /// Its tree.
    pub shape: Shape,
    /// What is kept of the tables that compactions have replaced.
    pub buffer: BufferStats,
}

/// The shape of a tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shape {
    /// The levels, from 0 down to the deepest that holds anything.
    pub levels: Vec<LevelShape>,
}

/// One level of a tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LevelShape {
    /// Number of the level.
    pub level: usize,
    /// Number of sorted runs.
    pub runs: usize,
    /// Tables.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Bytes of the values that lie apart and that they point to.
    pub value_bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones of single keys.
    pub tombstones: u64,
    /// Range tombstones; one that several tables share counts in each.
    pub range_tombstones: u64,
    /// About how many of the bytes were kept only for snapshots or transactions.
    pub held_bytes: u64,
    /// Of these, about how many are released: their snapshots and transactions have gone. Background work compacts a
    /// table of which they are a quarter or more; [`crate::Db::compact`] drops them all.
    pub released_bytes: u64,
    /// Size in bytes beyond which the level is compacted; 0 if runs are counted instead, [`u64::MAX`] if it never is.
    pub limit_bytes: u64,
    /// How urgent a compaction of the level is; due from 1.
    pub score: f64,
}

/// The report of [`crate::Db::verify`]: what was read, and what was wrong.
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
    /// Values that lie apart from their keys, all read.
    pub values: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Packs whose directory is intact.
    pub packs: u64,
    /// Bytes of storage that the packs take, as the file system counts.
    pub allocated_bytes: u64,
    /// Bytes of the packs that are holes.
    pub hole_bytes: u64,
    /// Of these, bytes in live tables whose checksums are right all the same: zeros that the file system, or a copy
    /// program, did not store. A hole in a live table with a wrong checksum is among the problems.
    pub zero_bytes: u64,
    /// Bytes of storage that neither live tables, nor dead ones that are not freed yet, nor the file system's own
    /// records explain.
    pub unexplained_bytes: u64,
    /// Packs whose holes the file system does not report. The figures above do not cover them.
    pub hole_unknown_packs: u64,
    /// What is damaged, each with file and offset. Empty when all is well.
    pub problems: Vec<Error>,
}

/// The report of [`crate::repair`]: what was saved, and what was not.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Keyspaces of the new store.
    pub keyspaces: u64,
    /// Tables of the old store that were read.
    pub tables: u64,
    /// Entries in the new store.
    pub entries: u64,
    /// Whether the old manifest could be read. If not, keyspaces may have lost their names, and deleted data may be
    /// back.
    pub whole_catalog: bool,
    /// What could not be saved, each with file, offset and reason.
    pub lost: Vec<Error>,
    /// Tables of nothing but zeros, skipped because the old manifest could not be read. They are dead tables that
    /// were punched, or live tables that something else has erased.
    pub zeroed_tables: u64,
}
