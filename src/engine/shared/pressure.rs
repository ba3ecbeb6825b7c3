//! Pressure: the latest sample of the load, and what the pacer lets writers do under it.
//!
//! Every write reads the sample. Threads of low priority replace it, and no writer may wait for one of those, so the
//! sample is not behind a lock. A writer that must stop waits here, with the writer's lock released, until the load
//! has changed.
//!
//! Invariant: no writer sleeps through a change. Either the writer sees the new load, or the one who changed it sees
//! the writer's mark and wakes it.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::wake::Waiters;
use crate::env::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::env::sync::atomic::{AtomicBool, fence};
use crate::env::sync::{Condvar, MutexGuard};
use crate::error::Error;
use crate::policy::{self, LoadState, Slowdown};

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
            Self::Load(policy::Pressure::DeadValues) => "dead values wait to be given back",
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

    pub(crate) fn set_owed(&self, owed: Duration) {
        self.owed.store(u64::try_from(owed.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// A writer has been told to stop, and may wait for another load. It looks at the load once more after this.
    pub(crate) fn mark_stopped(&self) {
        self.stopped.set();
    }

    /// Whether a writer may wait for another load. Asked after a change of the load.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.is_set()
    }

    /// Nobody has been told to stop since. Called with the writer's lock held.
    pub(crate) fn clear_stopped(&self) {
        self.stopped.clear();
    }

    /// Lets a writer that waits look again.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Releases the writer's lock until the load may have changed.
    pub(crate) fn wait_for_change<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.while_waiting(|| self.changed.wait(guard));
    }

    /// Releases the writer's lock for as long, or until writers that wait are woken.
    pub(crate) fn sleep_unless_changed<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) {
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

impl Waiters for Pressure {
    fn give_up(&self, _: &Error) {
        self.wake();
    }
}

#[cfg(all(test, loom))]
mod interleavings;
