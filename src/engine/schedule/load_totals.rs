//! The load of all trees, kept as sums and maxima: a sample looks at the trees that have changed since the last one.
//!
//! Invariant: the totals are those of the parts, one for each tree, as it was when it was looked at last; and a tree that
//! has changed since is listed in [`Changes`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::jobs::flush::{GROUP_BYTES, GROUP_MIN, SMALL_BYTES};
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::changes::{Changes, Watcher};
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::settings::Settings;
use crate::options::PackLayout;
use crate::policy::{self, LoadState};
use crate::types::{KeyspaceId, LEVELS};

/// What one tree adds to the load.
#[derive(Debug, Default)]
struct TreeLoad {
    active_bytes: u64,
    sealed_bytes: u64,
    /// Sealed memtables with flushes of their own.
    large_memtables: u64,
    /// Those that may be flushed with others, and their bytes.
    small_memtables: u64,
    small_bytes: u64,
    l0_runs: u64,
    /// [`u64::MAX`] where only runs count.
    l0_run_bytes: u64,
    l0_bytes: u64,
    l0_flushed_runs: u64,
    l0_part_runs: u64,
    debt_bytes: u64,
    /// Levels that hold anything: which, its bytes, and the bytes at which it is due.
    levels: Vec<(u8, u64, u64)>,
}

impl TreeLoad {
    fn of(tree: &Tree, settings: &Settings) -> Self {
        let (view, policy) = (tree.view(), &settings.policy);
        let (overwrite_ratio, layout) = (tree.overwrite_ratio.share(), tree.layout(policy));
        let memtable_bytes = settings.limits.memtable_bytes;
        let (flushed, parts) = policy::flushed_and_parts(&view.version, memtable_bytes);
        let mut load = Self {
            active_bytes: view.active.bytes(),
            l0_runs: layout.level0_runs(&view.version, overwrite_ratio),
            l0_run_bytes: layout.level0_run_bytes(&view.version, overwrite_ratio).unwrap_or(u64::MAX),
            l0_bytes: view.version.bytes(0),
            l0_flushed_runs: flushed as u64,
            l0_part_runs: parts as u64,
            debt_bytes: layout.debt(&view.version),
            ..Self::default()
        };
        for bytes in view.sealed.iter().map(|sealed| sealed.memtable.bytes()) {
            load.sealed_bytes += bytes;
            if bytes < SMALL_BYTES && policy.files.packs != PackLayout::OneTable {
                load.small_memtables += 1;
                load.small_bytes += bytes;
            } else {
                load.large_memtables += 1;
            }
        }
        let levels = view.version.levels().map(|(level, state)| (level, state.bytes()));
        let levels = levels.zip(layout.limits(&view.version)).filter(|((_, bytes), _)| *bytes > 0);
        load.levels = levels.map(|((level, bytes), bytes_max)| (level, bytes, bytes_max)).collect();
        load
    }
}

/// Numbers of which the greatest is sought, each with how many there are.
#[derive(Debug)]
struct Counted<T>(BTreeMap<T, u64>);

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Copy> Counted<T> {
    fn add(&mut self, number: T) {
        *self.0.entry(number).or_default() += 1;
    }

    fn remove(&mut self, number: T) {
        if let Some(count) = self.0.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&number);
            }
        }
    }

    fn max(&self) -> Option<T> {
        self.0.last_key_value().map(|(number, _)| *number)
    }
}

/// The load of several trees. Sums that may not fit are wider than a word, so that what was added can be taken off.
#[derive(Debug, Default)]
pub(super) struct Totals {
    active_bytes: u64,
    sealed_bytes: u64,
    large_memtables: u64,
    small_memtables: u64,
    small_bytes: u64,
    debt_bytes: u128,
    levels: [(u64, u128); LEVELS],
    /// Of trees that have any, their small memtables.
    small: Counted<u64>,
    small_trees: usize,
    /// Runs of level 0, and of trees with as many the fewest bytes that count as one.
    l0_runs: Counted<(u64, Reverse<u64>)>,
    l0_bytes: Counted<u64>,
    l0_flushed_runs: Counted<u64>,
    l0_part_runs: Counted<u64>,
}

