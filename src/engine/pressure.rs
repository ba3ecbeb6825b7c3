//! How hard the writers press, and what the pacer makes of it.

use std::fmt;
use std::time::Duration;

use super::{Engine, Writer};
use crate::env::sync::{Condvar, Mutex, MutexGuard};
use crate::policy::{self, LoadState, WriterVerdict};

/// Why writers were made to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StallReason(policy::Pressure);

impl From<policy::Pressure> for StallReason {
    fn from(reason: policy::Pressure) -> Self {
        Self(reason)
    }
}

impl fmt::Display for StallReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            policy::Pressure::Memtables => "memtables wait for their flush",
            policy::Pressure::Level0Runs => "level 0 has too many runs",
            policy::Pressure::Debt => "too much waits to be merged",
        })
    }
}

/// Waiting time beyond this is forgiven: the hard limits hold without it, and no single call should pay for a burst.
const OWED_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Pressure {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    load: LoadState,
    /// Waiting time that slowed-down writers have not yet served.
    owed: Duration,
}

impl Pressure {
    /// The latest sample.
    pub(crate) fn load(&self) -> LoadState {
        self.state.lock().load
    }

    /// Writers have written `bytes` while they were allowed `bytes_per_second`.
    pub(crate) fn owe(&self, bytes: u64, bytes_per_second: u64) {
        let nanos = bytes.saturating_mul(1_000_000_000) / bytes_per_second.max(1);
        let mut state = self.state.lock();
        state.owed = (state.owed + Duration::from_nanos(nanos)).min(OWED_MAX);
    }

    /// Waiting time that is owed.
    pub(crate) fn owed(&self) -> Duration {
        self.state.lock().owed
    }

    /// Waiting time has been served.
    pub(crate) fn paid(&self, time: Duration) {
        let mut state = self.state.lock();
        state.owed = state.owed.saturating_sub(time);
    }

    /// Lets a writer that waits look again.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Releases the writer's lock until the load may have changed.
    pub(crate) fn wait_for_change(&self, guard: &mut MutexGuard<'_, Writer>) {
        self.changed.wait(guard);
    }
}

impl Engine {
    /// Takes a new sample of the load. Called whenever a memtable is sealed and a job ends.
    pub(crate) fn sample_load(&self) {
        // Under the lock, so that an older sample never takes the place of a newer one.
        let mut state = self.pressure.state.lock();
        state.load = self.load_now();
    }

    /// What writers may do while the active memtables hold `active_bytes`.
    pub(crate) fn writer_verdict(&self, active_bytes: u64) -> WriterVerdict {
        let mut state = self.pressure.state.lock();
        let verdict = self.settings().policy.pacer.writer(&LoadState { active_bytes, ..state.load });
        if verdict == WriterVerdict::Go {
            state.owed = Duration::ZERO;
        }
        verdict
    }

    /// Lets stalled writers look again. Not to be called with the writer's lock held.
    pub(crate) fn wake_writers(&self) {
        if let Some(writer) = &self.writer {
            // A writer that has seen the old load has gone to wait by the time the lock is ours.
            drop(writer.lock());
        }
        self.pressure.wake();
    }

    fn load_now(&self) -> LoadState {
        let mut load = LoadState {
            active_bytes_max: self.settings().limits.memtable_bytes,
            flush_bytes_per_second: self.tally.flush_rate(),
            merge_bytes_per_second: self.tally.merge_rate(),
            ..LoadState::default()
        };
        for tree in self.trees.load().values() {
            let view = tree.view();
            load.active_bytes += view.active.bytes();
            load.sealed_memtables += view.sealed.len() as u64;
            load.sealed_bytes += view.sealed_bytes();
            let l0 = view.version.level(0);
            load.l0_runs = load.l0_runs.max(l0.runs.len() as u64);
            load.l0_bytes = load.l0_bytes.max(l0.bytes());
            load.debt_bytes =
                load.debt_bytes.saturating_add(self.settings().policy.layout.debt(&view.version));
        }
        load
    }
}
