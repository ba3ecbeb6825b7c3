//! Holds: what of a table is kept only for readers at past sequence numbers, and which readers these are.

use super::Seq;

/// Most groups of a table.
pub const HOLDS_MAX: usize = 8;

/// A group of readers, by the first and the last sequence number at which they read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holders {
    /// None of them reads at a smaller number.
    pub first: Seq,
    /// None of them reads at a larger number.
    pub last: Seq,
}

impl Holders {
    /// The readers among `pins`, which ascend, that read at `from` or later and before `before`; `None` if there is
    /// none.
    #[must_use]
    pub fn between(pins: &[Seq], from: Seq, before: Seq) -> Option<Self> {
        let first = pins.partition_point(|&pin| pin < from);
        let last = pins.partition_point(|&pin| pin < before).checked_sub(1)?;
        (first <= last).then(|| Self { first: pins[first], last: pins[last] })
    }

    /// Whether all of these readers have gone: none of `pins`, which ascend, lies in their range.
    #[must_use]
    pub fn are_gone(self, pins: &[Seq]) -> bool {
        let next = pins.get(pins.partition_point(|&pin| pin < self.first));
        next.is_none_or(|&pin| pin > self.last)
    }
}

/// Records that are kept only for one group of readers. Without these readers, a compaction of the table alone drops
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hold {
    /// The readers.
    pub by: Holders,
    /// Number of entries and range tombstones.
    pub records: u64,
    /// About how many of the table's bytes the records take.
    pub bytes: u64,
}

/// All holds of a table: at most [`HOLDS_MAX`] groups, in ascending order of their holders. If there would be more,
/// the two neighbours with the fewest bytes become one group, which is released once the readers of both have gone.
///
/// ```
/// use terrace::types::{Holders, Holds, Seq};
/// let mut holds = Holds::default();
/// holds.note(Holders { first: Seq(3), last: Seq(5) }, 1, 100);
/// assert_eq!(holds.released(&[Seq(5)]).bytes, 0);
/// assert_eq!(holds.released(&[Seq(2), Seq(6)]).bytes, 100);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Holds(Vec<Hold>);

/// A part of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Number of entries and range tombstones.
    pub records: u64,
    /// About how many bytes these take.
    pub bytes: u64,
}

