//! Slices: the bytes that a read returns.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::store::memtable::PinnedValue;
use crate::types::Buffer;

/// A cheap, shared view of bytes: a key or a value.
///
/// A value points into the block or memtable that holds it, and keeps that in memory; nothing is copied. To keep many
/// small values for long, copy them (`to_vec`).
///
/// ```
/// let slice = terrace::Slice::from(b"bytes".to_vec());
/// assert_eq!(&slice[1..3], b"yt");
/// assert_eq!(slice, b"bytes"[..]);
/// let mut counts = std::collections::HashMap::from([(slice.clone(), 1)]);
/// assert_eq!(counts.get(&b"bytes"[..]), Some(&1)); // no `Slice` is needed to look one up
/// assert_eq!(Vec::from(slice), b"bytes");
/// ```
#[derive(Clone)]
pub struct Slice(Repr);

#[derive(Clone)]
enum Repr {
    Shared(Arc<[u8]>),
    Block(Buffer, Range<usize>),
    /// A value in a memtable, without this many bytes at its end.
    Memtable(PinnedValue, usize),
}

impl Slice {
    /// Bytes of a block. They keep the block's buffer in memory.
    pub(crate) fn from_block((buffer, span): (Buffer, Range<usize>)) -> Self {
        Self(Repr::Block(buffer, span))
    }

    pub(crate) fn from_memtable(value: PinnedValue) -> Self {
        Self(Repr::Memtable(value, 0))
    }
}

impl Slice {
    /// The same bytes without the last `bytes`; there must be as many.
    pub(crate) fn without_end(self, bytes: usize) -> Self {
        Self(match self.0 {
            Repr::Shared(shared) => Repr::Shared(shared[..shared.len() - bytes].into()),
            Repr::Block(block, span) => Repr::Block(block, span.start..span.end - bytes),
            Repr::Memtable(value, hidden) => Repr::Memtable(value, hidden + bytes),
        })
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Shared(bytes) => bytes,
            Repr::Block(buffer, span) => buffer.get(span.clone()).unwrap_or_default(),
            Repr::Memtable(value, hidden) => value.get(..value.len() - hidden).unwrap_or_default(),
        }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A slice compares and hashes as its bytes do.
impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Self {
        slice.to_vec()
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Repr::Shared(bytes.into()))
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Self {
        Self(Repr::Shared(bytes.into()))
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Slice {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Slice {}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap};

    #[test]
    fn maps_find_a_slice_by_its_bytes() {
        let all = [&b""[..], b"\0", b"a", b"a\0", b"ab", &[255; 3]];
        let (sorted, hashed): (BTreeMap<Slice, usize>, HashMap<Slice, usize>) = {
            let entries = || all.iter().enumerate().map(|(at, bytes)| (Slice::from(*bytes), at));
            (entries().collect(), entries().collect())
        };
        for (at, bytes) in all.into_iter().enumerate() {
            assert_eq!((sorted.get(bytes), hashed.get(bytes)), (Some(&at), Some(&at)));
            assert_eq!(Vec::from(Slice::from(bytes)), bytes);
        }
        assert!(sorted.keys().map(|key| &key[..]).eq(all), "in the order of their bytes");
    }
}
