//! Spans: byte ranges of one file or table, disjoint and ascending.

use std::ops::Range;

/// Disjoint byte ranges in ascending order. Neighbours are joined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spans {
    ranges: Vec<Range<u32>>,
    bytes: u64,
}

impl Spans {
    /// The spans of `ranges`, in any order; `None` if two of them overlap or one is empty.
    #[must_use]
    pub fn new(mut ranges: Vec<Range<u32>>) -> Option<Self> {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut spans = Self::default();
        ranges.into_iter().all(|range| spans.push(range)).then_some(spans)
    }

    /// Appends a range that begins at or behind the end of the last one. Returns whether it does.
    pub fn push(&mut self, range: Range<u32>) -> bool {
        let end = self.ranges.last().map_or(0, |last| last.end);
        if range.is_empty() || range.start < end {
            return false;
        }
        self.bytes += u64::from(range.end - range.start);
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
        true
    }

    /// Both together; `None` if they overlap.
    #[must_use]
    pub fn with(&self, other: &Self) -> Option<Self> {
        let mut both = Self::default();
        let (mut one, mut two) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let next = match (one.peek(), two.peek()) {
                (Some(a), Some(b)) if a.start <= b.start => one.next(),
                (Some(_), None) => one.next(),
                (_, Some(_)) => two.next(),
                (None, None) => return Some(both),
            };
            if !next.is_some_and(|range| both.push(range)) {
                return None;
            }
        }
    }

    /// What of the first `length` bytes is in no range.
    #[must_use]
    pub fn complement(&self, length: u32) -> Self {
        let ends = std::iter::once(0).chain(self.ranges.iter().map(|range| range.end));
        let starts = self.ranges.iter().map(|range| range.start).chain([length]);
        let mut rest = Self::default();
        for (from, to) in ends.zip(starts).filter(|(from, to)| from < to) {
            rest.push(from..to);
        }
        rest
    }

    /// Whether a byte of `range` is in one of them.
    #[must_use]
    pub fn overlaps(&self, range: &Range<u32>) -> bool {
        let next = self.ranges.partition_point(|other| other.end <= range.start);
        self.ranges.get(next).is_some_and(|other| other.start < range.end)
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<u32>> {
        self.ranges.iter().cloned()
    }

    /// Bytes of all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is no range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans(ranges: &[(u32, u32)]) -> Option<Spans> {
        Spans::new(ranges.iter().map(|(from, to)| *from..*to).collect())
    }

    #[test]
    fn neighbours_are_joined_and_overlaps_refused() {
        let joined = spans(&[(8, 10), (0, 4), (4, 8)]).unwrap();
        assert!(joined.iter().eq(std::iter::once(0..10)));
        assert_eq!(joined.bytes(), 10);
        for bad in [&[(0, 4), (3, 8)][..], &[(0, 4), (1, 2)], &[(5, 5)]] {
            assert_eq!(spans(bad), None);
        }
        let [one, other] = [(0, 4), (2, 3)].map(|range| spans(&[range]).unwrap());
        assert_eq!(one.with(&other), None);
    }

    proptest! {
        #[test]
        fn a_byte_is_in_the_spans_or_in_what_is_left(bytes in prop::collection::vec(any::<bool>(), 0..200)) {
            let is_in = |at: u32| bytes[at as usize];
            let length = bytes.len() as u32;
            let singles = (0..length).filter(|&at| is_in(at)).map(|at| at..at + 1).collect();
            let spans = Spans::new(singles).unwrap();
            let rest = spans.complement(length);
            prop_assert_eq!(spans.bytes() + rest.bytes(), u64::from(length));
            for at in 0..length {
                prop_assert_eq!(spans.overlaps(&(at..at + 1)), is_in(at));
                prop_assert_eq!(rest.overlaps(&(at..at + 1)), !is_in(at));
            }
            prop_assert!(spans.with(&rest).unwrap().iter().eq((length > 0).then_some(0..length)));
        }
    }
}
