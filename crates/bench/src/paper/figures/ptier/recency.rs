//! Which version is the newest: the paper's rule and ours, in a model of loose levels.
//!
//! The model has keys with a prefix, tables that are cut between prefixes, and levels of tables that overlap. It flushes,
//! merges level 0, merges and moves by component, and merges within the deepest level, as the paper's sections III-B and
//! III-C have it. A lookup takes the first version that it meets, levels from the top and the highest epoch of a level
//! first. Both rules do the same to the same writes but for two things:
//!
//! * *The paper's.* A merge takes the tables that the paper names. Its outputs have the newest number of its inputs, and a
//!   moved table keeps its number.
//! * *Ours.* A merge also takes every table that overlaps its hull and lies between its inputs by age. What arrives in a level
//!   gets new epochs, in order of age.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cache, options, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};

const SEEDS: u64 = 50;
const ROUNDS: u64 = 400;
const PREFIXES: u64 = 8;
const KEYS_PER_PREFIX: u64 = 3;

/// The last of these is the deepest.
const LEVELS: usize = 4;
const LEVEL0_TABLES: usize = 2;
const LEVEL_TABLES: usize = 5;

/// What says which of two tables of a level is newer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Paper,
    Closure,
}

type Key = (u64, u64);

#[derive(Clone)]
struct Table {
    epoch: u64,
    /// The version of each key; never empty.
    entries: BTreeMap<Key, u64>,
}

impl Table {
    fn prefixes(&self) -> BTreeSet<u64> {
        self.entries.keys().map(|(prefix, _)| *prefix).collect()
    }

    fn is_single(&self) -> bool {
        self.prefixes().len() == 1
    }

    fn range(&self) -> (Key, Key) {
        let ends = (self.entries.first_key_value(), self.entries.last_key_value());
        (ends.0.map_or((0, 0), |(key, _)| *key), ends.1.map_or((0, 0), |(key, _)| *key))
    }

    fn overlaps(&self, (from, to): (Key, Key)) -> bool {
        let (start, end) = self.range();
        start <= to && from <= end
    }
}

/// A store in memory.
struct Model {
    rule: Rule,
    rng: Rng,
    levels: [Vec<Table>; LEVELS],
    newest: BTreeMap<Key, u64>,
    version: u64,
    epoch: u64,
}

impl Model {
    fn new(rule: Rule, seed: u64) -> Self {
        let rng = Rng::new(seed);
        Self { rule, rng, levels: Default::default(), newest: BTreeMap::new(), version: 0, epoch: 0 }
    }

    /// One flush, and what it makes due.
    fn round(&mut self) {
        let mut entries = BTreeMap::new();
        for _ in 0..=self.rng.below(4) {
            let key = (self.rng.below(PREFIXES), self.rng.below(KEYS_PER_PREFIX));
            self.version += 1;
            entries.insert(key, self.version);
            self.newest.insert(key, self.version);
        }
        self.epoch += 1;
        self.levels[0].push(Table { epoch: self.epoch, entries });
        if self.levels[0].len() > LEVEL0_TABLES {
            let tables = std::mem::take(&mut self.levels[0]);
            let merged = self.merge(&tables);
            self.arrive(1, merged);
        }
        for level in 1..LEVELS - 1 {
            if self.levels[level].len() > LEVEL_TABLES {
                self.sink(level);
            }
        }
        if self.rng.below(3) == 0 {
            self.merge_within(LEVELS - 1);
        }
    }

    /// One table of `tables` for every prefix or two, with the newest epoch among them.
    fn merge(&mut self, tables: &[Table]) -> Vec<Table> {
        let mut by_age: Vec<&Table> = tables.iter().collect();
        by_age.sort_by_key(|table| table.epoch);
        let epoch = by_age.last().map_or(0, |table| table.epoch);
        let mut all = BTreeMap::new();
        by_age
            .iter()
            .for_each(|table| all.extend(table.entries.iter().map(|(key, version)| (*key, *version))));
        let mut outputs: Vec<Table> = Vec::new();
        let mut last = None;
        for (key, version) in all {
            let is_new_prefix = last.replace(key.0) != Some(key.0);
            if outputs.is_empty() || is_new_prefix && self.rng.below(2) == 0 {
                outputs.push(Table { epoch, entries: BTreeMap::new() });
            }
            if let Some(output) = outputs.last_mut() {
                output.entries.insert(key, version);
            }
        }
        outputs
    }

    /// `tables` come to lie in `level`, above what is there.
    fn arrive(&mut self, level: usize, mut tables: Vec<Table>) {
        tables.sort_by_key(|table| table.epoch);
        if self.rule == Rule::Closure {
            for table in &mut tables {
                self.epoch += 1;
                table.epoch = self.epoch;
            }
        }
        self.levels[level].extend(tables);
    }

    /// Merges and moves all of `level` into the next.
    fn sink(&mut self, level: usize) {
        let mut arriving = Vec::new();
        for component in components(std::mem::take(&mut self.levels[level])) {
            let mut chosen = merged_of(&component);
            if self.rule == Rule::Closure {
                close(&component, &mut chosen);
            }
            let (merged, moved): (Vec<_>, Vec<_>) =
                component.into_iter().enumerate().partition(|(at, _)| chosen.contains(at));
            arriving.extend(moved.into_iter().map(|(_, table)| table));
            let merged: Vec<Table> = merged.into_iter().map(|(_, table)| table).collect();
            arriving.extend(self.merge(&merged));
        }
        self.arrive(level + 1, arriving);
    }

