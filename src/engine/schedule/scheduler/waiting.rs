//! Waiting for jobs: until nothing is due, until memtables are flushed, until a keyspace has no jobs.
//!
//! A caller that waits for jobs to end looks under the scheduler's lock, and looks again whenever a job has ended.
//! Under that lock no job begins or ends. What takes long to find out, it finds out without the lock, and again if
//! anything has begun or ended meanwhile. A job is set as running in the same hold of the lock in which it was found
//! due, and is unset only in a later hold, after its result was shown. Between two looks, results may be shown,
//! memtables sealed, keyspaces created or dropped. So a wait asks for each fact once, and counts a running job as not
//! done.
//!
//! It touches what [`Background`] holds.

use super::{Background, Job, Scheduler, State, can_wait};
use crate::error::Result;
use crate::policy::{Plan, PlanKind};
use crate::types::{KeyspaceId, Seq};

/// While it lives, no compaction of the keyspace starts.
pub(crate) struct CompactionsPaused<'a> {
    scheduler: &'a Scheduler,
    keyspace: KeyspaceId,
}

impl Drop for CompactionsPaused<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state.lock();
        state.held.remove(&self.keyspace);
        state.change(self.keyspace);
        self.scheduler.changed(&mut state);
    }
}

impl Background {
    /// Waits until no background work is due.
    ///
    /// It cannot end early. If nothing has begun or ended between the look for compactions and the look for flushes, and
    /// none of them runs, no result was shown between the two. It also waits for threads that still plan.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.wait_idle_unless(|| false)
    }

    /// As [`Background::wait_idle`], unless somebody writes: under writers that go on, something may always be due.
    pub(crate) fn wait_idle_or_written(&self) -> Result<()> {
        let upto = self.visible();
        self.wait_idle_unless(|| self.visible() > upto)
    }

    fn wait_idle_unless(&self, pointless: impl Fn() -> bool) -> Result<()> {
        if self.jobs.log.writer.is_none() {
            // Nobody works on a store that is read alone.
            return self.jobs.health.check_open();
        }
        let mut state = self.scheduler.state.lock();
        // The pacer defers nothing that somebody waits for.
        let _waiter = self.jobs.throttle.sampler.wait();
        self.scheduler.changed(&mut state);
        self.retry(&mut state, Job::Flush);
        self.retry(&mut state, Job::Compaction);
        loop {
            self.check_progress(&mut state, Job::Flush)?;
            self.check_progress(&mut state, Job::Compaction)?;
            let basis = state.basis();
            // Nobody waits for what comes nearer to readers.
            let is_due = |plan: &Plan| !matches!(plan.kind, PlanKind::Relocate(_));
            let plan =
                || self.compaction_due(&basis.busy, basis.rewrites, |_| true, false).plan.filter(is_due);
            let (held, due) = self.plan_unlocked(state, plan);
            state = held;
            let is_stale = (state.changes, state.wakes) != (basis.changes, basis.wakes);
            let came_by_itself = due.as_ref().is_some_and(|plan| can_wait(plan.reason));
            let is_idle = state.flushing.is_none()
                && state.compactions == 0
                && self.flush_due().is_none()
                && due.is_none();
            if pointless() || is_idle && !is_stale && state.planning == 0 {
                break;
            } else if is_stale {
                continue;
            } else if is_idle {
                // What it holds of an older version is reclaimed when it lets go.
                self.scheduler.planned.wait(&mut state);
            } else if let Some(rewrite) = due.filter(|plan| self.may_rewrite(&state, plan)) {
                // It becomes due, and ceases to be, as readers let go, and nobody tells the compaction threads.
                state = self.rewrite_planned(state, &rewrite);
            } else {
                if came_by_itself {
                    // Without a word to the compaction threads.
                    state.wakes += 1;
                    self.scheduler.work.notify_all();
                }
                self.scheduler.done.wait(&mut state);
            }
        }
        drop(state);
        self.jobs.storage.wait_reclaimed();
        self.jobs.preallocator.wait_served();
        Ok(())
    }

    /// Waits until every memtable that is sealed by now is in tables, and the jobs that have brought it there have
    /// ended.
    ///
    /// INVARIANT(I2): it ends only when one look at each tree, with a running flush counted as not done, shows nothing
    /// as old as what was visible at the beginning. Memtables that are sealed later hold only newer entries. Keyspaces
    /// that are created later had nothing to wait for, and one that was dropped has nothing to flush.
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
            return self.flush_due().and_then(|(_, tree)| Some(tree.next_sealed()?.0));
        }
        let sealed = self.flush_due().map(|(first, _)| first);
        let running = state.flushing.as_ref().map(|flushing| flushing.first);
        sealed.into_iter().chain(running).min()
    }

    /// Waits until no job of `keyspace` is running. New jobs do not find that keyspace any more.
    ///
    /// It cannot end early. A flush is chosen and set as running under one hold of the lock. Plans that were made
    /// before this wait are thrown away: their claim checks whether anything has changed.
    pub(crate) fn wait_jobs_of(&self, keyspace: KeyspaceId) {
        let mut state = self.scheduler.state.lock();
        while state.flushing.as_ref().is_some_and(|flushing| flushing.keyspaces.contains(&keyspace))
            || state.busy.get(&keyspace).is_some_and(|busy| !busy.is_empty())
        {
            self.scheduler.done.wait(&mut state);
        }
        state.busy.remove(&keyspace);
        // Whoever has made a plan meanwhile makes another.
        state.changes += 1;
        state.changed.remove(&keyspace);
        state.backoffs.forget(keyspace);
    }

    /// Waits for the running compactions of `keyspace`; none starts while the returned value lives.
    ///
    /// It cannot end early. A compaction, move or rewrite is claimed under the same lock as `held` is read, and is
    /// released after its result was shown. Plans that were made before `held` was set are thrown away.
    pub(crate) fn pause_compactions(&self, keyspace: KeyspaceId) -> Result<CompactionsPaused<'_>> {
        let mut state = self.scheduler.state.lock();
        while !state.held.insert(keyspace) {
            self.scheduler.done.wait(&mut state);
        }
        state.change(keyspace);
        let held = CompactionsPaused { scheduler: &self.scheduler, keyspace };
        while state.busy.get(&keyspace).is_some_and(|busy| !busy.is_empty()) {
            self.scheduler.done.wait(&mut state);
        }
        // Before `held` may go, which takes the lock.
        drop(state);
        self.jobs.health.check_writable()?;
        Ok(held)
    }

    /// Fails when jobs of this kind do not get on by themselves.
    fn check_progress(&self, state: &mut State, job: Job) -> Result<()> {
        self.jobs.health.check_writable()?;
        self.lasting_trouble(state, job).map_or(Ok(()), Err)
    }
}
