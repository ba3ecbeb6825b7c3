//! The background threads, what they may do at the same time, and when nothing is left to do.
//!
//! One thread flushes, in the order in which memtables were sealed, and asks nobody. The others merge: an idle one
//! enters the scheduler's lock, where the planner picks the best plan that no running job is in the way of; what the
//! plan touches is claimed until its result is installed (I12). A job that failed without harm is tried again after a
//! pause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::tree::Tree;
use crate::catalog::Version;
use crate::env::sync::{Condvar, Mutex, MutexGuard};
use crate::env::{Priority, Thread};
use crate::error::{Error, Result};
use crate::policy::{Busy, Plan, RangePick, TreeShape, TreeView, next_plan};
use crate::types::{KeyRange, KeyspaceId, LEVELS};

/// Pause after a job that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    /// Something may be due, or a pause may have ended.
    work: Condvar,
    /// A job has ended.
    done: Condvar,
    threads: Mutex<Vec<Thread>>,
}

#[derive(Debug, Default)]
struct State {
    busy: BTreeMap<KeyspaceId, Busy>,
    merges: usize,
    /// Whose memtable is being flushed.
    flushing: Option<KeyspaceId>,
    /// The last flush or merge failed; nothing starts before this time.
    pause_until: Option<Duration>,
    stopping: bool,
}

impl Scheduler {
    /// Tells the flushing thread that a memtable was sealed.
    pub(crate) fn wake_flush(&self) {
        // Whoever has seen nothing due has gone to wait by the time the lock is ours.
        drop(self.state.lock());
        self.work.notify_all();
    }
}

impl Engine {
    /// Starts the background threads.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        self.start("terrace-flush", |engine| engine.flush_forever())?;
        self.start("terrace-reclaim", |engine| engine.reclaim_forever())?;
        for number in 0..self.limits.background_threads {
            self.start(&format!("terrace-merge-{number}"), |engine| engine.merge_forever())?;
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, name: &str, body: impl FnOnce(&Self) + Send + 'static) -> Result<()> {
        let engine = self.clone();
        let thread = self.env.spawn(name, Priority::Background, Box::new(move || body(&engine)));
        let thread = thread.map_err(|e| Error::io("start a background thread for", self.device.dir(), e))?;
        self.scheduler.threads.lock().push(thread);
        Ok(())
    }

    /// Ends the background threads. A running merge is given up at its next check.
    pub(crate) fn stop_threads(&self) {
        self.scheduler.state.lock().stopping = true;
        self.reclaimer.stop();
        self.scheduler.work.notify_all();
        self.scheduler.done.notify_all();
        let threads = std::mem::take(&mut *self.scheduler.threads.lock());
        for thread in threads {
            thread.join();
        }
    }

    fn flush_forever(&self) {
        let mut state = self.scheduler.state.lock();
        while !state.stopping {
            let due = if self.paused(&mut state) { None } else { self.flush_due() };
            let Some(tree) = due else {
                self.wait_for_work(&mut state);
                continue;
            };
            state.flushing = Some(tree.id());
            drop(state);
            let result = self.flush(&tree);
            state = self.job_ended(&result);
            state.flushing = None;
            self.scheduler.done.notify_all();
        }
    }

    fn merge_forever(&self) {
        let mut state = self.scheduler.state.lock();
        while !state.stopping {
            let due = if self.paused(&mut state) { None } else { self.merge_due(&state) };
            let Some(plan) = due else {
                self.wait_for_work(&mut state);
                continue;
            };
            state = self.run_claimed(state, &plan).0;
        }
    }

