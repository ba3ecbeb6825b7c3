//! Statistics: what the store has done since it was opened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::catalog::{LevelState, Run};
use crate::engine::Engine;
use crate::engine::jobs::compaction_iterator::IterationStats;
use crate::engine::observe::costs::MeasuredCosts;
use crate::engine::read::tree::Tree;
use crate::engine::write::pressure::StallReason;
use crate::env::sync::OrderedMutex;
use crate::stats::{
    ByCause, CacheStats, CompactionStats, FlushStats, KeyspaceStats, LevelShape, PunchStats, ReadByCause,
    RewriteStats, Shape, SpaceStats, StallStats, Stats,
};
use crate::store::files::meter::{ReadCause, WriteCause};
use crate::types::Seq;

/// Counters of the engine's own; bytes and syncs are counted by the files.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    user_ops: AtomicU64,
    user_bytes: AtomicU64,
    flush: JobCounters,
    compaction: JobCounters,
    intra_l0: AtomicU64,
    releases: AtomicU64,
    expired_tables: AtomicU64,
    moves: AtomicU64,
    moved_bytes: AtomicU64,
    rewrites: RewriteCounters,
    failures: AtomicU64,
    /// Time that writers were made to wait.
    pub(in crate::engine) stalled_nanos: AtomicU64,
    stalls: OrderedMutex<BTreeMap<StallReason, (u64, Duration)>>,
    pub(in crate::engine) costs: MeasuredCosts,
}

/// Counters of rewrites.
#[derive(Debug, Default)]
struct RewriteCounters {
    jobs: AtomicU64,
    packs: AtomicU64,
    bytes: AtomicU64,
    micros: AtomicU64,
}

/// Counters of one kind of job.
#[derive(Debug, Default)]
struct JobCounters {
    jobs: AtomicU64,
    records_in: AtomicU64,
    records_out: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    micros: AtomicU64,
    /// Bytes read per second, averaged over the latest jobs.
    rate: AtomicU64,
}

impl JobCounters {
    fn add(&self, iteration: IterationStats, bytes_in: u64, bytes_out: u64, time: Duration) {
        self.jobs.fetch_add(1, Relaxed);
        self.records_in.fetch_add(iteration.records_in, Relaxed);
        self.records_out.fetch_add(iteration.records_out, Relaxed);
        self.bytes_in.fetch_add(bytes_in, Relaxed);
        self.bytes_out.fetch_add(bytes_out, Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Relaxed);
        let now = bytes_in.saturating_mul(1_000_000) / micros.max(1);
        let before = self.rate.load(Relaxed);
        // One job in four is noise; ten jobs forget what was before.
        self.rate.store(if before == 0 { now } else { before / 4 * 3 + now / 4 }, Relaxed);
    }
}

