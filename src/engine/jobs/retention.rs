//! Retention: the compaction buffers of the trees, kept up with what jobs do and with what the cache holds.
//!
//! The policy says what is kept and what goes ([`BufferConfig`]); [`CompactionBuffer`] is what there is. A
//! buffer belongs to a view. It changes with the version, in the same step ([`JobContext::buffer_behind`]), or by itself, when it
//! is trimmed. If two changes meet, the trimming is left for the next period.
//!
//! A buffer holds extents of tables that the manifest has dropped. So nothing of it must be durable, nothing waits for it, and
//! after a crash the space of its tables is dead as that of any other. Whoever needs space takes it from the buffers first
//! ([`Storage::free_dead`](crate::engine::space::storage::Storage)).
//!
//! It touches what [`JobContext`] holds, and takes no lock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::context::JobContext;
use crate::catalog::{BufferList, CompactionBuffer, Descent, TableMeta, Version};
use crate::engine::keyspace::tree::{BufferChange, Tree};
use crate::error::Result;
use crate::format::edit::TreeEdit;
use crate::policy::{BufferConfig, Plan};
use crate::stats::BufferStats;
use crate::store::table::TableReader;
use crate::types::TableId;

use super::compaction::vanished;

/// What has been done to buffers.
#[derive(Debug, Default)]
pub(in crate::engine) struct Retention {
    /// The period in which they were trimmed last.
    trimmed: AtomicU64,
}

fn period(now: Duration, config: &BufferConfig) -> u64 {
    u64::try_from(now.as_nanos() / config.period.as_nanos().max(1)).unwrap_or(u64::MAX)
}

/// Bytes of `table` in the cache, as if its index and filter were there as its blocks are.
fn cached(table: &TableMeta) -> u64 {
    let data = table.attachment.get::<TableReader>().map_or(0, TableReader::data_bytes);
    let (bytes, cached) = (u128::from(table.bytes()), u128::from(table.heat.bytes()));
    u64::try_from(cached * bytes / u128::from(if data > 0 { data } else { table.bytes() }.max(1)))
        .unwrap_or(u64::MAX)
}

impl JobContext {
    /// What `plan` brings down from one level to the next, if it does.
    pub(in crate::engine) fn descent(
        &self,
        tree: &Tree,
        version: &Version,
        plan: &Plan,
    ) -> Result<Option<Descent>> {
        let policy = &self.settings.load().policy;
        if policy.retainer.config().is_none() || plan.target != plan.source + 1 {
            return Ok(None);
        }
        let taken = plan.inputs.iter().filter(|input| input.level == plan.source).map(|input| input.table);
        let mut tables = Vec::with_capacity(plan.inputs.len() + plan.moves.len());
        for id in taken.chain(plan.moves.iter().copied()) {
            let (_, table) = version.table(id).ok_or_else(|| vanished(id))?;
            tables.push(Arc::clone(table));
        }
        // Of those that overlap, the older one has the lower epoch.
        tables.sort_by_key(|table| table.epoch);
        // What the owner's filter has removed or changed must not be seen again.
        let is_filtered = self.filters.0.contains_key(&tree.record.name) && !planted!("filtered-table-kept");
        // A pointer may lead elsewhere by the time that a kept table is read. What it leads to stays in the cache anyway.
        let has_pointers = tables.iter().any(|table| table.values.count > 0)
            && !planted!("value-kept-in-a-compaction-buffer");
        let is_kept =
            policy.retainer.keeps(plan) && !is_filtered && !has_pointers && !self.storage.is_needed();
        let is_whole = policy.layout.is_round(plan.source) && plan.inputs.is_empty();
        Ok(Some(Descent { source: plan.source, target: plan.target, tables, is_kept, is_whole }))
    }

    /// The compaction buffer of `tree` behind `edit`, which makes `after` out of its version.
    pub(in crate::engine) fn buffer_behind(
        &self,
        tree: &Tree,
        edit: &TreeEdit,
        after: &Version,
        descent: Option<&Descent>,
    ) -> BufferChange {
        let policy = &self.settings.load().policy;
        let Some(config) = policy.retainer.config() else { return BufferChange::default() };
        let view = tree.view();
        let before = view.buffer.clone();
        let last = before.as_deref().cloned().unwrap_or_else(|| CompactionBuffer::cold(&view.version));
        let mut buffer = last.behind(edit, (&view.version, after), descent, period(self.env.now(), config));
        if let Some(&Descent { source, target, is_whole, .. }) = descent {
            let (bytes, bytes_max) = (after.bytes(target), policy.layout.full_bytes(after, target));
            if config.is_repeated(buffer.list(target), bytes, bytes_max) {
                buffer.list_mut(target).freeze();
            }
            if !is_whole {
                let level = after.level(source);
                let drained = config.drained(buffer.list(source), (&level.runs, level.bytes()));
                self.remove(&mut buffer, source, &drained);
            }
            let beyond = config.beyond_share(&buffer, after, cached);
            let has_some = |list: &BufferList| beyond.iter().any(|table| list.has(*table));
            let lists = buffer.lists().filter(|(_, list)| has_some(list));
            let levels: Vec<u8> = lists.map(|(level, _)| level).collect();
            levels.into_iter().for_each(|level| self.remove(&mut buffer, level, &beyond));
        }
        BufferChange { before, after: Some(Arc::new(buffer)) }
    }

