//! Layouts: how the levels of a tree are built, and when one is too large.
//!
//! All have runs of flushed tables in level 0, which is due by its own rules (`level0`). A level is due at score 1.
//!
//! * [`Layout::Leveled`]: one run in every deeper level, due by its bytes. The deepest level has nowhere to go and is
//!   never due. The limits come from two files. `leveled` has LevelDB's, which grow by a given ratio, and the debt that
//!   follows from any limits. `adaptive` has those that follow the tree.
//! * [`Layout::Tiered`]: one run or several in a deeper level, due by their number or by their bytes (`tiered`).
//! * [`Layout::Prefixed`]: several in a deeper level, due by its bytes (`prefixed`).
//! * [`Layout::Geared`]: levels in pairs, of which one takes what comes and the other goes down (`geared`).
//! * [`Layout::Guarded`]: several between any two guards of a deeper level, due by the fullest of these (`guarded`).
//!
//! A layout looks only at a [`Version`] and its own limits. Others add to the [`TreeShape`] what the machine costs
//! and who reads or writes at the moment.

mod adaptive;
mod geared;
mod guarded;
mod leveled;
mod prefixed;
mod tiered;

pub(super) use adaptive::data_bytes;
pub use geared::GearedConfig;
pub(super) use geared::goes_down;
pub use guarded::GuardedConfig;
pub(super) use guarded::{GuardGroup, GuardKeys};
pub use tiered::TieredConfig;

use crate::catalog::Version;
use crate::types::{KeyRange, LEVELS};

use crate::policy::view::{SEARCHED_MAX, TreeShape};

/// The layouts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Layout {
    /// One run per level below level 0.
    Leveled(LeveledConfig),
    /// Levels that guards part, with several runs in each part.
    Guarded(GuardedConfig),
    /// Any number of runs per level: what comes from above lies on top.
    Prefixed(LeveledConfig),
    /// Several, merged level by level.
    Tiered(TieredConfig),
    /// Pairs of levels of one run each: one that takes what comes, and one that goes down.
    Geared(GearedConfig),
}

/// How much of the data level 0 may hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Level0Width {
    /// A fifth.
    Fifth,
    /// As much as makes a fifth of the data obsolete: this share.
    Mix {
        /// Of the data, from a fifth to all. It is all until [`Layout::for_mix`] has been told of a keyspace.
        share: f64,
    },
}

/// Limits of a leveled tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LeveledConfig {
    /// Bytes at which level 1 is due.
    pub level1_bytes: u64,
    /// Limit of a level over the limit of the one above, at least 2; `None` for what the tree asks for.
    pub ratio: Option<u64>,
    /// Runs at which level 0 is due, at least 1.
    pub l0_trigger: u64,
    /// Without a ratio: how much of the data level 0 may hold.
    pub level0: Level0Width,
    /// Without a ratio: the most bytes at which level 0 is due, as a number of full runs; at least `l0_trigger`.
    pub l0_full_max: u64,
    /// Without a ratio: the number of runs at which level 0 is due, whatever they hold; at least `l0_trigger`.
    pub l0_runs_max: u64,
    /// Without a ratio: the number of runs that level 0 counts for when it is due by its bytes.
    pub l0_runs_due: u64,
}

impl Layout {
    /// Measures `version`.
    #[must_use]
    pub fn measure(&self, version: &Version) -> TreeShape {
        TreeShape {
            scores: self.scores(version),
            stacks: std::array::from_fn(|level| self.stacks_at(version, level as u8)),
            merges_within: std::array::from_fn(|level| self.merges_within(version, level as u8)),
            debt_bytes: self.debt(version),
            read_debt_bytes: 0,
            only_runs_due: self.only_runs_due(version),
            idle: false,
            overwrite_ratio: 1.0,
            expiring: None,
            put_off: false,
            hole_bytes: None,
            prefix: None,
            searched: [None; SEARCHED_MAX],
        }
    }

