//! The scheduler: the background threads, which jobs may run at the same time, and when nothing is left to do.
//!
//! * One thread flushes, in the order in which memtables were sealed. It asks nobody.
//! * The others compact. An idle one asks the planner for the best plan that no running job is in the way of. What
//!   the plan touches is claimed until its result is installed (I12).
//! * Packs are rewritten in the compaction threads, and by callers that need space ([`rewrites`]). A manual
//!   compaction runs in its caller's thread ([`manual`]).
//! * A job that failed without harm is tried again after a pause ([`backoff`]).
//! * What is due is told by [`planning`]; who waits for jobs does so in [`waiting`].
//!
//! It touches what [`Background`] holds.

mod backoff;
mod manual;
mod planning;
mod rewrites;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::background::Background;
use crate::engine::jobs::expiry::EXPIRY_PERIOD;
use crate::engine::keyspace::tree::Tree;
use crate::engine::schedule::idle_time::IDLE_PERIOD;
use crate::engine::shared::events::Event;
use crate::engine::shared::job::Job;
use crate::engine::shared::wake::{BackgroundThreads, Waiters};
use crate::env::sync::{Condvar, MutexGuard, OrderedMutex, Rank};
use crate::env::{Priority, Thread};
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Claims, JobClass, LoadState, Plan, PlanKind, Planned, Reason};
use crate::types::{KeyspaceId, Seq};
use backoff::{Backoff, Backoffs, Failure};

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
    /// `changes` at the last change of what a keyspace's own jobs have claimed, or of whether it is held.
    changed: BTreeMap<KeyspaceId, u64>,
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
    /// Manual compactions that plan or wait for a running job, by keyspace. No other compaction of these keyspaces starts, or
    /// under steady writes their turn might never come.
    waiting: BTreeMap<KeyspaceId, usize>,
    /// Keyspaces in which no compaction may start.
    held: BTreeSet<KeyspaceId>,
    /// What is being flushed. Set until the job has ended, which is after its result was shown.
    flushing: Option<Flushing>,
    /// Flushes and compactions that have failed last.
    backoffs: Backoffs,
    stopping: bool,
}

/// Memtables that are being flushed.
#[derive(Debug)]
struct Flushing {
    keyspaces: BTreeSet<KeyspaceId>,
    /// Number of their oldest entry.
    first: Seq,
}

/// How a job has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Done,
    /// On a full disk, where space has been made since: it can be tried again at once.
    ForSpace,
}

/// What plans rest on, as it was at a moment. Who plans does so without the scheduler's lock. What has been planned
/// counts only while this still holds.
struct Basis {
    changes: u64,
    wakes: u64,
    busy: BTreeMap<KeyspaceId, Claims>,
    rewrites: usize,
    /// Keyspaces in which no compaction may start, or only a manual one.
    barred: BTreeSet<KeyspaceId>,
}

/// Keyspaces that compaction threads leave alone for what has failed in them.
struct Failed {
    /// For a while.
    paused: BTreeSet<KeyspaceId>,
    /// While nobody waits and nothing is due: what is not due must not fail again and again.
    all: BTreeSet<KeyspaceId>,
}

impl State {
    fn basis(&self) -> Basis {
        let barred = self.waiting.keys().chain(&self.held).copied().collect();
        let &Self { changes, wakes, rewrites, .. } = self;
        Basis { changes, wakes, busy: self.busy.clone(), rewrites, barred }
    }

    /// Counts a change of what plans for `keyspace` rest on.
    fn change(&mut self, keyspace: KeyspaceId) {
        self.changes += 1;
        self.changed.insert(keyspace, self.changes);
    }

    /// Claims what `plan` touches.
    fn claim(&mut self, plan: &Plan) {
        self.busy.entry(plan.keyspace).or_default().claim(plan);
        self.compactions += 1;
        self.change(plan.keyspace);
    }

    /// Takes the claim back.
    fn release(&mut self, plan: &Plan) {
        self.compactions -= 1;
        if let Some(busy) = self.busy.get_mut(&plan.keyspace) {
            busy.release(plan);
            if busy.is_empty() {
                // Whoever plans takes a copy of the rest.
                self.busy.remove(&plan.keyspace);
            }
        }
        self.change(plan.keyspace);
    }
}

/// What a compaction thread is to do next.
struct Next {
    plan: Option<Plan>,
    /// If there is no plan: after how long it looks again, unless it is woken.
    look_again: Option<Duration>,
}

