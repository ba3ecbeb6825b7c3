//! The leveled layout, LevelDB's: the limits of the levels grow by a given ratio. And the debt under any limits.
//!
//! Level 1 may hold a given number of bytes, and each deeper level the ratio times what the one above may. The limits
//! do not depend on what the tree holds.
//!
//! The debt is a forecast in bytes. It counts what each level holds above its limit, together with what that meets
//! below, once for each level that it passes. What meets nothing moves, and is no debt.

use super::{Layout, LeveledConfig};
use crate::catalog::Version;
use crate::types::{KeyRange, LEVELS, UpperBound};

impl Layout {
    /// Bytes to compact until no level is due: what each level holds above its limit goes down and is written again with
    /// what it meets there, on average the ratio of the two levels' sizes. (RocksDB reckons its pending bytes so.) What
    /// meets nothing moves, and is no debt.
    #[must_use]
    pub fn debt(&self, version: &Version) -> u64 {
        let config = match self {
            Self::Leveled(config) => config,
            Self::Guarded(config) => return config.debt(version),
            Self::Prefixed(config) => return config.debt_of_stacks(version),
            Self::Tiered(config) => return config.debt(version),
            Self::Geared(config) => return config.debt(version),
        };
        let limits = config.limits(version);
        let l0 = version.level(0);
        let (mut debt, mut incoming) = (0u64, 0u64);
        let level0 = config.level0(version);
        if level0.score(l0) >= 1.0 {
            incoming = l0.bytes().saturating_sub(level0.left_bytes);
            let met = incoming as f64 * (version.bytes(1) as f64 / l0.bytes().max(1) as f64);
            debt = incoming.saturating_add(met as u64);
        }
        for (level, state) in version.levels().take(LEVELS - 1).skip(1) {
            let bytes = state.bytes().saturating_add(incoming);
            let excess = bytes.saturating_sub(limits[usize::from(level)].saturating_sub(1));
            let compacted = excess.saturating_sub(moving_bytes(version, level));
            if compacted > 0 {
                let met = compacted as f64 * (version.bytes(level + 1) as f64 / bytes as f64);
                debt = debt.saturating_add(compacted).saturating_add(met as u64);
            }
            incoming = excess;
        }
        debt
    }
}

/// Bytes of `level` that would all move: what is behind its cursor, if nothing of the next level is.
fn moving_bytes(version: &Version, level: u8) -> u64 {
    let behind = |level: u8, range: &KeyRange| version.level(level).overlap_bytes(range);
    let start = version.level(level).cursor.clone().unwrap_or_default();
    let range = KeyRange { start, end: UpperBound::Unbounded };
    if behind(level + 1, &range) == 0 { behind(level, &range) } else { 0 }
}

impl LeveledConfig {
    /// Bytes at which each level is due.
    pub(super) fn limits(&self, version: &Version) -> [u64; LEVELS] {
        let (level1_bytes, ratio, deepest) = match self.ratio {
            Some(ratio) => (self.level1_bytes as f64, ratio as f64, LEVELS - 1),
            None => self.even(version),
        };
        let mut limits = [u64::MAX; LEVELS];
        limits[0] = 0;
        for (above, limit) in (0..).zip(&mut limits[1..deepest]) {
            *limit = (level1_bytes * ratio.powi(above)) as u64;
        }
        limits
    }
}
