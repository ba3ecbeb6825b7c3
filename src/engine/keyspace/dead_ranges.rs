//! Dead ranges: ranges of keys in which a reader has lately found nothing but deleted and expired entries.
//!
//! A reader that has crossed many such entries notes the range. Later readers jump over it, so each deleted entry costs
//! readers a step about once. (RocksDB puts a range tombstone into the memtable at that place, since 2026.) What is noted
//! is true of the keyspace, not of a memtable or table. So no flush and no compaction changes it, and nothing of it is
//! logged: after an open, readers learn it again.
//!
//! # Invariants
//!
//! * I21: from its number on, no number at which somebody reads sees a key of a dead range: for each version of such a key that
//!   a reader at that number sees is deleted or expired, and any write of a value takes the key out of the range before it
//!   becomes visible.
//! * A reader notes its range first as *pending*, and only then looks whether a newer value has come into it. A writer
//!   inserts its value first, and only then looks for ranges, pending ones included. Both fence in between, so one of the
//!   two sees the other.
//! * An event that brings values in by another way (an ingest), or makes another memtable the active one, counts up the
//!   generation: what a reader has found before that is not noted any more.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize, fence};

use crate::env::sync::{OrderedMutex, before_look};
use crate::types::{Key, KeyRange, Seq, UpperBound, successor};

/// A range with fewer dead keys is not worth its place: to cross these costs about as much as to jump. Few in debug builds,
/// so that all tests come across dead ranges.
const KEYS_MIN: u64 = if cfg!(debug_assertions) { 2 } else { 24 };

/// Ranges of a keyspace, at most. Those with the fewest keys go first.
const RANGES_MAX: usize = 4096;

/// Bytes of a range's ends, at most: all together take a few MiB at most.
const ENDS_BYTES_MAX: usize = 1024;

/// The dead ranges of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct DeadRanges {
    /// Number of ranges, pending ones included. While it is zero, it is all that anybody looks at.
    count: AtomicUsize,
    generation: AtomicU64,
    state: OrderedMutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By their first keys. No two share a key.
    ranges: BTreeMap<Key, Dead>,
    pending: Vec<Pending>,
    /// Number of ranges that were ever pending.
    noted: u64,
}

/// What is known of a range.
#[derive(Clone, Debug)]
struct Dead {
    end: UpperBound,
    /// It is dead from this number on.
    since: Seq,
    /// And, if something of it has expired, for readers for whom what was written in this second has expired.
    expired: u64,
    /// Number of dead keys that were found in it, about.
    keys: u64,
}

#[derive(Debug)]
struct Pending {
    number: u64,
    range: KeyRange,
    /// No value has come into it since it was noted.
    stands: bool,
}

/// A range that a reader has crossed and found dead.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Found {
    pub(in crate::engine) range: KeyRange,
    /// The number at which it has read.
    pub(in crate::engine) seq: Seq,
    /// The last second whose values had expired for it, if any of these was in the range; otherwise 0.
    pub(in crate::engine) expired: u64,
    /// Number of dead keys.
    pub(in crate::engine) keys: u64,
    /// The generation before it took its view.
    pub(in crate::engine) generation: u64,
}

/// Who asks: the number at which it reads, and the last second whose values have expired for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Asking {
    pub(in crate::engine) seq: Seq,
    pub(in crate::engine) expired: u64,
}

/// Whether a range with so many dead keys is worth a place.
pub(in crate::engine) fn is_worth_noting(keys: u64) -> bool {
    keys >= KEYS_MIN
}

impl DeadRanges {
    /// To be read before a view is taken, for [`Found::generation`].
    #[inline]
    pub(in crate::engine) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// Whether there is any range.
    #[inline]
    pub(in crate::engine) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// The end of the dead range around `key`: the first key behind it that may be alive.
    pub(in crate::engine) fn end_around(&self, key: &[u8], asking: Asking) -> Option<UpperBound> {
        if !self.any() {
            return None;
        }
        let state = self.state.lock();
        let (_, dead) = state.around(key)?;
        dead.counts_for(asking).then(|| dead.end.clone())
    }

