//! Statistics: what the store has done since it was opened.
//!
//! The parts count into [`Statistics`] and into counters of their own. A [`StatsView`] looks at all of them and changes
//! nothing.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::catalog::{LevelState, Run};
use crate::engine::jobs::compaction_iterator::IterationStats;
use crate::engine::jobs::context::JobContext;
use crate::engine::observe::costs::MeasuredCosts;
use crate::engine::read::path::ReadPath;
use crate::engine::read::tree::Tree;
use crate::engine::schedule::background::Background;
use crate::engine::write::path::WritePath;
use crate::engine::write::pressure::StallReason;
use crate::env::sync::OrderedMutex;
use crate::policy::{LevelLoad, Plan};
use crate::stats::{
    ByCause, CacheStats, CompactionStats, FlushStats, KeyspaceStats, LevelShape, PassedBytes, PunchStats,
    ReadByCause, RewriteStats, Shape, SpaceStats, StallStats, Stats,
};
use crate::store::files::meter::{ReadCause, WriteCause};
use crate::store::wal::RecoveredSegment;
use crate::types::{LEVELS, Seq};

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
    hidden_tables: AtomicU64,
    moves: AtomicU64,
    moved_bytes: AtomicU64,
    /// Bytes that jobs have taken from each level into the next one.
    passed: [PassedCounters; LEVELS],
    rewrites: RewriteCounters,
    failures: AtomicU64,
    given_up: AtomicU64,
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

/// Bytes that have left a level for the next one.
#[derive(Debug, Default)]
struct PassedCounters {
    moved: AtomicU64,
    merged: AtomicU64,
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

