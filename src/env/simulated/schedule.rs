//! The scheduler of a simulation: threads that run one at a time, in an order that a seed determines, in virtual
//! time.
//!
//! The threads are the operating system's, but only the one that holds the *baton* runs; the others are parked. A
//! thread passes the baton when it waits for a contended mutex, a notification, a moment, or the end of a thread. It
//! may be preempted when it does I/O, notifies, or starts a thread. On request it may also be preempted where it
//! takes a lock, or reads a value that others replace without a lock.
//!
//! The next thread is drawn among those that can run. If none can, the clock jumps to the nearest moment that a
//! thread waits for; work in between takes no time. If no thread waits for a moment, the threads are deadlocked.
//!
//! A panic in any thread, or a deadlock, fails the whole simulation: the panic is passed on to the caller of the
//! simulation. All other threads stay parked for good, because unwinding them would run code that expects to be
//! scheduled.
//!
//! A mutex or condition variable belongs to the threads of one simulation; it is identified by its address alone.
#![expect(clippy::disallowed_types, reason = "the scheduler is below the locks that it schedules")]

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use super::holds::Holds;
use super::random::Random;
use crate::env::Thread;
#[cfg(debug_assertions)]
use crate::env::sync::Hold;

/// Virtual time that threads may go on for after the first one has ended.
const LEFTOVER_TIME: Duration = Duration::from_secs(60);

/// Longest virtual time for which a thread that is preempted at a read stays parked, in nanoseconds: about a write
/// and a sync.
#[cfg(debug_assertions)]
const AWAY_NANOS_MAX: usize = 1_000_000;

/// Virtual time since the simulation began; it never goes back.
#[derive(Default, Debug)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// Moves the clock forward to `time`, unless it is there already.
    pub(super) fn advance_to(&self, time: Duration) {
        self.0.fetch_max(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Participant>> = const { RefCell::new(None) };
}

/// The calling thread's part in a simulation, if it has one.
pub(in crate::env) fn current() -> Option<Participant> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// The clock of the simulation that the caller is a thread of.
#[cfg(debug_assertions)]
pub(in crate::env) fn now() -> Option<Duration> {
    CURRENT.try_with(|current| Some(current.borrow().as_ref()?.schedule.clock.now())).ok().flatten()
}

/// The caller, a thread of a simulation, has held a lock.
#[cfg(debug_assertions)]
pub(in crate::env) fn held(hold: Hold) {
    let _ = CURRENT.try_with(|current| {
        if let Some(thread) = &*current.borrow() {
            thread.schedule.holds.note(hold);
        }
    });
}

/// May preempt the caller before it takes a lock. Does nothing outside of a simulation.
#[cfg(debug_assertions)]
pub(in crate::env) fn before_lock() {
    if let Some(thread) = current().filter(|thread| thread.schedule.preempt_at_locks) {
        thread.preempt();
    }
}

/// May preempt the caller before it reads a value that other threads may replace without a lock.
#[cfg(debug_assertions)]
pub(in crate::env) fn before_look() {
    if let Some(thread) = current().filter(|thread| thread.schedule.preempt_at_looks) {
        thread.preempt_for_a_while();
    }
}

/// A thread of a simulation.
#[derive(Clone)]
pub(in crate::env) struct Participant {
    schedule: Arc<Schedule>,
    index: usize,
}

/// Index of no thread: nobody holds the baton.
const NOBODY: usize = usize::MAX;

struct Schedule {
    seed: u64,
    preemption_percent: u8,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "locks do not ask then"))]
    preempt_at_locks: bool,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "looks do not ask then"))]
    preempt_at_looks: bool,
    clock: Arc<Clock>,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "locks do not tell then"))]
    holds: Arc<Holds>,
    state: Mutex<State>,
    /// Notified when the simulation has ended or failed.
    over: Condvar,
}

struct State {
    random: Random,
    tasks: Vec<Task>,
    /// Index of the thread that holds the baton.
    running: usize,
    /// When the first thread ended.
    closed: Option<Duration>,
    failure: Option<Failure>,
}

/// Why a simulation failed.
enum Failure {
    /// A panic of a thread, which has reported it.
    Panic(Box<dyn Any + Send>),
    Stuck(String),
}

struct Task {
    name: String,
    wait: Wait,
    /// Whether the last wait ended because its time ran out.
    timed_out: bool,
    baton: Arc<Condvar>,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Its turn.
    Turn,
    Lock(usize),
    Notification {
        condvar: usize,
        deadline: Option<Duration>,
    },
    Moment(Duration),
    EndOf(usize),
    /// Nothing: the thread has ended.
    Ended,
}

impl Wait {
    fn deadline(self) -> Option<Duration> {
        match self {
            Self::Notification { deadline, .. } => deadline,
            Self::Moment(moment) => Some(moment),
            Self::Turn | Self::Lock(_) | Self::EndOf(_) | Self::Ended => None,
        }
    }
}