    /// The start of the dead range that has the last key before `key`.
    pub(in crate::engine) fn start_before(&self, key: &[u8], asking: Asking) -> Option<Key> {
        if !self.any() {
            return None;
        }
        let state = self.state.lock();
        let before = (Bound::Unbounded, Bound::Excluded(key));
        let (start, dead) = state.ranges.range::<[u8], _>(before).next_back()?;
        let reaches = dead.end.as_bytes() >= key || dead.end == UpperBound::Unbounded;
        (reaches && dead.counts_for(asking)).then(|| start.clone())
    }

    /// Notes what a reader has found. `has_newer` says whether a value has come into the range since: it looks at the
    /// memtable that was the active one for the reader.
    pub(in crate::engine) fn note(&self, found: Found, has_newer: impl FnOnce(&KeyRange) -> bool) {
        if found.range.start.len() + found.range.end.as_bytes().len() > ENDS_BYTES_MAX {
            return;
        }
        let number = {
            let mut state = self.state.lock();
            if state.knows_newer(&found) {
                return;
            }
            state.noted += 1;
            let number = state.noted;
            state.pending.push(Pending { number, range: found.range.clone(), stands: true });
            self.count_again(&state);
            number
        };
        fence(SeqCst);
        before_look();
        let is_same = self.generation.load(Acquire) == found.generation;
        let stands = is_same && (planted!("dead-range-noted-unchecked") || !has_newer(&found.range));
        let mut state = self.state.lock();
        let at = state.pending.iter().position(|pending| pending.number == number);
        let pending = at.map(|at| state.pending.swap_remove(at));
        if stands && pending.is_some_and(|pending| pending.stands) {
            state.add(found);
        }
        self.count_again(&state);
    }

    /// A value of `key` is in the memtable, not yet visible. REQUIRES: a fence since it was inserted.
    pub(in crate::engine) fn revive(&self, key: &[u8]) {
        let mut state = self.state.lock();
        for pending in state.pending.iter_mut().filter(|pending| pending.range.contains(key)) {
            pending.stands = false;
        }
        if !planted!("value-put-into-a-dead-range") {
            state.take_out(key);
            debug_assert!(state.around(key).is_none(), "I21: a value becomes visible in a dead range");
        }
        self.count_again(&state);
    }

    /// From here on, another memtable is the active one.
    pub(in crate::engine) fn begin_generation(&self) {
        self.generation.fetch_add(1, Release);
    }

    /// Forgets all. Called when values have come in that no memtable has, before they are visible.
    pub(in crate::engine) fn forget(&self) {
        self.begin_generation();
        let mut state = self.state.lock();
        state.ranges.clear();
        state.pending.iter_mut().for_each(|pending| pending.stands = false);
        self.count_again(&state);
    }

    fn count_again(&self, state: &State) {
        self.count.store(state.ranges.len() + state.pending.len(), Relaxed);
    }
}

impl Dead {
    fn counts_for(&self, asking: Asking) -> bool {
        let is_old = planted!("dead-range-shown-to-an-older-snapshot") || self.since <= asking.seq;
        is_old && self.expired <= asking.expired
    }
}

impl State {
    /// The range that has `key`.
    fn around(&self, key: &[u8]) -> Option<(&Key, &Dead)> {
        let upto = (Bound::Unbounded, Bound::Included(key));
        let (start, dead) = self.ranges.range::<[u8], _>(upto).next_back()?;
        dead.end.admits(key).then_some((start, dead))
    }

    /// Whether one range covers what was crossed, though not for whom has crossed it. It counts for more readers to come.
    fn knows_newer(&self, found: &Found) -> bool {
        let around = self.around(&found.range.start);
        around.is_some_and(|(_, dead)| dead.since >= found.seq && dead.end >= found.range.end)
    }

