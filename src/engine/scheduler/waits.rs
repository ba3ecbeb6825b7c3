//! Waits for the end of background work, and why none of them ends early.
//!
//! Each holds the lock of the scheduler while it looks, and looks again whenever a job has ended. Under that lock no job of the
//! scheduler begins or ends: it is set as running in the same hold of the lock in which it was found due, and ceases to be so in
//! one that comes after its result was shown. What else may happen between two looks are results that are shown, memtables that
//! are sealed, and keyspaces that come and go. So a wait asks for each fact once, and counts what is running as not done.

use super::{Engine, Job, Scheduler, State};
use crate::error::Result;
use crate::policy::Reason;
use crate::types::{KeyspaceId, Seq};

/// While it lives, no merge of the keyspace starts.
pub(crate) struct MergesHeld<'a> {
    scheduler: &'a Scheduler,
    keyspace: KeyspaceId,
}

impl Drop for MergesHeld<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state.lock();
        state.held.remove(&self.keyspace);
        self.scheduler.changed(&mut state);
    }
}

impl Engine {
    /// Waits until no background work is due.
    ///
    /// It cannot end early: with no flush, merge or rewrite running under the lock, none can show a result between the look at what is
    /// to be merged and that at what is to be flushed, and who still plans is waited for.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.wait_idle_unless(|| false)
    }

    /// As [`Engine::wait_idle`], unless somebody writes: under writers that go on, something may always be due.
    pub(crate) fn wait_idle_or_written(&self) -> Result<()> {
        let upto = self.visible();
        self.wait_idle_unless(|| self.visible() > upto)
    }

    fn wait_idle_unless(&self, pointless: impl Fn() -> bool) -> Result<()> {
        if self.writer.is_none() {
            // Nobody works on a store that is read alone.
            return self.health.check_open();
        }
        let mut state = self.scheduler.state.lock();
        self.retry(&mut state, Job::Flush);
        self.retry(&mut state, Job::Merge);
        loop {
            self.check_progress(&mut state, Job::Flush)?;
            self.check_progress(&mut state, Job::Merge)?;
            let due = self.merge_due(&state.busy, state.rewrites, |_| true, false);
            let has_expired = due.as_ref().is_some_and(|plan| plan.reason == Reason::Expiry);
            let idle =
                state.flushing.is_none() && state.merges == 0 && self.flush_due().is_none() && due.is_none();
            if idle && state.planning > 0 {
                // What it holds of an older version is reclaimed when it lets go.
                self.scheduler.planned.wait(&mut state);
            } else if idle || pointless() {
                drop(state);
                self.wait_reclaimed();
                self.ahead.wait_served();
                return Ok(());
            } else if let Some(rewrite) = due.filter(|plan| self.may_rewrite(&state, plan)) {
                // It may have become due, and may cease to be, without a word to the merging threads: as readers let go.
                state = self.rewrite_planned(state, &rewrite);
            } else {
                if has_expired {
                    // Without a word to the merging threads.
                    state.wakes += 1;
                    self.scheduler.work.notify_all();
                }
                self.scheduler.done.wait(&mut state);
            }
        }
    }

    /// Waits until every memtable that is sealed by now is in tables, and the jobs that have brought it there have ended.
    ///
    /// INVARIANT(I2): it ends only when a single look at each tree, with a running flush counted as not done, shows nothing as old as
    /// what was visible at the beginning: memtables that are sealed later, and keyspaces that are created later, hold only newer
    /// entries or were not there to be waited for, and one that was dropped has nothing to flush.
    pub(crate) fn wait_flushed(&self) -> Result<()> {
        let upto = self.visible();
        let mut state = self.scheduler.state.lock();
        self.retry(&mut state, Job::Flush);
        loop {
            self.check_progress(&mut state, Job::Flush)?;
            if self.oldest_unflushed(&state).is_none_or(|oldest| oldest > upto) {
                return Ok(());
            }
            self.scheduler.done.wait(&mut state);
        }
    }

    /// Number of the oldest entry that is in a sealed memtable, or of which the flush has not ended.
    fn oldest_unflushed(&self, state: &State) -> Option<Seq> {
        if planted!("flushed-by-two-looks") {
            return self.flush_due().and_then(|(_, tree)| tree.first_sealed());
        }
        let sealed = self.flush_due().map(|(first, _)| first);
        let running = state.flushing.map(|flushing| flushing.first);
        sealed.into_iter().chain(running).min()
    }

    /// Waits until no job of `keyspace`, which new jobs do not find any more, is running.
    ///
    /// It cannot end early, for a flush is chosen and set as running under one hold of the lock, and plans that were made before
    /// this wait are thrown away: their claim asks whether anything has changed.
    pub(crate) fn wait_jobs_of(&self, keyspace: KeyspaceId) {
        let mut state = self.scheduler.state.lock();
        while state.flushing.is_some_and(|flushing| flushing.keyspace == keyspace)
            || state.busy.get(&keyspace).is_some_and(|busy| !busy.is_empty())
        {
            self.scheduler.done.wait(&mut state);
        }
        state.busy.remove(&keyspace);
        // Whoever has made a plan meanwhile makes another.
        state.changes += 1;
    }

    /// Waits for the running merges of `keyspace`; none starts while the returned value lives.
    ///
    /// It cannot end early, for a merge, move or rewrite is claimed under the lock under which `held` is asked, and released after
    /// its result is shown; plans that were made before `held` was set are thrown away.
    pub(crate) fn hold_merges(&self, keyspace: KeyspaceId) -> Result<MergesHeld<'_>> {
        let mut state = self.scheduler.state.lock();
        while !state.held.insert(keyspace) {
            self.scheduler.done.wait(&mut state);
        }
        state.changes += 1;
        let held = MergesHeld { scheduler: &self.scheduler, keyspace };
        while state.busy.get(&keyspace).is_some_and(|busy| !busy.is_empty()) {
            self.scheduler.done.wait(&mut state);
        }
        // Before `held` may go, which takes the lock.
        drop(state);
        self.health.check_writable()?;
        Ok(held)
    }
}
