//! The scheduler: the background threads, which jobs may run at the same time, and when nothing is left to do.
//!
//! * One thread flushes, in the order in which memtables were sealed. It asks nobody.
//! * The others compact. An idle one asks the planner for the best plan that no running job is in the way of. What
//!   the plan touches is claimed until its result is installed (I12).
//! * Packs are rewritten in the compaction threads, and by callers that need space ([`rewrites`]). A manual
//!   compaction runs in its caller's thread ([`manual`]).
//! * A job that failed without harm is tried again after a pause.
//! * What is due is told by [`planning`]; who waits for jobs does so in [`waiting`].
//!
//! It touches what [`Background`] holds.

mod manual;
mod planning;
mod rewrites;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::background::Background;
use crate::engine::jobs::expiry::EXPIRY_PERIOD;
use crate::engine::schedule::idle_time::IDLE_PERIOD;
use crate::engine::shared::events::Event;
use crate::engine::shared::job::Job;
use crate::engine::shared::wake::{BackgroundThreads, Waiters};
use crate::env::sync::{Condvar, MutexGuard, OrderedMutex, Rank};
use crate::env::{Priority, Thread};
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Claims, JobClass, Plan, PlanKind, Planned, Reason};
use crate::types::{KeyspaceId, Seq};

/// Pause after a job that failed, doubled with every further failure up to the maximum: a full disk must not be
/// written to again and again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(8);

/// Divisor: a job that is not due may write at most this part of the free space.
const IDLE_ROOM: u64 = 4;

#[derive(Debug)]
pub(crate) struct Scheduler {
    state: OrderedMutex<State>,
    /// Something may be due, or a pause may have ended.
    work: Condvar,
    /// A job has ended.
    done: Condvar,
    /// Somebody has planned in vain.
    planned: Condvar,
    threads: OrderedMutex<Vec<Thread>>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            state: OrderedMutex::new(Rank::Scheduler, State::default()),
            work: Condvar::new(),
            done: Condvar::new(),
            planned: Condvar::new(),
            threads: OrderedMutex::default(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Grows when something may be due that was not.
    wakes: u64,
    /// Grows with every change of what plans rest on: `busy`, `waiting`, `held`.
    changes: u64,
    busy: BTreeMap<KeyspaceId, Claims>,
    /// Threads that plan, and hold versions.
    planning: usize,
    /// Compactions, moves and rewrites that are running, and the rewrites among them.
    compactions: usize,
    rewrites: usize,
    /// How many packs had been given up when the last rewrite for a caller that needed space freed nothing.
    found_nothing_at: Option<u64>,
    /// Numbers of the compaction threads.
    compaction_threads: BTreeSet<usize>,
    /// Manual compactions that wait for a running job, by keyspace. No other compaction of these keyspaces starts, or
    /// under steady writes their turn might never come.
    waiting: BTreeMap<KeyspaceId, usize>,
    /// Keyspaces in which no compaction may start.
    held: BTreeSet<KeyspaceId>,
    /// What is being flushed. Set until the job has ended, which is after its result was shown.
    flushing: Option<Flushing>,
    /// Present while the last flush, or compaction, has failed. (Rewrites that fail leave single packs
    /// alone, and nothing here.)
    backoffs: [Option<Backoff>; 3],
    stopping: bool,
}

/// A memtable that is being flushed.
#[derive(Clone, Copy, Debug)]
struct Flushing {
    keyspace: KeyspaceId,
    /// Number of its oldest entry.
    first: Seq,
}

/// A failure that has left nothing unknown.
#[derive(Clone, Debug)]
struct Backoff {
    error: Error,
    pause: Duration,
    /// When to try again.
    until: Duration,
    /// Bytes that were free on the device when the job began.
    free_bytes: u64,
}

/// How a job has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Done,
    /// On a full disk, where space has been made since: it can be tried again at once.
    ForSpace,
}

