//! What is kept of large records that were not in memory.
//!
//! In a cache that is about full, and too small for all that there is, a record that is looked up by itself, or what a scan
//! reads at once, is kept if it was missed before, no longer ago than as many misses as the cache holds of its kind. Of what is
//! read once, most is not asked for again in time: to find a place for it, and to evict what is there, takes as long as the read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;

use super::TableCache;
use crate::store::cache::readahead::SPAN_BYTES;
use crate::store::cache::row_cache::LARGE_BYTES;
use crate::types::TableId;

/// Least number of misses that are remembered.
const MISSES_MIN: usize = 1024;

/// The cache is about full where more than three quarters of what it may keep are there: a small one, in shards, seldom is quite.
const FULL: (u64, u64) = (3, 4);

/// That is looked at by misses of one place in so many.
const PLACES_PER_LOOK: u32 = 64;

/// An odd number without a pattern: the golden ratio's digits.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which of what was missed is to be kept.
#[derive(Debug)]
pub(super) struct Admission {
    /// Of records: about as many as fit into the cache, where not all does: 4 bytes for each of twice [`LARGE_BYTES`].
    rows: ArcSwap<Misses>,
    /// Of what scans read at once, as if all were spans.
    units: ArcSwap<Misses>,
    /// Of blocks, for the sake of single records.
    blocks: Misses,
    /// Bytes of all tables.
    data_bytes: AtomicU64,
    /// Whether what is kept takes the place of something else that may be asked for.
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
    /// Tells how much there is to be kept: bytes of all tables.
    pub(crate) fn expect(&self, data_bytes: u64) {
        let Admission { rows, units, .. } = &self.admission;
        self.admission.data_bytes.store(data_bytes, Relaxed);
        let capacity = self.entries.capacity();
        for (misses, bytes) in [(rows, 2 * LARGE_BYTES), (units, SPAN_BYTES)] {
            let fit = usize::try_from(capacity / bytes).unwrap_or(usize::MAX);
            // Less than a hundredth of the tables takes that, however large the budget.
            if data_bytes > capacity && misses.load().remembered() < fit {
                misses.store(Arc::new(Misses::new(fit)));
            }
        }
    }

    /// Whether all that there is would fit.
    pub(crate) fn holds_all(&self) -> bool {
        self.admission.data_bytes.load(Relaxed) <= self.entries.capacity()
    }

    /// Whether a record that was not in memory is to be kept.
    pub(super) fn admits_row(&self, table: TableId, hash: u64) -> bool {
        self.admits(&self.admission.rows, table, hash)
    }

    /// Whether what a scan reads at once, at a `place` of its table, is to be kept.
    pub(crate) fn admits_unit(&self, table: TableId, place: u64) -> bool {
        self.admits(&self.admission.units, table, place)
    }

    /// Whether the neighbourhood of a record is asked for again and again: that of `offset` in its table.
    pub(super) fn is_hot(&self, table: TableId, offset: u64) -> bool {
        self.admission.blocks.again(mixed(table, offset))
    }

    fn admits(&self, misses: &ArcSwap<Misses>, table: TableId, place: u64) -> bool {
        let is_scarce = &self.admission.is_scarce;
        let mixed = mixed(table, place);
        if (mixed as u32).is_multiple_of(PLACES_PER_LOOK) {
            let ((full, of), capacity) = (FULL, self.entries.capacity());
            is_scarce.store(!self.holds_all() && self.entries.weight() > capacity / of * full, Relaxed);
        }
        misses.load().again(mixed) || !is_scarce.load(Relaxed)
    }
}

/// A number of which all bits depend on all bits of both: a compacted within level 0 product.
fn mixed(table: TableId, place: u64) -> u64 {
    let wide = u128::from(table.0.rotate_left(32) ^ place) * u128::from(MULTIPLIER);
    (wide >> 64) as u64 ^ wide as u64
}

/// What was not in memory when it was asked for lately.
#[derive(Debug)]
struct Misses(Box<[AtomicU32]>);

impl Misses {
    /// Remembers about the last `count`, which is not 0.
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU32::new(0)).collect())
    }

    /// How many it remembers.
    fn remembered(&self) -> usize {
        self.0.len()
    }

    /// Notes a miss of what is told by the number `mixed`; whether it is the second one within a short while.
    fn again(&self, mixed: u64) -> bool {
        let at = (u128::from(mixed) * self.0.len() as u128) >> 64;
        let tag = mixed as u32 | 1;
        // No exchange, which would make all that follows wait for memory; what another thread notes in between may be lost.
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
