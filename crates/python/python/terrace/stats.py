"""Statistics and reports of a store, as plain values. See `Db.stats`, `Db.verify` and `terrace.repair`.

Made by tools/generate_stats.py from the store's own structs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from terrace.errors import Error

__all__ = [
    "BufferStats",
    "ByCause",
    "CacheStats",
    "CompactionStats",
    "CostStats",
    "DeviceStats",
    "FlushStats",
    "KeyspaceStats",
    "LevelShape",
    "LoadStats",
    "PassedBytes",
    "PrefixFilterStats",
    "PunchStats",
    "ReadByCause",
    "RepairReport",
    "RewriteStats",
    "Shape",
    "SpaceStats",
    "StallStats",
    "Stats",
    "UserReads",
    "VerifyReport",
]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counters since the store was opened, and sizes as of now. See `Db.stats`."""

    user_bytes_written: int
    """Bytes of keys and values that callers have written."""

    user_ops_written: int
    """Operations (puts and deletes, of a key or of a range) that callers have written."""

    user_reads: UserReads
    """What callers have read."""

    written: ByCause
    """Bytes handed to the operating system."""

    syncs: ByCause
    """Barriers (`fdatasync` of a file, `fsync` of a directory)."""

    read: ReadByCause
    """Bytes read from files."""

    packs_opened: int
    """How often a pack was opened for reading because it was not open: see `tree.Descriptors`."""

    stalls: tuple[StallStats, ...]
    """Waits of writers that were slowed down or stopped, by reason."""

    cache: CacheStats
    """The block cache."""

    prefix_filter: PrefixFilterStats
    """Filters that were asked for the prefix of a scan."""

    compaction: CompactionStats
    """Compactions and moves."""

    flush: FlushStats
    """Flushes."""

    rewrite: RewriteStats
    """Rewrites: packs given up by copying their live tables."""

    space: SpaceStats
    """Space on the device."""

    devices: tuple[DeviceStats, ...]
    """The directories of the store, the one with log and manifest first."""

    punch: PunchStats
    """Holes punched into packs."""

    costs: CostStats
    """What the machine takes for what, as far as it has been measured."""

    load: LoadStats
    """The load, as it was sampled last, and what the pacer makes of it."""

    memtable_bytes: int
    """Memory of all memtables, in bytes."""

    last_seq: int
    """Sequence number of the newest write."""

    snapshots: int
    """Number of snapshots and transactions that are open."""

    oldest_snapshot: int
    """Sequence number of the newest write that the oldest of them sees; 0 if there is none."""

    running_flushes: int
    """Number of running flushes."""

    running_compactions: int
    """Number of running compactions and rewrites."""

    background_errors: int
    """Background jobs that failed and were, or will be, tried again."""

    keyspaces: tuple[KeyspaceStats, ...]
    """Every keyspace, the default first."""

    @property
    def write_amplification(self) -> float:
        """Bytes written to tables, log and manifest for each byte that callers have written; 0 before the
        first write.
        """
        return self.written.total / self.user_bytes_written if self.user_bytes_written else 0.0


@dataclass(frozen=True, slots=True)
class UserReads:
    """Reads by callers: of the newest state, of snapshots and in transactions."""

    gets: int
    """Lookups of a single key: `get`, `contains`, `update`."""

    tables_asked: int
    """Tables that these have asked: whether their filters know the key, and for a block if so. Each lookup
    asks the tables whose range has the key, newest first, until one has the key.
    """

    multi_get_keys: int
    """Keys that `multi_get` was asked for."""

    found_in_buffer: int
    """Keys of both that were found in a compaction buffer (`tree.Retainer.Buffer`)."""

    found: int
    """Keys of both that had a value."""

    seeks: int
    """Seeks of iterators and cursors: where one begins, from each end, where it seeks, and where it turns
    round. Like the two below, counted when the iterator or cursor is dropped.
    """

    steps: int
    """Entries that iterators and cursors have returned."""

    bytes: int
    """Bytes of the values that lookups have found, and of the keys and values of these entries."""


