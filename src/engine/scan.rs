//! Iterators over one view.

use std::ops::Bound;
use std::sync::Arc;

use super::tree::{Tree, View};
use super::{Engine, Pin};
use crate::catalog::Run;
use crate::error::{Error, Result};
use crate::merge::{Cursor, MergeBackward, MergeForward, PinValue, VisibleBackward, VisibleForward};
use crate::slice::Slice;
use crate::store::memtable::MemtableCursor;
use crate::store::table::TablesCursor;
use crate::types::{Seq, Stamp};

/// Which keys an iterator covers.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
}

impl Bounds {
    /// All keys that start with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        // The first key behind all of them: the prefix with its last byte below 255 raised and the rest cut off.
        let to = match prefix.iter().rposition(|&byte| byte < u8::MAX) {
            Some(last) => {
                let mut end = prefix[..=last].to_vec();
                end[last] += 1;
                Bound::Excluded(end)
            }
            None => Bound::Unbounded,
        };
        Self { from: Bound::Included(prefix.to_vec()), to }
    }

    /// Whether no key can lie inside.
    fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
            | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
            _ => false,
        }
    }

    fn is_behind(&self, key: &[u8]) -> bool {
        match &self.to {
            Bound::Included(to) => key > &**to,
            Bound::Excluded(to) => key >= &**to,
            Bound::Unbounded => false,
        }
    }

    fn is_before(&self, key: &[u8]) -> bool {
        match &self.from {
            Bound::Included(from) => key < &**from,
            Bound::Excluded(from) => key <= &**from,
            Bound::Unbounded => false,
        }
    }
}

/// A source of a scan.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are runs, and a box would cost each step an access"
)]
enum Source {
    Memtable(MemtableCursor),
    Run(TablesCursor<Run>),
}

/// Passes a call on to whichever source it is.
macro_rules! each {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            Source::Memtable($cursor) => $call,
            Source::Run($cursor) => $call,
        }
    };
}

impl Cursor for Source {
    type Error = Error;

    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }

    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    fn stamp(&self) -> Stamp {
        each!(self, cursor => cursor.stamp())
    }

    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        each!(self, cursor => cursor.seek(key, stamp))
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        each!(self, cursor => cursor.seek_before(key, stamp))
    }

    fn seek_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last())
    }

    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }

    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }
}

impl PinValue for Source {
    type Pinned = Slice;

    fn pin_value(&self) -> Slice {
        match self {
            Self::Memtable(cursor) => Slice::from_memtable(cursor.pin_value()),
            Self::Run(cursor) => match cursor.pin_value() {
                Some(value) => Slice::from_block(value),
                None => Slice::from(cursor.value()),
            },
        }
    }
}

fn sources(engine: &Engine, view: &View) -> Vec<Source> {
    let runs = view.version.levels().flat_map(|(_, level)| &level.runs).filter(|run| !run.is_empty());
    view.memtables()
        .map(|memtable| Source::Memtable(memtable.cursor()))
        .chain(runs.map(|run| Source::Run(TablesCursor::cached(engine.cache.clone(), run.clone()))))
        .collect()
}

/// A walk from both ends over the entries that are visible at one sequence number. Owns all it needs.
pub(crate) struct Scan {
    engine: Arc<Engine>,
    view: Arc<View>,
    seq: Seq,
    /// Keeps the versions of a snapshot; the newest state needs no keeping beyond the view.
    _pin: Option<Arc<Pin>>,
    bounds: Bounds,
    front: End<VisibleForward<Source>>,
    back: End<VisibleBackward<Source>>,
}

/// One end of a scan: made when it is first asked for.
enum End<T> {
    Fresh,
    /// Stands on the entry that was returned last.
    At(Box<T>),
    Finished,
}

