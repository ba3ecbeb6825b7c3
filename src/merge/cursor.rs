//! The cursor: a position in a sorted source.

use crate::types::Stamp;

/// A position in a source of entries ordered by (user key ascending, stamp descending).
///
/// A new cursor is not valid. A seek makes it valid, unless there is no such entry. `key`, `stamp`, `value`, `next`
/// and `prev` may be called only while the cursor is valid; they may panic otherwise. A cursor whose operation failed
/// is not valid.
pub trait Cursor {
    /// The error of a failed read.
    type Error;

    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;

    /// User key of the current entry.
    fn key(&self) -> &[u8];

    /// Stamp of the current entry.
    fn stamp(&self) -> Stamp;

    /// Value of the current entry; empty for a tombstone.
    fn value(&self) -> &[u8];

    /// A number of bytes at the start of the key that the last `next` or `prev` has not changed; there may be more.
    fn kept(&self) -> usize {
        0
    }

    /// Whether the cursor *waits*: it stands before entries that it has not read. `seek` may leave it so where the
    /// key sought cannot be. Its `key`, with [`Stamp::MAX`], is then a lower bound of these entries. It has no
    /// `value`, and `next` moves to the first of the entries.
    #[inline]
    fn waits(&self) -> bool {
        false
    }

    /// Whether the value of the current entry is yet to be read: [`Cursor::read_value`] comes before `value` then.
    #[inline]
    fn is_unread(&self) -> bool {
        false
    }

    /// Whether the value of the current entry is unread, and no other entry's block is: one that lies apart. Until it is read,
    /// `value` is the pointer to it, with the same end as the value where values expire.
    #[inline]
    fn is_apart(&self) -> bool {
        false
    }

    /// Reads the value of the current entry, if it is unread.
    fn read_value(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Moves to the first entry at or behind (`key`, `stamp`).
    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Self::Error>;

    /// Moves to the last entry strictly before (`key`, `stamp`).
    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), Self::Error>;

    /// Moves to the first entry.
    fn seek_first(&mut self) -> Result<(), Self::Error>;

    /// Moves to the last entry.
    fn seek_last(&mut self) -> Result<(), Self::Error>;

    /// Moves to the next entry; not valid behind the last one.
    fn next(&mut self) -> Result<(), Self::Error>;

    /// Moves to the previous entry; not valid before the first one.
    fn prev(&mut self) -> Result<(), Self::Error>;
}
