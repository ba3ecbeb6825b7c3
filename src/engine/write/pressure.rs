//! Pressure: the latest sample of the load, and what the pacer lets writers do under it.
//!
//! Every write reads the sample. Threads of low priority replace it, and no writer may wait for one of those, so the
//! sample is not behind a lock. A writer that must stop waits here, with the writer's lock released, until the load
//! has changed.
//!
//! Invariant: no writer sleeps through a change. Either the writer sees the new load, or the one who changed it sees
//! the writer's mark and wakes it.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;
use std::{cmp, fmt};

use arc_swap::ArcSwap;

use super::path::WritePath;
use super::writer::Writer;
use crate::engine::schedule::background::Background;
use crate::env::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::env::sync::atomic::{AtomicBool, fence};
use crate::env::sync::{Condvar, MutexGuard};
use crate::policy::{self, LoadState, Slowdown, WriterVerdict};

/// Why writers were made to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StallReason {
    /// There is too much to do.
    Load(policy::Pressure),
    /// An ingest is put behind all that was written.
    Ingest,
}

impl From<policy::Pressure> for StallReason {
    fn from(reason: policy::Pressure) -> Self {
        Self::Load(reason)
    }
}

impl fmt::Display for StallReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load(policy::Pressure::Memtables) => "memtables wait for their flush",
            Self::Load(policy::Pressure::Level0Runs) => "level 0 has too many runs, or too much in them",
            Self::Load(policy::Pressure::Debt) => "too much waits to be compacted",
            Self::Ingest => "an ingest takes its place",
        })
    }
}

/// Time beyond this is forgiven: the hard limits hold without it, and no single call should pay for a burst.
const OWED_MAX: Duration = Duration::from_millis(100);

/// The load, and the writers that wait for another one. Every write reads it. Threads of low priority write it, and
/// nobody may wait for these, so it has no lock.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    load: ArcSwap<LoadState>,
    /// Time that slowed-down writers must still let pass, in nanoseconds. Changed by the holder of the writer's lock alone.
    owed: AtomicU64,
    /// Up to when time has served it.
    served: AtomicU64,
    /// A writer has been told to stop by the load, and may wait for another one.
    stopped: StopMark,
    /// Writers that wait until there is less to do.
    waiting: AtomicUsize,
    changed: Condvar,
}

/// A mark that a writer may wait for another load. Either the writer sees the change of the load, or the one who
/// changed it sees the mark; maybe both.
#[derive(Debug, Default)]
struct StopMark(AtomicBool);

impl StopMark {
    /// For the writer, before it looks at the load for the last time.
    fn set(&self) {
        self.0.store(true, Relaxed);
        fence(SeqCst);
    }

    /// For who has changed the load.
    fn is_set(&self) -> bool {
        fence(SeqCst);
        self.0.load(Relaxed)
    }

    fn clear(&self) {
        self.0.store(false, Relaxed);
    }
}

impl Pressure {
    /// The latest sample.
    pub(crate) fn load(&self) -> LoadState {
        **self.load.load()
    }

