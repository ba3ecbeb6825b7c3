//! What a scan sees: a view, at a number, at a time, within bounds; and what it learns of the keys that are dead.

use std::ops::Bound;
use std::sync::Arc;

use super::expired;
use crate::engine::keyspace::dead_ranges::{Asking, Found, is_worth_noting};
use crate::engine::keyspace::expiry::Expiry;
use crate::engine::keyspace::tree::View;
use crate::merge::{Crossed, Outlook, has_newer_put};
use crate::types::{Key, KeyRange, Seq, UpperBound};

/// The bounds of an iterator.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
}

impl Bounds {
    /// All keys that start with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        let to = match UpperBound::after_prefix(prefix) {
            UpperBound::Excluded(end) => Bound::Excluded(end.to_vec()),
            UpperBound::Unbounded => Bound::Unbounded,
        };
        Self { from: Bound::Included(prefix.to_vec()), to }
    }

    /// The bounds in the form that the standard library's maps take. They refuse empty bounds.
    pub(crate) fn as_refs(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(|key| &key[..]), self.to.as_ref().map(|key| &key[..]))
    }

    /// The keys inside, if there can be any.
    pub(crate) fn range(&self) -> Option<KeyRange> {
        KeyRange::between(self.from.as_ref(), self.to.as_ref())
    }

    #[inline]
    pub(in crate::engine) fn is_behind(&self, key: &[u8]) -> bool {
        match &self.to {
            Bound::Included(to) => key > &**to,
            Bound::Excluded(to) => key >= &**to,
            Bound::Unbounded => false,
        }
    }

    #[inline]
    pub(in crate::engine) fn is_before(&self, key: &[u8]) -> bool {
        match &self.from {
            Bound::Included(from) => key < &**from,
            Bound::Excluded(from) => key <= &**from,
            Bound::Unbounded => false,
        }
    }
}

/// What a scan sees.
pub(in crate::engine) struct Sight {
    pub(in crate::engine) view: Arc<View>,
    pub(in crate::engine) seq: Seq,
    /// Which values have expired; `None` if values of the keyspace do not expire.
    pub(in crate::engine) expiry: Option<Expiry>,
    /// That of the dead ranges before the view was taken.
    pub(in crate::engine) generation: u64,
    pub(in crate::engine) bounds: Bounds,
}

impl Sight {
    /// Values of this second or before have expired.
    fn expired(&self) -> u64 {
        self.expiry.and_then(Expiry::upto).unwrap_or(0)
    }

    fn asking(&self) -> Asking {
        Asking { seq: self.seq, expired: self.expired() }
    }

    /// Whether the active memtable has all that is newer than this scan.
    fn is_newest(&self) -> bool {
        let runs = || self.view.version.runs().all(|(_, run)| run.max_seq() <= self.seq);
        planted!("dead-range-noted-by-an-older-snapshot")
            || self.view.sealed.iter().all(|sealed| sealed.upto <= self.seq) && runs()
    }
}

impl Outlook for Sight {
    #[inline(always)]
    fn expires(&self) -> bool {
        self.expiry.is_some()
    }

    fn is_expired(&self, value: &[u8]) -> bool {
        self.expiry.is_some_and(|expiry| expiry.shown(value).is_none())
    }

    fn is_behind(&self, key: &[u8]) -> bool {
        self.bounds.is_behind(key)
    }

    fn is_before(&self, key: &[u8]) -> bool {
        self.bounds.is_before(key)
    }

    fn dead_until(&self, key: &[u8]) -> Option<UpperBound> {
        let known = self.view.dead.end_around(key, self.asking());
        known.or_else(|| expired::until(&self.view, key, self.expiry?.upto()?))
    }

    fn dead_from(&self, key: &[u8]) -> Option<Key> {
        let known = self.view.dead.start_before(key, self.asking());
        known.or_else(|| expired::from(&self.view, key, self.expiry?.upto()?))
    }

    fn found_dead(&self, Crossed { keys, links }: Crossed, range: impl FnOnce() -> KeyRange) {
        if !(links || is_worth_noting(keys)) || !self.is_newest() {
            return;
        }
        // Of what lies outside of its bounds, a scan leaves out some sources.
        let inside = self.bounds.range().and_then(|bounds| bounds.intersection(&range()));
        let Some(range) = inside else { return };
        let (seq, expired, generation) = (self.seq, self.expired(), self.generation);
        let found = Found { range, seq, expired, keys, generation };
        let active = &self.view.active;
        let newer = |range: &KeyRange| {
            // What a newer range delete hides may be gone from the tables, though an open iterator has it in its view.
            let is_hidden = active.newer_over(range, self.seq).is_some()
                && !planted!("dead-range-noted-under-a-newer-range-delete");
            is_hidden || has_newer_put(active.cursor(), range, self.seq).unwrap_or(true)
        };
        self.view.dead.note(found, newer);
    }
}
