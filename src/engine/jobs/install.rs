//! Install: makes an edit durable, then visible.
//!
//! 1. Everything that the edit names is durable already: the outputs and their names; the log, up to what a flush
//!    took.
//! 2. The edit is applied to the catalog in memory, which checks that it fits. The result is checked for the order of
//!    newer and older entries (I2, I3).
//! 3. The edit is appended to the manifest and synced.
//! 4. Readers are shown the new versions.
//! 5. What they no longer name is released, and reclaimed when its last holder is gone.
//!
//! # Failures
//!
//! * A result in a wrong order is refused. The store is not poisoned: nothing was written, and the job's inputs are
//!   still in their places. The job is tried again after pauses, like any job that fails, and those who wait for it
//!   get the error.
//! * An edit that does not fit is different, and poisons the store. It shows that the engine is wrong about its
//!   tables, so any job may do harm.
//! * A failure before step 3, or a full disk in step 3, leaves the store as it was.
//! * Any other failure in step 3 leaves the outcome unknown. The store is poisoned, and nothing that either outcome
//!   needs is removed.
//!
//! It touches what [`JobContext`] holds, under the catalog's lock. So edits come one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::context::JobContext;
use super::output::SealedPacks;
use crate::catalog::{Catalog, Descent, ExtentSink, Lease};
use crate::engine::keyspace::tree::dropped;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::{Edit, TreeEdit};
use crate::store::manifest::Manifest;
use crate::store::memtable::Memtable;
use crate::store::table::TableReader;
use crate::types::{Extent, KeyspaceId, PackId, SegmentId, TableId};

/// The catalog in force and the log that it is in.
#[derive(Debug)]
pub(crate) struct CatalogLog {
    pub(crate) catalog: Catalog,
    /// `None` in a store that was opened for reading alone.
    pub(crate) manifest: Option<Manifest>,
}

/// Why a job's result is not installed.
pub(in crate::engine) fn refused(why: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::Inconsistent,
        format!("the result of a job is refused, for it would hide newer entries: {why}"),
    )
}

/// A change on its way into the catalog.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) edit: Edit,
    /// Packs that the edit names for the first time.
    pub(crate) packs: Option<SealedPacks>,
    /// Those of the edit's tables that are open already.
    pub(crate) open: Vec<(TableId, Arc<TableReader>)>,
    /// Of trees that are flushed, the memtable whose entries the edit's tables hold.
    pub(crate) flushed: BTreeMap<KeyspaceId, Arc<Memtable>>,
    /// Tables in its packs that it does not name, for their keyspaces are gone.
    pub(crate) left_out: Vec<Extent>,
    /// The log is needed from here on.
    pub(crate) wal_floor: Option<SegmentId>,
    /// Whether its tables come to lie on top of others, as the layout has it.
    pub(crate) stacks: bool,
    /// What it brings down from one level to the next, for the compaction buffer.
    pub(crate) descent: Option<Descent>,
}

impl Change {
    /// A change of one tree.
    pub(crate) fn of_tree(tree: TreeEdit) -> Self {
        Self { edit: Edit { trees: vec![tree], ..Edit::default() }, ..Self::default() }
    }

    /// This one and that of another tree, as one: both or none. Neither flushes.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        debug_assert!(self.flushed.is_empty() && other.flushed.is_empty(), "a flush is a change of its own");
        debug_assert!(self.descent.is_none() && other.descent.is_none(), "so is a compaction");
        self.edit.trees.append(&mut other.edit.trees);
        self.edit.packs.append(&mut other.edit.packs);
        self.open.append(&mut other.open);
        self.stacks |= other.stacks;
        self.packs = match (self.packs, other.packs) {
            (Some(packs), Some(more)) => Some(packs.and(more)),
            (packs, more) => packs.or(more),
        };
        self
    }
}

/// Leaves out of a flush of several keyspaces those that were dropped while it was running: the others are not to be
/// written again for that. Any other job with such a keyspace has nothing left to do.
fn leave_out_dropped(catalog: &Catalog, change: &mut Change) -> Result<()> {
    let trees = &mut change.edit.trees;
    let exists = |tree: &TreeEdit| catalog.keyspaces.contains_key(&tree.keyspace);
    if trees.iter().all(exists) {
        return Ok(());
    }
    let is_group = change.flushed.len() > 1;
    let (stay, gone): (Vec<_>, Vec<_>) = trees.drain(..).partition(|tree| is_group && exists(tree));
    if stay.is_empty() {
        return Err(dropped());
    }
    *trees = stay;
    let named: BTreeSet<PackId> = extents_of(trees).map(|extent| extent.pack).collect();
    change.left_out = extents_of(&gone).collect();
    change.left_out.retain(|extent| named.contains(&extent.pack));
    change.edit.packs.retain(|pack| named.contains(&pack.id));
    if let Some(packs) = &mut change.packs {
        packs.keep(&named);
    }
    Ok(())
}

/// Where the tables lie that come into `trees`, value tables included.
fn extents_of(trees: &[TreeEdit]) -> impl Iterator<Item = Extent> {
    let tables = trees.iter().flat_map(|tree| &tree.add).map(|(_, table)| table.extent);
    tables.chain(trees.iter().flat_map(|tree| &tree.values).map(|table| table.extent))
}

