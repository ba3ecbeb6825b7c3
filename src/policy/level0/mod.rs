//! The rules of level 0, all in one place. The rest of the code is mechanism and calls these.
//!
//! * **What is a run.** A flush brings one. What level 0 *counts for* is a number of runs ([`Layout::level0_runs`]).
//!   With a given ratio that is the number of its runs (LevelDB). Without one, its bytes count too, in units of
//!   [`Layout::level0_run_bytes`].
//! * **When it is due.** At its number of runs. Without a given ratio also at a part of the data ([`Level0Limits`]): a
//!   fifth, or what the mix of operations asks for (`width`).
//!   And once the read debt has reached [`Layout::price_of_level0`] ([`Layout::measure_with_debt`]).
//! * **When it holds writers up.** From `l0_slow` runs on they are slowed, at `l0_stop` they stop
//!   ([`GovernorConfig::level0_slows`], [`GovernorConfig::level0_pressure`], [`GovernorConfig::level0_stops`]). A
//!   level 0 that holds writers up is always due (I11).
//! * **What is compacted within it.** Windows of neighbouring runs (`windows`): those that readers have paid for, and
//!   in idle time runs of about equal size. In idle time its dense parts go down ([`Layout::idle_parts`]).
//! * **What readers owe.** A seek of each scan and a filter probe of each lookup for every run
//!   ([`Costs::seeks_worth`], [`Layout::filter_probes_worth`]), in bytes of compaction.
//!   `engine/keyspace/read_debt.rs` adds it up.
//!
//! * **Runs that hold little.** Where level 0 is due for the number of its runs alone, and what a compaction would take
//!   down is sparse, a window becomes one run if that costs less for each run that goes ([`Layout::fewer_runs`]).
//!
//! The picker decides which tables a job takes (`picker/level0.rs`, `picker/intra_l0.rs`).

mod width;
mod windows;

use width::FULL_TIMES;
pub use width::LEVEL0_SHARE_MAX;

use std::ops::Range;

use crate::catalog::{LevelState, Version};

use super::layout::data_bytes;
use super::pacer::between;
use crate::policy::costs::Costs;
use crate::policy::layout::{Layout, Level0Width, LeveledConfig};
use crate::policy::load::LoadState;
use crate::policy::pacer::GovernorConfig;
use crate::policy::view::TreeShape;

/// Divisor: level 0 may be this part of the data.
const LEVEL0_PARTS: u64 = 5;

/// Divisor: a run counts for at most this part of the bytes at which level 0 is due, or for a full run if that is
/// more. A large ingest brings debt, but is no more urgent for that.
const LEVEL0_COUNTED_PARTS: u64 = 4;

/// Divisor: for what may be obsolete, level 0 counts for at most this part more than what it is due at. That is 72 by
/// default, and writers stop at 96. If the limits are less than a third apart, it may stop them.
const LEVEL0_PRESSED_PARTS: u64 = 3;

/// Level 0 may have this many times the runs that it would have if all were full: compactions have taken sections of
/// the older ones already.
const LEVEL0_PARTIAL: u64 = 2;

impl Layout {
    /// What level 0 counts for, in runs, when it is judged whether it holds writers up. `overwrite_ratio` is the share
    /// of what is flushed that replaces something older. Without a given ratio the bytes count in two ways: all of
    /// them against the most that level 0 is ever due at; and those that replaced something against what it is due at
    /// now, which slows writers but never stops them.
    #[must_use]
    pub fn level0_runs(&self, version: &Version, overwrite_ratio: f64) -> u64 {
        let runs = &version.level(0).runs;
        let (Some(config), Some(run_bytes)) =
            (self.following(), self.level0_run_bytes(version, overwrite_ratio))
        else {
            return runs.len() as u64;
        };
        let counted_max = (config.level0_bytes(version) / LEVEL0_COUNTED_PARTS).max(config.run_bytes());
        let counted: u64 = runs.iter().map(|run| run.bytes().min(counted_max)).sum();
        let all = counted / config.level0_counted_bytes(config.level0_bytes_max(version));
        let obsolete_max = config.l0_runs_due + config.l0_runs_due / LEVEL0_PRESSED_PARTS;
        let obsolete = (counted / run_bytes).min(obsolete_max);
        all.max(obsolete).max(runs.len() as u64)
    }

