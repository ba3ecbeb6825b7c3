//! The load as the scheduler measures it: sampled whenever a memtable is sealed or a job ends.
//!
//! What users did and what the pacer made of it are the [sampler](crate::engine::pace::sampler)'s to say.

use std::cmp;

use super::background::Background;
use crate::policy::{self, LoadState};
use crate::stats::CostStats;

impl Background {
    /// Takes a new sample of the load, whenever a memtable is sealed and a job ends. Returns whether a writer may wait
    /// for it.
    pub(crate) fn sample_load(&self) -> bool {
        // The sample is taken anew if another one has come meanwhile, so an older sample never replaces a newer one.
        self.pressure.update(|last| self.load_now(last));
        self.pressure.has_stopped()
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
        let settings = self.jobs.settings.load();
        let policy = &settings.policy;
        let mut load = LoadState {
            active_bytes_max: settings.limits.memtable_bytes,
            flush_bytes_per_second: self.jobs.statistics.flush_rate(),
            compaction_bytes_per_second: self.jobs.statistics.compaction_rate(),
            costs: self.jobs.statistics.costs.costs(),
            users: last.users,
            pace: last.pace,
            levels: self.jobs.statistics.passed_levels(),
            ..LoadState::default()
        };
        for tree in self.jobs.trees.load().values() {
            let view = tree.view();
            load.active_bytes += view.active.bytes();
            load.sealed_memtables += view.sealed.len() as u64;
            load.sealed_bytes += view.sealed_bytes();
            let (overwrite_ratio, layout) = (tree.overwrite_ratio.share(), tree.layout(policy));
            let l0_runs = layout.level0_runs(&view.version, overwrite_ratio);
            let run_bytes = layout.level0_run_bytes(&view.version, overwrite_ratio);
            load.l0_run_bytes = match l0_runs.cmp(&load.l0_runs) {
                cmp::Ordering::Less => load.l0_run_bytes,
                cmp::Ordering::Equal => load.l0_run_bytes.into_iter().chain(run_bytes).min(),
                cmp::Ordering::Greater => run_bytes,
            };
            load.l0_runs = load.l0_runs.max(l0_runs);
            load.l0_bytes = load.l0_bytes.max(view.version.bytes(0));
            let (flushed, parts) = policy::flushed_and_parts(&view.version, settings.limits.memtable_bytes);
            load.l0_flushed_runs = load.l0_flushed_runs.max(flushed as u64);
            load.l0_part_runs = load.l0_part_runs.max(parts as u64);
            for ((now, (_, state)), bytes_max) in
                load.levels.iter_mut().zip(view.version.levels()).zip(layout.limits(&view.version))
            {
                let bytes = state.bytes();
                now.bytes += bytes;
                now.bytes_max = now.bytes_max.saturating_add(if bytes > 0 { bytes_max } else { 0 });
            }
            load.debt_bytes = load.debt_bytes.saturating_add(layout.debt(&view.version));
        }
        load
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
