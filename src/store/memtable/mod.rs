//! A memtable: the newest entries of a keyspace, sorted, in memory.
//!
//! It has a skip list in an arena, with keys and values inline, a filter of its keys, a forest of range tombstones,
//! and a few sums. Any number of threads insert and read at the same time.
//!
//! # Invariants
//!
//! * Entries are ordered by user key, ascending, then by stamp, descending.
//! * Entries never change and never leave. The memory is freed when the last holder of the memtable, of a cursor or
//!   of a pinned value drops.
//! * The sums are exact for a reader that has synchronised with the end of all insertions (of a sealed memtable,
//!   say). During insertions, those of memory lag behind and the others run ahead.
//!
//! A memtable does not know when it is full, who may see which entry, or that there is a log.

mod arena;
mod filter;
mod range_tombstones;
mod skiplist;
#[cfg(test)]
mod tests;

pub use arena::ChunkPool;
pub use range_tombstones::{RANGE_TOMBSTONE_BYTES, Tree as TombstoneTree};
pub use skiplist::{MemtableCursor, PinnedValue};

use crate::env::sync::OrderedMutex;
use crate::format::batch::Action;
use crate::format::filter::hash;
use crate::types::{Key, KeyRange, Kind, RangeTombstone, Seq, Stamp, UpperBound};
use filter::MemtableFilter;
use range_tombstones::RangeTombstones;
use skiplist::{Entry, SkipList};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// So many new tombstones are many: a quarter of those that were told of, but between these. A few may hide much.
const TOMBSTONES_PER_WORD: RangeInclusive<u64> = 16..=1024;

/// A concurrent sorted map from (user key, stamp) to value.
pub struct Memtable {
    list: Arc<SkipList>,
    filter: MemtableFilter,
    range_tombstones: RangeTombstones,
    entries: AtomicU64,
    /// Tombstones of single keys among them.
    tombstones: AtomicU64,
    /// How many there were when somebody was told last.
    tombstones_told: AtomicU64,
    /// The first and the last of the keys that were deleted since.
    deleted: OrderedMutex<Option<(Key, Key)>>,
    /// Larger than every sequence number while the memtable is empty.
    min_seq: AtomicU64,
    /// No value that expires was written after this second.
    written_upto: AtomicU64,
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memtable({} entries, {} bytes)", self.entries(), self.bytes())
    }
}

impl Memtable {
    /// An empty memtable. Its memory comes in chunks: the first of `first_chunk_bytes` (4 KiB to 2 MiB; others are
    /// rounded to that), each further one twice as large, up to 2 MiB; chunks of 2 MiB come from `pool` if it has
    /// one. Keys that begin with `prefix` are found faster than others.
    #[must_use]
    pub fn new(first_chunk_bytes: usize, pool: &Arc<ChunkPool>, prefix: &[u8]) -> Self {
        Self {
            list: Arc::new(SkipList::new(first_chunk_bytes, Arc::clone(pool), prefix)),
            filter: MemtableFilter::default(),
            range_tombstones: RangeTombstones::default(),
            entries: AtomicU64::new(0),
            tombstones: AtomicU64::new(0),
            tombstones_told: AtomicU64::new(0),
            deleted: OrderedMutex::leaf(None),
            min_seq: AtomicU64::new(u64::MAX),
            written_upto: AtomicU64::new(0),
        }
    }

    /// Adds an entry. No two calls may give the same key and stamp.
    ///
    /// # Panics
    /// If the key is longer than [`KEY_BYTES_MAX`](crate::types::KEY_BYTES_MAX) or the value than
    /// [`VALUE_BYTES_MAX`](crate::types::VALUE_BYTES_MAX): batches refuse both.
    pub fn insert(&self, key: &[u8], stamp: Stamp, value: &[u8]) {
        let entry = self.count(stamp.seq());
        self.list.insert(key, stamp, value);
        self.filter.add(hash(key), entry);
    }

    /// Adds a range tombstone. Only one thread at a time may call this, in the order of sequence numbers.
    pub fn delete_range(&self, range: KeyRange, seq: Seq) {
        self.range_tombstones.insert(range, seq);
        self.count(seq);
    }

    /// Applies an operation.
    ///
    /// # Panics
    /// As [`Memtable::insert`].
    pub fn apply(&self, seq: Seq, action: &Action<'_>) {
        self.apply_range(seq, action);
        self.apply_entry(seq, action);
    }

    /// Applies an operation if it is one on a single key.
    ///
    /// # Panics
    /// As [`Memtable::insert`].
    pub fn apply_entry(&self, seq: Seq, action: &Action<'_>) {
        match *action {
            Action::Put { key, value } => self.insert(key, Stamp::new(seq, Kind::Put), value),
            Action::Delete { key } => {
                self.insert(key, Stamp::new(seq, Kind::Delete), &[]);
                self.tombstones.fetch_add(1, Relaxed);
                self.note_deleted(key);
            }
            Action::DeleteRange { .. } => {}
        }
    }

    /// Applies an operation if it is one on a range. One thread at a time, as [`Memtable::delete_range`].
    pub fn apply_range(&self, seq: Seq, action: &Action<'_>) {
        if let Action::DeleteRange { start, end } = *action {
            self.delete_range(KeyRange::half_open(start, UpperBound::from_bytes(end)), seq);
        }
    }

