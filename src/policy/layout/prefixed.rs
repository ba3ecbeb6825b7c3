//! The layout of PTierDB ("PTierDB: Building Better Read-Write Cost Balanced Key-Value Stores for Small Data on SSD"):
//! tiering by prefix.
//!
//! What comes from above is put on top of a level, and not merged with what is there. So a level has several runs, and
//! a byte is written once for each level that it passes, or not at all where it moves. Limits are LevelDB's: level 1
//! may hold a given number of bytes, each deeper level the ratio times as many. A level over its limit drains, one
//! component after the other, until it is below it (`picker/components.rs`).
//!
//! **Debt.** What drains is written once, whatever lies below it. What overlaps nothing in its level moves, and is no
//! debt.

use super::LeveledConfig;
use crate::catalog::{LevelState, Version};
use crate::types::LEVELS;

impl LeveledConfig {
    /// Bytes to merge until no level is due, as far as can be told.
    pub(super) fn debt_of_stacks(&self, version: &Version) -> u64 {
        let limits = self.limits(version);
        let l0 = version.level(0);
        // Level 0 is merged as a whole.
        let mut incoming = if self.level0(version).score(l0) >= 1.0 { l0.bytes() } else { 0 };
        let mut debt = merged_bytes(l0, incoming);
        for (level, state) in version.levels().take(LEVELS - 1).skip(1) {
            let bytes = state.bytes().saturating_add(incoming);
            let excess = bytes.saturating_sub(limits[usize::from(level)].saturating_sub(1));
            debt = debt.saturating_add(merged_bytes(state, excess));
            incoming = excess;
        }
        debt
    }
}

/// The part of `bytes`, which leave the level, that has to be written: tables of a single run move.
fn merged_bytes(state: &LevelState, bytes: u64) -> u64 {
    if state.depth() > 1 { bytes.min(state.bytes()) } else { 0 }
}
