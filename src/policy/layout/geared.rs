//! The geared layout, bLSM's: each level of the tree has two components.
//!
//! Sears and Ramakrishnan, "bLSM: A General Purpose Log Structured Merge Tree", section 4; Teng et al., "LSbM-tree", section
//! III, algorithm 1. One component (`C_i` in the papers) takes what comes from above. When both together are full and the other
//! (`C'_i`) is empty, they change roles. Then as much of `C'_i` is merged into the next level as comes into `C_i`, in key order.
//! So a level is never emptied at once, and both components together stay at the level's limit.
//!
//! A component is a numbered level of the tree here: `C_i` is level `2i - 1`, and `C'_i` level `2i`. So each has one run, a change
//! of roles is a move of a whole level into the empty next one, and all else that knows levels need not know components. The
//! deepest level has no partner: it takes what comes, and is never full.

use crate::catalog::Version;
use crate::types::LEVELS;

/// Limits of a geared tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GearedConfig {
    /// Bytes that both components of the first level may hold together.
    pub level1_bytes: u64,
    /// The same of a level over that of the one above, at least 2.
    pub ratio: u64,
    /// Runs at which level 0 is due, at least 1.
    pub l0_trigger: u64,
}

/// Whether `level` is the component of its pair that goes down.
pub(in crate::policy) fn goes_down(level: u8) -> bool {
    level > 0 && level.is_multiple_of(2)
}

impl GearedConfig {
    /// Bytes that the pair of `level` may hold.
    fn pair_bytes_max(&self, level: u8) -> u64 {
        let above = u32::from(level.saturating_sub(1) / 2);
        self.level1_bytes.saturating_mul(self.ratio.saturating_pow(above))
    }

    /// Fill of the pair of `level`; 0 for the deepest, which has no partner.
    fn fill(&self, version: &Version, level: u8) -> f64 {
        let filling = if goes_down(level) { level - 1 } else { level };
        if usize::from(filling) + 1 >= LEVELS {
            return 0.0;
        }
        let bytes = version.bytes(filling).saturating_add(version.bytes(filling + 1));
        bytes as f64 / self.pair_bytes_max(level) as f64
    }

    /// Fill of each level. Of a pair only one level is due: the one that goes down, or the other one if that is empty.
    pub(super) fn scores(&self, version: &Version) -> [f64; LEVELS] {
        let mut scores = [0.0; LEVELS];
        for (level, state) in version.levels().skip(1) {
            let is_turn = if goes_down(level) {
                !state.runs.is_empty()
            } else {
                usize::from(level) + 1 < LEVELS && version.level(level + 1).runs.is_empty()
            };
            if is_turn {
                scores[usize::from(level)] = self.fill(version, level);
            }
        }
        scores
    }

    /// No level is due by its own bytes alone.
    pub(super) fn limits(&self) -> [u64; LEVELS] {
        [0; LEVELS]
    }

    /// Bytes that each level is made for.
    pub(super) fn fit(&self) -> [u64; LEVELS] {
        std::array::from_fn(|level| self.pair_bytes_max(level as u8))
    }

    /// Bytes at which the pair that `level` belongs to is full.
    pub(in crate::policy) fn full_bytes(&self, level: u8) -> u64 {
        self.pair_bytes_max(level)
    }

    /// Bytes to compact until no level is due: what each pair holds above its limit is merged with what it meets in the next.
    pub(super) fn debt(&self, version: &Version) -> u64 {
        let l0 = version.level(0);
        let (mut debt, mut incoming) = (0u64, 0u64);
        if l0.depth() as u64 >= self.l0_trigger {
            incoming = l0.bytes();
            debt = incoming.saturating_add(version.bytes(1));
        }
        for filling in (1..LEVELS as u8 - 1).step_by(2) {
            let bytes =
                version.bytes(filling).saturating_add(version.bytes(filling + 1)).saturating_add(incoming);
            incoming = bytes.saturating_sub(self.pair_bytes_max(filling).saturating_sub(1));
            if incoming > 0 {
                let met = incoming as f64 * (version.bytes(filling + 2) as f64 / bytes as f64);
                debt = debt.saturating_add(incoming).saturating_add(met as u64);
            }
        }
        debt
    }
}