impl Scan {
    /// Entries of `tree` within `bounds` as of `pin`, or as of now.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        tree: &Tree,
        bounds: Bounds,
        pin: Option<Arc<Pin>>,
    ) -> Result<Self> {
        engine.health.check_open()?;
        // The view before the number, as for lookups.
        let view = tree.view_arc();
        tree.check_exists()?;
        let seq = pin.as_ref().map_or_else(|| engine.visible(), |pin| pin.seq());
        let empty = bounds.is_empty();
        Ok(Self {
            engine: engine.clone(),
            view,
            seq,
            _pin: pin,
            bounds,
            front: if empty { End::Finished } else { End::Fresh },
            back: if empty { End::Finished } else { End::Fresh },
        })
    }

    /// Goes to the next entry from the front; whether there is one. A failure ends the scan.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let stepped = self.step_front();
        if !matches!(stepped, Ok(true)) {
            (self.front, self.back) = (End::Finished, End::Finished);
        }
        stepped
    }

    fn step_front(&mut self) -> Result<bool> {
        match &mut self.front {
            End::Finished => return Ok(false),
            End::At(walk) => walk.step()?,
            End::Fresh => {
                let mut walk = Box::new(VisibleForward::new(
                    MergeForward::new(sources(&self.engine, &self.view)),
                    self.seq,
                ));
                match &self.bounds.from {
                    Bound::Included(from) => walk.seek(from)?,
                    Bound::Excluded(from) => {
                        walk.seek(from)?;
                        if walk.valid() && walk.key() == from {
                            walk.step()?;
                        }
                    }
                    Bound::Unbounded => walk.seek_first()?,
                }
                self.front = End::At(walk);
            }
        }
        let End::At(walk) = &self.front else { return Ok(false) };
        Ok(walk.valid() && !self.bounds.is_behind(walk.key()) && !self.back_has_passed(walk.key()))
    }

    /// Goes to the next entry from the back; whether there is one. A failure ends the scan.
    pub(crate) fn advance_back(&mut self) -> Result<bool> {
        let stepped = self.step_back();
        if !matches!(stepped, Ok(true)) {
            (self.front, self.back) = (End::Finished, End::Finished);
        }
        stepped
    }

    fn step_back(&mut self) -> Result<bool> {
        match &mut self.back {
            End::Finished => return Ok(false),
            End::At(walk) => walk.step()?,
            End::Fresh => {
                let mut walk = Box::new(VisibleBackward::new(
                    MergeBackward::new(sources(&self.engine, &self.view)),
                    self.seq,
                ));
                match &self.bounds.to {
                    Bound::Excluded(to) => walk.seek_before(to)?,
                    Bound::Included(to) => {
                        // The key that follows `to` in bytewise order is `to` and a zero byte.
                        let mut behind = to.clone();
                        behind.push(0);
                        walk.seek_before(&behind)?;
                    }
                    Bound::Unbounded => walk.seek_last()?,
                }
                self.back = End::At(walk);
            }
        }
        let End::At(walk) = &self.back else { return Ok(false) };
        Ok(walk.valid() && !self.bounds.is_before(walk.key()) && !self.front_has_passed(walk.key()))
    }

    fn back_has_passed(&self, key: &[u8]) -> bool {
        matches!(&self.back, End::At(walk) if walk.valid() && key >= walk.key())
    }

    fn front_has_passed(&self, key: &[u8]) -> bool {
        matches!(&self.front, End::At(walk) if walk.valid() && key <= walk.key())
    }

    /// The entry that [`Scan::advance`] went to.
    pub(crate) fn front(&self) -> Option<(&[u8], &[u8])> {
        match &self.front {
            End::At(walk) => Some((walk.key(), walk.value())),
            _ => None,
        }
    }

    /// The entry that [`Scan::advance_back`] went to.
    pub(crate) fn back(&self) -> Option<(&[u8], &[u8])> {
        match &self.back {
            End::At(walk) => Some((walk.key(), walk.value())),
            _ => None,
        }
    }

    /// As [`Scan::front`], to keep.
    pub(crate) fn front_pinned(&self) -> Option<(Slice, Slice)> {
        match &self.front {
            End::At(walk) => Some((Slice::from(walk.key()), walk.current().pin_value())),
            _ => None,
        }
    }

    /// As [`Scan::back`], to keep.
    pub(crate) fn back_pinned(&self) -> Option<(Slice, Slice)> {
        match &self.back {
            End::At(walk) => Some((Slice::from(walk.key()), walk.pinned_value().clone())),
            _ => None,
        }
    }
}
