//! How a level is built, and when it is too large.
//!
//! `Leveled` is LevelDB's: runs of flushed tables in level 0, one run in every deeper level, limits that grow by a
//! ratio. A level is due at score 1: level 0 by its number of runs, a deeper one by its bytes. The deepest
//! level has nowhere to go and is never due. Level 0 is due as well once readers have paid for its compaction; without a given ratio they
//! may pay for less before: that runs of it become one.
//!
//! Without a given ratio the limits follow the tree. A level costs each byte that goes through it about one write, and half
//! a write for each time that it is larger than the one above: behind the cursor, which goes round, the target is emptier
//! than at the place that is reached last. Level 0 is a level like the others here: it is compacted in sections (`picker/level0.rs`), each
//! where it holds most, so it is due by its bytes, a fifth of the data within bounds, and what it holds beyond them is what must
//! go. The deepest level holds what there is, and between the two as many levels as cost least, in writes and in space, grow by one
//! ratio. That is none at all up to 7 GiB: of 5 GiB, updates of any of the records take 1.22 times their space by the plans alone and write
//! each byte 3.5 times; of 8 GiB with a level between, 1.41 and 4.0 times. With LevelDB's level 1 and ratio of 10, each byte is written once more on its way through
//! a level 1 that is no larger than level 0, and the deepest level but one is full however little lies below it.
//! Lookups ask more filters of level 0, and fewer of other levels; readers pay for a compaction where that is worth it.
//! (`policy/tests/volume.rs` reckons the difference: of what is written with the ratio of 10, from 3 GiB on about half is left.)
//! What counts as data is the largest level below level 0: it has no key twice, so not less than that is live, and updates, however
//! far compactions are behind, do not make the limits larger.
//! A tree that has outgrown its levels moves its tables into a new deepest one; nothing is written for that.

use std::cmp::Reverse;
use std::ops::Range;

use crate::catalog::{LevelState, Version};
use crate::types::{KeyRange, LEVELS, UpperBound};

use super::expiry::Expiring;
use crate::policy::clusters::{EVEN_PARTS, clusters};

/// What a compaction gets through in a microsecond, in bytes.
const COMPACTED_BYTES_PER_MICRO: u64 = 525;
/// What compacting costs as much as one seek does whose block is cached, in bytes: 0.7 us, which one run more takes of a scan of 50 rows.
const SEEK_CACHED_BYTES: u64 = 3 << 7;
/// The same for a look into a filter, of the 30 ns that one run more takes of a lookup.
const FILTER_PROBE_BYTES: u64 = 1 << 4;
/// Where blocks must be read, a scan takes for each run about so many times what a read does: it often reads two of them, and each
/// is missed, checked and let go. (3 us, where reads from the operating system's memory take 1.9.)
const READ_TIMES: u64 = 2;
/// At most so much for one seek: LevelDB's estimate of one on a disk (`db/version_set.cc`: `allowed_seeks`). Where reads take
/// longer, compactions do as well.
const SEEK_BYTES_MAX: u64 = 16 << 10;

/// What a compaction costs however small it is, for its barriers, in bytes of compaction.
const COMPACTION_BYTES: u64 = 1 << 20;

/// Newest runs of level 0 among which windows to compact within level 0 are sought.
const INTRA_L0_RUNS_MAX: usize = 64;

/// As many windows are looked at, where nothing of the cheapest can be compacted within level 0.
const INTRA_L0_COMPACTIONS_MAX: usize = 16;

/// The layouts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Layout {
    /// One run per level below level 0.
    Leveled(LeveledConfig),
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
    /// Without a ratio, level 0 is due at as many bytes as so many full runs have, at the latest; at least `l0_trigger`.
    pub l0_full_max: u64,
    /// Without a ratio, level 0 is due at so many runs, whatever they hold; at least `l0_trigger`.
    pub l0_runs_max: u64,
    /// Without a ratio, level 0 counts for so many runs where it is due by its bytes.
    pub l0_runs_due: u64,
}

/// Level 0 may be one part in so many of the data.
const LEVEL0_PARTS: u64 = 5;

/// A run counts for one part in so many of what level 0 is due at, or for a full one, at the most: what a large ingest brings is debt,
/// but no more of a hurry for that.
const LEVEL0_COUNTED_PARTS: u64 = 4;

