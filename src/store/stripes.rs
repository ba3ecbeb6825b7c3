//! Counters that many threads add to and few read.
//!
//! Threads that add to the same counter wait for its cache line, which costs a lookup as much as a filter probe does.
//! So each counter exists several times, each copy in a cache line of its own, and each thread has one of them: it stays in
//! the cache of the thread's processor. Whoever reads the counter adds up all copies.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More threads than this share copies.
const STRIPES: usize = 16;

/// The number of the next thread.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The copy of this thread, once it has one.
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of this thread's copy.
#[inline]
fn mine() -> usize {
    match MINE.get() {
        usize::MAX => first(),
        mine => mine,
    }
}

#[cold]
fn first() -> usize {
    let mine = THREADS.fetch_add(1, Relaxed) % STRIPES;
    MINE.set(mine);
    mine
}

/// Several `T`, each in a cache line of its own.
#[derive(Debug, Default)]
pub(crate) struct Stripes<T>([Line<T>; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

impl<T> Stripes<T> {
    /// That of this thread.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        &self.0[mine() % STRIPES].0
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Line(stripe)| stripe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn all_threads_together_are_all_there_is() {
        let stripes = Stripes::<AtomicU64>::default();
        let place = || std::ptr::from_ref(stripes.mine()).addr();
        let places: Vec<usize> = std::thread::scope(|scope| {
            let count = || {
                (0..1000).for_each(|number| _ = stripes.mine().fetch_add(number, Relaxed));
                place()
            };
            let threads: Vec<_> = (0..2 * STRIPES).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(stripes.iter().map(|stripe| stripe.load(Relaxed)).sum::<u64>(), 2 * 16 * 499_500);
        assert_eq!(place(), place());
        assert!(places.iter().any(|other| other.abs_diff(places[0]) >= 64));
    }
}