    /// Adds a range, as one with those that it meets.
    fn add(&mut self, Found { range, seq, expired, keys, .. }: Found) {
        let KeyRange { mut start, end } = range;
        let mut all = Dead { end, since: seq, expired, keys };
        while let Some((first, dead)) = self.meets(&start, &all.end) {
            all.end = all.end.max(dead.end);
            all.since = all.since.max(dead.since);
            all.expired = all.expired.max(dead.expired);
            all.keys += dead.keys;
            self.ranges.remove(&first);
            start = start.min(first);
        }
        self.ranges.insert(start, all);
        if self.ranges.len() > RANGES_MAX {
            let least = self.ranges.iter().min_by_key(|(_, dead)| dead.keys).map(|(start, _)| start.clone());
            least.map(|start| self.ranges.remove(&start));
        }
    }

    /// One of the ranges that share a key with `start .. end`, or end or begin where that begins or ends.
    fn meets(&self, start: &Key, end: &UpperBound) -> Option<(Key, Dead)> {
        let upto = match end {
            UpperBound::Excluded(end) => Bound::Included(&**end),
            UpperBound::Unbounded => Bound::Unbounded,
        };
        let (first, dead) = self.ranges.range::<[u8], _>((Bound::Unbounded, upto)).next_back()?;
        let reaches = match &dead.end {
            UpperBound::Excluded(end) => end >= start,
            UpperBound::Unbounded => true,
        };
        reaches.then(|| (first.clone(), dead.clone()))
    }