/// For what may be obsolete, level 0 counts for no more than so large a part beyond what it is due at: 72 by default, where writers
/// stop at 96. With limits of less than a third between the two, it may stop them.
const LEVEL0_PRESSED_PARTS: u64 = 3;

/// Level 0 may have so many times the runs that it had if all were full: sections of the older ones are compacted already.
const LEVEL0_PARTIAL: u64 = 2;

/// What a level costs beside the ratio, in writes: one, and half a one for the readers, who ask all levels.
const LEVEL_COST: f64 = 1.5;

/// What a level that is as large as the data would be worth in writes, for the space that it takes.
const SPACE_COST: f64 = 6.0;

/// A version measured by a layout.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TreeShape {
    /// Fill of each level; due from 1 on.
    pub scores: [f64; LEVELS],
    /// Bytes to compact until no level is due, as far as can be told.
    pub debt_bytes: u64,
    /// What readers have paid for each run of level 0, in bytes of compaction ([`seeks_worth`], [`Layout::filter_probes_worth`]).
    pub read_debt_bytes: u64,
    /// Whether nobody is there, so that a job holds up nobody.
    pub idle: bool,
    /// Which share of what is flushed takes the place of something older.
    pub overwrite_ratio: f64,
    /// What has expired of it; `None` if values live for ever.
    pub expiring: Option<Expiring>,
    /// No table is compacted alone, but for who asks: that has failed a while ago.
    pub put_off: bool,
}

impl Layout {
    /// Measures `version`.
    #[must_use]
    pub fn measure(&self, version: &Version) -> TreeShape {
        TreeShape {
            scores: self.scores(version),
            debt_bytes: self.debt(version),
            read_debt_bytes: 0,
            idle: false,
            overwrite_ratio: 1.0,
            expiring: None,
            put_off: false,
        }
    }

    /// Bytes at which each level is due: 0 for level 0, whose runs are counted, and [`u64::MAX`] for one that never is.
    #[must_use]
    pub fn limits(&self, version: &Version) -> [u64; LEVELS] {
        let Self::Leveled(config) = self;
        config.limits(version)
    }

    /// Fill of each level; due from 1 on.
    #[must_use]
    pub fn scores(&self, version: &Version) -> [f64; LEVELS] {
        let Self::Leveled(config) = self;
        let (mut scores, limits) = ([0.0; LEVELS], config.limits(version));
        for (level, state) in version.levels().take(LEVELS - 1) {
            scores[usize::from(level)] = match level {
                0 => config.level0(version).score(state),
                _ => state.bytes() as f64 / limits[usize::from(level)] as f64,
            };
        }
        scores
    }