impl Totals {
    /// Those of `trees`, as they are now.
    pub(super) fn of<'a>(trees: impl Iterator<Item = &'a Arc<Tree>>, settings: &Settings) -> Self {
        let mut totals = Self::default();
        trees.for_each(|tree| totals.add(&TreeLoad::of(tree, settings)));
        totals
    }

    fn add(&mut self, part: &TreeLoad) {
        self.active_bytes += part.active_bytes;
        self.sealed_bytes += part.sealed_bytes;
        self.large_memtables += part.large_memtables;
        self.small_memtables += part.small_memtables;
        self.small_bytes += part.small_bytes;
        self.debt_bytes += u128::from(part.debt_bytes);
        for (level, bytes, bytes_max) in &part.levels {
            let sum = &mut self.levels[usize::from(*level)];
            *sum = (sum.0 + bytes, sum.1 + u128::from(*bytes_max));
        }
        if part.small_memtables > 0 {
            self.small.add(part.small_memtables);
            self.small_trees += 1;
        }
        self.l0_runs.add((part.l0_runs, Reverse(part.l0_run_bytes)));
        self.l0_bytes.add(part.l0_bytes);
        self.l0_flushed_runs.add(part.l0_flushed_runs);
        self.l0_part_runs.add(part.l0_part_runs);
    }

    fn remove(&mut self, part: &TreeLoad) {
        self.active_bytes -= part.active_bytes;
        self.sealed_bytes -= part.sealed_bytes;
        self.large_memtables -= part.large_memtables;
        self.small_memtables -= part.small_memtables;
        self.small_bytes -= part.small_bytes;
        self.debt_bytes -= u128::from(part.debt_bytes);
        for (level, bytes, bytes_max) in &part.levels {
            let sum = &mut self.levels[usize::from(*level)];
            *sum = (sum.0 - bytes, sum.1 - u128::from(*bytes_max));
        }
        if part.small_memtables > 0 {
            self.small.remove(part.small_memtables);
            self.small_trees -= 1;
        }
        self.l0_runs.remove((part.l0_runs, Reverse(part.l0_run_bytes)));
        self.l0_bytes.remove(part.l0_bytes);
        self.l0_flushed_runs.remove(part.l0_flushed_runs);
        self.l0_part_runs.remove(part.l0_part_runs);
    }

    /// Bytes of active memtables.
    pub(super) fn active_bytes(&self) -> u64 {
        self.active_bytes
    }

    /// Bytes of memtables.
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.active_bytes + self.sealed_bytes
    }

    /// Flushes that the sealed memtables take, or that as many bytes in memtables of `memtable_bytes` would take. Small ones
    /// go together, one of each tree at a time.
    fn flushes(&self, memtable_bytes: u64) -> u64 {
        let group_bytes = GROUP_BYTES.min(memtable_bytes.max(1));
        let small = if self.small_trees < GROUP_MIN {
            self.small_memtables
        } else {
            self.small.max().unwrap_or(0).max(self.small_bytes.div_ceil(group_bytes))
        };
        self.large_memtables + small
    }

    /// `load`, with what the trees have come to.
    pub(super) fn fill(&self, mut load: LoadState) -> LoadState {
        let clamp = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        let (l0_runs, Reverse(run_bytes)) = self.l0_runs.max().unwrap_or((0, Reverse(u64::MAX)));
        load.active_bytes = self.active_bytes;
        load.sealed_memtables = self.flushes(load.active_bytes_max);
        load.sealed_bytes = self.sealed_bytes;
        load.l0_runs = l0_runs;
        load.l0_run_bytes = (run_bytes < u64::MAX).then_some(run_bytes);
        load.l0_bytes = self.l0_bytes.max().unwrap_or(0);
        load.l0_flushed_runs = self.l0_flushed_runs.max().unwrap_or(0);
        load.l0_part_runs = self.l0_part_runs.max().unwrap_or(0);
        load.debt_bytes = clamp(self.debt_bytes);
        for (now, (bytes, bytes_max)) in load.levels.iter_mut().zip(self.levels) {
            (now.bytes, now.bytes_max) = (bytes, clamp(bytes_max));
        }
        load
    }
}

/// The totals of all trees.
#[derive(Debug, Default)]
pub(in crate::engine) struct LoadTotals {
    /// By which the trees were looked at.
    settings: Option<Arc<Settings>>,
    parts: BTreeMap<KeyspaceId, TreeLoad>,
    totals: Totals,
    /// Trees with sealed memtables.
    sealed: BTreeSet<KeyspaceId>,
}

impl LoadTotals {
    /// The totals, of `changes` and of what was known before. `trees` gives those that exist.
    pub(super) fn look(
        &mut self,
        changes: &Changes,
        settings: Arc<Settings>,
        trees: impl FnOnce() -> Arc<Trees>,
    ) {
        // In this order: a tree that is created or dropped is listed after it has come or gone.
        let mut changed = changes.take(Watcher::Load);
        let trees = trees();
        if self.settings.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &settings)) {
            (self.parts, self.totals, self.sealed) = Default::default();
            changed = trees.keys().copied().collect();
        }
        for id in changed {
            if let Some(before) = self.parts.remove(&id) {
                self.totals.remove(&before);
                self.sealed.remove(&id);
            }
            if let Some(tree) = trees.get(&id) {
                tree.marks.clear(Watcher::Load);
                let part = TreeLoad::of(tree, &settings);
                self.totals.add(&part);
                if part.large_memtables + part.small_memtables > 0 {
                    self.sealed.insert(id);
                }
                self.parts.insert(id, part);
            }
        }
        self.settings = Some(settings);
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The trees with sealed memtables.
    pub(super) fn sealed(&self) -> impl Iterator<Item = KeyspaceId> {
        self.sealed.iter().copied()
    }
}
