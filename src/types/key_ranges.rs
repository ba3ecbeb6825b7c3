//! Sets of key ranges.

use super::{Key, KeyRange, UpperBound};

/// A set of user keys, as disjoint ranges in key order. Ranges that meet are one.
///
/// ```
/// use terrace::types::{KeyRange, KeyRanges};
/// let mut keys = KeyRanges::default();
/// keys.add(&KeyRange::new(*b"a", *b"c"));
/// assert!(keys.contains(b"b") && !keys.contains(b"d"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRanges(Vec<KeyRange>);

impl KeyRanges {
    /// All keys.
    #[must_use]
    pub fn everything() -> Self {
        Self(vec![KeyRange::everything()])
    }

    /// Whether no key is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every key is in the set.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.first().is_some_and(|range| range.start.is_empty() && range.end == UpperBound::Unbounded)
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The ranges, in key order.
    pub fn iter(&self) -> std::slice::Iter<'_, KeyRange> {
        self.0.iter()
    }

    /// Whether `key` is in the set.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.0.get(self.position(key)).is_some_and(|range| range.contains(key))
    }

    /// Whether a key of `range` is in the set.
    #[must_use]
    pub fn overlaps(&self, range: &KeyRange) -> bool {
        self.0.get(self.position(&range.start)).is_some_and(|other| other.overlaps(range))
    }

    /// The largest range around `key` that lies in the set or outside of it as a whole, and whether it lies in it.
    #[must_use]
    pub fn span(&self, key: &[u8]) -> (KeyRange, bool) {
        let at = self.position(key);
        if let Some(range) = self.0.get(at).filter(|range| range.contains(key)) {
            return (range.clone(), true);
        }
        let start = match at.checked_sub(1).map(|before| &self.0[before].end) {
            Some(UpperBound::Excluded(end)) => end.clone(),
            Some(UpperBound::Unbounded) | None => Key::default(),
        };
        let end =
            self.0.get(at).map_or(UpperBound::Unbounded, |next| UpperBound::Excluded(next.start.clone()));
        (KeyRange { start, end }, false)
    }

    /// Adds the keys of `range`.
    pub fn add(&mut self, range: &KeyRange) {
        // Those that end where it begins, or begin where it ends, become one with it.
        let start = UpperBound::Excluded(range.start.clone());
        let from = self.0.partition_point(|other| other.end < start);
        let to = from
            + self.0[from..].partition_point(|other| UpperBound::Excluded(other.start.clone()) <= range.end);
        let hull = self.0[from..to].iter().fold(range.clone(), |hull, other| hull.hull(other));
        self.0.splice(from..to, [hull]);
    }

    /// Removes the ranges that overlap `range` and for which `is_needed` says no, each as a whole.
    pub fn retain_overlapping(&mut self, range: &KeyRange, is_needed: impl Fn(&KeyRange) -> bool) {
        self.0.retain(|other| !other.overlaps(range) || is_needed(other));
    }

    /// Adds what lies between neighbours until there are at most `count` ranges.
    pub fn widen_to(&mut self, count: usize) {
        while self.0.len() > count.max(1) {
            let pairs = self.0.chunks(2).map(|pair| pair[0].hull(&pair[pair.len() - 1]));
            self.0 = pairs.collect();
        }
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let keys = |range: &KeyRange| range.start.len() + range.end.as_bytes().len();
        self.0.iter().map(|range| size_of::<KeyRange>() + keys(range)).sum()
    }

    /// Index of the first range that is not wholly before `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.0.partition_point(|range| !range.end.admits(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str) -> KeyRange {
        KeyRange { start: start.as_bytes().into(), end: UpperBound::from_bytes(end.as_bytes()) }
    }

    fn set(ranges: &[(&str, &str)]) -> KeyRanges {
        let mut set = KeyRanges::default();
        ranges.iter().for_each(|(start, end)| set.add(&range(start, end)));
        set
    }

    #[test]
    fn ranges_that_meet_are_one() {
        assert_eq!(set(&[("c", "d"), ("a", "b"), ("b", "c")]).0, [range("a", "d")]);
        assert_eq!(set(&[("a", "b"), ("c", "d")]).0, [range("a", "b"), range("c", "d")]);
        assert_eq!(set(&[("a", "b"), ("c", "d"), ("aa", "")]).0, [range("a", "")]);
        assert_eq!(set(&[("a", ""), ("b", "c")]).0, [range("a", "")]);
        assert_eq!(set(&[("b", "c"), ("a", "b")]).0, [range("a", "c")]);
    }

    #[test]
    fn a_span_reaches_to_the_next_change() {
        let set = set(&[("b", "c"), ("e", "")]);
        for (key, start, end, inside) in
            [("a", "", "b", false), ("b", "b", "c", true), ("c", "c", "e", false), ("x", "e", "", true)]
        {
            assert_eq!(set.span(key.as_bytes()), (range(start, end), inside), "{key}");
            assert_eq!(set.contains(key.as_bytes()), inside);
        }
        assert_eq!(KeyRanges::default().span(b"a"), (KeyRange::everything(), false));
        assert_eq!(KeyRanges::everything().span(b"a"), (KeyRange::everything(), true));
        assert!(
            set.overlaps(&range("bb", "bc"))
                && set.overlaps(&range("a", ""))
                && !set.overlaps(&range("c", "e"))
        );
    }

    #[test]
    fn fewer_ranges_hold_at_least_the_same_keys() {
        let mut many = set(&[("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j")]);
        many.widen_to(2);
        assert_eq!(many.0, [range("a", "h"), range("i", "j")]);
        many.retain_overlapping(&range("a", "b"), |_| false);
        assert_eq!(many.0, [range("i", "j")]);
    }
}
