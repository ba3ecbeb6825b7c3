//! The load sampler: looks at what users do once in the pacer's interval, and keeps what the pacer makes of it.
//!
//! It has no thread. Compaction thread 0 looks while it has no work, jobs look between two pieces of their work. While users do
//! nothing nobody looks, so a store at rest sleeps. A sample that comes late covers the longer time.
//!
//! A sample replaces two fields of the load that [`Pressure`] keeps. The others come when a memtable is sealed or a job ends.
//!
//! It touches what [`LoadSampler`] holds. Locks: one of its own, a leaf; then the scheduler's, to wake it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::users::{Seen, UserCounters};
use crate::engine::shared::events::{Event, Events};
use crate::engine::shared::load_sample::LoadSample;
use crate::engine::shared::pressure::Pressure;
use crate::engine::shared::settings::Settings;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::Env;
use crate::env::sync::OrderedMutex;
use crate::policy::{JobClass, LoadClass, LoadState, RunningJobs};
use crate::stats::LoadStats;

/// Takes samples of the load.
#[derive(Debug)]
pub(in crate::engine) struct LoadSampler {
    pub(in crate::engine) env: Arc<dyn Env>,
    pub(in crate::engine) settings: Arc<ArcSwap<Settings>>,
    pub(in crate::engine) users: Arc<UserCounters>,
    /// Where samples go.
    pub(in crate::engine) pressure: Arc<Pressure>,
    pub(in crate::engine) events: Arc<Events>,
    /// Woken when the class of the load has changed.
    pub(in crate::engine) scheduler: Arc<dyn BackgroundThreads>,
    pub(in crate::engine) running: RunningCounts,
    /// Callers that wait until nothing is left to do.
    pub(in crate::engine) waiters: AtomicU64,
    pub(in crate::engine) seen: OrderedMutex<Seen>,
}

/// Jobs that have been claimed and not ended, by class, and flushes.
#[derive(Debug, Default)]
pub(in crate::engine) struct RunningCounts {
    jobs: [AtomicU64; JobClass::COUNT],
    flushes: AtomicU64,
}

impl RunningCounts {
    pub(in crate::engine) fn begin(&self, class: JobClass) {
        self.jobs[class as usize].fetch_add(1, Relaxed);
    }

    pub(in crate::engine) fn begin_flush(&self) {
        self.flushes.fetch_add(1, Relaxed);
    }

    pub(in crate::engine) fn end_flush(&self) {
        self.flushes.fetch_sub(1, Relaxed);
    }

    fn is_flushing(&self) -> bool {
        self.flushes.load(Relaxed) > 0
    }

    pub(in crate::engine) fn end(&self, class: JobClass) {
        self.jobs[class as usize].fetch_sub(1, Relaxed);
    }

    fn counts(&self) -> RunningJobs {
        RunningJobs(self.jobs.each_ref().map(|count| count.load(Relaxed)))
    }
}

impl LoadSampler {
    /// The latest sample, with what changes between samples as it is now.
    pub(in crate::engine) fn load(&self) -> LoadState {
        LoadState {
            running: self.running.counts(),
            is_flushing: self.running.is_flushing(),
            processors: self.env.cores() as u64,
            compaction_threads: self.settings.load().limits.background_threads as u64,
            waiting_writers: self.pressure.waiting_writers(),
            is_awaited: self.waiters.load(Relaxed) > 0,
            ..self.pressure.load()
        }
    }

    /// Takes a sample if the last one is an interval ago.
    pub(in crate::engine) fn look(&self) {
        let settings = self.settings.load();
        let pacer = &settings.policy.pacer;
        let (now, interval) = (self.env.now(), pacer.interval());
        let sample = {
            let mut seen = self.seen.lock();
            if now.saturating_sub(seen.at()) < interval {
                return;
            }
            let users = seen.look(now, interval, || self.users.counts());
            let before = self.load();
            let pace = pacer.pace(&before, &users);
            self.pressure.update(|load| LoadState { users, pace, ..*load });
            LoadSample { load: LoadState { users, pace, ..before }, before: before.pace }
        };
        self.events.notify(|| Event::Load(Box::new((stats_of(&sample.load), sample))));
        if sample.load.pace.class != sample.before.class {
            self.scheduler.wake();
        }
    }

    /// The latest sample, for users.
    pub(in crate::engine) fn load_stats(&self) -> LoadStats {
        stats_of(&self.load())
    }

    /// The pacer's interval.
    pub(in crate::engine) fn interval(&self) -> Duration {
        self.settings.load().policy.pacer.interval()
    }

    /// A caller waits, while the returned value lives, until nothing is left to do.
    pub(in crate::engine) fn wait(&self) -> Waiter<'_> {
        self.waiters.fetch_add(1, Relaxed);
        Waiter(&self.waiters)
    }

    /// When to look next; `None` while there is nothing to see.
    pub(in crate::engine) fn next_look(&self) -> Option<Duration> {
        let LoadState { users, pace, .. } = self.pressure.load();
        let is_active = users.asked > 0 || users.written_bytes > 0 || users.held_up;
        (is_active || pace.class == LoadClass::High).then(|| self.interval())
    }
}

/// `load`, for users.
fn stats_of(load: &LoadState) -> LoadStats {
    LoadStats {
        interval: load.users.period,
        lookups: load.users.lookups,
        seeks: load.users.seeks,
        returned_bytes: load.users.returned_bytes,
        written_bytes: load.users.written_bytes,
        read_bytes: load.users.read_bytes,
        reads: load.users.reads.into(),
        read_time: load.users.read_time,
        missed_bytes: load.users.missed_bytes,
        log_bytes: load.users.log_bytes,
        file_bytes: load.users.file_bytes,
        held_up: load.users.held_up,
        waiting_writers: load.waiting_writers,
        active_bytes: load.active_bytes,
        sealed_memtables: load.sealed_memtables,
        level0_runs: load.l0_runs,
        level0_bytes: load.l0_bytes,
        debt_bytes: load.debt_bytes,
        flush_rate: load.flush_bytes_per_second,
        compaction_rate: load.compaction_bytes_per_second,
        running_jobs: load.running.all(),
        is_high: load.pace.class == LoadClass::High,
        client_rate: load.pace.client_bytes_per_second,
        background_rate: load.pace.background_bytes_per_second,
        device_rate: load.pace.device_bytes_per_second,
    }
}

/// A caller that waits until nothing is left to do.
pub(in crate::engine) struct Waiter<'a>(&'a AtomicU64);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
