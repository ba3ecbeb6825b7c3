//! Closed ranges of user keys.

use super::Key;

/// A closed range of user keys, `smallest ..= largest`. Never empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRange {
    /// First key inside.
    pub smallest: Key,
    /// Last key inside.
    pub largest: Key,
}

impl KeyRange {
    /// The range from `smallest` to `largest`, both inside.
    #[must_use]
    pub fn new(smallest: impl Into<Key>, largest: impl Into<Key>) -> Self {
        let range = Self { smallest: smallest.into(), largest: largest.into() };
        debug_assert!(range.smallest <= range.largest, "inverted key range");
        range
    }

    /// Whether `key` lies inside.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        &*self.smallest <= key && key <= &*self.largest
    }

    /// Whether the two ranges share a key.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }

    /// The smallest range that covers both.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        Self {
            smallest: self.smallest.clone().min(other.smallest.clone()),
            largest: self.largest.clone().max(other.largest.clone()),
        }
    }
}
