//! The range tombstones of a memtable, kept beside its entries in a forest of fragmented lists.
//!
//! As in a binary counter, there are trees over 1, 2, 4, ... consecutive tombstones in the order of their sequence
//! numbers. The oldest tree is first and largest. A tree holds its tombstones fragmented for a reader that sees all
//! of them, and two halves for readers that see a part. A lookup bisects a few fragmented lists: about log n, and
//! twice that for an old snapshot. An insertion costs log n on average, whatever the overlaps.
//!
//! Readers hold an immutable forest and never wait. While there is no tombstone they load one word.
//!
//! It does not know which snapshots there are, so nothing is ever removed from it.

use crate::merge::{fragment, newer_over, newest_over};
use crate::types::{KeyRange, RangeTombstone, Seq};
use arc_swap::ArcSwap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Memory of a tombstone besides its keys, in bytes: a place in a tree of each size up to a few thousand.
pub const RANGE_TOMBSTONE_BYTES: u64 = 12 * size_of::<RangeTombstone>() as u64;

#[derive(Debug, Default)]
pub(super) struct RangeTombstones {
    /// Number of tombstones. Zero while the forest is empty: the only word that a reader loads in most memtables.
    count: AtomicU64,
    bytes: AtomicU64,
    forest: ArcSwap<Vec<Arc<Tree>>>,
}

/// Some consecutive tombstones.
#[derive(Debug)]
pub struct Tree {
    oldest: Seq,
    newest: Seq,
    count: u64,
    fragments: Vec<RangeTombstone>,
    /// The older and the newer half; none of a single tombstone.
    halves: Option<[Arc<Self>; 2]>,
}

/// The tombstones, fragmented for a reader that sees all of them.
impl Deref for Tree {
    type Target = [RangeTombstone];

    fn deref(&self) -> &[RangeTombstone] {
        &self.fragments
    }
}

impl Tree {
    fn single(range: KeyRange, seq: Seq) -> Self {
        let fragments = vec![RangeTombstone { range, seq }];
        Self { oldest: seq, newest: seq, count: 1, fragments, halves: None }
    }

    fn join(older: Arc<Self>, newer: Arc<Self>) -> Self {
        debug_assert!(older.newest < newer.oldest, "range tombstones come in the order of their numbers");
        Self {
            oldest: older.oldest,
            newest: newer.newest,
            count: older.count + newer.count,
            fragments: fragment(&[&older[..], &newer[..]].concat(), &[]),
            halves: Some([older, newer]),
        }
    }

    /// Hands `visit` the subtrees that a reader at `upto` sees as a whole, the newest first, until it returns
    /// something.
    fn visit<T>(self: &Arc<Self>, upto: Seq, visit: &mut impl FnMut(&Arc<Self>) -> Option<T>) -> Option<T> {
        if self.newest <= upto {
            return visit(self);
        }
        let halves = self.halves.as_ref().filter(|_| self.oldest <= upto);
        halves.into_iter().flatten().rev().find_map(|half| half.visit(upto, visit))
    }

    /// As [`newer_over`]. In a subtree that is wholly newer than `since`, the first tombstone that is found is the
    /// answer.
    fn newer_over(&self, range: &KeyRange, since: Seq) -> Option<RangeTombstone> {
        match &self.halves {
            _ if self.newest <= since => None,
            Some(halves) if self.oldest <= since => {
                halves.iter().rev().find_map(|half| half.newer_over(range, since))
            }
            _ => newer_over(&self.fragments, range, since),
        }
    }
}

