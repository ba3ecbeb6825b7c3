//! An ordered map whose copies share what they have in common.
//!
//! Entries lie in chunks of up to [`CHUNK_MAX`], in order. A copy costs a pointer for each chunk. A change of a copy makes
//! that list and one chunk anew. So a map of n entries that is copied and changed costs about n / 64 pointers each time,
//! whatever the entries are.
//!
//! INVARIANT: keys ascend over all chunks, and no chunk is empty.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// Entries of a chunk, at most.
const CHUNK_MAX: usize = 128;

type Entries<K, V> = Vec<(K, V)>;

/// An ordered map that is cheap to copy.
pub struct ChunkMap<K, V> {
    chunks: Vec<Arc<Entries<K, V>>>,
    len: usize,
}

impl<K, V> Default for ChunkMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K, V> Clone for ChunkMap<K, V> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for ChunkMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(k, v)| (k, v)))).finish()
    }
}

impl<K: Ord, V> ChunkMap<K, V> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunk that has `key`, or that takes it.
    fn chunk_of(&self, key: &K) -> usize {
        let before = |chunk: &Arc<Entries<K, V>>| chunk.last().is_some_and(|(last, _)| last < key);
        self.chunks.partition_point(before).min(self.chunks.len().saturating_sub(1))
    }

    /// Where `key` is: its chunk, and its place there.
    fn find(&self, key: &K) -> Option<(usize, usize)> {
        let at = self.chunk_of(key);
        let place = self.chunks.get(at)?.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
        Some((at, place))
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key).map(|(at, place)| &self.chunks[at][place].1)
    }

    /// Whether `key` has a value.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_some()
    }

    /// The entries, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord + Clone, V: Clone> ChunkMap<K, V> {
    /// The value of `key`, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (at, place) = self.find(key)?;
        Some(&mut Arc::make_mut(&mut self.chunks[at])[place].1)
    }

    /// Sets the value of `key` and returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.chunk_of(&key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let place = match chunk.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(place) => return Some(std::mem::replace(&mut Arc::make_mut(chunk)[place].1, value)),
            Err(place) => place,
        };
        self.len += 1;
        let is_full = chunk.len() >= CHUNK_MAX;
        if is_full && place == chunk.len() {
            // Keys that ascend leave full chunks behind.
            self.chunks.insert(at + 1, Arc::new(vec![(key, value)]));
            return None;
        }
        let entries = Arc::make_mut(chunk);
        entries.insert(place, (key, value));
        if is_full {
            let upper = entries.split_off(CHUNK_MAX / 2);
            self.chunks.insert(at + 1, Arc::new(upper));
        }
        None
    }

    /// Takes `key` out and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (at, place) = self.find(key)?;
        let entries = Arc::make_mut(&mut self.chunks[at]);
        let (_, value) = entries.remove(place);
        self.len -= 1;
        if entries.is_empty() {
            self.chunks.remove(at);
        } else if entries.len() < CHUNK_MAX / 4 {
            self.join(at);
            self.join(at.saturating_sub(1));
        }
        Some(value)
    }

    /// Joins the chunk at `at` with the next one where both together are small: what is left of many chunks is not many
    /// chunks.
    fn join(&mut self, at: usize) {
        let [one, other, ..] = &mut self.chunks[at..] else { return };
        if one.len() + other.len() <= CHUNK_MAX / 2 {
            Arc::make_mut(one).extend(other.iter().cloned());
            self.chunks.remove(at + 1);
        }
    }
}

impl<K: Ord, V> Index<&K> for ChunkMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("invariant: the key is in the map")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check(map: &ChunkMap<u16, u32>, expected: &BTreeMap<u16, u32>) {
        assert!(map.iter().eq(expected), "{map:?}");
        assert_eq!((map.len(), map.is_empty()), (expected.len(), expected.is_empty()));
        assert!(map.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_MAX));
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_its_copies_do_not_change(
            changes in prop::collection::vec((0..600_u16, prop::option::weighted(0.6, any::<u32>())), 1..2000),
        ) {
            let (mut map, mut expected) = (ChunkMap::new(), BTreeMap::new());
            let mut copies = Vec::new();
            for (number, (key, value)) in changes.into_iter().enumerate() {
                match value {
                    Some(value) => prop_assert_eq!(map.insert(key, value), expected.insert(key, value)),
                    None => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                }
                prop_assert_eq!(map.get(&key), expected.get(&key));
                if number % 300 == 0 {
                    copies.push((map.clone(), expected.clone()));
                }
            }
            copies.push((map, expected));
            copies.iter().for_each(|(map, expected)| check(map, expected));
        }
    }

    #[test]
    fn what_is_left_of_many_chunks_is_few() {
        let mut map: ChunkMap<u32, ()> = ChunkMap::new();
        (0..10_000).for_each(|key| _ = map.insert(key, ()));
        assert!(map.chunks.len() <= 10_000_usize.div_ceil(CHUNK_MAX));
        (0..10_000).filter(|key| key % 100 != 0).for_each(|key| _ = map.remove(&key));
        assert_eq!(map.len(), 100);
        assert!(map.chunks.len() <= 8, "{}", map.chunks.len());
    }
}
