//! Counters: what the store has done since it was opened.
//!
//! All rooms count into [`Statistics`]; bytes and syncs are counted by the files. A
//! [`StatsView`](crate::engine::observe::stats_view::StatsView) makes one picture of all counters.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::costs::MeasuredCosts;
use super::pressure::StallReason;
use crate::env::sync::OrderedMutex;
use crate::policy::{LevelLoad, Plan};
use crate::stats::{CompactionStats, FlushStats, PassedBytes, RewriteStats, StallStats};
use crate::types::LEVELS;

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
    deleted_tables: AtomicU64,
    collected_bytes: AtomicU64,
    hidden_tables: AtomicU64,
    trimmed_tables: AtomicU64,
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

    /// So many tables are gone, for range deletes hide them.
    pub(in crate::engine) fn deleted(&self, tables: u64) {
        self.deleted_tables.fetch_add(tables, Relaxed);
    }

    /// So many tables are gone, for newer ones have all of their keys.
    pub(in crate::engine) fn hidden(&self, tables: u64) {
        self.hidden_tables.fetch_add(tables, Relaxed);
    }

    /// So many bytes of values were written anew.
    pub(in crate::engine) fn collected(&self, bytes: u64) {
        self.collected_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes of values that were written anew.
    pub(in crate::engine) fn collected_bytes(&self) -> u64 {
        self.collected_bytes.load(Relaxed)
    }

    /// So many tables were removed from compaction buffers.
    pub(in crate::engine) fn trimmed(&self, tables: u64) {
        self.trimmed_tables.fetch_add(tables, Relaxed);
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

    /// How many operations users have written.
    pub(in crate::engine) fn user_ops(&self) -> u64 {
        self.user_ops.load(Relaxed)
    }

    /// How many background jobs have failed.
    pub(in crate::engine) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// A picture of the counters of flushes.
    pub(in crate::engine) fn flush_stats(&self) -> FlushStats {
        FlushStats {
            jobs: self.flush.jobs.load(Relaxed),
            records: self.flush.records_out.load(Relaxed),
            bytes: self.flush.bytes_out.load(Relaxed),
            micros: self.flush.micros.load(Relaxed),
        }
    }

    /// A picture of the counters of compactions.
    pub(in crate::engine) fn compaction_stats(&self) -> CompactionStats {
        CompactionStats {
            jobs: self.compaction.jobs.load(Relaxed),
            intra_l0: self.intra_l0.load(Relaxed),
            releases: self.releases.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
            expired_tables: self.expired_tables.load(Relaxed),
            deleted_tables: self.deleted_tables.load(Relaxed),
            hidden_tables: self.hidden_tables.load(Relaxed),
            trimmed_tables: self.trimmed_tables.load(Relaxed),
            moves: self.moves.load(Relaxed),
            moved_bytes: self.moved_bytes.load(Relaxed),
            passed: self.passed_bytes(),
            records_in: self.compaction.records_in.load(Relaxed),
            records_out: self.compaction.records_out.load(Relaxed),
            bytes_in: self.compaction.bytes_in.load(Relaxed),
            bytes_out: self.compaction.bytes_out.load(Relaxed),
            micros: self.compaction.micros.load(Relaxed),
        }
    }

    /// A picture of the counters of rewrites.
    pub(in crate::engine) fn rewrite_stats(&self) -> RewriteStats {
        let RewriteCounters { jobs, packs, bytes, micros } = &self.rewrites;
        RewriteStats {
            jobs: jobs.load(Relaxed),
            packs: packs.load(Relaxed),
            bytes: bytes.load(Relaxed),
            micros: micros.load(Relaxed),
        }
    }

    /// How long writers have waited, by reason.
    pub(in crate::engine) fn stall_stats(&self) -> Vec<StallStats> {
        let stalls = self.stalls.lock().clone();
        let of = |(reason, (count, time)): (StallReason, (u64, Duration))| StallStats {
            reason: reason.to_string(),
            count,
            micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        };
        stalls.into_iter().map(of).collect()
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

/// How much a job has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::engine) struct IterationStats {
    pub(in crate::engine) records_in: u64,
    pub(in crate::engine) records_out: u64,
}

impl IterationStats {
    pub(in crate::engine) fn add(&mut self, other: Self) {
        self.records_in += other.records_in;
        self.records_out += other.records_out;
    }
}
