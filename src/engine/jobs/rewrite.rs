//! Rewrite: copies the live tables of packs that are mostly dead, so that the packs can be given up.
//!
//! The tables keep their ids, levels and entries; only their extents change. So the edit is that of a compaction
//! whose outputs are its inputs, and it has the same syncs: one for each pack and one for the edit. Snapshots,
//! filters and range tombstones do not matter here. The cache goes by the id of a table, so it stays warm. An
//! iterator or a checkpoint that reads a table at its old place holds the old object, and with it the old pack.
//!
//! To compact the tables into their own level would decode each record and give new ids, so the cache would be cold.
//! It would gain nothing: what a compaction of a single run could drop is what that run keeps for others.
//!
//! A failed rewrite changes nothing. Its packs are left alone for a while, longer after each failure, and others get
//! their turn. A failure delays no compaction. Those who wait for compactions learn of it only from counters and
//! events.
//!
//! A caller that needs space where there are no holes does not wait for a compaction thread, which may itself wait
//! for a lock that the caller holds. It runs the job itself
//! ([`Background::rewrite_for_space`](crate::engine::schedule::background::Background::rewrite_for_space)).
//!
//! It touches what [`JobContext`] holds.

use std::collections::BTreeSet;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use super::context::JobContext;
use super::output::{Output, Writing};
use crate::catalog::Version;
use crate::engine::jobs::compaction::vanished;
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::events::Event;
use crate::engine::shared::job::Job;
use crate::error::{ErrorKind, Result};
use crate::events::JobBegin;
use crate::format::names::FileName;
use crate::policy::{JobClass, Plan, PlanKind, SpaceView};
use crate::store::files::punch::is_kept;
use crate::store::table::ReadAhead;
use crate::types::{Epoch, PackId};

impl JobContext {
    /// Space as the planner sees it, where somebody needs some or not.
    pub(in crate::engine) fn space_view(&self, is_short: bool) -> SpaceView {
        let (totals, packs) = self.storage.reclaimer.to_rewrite(is_short);
        let free_bytes = if packs.is_empty() { 0 } else { self.bytes_to_copy(is_short) };
        SpaceView { totals, packs, free_bytes, reads: self.read_view() }
    }

    /// Bytes that a rewrite may write before it gives any back.
    ///
    /// * At leisure, what is left of the free bytes and of the space budget: a memtable's worth is kept for writers,
    ///   and twice the reserve.
    /// * For a caller that needs space, half of what is free on the disk or left of the reserve. The other half is for
    ///   the flushes and compactions that the reserve is for. Beyond a budget it goes while it runs, as compactions
    ///   do.
    fn bytes_to_copy(&self, is_short: bool) -> u64 {
        if is_short {
            return (self.storage.free_bytes() + self.storage.rest_of_reserve()) / 2;
        }
        let (at_home, in_budget) = self.bytes_to_copy_at_leisure();
        at_home.min(in_budget.unwrap_or(u64::MAX))
    }

    /// The same at leisure: bytes that are free at home, and what is left of a budget.
    pub(in crate::engine) fn bytes_to_copy_at_leisure(&self) -> (u64, Option<u64>) {
        let settings = self.settings.load();
        let kept = settings.limits.memtable_bytes + 2 * settings.options.reserve_bytes;
        let used = || self.storage.reclaimer.pack_bytes() + self.storage.devices.recycled_bytes();
        let budget = settings.options.space_bytes.map(|budget| budget.saturating_sub(used()));
        (self.storage.free_bytes().saturating_sub(kept), budget)
    }

