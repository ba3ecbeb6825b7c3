//! The order in which a thread takes the locks of a store, and its check in debug builds.
//!
//! Every lock of `store` and `engine` is an [`OrderedMutex`] and has a [`Rank`]. Each thread counts what it holds of each rank.
//! Before it waits for a lock, debug builds check that it holds none of the same rank or of a later one. Release builds keep
//! neither ranks nor counts.
//!
//! Debug builds also tell a simulation for how long each lock was held, in virtual time ([`Hold`]).
//!
//! INVARIANT(I18): whoever waits for a lock holds only locks of earlier ranks. So no circle of threads can wait for each other's locks.
//!
//! What takes a lock only if it is free ([`OrderedMutex::try_lock`]) waits for nobody: it is counted and not checked. The locks of the
//! environments themselves have no rank: they are below all others, and nothing is called under them.

use std::panic::Location;
use std::time::Duration;

use super::{Mutex, MutexGuard};

/// The place of a lock in the order: the outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rank {
    /// The store is being closed, or its options change (`Engine::closing`).
    Closing,
    /// The thread that syncs for tickets starts or ends (`Tickets::syncer`).
    TicketSyncer,
    /// A callback of a ticket is taken in, which may start a thread (`Tickets::taking`).
    TicketTaking,
    /// A keyspace comes, goes or changes (`Keyspaces::changing`).
    KeyspaceChanges,
    /// The end of the log and the numbers of writes (`WritePath::writer`).
    Writer,
    /// The catalog and the manifest (`JobContext::catalog`).
    Catalog,
    /// Claims and the plans that are running (`Scheduler::state`).
    Scheduler,
    /// The reserve is given up or made again (`Reserve::changing`).
    Reserve,
    /// The log's next segment is made or used up (`NextSegment::state`).
    NextSegment,
    /// Recycled files are removed or renamed (`RecycledFiles::removed`).
    RecycledRemoval,
    /// What is known of all trees (`Background::totals`, `Background::attention`).
    AllTrees,
    /// All others. Whoever holds one calls nothing that takes a lock of the store.
    Leaf,
}

impl Rank {
    /// REQUIRES: the caller holds no lock of this rank or of a later one. Debug builds check it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn assert_not_held(self) {
        Held::assert_not_held(self);
    }
}

/// A time for which a thread held a lock, without the time for which it let go of it to wait for a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Which lock.
    pub rank: Rank,
    /// For how long.
    pub time: Duration,
    /// Where the thread asked for it.
    pub taken_at: &'static Location<'static>,
}

/// A [`Mutex`] that has its place in the order of locks: by default that of a leaf, under which no other is taken.
pub struct OrderedMutex<T: ?Sized>(Mutex<T>);

impl<T> OrderedMutex<T> {
    /// An unlocked mutex of `rank` that holds `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self(Mutex::ranked(Held::at(rank), value))
    }

    /// An unlocked mutex under which no other is taken.
    pub const fn leaf(value: T) -> Self {
        Self::new(Rank::Leaf, value)
    }
}

impl<T: Default> Default for OrderedMutex<T> {
    fn default() -> Self {
        Self::leaf(T::default())
    }
}

impl<T: ?Sized> OrderedMutex<T> {
    /// Waits until the mutex is free and takes it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    /// The value, without locking: nobody else can hold a mutex that is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for OrderedMutex<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(debug_assertions)]
pub(super) use checked::Held;

#[cfg(debug_assertions)]
mod checked {
    use std::cell::Cell;
    use std::panic::Location;
    use std::time::Duration;

    use super::super::schedule;
    use super::{Hold, Rank};

    const RANKS: usize = Rank::Leaf as usize + 1;

    thread_local! {
        /// How many locks of each rank the thread holds.
        static HELD: Cell<[u8; RANKS]> = const { Cell::new([0; RANKS]) };

        /// Where the thread asked last for a lock.
        static ASKED: Cell<&'static Location<'static>> = const { Cell::new(Location::caller()) };

        /// Since when a simulated thread has held a lock of each rank, and where it asked for it.
        static SINCE: Cell<[Option<(Duration, &'static Location<'static>)>; RANKS]> =
            const { Cell::new([None; RANKS]) };
    }

    /// What a mutex tells of itself to the check: its rank, if it has one.
    #[derive(Clone, Copy, Default)]
    pub(in crate::env::sync) struct Held(Option<Rank>);

    impl Held {
        pub(in crate::env::sync) const NOT: Self = Self(None);

        pub(in crate::env::sync) const fn at(rank: Rank) -> Self {
            Self(Some(rank))
        }

        #[track_caller]
        pub(in crate::env::sync) fn assert_not_held(rank: Rank) {
            let held = HELD.get();
            let later = (rank as usize..RANKS).find(|&at| held[at] > 0);
            assert!(later.is_none(), "I19: what takes long begins under a lock of rank {later:?} ({held:?})");
        }

        /// The calling thread is about to wait for the mutex.
        #[track_caller]
        pub(in crate::env::sync) fn before_lock(self) {
            let Some(rank) = self.0 else { return };
            ASKED.set(Location::caller());
            let held = HELD.get();
            let later = (rank as usize..RANKS).find(|&at| held[at] > 0);
            assert!(
                later.is_none(),
                "I18: the order of locks: {rank:?} is taken under a lock of rank {later:?} ({held:?})"
            );
        }

        pub(in crate::env::sync) fn taken(self) {
            let Some(rank) = self.0 else { return };
            if change(rank, |count| count.saturating_add(1)) == 1 {
                set_since(rank, schedule::now().map(|now| (now, ASKED.get())));
            }
        }

        pub(in crate::env::sync) fn released(self) {
            let Some(rank) = self.0 else { return };
            if change(rank, |count| count.saturating_sub(1)) == 0
                && let (Some((since, taken_at)), Some(now)) = (set_since(rank, None), schedule::now())
            {
                schedule::held(Hold { rank, time: now.saturating_sub(since), taken_at });
            }
        }
    }

    /// Changes how many locks of `rank` the thread holds, and returns that.
    fn change(rank: Rank, change: impl Fn(u8) -> u8) -> u8 {
        let mut held = HELD.get();
        held[rank as usize] = change(held[rank as usize]);
        HELD.set(held);
        held[rank as usize]
    }

    /// Replaces since when the thread holds a lock of `rank`.
    fn set_since(
        rank: Rank,
        since: Option<(Duration, &'static Location<'static>)>,
    ) -> Option<(Duration, &'static Location<'static>)> {
        let mut all = SINCE.get();
        let before = std::mem::replace(&mut all[rank as usize], since);
        SINCE.set(all);
        before
    }
}

#[cfg(not(debug_assertions))]
pub(super) use unchecked::Held;

#[cfg(not(debug_assertions))]
mod unchecked {
    use super::Rank;

    /// Nothing: the order is checked in debug builds.
    #[derive(Clone, Copy, Default)]
    pub(in crate::env::sync) struct Held;

    impl Held {
        pub(in crate::env::sync) const NOT: Self = Self;

        pub(in crate::env::sync) const fn at(_: Rank) -> Self {
            Self
        }

        #[inline(always)]
        pub(in crate::env::sync) fn assert_not_held(_: Rank) {}

        #[inline(always)]
        pub(in crate::env::sync) fn before_lock(self) {}

        #[inline(always)]
        pub(in crate::env::sync) fn taken(self) {}

        #[inline(always)]
        pub(in crate::env::sync) fn released(self) {}
    }
}

#[cfg(all(test, debug_assertions))]
mod tests;