    /// Bytes of level 0 that count as one run; `None` with a given ratio, where only runs count.
    #[must_use]
    pub fn level0_run_bytes(&self, version: &Version, overwrite_ratio: f64) -> Option<u64> {
        let config = self.following()?;
        let (due_bytes, bytes_max) = (config.level0_bytes(version), config.level0_bytes_max(version));
        let full_bytes = match config.level0 {
            Level0Width::Fifth => (due_bytes as f64 / overwrite_ratio) as u64,
            // The share counts what is replaced already, and may fall faster than level 0 can follow.
            Level0Width::Mix { .. } => bytes_max,
        };
        let full_bytes = full_bytes.clamp(due_bytes, bytes_max);
        Some(config.level0_counted_bytes(full_bytes))
    }

    /// What readers must have paid for each run of level 0 before it is compacted although it is not full, in bytes
    /// ([`Costs::seeks_worth`], [`Layout::filter_probes_worth`]). Every scan seeks in each run, and lookups ask its
    /// filters. `None` if there is nothing to compact.
    #[must_use]
    pub fn price_of_level0(&self, version: &Version, costs: &Costs) -> Option<u64> {
        let l0 = version.level(0);
        let bytes = l0.bytes().saturating_add(version.bytes(1));
        let cost = costs.compaction_bytes(costs.compaction(bytes, 1));
        Some(cost.checked_div(l0.runs.len() as u64)?.max(1))
    }

    /// Bytes that could have been compacted in the time of `looks` into the filter of a run of level 0. 0 with a given
    /// ratio: only scans pay there.
    #[must_use]
    pub fn filter_probes_worth(&self, looks: u64, costs: &Costs) -> u64 {
        if self.has_intra_l0() { costs.filter_probes_worth(looks) } else { 0 }
    }

    /// The windows that are better compacted within level 0, the cheapest first, where a compaction into level 1 takes
    /// `taken` bytes down onto `met` bytes and level 0 is due for the number of its runs alone. Only an emptied run lowers
    /// their number. One of which most is gone lies scattered over all keys, so to empty it writes nearly all of level 1 again.
    /// None where what goes down is dense, since that must be written once in any case; but any where level 0 is as wide as the
    /// mix asks for, since what stays comes to lie with more.
    #[must_use]
    pub fn fewer_runs(
        &self,
        version: &Version,
        (taken, met): (u64, u64),
        costs: &Costs,
    ) -> Vec<Range<usize>> {
        let is_sparse = self.idle_parts().is_some_and(|parts| taken.saturating_mul(parts) < met);
        let may_stay = is_sparse || self.follows_mix();
        let Some(oldest) = version.level(0).runs.last().filter(|_| may_stay) else { return Vec::new() };
        let level1 = version.level(1);
        let below: u64 = oldest.iter().map(|table| level1.overlap_bytes(&table.range)).sum();
        let price = costs.compaction_bytes(costs.compaction(oldest.bytes().saturating_add(below), 1));
        self.intra_l0(version, price, costs).into_iter().map(|(window, _)| window).collect()
    }

    /// Divisor: in idle time, those parts of level 0 are compacted that hold at least this part of what lies below
    /// them. That is half as much as when level 0 is due, so a compaction writes at most twice as much for each byte.
    /// `None` with a given ratio.
    #[must_use]
    pub fn idle_parts(&self) -> Option<u64> {
        self.has_intra_l0().then_some(2 * LEVEL0_PARTS)
    }

    /// Whether level 0 is due for the number of its runs alone; never with a given ratio, where only runs count.
    pub(super) fn only_runs_due(&self, version: &Version) -> bool {
        let by_bytes = |limits: &Level0Limits| version.level(0).bytes() >= limits.bytes;
        let limits = self.following().map(|config| config.level0(version));
        limits.is_some_and(|limits| limits.score(version.level(0)) >= 1.0 && !by_bytes(&limits))
    }

    /// Whether there is intra-L0 compaction: without a given ratio.
    #[must_use]
    pub fn has_intra_l0(&self) -> bool {
        self.following().is_some()
    }

    /// The limits that follow the tree, unless the layout has a given ratio.
    fn following(&self) -> Option<&LeveledConfig> {
        match self {
            Self::Leveled(config) => Some(config).filter(|config| config.ratio.is_none()),
            Self::Tiered(_) | Self::Prefixed(_) | Self::Guarded(_) | Self::Geared(_) => None,
        }
    }

    /// When level 0 is due.
    pub(super) fn level0(&self, version: &Version) -> Level0Limits {
        match self {
            Self::Leveled(config) | Self::Prefixed(config) => config.level0(version),
            Self::Tiered(config) => Level0Limits::of_runs(config.l0_trigger),
            Self::Geared(config) => Level0Limits::of_runs(config.l0_trigger),
            Self::Guarded(config) => Level0Limits::of_runs(config.l0_trigger),
        }
    }
}