    /// Runs `plan`, a rewrite, unless it would be in vain. Returns whether it ran. If something is in the way, the
    /// packs concerned are left alone for a while.
    pub(in crate::engine) fn rewrite_or_block(&self, plan: &Plan) -> Result<bool> {
        let tree = self.tree(plan.keyspace)?;
        let packs = packs_of(&tree.view().version, plan);
        let kept: BTreeSet<PackId> = packs
            .iter()
            .copied()
            .filter(|pack| is_kept(&self.storage.devices.of(*pack).device, *pack))
            .collect();
        if !kept.is_empty() {
            self.storage.reclaimer.block(&kept, self.env.now());
            return Ok(false);
        }
        let result = self.run_plan(&tree, plan);
        if let Err(error) = &result
            && error.kind() != ErrorKind::NotFound
        {
            self.statistics.failed();
            self.events.notify(|| Event::BackgroundError(error.clone()));
            let is_named = |pack: &PackId| {
                error.file() == Some(&*self.storage.devices.of(*pack).device.path(FileName::Pack(*pack)))
            };
            // The one that is damaged, or else all: the disk is full, say.
            let named: BTreeSet<PackId> = packs.iter().copied().filter(is_named).collect();
            self.storage.reclaimer.block(if named.is_empty() { &packs } else { &named }, self.env.now());
        }
        result.map(|()| true)
    }

    /// Runs `plan`, a rewrite for a device that is to be empty: also where somebody holds the packs, which keep their space for him.
    pub(in crate::engine) fn depart(&self, plan: &Plan) -> Result<()> {
        let tree = self.tree(plan.keyspace)?;
        self.run_plan(&tree, plan)
    }

    pub(in crate::engine) fn run_rewrite(&self, tree: &Tree, plan: &Plan) -> Result<()> {
        let version = tree.view().version.within(slice::from_ref(&plan.range));
        let begin = JobBegin {
            keyspace: tree.record.name.clone(),
            level: plan.source,
            target: plan.target,
            bytes_in: plan.bytes,
        };
        self.compacting_bytes.fetch_add(plan.bytes, Relaxed);
        let result = self.notify_job(Job::Rewrite, begin, || self.rewrite(tree, plan, &version));
        self.compacting_bytes.fetch_sub(plan.bytes, Relaxed);
        result
    }

    /// Copies the tables of `plan`, which are in `version`, unless that is given up. Returns the bytes that it wrote.
    fn rewrite(&self, tree: &Tree, plan: &Plan, version: &Version) -> Result<u64> {
        let start = self.env.now();
        // Nothing of a table is made here: that of its level says where packs go.
        let settings = self.table_settings(tree, plan.target, Epoch(0));
        let mut output = Output::new(self, Writing::Rewrite { bytes: plan.bytes }, settings);
        if let PlanKind::Relocate(to) = plan.kind {
            output = output.at(to);
        }
        let throttled = self.throttle.begin(JobClass::of(plan));
        let tables = plan.inputs.iter().map(|input| match version.table(input.table) {
            Some((_, table)) => Ok(table),
            None => Err(vanished(input.table)),
        });
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let packs = self.cache.packs().clone();
        let mut ahead =
            ReadAhead::of_tables(packs, tables.iter().map(|table| &***table), self.ahead_bytes(1));
        for (at, table) in tables.into_iter().enumerate() {
            let checked = throttled.throttle(|| self.health.check_writable());
            if throttled.is_given_up() {
                // Its output is dropped here, and with it what it had written.
                self.statistics.given_up();
                return Ok(0);
            }
            checked?;
            output.copy(table, |offset| ahead.reached(at, offset))?;
        }
        let (bytes_out, _) =
            self.install_output((version, plan), output.finish()?, &self.arriving(version, plan)?, None)?;
        let mut packs = packs_of(version, plan);
        let log = self.catalog.lock();
        packs.retain(|pack| log.catalog.pack(*pack).is_none());
        drop(log);
        let time = self.env.now().saturating_sub(start);
        self.statistics.rewrote(packs.len() as u64, plan.bytes, time);
        Ok(bytes_out)
    }
}

/// The packs that the inputs of `plan` lie in.
pub(in crate::engine) fn packs_of(version: &Version, plan: &Plan) -> BTreeSet<PackId> {
    let tables = plan.inputs.iter().filter_map(|input| version.table(input.table));
    tables.map(|(_, table)| table.extent.pack).collect()
}
