//! Locks and waiting that the simulator can schedule.
//!
//! [`Mutex`] and [`Condvar`] are parking_lot's: small, without poisoning. A lock held by a thread that panics is
//! simply released, so whoever shares state behind one keeps it valid at every step that may panic.
#![expect(clippy::disallowed_types, reason = "this module is what the rest of the crate uses instead")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Mutual exclusion around a value.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    raw: parking_lot::Mutex<T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex that holds `value`.
    pub const fn new(value: T) -> Self {
        Self { raw: parking_lot::Mutex::new(value) }
    }

    /// The value, without locking: nobody else can hold a mutex that is owned.
    pub fn into_inner(self) -> T {
        self.raw.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { raw: self.raw.lock() }
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().map(|raw| MutexGuard { raw })
    }

    /// The value, without locking: nobody else can hold a mutex that is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.raw.get_mut()
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
    raw: parking_lot::MutexGuard<'a, T>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.raw
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.raw
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
    raw: parking_lot::Condvar,
}

impl Condvar {
    /// A condition that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self { raw: parking_lot::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification and takes the mutex again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.raw.wait(&mut guard.raw);
    }

    /// As [`Condvar::wait`], for at most `time`. Whether the time ran out.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        self.raw.wait_for(&mut guard.raw, time).timed_out()
    }

    /// Wakes one waiter, if there is any.
    pub fn notify_one(&self) {
        self.raw.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.raw.notify_all();
    }
}