    /// Bytes to compact until no level is due: what each level holds above its limit goes down and is written again with
    /// what it meets there, on average the ratio of the two levels' sizes. (RocksDB reckons its pending bytes so.) What
    /// meets nothing moves, and is no debt.
    #[must_use]
    pub fn debt(&self, version: &Version) -> u64 {
        let Self::Leveled(config) = self;
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

impl Layout {
    /// What level 0 counts for, in runs, where they hold writers up, if of what is flushed a share of `overwrite_ratio` takes the place of
    /// something older. Without a given ratio its bytes count against what level 0 is ever due at; and those that took the place of
    /// something against what it is due at now, but for that alone writers are slowed and not stopped.
    #[must_use]
    pub fn level0_runs(&self, version: &Version, overwrite_ratio: f64) -> u64 {
        let Self::Leveled(config) = self;
        let runs = &version.level(0).runs;
        let Some(run_bytes) = self.level0_run_bytes(version, overwrite_ratio) else {
            return runs.len() as u64;
        };
        let counted_max = (config.level0_bytes(version) / LEVEL0_COUNTED_PARTS).max(config.run_bytes());
        let counted: u64 = runs.iter().map(|run| run.bytes().min(counted_max)).sum();
        let all = counted / config.level0_counted_bytes(config.level0_bytes_max());
        let obsolete_max = config.l0_runs_due + config.l0_runs_due / LEVEL0_PRESSED_PARTS;
        let obsolete = (counted / run_bytes).min(obsolete_max);
        all.max(obsolete).max(runs.len() as u64)
    }

    /// Bytes of level 0 that count as a run there, if they do.
    #[must_use]
    pub fn level0_run_bytes(&self, version: &Version, overwrite_ratio: f64) -> Option<u64> {
        let Self::Leveled(config) = self;
        let due_bytes = config.level0_bytes(version);
        let full_bytes = (due_bytes as f64 / overwrite_ratio) as u64;
        let full_bytes = full_bytes.clamp(due_bytes, config.level0_bytes_max());
        config.ratio.is_none().then(|| config.level0_counted_bytes(full_bytes))
    }

    /// The level for new tables of `bytes` together within `range` that are newer than everything: the deepest such that
    /// nothing lies in or above it in that range, but no deeper than the tree or than they need. Level 0 if need be.
    #[must_use]
    pub fn level_for_new(&self, version: &Version, range: &KeyRange, bytes: u64) -> u8 {
        let Self::Leveled(config) = self;
        let overlaps =
            |level: u8| version.level(level).runs.iter().any(|run| run.overlapping(range).next().is_some());
        let limits = config.limits(version);
        let fits = |level: &u8| version.bytes(*level).saturating_add(bytes) < limits[usize::from(*level)];
        let last = LEVELS as u8 - 1;
        let passes = |level: &u8| planted!("ingest-below-what-is-older") || !overlaps(*level);
        let free = (0..=last).take_while(passes).last().unwrap_or(0);
        let needed = (1..last).find(fits).unwrap_or(last);
        free.min(needed.max(version.deepest().unwrap_or(0)))
    }
}

impl Layout {
    /// What readers must have paid for a run ([`seeks_worth`], [`Layout::filter_probes_worth`]) for level 0, though not full, to be compacted, in bytes:
    /// every scan seeks in each of its runs, and lookups ask their filters. `None` if there is nothing to compact.
    #[must_use]
    pub fn price_of_level0(&self, version: &Version) -> Option<u64> {
        let l0 = version.level(0);
        let cost = l0.bytes().saturating_add(version.bytes(1)).saturating_add(COMPACTION_BYTES);
        Some(cost.checked_div(l0.runs.len() as u64)?.max(1))
    }
}

impl Layout {
    /// What could have been compacted instead of `looks` into the filter of a run of level 0, in bytes. Nothing with a given ratio,
    /// where none but scans pay.
    #[must_use]
    pub fn filter_probes_worth(&self, looks: u64) -> u64 {
        let Self::Leveled(config) = self;
        if config.ratio.is_some() { 0 } else { looks.saturating_mul(FILTER_PROBE_BYTES) }
    }

    /// The windows of neighbouring runs of level 0, newest first, that readers have paid for to be compacted within level 0 into one run, with their
    /// prices as in [`Layout::price_of_level0`]: the cheapest few, the cheapest first. What is paid for is one run less; to compact them within level 0
    /// writes no byte of the level below, and serves readers as long as level 0 stays. None with a given ratio: there, level 0 is
    /// LevelDB's.
    #[must_use]
    pub fn intra_l0(&self, version: &Version, read_debt_bytes: u64) -> Vec<(Range<usize>, u64)> {
        // No window costs less.
        let saved_max = (version.level(0).runs.len() as u64).saturating_sub(1);
        if saved_max == 0 || read_debt_bytes < COMPACTION_BYTES / saved_max {
            return Vec::new();
        }
        let windows = self.windows(version).into_iter();
        let mut windows: Vec<_> = windows.map(|window| (window.price(), window.runs)).collect();
        windows.retain(|(price, _)| *price <= read_debt_bytes);
        windows.sort_by_key(|(price, _)| *price);
        windows.truncate(INTRA_L0_COMPACTIONS_MAX);
        windows.into_iter().map(|(price, runs)| (runs, price)).collect()
    }

    /// The windows of neighbouring runs of level 0 to compact within level 0 where they are even while nobody is there: some of those of which no run holds
    /// more than a third, those that save most runs first. So a byte is written again the fewer times, the larger the run is that
    /// it lies in: on the way from full runs to a level 0 that is due, twice or three times. None with a given ratio.
    #[must_use]
    pub fn idle_intra_l0(&self, version: &Version) -> Vec<Range<usize>> {
        let mut windows = self.windows(version);
        windows.retain(|window| window.largest_bytes <= window.bytes / EVEN_PARTS);
        windows.sort_by_key(|window| (Reverse(window.saved), window.price()));
        windows.truncate(INTRA_L0_COMPACTIONS_MAX);
        windows.into_iter().map(|window| window.runs).collect()
    }

    /// While nobody is there, parts of level 0 are compacted that hold at least one part in so many of what lies below: half as much as
    /// when level 0 is due, so what is compacted is written twice as often at most. `None` with a given ratio.
    #[must_use]
    pub fn idle_parts(&self) -> Option<u64> {
        self.has_intra_l0().then_some(2 * LEVEL0_PARTS)
    }

    /// Whether runs of level 0 are compacted within level 0 at all: without a given ratio.
    #[must_use]
    pub fn has_intra_l0(&self) -> bool {
        let Self::Leveled(config) = self;
        config.ratio.is_none()
    }

    /// The windows of neighbouring runs of level 0 that share keys; none with a given ratio.
    fn windows(&self, version: &Version) -> Vec<Window> {
        let runs = &version.level(0).runs;
        let runs = if self.has_intra_l0() { &runs[..runs.len().min(INTRA_L0_RUNS_MAX)] } else { &[] };
        let clusters = clusters(runs);
        let parts_of = |run: usize| {
            let parts = clusters.iter().enumerate().map(move |(at, cluster)| (at, cluster.run_bytes[run]));
            parts.filter(|(_, bytes)| *bytes > 0).collect()
        };
        let parts: Vec<Vec<(usize, u64)>> = (0..runs.len()).map(parts_of).collect();
        let mut windows = Vec::new();
        for from in 0..runs.len() {
            // Of each run what shares an overlap cluster with others of the window; of each overlap cluster its bytes, and the only run that has any.
            let mut shared = vec![0; runs.len()];
            let mut alone: Vec<Option<(usize, u64)>> = vec![None; clusters.len()];
            let mut met = vec![false; clusters.len()];
            for to in from..runs.len() {
                for &(at, bytes) in &parts[to] {
                    if !std::mem::replace(&mut met[at], true) {
                        alone[at] = Some((to, bytes));
                        continue;
                    }
                    shared[to] += bytes;
                    if let Some((first, bytes)) = alone[at].take() {
                        shared[first] += bytes;
                    }
                }
                let saved = shared.iter().filter(|bytes| **bytes > 0).count().saturating_sub(1) as u64;
                // Without a run at either end that shares nothing, it is another window.
                if shared[from] > 0 && shared[to] > 0 {
                    let (bytes, largest_bytes) =
                        (shared.iter().sum(), shared.iter().copied().max().unwrap_or(0));
                    windows.push(Window { runs: from..to + 1, saved, bytes, largest_bytes });
                }
            }
        }
        windows
    }
}

/// Neighbouring runs of level 0 that share keys. What a run has alone in a range of keys does not count: to compact them within level 0 need not
/// write it, and what has been compacted within level 0 already is that.
struct Window {
    runs: Range<usize>,
    /// How many runs fewer there are, once they are compacted within level 0.
    saved: u64,
    bytes: u64,
    /// Of the run that has most of them.
    largest_bytes: u64,
}

impl Window {
    /// What it costs to compact them within level 0 for each run that is saved, in bytes.
    fn price(&self) -> u64 {
        self.bytes.saturating_add(COMPACTION_BYTES) / self.saved
    }
}

/// What could have been compacted instead of `seeks`, in bytes, at a time when as many blocks as `asked` tells were cached and
/// read.
#[must_use]
pub fn seeks_worth(seeks: u64, asked: &BlocksAsked) -> u64 {
    let BlocksAsked { cached, read, read_nanos } = *asked;
    let waited = read_nanos / 1000 * READ_TIMES * COMPACTED_BYTES_PER_MICRO;
    let waited = waited.min(read.saturating_mul(SEEK_BYTES_MAX - SEEK_CACHED_BYTES));
    seeks.saturating_mul(SEEK_CACHED_BYTES + waited / cached.saturating_add(read).max(1))
}

/// Blocks that were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlocksAsked {
    /// Number of those that were in the cache.
    pub cached: u64,
    /// Number of those that had to be read.
    pub read: u64,
    /// Time that reading took, in nanoseconds.
    pub read_nanos: u64,
}

impl BlocksAsked {
    /// Those since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cached: self.cached.saturating_sub(before.cached),
            read: self.read.saturating_sub(before.read),
            read_nanos: self.read_nanos.saturating_sub(before.read_nanos),
        }
    }
}