@dataclass(frozen=True, slots=True)
class ByCause:
    """A count for each reason to write."""

    wal: int
    """The write-ahead log."""

    flush: int
    """Flushes."""

    compaction: int
    """Compactions."""

    rewrite: int
    """Rewrites: tables copied into other packs, so that the space of dead ones is freed."""

    manifest: int
    """The manifest."""

    directory: int
    """Names of files, while somebody waited for them; syncs only."""

    reclaim: int
    """Holes in packs, where space was needed at once; syncs only."""

    preallocate: int
    """Names of preallocated files; syncs only."""

    @property
    def total(self) -> int:
        """All causes together."""
        return sum(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class ReadByCause:
    """Bytes for each reason to read."""

    get: int
    """Lookups."""

    scan: int
    """Iterators."""

    compaction: int
    """Compactions and rewrites."""

    open: int
    """Opening the store and its tables."""

    @property
    def total(self) -> int:
        """All causes together."""
        return sum(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class StallStats:
    """Stalls for one reason: waits of writers, ingests included."""

    reason: str
    """The reason."""

    count: int
    """Number of waits."""

    micros: int
    """Duration of all waits together, in microseconds."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The block cache."""

    hits: int
    """Blocks found in the cache."""

    misses: int
    """Blocks read from a file instead."""

    bytes: int
    """Bytes held, open tables included."""

    capacity: int
    """Bytes that the cache may hold."""

    @property
    def hit_ratio(self) -> float:
        """Share of requests for blocks that the cache answered, 0 to 1; 0 before the first request."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


@dataclass(frozen=True, slots=True)
class PrefixFilterStats:
    """Answers of table filters to scans within one prefix (see `KeyspaceOptions.prefix`)."""

    asked: int
    """Tables whose filter was asked. An iterator that goes both ways asks twice."""

    denied: int
    """Of these, tables whose filter said that they do not have the prefix."""


@dataclass(frozen=True, slots=True)
class CompactionStats:
    """Compactions and moves."""

    jobs: int
    """Compactions finished."""

    intra_l0: int
    """Of these, intra-L0 compactions: they join runs of level 0 so that reads have fewer to search."""

    moves: int
    """Jobs that moved tables to the next level without rewriting them, alone or beside a compaction."""

    moved_bytes: int
    """Bytes of the tables moved."""

    passed: tuple[PassedBytes, ...]
    """What has left each level for the next one, by its number."""

    releases: int
    """Of the compactions, those of tables that held many entries for readers that had gone."""

    given_up: int
    """Compactions and rewrites that were given up, because the pacer had suspended them for too long. What
    they were to do is planned again.
    """

    expired_tables: int
    """Tables that were dropped unread, because every value in them had expired."""

    deleted_tables: int
    """Tables that were dropped unread, because a range delete hides all of them."""

    hidden_tables: int
    """Tables that were dropped unread, because newer ones have every key of theirs."""

    trimmed_tables: int
    """Tables that were removed from compaction buffers."""

    records_in: int
    """Entries read."""

    records_out: int
    """Entries written."""

    bytes_in: int
    """Bytes of the tables read."""

    bytes_out: int
    """Bytes of the packs written."""

    micros: int
    """Time taken, in microseconds."""

    @property
    def records_per_second(self) -> float:
        """Entries read per second of compaction time; 0 before the first compaction."""
        return self.records_in * 1e6 / self.micros if self.micros else 0.0


@dataclass(frozen=True, slots=True)
class PassedBytes:
    """Bytes of tables that have left a level for the next one, since the store was opened."""

    moved: int
    """Without being written again."""

    merged: int
    """Into a compaction."""

    @property
    def moved_share(self) -> float:
        """The share that moved, 0 to 1; 0 if nothing has left the level."""
        return self.moved / (self.moved + self.merged) if self.moved + self.merged else 0.0


@dataclass(frozen=True, slots=True)
class FlushStats:
    """Flushes."""

    jobs: int
    """Memtables flushed."""

    records: int
    """Entries written."""

    bytes: int
    """Bytes of the packs written."""

    micros: int
    """Time taken, in microseconds."""


@dataclass(frozen=True, slots=True)
class RewriteStats:
    """Rewrites: packs given up by copying their live tables. This happens where the file system has no holes
    and most of a pack is dead, or where very little is left of many packs.
    """

    jobs: int
    """Rewrites finished."""

    packs: int
    """Packs that were left without a live table."""

    bytes: int
    """Bytes of the tables copied. `ByCause.rewrite` counts the bytes written, those of failed rewrites
    included.
    """

    micros: int
    """Time taken, in microseconds."""


@dataclass(frozen=True, slots=True)
class SpaceStats:
    """Space on the device, in bytes."""

    live_bytes: int
    """Tables that a version of a tree names, and values that lie apart and that one of these points to."""

    value_bytes: int
    """Of these, values that lie apart."""

    values: int
    """Number of these values."""

    value_tables: int
    """Number of value tables, in which they lie."""

    collected_bytes: int
    """Bytes of values that background work has written anew, since their value tables were mostly dead."""

    dead_bytes: int
    """The rest of the packs, holes left out: dead tables that share a pack with live ones, and padding."""

    kept_bytes: int
    """Of these, bytes that could not be freed at the last attempt: somebody reads the pack, it has a second
    name (as in a backup by hard links), the operating system refused, or a table that was to be copied is
    damaged.
    """

    pack_files: int
    """Number of packs."""

    data_ranges: int
    """Pieces of packs between holes, in all packs."""

    data_ranges_max: int
    """Pieces of the pack that has most of them. The file system may store a piece in several extents."""

    preallocated_files: int
    """Number of preallocated packs, which hold nothing yet."""

    wal_bytes: int
    """The write-ahead log."""

    total_bytes: int
    """Packs, log, and recycled files."""


@dataclass(frozen=True, slots=True)
class PunchStats:
    """Holes punched where dead tables lay in packs with live ones."""

    punches: int
    """Holes punched. Neighbouring tables that die together make one hole."""

    bytes: int
    """Bytes freed by them."""

    micros: int
    """Time taken, syncs included, in microseconds."""

    failures: int
    """Attempts that the operating system refused. They are repeated later."""

    unsupported: bool
    """Whether the file system does not support holes. Packs that are mostly dead are then rewritten
    (`RewriteStats`).
    """


@dataclass(frozen=True, slots=True)
class CostStats:
    """What the machine takes for what: prices that decisions about compactions go by. They start from those
    of the machine that the policies were tuned on, and follow what the store measures
    (`docs/design/costs.md`).
    """

    compacted_mebibyte_micros: float
    """To compact a mebibyte of tables, without barriers, in microseconds."""

    seek_cached_nanos: float
    """What one run more takes of a scan whose blocks are cached, in nanoseconds."""

    filter_probe_nanos: float
    """What one run more takes of a lookup: a look into a filter, in nanoseconds."""

    block_read_nanos: float
    """To read a block that is not in the block cache, in nanoseconds."""

    barrier_micros: float
    """To make a few bytes durable, in microseconds."""


@dataclass(frozen=True, slots=True)
class KeyspaceStats:
    """One keyspace."""

    name: str
    """Its name."""

    memtable_bytes: int
    """Memory of its memtables, in bytes."""

    sealed_bytes: int
    """Of these, bytes in sealed memtables, which wait for their flush."""

    sealed_memtables: int
    """Number of sealed memtables."""

    memtable_entries: int
    """Entries in its memtables, tombstones included."""

    debt_bytes: int
    """Bytes that compactions must still move before all levels are within their limits."""

    shape: Shape
    """Its tree."""

    buffer: BufferStats
    """What is kept of the tables that compactions have replaced."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a tree."""

    levels: tuple[LevelShape, ...]
    """The levels, from 0 down to the deepest that holds anything."""


@dataclass(frozen=True, slots=True)
class LevelShape:
    """One level of a tree."""

    level: int
    """Number of the level."""

    runs: int
    """Number of sorted runs."""

    tables: int
    """Tables."""

    bytes: int
    """Bytes of the tables."""

    value_bytes: int
    """Bytes of the values that lie apart and that they point to."""

    entries: int
    """Entries, tombstones included."""

    tombstones: int
    """Tombstones of single keys."""

    range_tombstones: int
    """Range tombstones; one that several tables share counts in each."""

    held_bytes: int
    """About how many of the bytes were kept only for snapshots or transactions."""

    released_bytes: int
    """Of these, about how many are released: their snapshots and transactions have gone. Background work
    compacts a table of which they are a quarter or more; `Db.compact` drops them all.
    """

    limit_bytes: int
    """Size in bytes beyond which the level is compacted; 0 if runs are counted instead, `2**64 - 1` if it
    never is.
    """

    score: float
    """How urgent a compaction of the level is; due from 1."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The report of `Db.verify`: what was read, and what was wrong."""

    tables: int
    """Tables read."""

    blocks: int
    """Data blocks of these tables."""

    entries: int
    """Entries in them, tombstones included."""

    range_tombstones: int
    """Range tombstones in them."""

    values: int
    """Values that lie apart from their keys, all read."""

    bytes: int
    """Bytes of the tables."""

    packs: int
    """Packs whose directory is intact."""

    allocated_bytes: int
    """Bytes of storage that the packs take, as the file system counts."""

    hole_bytes: int
    """Bytes of the packs that are holes."""

    zero_bytes: int
    """Of these, bytes in live tables whose checksums are right all the same: zeros that the file system, or a
    copy program, did not store. A hole in a live table with a wrong checksum is among the problems.
    """

    unexplained_bytes: int
    """Bytes of storage that neither live tables, nor dead ones that are not freed yet, nor the file system's
    own records explain.
    """

    hole_unknown_packs: int
    """Packs whose holes the file system does not report. The figures above do not cover them."""

    problems: tuple[Error, ...]
    """What is damaged, each with file and offset. Empty when all is well."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The report of `repair`: what was saved, and what was not."""

    keyspaces: int
    """Keyspaces of the new store."""

    tables: int
    """Tables of the old store that were read."""

    entries: int
    """Entries in the new store."""

    whole_catalog: bool
    """Whether the old manifest could be read. If not, keyspaces may have lost their names, and deleted data
    may be back.
    """

    lost: tuple[Error, ...]
    """What could not be saved, each with file, offset and reason."""

    zeroed_tables: int
    """Tables of nothing but zeros, skipped because the old manifest could not be read. They are dead tables
    that were punched, or live tables that something else has erased.
    """


@dataclass(frozen=True, slots=True)
class BufferStats:
    """The compaction buffer of a keyspace: tables that compactions have replaced and that are kept for the
    block cache (`tree.Retainer.Buffer`).
    """

    tables: int
    """Tables that are kept."""

    bytes: int
    """Bytes of these."""

    held_bytes: int
    """Of these, bytes that the tree has no more: what the buffer takes on the disk."""

    cached_bytes: int
    """Of the kept bytes, how many are in the block cache."""

    gone_ranges: int
    """Ranges of keys that are remembered because newer tables of them are not kept."""

    frozen_levels: int
    """Levels that get the same keys again and again, so that nothing more is kept of what comes there."""

    memory_bytes: int
    """Memory that all this takes, in bytes, about."""


@dataclass(frozen=True, slots=True)
class DeviceStats:
    """One of the directories of a store (`Builder.device`)."""

    id: int
    """Which one; 0 is the one with log and manifest."""

    dir: str
    """The directory."""

    table_bytes: int
    """Bytes of tables there."""

    given_bytes: int
    """Bytes of tables that it was given since the store was opened."""

    brought_bytes: int
    """Of these, bytes of tables that were moved there because users read them much."""

    read_nanos: int
    """How long users have waited for a block from there lately, in nanoseconds on average; 0 if none was
    read.
    """

    pending_bytes: int
    """Bytes that it was given and has not written yet."""

    rated_bandwidth: int
    """Bytes per second that it was measured to write when it was added; 0 in a store that has only one."""

    bandwidth: int
    """Bytes per second that it has written lately; 0 in a store that has only one."""

    free_bytes: int
    """Bytes that are left there for tables."""


@dataclass(frozen=True, slots=True)
class LoadStats:
    """A sample of the load: what users did over an interval, what waits to be done, and what the pacer makes
    of it. See `Stats.load` and `EventListener.load`. Rates are in bytes per second.
    """

    interval: timedelta
    """How long the interval was."""

    lookups: int
    """Keys that users looked up in it."""

    seeks: int
    """Seeks of iterators."""

    returned_bytes: int
    """Bytes of keys and values that lookups and iterators returned."""

    written_bytes: int
    """Bytes of keys and values that users wrote."""

    read_bytes: int
    """Bytes that users' lookups and iterators read from files."""

    reads: int
    """How many times they read."""

    read_time: timedelta
    """What these reads took together. Over the interval, it is the mean number of users' reads in flight."""

    missed_bytes: int
    """Bytes of the blocks that were not in the block cache when they were asked for."""

    log_bytes: int
    """Bytes written to the log."""

    file_bytes: int
    """Bytes read and written for whatever cause, background work included."""

    held_up: bool
    """Whether writers were slowed or stopped."""

    waiting_writers: int
    """Writers that wait now until there is less to do."""

    active_bytes: int
    """Bytes in the memtables that take writes."""

    sealed_memtables: int
    """Sealed memtables that wait for their flush; small ones that are flushed together count as one."""

    level0_runs: int
    """What level 0 counts for, in runs; of the keyspace where that is most."""

    level0_bytes: int
    """Bytes in level 0; of the keyspace where that is most."""

    debt_bytes: int
    """Bytes to compact until no level is over its limit."""

    flush_rate: int
    """What flushes write while they run; 0 before the first."""

    compaction_rate: int
    """What compactions read while they run; 0 before the first."""

    running_jobs: int
    """Compactions and rewrites that are running."""

    is_high: bool
    """Whether the pacer takes the load for high."""

    client_rate: int
    """What users take of the device, as the pacer estimates it."""

    background_rate: int | None
    """What compactions and rewrites may read and write together; `None` if nothing limits them."""

    device_rate: int
    """The most that was read and written together lately."""
