//! What was not in memory when it was asked for lately.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::types::TableId;

/// Least number of misses that are remembered.
pub(super) const MISSES_MIN: usize = 1024;

/// Blocks, or stretches of them, that were not in memory when they were asked for lately.
#[derive(Debug)]
pub(super) struct Misses(Box<[AtomicU64]>);

impl Misses {
    /// Remembers about the last `count`, which is not 0.
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// How many it remembers.
    pub(super) fn remembered(&self) -> usize {
        self.0.len()
    }

    /// Notes a miss; whether it is the second one within a short while.
    pub(super) fn again(&self, table: TableId, place: u64) -> bool {
        // The high bits of the product depend on all bits of both.
        let tag = (table.0.rotate_left(32) ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let place = (u128::from(tag) * self.0.len() as u128) >> 64;
        self.0[place as usize].swap(tag, Relaxed) == tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_miss_of_a_block_within_a_short_while_is_told() {
        let misses = Misses::new(MISSES_MIN);
        assert!(!misses.again(TableId(1), 4096));
        assert!(misses.again(TableId(1), 4096));
        assert!(!misses.again(TableId(2), 4096));
        // So many others that each place has seen one.
        (0..64 * MISSES_MIN as u64).for_each(|n| _ = misses.again(TableId(3), 4096 * n));
        assert!(!misses.again(TableId(1), 4096));
    }
}
