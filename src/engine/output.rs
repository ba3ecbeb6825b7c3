//! What a job writes: tables in packs.

use std::sync::Arc;

use super::Engine;
use crate::error::Result;
use crate::format::edit::{PackRecord, TableRecord};
use crate::options::PackLayout;
use crate::policy::PlaceView;
use crate::store::meter::WriteCause;
use crate::store::pack::{PackStore, PackWriter};
use crate::store::table::{TableBuilder, TableSettings};
use crate::types::{DeviceId, PackId, Stamp};

/// The device that holds log and manifest.
const HOME: DeviceId = DeviceId(0);

/// Tables and packs of a job that is still running. Dropped without [`Output::finish`], it removes its packs.
pub(crate) struct Output<'a> {
    engine: &'a Engine,
    cause: WriteCause,
    settings: TableSettings,
    pack: Option<PackWriter>,
    table: Option<TableBuilder>,
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

impl<'a> Output<'a> {
    pub(crate) fn new(engine: &'a Engine, cause: WriteCause, settings: TableSettings) -> Self {
        let packs =
            SealedPacks { store: engine.cache.packs().clone(), records: Vec::new(), committed: false };
        Self { engine, cause, settings, pack: None, table: None, packs, tables: Vec::new() }
    }

    /// Appends an entry; they come in order.
    pub(crate) fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8]) -> Result<()> {
        if self.pack.is_none() {
            let view = PlaceView { home: HOME, level: self.settings.level };
            let place = self.engine.policy.placer.place(&view);
            self.pack = Some(self.packs.store.create(self.engine.ids.pack(), place, self.cause)?);
        }
        let Some(pack) = self.pack.as_mut() else { return Ok(()) };
        let table =
            self.table.get_or_insert_with(|| TableBuilder::new(self.settings, self.engine.ids.table(), pack));
        table.add(key, stamp, value, pack)
    }

    /// Bytes of the table that is being written; 0 between tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        match (&self.table, &self.pack) {
            (Some(table), Some(pack)) => table.bytes(pack),
            _ => 0,
        }
    }

    /// Ends the current table, and its pack where that is full.
    pub(crate) fn cut(&mut self) -> Result<()> {
        let (Some(table), Some(pack)) = (self.table.take(), self.pack.as_mut()) else { return Ok(()) };
        self.tables.push(table.finish(pack)?);
        let full = match self.engine.options.tree.pack {
            PackLayout::OneTable => true,
            PackLayout::Many { bytes_max } => pack.len() >= bytes_max,
        };
        if full { self.seal() } else { Ok(()) }
    }

    fn seal(&mut self) -> Result<()> {
        if let Some(pack) = self.pack.take() {
            self.packs.records.push(pack.seal()?);
        }
        Ok(())
    }

    /// Completes everything and makes it durable: contents first, then, once, the names.
    pub(crate) fn finish(mut self) -> Result<Finished> {
        self.cut()?;
        self.seal()?;
        if !self.packs.records.is_empty() {
            // Other jobs' names, and the log's, may be among those whose fate is unknown after a failure.
            self.packs.store.sync_names().map_err(|error| self.engine.poison(error))?;
        }
        Ok(Finished { tables: std::mem::take(&mut self.tables), packs: self.packs })
    }
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
                let _ = self.store.remove(PackId(record.id.0));
            }
        }
    }
}
