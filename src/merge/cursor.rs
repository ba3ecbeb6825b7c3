//! The walk along a sorted source.

use crate::types::Stamp;

/// A position in a source of entries ordered by (user key ascending, stamp descending).
///
/// A new cursor is not valid; a seek makes it so unless there is no such entry. `key`, `stamp` and `value` may be
/// called only while the cursor is valid (they may panic otherwise), `next` and `prev` likewise. A cursor whose
/// operation failed is not valid.
pub trait Cursor {
    /// What a failed read yields.
    type Error;

    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;

    /// User key of the current entry.
    fn key(&self) -> &[u8];

    /// Stamp of the current entry.
    fn stamp(&self) -> Stamp;

    /// Value of the current entry; empty for a tombstone.
    fn value(&self) -> &[u8];

    /// How many bytes at the start of the key the last `next` or `prev` has left as they were, at least.
    fn kept(&self) -> usize {
        0
    }

    /// Whether the cursor stands in front of entries that it has not looked at, as `seek` may leave it where no entry
    /// of the key can be: none of them comes before its `key`, at [`Stamp::MAX`]. There is no `value`, and `next` goes to the
    /// first of them.
    #[inline]
    fn waits(&self) -> bool {
        false
    }

    /// Stands on the first entry at or behind (`key`, `stamp`).
    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Self::Error>;

    /// Stands on the last entry strictly before (`key`, `stamp`).
    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Self::Error>;

    /// Stands on the first entry.
    fn seek_first(&mut self) -> Result<(), Self::Error>;

    /// Stands on the last entry.
    fn seek_last(&mut self) -> Result<(), Self::Error>;

    /// Goes to the next entry; not valid behind the last.
    fn next(&mut self) -> Result<(), Self::Error>;

    /// Goes to the previous entry; not valid before the first.
    fn prev(&mut self) -> Result<(), Self::Error>;
}
