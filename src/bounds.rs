//! Ranges of keys in Rust's notations.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: any of Rust's range notations, over any type that has bytes, borrowed or owned.
///
/// With the standard library's [`RangeBounds`](std::ops::RangeBounds), the type of the keys of `..` would be unknown,
/// and `(Bound<&K>, Bound<&K>)` could be over `K` or `&K`. This trait does not need to know, so no call needs
/// annotations.
///
/// ```
/// use std::ops::Bound::{Excluded, Included, Unbounded};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// for key in ["a", "b", "c"] {
///     db.put(key, "")?;
/// }
/// let (from, to) = (b"a".to_vec(), b"c".to_vec());
/// assert_eq!(db.range(..)?.count(), 3);
/// assert_eq!(db.range("b"..)?.count(), 2);
/// assert_eq!(db.range(&from..&to)?.count(), 2);
/// assert_eq!(db.range((Excluded(&from), Included(&to)))?.count(), 2);
/// assert_eq!(db.range((Unbounded, Excluded(to)))?.count(), 2);
/// # Ok::<(), terrace::Error>(())
/// ```
///
/// For a [`RangeBounds`](std::ops::RangeBounds) pass its two bounds: `(range.start_bound(), range.end_bound())`. A
/// range that is empty, or ends before it starts, has no keys; nothing panics.
pub trait KeyBounds {
    /// Where the range begins and where it ends.
    ///
    /// ```
    /// use std::ops::Bound;
    /// use terrace::KeyBounds;
    /// assert_eq!(("a"..).key_bounds(), (Bound::Included(&b"a"[..]), Bound::Unbounded));
    /// ```
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyBounds for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for Range<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeInclusive<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeFrom<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeTo<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeToInclusive<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for (Bound<K>, Bound<K>) {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

impl<B: KeyBounds + ?Sized> KeyBounds for &B {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).key_bounds()
    }
}
