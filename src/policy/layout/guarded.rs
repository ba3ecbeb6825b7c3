//! The guarded layout, PebblesDB's: keys that part each level into ranges, within which tables may overlap.
//!
//! A key is a guard by its hash alone: of a level if the hash ends in so many ones, two fewer from each level to the next. So a
//! guard of a level is one of all deeper levels, and which keys are guards needs no record. **Which guards a level has** can be
//! read off the tables. A compaction cuts its outputs at every guard of its target that it reads (`policy::cutter`), so a
//! table begins there, and whoever compacts that table further down cuts there again. Hence the guards of a level are those
//! starts of tables, of any level, that are guards of it. A guard whose key has been deleted goes with the last table that
//! begins at it.
//!
//! Guards part the tables of a level into [`GuardGroup`]s. A new guard may lie inside of tables that are there already:
//! these hold the groups on both of its sides together until they are compacted. No two groups share a key, so a group is
//! closed: with a table it has all tables of the level that overlap it (I2).
//!
//! A level is as full as its worst group: by the runs of the group, or by its bytes. (PebblesDB counts the tables of a guard.
//! A run that has been cut by size counts once here, for readers ask one of its tables.) The deepest level has nowhere to go: its
//! groups are compacted in place, and only runs count. So is the level above it while that is small beside it.
//!
//! Source: `src/db/version_set.cc` and `src/db/write_batch.cc` of PebblesDB. Its hash is MurmurHash3; this one is XXH3,
//! which the crate has for other things.

use std::collections::BTreeSet;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::{TableMeta, Version};
use crate::types::{Key, KeyRange, LEVELS};

/// The number of the deepest level.
const LAST: u8 = LEVELS as u8 - 1;

/// The level above the deepest is compacted in place while the deepest has more than this many times its bytes.
const IN_PLACE_RATIO: u64 = 25;

/// A guard may have twice the bytes from level to level, so many times.
const DOUBLINGS: u8 = 5;

/// A table, and the place of its run in the level.
type InRun<'a> = (usize, &'a Arc<TableMeta>);

/// Limits of a guarded tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardedConfig {
    /// Runs at which level 0 is due, at least 1.
    pub l0_trigger: u64,
    /// Ones in which the hash of a guard of level 0 would end, were it parted.
    pub top_bits: u32,
    /// Ones fewer from each level to the next, at least 1.
    pub bits_step: u32,
    /// A guard with more runs than this is due, at least 1.
    pub runs_max: u64,
    /// Bytes at which a guard of level 0 would be due; twice as many in each deeper level, up to 32 times.
    pub guard_bytes: u64,
}

/// The guards of all levels, in order.
pub(in crate::policy) struct GuardKeys<'a> {
    /// With the shallowest level of which each is a guard.
    keys: Vec<(&'a Key, u8)>,
}

/// Tables of a level between two of its guards, or more where tables lie over a guard.
pub(in crate::policy) struct GuardGroup<'a> {
    /// Newest run first, in key order.
    pub tables: Vec<&'a Arc<TableMeta>>,
    /// Hull of the tables.
    pub range: KeyRange,
    /// Runs that have one of them.
    pub runs: u64,
    /// Length of all tables, in bytes.
    pub bytes: u64,
    /// Whether a guard lies inside of a table.
    pub is_straddled: bool,
}

impl GuardedConfig {
    /// The shallowest level below level 0 of which `key` is a guard.
    fn level_of(&self, key: &[u8]) -> Option<u8> {
        let ones = xxh3_64(key).trailing_ones();
        (1..=LAST).find(|level| ones >= self.bits(*level))
    }

    /// Whether `key` is a guard of `level`.
    #[must_use]
    pub fn is_guard(&self, key: &[u8], level: u8) -> bool {
        xxh3_64(key).trailing_ones() >= self.bits(level)
    }

    fn bits(&self, level: u8) -> u32 {
        self.top_bits.saturating_sub(self.bits_step.saturating_mul(level.into()))
    }

