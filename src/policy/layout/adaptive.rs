//! The adaptive layout: without a given ratio, the limits of the levels follow the tree.
//!
//! **Costs.** A level costs each byte that passes it about one write, and half a write for each time that it is
//! larger than the level above. (Half, because the cursor goes round: the target is emptier behind it than in front
//! of it.) Level 0 is a level like the others here. It is compacted in sections (`picker/level0.rs`), each where it
//! holds most, so it is due by its bytes: a fifth of the data, within bounds. The deepest level holds what there is.
//! Between the two are as many levels as cost least, in writes and in space, and they grow by one ratio.
//!
//! With LevelDB's level 1 and ratio of 10, each byte would be written once more on its way through a level 1 that is
//! no larger than level 0, and the deepest level but one would be full however little lies below it.
//! `policy/tests/volume.rs` computes what both write.
//!
//! **Data.** The largest level below level 0 counts as the data. It has no key twice, so at least that much is live,
//! and updates do not raise the limits, however far compactions are behind.
//!
//! A tree that has outgrown its levels moves its tables into a new deepest one, which writes nothing. A level that is
//! there stays.

use super::LeveledConfig;
use crate::catalog::Version;
use crate::types::LEVELS;

/// The cost of a level besides its ratio, in writes: one, and half a one for the readers, who ask all levels.
const LEVEL_COST: f64 = 1.5;

/// The cost of the space of a level as large as the data, in writes.
const SPACE_COST: f64 = 6.0;

impl LeveledConfig {
    /// Bytes at which level 1 is due, the ratio of each level to the one above, and the number of the deepest level.
    pub(super) fn even(&self, version: &Version) -> (f64, f64, usize) {
        // Half of it: with all of it, a load of 8 GiB writes a quarter more by the plans alone
        // (`policy/tests/volume.rs`).
        let level0_bytes = self.level0_bytes(version) as f64 / 2.0;
        let growth = (data_bytes(version) as f64 / level0_bytes).max(1.0);
        let ratio = |levels: usize| growth.powf(1.0 / levels as f64);
        let space = |levels: usize| (1..levels as i32).map(|below| ratio(levels).powi(-below)).sum::<f64>();
        let writes = |levels: usize| levels as f64 * (LEVEL_COST + ratio(levels) / 2.0);
        let cost = |levels: usize| writes(levels) + SPACE_COST * space(levels);
        let cheapest = (1..LEVELS).min_by(|one, other| cost(*one).total_cmp(&cost(*other)));
        // A level that is there stays.
        let levels = cheapest.unwrap_or(1).max(version.deepest().unwrap_or(0).into());
        (level0_bytes * ratio(levels), ratio(levels), levels)
    }
}

/// Bytes of the largest level below level 0; of level 0 if there is none.
pub(in crate::policy) fn data_bytes(version: &Version) -> u64 {
    let largest = version.levels().skip(1).map(|(_, state)| state.bytes()).max().unwrap_or(0);
    if largest > 0 { largest } else { version.bytes(0) }
}
