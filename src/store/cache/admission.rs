//! Admission: which of the large records that were not in memory the cache keeps.
//!
//! It matters where the cache is about full and the data does not fit. Most of what is read once is not read again in
//! time. To find memory for it, and to evict something else, takes as long as the read. So a record of a lookup, or a
//! unit of a scan, is kept only if it was missed before, and not too long ago: the cache remembers about as many
//! misses as it has room for entries of that kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;

use super::TableCache;
use crate::store::cache::readahead::SPAN_BYTES;
use crate::store::cache::row_cache::LARGE_BYTES;
use crate::types::TableId;

/// Least number of misses that are remembered, of each kind.
const MISSES_MIN: usize = 1024;

/// The cache counts as full when more than three quarters of its capacity are in use: a small cache, split into
/// shards, is seldom quite full.
const FULL: (u64, u64) = (3, 4);

/// A miss in one place of this many checks whether the cache is full.
const PLACES_PER_LOOK: u32 = 64;

/// An odd number without a pattern: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The misses that are remembered, by kind, and whether they matter.
#[derive(Debug)]
pub(super) struct Admission {
    /// Missed rows. If the data does not fit, about as many as the cache has room for, at twice [`LARGE_BYTES`] a
    /// row; 4 bytes of memory for each.
    rows: ArcSwap<Misses>,
    /// Missed units of scans, their number reckoned as if all were spans.
    units: ArcSwap<Misses>,
    /// Blocks that lookups of single records missed.
    blocks: Misses,
    /// Bytes of all tables.
    data_bytes: AtomicU64,
    /// Whether the cache is full and the data does not fit, so that an entry takes the place of another one.
    is_scarce: AtomicBool,
}

impl Default for Admission {
    fn default() -> Self {
        let [rows, units] = [(); 2].map(|()| ArcSwap::from_pointee(Misses::new(MISSES_MIN)));
        let blocks = Misses::new(MISSES_MIN);
        Self { rows, units, blocks, data_bytes: 0.into(), is_scarce: false.into() }
    }
}

impl TableCache {
    /// Notes how much data there is: bytes of all tables.
    pub(crate) fn expect(&self, data_bytes: u64) {
        let Admission { rows, units, .. } = &self.admission;
        self.admission.data_bytes.store(data_bytes, Relaxed);
        let capacity = self.entries.capacity();
        for (misses, bytes) in [(rows, 2 * LARGE_BYTES), (units, SPAN_BYTES)] {
            let fit = usize::try_from(capacity / bytes).unwrap_or(usize::MAX);
            // Takes less than a hundredth of the tables' size, however large the budget is.
            if data_bytes > capacity && misses.load().remembered() < fit {
                misses.store(Arc::new(Misses::new(fit)));
            }
        }
    }

    /// Whether the cache has room for all tables.
    pub(crate) fn holds_all(&self) -> bool {
        self.admission.data_bytes.load(Relaxed) <= self.entries.capacity()
    }

    /// Whether a record that was not in memory is to be kept.
    pub(super) fn admits_row(&self, table: TableId, hash: u64) -> bool {
        self.admits(&self.admission.rows, table, hash)
    }

    /// Whether the unit that a scan has read at a `place` of its table is to be kept.
    pub(crate) fn admits_unit(&self, table: TableId, place: u64) -> bool {
        self.admits(&self.admission.units, table, place)
    }

    /// Whether lookups miss the block at `offset` of its table again and again. Notes this miss.
    pub(super) fn is_hot(&self, table: TableId, offset: u64) -> bool {
        self.admission.blocks.again(mixed(table, offset))
    }

    fn admits(&self, misses: &ArcSwap<Misses>, table: TableId, place: u64) -> bool {
        let is_scarce = &self.admission.is_scarce;
        let mixed = mixed(table, place);
        if (mixed as u32).is_multiple_of(PLACES_PER_LOOK) {
            let ((full, of), capacity) = (FULL, self.entries.capacity());
            is_scarce.store(!self.holds_all() && self.entries.bytes() > capacity / of * full, Relaxed);
        }
        misses.load().again(mixed) || !is_scarce.load(Relaxed)
    }
}

/// A hash of both numbers, all bits of which depend on all of theirs: a product whose two halves are combined.
fn mixed(table: TableId, place: u64) -> u64 {
    let wide = u128::from(table.0.rotate_left(32) ^ place) * u128::from(MULTIPLIER);
    (wide >> 64) as u64 ^ wide as u64
}

/// Tags of recent misses.
#[derive(Debug)]
struct Misses(Box<[AtomicU32]>);

impl Misses {
    /// Remembers about the last `count` misses, which is not 0.
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU32::new(0)).collect())
    }

    /// Number of misses that it remembers.
    fn remembered(&self) -> usize {
        self.0.len()
    }

    /// Notes a miss of the place with the hash `mixed`. Returns whether it is the second one within a short while.
    fn again(&self, mixed: u64) -> bool {
        let at = (u128::from(mixed) * self.0.len() as u128) >> 64;
        let tag = mixed as u32 | 1;
        // Not an atomic exchange, which would make all later instructions wait for memory. A note that another thread
        // makes in between may be lost.
        let before = self.0[at as usize].load(Relaxed);
        self.0[at as usize].store(tag, Relaxed);
        before == tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_miss_of_a_block_within_a_short_while_is_told() {
        let misses = Misses::new(MISSES_MIN);
        let again = |table, place| misses.again(mixed(TableId(table), place));
        assert!(!again(1, 4096));
        assert!(again(1, 4096));
        assert!(!again(2, 4096));
        // So many others that each place has seen one.
        (0..64 * MISSES_MIN as u64).for_each(|n| _ = again(3, 4096 * n));
        assert!(!again(1, 4096));
    }
}