    /// The guards that the tables of `version` show.
    pub(in crate::policy) fn guards<'a>(&self, version: &'a Version) -> GuardKeys<'a> {
        let starts = version.tables().map(|(_, table)| &table.range.start);
        let mut keys: Vec<_> = starts.filter_map(|start| Some((start, self.level_of(start)?))).collect();
        keys.sort_unstable();
        keys.dedup();
        GuardKeys { keys }
    }

    /// The groups of a level below level 0, in key order.
    pub(in crate::policy) fn groups<'a>(
        &self,
        version: &'a Version,
        guards: &GuardKeys<'_>,
        level: u8,
    ) -> Vec<GuardGroup<'a>> {
        let guards = guards.of_level(level);
        let runs = &version.level(level).runs;
        let mut tables: Vec<_> =
            (0..).zip(runs).flat_map(|(run, tables)| tables.iter().map(move |table| (run, table))).collect();
        tables.sort_by(|(_, one): &(usize, _), (_, other)| one.range.start.cmp(&other.range.start));
        // Each with the tables' runs, and how many guards begin before its end.
        let mut groups: Vec<(usize, Vec<InRun<'_>>)> = Vec::new();
        for (run, table) in tables {
            let from = guards.partition_point(|guard| **guard <= table.range.start);
            let to = guards.partition_point(|guard| table.range.end.admits(guard));
            match groups.last_mut().filter(|(reach, _)| from <= *reach) {
                Some((reach, group)) => {
                    *reach = to.max(*reach);
                    group.push((run, table));
                }
                None => groups.push((to, vec![(run, table)])),
            }
        }
        groups.into_iter().filter_map(|(_, tables)| GuardGroup::of(tables, &guards)).collect()
    }

    /// Whether the groups of `level` are compacted in place.
    #[must_use]
    pub fn is_in_place(&self, version: &Version, level: u8) -> bool {
        let is_small = |level| version.bytes(level).saturating_mul(IN_PLACE_RATIO) < version.bytes(level + 1);
        level == LAST || level + 1 == LAST && is_small(level)
    }

    /// How urgent a compaction of `group` of `level` is; due from 1.
    pub(in crate::policy) fn group_score(&self, version: &Version, level: u8, group: &GuardGroup<'_>) -> f64 {
        let by_runs = group.runs as f64 / (self.runs_max + 1) as f64;
        // In place nothing would become less.
        if self.is_in_place(version, level) {
            return by_runs;
        }
        by_runs.max(group.bytes as f64 / self.guard_bytes_max(level) as f64)
    }

    /// Bytes at which a guard of `level` is due.
    pub(in crate::policy) fn guard_bytes_max(&self, level: u8) -> u64 {
        self.guard_bytes.saturating_mul(1 << level.min(DOUBLINGS))
    }

    /// Fill of each level below level 0; due from 1 on.
    pub(super) fn scores(&self, version: &Version) -> [f64; LEVELS] {
        let guards = self.guards(version);
        let mut scores = [0.0; LEVELS];
        for level in 1..=LAST {
            let groups = self.groups(version, &guards, level);
            let worst = groups.iter().map(|group| self.group_score(version, level, group));
            scores[usize::from(level)] = worst.fold(0.0, f64::max);
        }
        scores
    }

    /// Bytes of what is due. Each is written once on its way down.
    pub(super) fn debt(&self, version: &Version) -> u64 {
        let guards = self.guards(version);
        let is_level0_due = version.level(0).runs.len() as u64 >= self.l0_trigger;
        let level0 = if is_level0_due { version.bytes(0) } else { 0 };
        let due = |level: u8| {
            let groups = self.groups(version, &guards, level);
            let due = groups.iter().filter(|group| self.group_score(version, level, group) >= 1.0);
            due.map(|group| group.bytes).sum::<u64>()
        };
        (1..=LAST).map(due).fold(level0, u64::saturating_add)
    }
}

impl<'a> GuardKeys<'a> {
    /// Those of a level, in order.
    pub fn of_level(&self, level: u8) -> Vec<&'a Key> {
        self.keys.iter().filter(|(_, from)| *from <= level).map(|(key, _)| *key).collect()
    }
}

impl<'a> GuardGroup<'a> {
    /// The group of `tables`, each with its run, in the order of their starts; nothing if there are none.
    fn of(mut tables: Vec<InRun<'a>>, guards: &[&Key]) -> Option<Self> {
        let ranges = tables.iter().map(|(_, table)| &table.range);
        let range = ranges.fold(None, |hull: Option<KeyRange>, range| {
            Some(hull.map_or_else(|| range.clone(), |hull| hull.hull(range)))
        })?;
        let is_inside = |table: &TableMeta| {
            let behind = guards.partition_point(|guard| **guard <= table.range.start);
            guards.get(behind).is_some_and(|guard| table.range.end.admits(guard))
        };
        tables.sort_by_key(|(run, _)| *run);
        Some(Self {
            runs: tables.iter().map(|(run, _)| *run).collect::<BTreeSet<_>>().len() as u64,
            bytes: tables.iter().map(|(_, table)| table.bytes()).sum(),
            is_straddled: tables.iter().any(|(_, table)| is_inside(table)),
            tables: tables.into_iter().map(|(_, table)| table).collect(),
            range,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: GuardedConfig =
        GuardedConfig { l0_trigger: 2, top_bits: 8, bits_step: 1, runs_max: 2, guard_bytes: 1 << 20 };

    #[test]
    fn a_guard_of_a_level_is_one_of_all_deeper_levels() {
        let mut counts = [0; LEVELS];
        for number in 0..20_000_u32 {
            let key = number.to_string().into_bytes();
            let first = CONFIG.level_of(&key);
            for level in 1..=LAST {
                let is_guard = CONFIG.is_guard(&key, level);
                assert_eq!(is_guard, first.is_some_and(|first| first <= level));
                counts[usize::from(level)] += u32::from(is_guard);
            }
        }
        // One key in so many, and twice as many from level to level.
        for level in 1..=LAST {
            let expected = 20_000 >> CONFIG.bits(level);
            let found = counts[usize::from(level)];
            assert!((expected / 2..expected * 2).contains(&found), "{level}: {found} of {expected}");
        }
    }
}