    /// Bytes at which each level is due: 0 for one whose runs are counted, as those of level 0 are, and [`u64::MAX`] for one
    /// that never is.
    #[must_use]
    pub fn limits(&self, version: &Version) -> [u64; LEVELS] {
        match self {
            Self::Leveled(config) | Self::Prefixed(config) => config.limits(version),
            Self::Tiered(config) => config.limits(version),
            Self::Geared(config) => config.limits(),
            // By its guards alone.
            Self::Guarded(_) => {
                let mut limits = [u64::MAX; LEVELS];
                limits[0] = 0;
                limits
            }
        }
    }

    /// Whether what comes to `level` from above lies on top of what is there. Otherwise it is merged with what it
    /// overlaps.
    #[must_use]
    pub fn stacks_at(&self, version: &Version, level: u8) -> bool {
        match self {
            Self::Leveled(_) | Self::Geared(_) => false,
            Self::Tiered(config) => config.stacks_at(version, level),
            Self::Prefixed(_) | Self::Guarded(_) => level > 0,
        }
    }

    /// Whether levels go down as wholes, in rounds: into an empty level, and from there piece by piece.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        match self {
            Self::Geared(_) => true,
            Self::Leveled(_) | Self::Tiered(_) | Self::Prefixed(_) | Self::Guarded(_) => false,
        }
    }

    /// Whether what leaves `level` does so as a whole.
    #[must_use]
    pub fn is_round(&self, level: u8) -> bool {
        self.has_rounds() && level > 0 && !goes_down(level)
    }

    /// Bytes at which `level` is full; of a pair of levels, both together.
    #[must_use]
    pub fn full_bytes(&self, version: &Version, level: u8) -> u64 {
        match self {
            Self::Geared(config) => config.full_bytes(level),
            Self::Leveled(_) | Self::Tiered(_) | Self::Prefixed(_) | Self::Guarded(_) => {
                self.limits(version)[usize::from(level)]
            }
        }
    }

    /// Whether `level` becomes one run in its place when it is due.
    fn merges_within(&self, version: &Version, level: u8) -> bool {
        match self {
            Self::Leveled(_) | Self::Prefixed(_) | Self::Geared(_) => false,
            Self::Tiered(config) => config.merges_within(version, level),
            Self::Guarded(config) => config.is_in_place(version, level),
        }
    }

    /// Fill of each level; due from 1 on.
    #[must_use]
    pub fn scores(&self, version: &Version) -> [f64; LEVELS] {
        let mut scores = [0.0; LEVELS];
        match self {
            Self::Leveled(config) | Self::Prefixed(config) => {
                let limits = config.limits(version);
                for (level, state) in version.levels().take(LEVELS - 1).skip(1) {
                    scores[usize::from(level)] = state.bytes() as f64 / limits[usize::from(level)] as f64;
                }
            }
            Self::Tiered(config) => {
                for (level, _) in version.levels().skip(1) {
                    scores[usize::from(level)] = config.score(version, level);
                }
            }
            Self::Guarded(config) => scores = config.scores(version),
            Self::Geared(config) => scores = config.scores(version),
        }
        scores[0] = self.level0(version).score(version.level(0));
        scores
    }

    /// The level for new tables of `bytes` together within `range` that are newer than everything: the deepest such that
    /// nothing lies in or above it in that range, but no deeper than the tree or than they need. Level 0 if need be.
    #[must_use]
    pub fn level_for_new(&self, version: &Version, range: &KeyRange, bytes: u64) -> u8 {
        let overlaps =
            |level: u8| version.level(level).runs.iter().any(|run| run.overlapping(range).next().is_some());
        let limits = match self {
            // What lies beside the rest makes no further run, but a level is to hold no more for it than it is made for.
            Self::Tiered(config) => std::array::from_fn(|level| config.level_bytes(level as u8)),
            Self::Geared(config) => config.fit(),
            Self::Leveled(_) | Self::Prefixed(_) | Self::Guarded(_) => self.limits(version),
        };
        let fits = |level: &u8| version.bytes(*level).saturating_add(bytes) < limits[usize::from(*level)];
        let last = LEVELS as u8 - 1;
        let passes = |level: &u8| planted!("ingest-below-what-is-older") || !overlaps(*level);
        let free = (0..=last).take_while(passes).last().unwrap_or(0);
        let needed = (1..last).find(fits).unwrap_or(last);
        free.min(needed.max(version.deepest().unwrap_or(0)))
    }
}
