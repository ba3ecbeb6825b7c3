//! The newest entries of a keyspace, sorted, in memory.
//!
//! Owns an arena skip list with inline keys and values, and a few sums over it. Any number of threads insert and
//! read at the same time, none waits. Entries are ordered by (user key ascending, stamp descending) and never change
//! or leave; the memory goes when the last holder of the memtable, of a cursor or of a pinned value drops.
//!
//! The sums are exact once the inserting threads have finished in a way that the reader has synchronised with (a
//! frozen memtable, say), and a moment behind while they run.
//!
//! It deliberately does not know when it is full, who may see what, or that there is a log.

mod arena;
mod skiplist;
#[cfg(test)]
mod tests;

pub use arena::ChunkPool;
pub use skiplist::{MemtableCursor, PinnedValue};

use crate::types::{Kind, Seq, Stamp};
use skiplist::{Entry, SkipList};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A concurrent sorted map from (user key, stamp) to value.
pub struct Memtable {
    list: Arc<SkipList>,
    entries: AtomicU64,
    /// Above every sequence number while empty.
    min_seq: AtomicU64,
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memtable({} entries, {} bytes)", self.entries(), self.bytes())
    }
}

impl Memtable {
    /// An empty memtable. Its memory comes in chunks: the first of `first_chunk_bytes` (4 KiB to 1 MiB; others are
    /// rounded to that), each further one twice as large, up to 1 MiB; those of 1 MiB from `pool` if it has one.
    #[must_use]
    pub fn new(first_chunk_bytes: usize, pool: &Arc<ChunkPool>) -> Self {
        Self {
            list: Arc::new(SkipList::new(first_chunk_bytes, Arc::clone(pool))),
            entries: AtomicU64::new(0),
            min_seq: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds an entry. No two calls may give the same key and stamp.
    ///
    /// # Panics
    /// If the key is longer than [`KEY_BYTES_MAX`](crate::types::KEY_BYTES_MAX) or the value than
    /// [`VALUE_BYTES_MAX`](crate::types::VALUE_BYTES_MAX): batches refuse both.
    pub fn insert(&self, key: &[u8], stamp: Stamp, value: &[u8]) {
        self.list.insert(key, stamp, value);
        self.entries.fetch_add(1, Relaxed);
        let seq = stamp.seq().0;
        if seq < self.min_seq.load(Relaxed) {
            self.min_seq.fetch_min(seq, Relaxed);
        }
    }

    /// As [`Memtable::get`], with the sequence number.
    #[cfg(test)]
    pub fn find(&self, key: &[u8], upto: Seq) -> Option<(Stamp, &[u8])> {
        newest(&self.list, key, upto).map(|entry| (entry.stamp(), entry.value()))
    }

    /// The newest version of `key` at or below `upto`; the value of a tombstone is empty.
    #[must_use]
    pub fn get(&self, key: &[u8], upto: Seq) -> Option<(Kind, PinnedValue)> {
        let (stamp, value) = PinnedValue::of(&self.list, |list| newest(list, key, upto))?;
        Some((stamp.kind(), value))
    }

    /// A cursor over all entries, those added later included. It is not valid before its first seek.
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(&self.list))
    }

    /// Memory taken by the entries, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.list.bytes()
    }

    /// Number of entries, tombstones included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// Smallest sequence number of an entry.
    #[must_use]
    pub fn min_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then(|| Seq(self.min_seq.load(Relaxed)))
    }
}

fn newest<'a>(list: &'a SkipList, key: &[u8], upto: Seq) -> Option<Entry<'a>> {
    list.find(key, Stamp::upto(upto)).after.filter(|entry| entry.key() == key)
}