    /// Claims what `plan` touches, runs it, and takes the claim back.
    fn run_claimed<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        plan: &Plan,
    ) -> (MutexGuard<'a, State>, Result<()>) {
        state.busy.entry(plan.keyspace).or_default().claim(plan);
        state.merges += 1;
        drop(state);
        let result = self.tree(plan.keyspace).and_then(|tree| self.run_plan(&tree, plan));
        let mut state = self.job_ended(&result);
        state.merges -= 1;
        if let Some(busy) = state.busy.get_mut(&plan.keyspace) {
            busy.release(plan);
        }
        // The claim is gone only now: look again.
        self.scheduler.work.notify_all();
        self.scheduler.done.notify_all();
        (state, result)
    }

    /// What every job's end brings about.
    fn job_ended(&self, result: &Result<()>) -> MutexGuard<'_, State> {
        self.health.note_job(result);
        self.sample_load();
        self.wake_writers();
        let mut state = self.scheduler.state.lock();
        if result.is_err() {
            state.pause_until = Some(self.env.now() + RETRY_PAUSE);
        }
        self.scheduler.work.notify_all();
        self.scheduler.done.notify_all();
        state
    }

    /// Whether a failure lies back too little, or for good.
    fn paused(&self, state: &mut State) -> bool {
        if state.pause_until.is_some_and(|until| until <= self.env.now()) {
            state.pause_until = None;
        }
        state.pause_until.is_some() || self.health.is_poisoned()
    }

    fn wait_for_work(&self, state: &mut MutexGuard<'_, State>) {
        match state.pause_until {
            Some(until) => {
                let pause = until.saturating_sub(self.env.now());
                self.scheduler.work.wait_for(state, pause);
            }
            None => self.scheduler.work.wait(state),
        }
    }

    /// The tree whose sealed memtable has waited longest.
    fn flush_due(&self) -> Option<Arc<Tree>> {
        let trees = self.trees();
        let oldest = trees.values().filter_map(|tree| {
            let first = tree.view().sealed.last()?.min_seq()?;
            Some((first, tree))
        });
        oldest.min_by_key(|(first, _)| *first).map(|(_, tree)| tree.clone())
    }

    /// The best plan that no running job is in the way of.
    fn merge_due(&self, state: &State) -> Option<Plan> {
        let none = Busy::default();
        let versions: Vec<(KeyspaceId, Arc<Version>, TreeShape)> = self
            .trees()
            .values()
            .map(|tree| {
                let version = tree.view().version.clone();
                let shape = self.policy.layout.measure(&version);
                (tree.id(), version, shape)
            })
            .collect();
        let views: Vec<TreeView<'_>> = versions
            .iter()
            .map(|(keyspace, version, shape)| TreeView {
                keyspace: *keyspace,
                version,
                busy: state.busy.get(keyspace).unwrap_or(&none),
                shape,
            })
            .collect();
        next_plan(&views, &self.pressure.load(), &self.policy)
    }

    /// Waits until no background work is due.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        if self.writer.is_none() {
            // Nobody works on a store that is read alone.
            return self.health.check_open();
        }
        let mut state = self.scheduler.state.lock();
        loop {
            self.check_progress(&state)?;
            let idle = state.flushing.is_none()
                && state.merges == 0
                && self.flush_due().is_none()
                && self.merge_due(&state).is_none();
            if idle {
                drop(state);
                self.wait_reclaimed();
                return Ok(());
            }
            self.scheduler.done.wait(&mut state);
        }
    }

    /// Waits until every memtable that is sealed by now is in tables.
    pub(crate) fn wait_flushed(&self) -> Result<()> {
        let upto = self.visible();
        let mut state = self.scheduler.state.lock();
        loop {
            self.check_progress(&state)?;
            let oldest = self.flush_due().and_then(|tree| tree.view().sealed.last()?.min_seq());
            if oldest.is_none_or(|oldest| oldest > upto) {
                return Ok(());
            }
            self.scheduler.done.wait(&mut state);
        }
    }

    /// Waits until no job of `keyspace`, which new jobs do not find any more, is running.
    pub(crate) fn wait_jobs_of(&self, keyspace: KeyspaceId) {
        let mut state = self.scheduler.state.lock();
        while state.flushing == Some(keyspace)
            || state.busy.get(&keyspace).is_some_and(|busy| !busy.is_empty())
        {
            self.scheduler.done.wait(&mut state);
        }
        state.busy.remove(&keyspace);
    }

    /// Fails when background work will not get on by itself.
    fn check_progress(&self, state: &State) -> Result<()> {
        self.health.check_writable()?;
        match self.health.trouble() {
            Some(trouble) if state.pause_until.is_some() => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Merges everything of `tree` that lies in `range` down, level by level.
    pub(crate) fn compact(&self, tree: &Tree, range: Option<&KeyRange>) -> Result<()> {
        for level in 0..LEVELS as u8 - 1 {
            // What lies deepest has nothing below it to be merged with.
            while tree.view().version.deepest().is_some_and(|deepest| level == 0 || level < deepest) {
                if !self.compact_step(tree, level, range)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs one merge out of `level`; whether there was one.
    fn compact_step(&self, tree: &Tree, level: u8, range: Option<&KeyRange>) -> Result<bool> {
        let none = Busy::default();
        let mut state = self.scheduler.state.lock();
        loop {
            self.health.check_writable()?;
            let version = tree.view().version.clone();
            let shape = self.policy.layout.measure(&version);
            let busy = state.busy.get(&tree.id()).unwrap_or(&none);
            let view = TreeView { keyspace: tree.id(), version: &version, busy, shape: &shape };
            match self.policy.picker.pick_range(&view, level, range) {
                RangePick::Done => return Ok(false),
                RangePick::Busy => self.scheduler.done.wait(&mut state),
                RangePick::Plan(plan) => {
                    let (state, result) = self.run_claimed(state, &plan);
                    drop(state);
                    return result.map(|()| true);
                }
            }
        }
    }
}
