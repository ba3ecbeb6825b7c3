//! The entries of the block cache, and which of them go first when memory is needed.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use foldhash::quality::FixedState;
use lru::LruCache;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::{ENTRY_OVERHEAD_BYTES, Kept};
use crate::env::sync::OrderedMutex;
use crate::types::TableId;

/// A table, and an offset within it.
pub(super) type Key = (TableId, u64);

/// Most entries for which the hash table has room from the beginning.
const RESERVED_MAX: usize = 1 << 20;

/// Parts of a cache by recency, each with a lock of its own.
const PARTS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct ByBytes;

impl Weighter<Key, Kept> for ByBytes {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        ENTRY_OVERHEAD_BYTES + kept.entry.memory().0 as u64
    }
}

/// Entries by key, up to a capacity in bytes. Hashed by a fixed seed, so that two runs of a simulation evict the same ones.
#[derive(Debug)]
pub(super) enum Entries {
    /// What was used once goes before what was used again (Clock-PRO).
    Adaptive(Cache<Key, Kept, ByBytes, FixedState>),
    /// The least recently used goes first. That is what the stores do that the papers compare.
    Recent(Recent),
}

impl Entries {
    /// Room for `bytes`, in about so many `items`.
    pub(super) fn adaptive(items: usize, bytes: u64) -> Self {
        let entries = Cache::with(items, bytes, ByBytes, FixedState::default(), DefaultLifecycle::default());
        // A hash table that grows is copied while a reader waits. Reserved memory that is not touched costs nothing.
        entries.reserve(items.min(RESERVED_MAX));
        Self::Adaptive(entries)
    }

    /// Room for `bytes`.
    pub(super) fn recent(bytes: u64) -> Self {
        let part = || {
            OrderedMutex::leaf(Part {
                entries: LruCache::unbounded_with_hasher(FixedState::default()),
                bytes: 0,
            })
        };
        Self::Recent(Recent {
            parts: (0..PARTS).map(|_| part()).collect(),
            capacity: bytes.into(),
            bytes: AtomicU64::new(0),
        })
    }

    /// Uses an entry.
    #[inline]
    pub(super) fn get(&self, key: &Key) -> Option<Kept> {
        match self {
            Self::Adaptive(entries) => entries.get(key),
            Self::Recent(entries) => entries.part(key).lock().entries.get(key).map(|(kept, _)| kept.clone()),
        }
    }

    pub(super) fn contains_key(&self, key: &Key) -> bool {
        match self {
            Self::Adaptive(entries) => entries.contains_key(key),
            Self::Recent(entries) => entries.part(key).lock().entries.contains(key),
        }
    }

    pub(super) fn insert(&self, key: Key, kept: Kept) {
        match self {
            Self::Adaptive(entries) => entries.insert(key, kept),
            Self::Recent(entries) => entries.insert(key, kept),
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        match self {
            Self::Adaptive(entries) => _ = entries.remove(key),
            Self::Recent(entries) => entries.remove(key),
        }
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Adaptive(entries) => entries.weight(),
            Self::Recent(entries) => entries.bytes.load(Relaxed),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        match self {
            Self::Adaptive(entries) => entries.capacity(),
            Self::Recent(entries) => entries.capacity.load(Relaxed),
        }
    }

    /// Room for the entries that share a lock.
    pub(super) fn part_capacity(&self) -> u64 {
        match self {
            Self::Adaptive(entries) => entries.shard_capacity(),
            Self::Recent(entries) => entries.part_capacity(),
        }
    }

    pub(super) fn set_capacity(&self, bytes: u64) {
        match self {
            Self::Adaptive(entries) => entries.set_capacity(bytes),
            Self::Recent(entries) => entries.set_capacity(bytes),
        }
    }
}

/// Entries of which the least recently used goes first.
pub(super) struct Recent {
    parts: Box<[OrderedMutex<Part>]>,
    capacity: AtomicU64,
    /// Of all parts together. Whoever asks holds other locks.
    bytes: AtomicU64,
}

struct Part {
    /// Each with the bytes that it counted for when it came.
    entries: LruCache<Key, (Kept, u64), FixedState>,
    bytes: u64,
}

impl Part {
    /// Takes out what is beyond `capacity`.
    fn evict(&mut self, capacity: u64) -> Vec<Kept> {
        let mut evicted = Vec::new();
        while self.bytes > capacity
            && let Some((_, (kept, bytes))) = self.entries.pop_lru()
        {
            self.bytes -= bytes;
            evicted.push(kept);
        }
        evicted
    }
}

impl Recent {
    fn part(&self, key: &Key) -> &OrderedMutex<Part> {
        // Not the bits by which a part's own table goes.
        &self.parts[(FixedState::default().hash_one(key) >> 32) as usize % PARTS]
    }