    /// Writers have written `bytes` at once while they were slowed.
    pub(crate) fn owe(&self, bytes: u64, slowdown: Slowdown) {
        let time = match slowdown {
            Slowdown::BytesPerSecond(rate) => {
                Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1))
            }
            Slowdown::PerWrite(time) => time,
        };
        self.set_owed((self.owed() + time).min(OWED_MAX));
    }

    /// Time that must still pass.
    pub(crate) fn owed(&self) -> Duration {
        Duration::from_nanos(self.owed.load(Relaxed))
    }

    /// Time has passed until `now`, by the environment's clock: so much less is owed.
    pub(crate) fn serve(&self, now: Duration) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let before = self.served.swap(now, Relaxed);
        self.set_owed(self.owed().saturating_sub(Duration::from_nanos(now.saturating_sub(before))));
    }

    /// Time up to `now` serves nothing.
    pub(crate) fn forget_time(&self, now: Duration) {
        self.served.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn set_owed(&self, owed: Duration) {
        self.owed.store(u64::try_from(owed.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Lets a writer that waits look again.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Releases the writer's lock until the load may have changed.
    pub(crate) fn wait_for_change(&self, guard: &mut MutexGuard<'_, Writer>) {
        self.while_waiting(|| self.changed.wait(guard));
    }

    /// Releases the writer's lock for as long, or until writers that wait are woken.
    pub(crate) fn sleep_unless_changed(&self, guard: &mut MutexGuard<'_, Writer>, time: Duration) {
        self.while_waiting(|| _ = self.changed.wait_for(guard, time));
    }

    /// Counts a writer among those that wait while `wait` does.
    pub(crate) fn while_waiting(&self, wait: impl FnOnce()) {
        self.waiting.fetch_add(1, Relaxed);
        wait();
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// Number of writers that wait now until there is less to do.
    pub(crate) fn waiting_writers(&self) -> u64 {
        self.waiting.load(Relaxed) as u64
    }

    /// Replaces the sample by what `next` makes of it.
    pub(crate) fn update(&self, next: impl Fn(&LoadState) -> LoadState) {
        self.load.rcu(|load| next(load));
    }
}

impl Background {
    /// Takes a new sample of the load, whenever a memtable is sealed and a job ends. Returns whether a writer may wait
    /// for it.
    pub(crate) fn sample_load(&self) -> bool {
        // The sample is taken anew if another one has come meanwhile, so an older sample never replaces a newer one.
        self.pressure.update(|last| self.load_now(last));
        self.pressure.stopped.is_set()
    }

    /// Lets stalled writers look again. Not to be called with the writer's lock held.
    pub(crate) fn wake_writers(&self) {
        if let Some(writer) = &self.jobs.log.writer {
            // By the time we have the lock, a writer that has seen the old load is waiting.
            let _writer = writer.lock();
            self.pressure.stopped.clear();
            if !planted!("stalled-writer-not-woken") {
                self.pressure.wake();
            }
        }
    }

    /// What changed since `last`; what users did is the sampler's to say.
    fn load_now(&self, last: &LoadState) -> LoadState {
        let settings = self.jobs.settings.load();
        let policy = &settings.policy;
        let mut load = LoadState {
            active_bytes_max: settings.limits.memtable_bytes,
            flush_bytes_per_second: self.jobs.statistics.flush_rate(),
            compaction_bytes_per_second: self.jobs.statistics.compaction_rate(),
            costs: self.jobs.statistics.costs.costs(),
            users: last.users,
            pace: last.pace,
            levels: self.jobs.statistics.passed_levels(),
            ..LoadState::default()
        };
        for tree in self.jobs.trees.load().values() {
            let view = tree.view();
            load.active_bytes += view.active.bytes();
            load.sealed_memtables += view.sealed.len() as u64;
            load.sealed_bytes += view.sealed_bytes();
            let (overwrite_ratio, layout) = (tree.overwrite_ratio.share(), tree.layout(policy));
            let l0_runs = layout.level0_runs(&view.version, overwrite_ratio);
            let run_bytes = layout.level0_run_bytes(&view.version, overwrite_ratio);
            load.l0_run_bytes = match l0_runs.cmp(&load.l0_runs) {
                cmp::Ordering::Less => load.l0_run_bytes,
                cmp::Ordering::Equal => load.l0_run_bytes.into_iter().chain(run_bytes).min(),
                cmp::Ordering::Greater => run_bytes,
            };
            load.l0_runs = load.l0_runs.max(l0_runs);
            load.l0_bytes = load.l0_bytes.max(view.version.bytes(0));
            let (flushed, parts) = policy::flushed_and_parts(&view.version, settings.limits.memtable_bytes);
            load.l0_flushed_runs = load.l0_flushed_runs.max(flushed as u64);
            load.l0_part_runs = load.l0_part_runs.max(parts as u64);
            for ((now, (_, state)), bytes_max) in
                load.levels.iter_mut().zip(view.version.levels()).zip(layout.limits(&view.version))
            {
                let bytes = state.bytes();
                now.bytes += bytes;
                now.bytes_max = now.bytes_max.saturating_add(if bytes > 0 { bytes_max } else { 0 });
            }
            load.debt_bytes = load.debt_bytes.saturating_add(layout.debt(&view.version));
        }
        load
    }
}

impl WritePath {
    /// What writers may do while the active memtables hold `active_bytes`. Asked with the writer's lock held.
    pub(crate) fn writer_verdict(&self, active_bytes: u64) -> WriterVerdict {
        let pacer = &self.settings.load().policy.pacer;
        let verdict = || pacer.writer(&LoadState { active_bytes, ..self.pressure.load() });
        match verdict() {
            WriterVerdict::Go => {
                if !self.pressure.owed().is_zero() {
                    self.pressure.set_owed(Duration::ZERO);
                }
                WriterVerdict::Go
            }
            WriterVerdict::Stop { .. } => {
                self.pressure.stopped.set();
                verdict()
            }
            delayed => delayed,
        }
    }

    /// Whether a batch of `bytes` must wait until memtables are flushed, while the active ones hold `active_bytes`: it
    /// is large, and the budget has no room for it beside them. If there are no memtables, it does not wait. Asked
    /// with the writer's lock held.
    pub(crate) fn crowds(&self, active_bytes: u64, bytes: u64) -> bool {
        let limits = self.settings.load().limits;
        if bytes <= limits.large_batch_bytes || planted!("large-batch-not-held-back") {
            return false;
        }
        let crowds = || {
            let held = active_bytes + self.pressure.load().sealed_bytes;
            held > 0 && held.saturating_add(bytes) > limits.memtables_bytes
        };
        crowds() && {
            self.pressure.stopped.set();
            crowds()
        }
    }
}

#[cfg(all(test, loom))]
mod interleavings;
