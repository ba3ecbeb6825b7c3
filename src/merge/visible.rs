//! What a reader at a sequence number sees of a merge.
//!
//! It wraps a merge and shows one entry for each user key: the newest version at or below the reader's sequence
//! number, unless that is a tombstone. In a forward walk that version is the first one met. In a backward walk it is
//! the last one, so the candidate's value is pinned (not copied) until the merge has left its key.
//!
//! A value is read only if its entry is shown.
//!
//! To skip versions, a few steps are tried and then a seek: behind the key, before it, or, backward, to the newest
//! version that the reader sees. So a key costs no more than a few steps and two seeks, however many versions it has.
//!
//! What else a reader knows of the keys it asks [`Outlook`]: which values have expired, where its scan ends, and where nothing
//! is alive. A walk that crosses many keys without a value tells it so, and jumps where it knows better.

use super::outlook::{Crossing, Edge, Outlook};
use super::{Cursor, MergeBackward, MergeForward};
use crate::types::{Kind, Seq, Stamp, UpperBound};
use std::ops::Deref;

/// Number of versions of one key that are skipped by steps before a seek is used.
pub(super) const STEPS_BEFORE_SEEK: usize = 8;

/// A cursor whose values can be pinned: kept alive while the cursor moves.
pub trait PinValue: Cursor {
    /// A value that lives without the cursor.
    type Pinned: Deref<Target = [u8]>;

    /// The current value, or the pointer to it if that lies apart. Only while the cursor is valid.
    fn pin_value(&self) -> Self::Pinned;

    /// The value to which a `pointer` leads that was pinned of this cursor.
    ///
    /// # Errors
    /// That of a failed read.
    fn read_pinned(&mut self, pointer: Self::Pinned) -> Result<Self::Pinned, Self::Error> {
        Ok(pointer)
    }
}

/// Walks forward over the keys that exist for a reader.
pub struct VisibleForward<C> {
    merge: MergeForward<C>,
    upto: Seq,
    /// Whether large values are left unread.
    keys_alone: bool,
    /// During a skip, the key whose versions are skipped.
    key: Vec<u8>,
    crossing: Crossing,
}

impl<C: Cursor> VisibleForward<C> {
    /// What a reader at `upto` sees of `merge`. Not valid before the first seek.
    #[must_use]
    pub fn new(merge: MergeForward<C>, upto: Seq) -> Self {
        Self { merge, upto, keys_alone: false, key: Vec::new(), crossing: Crossing::default() }
    }

    /// The same walk for a caller who does not ask for values: large ones are left unread.
    #[must_use]
    pub fn keys_alone(self) -> Self {
        Self { keys_alone: true, ..self }
    }

    /// Stands on the first visible key at or behind `key`.
    ///
    /// # Errors
    /// That of a source.
    pub fn seek(&mut self, key: &[u8], outlook: &impl Outlook) -> Result<(), C::Error> {
        let known = outlook.dead_until(key);
        let from = match &known {
            Some(UpperBound::Unbounded) => {
                self.merge.leave();
                return Ok(());
            }
            Some(UpperBound::Excluded(end)) => end,
            None => key,
        };
        self.merge.seek(from, Stamp::upto(self.upto))?;
        self.settle(Some(Edge { key: from, ends_dead: known.is_some() }), outlook)
    }

    /// Stands on the first visible key.
    ///
    /// # Errors
    /// That of a source.
    pub fn seek_first(&mut self, outlook: &impl Outlook) -> Result<(), C::Error> {
        match outlook.dead_until(&[]) {
            Some(_) => self.seek(&[], outlook),
            None => {
                self.merge.seek_first()?;
                self.settle(Some(Edge { key: &[], ends_dead: false }), outlook)
            }
        }
    }

    /// Moves to the next visible key. Must be valid.
    ///
    /// # Errors
    /// That of a source.
    #[inline(always)]
    pub fn step(&mut self, outlook: &impl Outlook) -> Result<(), C::Error> {
        self.leave_key()?;
        self.settle(None, outlook)
    }

    /// Whether it stands on a visible entry.
    #[must_use]
    #[inline]
    pub fn valid(&self) -> bool {
        self.merge.valid()
    }