impl Statistics {
    pub(in crate::engine) fn user_write(&self, ops: u32, bytes: u64) {
        self.user_ops.fetch_add(ops.into(), Relaxed);
        self.user_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes of keys and values that users have written.
    pub(in crate::engine) fn user_bytes(&self) -> u64 {
        self.user_bytes.load(Relaxed)
    }

    pub(in crate::engine) fn flushed(
        &self,
        iteration: IterationStats,
        bytes_in: u64,
        bytes_out: u64,
        time: Duration,
    ) {
        self.flush.add(iteration, bytes_in, bytes_out, time);
    }

    pub(in crate::engine) fn compacted(
        &self,
        iteration: IterationStats,
        bytes_in: u64,
        bytes_out: u64,
        time: Duration,
    ) {
        self.compaction.add(iteration, bytes_in, bytes_out, time);
        self.costs.compacted(bytes_in, time);
    }

    /// The compaction that has just been counted was an intra-L0 compaction.
    pub(in crate::engine) fn compacted_in_l0(&self) {
        self.intra_l0.fetch_add(1, Relaxed);
    }

    /// The compaction that has just been counted gave up what tables held for readers that have gone.
    pub(in crate::engine) fn released(&self) {
        self.releases.fetch_add(1, Relaxed);
    }

    /// So many tables are gone, for all of their values had expired.
    pub(in crate::engine) fn expired(&self, tables: u64) {
        self.expired_tables.fetch_add(tables, Relaxed);
    }

    /// Tables of `bytes` together have moved.
    pub(in crate::engine) fn moved(&self, bytes: u64) {
        self.moves.fetch_add(1, Relaxed);
        self.moved_bytes.fetch_add(bytes, Relaxed);
    }

    /// A rewrite has copied tables of `bytes` together, and left this many packs without a live table.
    pub(in crate::engine) fn rewrote(&self, packs: u64, bytes: u64, time: Duration) {
        self.rewrites.jobs.fetch_add(1, Relaxed);
        self.rewrites.packs.fetch_add(packs, Relaxed);
        self.rewrites.bytes.fetch_add(bytes, Relaxed);
        self.rewrites.micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// A background job has failed.
    pub(in crate::engine) fn failed(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    pub(in crate::engine) fn stall(&self, reason: StallReason, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.stalled_nanos.fetch_add(nanos, Relaxed);
        let mut stalls = self.stalls.lock();
        let (count, total) = stalls.entry(reason).or_default();
        *count += 1;
        *total += time;
    }

    /// Memtable bytes flushed per second lately; 0 before the first flush.
    pub(in crate::engine) fn flush_rate(&self) -> u64 {
        self.flush.rate.load(Relaxed)
    }

    /// Table bytes compacted per second lately; 0 before the first compaction.
    pub(in crate::engine) fn compaction_rate(&self) -> u64 {
        self.compaction.rate.load(Relaxed)
    }
}

impl Engine {
    /// A picture of the counters.
    pub(crate) fn stats(&self) -> Stats {
        let (flush, compaction, counts) =
            (&self.statistics.flush, &self.statistics.compaction, self.cache.counts());
        let keyspaces: Vec<_> = self.trees().values().map(|tree| self.keyspace_stats(tree)).collect();
        let (snapshots, oldest_snapshot) = self.jobs.snapshots.count();
        let (running_flushes, running_compactions) = self.scheduler.running();
        let replayed_bytes = self.replayed.iter().map(|segment| segment.bytes).sum();
        let wal_bytes = self.writer.as_ref().map_or(replayed_bytes, |writer| writer.lock().wal.bytes());
        Stats {
            user_bytes_written: self.statistics.user_bytes(),
            user_ops_written: self.statistics.user_ops.load(Relaxed),
            user_reads: self.read.reads.sum(),
            written: self.by_cause(|cause| self.background.meter.bytes_written(cause)),
            syncs: self.by_cause(|cause| self.background.meter.syncs(cause)),
            read: self.read_by_cause(),
            packs_opened: self.cache.packs().opened(),
            stalls: self.stall_stats(),
            cache: CacheStats {
                hits: counts.hits,
                misses: counts.misses,
                bytes: counts.bytes,
                capacity: counts.capacity,
            },
            prefix_filter: self.read.reads.prefix_filter(),
            compaction: CompactionStats {
                jobs: compaction.jobs.load(Relaxed),
                intra_l0: self.statistics.intra_l0.load(Relaxed),
                releases: self.statistics.releases.load(Relaxed),
                expired_tables: self.statistics.expired_tables.load(Relaxed),
                moves: self.statistics.moves.load(Relaxed),
                moved_bytes: self.statistics.moved_bytes.load(Relaxed),
                records_in: compaction.records_in.load(Relaxed),
                records_out: compaction.records_out.load(Relaxed),
                bytes_in: compaction.bytes_in.load(Relaxed),
                bytes_out: compaction.bytes_out.load(Relaxed),
                micros: compaction.micros.load(Relaxed),
            },
            flush: FlushStats {
                jobs: flush.jobs.load(Relaxed),
                records: flush.records_out.load(Relaxed),
                bytes: flush.bytes_out.load(Relaxed),
                micros: flush.micros.load(Relaxed),
            },
            rewrite: self.rewrite_stats(),
            space: self.space_stats(wal_bytes),
            punch: self.punch_stats(),
            costs: self.background.cost_stats(),
            load: self.jobs.throttle.sampler.load_stats(),
            memtable_bytes: keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum(),
            last_seq: self.visible().0,
            snapshots,
            oldest_snapshot,
            running_flushes,
            running_compactions,
            background_errors: self.statistics.failures.load(Relaxed),
            keyspaces,
        }
    }

    fn stall_stats(&self) -> Vec<StallStats> {
        let stalls = self.statistics.stalls.lock().clone();
        let of = |(reason, (count, time)): (StallReason, (u64, Duration))| StallStats {
            reason: reason.to_string(),
            count,
            micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        };
        stalls.into_iter().map(of).collect()
    }

    fn read_by_cause(&self) -> ReadByCause {
        ReadByCause {
            get: self.background.meter.bytes_read(ReadCause::Get),
            scan: self.background.meter.bytes_read(ReadCause::Scan),
            compaction: self.background.meter.bytes_read(ReadCause::Compaction),
            open: self.background.meter.bytes_read(ReadCause::Open),
        }
    }

    fn rewrite_stats(&self) -> RewriteStats {
        let RewriteCounters { jobs, packs, bytes, micros } = &self.statistics.rewrites;
        RewriteStats {
            jobs: jobs.load(Relaxed),
            packs: packs.load(Relaxed),
            bytes: bytes.load(Relaxed),
            micros: micros.load(Relaxed),
        }
    }

    fn space_stats(&self, wal_bytes: u64) -> SpaceStats {
        let space = self.storage.reclaimer.space();
        let (data_ranges, data_ranges_max) = self.storage.reclaimer.data_ranges();
        SpaceStats {
            live_bytes: space.live_bytes,
            dead_bytes: space.total_bytes.saturating_sub(space.live_bytes),
            kept_bytes: space.kept_bytes,
            pack_files: space.packs,
            preallocated_files: self.storage.recycled.pooled(),
            data_ranges,
            data_ranges_max,
            wal_bytes,
            total_bytes: space.total_bytes + wal_bytes + self.storage.recycled.bytes(),
        }
    }

    fn punch_stats(&self) -> PunchStats {
        let punching = self.storage.reclaimer.punching();
        PunchStats {
            punches: punching.punches,
            bytes: punching.bytes,
            micros: u64::try_from(punching.time.as_micros()).unwrap_or(u64::MAX),
            failures: punching.failures,
            unsupported: punching.unsupported,
        }
    }

    fn by_cause(&self, count: impl Fn(WriteCause) -> u64) -> ByCause {
        ByCause {
            wal: count(WriteCause::Wal),
            flush: count(WriteCause::Flush),
            compaction: count(WriteCause::Compaction),
            rewrite: count(WriteCause::Rewrite),
            manifest: count(WriteCause::Manifest),
            directory: count(WriteCause::Directory),
            reclaim: count(WriteCause::Reclaim),
            preallocate: count(WriteCause::Preallocate),
        }
    }

    fn keyspace_stats(&self, tree: &Tree) -> KeyspaceStats {
        let view = tree.view();
        let sealed_bytes = view.sealed_bytes();
        KeyspaceStats {
            name: tree.record.name.clone(),
            memtable_bytes: view.active.bytes() + sealed_bytes,
            sealed_bytes,
            sealed_memtables: view.sealed.len() as u64,
            memtable_entries: view.memtables().map(|memtable| memtable.entries()).sum(),
            debt_bytes: self.settings().policy.layout.debt(&view.version),
            shape: self.shape(tree),
        }
    }

    /// An estimate of the keys of a tree that have a value, as if every tombstone in a table hid an entry, and every
    /// other entry were a key of its own.
    pub(crate) fn approximate_len(&self, tree: &Tree) -> u64 {
        let view = tree.view();
        let runs = || view.version.runs().map(|(_, run)| run);
        let entries =
            view.memtables().map(|memtable| memtable.entries()).chain(runs().map(|run| run.entries()));
        entries.sum::<u64>().saturating_sub(2 * runs().map(|run| run.tombstones()).sum::<u64>())
    }

    /// The levels of a tree, down to the deepest that holds anything.
    pub(crate) fn shape(&self, tree: &Tree) -> Shape {
        let version = tree.view().version.clone();
        let layout = self.settings().policy.layout;
        let (scores, limits) = (layout.scores(&version), layout.limits(&version));
        let deepest = version.deepest().map_or(0, usize::from);
        let pins = self.jobs.snapshots.list();
        let levels =
            version.levels().zip(scores).take(deepest + 1).map(|((number, level), score)| LevelShape {
                level: number.into(),
                runs: level.runs.len(),
                tables: level.runs.iter().map(|run| run.len()).sum(),
                bytes: level.bytes(),
                entries: level.runs.iter().map(|run| run.entries()).sum(),
                tombstones: level.runs.iter().map(|run| run.tombstones()).sum(),
                range_tombstones: level.runs.iter().map(|run| run.range_tombstones()).sum(),
                held_bytes: level.runs.iter().map(|run| run.held().bytes).sum(),
                released_bytes: released_bytes(level, &pins),
                limit_bytes: limits[usize::from(number)],
                score,
            });
        Shape { levels: levels.collect() }
    }
}

/// What the tables of `level` hold for readers that have gone; somebody reads at `pins`.
fn released_bytes(level: &LevelState, pins: &[Seq]) -> u64 {
    let holding = level.runs.iter().filter(|run| run.held().records > 0);
    holding.flat_map(Run::iter).map(|table| table.holds.released(pins).bytes).sum()
}