impl Holds {
    /// The holds of `groups`. `None` if they are too many, out of order, one is empty, or their sums overflow.
    #[must_use]
    pub fn from_groups(groups: Vec<Hold>) -> Option<Self> {
        let ascend = groups.windows(2).all(|pair| pair[0].by < pair[1].by);
        let sound = groups.iter().all(|hold| hold.by.first <= hold.by.last && hold.records > 0);
        let sum = |of: fn(&Hold) -> u64| groups.iter().map(of).try_fold(0u64, u64::checked_add);
        let counted = sum(|hold| hold.records).and(sum(|hold| hold.bytes)).is_some();
        (groups.len() <= HOLDS_MAX && ascend && sound && counted).then_some(Self(groups))
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[Hold] {
        &self.0
    }

    /// Adds `records`, of `bytes` together, that are kept only for `by`.
    pub fn note(&mut self, by: Holders, records: u64, bytes: u64) {
        match self.0.binary_search_by_key(&by, |hold| hold.by) {
            Ok(at) => {
                self.0[at].records += records;
                self.0[at].bytes += bytes;
            }
            Err(at) => {
                self.0.insert(at, Hold { by, records, bytes });
                if self.0.len() > HOLDS_MAX {
                    self.unite_smallest();
                }
            }
        }
    }

    /// Joins the two neighbouring groups that have the fewest bytes together.
    fn unite_smallest(&mut self) {
        let held = |at: &usize| self.0[*at].bytes + self.0[at + 1].bytes;
        if let Some(at) = (0..self.0.len().saturating_sub(1)).min_by_key(held) {
            let right = self.0.remove(at + 1);
            let left = &mut self.0[at];
            left.by.last = left.by.last.max(right.by.last);
            left.records += right.records;
            left.bytes += right.bytes;
        }
    }

    /// The same records, with bytes scaled to a table in which `bytes` of keys and values take `stored` bytes.
    #[must_use]
    pub fn stored(mut self, bytes: u64, stored: u64) -> Self {
        for hold in &mut self.0 {
            let part = u128::from(hold.bytes) * u128::from(stored) / u128::from(bytes.max(1));
            hold.bytes = u64::try_from(part).unwrap_or(stored);
        }
        self
    }

    /// The sum of all groups.
    #[must_use]
    pub fn held(&self) -> Share {
        self.sum(|_| true)
    }

    /// The sum of the groups that are released, if `pins`, which ascend, are all sequence numbers at which somebody
    /// reads.
    #[must_use]
    pub fn released(&self, pins: &[Seq]) -> Share {
        self.sum(|by| by.are_gone(pins))
    }

    fn sum(&self, counts: impl Fn(Holders) -> bool) -> Share {
        let counted = self.0.iter().filter(|hold| counts(hold.by));
        counted.fold(Share::default(), |sum, hold| Share {
            records: sum.records + hold.records,
            bytes: sum.bytes + hold.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(first: u64, last: u64) -> Holders {
        Holders { first: Seq(first), last: Seq(last) }
    }

    #[test]
    fn who_holds_a_version_reads_between_it_and_the_next() {
        let pins = [2, 5, 5, 9].map(Seq);
        let between = |from, before| Holders::between(&pins, Seq(from), Seq(before));
        assert_eq!(between(0, 2), None);
        assert_eq!(between(2, 3), Some(by(2, 2)));
        assert_eq!(between(3, 9), Some(by(5, 5)));
        assert_eq!(between(0, 10), Some(by(2, 9)));
        assert_eq!(between(6, 9), None);
        assert_eq!(between(10, 12), None);
        assert_eq!(Holders::between(&[], Seq(0), Seq(9)), None);
    }

    #[test]
    fn what_is_held_goes_with_its_last_holder() {
        let mut holds = Holds::default();
        for (first, last, records) in [(5, 5, 1), (2, 5, 2), (5, 5, 4), (2, 2, 8)] {
            holds.note(by(first, last), records, 10 * records);
        }
        let released = |pins: &[u64]| holds.released(&pins.iter().copied().map(Seq).collect::<Vec<_>>());
        assert_eq!(released(&[2, 5]).records, 0);
        assert_eq!(released(&[2, 9]).records, 5);
        assert_eq!(released(&[1, 5]).records, 8);
        assert_eq!(released(&[1, 6]), Share { records: 15, bytes: 150 });
        assert_eq!(holds.held(), released(&[]));
        assert_eq!(Holds::from_groups(holds.groups().to_vec()), Some(holds));
    }

    #[test]
    fn many_holders_count_together_and_none_too_early() {
        let mut state = 7u64;
        let mut below = |bound: u64| {
            // Knuth's MMIX generator; its high bits are the random ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let (mut holds, mut noted) = (Holds::default(), Vec::new());
            for _ in 0..40 {
                let first = below(30);
                let holders = by(first, first + below(5));
                let records = 1 + below(9);
                holds.note(holders, records, records);
                noted.push((holders, records));
            }
            assert_eq!(Holds::from_groups(holds.groups().to_vec()).as_ref(), Some(&holds));
            assert_eq!(holds.held().records, noted.iter().map(|(_, records)| records).sum::<u64>());
            let pins: Vec<_> = (0..30).filter(|_| below(6) == 0).map(Seq).collect();
            let free: u64 =
                noted.iter().filter(|(by, _)| by.are_gone(&pins)).map(|(_, records)| records).sum();
            assert!(holds.released(&pins).records <= free, "{holds:?} {pins:?}");
            assert_eq!(holds.released(&[]), holds.held());
        }
    }

    #[test]
    fn groups_from_outside_are_checked() {
        let hold = |first, last, records| Hold { by: by(first, last), records, bytes: 1 };
        let sound = |groups: &[Hold]| Holds::from_groups(groups.to_vec()).is_some();
        assert!(sound(&[hold(1, 2, 1), hold(1, 3, 1)]));
        assert!(!sound(&[hold(1, 3, 1), hold(1, 2, 1)]) && !sound(&[hold(1, 2, 1), hold(1, 2, 1)]));
        assert!(!sound(&[hold(2, 1, 1)]) && !sound(&[hold(1, 2, 0)]));
        assert!(!sound(&[hold(1, 2, u64::MAX), hold(1, 3, 1)]));
        assert!(!sound(&(0..9).map(|first| hold(first, first, 1)).collect::<Vec<_>>()));
    }
}
