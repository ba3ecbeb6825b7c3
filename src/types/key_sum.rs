//! Key sums: whether two tables have the same keys, told without reading them.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Which keys a table has: the sum of their hashes under a seed, of 128 bits. Sums of tables add up to the sum of all their
/// keys, in whatever order and however they are parted.
///
/// Two sets of keys that differ have the same sum by chance once in 2^128 pairs. The seed is random and known to the store
/// alone, so that nobody can prepare such sets. Sums of different seeds say nothing about each other.
///
/// ```
/// use terrace::types::KeySum;
/// let of = |keys: &[&str]| {
///     let mut sum = KeySum::new(7);
///     keys.iter().for_each(|key| sum.add(key.as_bytes()));
///     sum
/// };
/// assert_eq!(of(&["a", "b", "c"]), of(&["a"]).and(of(&["b", "c"])).unwrap());
/// assert_ne!(of(&["a", "b"]), of(&["a", "c"]));
/// assert_eq!(of(&["a"]).and(KeySum::new(8)), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeySum {
    /// Seed of the hashes.
    pub seed: u64,
    /// The sum, modulo 2^128.
    pub sum: u128,
}

impl KeySum {
    /// The sum of no keys.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, sum: 0 }
    }

    /// Adds a key, which must not be among the others.
    #[inline]
    pub fn add(&mut self, key: &[u8]) {
        self.sum = self.sum.wrapping_add(xxh3_128_with_seed(key, self.seed));
    }

    /// The sum of both sets of keys, which share none; `None` if the seeds differ.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        (self.seed == other.seed).then(|| Self { sum: self.sum.wrapping_add(other.sum), ..self })
    }
}
