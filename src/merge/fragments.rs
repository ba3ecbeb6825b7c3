//! Fragmented range tombstones: cut where they meet, so that they can be searched like entries.
//!
//! Any two *fragmented* tombstones have the same range, or no key in common. They are in the order of their ranges;
//! those with the same range come newest first. So a binary search finds the newest one over a key, however the
//! deleted ranges overlap.
//!
//! Of the tombstones over a key, only the newest that each snapshot sees is of use. The rest are dropped when
//! tombstones are fragmented, so that ranges that are deleted again and again do not accumulate.

use crate::types::{KeyRange, RangeTombstone, Seq, UpperBound};
use std::collections::BTreeSet;

/// Fragments `tombstones`, given in any order, for readers that hold `snapshots`, in ascending order, and for all
/// readers that see every tombstone.
///
/// Costs n log n for n tombstones, whatever their overlaps, and as much again for each snapshot.
#[must_use]
pub fn fragment(tombstones: &[RangeTombstone], snapshots: &[Seq]) -> Vec<RangeTombstone> {
    let mut edges: Vec<(UpperBound, usize)> = Vec::with_capacity(2 * tombstones.len());
    for (index, RangeTombstone { range, .. }) in tombstones.iter().enumerate() {
        edges.push((UpperBound::Excluded(range.start.clone()), index));
        edges.push((range.end.clone(), index));
    }
    // A stable sort that is fast on input sorted in pieces, as the fragments of several tables are.
    edges.sort_by(|a, b| a.0.cmp(&b.0));
    let mut over = BTreeSet::new();
    let mut fragments: Vec<(KeyRange, Vec<Seq>)> = Vec::new();
    for (at, (position, index)) in edges.iter().enumerate() {
        // The first edge of a tombstone is its start, the second its end.
        let tombstone = (tombstones[*index].seq, *index);
        if !over.remove(&tombstone) {
            over.insert(tombstone);
        }
        let (Some((next, _)), UpperBound::Excluded(start)) = (edges.get(at + 1), position) else { break };
        if over.is_empty() || next == position {
            continue;
        }
        let seqs = useful(&over, snapshots);
        match fragments.last_mut() {
            Some((last, same)) if last.end == *position && *same == seqs => last.end = next.clone(),
            _ => fragments.push((KeyRange::half_open(start.clone(), next.clone()), seqs)),
        }
    }
    let flat = fragments.into_iter().flat_map(|(range, seqs)| {
        seqs.into_iter().map(move |seq| RangeTombstone { range: range.clone(), seq })
    });
    flat.collect()
}

/// The newest of `over`, and the newest that each snapshot sees; newest first.
fn useful(over: &BTreeSet<(Seq, usize)>, snapshots: &[Seq]) -> Vec<Seq> {
    let mut useful = Vec::with_capacity(1);
    let mut upto = Seq::MAX;
    while let Some(&(seq, _)) = over.range(..=(upto, usize::MAX)).next_back() {
        useful.push(seq);
        let older = snapshots.partition_point(|&snapshot| snapshot < seq);
        match older.checked_sub(1) {
            Some(last) if !planted!("range-tombstone-of-a-snapshot-lost") => upto = snapshots[last],
            _ => break,
        }
    }
    useful
}

/// Index of the first of the fragmented tombstones that does not end before `key`.
fn lower_bound(fragments: &[RangeTombstone], key: &[u8]) -> usize {
    fragments.partition_point(|tombstone| !tombstone.range.end.admits(key))
}

/// Of the fragmented tombstones with the same range as the one at `at`, newest first: those newer than `seq`, and the
/// next older one.
fn split_group(
    fragments: &[RangeTombstone],
    at: usize,
    seq: Seq,
) -> (&[RangeTombstone], Option<&RangeTombstone>) {
    let (range, behind) = (&fragments[at].range, &fragments[at..]);
    let is_newer = |tombstone: &RangeTombstone| tombstone.seq > seq && tombstone.range == *range;
    // Most groups have one tombstone.
    let mut reach = 1;
    while behind.get(reach - 1).is_some_and(is_newer) {
        reach *= 2;
    }
    let from = reach / 2;
    let newer = from + behind[from..reach.min(behind.len())].partition_point(is_newer);
    let (newer, rest) = behind.split_at(newer);
    (newer, rest.first().filter(|tombstone| tombstone.range == *range))
}

