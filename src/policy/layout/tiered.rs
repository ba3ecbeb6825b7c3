//! The tiered layouts: levels of several runs on top of each other, merged level by level. (Fluid LSM: Dayan and Idreos,
//! "Dostoevsky", section 4.)
//!
//! Two numbers tell the family's members apart: how many runs a level keeps, and how many the *last* level does, the
//! deepest one that holds anything. Leveling keeps one run everywhere, tiering several everywhere, lazy leveling several
//! above the last level and one in it. Stepped merge is tiering that merges the last level only when it is full.
//!
//! * A level that keeps one run merges what arrives with it. It is full by its bytes.
//! * A level that keeps several takes what arrives on top. It is full by its number of runs.
//! * A full level goes to the next one as a whole, which becomes the last one if it held nothing.
//! * A last level that keeps several runs, but not as many as the others, is full by its bytes too. Of several runs it
//!   makes one in its place; a single one goes to the next level, by a move.
//!
//! The level at the very bottom has nowhere to go. Its runs become one in its place.
//!
//! The number of runs is that of tables on top of each other at the fullest place. Where tables are disjoint, as when
//! keys ascend, they make one run however many flushes brought them, and nothing is rewritten.
//!
//! Level 0 is LevelDB's: due by its number of runs.

use crate::catalog::Version;
use crate::types::LEVELS;

/// Limits of a tiered tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TieredConfig {
    /// Bytes at which a level 1 that is full by its bytes is due.
    pub level1_bytes: u64,
    /// The same of a level over that of the one above, at least 2.
    pub ratio: u64,
    /// Runs at which a level above the last one is due; 1 if what arrives there is merged.
    pub runs: u64,
    /// The same for the last level.
    pub last_runs: u64,
    /// Runs at which level 0 is due, at least 1.
    pub l0_trigger: u64,
}

/// What decides when a level is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Full {
    /// Its number of runs.
    runs: Option<u64>,
    /// Its bytes.
    bytes: Option<u64>,
}

/// The level at the very bottom.
const BOTTOM: u8 = LEVELS as u8 - 1;

impl TieredConfig {
    /// Bytes at which `level` is due if its bytes count.
    pub(super) fn level_bytes(&self, level: u8) -> u64 {
        let above = u32::from(level.saturating_sub(1));
        self.level1_bytes.saturating_mul(self.ratio.saturating_pow(above))
    }

    /// Runs that `level` keeps.
    fn kept_runs(&self, version: &Version, level: u8) -> u64 {
        if version.deepest().is_none_or(|deepest| level >= deepest) { self.last_runs } else { self.runs }
    }

    /// Whether what comes to `level` from above lies on top of what is there.
    pub(super) fn stacks_at(&self, version: &Version, level: u8) -> bool {
        let is_one = self.kept_runs(version, level) == 1;
        level > 0 && (!is_one || planted!("run-put-on-a-level-that-keeps-one"))
    }

    /// Whether a `level` that is due becomes one run in its place, instead of going to the next level.
    pub(super) fn merges_within(&self, version: &Version, level: u8) -> bool {
        let is_last = version.deepest() == Some(level) && level > 0;
        let special = self.last_runs > 1 && self.last_runs != self.runs;
        is_last && (special || level == BOTTOM) && version.level(level).depth() > 1
    }

    fn full(&self, version: &Version, level: u8) -> Full {
        let kept = self.kept_runs(version, level);
        let is_last = version.deepest() == Some(level);
        let by_bytes = kept == 1 || is_last && self.last_runs != self.runs;
        let runs = if level == BOTTOM { Some(kept.max(2)) } else { Some(kept).filter(|kept| *kept > 1) };
        Full { runs, bytes: (by_bytes && level < BOTTOM).then(|| self.level_bytes(level)) }
    }

    /// Fill of `level`, which is below level 0.
    pub(super) fn score(&self, version: &Version, level: u8) -> f64 {
        let state = version.level(level);
        let Full { runs, bytes } = self.full(version, level);
        let by = |have: u64, limit: Option<u64>| limit.map_or(0.0, |limit| have as f64 / limit as f64);
        by(state.depth() as u64, runs).max(by(state.bytes(), bytes))
    }

    /// Bytes at which each level is due; 0 where its runs are counted alone.
    pub(super) fn limits(&self, version: &Version) -> [u64; LEVELS] {
        let mut limits = [0; LEVELS];
        for (level, _) in version.levels().skip(1) {
            limits[usize::from(level)] = self.full(version, level).bytes.unwrap_or(0);
        }
        limits
    }

    /// Bytes to merge until no level is due: each level that is goes to the next one, or becomes one run in its place.
    pub(super) fn debt(&self, version: &Version) -> u64 {
        let mut debt = 0u64;
        // Bytes of what comes from above, and whether they are counted: a single run that meets nothing moves.
        let mut arriving: Option<(u64, bool)> = None;
        for (level, state) in version.levels() {
            let (mut bytes, mut runs) = (state.bytes(), state.depth() as u64);
            if let Some((more, counted)) = arriving.take() {
                if runs == 0 || self.stacks_at(version, level) {
                    runs += 1;
                } else {
                    debt = debt.saturating_add(bytes).saturating_add(if counted { 0 } else { more });
                    runs = 1;
                }
                bytes = bytes.saturating_add(more);
            }
            let is_due = match level {
                0 => runs >= self.l0_trigger,
                _ => self.full(version, level).is_reached(runs, bytes),
            };
            if is_due {
                debt = debt.saturating_add(if runs > 1 { bytes } else { 0 });
                arriving = Some((bytes, runs > 1)).filter(|_| !self.merges_within(version, level));
            }
        }
        debt
    }
}

impl Full {
    fn is_reached(self, runs: u64, bytes: u64) -> bool {
        self.runs.is_some_and(|limit| runs >= limit) || self.bytes.is_some_and(|limit| bytes >= limit)
    }
}