    /// Removes `tables` from the list of `level`. Another list may keep one that has gone down unmerged.
    fn remove(&self, buffer: &mut CompactionBuffer, level: u8, tables: &BTreeSet<TableId>) {
        if !tables.is_empty() {
            buffer.list_mut(level).remove(tables);
            self.statistics.trimmed(tables.len() as u64);
        }
    }

    /// Lets the cache forget what `change` has removed, as far as the tree in `after` has it no more.
    pub(in crate::engine) fn forget_removed(&self, change: &BufferChange, after: &Version) {
        let Some(before) = &change.before else { return };
        let stays = |table: &TableMeta| {
            change.after.as_ref().is_some_and(|after| after.has(table.id)) || after.table(table.id).is_some()
        };
        let kept = before.lists().flat_map(|(_, list)| list.tables()).map(|(table, _)| table);
        kept.filter(|table| !stays(table)).for_each(|table| self.cache.forget(table));
    }

    /// Lets all buffers go if the options want none any more.
    pub(in crate::engine) fn drop_unwanted_buffers(&self) {
        if self.settings.load().policy.retainer.config().is_none() {
            self.trees.load().values().for_each(|tree| self.drop_buffer(tree));
            self.cache.charge_lists(0);
        }
    }

    /// Lets the buffer of `tree` go.
    pub(in crate::engine) fn drop_buffer(&self, tree: &Tree) {
        self.forget_removed(&tree.drop_buffer(), &tree.view().version);
    }

    /// Removes from all buffers the tables of which the cache holds too little, once in each period.
    pub(in crate::engine) fn trim_buffers(&self) {
        let policy = &self.settings.load().policy;
        let Some(config) = policy.retainer.config() else { return };
        let now = period(self.env.now(), config);
        if self.retention.trimmed.swap(now, Relaxed) == now {
            return;
        }
        let mut list_bytes = 0;
        for tree in self.trees.load().values() {
            let view = tree.view_arc();
            let Some(before) = &view.buffer else { continue };
            list_bytes += before.lists().map(|(_, list)| list.memory_bytes() as u64).sum::<u64>();
            let mut buffer = CompactionBuffer::clone(before);
            for (level, list) in before.lists().filter(|(_, list)| !list.is_empty()) {
                self.remove(&mut buffer, level, &config.cold(list, now, cached));
            }
            let count = |buffer: &CompactionBuffer| buffer.lists().map(|(_, list)| list.len()).sum::<usize>();
            if count(&buffer) == count(before) {
                continue;
            }
            let change = BufferChange { before: Some(before.clone()), after: Some(Arc::new(buffer)) };
            if tree.replace_buffer(&change) {
                self.forget_removed(&change, &view.version);
            }
        }
        self.cache.charge_lists(list_bytes);
    }

    /// The buffer of `tree`, for users.
    pub(in crate::engine) fn buffer_stats(&self, tree: &Tree) -> BufferStats {
        let view = tree.view();
        let Some(buffer) = &view.buffer else { return BufferStats::default() };
        let mut stats = BufferStats::default();
        for (_, list) in buffer.lists() {
            stats.tables += list.len() as u64;
            stats.bytes += list.bytes();
            stats.gone_ranges += list.gone() as u64;
            stats.frozen_levels += u64::from(list.is_frozen());
            stats.memory_bytes += list.memory_bytes() as u64;
            for (table, _) in list.tables() {
                stats.cached_bytes += table.heat.bytes();
                stats.held_bytes += if view.version.table(table.id).is_none() { table.bytes() } else { 0 };
            }
        }
        stats
    }

    /// After how long buffers are to be trimmed again, if any keeps something.
    pub(in crate::engine) fn next_trim(&self) -> Option<Duration> {
        let policy = &self.settings.load().policy;
        let config = policy.retainer.config()?;
        let trees = self.trees.load();
        let mut buffers = trees.values().filter_map(|tree| tree.view().buffer.clone());
        let period = config.period.as_nanos().max(1);
        let rest = period - self.env.now().as_nanos() % period;
        let nanos = u64::try_from(rest).unwrap_or(u64::MAX);
        buffers.any(|buffer| !buffer.is_empty()).then(|| Duration::from_nanos(nanos))
    }
}
