//! A source without the entries that range tombstones hide.
//!
//! A [`Masked`] cursor wraps a cursor and shows only the entries that no range tombstone hides: neither one of the
//! source itself, nor one of a *newer* source, which a lookup would search before this one.
//!
//! * A newer source's tombstone hides every entry of this source that it covers (I2). So the cursor seeks to the end
//!   of the tombstone at once.
//! * A tombstone of the source itself may be older or newer than the entries that it covers. So the cursor steps, and
//!   after a few hidden versions of one key it seeks past all of them.
//!
//! So a merge needs to know nothing of range tombstones. Sources whose entries no tombstone can hide are not wrapped.

use super::visible::STEPS_BEFORE_SEEK;
use super::{Cursor, PinValue, Span};
use crate::types::{KeyRange, Kind, Seq, Stamp, UpperBound};
use std::sync::Arc;

/// The range tombstones of a source, as one reader sees them.
pub trait Tombstones {
    /// What a failed read yields.
    type Error;

    /// The span around `key`.
    fn span(&self, key: &[u8]) -> Result<Span, Self::Error>;
}

/// What is hidden around a key.
enum Mask {
    Nothing,
    /// Entries below this sequence number.
    Older(Seq),
    Everything,
}

/// How hidden entries are skipped in one direction: one entry; all versions of a key up to the newest hidden one,
/// given by its number; a range, if there is anything beyond it.
struct Pass<S, V, R> {
    step: S,
    leave_versions: V,
    leave_range: R,
}

/// A cursor that skips hidden entries.
pub struct Masked<C, T> {
    cursor: C,
    /// Tombstones of the newer sources that have any.
    newer: Vec<Arc<T>>,
    /// Tombstones of this source, if it has any.
    own: Option<Arc<T>>,
    /// A range, and what is hidden in it; kept from the last look at the tombstones.
    known: Option<(KeyRange, Mask)>,
    /// The key whose hidden versions are being skipped.
    key: Vec<u8>,
    /// Whether the cursor stands on an entry that is not hidden.
    valid: bool,
}

impl<C: Cursor, T: Tombstones<Error = C::Error>> Masked<C, T> {
    /// `cursor` without what is hidden by the tombstones of `newer` sources and by its `own`.
    #[must_use]
    pub fn new(cursor: C, newer: Vec<Arc<T>>, own: Option<Arc<T>>) -> Self {
        Self { cursor, newer, own, known: None, key: Vec::new(), valid: false }
    }

    /// Skips hidden entries after a movement, whose result is `moved`.
    fn settle<S, V, R>(&mut self, moved: Result<(), C::Error>, pass: Pass<S, V, R>) -> Result<(), C::Error>
    where
        S: Fn(&mut C) -> Result<(), C::Error>,
        V: Fn(&mut C, &[u8], Seq) -> Result<(), C::Error>,
        R: Fn(&mut C, &KeyRange) -> Result<bool, C::Error>,
    {
        self.valid = false;
        moved?;
        // Number of hidden versions of `self.key` that were skipped one by one.
        let mut passed = 0;
        while self.cursor.valid() {
            let key = self.cursor.key();
            let (range, mask) = match &mut self.known {
                Some(known) if known.0.contains(key) => known,
                known => known.insert(mask_at(&self.newer, self.own.as_deref(), key)?),
            };
            match mask {
                Mask::Everything if (pass.leave_range)(&mut self.cursor, range)? => {}
                Mask::Everything => break,
                Mask::Older(than) if self.cursor.stamp().seq() < *than => {
                    let key = self.cursor.key();
                    if passed == 0 || key != self.key {
                        self.key.clear();
                        self.key.extend_from_slice(key);
                        passed = 0;
                    }
                    passed += 1;
                    if passed <= STEPS_BEFORE_SEEK || planted!("hidden-versions-walked") {
                        (pass.step)(&mut self.cursor)?;
                    } else {
                        (pass.leave_versions)(&mut self.cursor, &self.key, Seq(than.0 - 1))?;
                    }
                }
                _ => {
                    self.valid = true;
                    break;
                }
            }
        }
        Ok(())
    }

