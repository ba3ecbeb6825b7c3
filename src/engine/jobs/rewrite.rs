//! Rewrites: what lives in packs of which little does is copied, and nothing holds the packs any more.
//!
//! The tables stay what and where they are in the tree: the same ids, levels and entries, at other extents. So a rewrite is
//! the edit of a compaction whose outputs are its inputs, its barriers are the same (one for each pack, one for the edit), and
//! snapshots, filters and range tombstones are none of its business. Blocks in the cache go by the table's id and stay
//! warm. Who reads a table at its old place, an iterator or a checkpoint, holds the old object, and with it the old pack.
//!
//! To compact the tables into their own level would cost the decoding of each record and new ids, hence a cold cache, and buy
//! nothing: what a compaction could drop of a single run is what it keeps for others anyway.
//!
//! A failure leaves everything as it was, and the packs alone for a while: longer each time, and others have their turn
//! meanwhile. It holds up no compaction, and nobody who waits for compactions hears of it but through counters and events.
//!
//! Who needs space and can have no holes does not wait for a compaction thread, which may wait for a lock that is held: the
//! caller runs the job itself ([`Engine::rewrite_for_space`](crate::engine::Engine::rewrite_for_space)).
//!
//! It touches what [`JobContext`] holds.

use std::collections::BTreeSet;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use super::context::JobContext;
use super::output::{Output, Writing};
use crate::catalog::Version;
use crate::engine::jobs::compaction::vanished;
use crate::engine::observe::events::Event;
use crate::engine::read::tree::Tree;
use crate::engine::schedule::scheduler::Job;
use crate::error::{ErrorKind, Result};
use crate::events::JobBegin;
use crate::format::names::FileName;
use crate::policy::{Plan, SpaceView};
use crate::store::files::punch::is_kept;
use crate::types::{Epoch, PackId};

impl JobContext {
    /// Space as the planner sees it, where somebody needs some or not.
    pub(in crate::engine) fn space_view(&self, is_short: bool) -> SpaceView {
        let (totals, packs) = self.storage.reclaimer.to_rewrite(is_short);
        let free_bytes = if packs.is_empty() { 0 } else { self.bytes_to_copy(is_short) };
        SpaceView { totals, packs, free_bytes }
    }

    /// Bytes that a rewrite may take before it gives any back. At leisure a memtable's worth is left to writers, what the
    /// reserve asks for to be held, and what is beyond the budget. For who needs space it is half of what is free on the disk
    /// or left of the reserve, as the flushes and compactions that the reserve is for need room as well; beyond a budget it goes while it runs, as compactions do.
    fn bytes_to_copy(&self, is_short: bool) -> u64 {
        if is_short {
            return (self.storage.free_bytes() + self.storage.rest_of_reserve()) / 2;
        }
        let settings = self.settings.load();
        let kept = settings.limits.memtable_bytes + 2 * settings.options.reserve_bytes;
        let used = || self.storage.reclaimer.pack_bytes() + self.storage.recycled.bytes();
        let budget = settings.options.space_bytes.map(|budget| budget.saturating_sub(used()));
        self.storage.free_bytes().saturating_sub(kept).min(budget.unwrap_or(u64::MAX))
    }

    /// Carries `plan`, a rewrite, out, unless it would be in vain: whether it did. What stands in the way leaves the packs
    /// concerned alone for a while.
    pub(in crate::engine) fn rewrite_or_block(&self, plan: &Plan) -> Result<bool> {
        let tree = self.tree(plan.keyspace)?;
        let packs = packs_of(&tree.view().version, plan);
        let kept: BTreeSet<PackId> =
            packs.iter().copied().filter(|pack| is_kept(&self.storage.device, *pack)).collect();
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
            let is_named =
                |pack: &PackId| error.file() == Some(&*self.storage.device.path(FileName::Pack(*pack)));
            // The one that is damaged, or else all: the disk is full, say.
            let named: BTreeSet<PackId> = packs.iter().copied().filter(is_named).collect();
            self.storage.reclaimer.block(if named.is_empty() { &packs } else { &named }, self.env.now());
        }
        result.map(|()| true)
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

    /// Copies the tables of `plan`, which are in `version`. Returns the bytes that it wrote.
    fn rewrite(&self, tree: &Tree, plan: &Plan, version: &Version) -> Result<u64> {
        let start = self.env.now();
        // Nothing of a table is made here: that of its level says where packs go.
        let settings = self.table_settings(tree, plan.target, Epoch(0));
        let mut output = Output::new(self, Writing::Rewrite { bytes: plan.bytes }, settings);
        let throttled = self.throttle.begin();
        for input in &plan.inputs {
            throttled.throttle();
            self.health.check_writable()?;
            let (_, table) = version.table(input.table).ok_or_else(|| vanished(input.table))?;
            output.copy(table)?;
        }
        let (bytes_out, _) = self.install_output(version, plan, output.finish()?)?;
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
fn packs_of(version: &Version, plan: &Plan) -> BTreeSet<PackId> {
    let tables = plan.inputs.iter().filter_map(|input| version.table(input.table));
    tables.map(|(_, table)| table.extent.pack).collect()
}