    /// So many tables are gone, for newer ones have all of their keys.
    pub(in crate::engine) fn hidden(&self, tables: u64) {
        self.hidden_tables.fetch_add(tables, Relaxed);
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

    /// `plan`, which is installed, has taken these bytes from its source, unless they stay in their level.
    pub(in crate::engine) fn passed(&self, plan: &Plan, PassedBytes { moved, merged }: PassedBytes) {
        if let Some(passed) = self.passed.get(usize::from(plan.source))
            && plan.target > plan.source
        {
            passed.moved.fetch_add(moved, Relaxed);
            passed.merged.fetch_add(merged, Relaxed);
        }
    }

    fn passed_bytes(&self) -> [PassedBytes; LEVELS] {
        self.passed.each_ref().map(|PassedCounters { moved, merged }| PassedBytes {
            moved: moved.load(Relaxed),
            merged: merged.load(Relaxed),
        })
    }

    /// What has passed through each level.
    pub(in crate::engine) fn passed_levels(&self) -> [LevelLoad; LEVELS] {
        let mut moved_in = 0;
        self.passed_bytes().map(|passed| {
            let moved_out = passed.moved + passed.merged;
            LevelLoad { moved_in: mem::replace(&mut moved_in, moved_out), moved_out, ..LevelLoad::default() }
        })
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

    /// A job has been given up, because it was suspended for too long.
    pub(in crate::engine) fn given_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
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

/// What is looked at for a picture of the counters.
#[derive(Debug)]
pub(in crate::engine) struct StatsView<'a> {
    pub(in crate::engine) read: &'a ReadPath,
    pub(in crate::engine) write: &'a WritePath,
    pub(in crate::engine) background: &'a Background,
    pub(in crate::engine) jobs: &'a JobContext,
    /// The log of a store that was opened for reading alone.
    pub(in crate::engine) replayed: &'a [RecoveredSegment],
}

impl StatsView<'_> {
    /// A picture of the counters.
    pub(in crate::engine) fn stats(&self) -> Stats {
        let statistics = &self.jobs.statistics;
        let (flush, compaction, counts) =
            (&statistics.flush, &statistics.compaction, self.jobs.cache.counts());
        let keyspaces: Vec<_> =
            self.jobs.trees().values().map(|tree| keyspace_stats(self.jobs, tree)).collect();
        let (snapshots, oldest_snapshot) = self.jobs.snapshots.count();
        let (running_flushes, running_compactions) = self.background.scheduler.running();
        let replayed_bytes = self.replayed.iter().map(|segment| segment.bytes).sum();
        let wal_bytes = self.write.writer.as_ref().map_or(replayed_bytes, |writer| writer.lock().wal.bytes());
        Stats {
            user_bytes_written: statistics.user_bytes(),
            user_ops_written: statistics.user_ops.load(Relaxed),
            user_reads: self.read.reads.sum(),
            written: by_cause(|cause| self.background.meter.bytes_written(cause)),
            syncs: by_cause(|cause| self.background.meter.syncs(cause)),
            read: self.read_by_cause(),
            packs_opened: self.jobs.cache.packs().opened(),
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
                intra_l0: statistics.intra_l0.load(Relaxed),
                releases: statistics.releases.load(Relaxed),
                given_up: statistics.given_up.load(Relaxed),
                expired_tables: statistics.expired_tables.load(Relaxed),
                hidden_tables: statistics.hidden_tables.load(Relaxed),
                moves: statistics.moves.load(Relaxed),
                moved_bytes: statistics.moved_bytes.load(Relaxed),
                passed: statistics.passed_bytes(),
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
            last_seq: self.read.visible().0,
            snapshots,
            oldest_snapshot,
            running_flushes,
            running_compactions,
            background_errors: statistics.failures.load(Relaxed),
            keyspaces,
        }
    }

    fn stall_stats(&self) -> Vec<StallStats> {
        let stalls = self.jobs.statistics.stalls.lock().clone();
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
        let RewriteCounters { jobs, packs, bytes, micros } = &self.jobs.statistics.rewrites;
        RewriteStats {
            jobs: jobs.load(Relaxed),
            packs: packs.load(Relaxed),
            bytes: bytes.load(Relaxed),
            micros: micros.load(Relaxed),
        }
    }

    fn space_stats(&self, wal_bytes: u64) -> SpaceStats {
        let space = self.jobs.storage.reclaimer.space();
        let (data_ranges, data_ranges_max) = self.jobs.storage.reclaimer.data_ranges();
        SpaceStats {
            live_bytes: space.live_bytes,
            dead_bytes: space.total_bytes.saturating_sub(space.live_bytes),
            kept_bytes: space.kept_bytes,
            pack_files: space.packs,
            preallocated_files: self.jobs.storage.recycled.pooled(),
            data_ranges,
            data_ranges_max,
            wal_bytes,
            total_bytes: space.total_bytes + wal_bytes + self.jobs.storage.recycled.bytes(),
        }
    }

    fn punch_stats(&self) -> PunchStats {
        let punching = self.jobs.storage.reclaimer.punching();
        PunchStats {
            punches: punching.punches,
            bytes: punching.bytes,
            micros: u64::try_from(punching.time.as_micros()).unwrap_or(u64::MAX),
            failures: punching.failures,
            unsupported: punching.unsupported,
        }
    }
}

fn by_cause(count: impl Fn(WriteCause) -> u64) -> ByCause {
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

fn keyspace_stats(jobs: &JobContext, tree: &Tree) -> KeyspaceStats {
    let view = tree.view();
    let sealed_bytes = view.sealed_bytes();
    KeyspaceStats {
        name: tree.record.name.clone(),
        memtable_bytes: view.active.bytes() + sealed_bytes,
        sealed_bytes,
        sealed_memtables: view.sealed.len() as u64,
        memtable_entries: view.memtables().map(|memtable| memtable.entries()).sum(),
        debt_bytes: tree.layout(&jobs.settings.load().policy).debt(&view.version),
        shape: shape(jobs, tree),
    }
}

/// The levels of a tree, down to the deepest that holds anything.
pub(in crate::engine) fn shape(jobs: &JobContext, tree: &Tree) -> Shape {
    let version = tree.view().version.clone();
    let layout = tree.layout(&jobs.settings.load().policy);
    let (scores, limits) = (layout.scores(&version), layout.limits(&version));
    let deepest = version.deepest().map_or(0, usize::from);
    let pins = jobs.snapshots.list();
    let levels = version.levels().zip(scores).take(deepest + 1).map(|((number, level), score)| LevelShape {
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

/// What the tables of `level` hold for readers that have gone; somebody reads at `pins`.
fn released_bytes(level: &LevelState, pins: &[Seq]) -> u64 {
    let holding = level.runs.iter().filter(|run| run.held().records > 0);
    holding.flat_map(Run::iter).map(|table| table.holds.released(pins).bytes).sum()
}