    /// Counts an entry and returns its number, from 0.
    fn count(&self, seq: Seq) -> u64 {
        if seq.0 < self.min_seq.load(Relaxed) {
            self.min_seq.fetch_min(seq.0, Relaxed);
        }
        self.entries.fetch_add(1, Relaxed)
    }

    /// As [`Memtable::get`], with the sequence number.
    #[cfg(test)]
    pub fn find(&self, key: &[u8], upto: Seq) -> Option<(Stamp, &[u8])> {
        let list = self.filter.may_contain(hash(key)).then_some(&self.list)?;
        newest(list, key, upto).map(|entry| (entry.stamp(), entry.value()))
    }

    /// The newest version of `key`, whose [`hash`] is given, at or below `upto`, which must be visible. The value of
    /// a tombstone is empty.
    #[must_use]
    pub fn get(&self, key: &[u8], hash: u64, upto: Seq) -> Option<(Stamp, PinnedValue)> {
        if !self.filter.may_contain(hash) {
            return None;
        }
        PinnedValue::of(&self.list, |list| newest(list, key, upto))
    }

    /// The newest range tombstone over `key` at or below `upto`.
    #[must_use]
    pub fn newest_over(&self, key: &[u8], upto: Seq) -> Option<Seq> {
        self.range_tombstones.newest_over(key, upto)
    }

    /// The range tombstones at or below `upto`, in fragmented lists; each list is newer than the next.
    #[must_use]
    pub fn visible_range_tombstones(&self, upto: Seq) -> Vec<Arc<TombstoneTree>> {
        self.range_tombstones.visible(upto)
    }

    /// The sequence number of the newest version of `key`, whose [`hash`] is given, visible or not.
    #[must_use]
    pub fn newest_seq(&self, key: &[u8], hash: u64) -> Option<Seq> {
        let list = self.filter.may_contain(hash).then_some(&self.list)?;
        newest(list, key, Seq::MAX).map(|entry| entry.stamp().seq())
    }

    /// A range tombstone over keys of `range` that is newer than `since`, cut to `range`, if there is any.
    #[must_use]
    pub fn newer_over(&self, range: &KeyRange, since: Seq) -> Option<RangeTombstone> {
        self.range_tombstones.newer_over(range, since)
    }

    /// All range tombstones, as they were inserted.
    #[must_use]
    pub fn range_tombstones(&self) -> Vec<RangeTombstone> {
        self.range_tombstones.all()
    }

    /// A cursor over all entries, those added later included. It is not valid before its first seek.
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(&self.list))
    }

    /// The first key and the last one, without range tombstones.
    #[must_use]
    pub fn ends(&self) -> Option<(&[u8], &[u8])> {
        Some((self.list.first()?.key(), self.list.last()?.key()))
    }

    /// Memory of the entries, in bytes. The filter takes a small part of that in addition.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.list.bytes() + self.range_tombstones.bytes()
    }

    /// Number of entries, tombstones of both kinds included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Number of tombstones of single keys among them.
    #[must_use]
    pub fn tombstones(&self) -> u64 {
        self.tombstones.load(Relaxed)
    }

    fn note_deleted(&self, key: &[u8]) {
        let mut deleted = self.deleted.lock();
        match &mut *deleted {
            None => *deleted = Some((key.into(), key.into())),
            Some((first, _)) if *key < **first => *first = key.into(),
            Some((_, last)) if *key > **last => *last = key.into(),
            Some(_) => {}
        }
    }

    /// The first and the last of the keys that were deleted since this told of some, once they are many.
    #[must_use]
    pub fn take_many_deleted(&self) -> Option<(Key, Key)> {
        let now = self.tombstones();
        if now == 0 {
            return None;
        }
        let told = self.tombstones_told.load(Relaxed);
        let many = (told / 4).clamp(*TOMBSTONES_PER_WORD.start(), *TOMBSTONES_PER_WORD.end());
        let is_many = now >= told.saturating_add(many);
        let takes = is_many && self.tombstones_told.compare_exchange(told, now, Relaxed, Relaxed).is_ok();
        if takes { self.deleted.lock().take() } else { None }
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// Notes that values that expire were written in `second`. Called before they are visible.
    pub fn note_written(&self, second: u64) {
        if self.written_upto.load(Relaxed) < second {
            self.written_upto.fetch_max(second, Relaxed);
        }
    }

    /// The last second, or a later one, in which a visible value that expires was written.
    #[must_use]
    pub fn written_upto(&self) -> u64 {
        self.written_upto.load(Relaxed)
    }

    /// Smallest sequence number of an entry.
    #[must_use]
    pub fn min_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then(|| Seq(self.min_seq.load(Relaxed)))
    }
}

/// Number of entries that this thread has looked at in memtables, so that tests can tell a search from a walk.
#[cfg(test)]
pub(crate) fn entries_seen() -> u64 {
    skiplist::SEEN.with(std::cell::Cell::get)
}

fn newest<'a>(list: &'a SkipList, key: &[u8], upto: Seq) -> Option<Entry<'a>> {
    list.find(key, Stamp::upto(upto)).after.filter(|entry| entry.key() == key)
}