impl State {
    /// Claims what `plan` touches.
    fn claim(&mut self, plan: &Plan) {
        self.busy.entry(plan.keyspace).or_default().claim(plan);
        self.compactions += 1;
        self.changes += 1;
    }

    /// Takes the claim back.
    fn release(&mut self, plan: &Plan) {
        self.compactions -= 1;
        if let Some(busy) = self.busy.get_mut(&plan.keyspace) {
            busy.release(plan);
        }
    }
}

/// The earlier of two moments to look again.
fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Whether a job for this reason is put off for a while after a failure, so that it is in no other job's way.
fn can_wait(reason: Reason) -> bool {
    matches!(reason, Reason::Expiry | Reason::Released | Reason::Searched | Reason::Tombstones | Reason::Fold)
}

impl Scheduler {
    /// Lets everybody look again.
    pub(crate) fn wake_all(&self) {
        self.changed(&mut self.state.lock());
    }

    /// Lets everybody look again, after a change of `state`.
    fn changed(&self, state: &mut State) {
        state.changes += 1;
        self.notify(state);
    }

    fn notify(&self, state: &mut State) {
        state.wakes += 1;
        self.work.notify_all();
        self.done.notify_all();
    }
}

impl BackgroundThreads for Scheduler {
    /// Tells the threads that something may be due: a memtable was sealed, or readers have paid for something.
    fn wake(&self) {
        self.state.lock().wakes += 1;
        self.work.notify_all();
    }

    fn running(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.flushing.is_some().into(), state.compactions as u64)
    }
}

impl Waiters for Scheduler {
    fn give_up(&self, _: &Error) {
        self.wake_all();
    }
}

impl Background {
    /// Starts compaction threads up to the number that the settings name; those beyond it end by themselves.
    pub(crate) fn start_compaction_threads(self: &Arc<Self>) -> Result<()> {
        for number in 0..self.compaction_threads() {
            let mut state = self.scheduler.state.lock();
            if state.compaction_threads.insert(number) {
                drop(state);
                let name = format!("terrace-comp-{number}");
                self.start(&name, Priority::Background, move |background| background.compact_forever(number))
                    .inspect_err(|_| _ = self.scheduler.state.lock().compaction_threads.remove(&number))?;
            }
        }
        Ok(())
    }

    /// Number of threads that compact. The last one compacts level 0 alone if the pacer wants it so.
    fn compaction_threads(&self) -> usize {
        let settings = self.jobs.settings.load();
        settings.limits.background_threads + usize::from(settings.policy.pacer.has_level0_thread())
    }

    /// Whether compaction thread `number` compacts level 0 alone.
    fn is_for_level0(&self, number: usize) -> bool {
        number >= self.jobs.settings.load().limits.background_threads
    }

