//! What a job writes: tables in packs.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use super::Engine;
use super::distill::Sink;
use crate::error::Result;
use crate::format::edit::{PackRecord, TableRecord};
use crate::options::PackLayout;
use crate::policy::PlaceView;
use crate::store::meter::WriteCause;
use crate::store::pack::{PackStore, PackWriter};
use crate::store::table::{TableBuilder, TableSettings};
use crate::types::{DeviceId, KeyRange, PackId, RangeTombstone, Stamp, UpperBound};

/// The device that holds log and manifest.
const HOME: DeviceId = DeviceId(0);

/// Tables and packs of a job that is still running. Dropped without [`Output::finish`], it removes its packs.
pub(crate) struct Output<E> {
    engine: E,
    cause: WriteCause,
    settings: TableSettings,
    /// What the job will write, about.
    bytes: u64,
    pack: Option<PackWriter>,
    table: Option<TableBuilder>,
    /// Those that no table has yet, fragmented.
    range_tombstones: VecDeque<RangeTombstone>,
    packs: SealedPacks,
    tables: Vec<TableRecord>,
}

/// Packs that are whole but that no edit names yet. Dropped before [`SealedPacks::commit`], it removes them.
pub(crate) struct SealedPacks {
    store: Arc<PackStore>,
    records: Vec<PackRecord>,
    committed: bool,
}

/// What a finished job hands to its edit.
pub(crate) struct Finished {
    pub(crate) tables: Vec<TableRecord>,
    pub(crate) packs: SealedPacks,
}

impl<E: Deref<Target = Engine>> Output<E> {
    /// Output of about `bytes` bytes.
    pub(crate) fn new(engine: E, cause: WriteCause, settings: TableSettings, bytes: u64) -> Self {
        let packs =
            SealedPacks { store: engine.cache.packs().clone(), records: Vec::new(), committed: false };
        Self {
            engine,
            cause,
            settings,
            bytes,
            pack: None,
            table: None,
            range_tombstones: VecDeque::new(),
            packs,
            tables: Vec::new(),
        }
    }

    /// Starts a table, and a pack, where there is none.
    fn begin(&mut self) -> Result<()> {
        if self.table.is_some() {
            return Ok(());
        }
        if self.pack.is_none() {
            let view = PlaceView { home: HOME, level: self.settings.level };
            let settings = self.engine.settings();
            let place = settings.policy.placer.place(&view);
            let bytes = match settings.options.tree.pack {
                PackLayout::OneTable => settings.options.tree.table_bytes,
                PackLayout::Many { bytes_max } => bytes_max,
            };
            let (id, bytes) = (self.engine.ids.pack(), self.bytes.min(bytes));
            self.pack = Some(self.packs.store.create(id, place, self.cause, bytes)?);
        }
        let new = |pack| TableBuilder::new(self.settings, self.engine.ids.table(), pack);
        self.table = self.pack.as_mut().map(new);
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        if let Some(pack) = self.pack.take() {
            self.packs.records.push(pack.seal()?);
        }
        Ok(())
    }

    /// Completes everything and makes it durable: contents first, then, once, the names.
    pub(crate) fn finish(mut self) -> Result<Finished> {
        self.cut(&UpperBound::Unbounded)?;
        self.seal()?;
        if !self.packs.records.is_empty() {
            // Other jobs' names, and the log's, may be among those whose fate is unknown after a failure.
            self.packs.store.sync_names().map_err(|error| self.engine.poison(error))?;
        }
        Ok(Finished { tables: std::mem::take(&mut self.tables), packs: self.packs })
    }
}

impl<E: Deref<Target = Engine>> Sink for Output<E> {
    fn set_range_tombstones(&mut self, tombstones: Vec<RangeTombstone>) {
        self.range_tombstones = tombstones.into();
    }

    fn has_range_tombstones(&self) -> bool {
        !self.range_tombstones.is_empty()
    }

    fn reaches(&self, bound: &UpperBound) -> bool {
        self.table.is_some()
            || self.range_tombstones.front().is_some_and(|next| bound.admits(&next.range.start))
    }

    fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8]) -> Result<()> {
        self.begin()?;
        let (Some(table), Some(pack)) = (self.table.as_mut(), self.pack.as_mut()) else { return Ok(()) };
        table.add(key, stamp, value, pack)
    }

    fn table_bytes(&self) -> u64 {
        match (&self.table, &self.pack) {
            (Some(table), Some(pack)) => table.bytes(pack),
            _ => 0,
        }
    }

    /// Ends the pack, too, where that is full.
    fn cut(&mut self, bound: &UpperBound) -> Result<()> {
        let tombstones = take_before(&mut self.range_tombstones, bound);
        if !tombstones.is_empty() {
            self.begin()?;
        }
        let (Some(mut table), Some(pack)) = (self.table.take(), self.pack.as_mut()) else { return Ok(()) };
        table.set_range_tombstones(tombstones);
        self.tables.push(table.finish(pack)?);
        let full = match self.engine.settings().options.tree.pack {
            PackLayout::OneTable => true,
            PackLayout::Many { bytes_max } => pack.len() >= bytes_max,
        };
        if full { self.seal() } else { Ok(()) }
    }
}

/// Takes what lies before `bound` out of fragmented tombstones.
pub(super) fn take_before(
    tombstones: &mut VecDeque<RangeTombstone>,
    bound: &UpperBound,
) -> Vec<RangeTombstone> {
    let mut before = Vec::new();
    let mut behind = Vec::new();
    while let Some(mut tombstone) = tombstones.front().cloned()
        && bound.admits(&tombstone.range.start)
    {
        tombstones.pop_front();
        if let UpperBound::Excluded(start) = bound
            && *bound < tombstone.range.end
        {
            let end = std::mem::replace(&mut tombstone.range.end, bound.clone());
            behind.push(RangeTombstone { range: KeyRange::half_open(start.clone(), end), ..tombstone });
        }
        before.push(tombstone);
    }
    behind.into_iter().rev().for_each(|tombstone| tombstones.push_front(tombstone));
    before
}

impl SealedPacks {
    pub(crate) fn records(&self) -> &[PackRecord] {
        &self.records
    }

    /// From here on an edit may name the packs: they stay whatever happens.
    pub(crate) fn commit(&mut self) {
        self.committed = true;
    }
}

impl Drop for SealedPacks {
    fn drop(&mut self) {
        if !self.committed {
            for record in &self.records {
                // Nothing refers to it; if this fails, the next open removes it.
                let _ = self.store.release(PackId(record.id.0), record.length);
            }
        }
    }
}