/// What a simulation starts from.
pub(super) struct Start {
    pub(super) seed: u64,
    pub(super) preemption_percent: u8,
    pub(super) preempt_at_locks: bool,
    pub(super) preempt_at_looks: bool,
    pub(super) clock: Arc<Clock>,
    pub(super) holds: Arc<Holds>,
}

/// Runs `body` as the first thread of a simulation and returns its result when all threads have ended.
pub(super) fn simulate<R: Send + 'static>(start: Start, body: impl FnOnce() -> R + Send + 'static) -> R {
    let random = Random::new(start.seed);
    let state = State { random, tasks: Vec::new(), running: NOBODY, closed: None, failure: None };
    let schedule = Arc::new(Schedule {
        seed: start.seed,
        preemption_percent: start.preemption_percent,
        preempt_at_locks: start.preempt_at_locks,
        preempt_at_looks: start.preempt_at_looks,
        clock: start.clock,
        holds: start.holds,
        state: Mutex::new(state),
        over: Condvar::new(),
    });
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let body = Box::new(move || {
        let value = body();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    });
    if let Err(error) = schedule.start("main", body) {
        panic!("the first thread of the simulation cannot be started: {error}");
    }
    let mut state = schedule.lock();
    schedule.dispatch(&mut state);
    while state.failure.is_none() && state.tasks.iter().any(|task| task.wait != Wait::Ended) {
        state = schedule.over.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    if let Some(failure) = state.failure.take() {
        state.running = NOBODY;
        drop(state);
        match failure {
            Failure::Panic(panic) => resume_unwind(panic),
            Failure::Stuck(message) => panic!("{message}"),
        }
    }
    drop(state);
    let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.expect("invariant: a first thread that has not panicked has left its result")
}

impl Participant {
    /// The clock of the simulation.
    pub(super) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.schedule.clock)
    }

    /// Place in the order in which the threads were started.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Waits until the mutex at `address` is released.
    pub(in crate::env) fn wait_for_lock(&self, address: usize) {
        self.wait(Wait::Lock(address));
    }

    /// Lets the waiters for the mutex at `address` try again.
    pub(in crate::env) fn released(&self, address: usize) {
        let mut state = self.schedule.lock();
        for task in state.tasks.iter_mut().filter(|task| task.wait == Wait::Lock(address)) {
            task.wait = Wait::Turn;
        }
    }

    /// Waits for a notification of the condition at `condvar`, for at most `time`. Whether the time ran out.
    pub(in crate::env) fn wait_for_notification(&self, condvar: usize, time: Option<Duration>) -> bool {
        let deadline = time.map(|time| self.schedule.clock.now().saturating_add(time));
        self.wait(Wait::Notification { condvar, deadline })
    }

    /// Wakes at most `count` waiters for the condition at `condvar`, drawn by the seed.
    pub(in crate::env) fn notify(&self, condvar: usize, count: usize) {
        let mut state = self.schedule.lock();
        for _ in 0..count {
            let waiting =
                |task: &Task| matches!(task.wait, Wait::Notification { condvar: at, .. } if at == condvar);
            let Some(chosen) = state.draw(waiting) else { break };
            state.tasks[chosen].wake(false);
        }
        drop(state);
        self.preempt();
    }

    /// Waits until `moment`, or gives others a chance if it has come.
    pub(super) fn pass_time(&self, moment: Duration) {
        if moment > self.schedule.clock.now() {
            self.wait(Wait::Moment(moment));
        } else {
            self.preempt();
        }
    }

    /// Starts a thread of the same simulation.
    pub(super) fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        let index = self.schedule.start(name, body)?;
        self.preempt();
        Ok(Thread::new(Box::new(move || {
            // Outside of a simulation there is nothing to wait for: a simulation ends only with its last thread.
            if let Some(joiner) = current() {
                joiner.join(index);
            }
        })))
    }

    fn join(&self, index: usize) {
        let ended = self.schedule.lock().tasks[index].wait == Wait::Ended;
        if !ended {
            self.wait(Wait::EndOf(index));
        }
    }

    fn preempt(&self) {
        let percent = self.schedule.preemption_percent;
        if self.schedule.lock().random.percent(percent) {
            self.wait(Wait::Turn);
        }
    }

    /// As [`Participant::preempt`], for long enough that other threads may finish work that takes time.
    #[cfg(debug_assertions)]
    fn preempt_for_a_while(&self) {
        let mut state = self.schedule.lock();
        let preempted = state.random.percent(self.schedule.preemption_percent);
        let nanos = state.random.below(AWAY_NANOS_MAX) as u64;
        drop(state);
        if preempted {
            self.wait(Wait::Moment(self.schedule.clock.now() + Duration::from_nanos(nanos)));
        }
    }

    /// Passes the baton on and gets it back when the wait is over. Returns whether the time ran out.
    fn wait(&self, wait: Wait) -> bool {
        let mut state = self.schedule.lock();
        state.tasks[self.index].wait = wait;
        self.schedule.dispatch(&mut state);
        let state = self.schedule.wait_for_baton(state, self.index);
        state.tasks[self.index].timed_out
    }
}