/// The earlier of two moments to look again.
fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Whether a job for this reason is put off for a while after a failure, so that it is in no other job's way.
fn can_wait(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Expiry
            | Reason::Released
            | Reason::Searched
            | Reason::Tombstones
            | Reason::Values
            | Reason::Fold
    )
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
        // After a failure only one memtable is tried, which needs less space.
        let mut alone = false;
        while !state.stopping {
            let paused = self.paused(&state, Job::Flush);
            let due = if paused { None } else { self.next_flush(alone) };
            let Some((first, trees)) = due else {
                self.wait_for_work(&mut state, Job::Flush, paused, None);
                continue;
            };
            state.flushing =
                Some(Flushing { keyspaces: trees.iter().map(|tree| tree.id()).collect(), first });
            drop(state);
            let free_bytes = self.jobs.storage.free_bytes();
            let result = self.jobs.flush(&trees);
            alone = result.is_err();
            state = self.job_ended((Job::Flush, trees[0].id()), result, free_bytes).0;
            state.flushing = None;
            self.scheduler.done.notify_all();
        }
    }

    fn compact_forever(&self, number: usize) {
        let mut state = self.scheduler.state.lock();
        while !state.stopping && number < self.compaction_threads() {
            let (basis, paused) = (state.basis(), self.paused(&state, Job::Compaction));
            let is_full = state.compactions > 0 && self.jobs.storage.is_short_of_space();
            let now = self.jobs.env.now();
            let look_again =
                earlier(state.backoffs.next_pause_ends(Job::Compaction, now), self.jobs.next_trim());
            let mut next = Next { plan: None, look_again };
            if !is_full && !paused {
                let failed = Failed {
                    paused: state.backoffs.paused(Job::Compaction, now),
                    all: state.backoffs.of_keyspaces(Job::Compaction).map(|(id, _)| id).collect(),
                };
                // What is not due must not fail again and again, nor be in the way of who waits.
                let may_use_idle_time =
                    state.backoffs.of_device(Job::Compaction).is_none() && state.waiting.is_empty();
                let plan = || self.next_of_thread(number, &basis, &failed, may_use_idle_time);
                let (held, planned) = self.plan_unlocked(state, plan);
                state = held;
                next = Next { look_again: earlier(next.look_again, planned.look_again), ..planned };
            }
            match next.plan {
                Some(plan) if state.changes == basis.changes => {
                    state = match plan.kind {
                        PlanKind::Rewrite | PlanKind::Relocate(_) => self.rewrite_planned(state, &plan),
                        PlanKind::Compact | PlanKind::Move | PlanKind::Drop => {
                            self.run_claimed(state, &plan).0
                        }
                    }
                }
                None if state.wakes == basis.wakes && !state.stopping => {
                    self.wait_for_work(&mut state, Job::Compaction, paused, next.look_again);
                }
                _ => {}
            }
        }
        state.compaction_threads.remove(&number);
    }

    /// What compaction thread `number` is to do next, without the scheduler's lock.
    fn next_of_thread(&self, number: usize, basis: &Basis, failed: &Failed, may_use_idle_time: bool) -> Next {
        self.jobs.trim_buffers();
        self.cross_deleted();
        let sampler = &self.jobs.throttle.sampler;
        sampler.look();
        // One thread looks for all, unless a plan of this one waits for another load.
        let mut look_again =
            earlier(sampler.next_look(), self.jobs.next_relocation_look()).filter(|_| number == 0);
        let due = |idle| {
            let failed = if idle { &failed.all } else { &failed.paused };
            let may = |keyspace| !basis.barred.contains(&keyspace) && !failed.contains(&keyspace);
            self.compaction_due(&basis.busy, basis.rewrites, may, idle)
        };
        let Planned { mut plan, deferred } = due(false);
        if deferred.is_some() {
            look_again = earlier(look_again, Some(sampler.interval()));
        }
        if plan.is_none() && may_use_idle_time && self.could_use_idle_time() {
            if self.is_idle() {
                plan = due(true).plan;
                plan = plan.filter(|plan| self.jobs.storage.free_bytes() / IDLE_ROOM >= plan.bytes);
                // What fails here fails again in whoever writes next.
                if plan.is_none() && number == 0 && self.seal_tombstones().unwrap_or(false) {
                    look_again = earlier(look_again, Some(IDLE_PERIOD));
                }
            } else {
                look_again = earlier(look_again, Some(IDLE_PERIOD));
            }
        }
        let comes_by_itself = |tree: &Arc<Tree>| tree.record.ttl.is_some() || self.jobs.is_put_off(tree);
        if self.attention().restless().any(comes_by_itself) {
            look_again = earlier(look_again, Some(EXPIRY_PERIOD));
        }
        if self.is_for_level0(number) {
            plan = plan.filter(|plan| JobClass::of(plan) == JobClass::Level0);
        }
        Next { plan, look_again }
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
        let (mut state, result) = self.job_ended((Job::Compaction, plan.keyspace), result, free_bytes);
        self.release(&mut state, plan);
        (state, result)
    }

    /// Does what follows the end of a job of this kind in this keyspace. `free_bytes` were free on the device when it began.
    fn job_ended(
        &self,
        (job, keyspace): (Job, KeyspaceId),
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
        self.jobs.trim_buffers();
        let mut state = self.scheduler.state.lock();
        match &result {
            Ok(_) => state.backoffs.succeeded(job, keyspace),
            // The keyspace was dropped: there is nothing left to do for it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.jobs.statistics.failed();
                self.jobs.events.notify(|| Event::BackgroundError(error.clone()));
                let failure = Failure { job, keyspace, error: error.clone(), free_bytes };
                state.backoffs.failed(failure, self.jobs.env.now());
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

    /// Whether no job of this kind starts: for a while after a failure that concerns the device, and for good once the
    /// store is poisoned.
    fn paused(&self, state: &State, job: Job) -> bool {
        state.backoffs.pause(job, self.jobs.env.now()).is_some() || self.jobs.health.is_poisoned()
    }

    /// Waits until something may be due, until the pause after a failure has ended, or for `look_again`.
    fn wait_for_work(
        &self,
        state: &mut MutexGuard<'_, State>,
        job: Job,
        paused: bool,
        look_again: Option<Duration>,
    ) {
        let is_for_device = paused && !self.jobs.health.is_poisoned();
        // None, if it has ended by now.
        let rest = || state.backoffs.pause(job, self.jobs.env.now()).unwrap_or_default();
        match is_for_device.then(rest).or(look_again) {
            Some(Duration::ZERO) => {}
            Some(pause) => _ = self.scheduler.work.wait_for(state, pause),
            None => self.scheduler.work.wait(state),
        }
    }

    /// Why jobs of this kind have failed lately, for writers whom they hold up. What has failed in single keyspaces is told
    /// only to writers whom the load of these alone holds up (`holds_up`). Of others, jobs that go on end the wait.
    pub(crate) fn trouble(&self, job: Job, holds_up: impl FnOnce(&LoadState) -> bool) -> Option<Error> {
        let (error, failed) = {
            let mut state = self.scheduler.state.lock();
            if let Some(error) = self.trouble_of_device(&mut state, job) {
                return Some(error);
            }
            let mut failed = state.backoffs.of_keyspaces(job);
            let (first, Backoff { error, .. }) = failed.next()?;
            (error.clone(), failed.map(|(id, _)| id).chain([first]).collect::<BTreeSet<_>>())
        };
        let load = self.load_of(|keyspace| failed.contains(&keyspace));
        (holds_up(&load) || planted!("writers-told-of-every-refusal")).then_some(error)
    }

    /// The same, for who waits for all jobs of this kind.
    fn lasting_trouble(&self, state: &mut State, job: Job) -> Option<Error> {
        let of_device = self.trouble_of_device(state, job);
        of_device.or_else(|| state.backoffs.of_keyspaces(job).next().map(|(_, last)| last.error.clone()))
    }

    /// Of failures that concern the device. A disk that was full and has been given space is tried at once.
    fn trouble_of_device(&self, state: &mut State, job: Job) -> Option<Error> {
        let Backoff { error, free_bytes, .. } = state.backoffs.of_device(job)?;
        if error.kind() == ErrorKind::DiskFull && self.jobs.storage.free_bytes() > *free_bytes {
            state.backoffs.retry_device(job);
            self.scheduler.changed(state);
            return None;
        }
        Some(error.clone())
    }

    /// A caller waits for jobs of this kind. If one has failed, it is tried again now, not after its pause.
    fn retry(&self, state: &mut State, job: Job) {
        if state.backoffs.retry(job) {
            self.scheduler.changed(state);
        }
    }
}