/// The newest of the fragmented tombstones over `key` that a reader at `upto` sees.
#[must_use]
pub fn newest_over(fragments: &[RangeTombstone], key: &[u8], upto: Seq) -> Option<Seq> {
    let at = lower_bound(fragments, key);
    let over = fragments.get(at).is_some_and(|tombstone| *tombstone.range.start <= *key);
    let newest = over.then(|| split_group(fragments, at, upto).1);
    newest.flatten().map(|tombstone| tombstone.seq)
}

/// One of the fragmented tombstones over keys of `range` that is newer than `since`, cut to `range`, if there is any.
#[must_use]
pub fn newer_over(fragments: &[RangeTombstone], range: &KeyRange, since: Seq) -> Option<RangeTombstone> {
    let reached = fragments[lower_bound(fragments, &range.start)..].iter();
    let newer = reached.take_while(|tombstone| range.end.admits(&tombstone.range.start));
    newer.filter(|tombstone| tombstone.seq > since).find_map(|tombstone| {
        let range = tombstone.range.intersection(range)?;
        Some(RangeTombstone { range, seq: tombstone.seq })
    })
}

/// A range of keys over which the same tombstone is the newest, or over which there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The keys.
    pub range: KeyRange,
    /// Sequence number of that tombstone.
    pub newest: Option<Seq>,
}

/// The span around `key` that a reader at `upto` sees in `lists` of fragmented tombstones; each list is newer than
/// the next.
pub fn span_at<'a>(lists: impl IntoIterator<Item = &'a [RangeTombstone]>, key: &[u8], upto: Seq) -> Span {
    let mut span = Span { range: KeyRange::everything(), newest: None };
    for fragments in lists {
        let (range, newest) = span_in(fragments, key, upto);
        // Both hold the key.
        span.range = span.range.intersection(&range).unwrap_or(range);
        span.newest = newest;
        if newest.is_some() {
            break;
        }
    }
    span
}

fn span_in(fragments: &[RangeTombstone], key: &[u8], upto: Seq) -> (KeyRange, Option<Seq>) {
    let at = lower_bound(fragments, key);
    let mut gap = KeyRange::everything();
    if let Some(next) = fragments.get(at) {
        if *next.range.start <= *key {
            let newest = split_group(fragments, at, upto).1;
            return (next.range.clone(), newest.map(|tombstone| tombstone.seq));
        }
        gap.end = UpperBound::Excluded(next.range.start.clone());
    }
    if let Some(last) = at.checked_sub(1)
        && let UpperBound::Excluded(end) = &fragments[last].range.end
    {
        gap.start = end.clone();
    }
    (gap, None)
}

/// Fragmented tombstones with a position, for lookups by ascending keys.
#[derive(Debug)]
pub struct Coverage {
    fragments: Vec<RangeTombstone>,
    at: usize,
}

impl Coverage {
    /// The tombstones, with the position before the first key.
    #[must_use]
    pub fn new(fragments: Vec<RangeTombstone>) -> Self {
        Self { fragments, at: 0 }
    }

    /// The tombstones.
    #[must_use]
    pub fn fragments(&self) -> &[RangeTombstone] {
        &self.fragments
    }

    /// The oldest tombstone that covers all of `range` by itself and is newer than `seq`.
    #[must_use]
    pub fn over_all(&self, range: &KeyRange, seq: Seq) -> Option<Seq> {
        let at = lower_bound(&self.fragments, &range.start);
        let over = self.fragments.get(at).is_some_and(|tombstone| tombstone.range.covers(range));
        over.then(|| oldest_newer(&self.fragments, at, seq)).flatten()
    }

    /// The oldest tombstone over `key` that is newer than `seq`. The key must not lie before that of the last call.
    pub fn newer_than(&mut self, key: &[u8], seq: Seq) -> Option<Seq> {
        while self.fragments.get(self.at).is_some_and(|tombstone| !tombstone.range.end.admits(key)) {
            self.at += 1;
        }
        let over = self.fragments.get(self.at).is_some_and(|tombstone| *tombstone.range.start <= *key);
        over.then(|| oldest_newer(&self.fragments, self.at, seq)).flatten()
    }
}

