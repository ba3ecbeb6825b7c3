//! Sequence numbers, entry kinds, and the stamp that packs both.

use std::fmt;

/// Position of an entry in the history of the whole store. Fits in 56 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every entry.
    pub const ZERO: Self = Self(0);
    /// After every entry that can ever exist.
    pub const MAX: Self = Self((1 << 56) - 1);

    /// The sequence number `n` entries later.
    #[must_use]
    pub fn plus(self, n: u64) -> Self {
        debug_assert!(n <= Self::MAX.0 && self.0 + n <= Self::MAX.0, "sequence numbers exhausted");
        Self(self.0 + n)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What an entry does to its key. Stored: never renumber. Zero stays invalid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A tombstone: the key has no value from here on.
    Delete = 1,
    /// The key has this value from here on.
    Put = 2,
    /// The same, but the value lies apart, and the entry has a pointer to it. Only tables have such entries.
    Separated = 3,
}

impl Kind {
    /// Decodes a stored kind.
    #[must_use]
    pub fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Delete),
            2 => Some(Self::Put),
            3 => Some(Self::Separated),
            _ => None,
        }
    }

    /// Whether the key has a value.
    #[must_use]
    #[inline]
    pub fn is_put(self) -> bool {
        self != Self::Delete
    }
}

/// A sequence number and a kind in one word: `seq << 8 | kind`.
///
/// Entries are ordered by (user key ascending, stamp *descending*): the newest version of a key comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

impl Stamp {
    /// Greater than or equal to every stamp: a search for (key, `MAX`) finds the newest version of the key.
    pub const MAX: Self = Self(u64::MAX);

    /// Packs a sequence number and a kind.
    #[must_use]
    pub fn new(seq: Seq, kind: Kind) -> Self {
        Self(seq.0 << 8 | kind as u64)
    }

    /// The largest stamp of `seq`: a search for (key, `upto(seq)`) finds the newest version visible at `seq`.
    #[must_use]
    pub fn upto(seq: Seq) -> Self {
        Self(seq.0 << 8 | 0xff)
    }

    /// Decodes a stored word; `None` when its kind does not exist.
    #[must_use]
    pub fn from_u64(word: u64) -> Option<Self> {
        Kind::from_u8((word & 0xff) as u8).map(|_| Self(word))
    }

    /// The stored word.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The sequence number.
    #[must_use]
    pub fn seq(self) -> Seq {
        Seq(self.0 >> 8)
    }

    /// Whether the entry has a pointer in place of its value.
    #[must_use]
    #[inline]
    pub fn is_separated(self) -> bool {
        self.0 & 0xff == Kind::Separated as u64
    }

    /// The kind. Search stamps (`MAX`, `upto`) have none of their own and read as [`Kind::Put`].
    #[must_use]
    pub fn kind(self) -> Kind {
        Kind::from_u8((self.0 & 0xff) as u8).unwrap_or(Kind::Put)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.seq(), if self.kind() == Kind::Delete { "-" } else { "+" })
    }
}
