//! The width of level 0 under [`Level0Width::Mix`]: how much of the data it may hold, from what a keyspace's users do.
//!
//! A wide level 0 saves writes: where it holds a share `s` of the data, each byte that goes down has about `1 / s` bytes of
//! level 1 written again with it. It costs space only for what replaces something older, since that lies there beside what it
//! replaces: a share `o` of what is flushed. So level 0 may be as wide as makes a fifth of the data obsolete, `1 / (5 o)`, which
//! takes as much space as [`Level0Width::Fifth`] does for updates. ("How to Grow an LSM-tree?", Vertiorizon, sizes its upper
//! part by the mix, too.)
//!
//! What its runs cost readers is not part of this. Readers pay for fewer of them (`windows`), or for all to go down
//! ([`Layout::price_of_level0`]); and in idle time its dense parts go down before readers come.

use super::LEVEL0_PARTS;
use crate::policy::layout::{Layout, Level0Width, LeveledConfig};

/// The share of the data that level 0 may hold at most. Writers are slowed a ninth above it, so a store that suddenly updates
/// all that it has loaded takes about twice the space of its data.
pub const LEVEL0_SHARE_MAX: f64 = 1.0;

/// Level 0 may be so many times as large as under [`Level0Width::Fifth`] at most. A plan looks at each of its tables.
pub(super) const FULL_TIMES: u64 = 8;

impl Level0Width {
    /// The share of the data at which level 0 is due.
    pub(super) fn share(self) -> f64 {
        match self {
            Self::Fifth => 1.0 / LEVEL0_PARTS as f64,
            Self::Mix { share } => share,
        }
    }
}

impl Layout {
    /// This layout for a keyspace of which the share `overwrite_ratio` of what is flushed replaces something older.
    #[must_use]
    pub fn for_mix(self, overwrite_ratio: f64) -> Self {
        let Self::Leveled(config) = self else { return self };
        let level0 = match config.level0 {
            Level0Width::Fifth => Level0Width::Fifth,
            Level0Width::Mix { .. } => {
                let fifth = Level0Width::Fifth.share();
                Level0Width::Mix { share: (fifth / overwrite_ratio).clamp(fifth, LEVEL0_SHARE_MAX) }
            }
        };
        Self::Leveled(LeveledConfig { level0, ..config })
    }

    /// Whether level 0 is as wide as the mix asks for.
    pub(in crate::policy) fn follows_mix(&self) -> bool {
        matches!(self, Self::Leveled(LeveledConfig { level0: Level0Width::Mix { .. }, ratio: None, .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_0_may_make_a_fifth_of_the_data_obsolete() {
        let config = LeveledConfig {
            level1_bytes: 192 << 20,
            ratio: None,
            l0_trigger: 3,
            level0: Level0Width::Mix { share: LEVEL0_SHARE_MAX },
            l0_full_max: 18,
            l0_runs_max: 36,
            l0_runs_due: 54,
        };
        let share = |layout: Layout, overwrite_ratio| match layout.for_mix(overwrite_ratio) {
            Layout::Leveled(config) => config.level0.share(),
            other => panic!("{other:?}"),
        };
        let by_mix = Layout::Leveled(config);
        assert_eq!([1.0, 0.5, 0.25].map(|ratio| share(by_mix, ratio) * ratio), [0.2; 3]);
        assert_eq!([0.2, 0.1, 0.0].map(|ratio| share(by_mix, ratio)), [LEVEL0_SHARE_MAX; 3]);
        let fifth = Layout::Leveled(LeveledConfig { level0: Level0Width::Fifth, ..config });
        assert_eq!([1.0, 0.0].map(|ratio| share(fifth, ratio)), [0.2; 2]);
    }
}