    /// User key of the current entry. Must be valid, as for the three below.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.merge.key()
    }

    /// Stamp of the current entry.
    #[cfg(test)]
    pub fn stamp(&self) -> Stamp {
        self.merge.stamp()
    }

    /// Value of the current entry.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.merge.value()
    }

    /// The source that holds the current entry.
    #[must_use]
    #[inline]
    pub fn current(&self) -> &C {
        self.merge.current()
    }

    /// Moves on to the first entry that the reader sees.
    #[inline(always)]
    fn settle(&mut self, edge: Option<Edge<'_>>, outlook: &impl Outlook) -> Result<(), C::Error> {
        if self.merge.valid() && self.is_hidden(self.merge.stamp(), outlook) {
            self.pass_hidden(edge, outlook)
        } else if self.merge.valid() && self.merge.current().is_unread() {
            self.read_value(outlook)
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn is_hidden(&self, stamp: Stamp, outlook: &impl Outlook) -> bool {
        stamp.seq() > self.upto || self.is_dead(stamp, outlook)
    }

    /// Of the newest version that the reader sees.
    #[inline(always)]
    fn is_dead(&self, stamp: Stamp, outlook: &impl Outlook) -> bool {
        stamp.kind() == Kind::Delete || (outlook.expires() && outlook.is_expired(self.merge.value()))
    }

    /// Moves on from an entry that is hidden. `edge`: the key that the walk has been sent to, if it was.
    #[inline(never)]
    fn pass_hidden(&mut self, edge: Option<Edge<'_>>, outlook: &impl Outlook) -> Result<(), C::Error> {
        self.crossing.begin(edge);
        while self.merge.valid() {
            let stamp = self.merge.stamp();
            if stamp.seq() > self.upto {
                self.skip_to(Stamp::upto(self.upto))?;
            } else if !self.is_dead(stamp, outlook) || outlook.is_behind(self.merge.key()) {
                break;
            } else if let Some(end) = self.crossing.forward(self.merge.key(), outlook) {
                match end {
                    UpperBound::Excluded(end) => self.merge.seek(&end, Stamp::upto(self.upto))?,
                    UpperBound::Unbounded => self.merge.leave(),
                }
            } else {
                self.leave_key()?;
            }
        }
        let is_alive = self.merge.valid() && !self.is_hidden(self.merge.stamp(), outlook);
        let alive = if is_alive { Some(self.merge.key()) } else { None };
        self.crossing.tell_forward(alive, false, outlook);
        if is_alive { self.read_value(outlook) } else { Ok(()) }
    }

    /// Reads the value of the current entry, if somebody wants it.
    #[cold]
    fn read_value(&mut self, outlook: &impl Outlook) -> Result<(), C::Error> {
        if self.keys_alone || outlook.is_behind(self.merge.key()) { Ok(()) } else { self.merge.read_value() }
    }

    #[inline(always)]
    fn leave_key(&mut self) -> Result<(), C::Error> {
        // No entry has sequence number zero: this lies behind all versions.
        self.skip_to(Stamp::new(Seq::ZERO, Kind::Delete))
    }

    /// Moves to the first entry behind the current one that has another key, or a stamp not above `goal`.
    #[inline(always)]
    fn skip_to(&mut self, goal: Stamp) -> Result<(), C::Error> {
        self.key.clear();
        self.key.extend_from_slice(self.merge.key());
        let may_be_same = self.merge.step()?;
        if may_be_same { self.skip_on(goal) } else { Ok(()) }
    }

    /// The rest of [`skip_to`](Self::skip_to) after a step that may have led to the same key.
    #[inline(never)]
    fn skip_on(&mut self, goal: Stamp) -> Result<(), C::Error> {
        for step in 1..=STEPS_BEFORE_SEEK {
            if !self.merge.valid() || self.merge.key() != self.key || self.merge.stamp() <= goal {
                return Ok(());
            }
            if step < STEPS_BEFORE_SEEK {
                self.merge.step()?;
            }
        }
        self.merge.seek(&self.key, goal)
    }
}

/// The newest version of a key so far: its stamp and value, or the pointer to that and the source of it.
type Newest<C> = Option<(Stamp, <C as PinValue>::Pinned, Option<usize>)>;

/// Walks backward over the keys that exist for a reader.
pub struct VisibleBackward<C: PinValue> {
    merge: MergeBackward<C>,
    upto: Seq,
    /// Key of the current entry. The merge stands before it already.
    key: Vec<u8>,
    crossing: Crossing,
    found: Option<(Stamp, C::Pinned)>,
}

impl<C: PinValue> VisibleBackward<C> {
    /// What a reader at `upto` sees of `merge`. Not valid before the first seek.
    #[must_use]
    pub fn new(merge: MergeBackward<C>, upto: Seq) -> Self {
        Self { merge, upto, key: Vec::new(), crossing: Crossing::default(), found: None }
    }

    /// Stands on the last visible key strictly before `key`.
    ///
    /// # Errors
    /// That of a source.
    pub fn seek_before(&mut self, key: &[u8], outlook: &impl Outlook) -> Result<(), C::Error> {
        self.found = None;
        let known = outlook.dead_from(key);
        let from = known.as_deref().unwrap_or(key);
        self.merge.seek_before(from, Stamp::MAX)?;
        self.settle(Some(Edge { key: from, ends_dead: known.is_some() }), outlook)
    }

    /// Stands on the last visible key.
    ///
    /// # Errors
    /// That of a source.
    pub fn seek_last(&mut self, outlook: &impl Outlook) -> Result<(), C::Error> {
        self.found = None;
        self.merge.seek_last()?;
        self.settle(None, outlook)
    }

    /// Moves to the previous visible key. Must be valid.
    ///
    /// # Errors
    /// That of a source.
    pub fn step(&mut self, outlook: &impl Outlook) -> Result<(), C::Error> {
        debug_assert!(self.valid(), "stands on no entry");
        self.found = None;
        self.settle(None, outlook)
    }

    /// Whether it stands on a visible entry.
    #[must_use]
    #[inline]
    pub fn valid(&self) -> bool {
        self.found.is_some()
    }

    /// User key of the current entry. Must be valid, as for the three below.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        debug_assert!(self.valid(), "stands on no entry");
        &self.key
    }

    /// Stamp of the current entry.
    #[cfg(test)]
    pub fn stamp(&self) -> Stamp {
        self.found().0
    }

    /// Value of the current entry.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.pinned_value()
    }

    /// The pinned value of the current entry.
    #[must_use]
    pub fn pinned_value(&self) -> &C::Pinned {
        &self.found().1
    }

    fn found(&self) -> &(Stamp, C::Pinned) {
        self.found.as_ref().expect("invariant: only asked while valid")
    }

    /// Moves on to the next entry that the reader sees. `edge`: the key that the walk has been sent before, if it was.
    fn settle(&mut self, edge: Option<Edge<'_>>, outlook: &impl Outlook) -> Result<(), C::Error> {
        let mut crosses = false;
        while self.merge.valid() {
            self.key.clear();
            self.key.extend_from_slice(self.merge.key());
            self.found = self.newest_visible()?;
            if let Some((_, value)) = &self.found
                && !(outlook.expires() && outlook.is_expired(value))
            {
                break;
            }
            self.found = None;
            if outlook.is_before(&self.key) {
                break;
            }
            if !std::mem::replace(&mut crosses, true) {
                self.crossing.begin(edge);
            }
            if let Some(start) = self.crossing.backward(&self.key, outlook) {
                self.merge.seek_before(&start, Stamp::MAX)?;
            }
        }
        if crosses {
            self.crossing.tell_backward(false, outlook);
        }
        Ok(())
    }

    /// Skips all versions of `key`, from the oldest on, and returns the newest one that is visible.
    fn newest_visible(&mut self) -> Result<Option<(Stamp, C::Pinned)>, C::Error> {
        let mut newest: Newest<C> = None;
        let walked = planted!("versions-walked-backward");
        for _ in 0..if walked { usize::MAX } else { STEPS_BEFORE_SEEK } {
            let stamp = self.merge.stamp();
            if stamp.seq() > self.upto {
                self.leave_key()?;
                return self.read_newest(newest);
            }
            let (at, current) = self.merge.current_at();
            let is_apart = current.is_apart();
            if current.is_unread() && !is_apart {
                return self.jump_to_newest();
            }
            newest = stamp.kind().is_put().then(|| (stamp, current.pin_value(), is_apart.then_some(at)));
            let may_be_same = self.merge.step()?;
            if !may_be_same || !self.merge.valid() || self.merge.key() != self.key {
                return self.read_newest(newest);
            }
        }
        self.jump_to_newest()
    }

    /// Reads the value of the newest version, if it lies apart: not before it is known that no newer one hides it.
    #[inline(always)]
    fn read_newest(&mut self, newest: Newest<C>) -> Result<Option<(Stamp, C::Pinned)>, C::Error> {
        match newest {
            Some((stamp, pointer, Some(at))) => {
                Ok(Some((stamp, self.merge.source_mut(at).read_pinned(pointer)?)))
            }
            Some((stamp, value, None)) => Ok(Some((stamp, value))),
            None => Ok(None),
        }
    }

    /// As [`newest_visible`](Self::newest_visible), from anywhere, by two seeks.
    #[inline(never)]
    fn jump_to_newest(&mut self) -> Result<Option<(Stamp, C::Pinned)>, C::Error> {
        let upto = if planted!("newest-version-taken-for-a-snapshots") { Seq::MAX } else { self.upto };
        let newest = self.merge.newest_of(&self.key, Stamp::upto(upto))?;
        let put = newest.filter(|newest| newest.stamp().kind().is_put());
        let found = put.map(|newest| newest.read_value().map(|()| (newest.stamp(), newest.pin_value())));
        let found = found.transpose()?;
        self.merge.seek_before(&self.key, Stamp::MAX)?;
        Ok(found)
    }

    fn leave_key(&mut self) -> Result<(), C::Error> {
        for _ in 0..STEPS_BEFORE_SEEK {
            let may_be_same = self.merge.step()?;
            if !may_be_same || !self.merge.valid() || self.merge.key() != self.key {
                return Ok(());
            }
        }
        self.merge.seek_before(&self.key, Stamp::MAX)
    }
}