    /// Starts a thread that is joined when the store is closed.
    pub(in crate::engine) fn start(
        self: &Arc<Self>,
        name: &str,
        priority: Priority,
        body: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<()> {
        let background = self.clone();
        let thread = self.jobs.env.spawn(name, priority, Box::new(move || body(&background)));
        self.scheduler.threads.lock().push(thread.map_err(|e| self.no_thread(e))?);
        Ok(())
    }

    pub(in crate::engine) fn no_thread(&self, error: std::io::Error) -> Error {
        Error::io("start a background thread for", self.jobs.storage.device.dir(), error)
    }

    /// Ends the background threads. A running compaction is given up at its next check.
    pub(crate) fn stop_threads(&self) {
        {
            let mut state = self.scheduler.state.lock();
            state.stopping = true;
            self.scheduler.changed(&mut state);
        }
        self.jobs.storage.reclaimer.stop();
        self.jobs.preallocator.stop();
        let threads = std::mem::take(&mut *self.scheduler.threads.lock());
        for thread in threads {
            thread.join();
        }
    }

    /// Body of the thread that flushes.
    pub(in crate::engine) fn flush_forever(&self) {
        let mut state = self.scheduler.state.lock();
        while !state.stopping {
            let paused = self.paused(&state, Job::Flush);
            let due = if paused { None } else { self.flush_due() };
            let Some((first, tree)) = due else {
                self.wait_for_work(&mut state, Job::Flush, paused, None);
                continue;
            };
            state.flushing = Some(Flushing { keyspace: tree.id(), first });
            drop(state);
            let free_bytes = self.jobs.storage.free_bytes();
            let result = self.jobs.flush(&tree);
            state = self.job_ended(Job::Flush, result, free_bytes).0;
            state.flushing = None;
            self.scheduler.done.notify_all();
        }
    }

    fn compact_forever(&self, number: usize) {
        let mut state = self.scheduler.state.lock();
        while !state.stopping && number < self.compaction_threads() {
            let (changes, wakes) = (state.changes, state.wakes);
            let full = state.compactions > 0 && self.jobs.storage.is_short_of_space();
            let mut look_again =
                (self.jobs.any_expires() || self.jobs.any_put_off()).then_some(EXPIRY_PERIOD);
            let paused = self.paused(&state, Job::Compaction);
            // What is not due must not fail again and again, nor be in the way of who waits.
            let may_use_idle_time =
                state.backoffs[Job::Compaction as usize].is_none() && state.waiting.is_empty();
            let plan = if full || paused {
                None
            } else {
                let barred: BTreeSet<KeyspaceId> = state.waiting.keys().chain(&state.held).copied().collect();
                let (busy, rewrites) = (state.busy.clone(), state.rewrites);
                state.planning += 1;
                drop(state);
                let sampler = &self.jobs.throttle.sampler;
                sampler.look();
                // One thread looks for all, unless a plan of this one waits for another load.
                look_again = earlier(look_again, sampler.next_look().filter(|_| number == 0));
                let due =
                    |idle| self.compaction_due(&busy, rewrites, |keyspace| !barred.contains(&keyspace), idle);
                let Planned { mut plan, deferred } = due(false);
                if deferred.is_some() {
                    look_again = earlier(look_again, Some(sampler.interval()));
                }
                if plan.is_none() && may_use_idle_time && self.could_use_idle_time() {
                    if self.is_idle() {
                        plan = due(true).plan;
                        plan = plan.filter(|plan| self.jobs.storage.free_bytes() / IDLE_ROOM >= plan.bytes);
                    } else {
                        look_again = earlier(look_again, Some(IDLE_PERIOD));
                    }
                }
                if self.is_for_level0(number) {
                    plan = plan.filter(|plan| JobClass::of(plan) == JobClass::Level0);
                }
                state = self.scheduler.state.lock();
                state.planning -= 1;
                self.scheduler.planned.notify_all();
                plan
            };
            match plan {
                Some(plan) if state.changes == changes => {
                    state = match plan.kind {
                        PlanKind::Rewrite => self.rewrite_planned(state, &plan),
                        PlanKind::Compact | PlanKind::Move | PlanKind::Drop => {
                            self.run_claimed(state, &plan).0
                        }
                    }
                }
                None if state.wakes == wakes && !state.stopping => {
                    self.wait_for_work(&mut state, Job::Compaction, paused, look_again);
                }
                _ => {}
            }
        }
        state.compaction_threads.remove(&number);
    }

    /// Claims what `plan` touches. The job counts as running from here on.
    fn claim(&self, state: &mut State, plan: &Plan) {
        state.claim(plan);
        self.jobs.throttle.sampler.running.begin(JobClass::of(plan));
    }

    /// Takes the claim back.
    fn release(&self, state: &mut State, plan: &Plan) {
        self.jobs.throttle.sampler.running.end(JobClass::of(plan));
        state.release(plan);
        self.scheduler.changed(state);
    }

    /// Claims what `plan` touches, runs it, and takes the claim back.
    fn run_claimed<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        plan: &Plan,
    ) -> (MutexGuard<'a, State>, Result<Ended>) {
        self.claim(&mut state, plan);
        drop(state);
        let free_bytes = self.jobs.storage.free_bytes();
        let result = self.jobs.tree(plan.keyspace).and_then(|tree| {
            let result = self.jobs.run_plan(&tree, plan);
            if can_wait(plan.reason) { self.jobs.put_off(&tree, result) } else { result }
        });
        let (mut state, result) = self.job_ended(Job::Compaction, result, free_bytes);
        self.release(&mut state, plan);
        (state, result)
    }