    fn part_capacity(&self) -> u64 {
        self.capacity.load(Relaxed) / PARTS as u64
    }

    /// Changes `part`, and drops what comes out of it without its lock: that may need another one.
    fn change<T>(&self, part: &OrderedMutex<Part>, change: impl FnOnce(&mut Part) -> T) {
        let gone = {
            let mut part = part.lock();
            let before = part.bytes;
            let gone = change(&mut part);
            self.bytes.fetch_add(part.bytes, Relaxed);
            self.bytes.fetch_sub(before, Relaxed);
            gone
        };
        drop(gone);
    }

    fn insert(&self, key: Key, kept: Kept) {
        let bytes = ByBytes.weight(&key, &kept);
        self.change(self.part(&key), |part| {
            let before = part.entries.put(key, (kept, bytes));
            part.bytes += bytes;
            part.bytes -= before.as_ref().map_or(0, |(_, bytes)| *bytes);
            (before, part.evict(self.part_capacity()))
        });
    }

    fn remove(&self, key: &Key) {
        self.change(self.part(key), |part| {
            let gone = part.entries.pop(key);
            part.bytes -= gone.as_ref().map_or(0, |(_, bytes)| *bytes);
            gone
        });
    }

    fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Relaxed);
        self.parts.iter().for_each(|part| self.change(part, |part| part.evict(self.part_capacity())));
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::block::{Block, BlockBuilder};
    use crate::store::cache::Entry;
    use crate::store::cache::block_pointers::Resident;
    use crate::types::{Kind, Seq, Stamp};

    fn kept() -> Kept {
        let mut builder = BlockBuilder::new();
        builder.add(b"key", Stamp::new(Seq(1), Kind::Put), &[7; 100]);
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let entry = Entry::Block(Resident::new(Block::decode(bytes).unwrap()));
        Kept { entry, _charge: None, _warm: None, _shown: None }
    }

    #[test]
    fn the_least_recently_used_goes_first_and_bytes_are_counted() {
        let entry_bytes = ByBytes.weight(&(TableId(1), 0), &kept());
        let entries = Entries::recent(PARTS as u64 * (4 * entry_bytes + entry_bytes / 2));
        let Entries::Recent(recent) = &entries else { panic!("it goes by recency") };
        // Keys of one part, which has room for four.
        let part = &raw const *recent.part(&(TableId(1), 0));
        let keys: Vec<Key> = (0..)
            .map(|at| (TableId(1), at))
            .filter(|key| std::ptr::eq(recent.part(key), part))
            .take(6)
            .collect();
        for &key in &keys[..4] {
            entries.insert(key, kept());
        }
        assert!(entries.get(&keys[0]).is_some());
        assert!(entries.contains_key(&keys[1]), "to ask whether it is there is no use");
        entries.insert(keys[0], kept());
        assert_eq!(entries.bytes(), 4 * entry_bytes);
        entries.insert(keys[4], kept());
        entries.insert(keys[5], kept());
        let left: Vec<bool> = keys.iter().map(|key| entries.contains_key(key)).collect();
        assert_eq!(left, [true, false, false, true, true, true]);
        entries.remove(&keys[3]);
        entries.set_capacity(PARTS as u64 * entry_bytes);
        assert_eq!(entries.bytes(), entry_bytes);
        assert!(entries.get(&keys[5]).is_some());
    }
}