impl Layout {
    /// Measures `version`. Readers have paid `read_debt_bytes` for each run of level 0; once that is the price of its
    /// compaction, it is due.
    #[must_use]
    pub fn measure_with_debt(&self, version: &Version, read_debt_bytes: u64, costs: &Costs) -> TreeShape {
        let mut shape = TreeShape { read_debt_bytes, ..self.measure(version) };
        if self.price_of_level0(version, costs).is_some_and(|price| read_debt_bytes >= price) {
            shape.scores[0] = shape.scores[0].max(1.0);
            shape.only_runs_due = false;
        }
        shape
    }
}

impl GovernorConfig {
    /// Whether a level 0 that counts for `runs` slows writers.
    pub(super) fn level0_slows(&self, runs: u64) -> bool {
        runs >= self.l0_slow
    }

    /// Whether it stops them.
    pub(super) fn level0_stops(&self, runs: u64) -> bool {
        runs >= self.l0_stop
    }

    /// How far level 0 has come from where it slows writers (0) to where it stops them (1). Runs are a coarse signal,
    /// so the active memtable, the next run, adds a fraction.
    pub(super) fn level0_pressure(&self, load: &LoadState) -> f64 {
        // The fraction is at most half of the way.
        let next_max = (self.l0_stop.saturating_sub(self.l0_slow) as f64 / 2.0).max(1.0);
        let next =
            load.active_fill() * (load.active_bytes_max as f64 / load.l0_run_bytes()).clamp(1.0, next_max);
        let l0 = load.l0_runs as f64 + if self.level0_slows(load.l0_runs) { next } else { 0.0 };
        between(l0, self.l0_slow as f64, self.l0_stop as f64)
    }

    /// Bytes that can be written before level 0 brings writers this pressure, if nothing is compacted.
    pub(super) fn level0_room_bytes(&self, load: &LoadState, pressure: f64) -> f64 {
        let limit = self.l0_slow as f64 + pressure * self.l0_stop.saturating_sub(self.l0_slow) as f64;
        (limit - load.l0_runs as f64).max(0.0) * load.l0_run_bytes()
    }
}

/// When level 0 is due.
pub(super) struct Level0Limits {
    /// Number of its runs.
    runs: u64,
    /// Its bytes.
    bytes: u64,
    /// Bytes that may stay when it has been due.
    pub(super) left_bytes: u64,
}

impl Level0Limits {
    /// LevelDB's: by the number of runs, and all of them go.
    fn of_runs(runs: u64) -> Self {
        Self { runs, bytes: u64::MAX, left_bytes: 0 }
    }

    pub(super) fn score(&self, level: &LevelState) -> f64 {
        (level.runs.len() as f64 / self.runs as f64).max(level.bytes() as f64 / self.bytes as f64)
    }
}

impl LeveledConfig {
    /// When level 0 is due.
    pub(super) fn level0(&self, version: &Version) -> Level0Limits {
        if self.ratio.is_some() {
            return Level0Limits::of_runs(self.l0_trigger);
        }
        let bytes = self.level0_bytes(version);
        let full_runs = bytes.div_ceil(self.run_bytes());
        let runs = (LEVEL0_PARTIAL * full_runs).clamp(self.l0_trigger, self.l0_runs_max);
        Level0Limits { runs, bytes, left_bytes: bytes }
    }

    /// Bytes of a full run.
    fn run_bytes(&self) -> u64 {
        (self.level1_bytes / self.l0_trigger).max(1)
    }

    /// Bytes at which level 0 is due.
    pub(super) fn level0_bytes(&self, version: &Version) -> u64 {
        let bytes = (data_bytes(version) as f64 * self.level0.share()) as u64;
        bytes.clamp(self.level1_bytes, self.level0_bytes_max(version))
    }

    /// The same at the most.
    fn level0_bytes_max(&self, version: &Version) -> u64 {
        let full = self.run_bytes().saturating_mul(self.l0_full_max);
        let bytes = match self.level0 {
            Level0Width::Fifth => full,
            Level0Width::Mix { .. } => {
                full.saturating_mul(FULL_TIMES).min((data_bytes(version) as f64 * LEVEL0_SHARE_MAX) as u64)
            }
        };
        bytes.max(self.level1_bytes)
    }

    /// Bytes that count as a run of a level 0 that is due at `due_bytes`. Rounded up: a level 0 that counts for more
    /// runs than that also has more bytes than that (I11).
    fn level0_counted_bytes(&self, due_bytes: u64) -> u64 {
        due_bytes.div_ceil(self.l0_runs_due.max(1))
    }
}