    fn settle_forward(&mut self, moved: Result<(), C::Error>) -> Result<(), C::Error> {
        let pass = Pass {
            step: C::next,
            // All later versions of the key are older, and hidden as well.
            leave_versions: |cursor: &mut C, key: &[u8], _| {
                cursor.seek(key, Stamp::new(Seq::ZERO, Kind::Delete))
            },
            leave_range: |cursor: &mut C, range: &KeyRange| match &range.end {
                UpperBound::Excluded(end) => cursor.seek(end, Stamp::MAX).map(|()| true),
                UpperBound::Unbounded => Ok(false),
            },
        };
        self.settle(moved, pass)
    }

    fn settle_backward(&mut self, moved: Result<(), C::Error>) -> Result<(), C::Error> {
        let pass = Pass {
            step: C::prev,
            // The versions before are newer: those from the tombstone's number on are not hidden.
            leave_versions: |cursor: &mut C, key: &[u8], newest_hidden| {
                cursor.seek_before(key, Stamp::upto(newest_hidden))
            },
            leave_range: |cursor: &mut C, range: &KeyRange| {
                cursor.seek_before(&range.start, Stamp::MAX).map(|()| true)
            },
        };
        self.settle(moved, pass)
    }
}

/// What is hidden around `key`, and how far that holds.
fn mask_at<T: Tombstones>(
    newer: &[Arc<T>],
    own: Option<&T>,
    key: &[u8],
) -> Result<(KeyRange, Mask), T::Error> {
    let mut hidden: Option<KeyRange> = None;
    let mut open = KeyRange::everything();
    for source in newer {
        let Span { range, newest } = source.span(key)?;
        if newest.is_some() {
            hidden = Some(hidden.map_or_else(|| range.clone(), |hidden| hidden.hull(&range)));
        } else {
            open = open.intersection(&range).unwrap_or(range);
        }
    }
    if let Some(hidden) = hidden {
        return Ok((hidden, Mask::Everything));
    }
    let mut mask = Mask::Nothing;
    if let Some(own) = own {
        let Span { range, newest } = own.span(key)?;
        open = open.intersection(&range).unwrap_or(range);
        mask = newest.map_or(Mask::Nothing, Mask::Older);
    }
    Ok((open, mask))
}

impl<C: Cursor, T: Tombstones<Error = C::Error>> Cursor for Masked<C, T> {
    type Error = C::Error;

    fn valid(&self) -> bool {
        self.valid
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn stamp(&self) -> Stamp {
        self.cursor.stamp()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    fn is_unread(&self) -> bool {
        self.cursor.is_unread()
    }

    #[inline]
    fn is_apart(&self) -> bool {
        self.cursor.is_apart()
    }

    fn read_value(&mut self) -> Result<(), C::Error> {
        self.cursor.read_value().inspect_err(|_| self.valid = false)
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), C::Error> {
        let moved = self.cursor.seek(key, stamp);
        self.settle_forward(moved)
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), C::Error> {
        let moved = self.cursor.seek_before(key, stamp);
        self.settle_backward(moved)
    }

    fn seek_first(&mut self) -> Result<(), C::Error> {
        let moved = self.cursor.seek_first();
        self.settle_forward(moved)
    }

    fn seek_last(&mut self) -> Result<(), C::Error> {
        let moved = self.cursor.seek_last();
        self.settle_backward(moved)
    }

    fn next(&mut self) -> Result<(), C::Error> {
        let moved = self.cursor.next();
        self.settle_forward(moved)
    }

    fn prev(&mut self) -> Result<(), C::Error> {
        let moved = self.cursor.prev();
        self.settle_backward(moved)
    }
}

impl<C: PinValue, T: Tombstones<Error = C::Error>> PinValue for Masked<C, T> {
    type Pinned = C::Pinned;

    fn pin_value(&self) -> C::Pinned {
        self.cursor.pin_value()
    }

    fn read_pinned(&mut self, pointer: C::Pinned) -> Result<C::Pinned, C::Error> {
        self.cursor.read_pinned(pointer)
    }
}