    /// Takes `key` out of its range, of which two are left, each with half of its dead keys, as far as anybody knows.
    fn take_out(&mut self, key: &[u8]) {
        let Some((start, dead)) = self.around(key) else { return };
        let (start, dead) = (start.clone(), dead.clone());
        self.ranges.remove(&start);
        let (is_first, behind) = (*start == *key, successor(key));
        let is_last = !dead.end.admits(&behind);
        let keys = if is_first || is_last { dead.keys.saturating_sub(1) } else { dead.keys / 2 };
        if keys < KEYS_MIN {
            return;
        }
        if !is_last {
            self.ranges.insert(behind, Dead { keys, ..dead.clone() });
        }
        // Where there are too many, one of the two is lost.
        if !is_first && (is_last || self.ranges.len() < RANGES_MAX) {
            self.ranges.insert(start, Dead { end: UpperBound::Excluded(key.into()), keys, ..dead });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Asking = Asking { seq: Seq::MAX, expired: u64::MAX };

    fn key(n: u8) -> Vec<u8> {
        vec![n]
    }

    fn found(from: u8, to: u8, seq: u64) -> Found {
        let range = KeyRange::half_open(key(from), UpperBound::Excluded(key(to).into()));
        Found { range, seq: Seq(seq), expired: 0, keys: 1000, generation: 0 }
    }

    fn end(dead: &DeadRanges, at: u8, asking: Asking) -> Option<u8> {
        dead.end_around(&key(at), asking).map(|end| end.as_bytes()[0])
    }

    #[test]
    fn ranges_that_meet_become_one_that_counts_from_the_newest_number_on() {
        let dead = DeadRanges::default();
        dead.note(found(10, 20, 5), |_| false);
        dead.note(found(20, 30, 7), |_| false);
        dead.note(found(40, 50, 6), |_| false);
        assert_eq!(end(&dead, 10, NOW), Some(30));
        assert_eq!(end(&dead, 30, NOW), None);
        assert_eq!(end(&dead, 40, NOW), Some(50));
        assert_eq!(end(&dead, 15, Asking { seq: Seq(6), expired: 0 }), None);
        assert_eq!(end(&dead, 45, Asking { seq: Seq(6), expired: 0 }), Some(50));
        assert_eq!(dead.start_before(&key(30), NOW).as_deref(), Some(&key(10)[..]));
        assert_eq!(dead.start_before(&key(31), NOW), None);
        dead.note(found(5, 60, 8), |_| false);
        assert_eq!(end(&dead, 5, NOW), Some(60));
        assert_eq!(dead.state.lock().ranges.len(), 1);
    }

    #[test]
    fn what_has_expired_is_dead_for_those_for_whom_it_has() {
        let dead = DeadRanges::default();
        dead.note(Found { expired: 100, ..found(1, 9, 5) }, |_| false);
        assert_eq!(end(&dead, 1, Asking { seq: Seq(5), expired: 99 }), None);
        assert_eq!(end(&dead, 1, Asking { seq: Seq(5), expired: 100 }), Some(9));
    }

    #[test]
    fn a_value_leaves_two_ranges_and_is_in_neither() {
        let dead = DeadRanges::default();
        dead.note(found(10, 20, 5), |_| false);
        dead.revive(&key(15));
        assert_eq!(end(&dead, 10, NOW), Some(15));
        assert_eq!(end(&dead, 15, NOW), None);
        assert_eq!(dead.end_around(&[15, 0], NOW).map(|end| end.as_bytes()[0]), Some(20));
        // A key behind the last one leaves all as it is.
        dead.revive(&key(20));
        assert_eq!(end(&dead, 16, NOW), Some(20));
        dead.revive(&key(10));
        assert_eq!(end(&dead, 10, NOW), None);
        assert_eq!(end(&dead, 11, NOW), Some(15));
    }

    #[test]
    fn nothing_is_noted_that_a_value_has_come_into_meanwhile() {
        let dead = DeadRanges::default();
        dead.note(found(10, 20, 5), |_| true);
        assert!(!dead.any());
        dead.note(found(10, 20, 5), |_| {
            assert!(dead.any() && end(&dead, 12, NOW).is_none(), "pending is not dead yet");
            dead.revive(&key(12));
            false
        });
        assert!(!dead.any());
        dead.note(found(10, 20, 5), |_| {
            dead.revive(&key(20));
            false
        });
        assert_eq!(end(&dead, 10, NOW), Some(20));
        dead.note(found(30, 40, 5), |_| {
            dead.begin_generation();
            false
        });
        assert_eq!(end(&dead, 30, NOW), Some(40), "the memtable was searched in time");
        dead.note(found(50, 60, 5), |_| false);
        assert_eq!(end(&dead, 50, NOW), None, "an older view");
        dead.forget();
        assert!(!dead.any());
    }

    #[test]
    fn the_ranges_with_the_most_keys_stay() {
        let dead = DeadRanges::default();
        for n in 0..2 * RANGES_MAX as u64 {
            let start = format!("{:06}", 2 * n).into_bytes();
            let range = KeyRange::new(start.clone(), start);
            dead.note(Found { range, keys: KEYS_MIN + n, ..found(0, 1, 5) }, |_| false);
        }
        let state = dead.state.lock();
        assert_eq!(state.ranges.len(), RANGES_MAX);
        assert!(state.ranges.values().all(|range| range.keys >= KEYS_MIN + RANGES_MAX as u64));
    }

    #[test]
    fn values_all_over_a_range_leave_no_more_ranges_than_there_may_be() {
        let dead = DeadRanges::default();
        let range = KeyRange::half_open([0; 8], UpperBound::Unbounded);
        dead.note(Found { range, keys: 10_000_000, ..found(0, 1, 5) }, |_| false);
        (1..=1_u64 << 15).for_each(|n| dead.revive(&n.reverse_bits().to_le_bytes()));
        assert!(dead.state.lock().ranges.len() <= RANGES_MAX);
    }

    proptest! {
        #[test]
        fn i21_a_key_is_dead_if_a_range_has_it_and_no_value_has_come(
            steps in prop::collection::vec((0..40u8, 1..12u8, any::<bool>()), 1..40),
        ) {
            let (dead, mut model) = (DeadRanges::default(), [false; 64]);
            for (at, length, notes) in steps {
                if notes {
                    dead.note(found(at, at + length, 5), |_| false);
                    model[at as usize..(at + length) as usize].fill(true);
                } else {
                    dead.revive(&key(at));
                    model[at as usize] = false;
                }
                let state = dead.state.lock();
                let ranges: Vec<_> = state.ranges.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].1.end.as_bytes() <= &**pair[1].0));
                drop(state);
                for n in 0..63u8 {
                    // It may forget, and never invent.
                    let is_dead = dead.end_around(&key(n), NOW).is_some();
                    prop_assert!(!is_dead || model[n as usize], "{n}");
                }
            }
        }
    }
}
