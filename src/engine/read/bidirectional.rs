//! A scan that seeks and steps in both directions within its bounds.
//!
//! It wraps a [`Scan`], which decides what it sees, and has one merge for each direction. A merge is made when it is
//! first needed, and then kept. A seek costs a search in each source. So does a turn, which is a seek of the other
//! merge to the current entry. A step in the direction of the last movement costs as much as in a scan.
//!
//! It stands on an entry, before the first one, or behind the last one. After a failure it stands nowhere, until the
//! next seek.

use std::ops::Bound;

use super::scan::{BackwardWalk, ForwardWalk, Scan};
use super::sight::Sight;
use crate::error::Result;
use crate::merge::PinValue;
use crate::slice::Slice;

/// A position among the entries of a scan.
pub(crate) struct BidirectionalScan {
    scan: Scan,
    forward: Option<Box<ForwardWalk>>,
    backward: Option<Box<BackwardWalk>>,
    place: Place,
    /// Memory for the key at which it turns round, reused.
    turn: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first entry.
    Before,
    /// On the current entry of the forward merge.
    Forward,
    /// On the current entry of the backward merge.
    Backward,
    /// Behind the last entry.
    Behind,
    /// Nowhere, after a failure.
    Lost,
}

impl BidirectionalScan {
    /// Before the first entry of `scan`.
    pub(crate) fn new(scan: Scan) -> Self {
        Self { scan, forward: None, backward: None, place: Place::Before, turn: Vec::new() }
    }