    /// Merges a table of `level` with those that overlap it.
    fn merge_within(&mut self, level: usize) {
        let tables = std::mem::take(&mut self.levels[level]);
        let count = tables.len() as u64;
        if count < 2 {
            self.levels[level] = tables;
            return;
        }
        let range = tables[self.rng.below(count) as usize].range();
        let overlapping = tables.iter().enumerate().filter(|(_, table)| table.overlaps(range));
        let mut chosen: BTreeSet<usize> = overlapping.map(|(at, _)| at).collect();
        if self.rule == Rule::Closure {
            close(&tables, &mut chosen);
        }
        let (merged, stay): (Vec<_>, Vec<_>) =
            tables.into_iter().enumerate().partition(|(at, _)| chosen.contains(at));
        let merged: Vec<Table> = merged.into_iter().map(|(_, table)| table).collect();
        let outputs = self.merge(&merged);
        self.levels[level] = stay.into_iter().map(|(_, table)| table).chain(outputs).collect();
    }

    /// Keys of which a lookup does not find the newest version.
    fn stale(&self) -> u64 {
        let found = |key: &Key| {
            self.levels.iter().find_map(|tables| {
                let with_key =
                    tables.iter().filter_map(|table| Some((table.epoch, *table.entries.get(key)?)));
                with_key.max_by_key(|(epoch, _)| *epoch).map(|(_, version)| version)
            })
        };
        self.newest.iter().filter(|(key, version)| found(key) != Some(**version)).count() as u64
    }
}

/// Groups of tables that overlap, directly or through others.
fn components(mut tables: Vec<Table>) -> Vec<Vec<Table>> {
    tables.sort_by_key(Table::range);
    let mut components: Vec<(Key, Vec<Table>)> = Vec::new();
    for table in tables {
        let (start, end) = table.range();
        match components.last_mut().filter(|(reach, _)| start <= *reach) {
            Some((reach, component)) => {
                *reach = end.max(*reach);
                component.push(table);
            }
            None => components.push((end, vec![table])),
        }
    }
    components.into_iter().map(|(_, component)| component).collect()
}

/// Which tables of a component the paper merges; it moves the others.
fn merged_of(component: &[Table]) -> BTreeSet<usize> {
    let everything = (0..component.len()).collect();
    match component {
        [] | [_] => BTreeSet::new(),
        [one, other] if one.is_single() == other.is_single() => everything,
        [_, _] => BTreeSet::new(),
        _ => {
            let prefixes: BTreeSet<u64> = component.iter().flat_map(Table::prefixes).collect();
            let with = |prefix: u64| -> Vec<usize> {
                let has = |at: &usize| component[*at].prefixes().contains(&prefix);
                (0..component.len()).filter(has).collect()
            };
            prefixes.into_iter().map(with).filter(|tables| tables.len() >= 3).flatten().collect()
        }
    }
}

/// Adds what overlaps the hull of `chosen` and lies between them by age, until there is no more. What has the epoch of the
/// newest is among that: it comes of the same merge, and an output of that epoch would overlap it.
fn close(tables: &[Table], chosen: &mut BTreeSet<usize>) {
    loop {
        let ranges = || chosen.iter().map(|at| tables[*at].range());
        let epochs = || chosen.iter().map(|at| tables[*at].epoch);
        let (Some(from), Some(to)) =
            (ranges().map(|range| range.0).min(), ranges().map(|range| range.1).max())
        else {
            return;
        };
        let (lowest, highest) = (epochs().min().unwrap_or(0), epochs().max().unwrap_or(0));
        let is_between =
            |table: &Table| table.overlaps((from, to)) && lowest < table.epoch && table.epoch <= highest;
        let more = (0..tables.len()).filter(|at| !chosen.contains(at) && is_between(&tables[*at]));
        let more: Vec<usize> = more.collect();
        if more.is_empty() {
            return;
        }
        chosen.extend(more);
    }
}

/// Stale lookups of a rule, of all keys after each round.
fn stale(rule: Rule, seed: u64) -> u64 {
    let mut model = Model::new(rule, seed);
    (0..ROUNDS)
        .map(|_| {
            model.round();
            model.stale()
        })
        .sum()
}

/// Stale lookups by both rules.
pub fn figure_recency(setting: &Setting) -> Result<Findings> {
    let options = options(setting, "ptier", 1, Cache::Whole)?;
    let points = |rule: Rule| -> Vec<[f64; 2]> {
        (0..SEEDS).map(|at| [at as f64, stale(rule, setting.seed.wrapping_add(at)) as f64]).collect()
    };
    let (papers, ours) = (points(Rule::Paper), points(Rule::Closure));
    let sum = |points: &[[f64; 2]]| points.iter().map(|point| point[1]).sum::<f64>();
    let y = || Axis::linear("stale lookups", "");
    Ok(Findings {
        x: Axis::linear("schedule", ""),
        relations: vec![
            Relation::within("the paper's rule: stale lookups", "above 0", 1.0..=f64::INFINITY, sum(&papers)),
            Relation::within("closure: stale lookups", "0", 0.0..=0.0, sum(&ours)),
        ],
        series: vec![
            series("the paper's rule", &options, y(), papers),
            series("closure", &options, y(), ours),
        ],
        deviations: vec![
            "a model of tables in memory; the store itself is tested against a model of its answers",
        ],
        machine: setting.machine.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rule_shows_old_versions_and_closure_does_not() {
        let sum = |rule| (0..10).map(|seed| stale(rule, seed)).sum::<u64>();
        assert!(sum(Rule::Paper) > 0);
        assert_eq!(sum(Rule::Closure), 0);
    }
}
