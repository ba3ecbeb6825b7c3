//! The two directions of a merge, as types.

use super::Cursor;
use std::cmp::Ordering;

/// [`Forward`] or [`Backward`].
pub trait Direction: sealed::Sealed {
    /// Turns a key head into a number that is smaller for what comes first.
    fn rank(head: u64) -> u64;

    /// Turns the order of two entries into the order in which they come.
    fn order(entries: Ordering) -> Ordering;

    /// Moves a cursor by one entry.
    fn step<C: Cursor>(cursor: &mut C) -> Result<(), C::Error>;
}

/// From the first entry to the last.
pub enum Forward {}

/// From the last entry to the first.
pub enum Backward {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Forward {}
    impl Sealed for super::Backward {}
}

impl Direction for Forward {
    fn rank(head: u64) -> u64 {
        head
    }

    fn order(entries: Ordering) -> Ordering {
        entries
    }

    fn step<C: Cursor>(cursor: &mut C) -> Result<(), C::Error> {
        cursor.next()
    }
}

impl Direction for Backward {
    fn rank(head: u64) -> u64 {
        !head
    }

    fn order(entries: Ordering) -> Ordering {
        entries.reverse()
    }

    fn step<C: Cursor>(cursor: &mut C) -> Result<(), C::Error> {
        cursor.prev()
    }
}
