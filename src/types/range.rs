//! Ranges of user keys, and range tombstones.

use std::fmt;
use std::ops::Bound;

use super::{Key, Seq};

/// The end of a range of user keys. A later end is greater.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UpperBound {
    /// The range ends before this key.
    Excluded(Key),
    /// The range has no end.
    Unbounded,
}

impl UpperBound {
    /// Right behind `key`.
    #[must_use]
    pub fn after(key: &[u8]) -> Self {
        Self::Excluded(successor(key))
    }

    /// Right behind all keys that begin with `prefix`.
    #[must_use]
    pub fn after_prefix(prefix: &[u8]) -> Self {
        // The first key behind them: the prefix with its last byte below 255 raised and the rest cut off.
        match prefix.iter().rposition(|&byte| byte < u8::MAX) {
            Some(last) => {
                let mut end = prefix[..=last].to_vec();
                end[last] += 1;
                Self::Excluded(end.into())
            }
            None => Self::Unbounded,
        }
    }

    /// Whether `key` lies before it.
    #[must_use]
    pub fn admits(&self, key: &[u8]) -> bool {
        match self {
            Self::Excluded(end) => key < &**end,
            Self::Unbounded => true,
        }
    }

    /// The stored form. An unbounded end is stored as the empty key, before which no key lies.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Excluded(end) => end,
            Self::Unbounded => &[],
        }
    }

    /// Reads the stored form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::Unbounded } else { Self::Excluded(bytes.into()) }
    }
}

/// The key that follows `key` in bytewise order: `key` and a zero byte.
#[must_use]
pub fn successor(key: &[u8]) -> Key {
    [key, &[0]].concat().into()
}

/// A half-open range of user keys, `start .. end`. Never empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: Key,
    /// The bound behind the last key.
    pub end: UpperBound,
}

impl KeyRange {
    /// The keys between two bounds, such as those of any range in Rust's notations; `None` if there can be none.
    ///
    /// ```
    /// use std::ops::RangeBounds;
    /// use terrace::types::KeyRange;
    /// let range = "a".."c";
    /// let keys = KeyRange::between(range.start_bound(), range.end_bound()).unwrap();
    /// assert!(keys.contains(b"b") && !keys.contains(b"c"));
    /// assert_eq!(KeyRange::between(("c".."a").start_bound(), ("c".."a").end_bound()), None);
    /// ```
    #[must_use]
    pub fn between<K: AsRef<[u8]> + ?Sized>(from: Bound<&K>, to: Bound<&K>) -> Option<Self> {
        let start = match from {
            Bound::Included(from) => Key::from(from.as_ref()),
            Bound::Excluded(from) => successor(from.as_ref()),
            Bound::Unbounded => Key::default(),
        };
        let end = match to {
            Bound::Included(to) => UpperBound::after(to.as_ref()),
            Bound::Excluded(to) => UpperBound::Excluded(to.as_ref().into()),
            Bound::Unbounded => UpperBound::Unbounded,
        };
        Some(Self { start, end }).filter(|range| !range.is_inverted())
    }

    /// The range from `smallest` to `largest`, both inside.
    #[must_use]
    pub fn new(smallest: impl Into<Key>, largest: impl Into<Key>) -> Self {
        Self::half_open(smallest, UpperBound::after(&largest.into()))
    }

    /// The range from `start`, inside, to `end`, which must lie behind it.
    #[must_use]
    pub fn half_open(start: impl Into<Key>, end: UpperBound) -> Self {
        let range = Self { start: start.into(), end };
        debug_assert!(!range.is_inverted(), "inverted key range");
        range
    }

    /// All keys.
    #[must_use]
    pub fn everything() -> Self {
        Self::half_open([], UpperBound::Unbounded)
    }

    /// Whether the range would be empty: its end does not lie behind its start.
    #[must_use]
    pub fn is_inverted(&self) -> bool {
        !self.end.admits(&self.start)
    }

    /// Whether `key` lies inside.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        &*self.start <= key && self.end.admits(key)
    }

    /// Whether every key of `other` lies inside.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the two ranges share a key.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.end.admits(&other.start) && other.end.admits(&self.start)
    }

    /// Whether every key lies before every key of `other`.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        !self.end.admits(&other.start) && self.start <= other.start
    }

    /// The keys that both ranges have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let start = Ord::max(&self.start, &other.start).clone();
        let end = Ord::min(&self.end, &other.end).clone();
        Some(Self { start, end }).filter(|range| !range.is_inverted())
    }

    /// The smallest range that covers both.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        Self {
            start: Ord::min(&self.start, &other.start).clone(),
            end: Ord::max(&self.end, &other.end).clone(),
        }
    }
}

/// `[a..c]` where `c` is the last key inside, `[a..c)` where `c` is the first one outside.
impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}..", self.start.escape_ascii())?;
        match self.end.as_bytes().split_last() {
            Some((0, last)) if *last >= *self.start => write!(f, "{}]", last.escape_ascii()),
            _ => write!(f, "{})", self.end.as_bytes().escape_ascii()),
        }
    }
}

/// A range tombstone: deletes every older version of every key of a range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RangeTombstone {
    /// The keys.
    pub range: KeyRange,
    /// Everything below this sequence number is deleted.
    pub seq: Seq,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str) -> KeyRange {
        KeyRange { start: start.as_bytes().into(), end: UpperBound::from_bytes(end.as_bytes()) }
    }

    #[test]
    fn neighbours_share_no_key() {
        let (left, right, all) = (range("a", "c"), range("c", ""), KeyRange::everything());
        assert!(!left.overlaps(&right) && !right.overlaps(&left) && left.intersection(&right).is_none());
        assert!(left.contains(b"a") && left.contains(b"bzz") && !left.contains(b"c"));
        assert!(right.contains(b"c") && right.contains(&[0xff; 9]) && !right.contains(b"bzz"));
        assert_eq!(left.hull(&right), range("a", ""));
        assert!(all.covers(&left) && all.covers(&right) && all.contains(b"") && !right.covers(&left));
        assert_eq!(range("a", "d").intersection(&range("b", "")), Some(range("b", "d")));
        assert!(
            range("a", "a").is_inverted() && range("b", "a").is_inverted() && !range("b", "").is_inverted()
        );
    }

    #[test]
    fn a_closed_range_ends_right_behind_its_last_key() {
        let closed = KeyRange::new(*b"a", *b"c");
        assert!(closed.contains(b"c") && !closed.contains(b"c\0"));
        assert!(!closed.overlaps(&range("c\0", "")) && closed.overlaps(&range("c", "")));
        assert_eq!(UpperBound::from_bytes(UpperBound::Unbounded.as_bytes()), UpperBound::Unbounded);
    }

    #[test]
    fn a_range_shows_how_it_ends() {
        assert_eq!(KeyRange::new(*b"a", *b"c").to_string(), "[a..c]");
        assert_eq!(KeyRange::new(*b"", *b"").to_string(), "[..]");
        assert_eq!(range("a", "c").to_string(), "[a..c)");
        assert_eq!(range("a", "").to_string(), "[a..)");
    }
}