/// Bytes of `level` that would all move: what is behind its cursor, if nothing of the next level is.
fn moving_bytes(version: &Version, level: u8) -> u64 {
    let behind =
        |level: u8, range: &KeyRange| version.level(level).run().map_or(0, |run| run.overlap_bytes(range));
    let start = version.level(level).cursor.clone().unwrap_or_default();
    let range = KeyRange { start, end: UpperBound::Unbounded };
    if behind(level + 1, &range) == 0 { behind(level, &range) } else { 0 }
}

/// When level 0 is due.
struct Level0Limits {
    /// Number of its runs.
    runs: u64,
    /// Its bytes.
    bytes: u64,
    /// Bytes that may stay when it has been due.
    left_bytes: u64,
}

impl Level0Limits {
    fn score(&self, level: &LevelState) -> f64 {
        (level.runs.len() as f64 / self.runs as f64).max(level.bytes() as f64 / self.bytes as f64)
    }
}

impl LeveledConfig {
    fn limits(&self, version: &Version) -> [u64; LEVELS] {
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

    /// When level 0 is due.
    fn level0(&self, version: &Version) -> Level0Limits {
        if self.ratio.is_some() {
            return Level0Limits { runs: self.l0_trigger, bytes: u64::MAX, left_bytes: 0 };
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
    fn level0_bytes(&self, version: &Version) -> u64 {
        (data_bytes(version) / LEVEL0_PARTS).clamp(self.level1_bytes, self.level0_bytes_max())
    }

    /// The same at the most.
    fn level0_bytes_max(&self) -> u64 {
        self.run_bytes().saturating_mul(self.l0_full_max).max(self.level1_bytes)
    }

    /// What counts as a run of a level 0 that is due at `due_bytes`: rounded up, so that what counts for more runs than that is more
    /// bytes, too (I11).
    fn level0_counted_bytes(&self, due_bytes: u64) -> u64 {
        due_bytes.div_ceil(self.l0_runs_due.max(1))
    }

    /// Bytes at which level 1 is due, the ratio of each level to the one above, and the number of the deepest level.
    fn even(&self, version: &Version) -> (f64, f64, usize) {
        // Half: with all of it, a load of 8 GiB writes a quarter more by the plans alone (`policy/tests/volume.rs`).
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
fn data_bytes(version: &Version) -> u64 {
    let largest = version.levels().skip(1).map(|(_, state)| state.bytes()).max().unwrap_or(0);
    if largest > 0 { largest } else { version.bytes(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_are_worth_what_their_blocks_cost() {
        let asked = |cached, read, micros: u64| BlocksAsked { cached, read, read_nanos: 1000 * micros };
        assert_eq!(seeks_worth(256, &BlocksAsked::default()), 256 * SEEK_CACHED_BYTES);
        assert_eq!(seeks_worth(256, &asked(1000, 0, 0)), 256 * SEEK_CACHED_BYTES);
        let (in_memory, on_disk) = (asked(0, 1000, 2000), asked(0, 1000, 92_000));
        assert_eq!(
            seeks_worth(256, &in_memory),
            256 * (SEEK_CACHED_BYTES + 2 * READ_TIMES * COMPACTED_BYTES_PER_MICRO)
        );
        assert_eq!(seeks_worth(256, &on_disk), 256 * SEEK_BYTES_MAX);
        assert_eq!(seeks_worth(2, &asked(7, 7, 7 * 92)), SEEK_CACHED_BYTES + SEEK_BYTES_MAX);
        assert_eq!(seeks_worth(u64::MAX, &on_disk), u64::MAX);
        let later = asked(9, 8, 7).since(&asked(1, 2, 3));
        assert_eq!((later.cached, later.read, later.read_nanos), (8, 6, 4000));
    }
}