/// The oldest tombstone newer than `seq` among those with the range of the one at `at`.
fn oldest_newer(fragments: &[RangeTombstone], at: usize, seq: Seq) -> Option<Seq> {
    split_group(fragments, at, seq).0.last().map(|tombstone| tombstone.seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    const KEYS: u8 = 12;

    /// The tombstone over the keys `start .. end`; none behind the last key is no end.
    fn tombstone((start, len, seq): (u8, u8, u64)) -> RangeTombstone {
        let end = start + 1 + len;
        let end = if end >= KEYS { UpperBound::Unbounded } else { UpperBound::Excluded([end][..].into()) };
        RangeTombstone { range: KeyRange::half_open([start], end), seq: Seq(seq) }
    }

    fn newest(tombstones: &[RangeTombstone], key: &[u8], upto: Seq) -> Option<Seq> {
        let over = tombstones.iter().filter(|t| t.range.contains(key) && t.seq <= upto);
        over.map(|tombstone| tombstone.seq).max()
    }

    fn is_fragmented(fragments: &[RangeTombstone]) -> bool {
        fragments.windows(2).all(|pair| match pair {
            [a, b] if a.range == b.range => a.seq > b.seq,
            [a, b] => !a.range.end.admits(&b.range.start),
            _ => true,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn fragments_say_what_the_tombstones_say(
            drawn in prop::collection::vec((0..KEYS, 0..KEYS, 1..20u64), 0..12),
            snapshots in prop::collection::btree_set((0..20u64).prop_map(Seq), 0..4),
        ) {
            let tombstones: Vec<_> = drawn.into_iter().map(tombstone).collect();
            let snapshots: Vec<_> = snapshots.into_iter().collect();
            let fragments = fragment(&tombstones, &snapshots);
            prop_assert!(is_fragmented(&fragments), "{fragments:?}");
            prop_assert!(fragments.len() <= 2 * tombstones.len() * (snapshots.len() + 1));
            for upto in snapshots.iter().copied().chain([Seq::MAX]) {
                for key in (0..KEYS + 2).map(|key| [key]) {
                    let expected = newest(&tombstones, &key, upto);
                    prop_assert_eq!(newest_over(&fragments, &key, upto), expected);
                    let span = span_at([&fragments[..]], &key, upto);
                    prop_assert_eq!(span.newest, expected);
                    prop_assert!(span.range.contains(&key));
                    for other in (0..KEYS + 2).map(|key| [key]).filter(|key| span.range.contains(key)) {
                        prop_assert_eq!(newest(&tombstones, &other, upto), expected);
                    }
                }
            }
        }

        #[test]
        fn coverage_finds_the_next_newer_tombstone(
            drawn in prop::collection::vec((0..KEYS, 0..KEYS, 1..20u64), 0..12),
            asked in prop::collection::vec((0..KEYS, 0..20u64), 0..20),
        ) {
            let tombstones: Vec<_> = drawn.into_iter().map(tombstone).collect();
            let every_seq: Vec<_> = (0..20).map(Seq).collect();
            let mut coverage = Coverage::new(fragment(&tombstones, &every_seq));
            let mut asked = asked;
            asked.sort_unstable();
            for (key, seq) in asked {
                let over = tombstones.iter().filter(|t| t.range.contains(&[key]) && t.seq > Seq(seq));
                let expected = over.map(|tombstone| tombstone.seq).min();
                prop_assert_eq!(coverage.newer_than(&[key], Seq(seq)), expected);
            }
        }
    }

    #[test]
    fn a_range_that_grows_again_and_again_stays_one_fragment() {
        let growing: Vec<_> = (0..KEYS).map(|len| tombstone((0, len, u64::from(len) + 1))).collect();
        assert_eq!(fragment(&growing, &[]), [tombstone((0, KEYS - 1, u64::from(KEYS)))]);
        assert_eq!(fragment(&growing, &[Seq(1)]).len(), 3);
    }
}