impl Task {
    fn wake(&mut self, timed_out: bool) {
        self.wait = Wait::Turn;
        self.timed_out = timed_out;
    }
}

impl State {
    /// One of the threads that `eligible` accepts.
    fn draw(&mut self, eligible: impl Fn(&Task) -> bool) -> Option<usize> {
        let count = self.tasks.iter().filter(|task| eligible(task)).count();
        if count == 0 {
            return None;
        }
        let place = self.random.below(count);
        self.tasks.iter().enumerate().filter(|(_, task)| eligible(task)).nth(place).map(|(index, _)| index)
    }

    /// Wakes the threads whose moment is `now` or earlier.
    fn wake_due(&mut self, now: Duration) {
        for task in &mut self.tasks {
            if task.wait.deadline().is_some_and(|deadline| deadline <= now) {
                task.wake(true);
            }
        }
    }

    /// The threads that have not ended, and what each waits for.
    fn describe(&self) -> String {
        let mut text = String::new();
        for task in self.tasks.iter().filter(|task| task.wait != Wait::Ended) {
            let name = &task.name;
            // Writing to a string cannot fail.
            let _ = match task.wait {
                Wait::Turn => write!(text, "\n  `{name}` can run"),
                Wait::Lock(_) => write!(text, "\n  `{name}` waits for a mutex"),
                Wait::Notification { deadline: None, .. } => {
                    write!(text, "\n  `{name}` waits for a notification")
                }
                Wait::Notification { deadline: Some(at), .. } => {
                    write!(text, "\n  `{name}` waits for a notification until {at:?}")
                }
                Wait::Moment(at) => write!(text, "\n  `{name}` sleeps until {at:?}"),
                Wait::EndOf(other) => {
                    write!(text, "\n  `{name}` waits for the end of `{}`", self.tasks[other].name)
                }
                Wait::Ended => Ok(()),
            };
        }
        text
    }
}

impl Schedule {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread, which waits for its first turn.
    fn start(self: &Arc<Self>, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<usize> {
        let mut state = self.lock();
        let index = state.tasks.len();
        let participant = Participant { schedule: Arc::clone(self), index };
        thread::Builder::new().name(name.to_owned()).spawn(move || participant.live(body))?;
        let baton = Arc::new(Condvar::new());
        state.tasks.push(Task { name: name.to_owned(), wait: Wait::Turn, timed_out: false, baton });
        Ok(index)
    }

    /// Hands the baton to the next thread, or ends the simulation.
    fn dispatch(&self, state: &mut State) {
        state.running = NOBODY;
        loop {
            if let Some(next) = state.draw(|task| task.wait == Wait::Turn) {
                state.running = next;
                state.tasks[next].baton.notify_one();
                return;
            }
            let nearest = state.tasks.iter().filter_map(|task| task.wait.deadline()).min();
            let patience = state.closed.map_or(Duration::MAX, |closed| closed.saturating_add(LEFTOVER_TIME));
            match nearest {
                Some(moment) if moment <= patience => {
                    self.clock.advance_to(moment);
                    state.wake_due(moment);
                }
                _ => return self.stop(state),
            }
        }
    }

    /// Ends a simulation in which no thread can go on.
    fn stop(&self, state: &mut State) {
        let stuck = state.describe();
        if !stuck.is_empty() {
            let what = if state.closed.is_some() { "threads are left over" } else { "deadlock" };
            let now = self.clock.now();
            let message = format!("{what} at {now:?} of the simulation with seed {}:{stuck}", self.seed);
            state.failure.get_or_insert(Failure::Stuck(message));
        }
        self.over.notify_all();
    }

    /// Parks the calling thread until the baton is handed to it: for good, if the simulation fails before.
    fn wait_for_baton<'a>(&'a self, mut state: MutexGuard<'a, State>, index: usize) -> MutexGuard<'a, State> {
        let baton = Arc::clone(&state.tasks[index].baton);
        while state.running != index {
            state = baton.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn end(&self, index: usize, outcome: thread::Result<()>) {
        let mut state = self.lock();
        state.tasks[index].wait = Wait::Ended;
        for task in state.tasks.iter_mut().filter(|task| task.wait == Wait::EndOf(index)) {
            task.wake(false);
        }
        if index == 0 {
            state.closed = Some(self.clock.now());
        }
        match outcome {
            Ok(()) => self.dispatch(&mut state),
            Err(panic) => {
                state.running = NOBODY;
                state.failure.get_or_insert(Failure::Panic(panic));
                self.over.notify_all();
            }
        }
    }
}

impl Participant {
    /// Runs a thread from its first turn to its end.
    fn live(self, body: Box<dyn FnOnce() + Send>) {
        drop(self.schedule.wait_for_baton(self.schedule.lock(), self.index));
        CURRENT.with(|current| *current.borrow_mut() = Some(self.clone()));
        let outcome = catch_unwind(AssertUnwindSafe(body));
        CURRENT.with(|current| *current.borrow_mut() = None);
        self.schedule.end(self.index, outcome);
    }
}