impl JobContext {
    /// Makes `change` durable and visible.
    pub(crate) fn install(&self, mut change: Change) -> Result<()> {
        let mut log = self.catalog.lock();
        self.health.check_writable()?;
        leave_out_dropped(&log.catalog, &mut change)?;
        self.number(&log.catalog, &mut change);
        let next = self.apply(&log.catalog, &change.edit)?;
        if !planted!("installed-without-a-check") {
            log.catalog.check_step(&change.edit, &next).map_err(refused)?;
            let merged = if change.stacks { Ok(()) } else { log.catalog.check_merged(&change.edit) };
            merged.map_err(refused)?;
        }
        if planted!("extents-freed-before-the-edit-is-durable") {
            self.free_dropped(&log.catalog, &next);
        }
        let Some(manifest) = log.manifest.as_mut() else {
            return Err(Error::new(ErrorKind::ReadOnly, "the store was opened for reading alone"));
        };
        let started = self.env.now();
        let appended = self.storage.with_space(|| manifest.append(&change.edit));
        if appended.is_ok() {
            self.statistics.costs.synced(self.env.now().saturating_sub(started));
        }
        if let Err(error) = &appended
            && error.kind() == ErrorKind::DiskFull
        {
            // Nothing of the edit is left: its packs go with it.
            return Err(error.clone());
        }
        // The edit may be durable, whatever the call says.
        if let Some(packs) = change.packs.as_mut()
            && !(planted!("outputs-removed-though-the-edit-may-count") && appended.is_err())
        {
            packs.commit();
        }
        appended.map_err(|error| self.alarm.poison(error))?;
        if planted!("extents-freed-under-readers") {
            self.free_dropped(&log.catalog, &next);
        }
        self.register(&change);
        log.catalog.end(&change.edit, &next, &self.extent_sink());
        let added = change.edit.trees.iter().flat_map(|tree| &tree.add);
        added.for_each(|(_, table)| {
            self.snapshots.mark(&table.holds);
            if table.tombstones > 0 {
                // What they hide may go when these readers have gone.
                self.snapshots.mark_below(table.max_seq);
            }
        });
        log.catalog = next;
        self.show(&log.catalog, &change);
        self.rewrite_outgrown(&mut log);
        Ok(())
    }

    /// Fills in the edit's number and the counters.
    fn number(&self, catalog: &Catalog, change: &mut Change) {
        let Change { edit, wal_floor, .. } = change;
        edit.number = catalog.number.next();
        let flushed = edit.trees.iter().filter_map(|tree| tree.flushed);
        let max_seq = edit.trees.iter().flat_map(|tree| &tree.add).map(|(_, table)| table.max_seq);
        edit.counters.seq = flushed.chain(max_seq).fold(catalog.counters.seq, Ord::max);
        edit.counters.wal_floor = catalog.counters.wal_floor.max(wal_floor.unwrap_or_default());
        edit.counters.keyspace = catalog.counters.keyspace.max(edit.counters.keyspace);
        let seen = if planted!("clock-not-recorded") { 0 } else { self.clock.seen() };
        edit.counters.clock = catalog.counters.clock.max(seen);
        self.ids.fill(&mut edit.counters);
    }

    fn extent_sink(&self) -> Arc<dyn ExtentSink> {
        self.storage.reclaimer.clone()
    }

    fn apply(&self, catalog: &Catalog, edit: &Edit) -> Result<Catalog> {
        let sink = self.extent_sink();
        catalog.apply(edit, &mut |record| Lease::new(sink.clone(), record.extent)).map_err(|inconsistent| {
            // A job whose result does not fit is a fault of ours: stop before it does harm.
            self.alarm.poison(Error::new(
                ErrorKind::Corruption,
                format!("a job's result does not fit: {inconsistent}"),
            ))
        })
    }

    /// A planted bug: what `next` has no more is free, whoever holds it.
    fn free_dropped(&self, catalog: &Catalog, next: &Catalog) {
        let stays = |extent| next.tables().any(|table| table.extent == extent);
        let gone = catalog.tables().map(|table| table.extent).filter(|&extent| !stays(extent));
        gone.for_each(|extent| self.storage.reclaimer.released(extent));
    }

    /// Starts to count the space of what is new.
    fn register(&self, Change { edit, left_out, .. }: &Change) {
        // Those that only move are counted already.
        let added = extents_of(&edit.trees);
        let packs = edit.packs.iter().map(|pack| (pack.id, pack.length));
        let values = edit.trees.iter().flat_map(|tree| &tree.values).map(|table| table.extent.pack);
        self.storage.reclaimer.register(packs, added.chain(left_out.iter().copied()), values);
        // They die at once: nobody holds them.
        left_out.iter().for_each(|extent| self.storage.reclaimer.released(*extent));
    }

    fn show(&self, catalog: &Catalog, change: &Change) {
        let trees = self.trees.load();
        let open: BTreeMap<TableId, &Arc<TableReader>> =
            change.open.iter().map(|(id, table)| (*id, table)).collect();
        for edit in &change.edit.trees {
            if let (Some(tree), Some(state)) =
                (trees.get(&edit.keyspace), catalog.keyspaces.get(&edit.keyspace))
            {
                for (_, added) in &edit.add {
                    if let (Some(table), Some((_, meta))) =
                        (open.get(&added.id), state.version.table(added.id))
                    {
                        table.count_in(&meta.heat);
                        meta.attachment.set((*table).clone());
                    }
                }
                let buffer = self.buffer_behind(tree, edit, &state.version, change.descent.as_ref());
                tree.publish(&state.version, change.flushed.get(&edit.keyspace), &buffer);
                self.forget_removed(&buffer, &state.version);
            }
        }
    }

    /// Switches to a new manifest where the edits have outgrown the snapshot. The edit at hand is durable already, so
    /// nothing that fails here is its failure.
    fn rewrite_outgrown(&self, log: &mut CatalogLog) {
        if let Some(manifest) = log.manifest.as_mut().filter(|manifest| manifest.outgrown())
            && let Err(error) = manifest.rewrite(&self.storage.device, &log.catalog.snapshot())
        {
            self.alarm.poison(error);
        }
    }
}

#[cfg(test)]
mod tests;
