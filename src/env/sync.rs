//! Locks and condition variables that the simulator can schedule.
//!
//! [`Mutex`] and [`Condvar`] are the standard library's, without poisoning. If a thread panics while it holds a lock,
//! the lock is simply released. So code that shares state behind a lock keeps the state valid at every step that may
//! panic.
//!
//! A thread that waits for a lock looks at it a few times before it sleeps, and never yields the processor between
//! two looks: with compactions running and as many clients as processors, a yield would cost it ticks of the
//! scheduler.
//!
//! A thread of a simulation never blocks in these. It waits in the simulator's schedule, which runs one thread at a
//! time. Other threads pay one relaxed load per unlock, and a look at a thread-local where they would block or wake
//! others anyway. A mutex is not shared between simulated and other threads.
#![expect(clippy::disallowed_types, reason = "this module is what the rest of the crate uses instead")]

/// Atomics for the lock-free parts: the standard library's or, with `--cfg loom`, those of loom, which tries every
/// order that the memory model allows.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::*;
    #[cfg(not(loom))]
    pub use std::sync::atomic::*;
}

mod order;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use super::simulated::schedule;
use order::Held;
// Of no use outside, where only benchmarks of single modules name it.
#[doc(hidden)]
pub use order::{Hold, OrderedMutex, Rank};

/// How often a waiter looks before it sleeps, and how many pause instructions it runs between two looks: together
/// about the time that it takes to sleep and be woken.
const LOOKS: u32 = 50;
const RELAXES: u32 = 16;

/// Looks several times whether what the caller waits for is there. A thread of a simulation looks once: nothing changes
/// while it runs.
pub(crate) fn look<T>(mut found: impl FnMut() -> Option<T>) -> Option<T> {
    if schedule::current().is_some() {
        return found();
    }
    (0..LOOKS).find_map(|_| {
        (0..RELAXES).for_each(|_| spin_loop());
        found()
    })
}

/// Called before a read of a value that other threads may replace without a lock. A simulated thread may be preempted
/// there, so that code that relies on two reads being equal is found.
#[inline]
pub(crate) fn before_look() {
    #[cfg(debug_assertions)]
    schedule::before_look();
}

/// Mutual exclusion around a value.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// Number of simulated threads that wait; only the running one touches it.
    simulated_waiters: AtomicUsize,
    held: Held,
    raw: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex that holds `value`.
    pub const fn new(value: T) -> Self {
        Self::ranked(Held::NOT, value)
    }

    /// One that has its place in the order of locks.
    const fn ranked(held: Held, value: T) -> Self {
        Self { simulated_waiters: AtomicUsize::new(0), held, raw: std::sync::Mutex::new(value) }
    }

    /// The value, without locking: nobody else can hold a mutex that is owned.
    pub fn into_inner(self) -> T {
        self.raw.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free and takes it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.held.before_lock();
        #[cfg(debug_assertions)]
        schedule::before_lock();
        self.try_lock().unwrap_or_else(|| self.lock_contended())
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let raw = match schedule::current() {
            Some(thread) => self.lock_simulated(&thread),
            None => self.lock_soon(),
        };
        self.guard(raw)
    }

    #[inline]
    fn guard<'a>(&'a self, raw: std::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.held.taken();
        MutexGuard { mutex: self, raw: Some(raw) }
    }

    /// Looks several times, then sleeps: most locks are held for less time than it takes to sleep and be woken.
    fn lock_soon(&self) -> std::sync::MutexGuard<'_, T> {
        look(|| self.try_raw()).unwrap_or_else(|| self.raw.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock_simulated(&self, thread: &schedule::Participant) -> std::sync::MutexGuard<'_, T> {
        loop {
            if let Some(raw) = self.try_raw() {
                return raw;
            }
            self.simulated_waiters.fetch_add(1, Ordering::Relaxed);
            thread.wait_for_lock(self.address());
            self.simulated_waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets simulated waiters try again once the caller has released the mutex.
    #[inline]
    fn wake_simulated(&self) {
        if self.simulated_waiters.load(Ordering::Relaxed) != 0
            && let Some(thread) = schedule::current()
        {
            thread.released(self.address());
        }
    }

    fn address(&self) -> usize {
        (&raw const self.simulated_waiters).addr()
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_raw().map(|raw| self.guard(raw))
    }

    #[inline]
    fn try_raw(&self) -> Option<std::sync::MutexGuard<'_, T>> {
        match self.raw.try_lock() {
            Ok(raw) => Some(raw),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without locking: nobody else can hold a mutex that is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.raw.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// A held [`Mutex`]; dropping it releases the mutex.
#[must_use]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `None` only while its owner waits for a [`Condvar`].
    raw: Option<std::sync::MutexGuard<'a, T>>,
}

const HELD: &str = "invariant: a guard holds its mutex but while its owner waits";

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Lets go of the mutex while the owner waits, after which it takes it again: so the order of locks is checked here.
    #[cfg_attr(debug_assertions, track_caller)]
    fn release(&mut self) -> std::sync::MutexGuard<'a, T> {
        let raw = self.raw.take().expect(HELD);
        self.mutex.held.released();
        self.mutex.held.before_lock();
        raw
    }

    fn retake(&mut self, raw: std::sync::MutexGuard<'a, T>) {
        self.mutex.held.taken();
        self.raw = Some(raw);
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // The mutex is released after this; no waiter runs before the caller waits for something itself.
        self.mutex.wake_simulated();
        if self.raw.is_some() {
            self.mutex.held.released();
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.raw.as_ref().expect(HELD)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.raw.as_mut().expect(HELD)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Waiting for a condition on the value of a [`Mutex`].
///
/// A waiter may wake without having been notified, so it checks its condition in a loop.
#[derive(Default, Debug)]
pub struct Condvar {
    raw: std::sync::Condvar,
}

impl Condvar {
    /// A condition that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self { raw: std::sync::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification and takes the mutex again.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        match schedule::current() {
            Some(thread) => {
                self.wait_simulated(&thread, guard, None);
            }
            None => {
                let raw = guard.release();
                let raw = self.raw.wait(raw).unwrap_or_else(PoisonError::into_inner);
                guard.retake(raw);
            }
        }
    }

    /// As [`Condvar::wait`], for at most `time`. Whether the time ran out.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        match schedule::current() {
            Some(thread) => self.wait_simulated(&thread, guard, Some(time)),
            None => {
                let raw = guard.release();
                let waited = self.raw.wait_timeout(raw, time).unwrap_or_else(PoisonError::into_inner);
                guard.retake(waited.0);
                waited.1.timed_out()
            }
        }
    }

    /// Wakes one waiter, if there is any.
    pub fn notify_one(&self) {
        match schedule::current() {
            Some(thread) => thread.notify(self.address(), 1),
            None => self.raw.notify_one(),
        }
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        match schedule::current() {
            Some(thread) => thread.notify(self.address(), usize::MAX),
            None => self.raw.notify_all(),
        }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn wait_simulated<T>(
        &self,
        thread: &schedule::Participant,
        guard: &mut MutexGuard<'_, T>,
        time: Option<Duration>,
    ) -> bool {
        let mutex = guard.mutex;
        mutex.wake_simulated();
        drop(guard.release());
        let timed_out = thread.wait_for_notification(self.address(), time);
        guard.retake(mutex.lock_simulated(thread));
        timed_out
    }

    fn address(&self) -> usize {
        (&raw const self.raw).addr()
    }
}