impl RangeTombstones {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Adds a tombstone. Only one thread at a time does, in the order of sequence numbers.
    pub(super) fn insert(&self, range: KeyRange, seq: Seq) {
        let key_bytes = range.start.len() + range.end.as_bytes().len();
        let mut forest = Vec::clone(&self.forest.load());
        let mut tree = Arc::new(Tree::single(range, seq));
        while let Some(older) = forest.pop_if(|older| older.count <= tree.count) {
            tree = Arc::new(Tree::join(older, tree));
        }
        forest.push(tree);
        self.forest.store(Arc::new(forest));
        self.bytes.fetch_add(key_bytes as u64 + RANGE_TOMBSTONE_BYTES, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    /// The newest tombstone over `key` that a reader at `upto` sees.
    #[inline]
    pub(super) fn newest_over(&self, key: &[u8], upto: Seq) -> Option<Seq> {
        // Whoever may see a tombstone has synchronised with its insertion through the newest visible number.
        if self.count() == 0 {
            return None;
        }
        self.visit(upto, |tree| newest_over(tree, key, upto))
    }

    /// A tombstone over keys of `range` that is newer than `since`, cut to `range`, if there is any.
    pub(super) fn newer_over(&self, range: &KeyRange, since: Seq) -> Option<RangeTombstone> {
        if self.count() == 0 {
            return None;
        }
        self.forest.load().iter().rev().find_map(|tree| tree.newer_over(range, since))
    }

    /// Fragmented tombstones that a reader at `upto` sees, in lists of which each is newer than the next.
    pub(super) fn visible(&self, upto: Seq) -> Vec<Arc<Tree>> {
        let mut lists = Vec::new();
        if self.count() > 0 {
            self.visit(upto, |tree| {
                lists.push(Arc::clone(tree));
                None::<()>
            });
        }
        lists
    }

    /// All tombstones, as they were inserted, the newest first.
    pub(super) fn all(&self) -> Vec<RangeTombstone> {
        fn collect(tree: &Tree, all: &mut Vec<RangeTombstone>) {
            match &tree.halves {
                Some(halves) => halves.iter().rev().for_each(|half| collect(half, all)),
                None => all.extend_from_slice(&tree.fragments),
            }
        }
        let mut all = Vec::new();
        self.forest.load().iter().rev().for_each(|tree| collect(tree, &mut all));
        all
    }

    fn visit<T>(&self, upto: Seq, mut visit: impl FnMut(&Arc<Tree>) -> Option<T>) -> Option<T> {
        self.forest.load().iter().rev().find_map(|tree| tree.visit(upto, &mut visit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::span_at;
    use crate::types::UpperBound;

    fn key(n: u64) -> Vec<u8> {
        format!("{n:05}").into_bytes()
    }

    /// Ranges of all lengths over a thousand keys, from a repeatable stream.
    fn tombstones(count: u64) -> Vec<RangeTombstone> {
        let draw = |n: u64| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (start, width) = ((mixed >> 32) % 900, (mixed >> 16) % (1 << (n % 10)));
            let end = match start + 1 + width {
                1000.. => UpperBound::Unbounded,
                end => UpperBound::Excluded(key(end).into()),
            };
            RangeTombstone { range: KeyRange::half_open(key(start), end), seq: Seq(10 * n) }
        };
        (1..=count).map(draw).collect()
    }

    #[test]
    fn every_reader_finds_the_newest_tombstone_that_it_sees() {
        for count in [0, 1, 2, 3, 7, 8, 100] {
            let expected = tombstones(count);
            let forest = RangeTombstones::default();
            for RangeTombstone { range, seq } in &expected {
                forest.insert(range.clone(), *seq);
            }
            assert!(forest.all().iter().rev().eq(&expected));
            for upto in (0..10 * count + 15).step_by(5).map(Seq) {
                let lists = forest.visible(upto);
                for key in (0..1010).step_by(7).map(key) {
                    let over = expected.iter().filter(|t| t.seq <= upto && t.range.contains(&key));
                    let newest = over.map(|tombstone| tombstone.seq).max();
                    assert_eq!(forest.newest_over(&key, upto), newest, "{key:?} at {upto} of {count}");
                    let span = span_at(lists.iter().map(|list| &list[..]), &key, upto);
                    assert_eq!(span.newest, newest);
                    assert!(span.range.contains(&key));
                }
                for start in (0..1010).step_by(61) {
                    let range = KeyRange::half_open(key(start), UpperBound::Excluded(key(start + 40).into()));
                    let newer = |t: &RangeTombstone| t.seq > upto && t.range.overlaps(&range);
                    let found = forest.newer_over(&range, upto);
                    assert_eq!(
                        found.is_some(),
                        expected.iter().any(newer),
                        "{range:?} since {upto} of {count}"
                    );
                    if let Some(found) = found {
                        let from = |t: &RangeTombstone| t.seq == found.seq && t.range.covers(&found.range);
                        assert!(range.covers(&found.range) && expected.iter().any(|t| newer(t) && from(t)));
                    }
                }
            }
        }
    }

    #[test]
    fn nested_ranges_take_no_more_than_a_few_places_each() {
        let forest = RangeTombstones::default();
        let count = 1 << 12;
        for n in 0..count {
            // Each inside the one before.
            forest.insert(KeyRange::new(key(n), key(2 * count - n)), Seq(n + 1));
        }
        fn places(tree: &Tree) -> usize {
            tree.fragments.len() + tree.halves.iter().flatten().map(|half| places(half)).sum::<usize>()
        }
        let places: usize = forest.forest.load().iter().map(|tree| places(tree)).sum();
        assert!(places <= 2 * 13 * count as usize, "{places} places");
        assert_eq!(forest.newest_over(&key(count), Seq::MAX), Some(Seq(count)));
        assert!(forest.bytes() >= count * RANGE_TOMBSTONE_BYTES);
    }
}
