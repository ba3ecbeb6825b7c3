//! The load as the scheduler measures it: sampled whenever a memtable is sealed or a job ends. A sample looks only at the
//! trees that have changed ([`load_totals`](super::load_totals)).
//!
//! What users did and what the pacer made of it are the [sampler](crate::engine::pace::sampler)'s to say.

use std::sync::Arc;

use super::background::Background;
use super::load_totals::{LoadTotals, Totals};
use crate::engine::keyspace::tree::Tree;
use crate::env::sync::MutexGuard;
use crate::policy::LoadState;
use crate::stats::CostStats;
use crate::types::KeyspaceId;

impl Background {
    /// Takes a new sample of the load, whenever a memtable is sealed and a job ends. Returns whether a writer may wait
    /// for it.
    pub(crate) fn sample_load(&self) -> bool {
        // The sample is taken anew if another one has come meanwhile, so an older sample never replaces a newer one.
        self.pressure.update(|last| self.load_now(last));
        self.pressure.has_stopped()
    }

    /// The load, if there were no keyspaces but those that `counts` names.
    pub(in crate::engine) fn load_of(&self, counts: impl Fn(KeyspaceId) -> bool) -> LoadState {
        let trees = self.jobs.trees.load_full();
        let totals = Totals::of(trees.values().filter(|tree| counts(tree.id())), &self.jobs.settings.load());
        totals.fill(self.load_without_trees(&self.pressure.load()))
    }

    /// Lets stalled writers look again. Not to be called with the writer's lock held.
    pub(crate) fn wake_writers(&self) {
        if let Some(writer) = &self.jobs.log.writer {
            // By the time we have the lock, a writer that has seen the old load is waiting.
            let _writer = writer.lock();
            self.pressure.clear_stopped();
            if !planted!("stalled-writer-not-woken") {
                self.pressure.wake();
            }
        }
    }

    /// What changed since `last`; what users did is the sampler's to say.
    fn load_now(&self, last: &LoadState) -> LoadState {
        let load = self.load_without_trees(last);
        self.with_totals(|totals| totals.fill(load))
    }

    fn load_without_trees(&self, last: &LoadState) -> LoadState {
        let (value_bytes, dead_value_bytes) = self.jobs.storage.reclaimer.value_space();
        LoadState {
            value_bytes,
            dead_value_bytes,
            active_bytes_max: self.jobs.settings.load().limits.memtable_bytes,
            flush_bytes_per_second: self.jobs.statistics.flush_rate(),
            compaction_bytes_per_second: self.jobs.statistics.compaction_rate(),
            costs: self.jobs.statistics.costs.costs(),
            users: last.users,
            pace: last.pace,
            levels: self.jobs.statistics.passed_levels(),
            ..LoadState::default()
        }
    }

    fn with_totals<T>(&self, take: impl FnOnce(&Totals) -> T) -> T {
        take(self.totals().totals())
    }

    /// The load of all trees, by now.
    fn totals(&self) -> MutexGuard<'_, LoadTotals> {
        let mut totals = self.totals.lock();
        totals.look(&self.changes, self.jobs.settings.load_full(), || self.jobs.trees.load_full());
        totals
    }

    /// The trees with sealed memtables.
    pub(super) fn sealed_trees(&self) -> Vec<Arc<Tree>> {
        // The list of trees is as new as the totals, or newer: a tree that is not there is gone.
        let sealed: Vec<_> = self.totals().sealed().collect();
        let trees = self.trees();
        sealed.iter().filter_map(|id| trees.get(id).cloned()).collect()
    }

    /// Bytes that the active memtables hold.
    pub(in crate::engine) fn active_bytes(&self) -> u64 {
        self.with_totals(Totals::active_bytes)
    }

    /// Bytes that all memtables hold.
    pub(in crate::engine) fn memtable_bytes(&self) -> u64 {
        self.with_totals(Totals::memtable_bytes)
    }

    /// Takes what has been counted into the prices. Called whenever a job ends.
    pub(in crate::engine) fn sample_costs(&self) {
        let counts = self.jobs.cache.counts();
        self.jobs.statistics.costs.read_upto((counts.reads, counts.read_nanos));
        self.jobs.statistics.costs.measure_processor(&*self.jobs.env);
    }

    /// The prices in force, for users.
    pub(in crate::engine) fn cost_stats(&self) -> CostStats {
        let costs = self.pressure.load().costs;
        CostStats {
            compacted_mebibyte_micros: costs.compacted_byte * (1 << 20) as f64 / 1e3,
            seek_cached_nanos: costs.seek_cached,
            filter_probe_nanos: costs.filter_probe,
            block_read_nanos: costs.device.block_read,
            barrier_micros: costs.device.barrier / 1e3,
        }
    }
}