    /// Does what follows the end of every job. `free_bytes` were free on the device when it began.
    fn job_ended(
        &self,
        job: Job,
        result: Result<()>,
        free_bytes: u64,
    ) -> (MutexGuard<'_, State>, Result<Ended>) {
        self.sample_costs();
        // Writers hear of failures and of poison below.
        if self.sample_load() {
            self.wake_writers();
        }
        let result = match result {
            Ok(()) => Ok(Ended::Done),
            Err(error) if self.make_space_for_job(&error) => Ok(Ended::ForSpace),
            Err(error) => Err(error),
        };
        self.fit_recycled();
        self.keep_space_budget();
        let mut state = self.scheduler.state.lock();
        let backoff = &mut state.backoffs[job as usize];
        match &result {
            Ok(_) => *backoff = None,
            // The keyspace was dropped: there is nothing left to do for it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.jobs.statistics.failed();
                self.jobs.events.notify(|| Event::BackgroundError(error.clone()));
                let pause =
                    backoff.as_ref().map_or(RETRY_PAUSE, |last| (last.pause * 2).min(RETRY_PAUSE_MAX));
                let until = self.jobs.env.now() + pause;
                *backoff = Some(Backoff { error: error.clone(), pause, until, free_bytes });
            }
        }
        if result.is_err() || self.jobs.health.is_poisoned() {
            drop(state);
            self.wake_writers();
            state = self.scheduler.state.lock();
        }
        match job {
            // Nothing that plans rest on.
            Job::Flush => self.scheduler.notify(&mut state),
            Job::Compaction | Job::Rewrite => self.scheduler.changed(&mut state),
        }
        (state, result)
    }

    /// Whether jobs of this kind do not start: for a while after a failure, and for good once the store is poisoned.
    fn paused(&self, state: &State, job: Job) -> bool {
        let backoff = &state.backoffs[job as usize];
        backoff.as_ref().is_some_and(|backoff| backoff.until > self.jobs.env.now())
            || self.jobs.health.is_poisoned()
    }

    /// Waits until something may be due, until the pause after a failure has ended, or for `look_again`.
    fn wait_for_work(
        &self,
        state: &mut MutexGuard<'_, State>,
        job: Job,
        paused: bool,
        look_again: Option<Duration>,
    ) {
        let is_poisoned = self.jobs.health.is_poisoned();
        let backoff = state.backoffs[job as usize].as_ref().filter(|_| paused && !is_poisoned);
        let pause = backoff.map(|backoff| backoff.until.saturating_sub(self.jobs.env.now()));
        match pause.or(look_again) {
            Some(Duration::ZERO) => {}
            Some(pause) => _ = self.scheduler.work.wait_for(state, pause),
            None => self.scheduler.work.wait(state),
        }
    }

    /// Why jobs of this kind have failed lately.
    pub(crate) fn trouble(&self, job: Job) -> Option<Error> {
        self.lasting_trouble(&mut self.scheduler.state.lock(), job)
    }

    /// The same. A disk that was full and has been given space is tried at once.
    fn lasting_trouble(&self, state: &mut State, job: Job) -> Option<Error> {
        let Backoff { error, free_bytes, .. } = state.backoffs[job as usize].as_ref()?;
        if error.kind() == ErrorKind::DiskFull && self.jobs.storage.free_bytes() > *free_bytes {
            self.retry(state, job);
            return None;
        }
        Some(error.clone())
    }

    /// A caller waits for jobs of this kind. If one has failed, it is tried again now, not after its pause.
    fn retry(&self, state: &mut State, job: Job) {
        if state.backoffs[job as usize].take().is_some() {
            self.scheduler.changed(state);
        }
    }
}