    /// Moves to the first entry at or behind `key`. Returns whether there is one, like all movements below.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.scan.sight.bounds.is_before(key) {
            self.seek_first()
        } else {
            self.go_forward(|walk, sight| walk.seek(key, sight))
        }
    }

    /// Moves to the last entry at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        if self.scan.sight.bounds.is_behind(key) {
            return self.seek_last();
        }
        let behind = [key, &[0]].concat();
        self.go_backward(|walk, sight| walk.seek_before(&behind, sight))
    }

    /// Moves to the first entry.
    pub(crate) fn seek_first(&mut self) -> Result<bool> {
        let from = self.scan.sight.bounds.from.clone();
        self.go_forward(|walk, sight| match &from {
            Bound::Included(from) => walk.seek(from, sight),
            Bound::Excluded(from) => seek_behind(walk, from, sight),
            Bound::Unbounded => walk.seek_first(sight),
        })
    }

    /// Moves to the last entry.
    pub(crate) fn seek_last(&mut self) -> Result<bool> {
        let to = self.scan.sight.bounds.to.clone();
        self.go_backward(|walk, sight| match &to {
            Bound::Excluded(to) => walk.seek_before(to, sight),
            Bound::Included(to) => walk.seek_before(&[to, &[0][..]].concat(), sight),
            Bound::Unbounded => walk.seek_last(sight),
        })
    }

    /// Moves to the next entry.
    pub(crate) fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::Before => self.seek_first(),
            Place::Forward => {
                let stepped = self.forward.as_mut().map_or(Ok(()), |walk| walk.step(&self.scan.sight));
                self.settle_forward(stepped)
            }
            Place::Backward => {
                let key = self.take_key();
                let went = self.go_forward(|walk, sight| {
                    seek_behind(walk, &key, sight)?;
                    if planted!("cursor-skips-an-entry-where-it-turns") && walk.valid() {
                        walk.step(sight)?;
                    }
                    Ok(())
                });
                self.turn = key;
                went
            }
            Place::Behind | Place::Lost => Ok(false),
        }
    }

    /// Moves to the previous entry.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::Behind => self.seek_last(),
            Place::Backward => {
                let stepped = self.backward.as_mut().map_or(Ok(()), |walk| walk.step(&self.scan.sight));
                self.settle_backward(stepped)
            }
            Place::Forward => {
                let key = self.take_key();
                let went = self.go_backward(|walk, sight| {
                    let stands_before = walk.valid() && walk.key() < key.as_slice();
                    if planted!("cursor-turns-to-where-it-stood") && stands_before {
                        return Ok(());
                    }
                    walk.seek_before(&key, sight)
                });
                self.turn = key;
                went
            }
            Place::Before | Place::Lost => Ok(false),
        }
    }

    /// A copy of the current key, in the memory of [`BidirectionalScan::turn`].
    fn take_key(&mut self) -> Vec<u8> {
        let mut turn = std::mem::take(&mut self.turn);
        turn.clear();
        turn.extend(self.current().map(|(key, _)| key).into_iter().flatten());
        turn
    }

    fn go_forward(&mut self, seek: impl FnOnce(&mut ForwardWalk, &Sight) -> Result<()>) -> Result<bool> {
        if self.scan.is_empty() {
            return Ok(false);
        }
        self.place = Place::Lost;
        self.scan.walked.seeks += 1;
        let walk = match &mut self.forward {
            Some(walk) => walk,
            none => none.insert(Box::new(self.scan.walk_forward()?)),
        };
        let sought = seek(walk, &self.scan.sight);
        self.settle_forward(sought)
    }

    fn go_backward(&mut self, seek: impl FnOnce(&mut BackwardWalk, &Sight) -> Result<()>) -> Result<bool> {
        if self.scan.is_empty() {
            return Ok(false);
        }
        self.place = Place::Lost;
        self.scan.walked.seeks += 1;
        let walk = match &mut self.backward {
            Some(walk) => walk,
            none => none.insert(Box::new(self.scan.walk_backward()?)),
        };
        let sought = seek(walk, &self.scan.sight);
        self.settle_backward(sought)
    }

    /// Finds its place after a movement, whose result is `moved`.
    fn settle_forward(&mut self, moved: Result<()>) -> Result<bool> {
        self.place = Place::Lost;
        moved?;
        let Some(walk) = &mut self.forward else { return Ok(false) };
        if walk.valid() && !self.scan.sight.bounds.is_behind(walk.key()) {
            self.scan.walked.step(walk.key().len() + walk.value().len());
            self.place = Place::Forward;
            return Ok(true);
        }
        self.place = Place::Behind;
        Ok(false)
    }

    fn settle_backward(&mut self, moved: Result<()>) -> Result<bool> {
        self.place = Place::Lost;
        moved?;
        let Some(walk) = &mut self.backward else { return Ok(false) };
        if walk.valid() && !self.scan.sight.bounds.is_before(walk.key()) {
            self.scan.walked.step(walk.key().len() + walk.value().len());
            self.place = Place::Backward;
            return Ok(true);
        }
        self.place = Place::Before;
        Ok(false)
    }

    /// The current entry.
    pub(crate) fn current(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = match (self.place, &self.forward, &self.backward) {
            (Place::Forward, Some(walk), _) => (walk.key(), walk.value()),
            (Place::Backward, _, Some(walk)) => (walk.key(), walk.value()),
            _ => return None,
        };
        Some((key, self.scan.shown(value)?))
    }

    /// As [`BidirectionalScan::current`], to keep.
    pub(crate) fn current_pinned(&self) -> Option<(Slice, Slice)> {
        let (key, value) = match (self.place, &self.forward, &self.backward) {
            (Place::Forward, Some(walk), _) => (walk.key(), walk.current().pin_value()),
            (Place::Backward, _, Some(walk)) => (walk.key(), walk.pinned_value().clone()),
            _ => return None,
        };
        Some((Slice::from(key), self.scan.keep(value)?))
    }
}

/// Moves to the first entry behind `key`.
fn seek_behind(walk: &mut ForwardWalk, key: &[u8], sight: &Sight) -> Result<()> {
    walk.seek(key, sight)?;
    if walk.valid() && walk.key() == key { walk.step(sight) } else { Ok(()) }
}
