//! The scan of a repair: finds what is still readable of a damaged store's catalog, tables and log. It changes
//! nothing.
//!
//! A manifest that reads to its end tells which tables are live. Without one, every table that is found in a pack
//! counts. It is found by the pack's directory or, where that is lost, by the footers of tables. Tables that
//! compactions had removed may then come back, as far as no newer version hides their entries.
//!
//! Preallocated packs hold nothing, or all of another pack. They are recognised by that and passed over: no job has
//! sealed them.
//!
//! Blocks and log records are taken one by one. The checksum of each binds it to its place, so what lies behind
//! damage is as good as what lies before it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::catalog::{Catalog, Lease};
use crate::engine::keyspace::tree::new_memtable;
use crate::env::Access;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Malformed;
use crate::format::batch::Ops;
use crate::format::block::Block;
use crate::format::edit::KeyspaceRecord;
use crate::format::names::FileName;
use crate::format::pack::PackEntry;
use crate::format::table::{FOOTER_BYTES, Footer, TABLE_MAGIC};
use crate::format::value_table::{VALUE_FOOTER_BYTES, VALUE_MAGIC, ValueFooter};
use crate::options::KeyspaceOptions;
use crate::store::files::device::Device;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::store::files::pack::{read_directory, stored_directory};
use crate::store::manifest::Manifest;
use crate::store::memtable::{ChunkPool, Memtable};
use crate::store::table::{TablePlace, TableReader};
use crate::store::value_table::pointer_of;
use crate::store::wal;
use crate::types::{
    Buffer, DeviceId, Extent, Key, KeyspaceId, PackId, RangeTombstone, SegmentId, Seq, Stamp, TableId, Ttl,
};

/// Packs are searched for footers in pieces of this size.
const SEARCH_BYTES: u64 = 1 << 20;

/// A damaged store, as far as it can be read.
pub(crate) struct RepairScan {
    /// Home first.
    devices: Vec<(DeviceId, Device)>,
    catalog: Catalog,
    /// Options of keyspaces that the catalog does not know.
    unknown: KeyspaceOptions,
    /// Whether the manifest was read to its end, so that the catalog knows what is live.
    pub(crate) whole_catalog: bool,
    pub(crate) tables: BTreeMap<KeyspaceId, Vec<FoundTable>>,
    pub(crate) memory: BTreeMap<KeyspaceId, Arc<Memtable>>,
    /// Times to live, as tables tell them; each with the newest table that tells the latest change.
    ttls: BTreeMap<KeyspaceId, (TableId, Ttl)>,
    /// Names.
    names: BTreeMap<KeyspaceId, Arc<str>>,
    /// Value tables.
    values: BTreeMap<TableId, Extent>,
    /// What could not be taken.
    pub(crate) lost: Vec<Error>,
    /// Tables that are all zeros, of which nobody knows whether they were live.
    pub(crate) zeroed: u64,
}

/// A table that may be read.
pub(crate) struct FoundTable {
    pub(crate) smallest: Key,
    range_tombstones: u64,
    id: TableId,
    extent: Extent,
    /// What entries with number 0 are numbered.
    number: Seq,
}

/// An entry as it was stored.
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) stamp: Stamp,
    pub(crate) value: Vec<u8>,
}

impl RepairScan {
    /// Reads everything but the entries of tables.
    pub(crate) fn new(devices: Vec<(DeviceId, Device)>, unknown: &KeyspaceOptions) -> Result<Self> {
        let (edits, damage) = Manifest::repair_scan(&devices[0].1)?;
        let mut repair_scan = Self {
            devices,
            catalog: Catalog::empty(),
            unknown: unknown.clone(),
            whole_catalog: damage.is_none(),
            tables: BTreeMap::new(),
            ttls: BTreeMap::new(),
            names: BTreeMap::new(),
            memory: BTreeMap::new(),
            values: BTreeMap::new(),
            lost: damage.into_iter().collect(),
            zeroed: 0,
        };
        for edit in edits {
            match repair_scan.catalog.apply(&edit, &mut |_| Lease::none()) {
                Ok(next) => repair_scan.catalog = next,
                Err(inconsistent) => {
                    let what = format!("edit {} does not fit: {inconsistent}", edit.number);
                    repair_scan.lost.push(Error::corruption(repair_scan.home().dir(), 0, what));
                    repair_scan.whole_catalog = false;
                    break;
                }
            }
        }
        repair_scan.find_tables()?;
        repair_scan.read_log()?;
        Ok(repair_scan)
    }

    /// The device that has log and manifest.
    fn home(&self) -> &Device {
        &self.devices[0].1
    }

    /// The file of a pack.
    fn pack(&self, device: DeviceId, pack: PackId) -> Result<StoreFile> {
        match self.devices.iter().find(|(id, _)| *id == device) {
            Some((_, device)) => device.open(FileName::Pack(pack), Access::Read),
            None => {
                let what = format!("pack {pack} is on device {device}, which is missing");
                Err(Error::corruption(&self.home().path(FileName::Devices), 0, what))
            }
        }
    }

    /// The keyspaces that hold anything or are known.
    pub(crate) fn keyspaces(&self) -> Vec<KeyspaceRecord> {
        let known = self.catalog.keyspaces.keys();
        let mut ids: Vec<_> = known.chain(self.tables.keys()).chain(self.memory.keys()).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| self.record(id)).collect()
    }

    /// What is known of a keyspace.
    pub(crate) fn record(&self, id: KeyspaceId) -> KeyspaceRecord {
        let told = self.ttls.get(&id).map(|(_, ttl)| *ttl);
        match self.catalog.keyspaces.get(&id) {
            Some(keyspace) => {
                let record = (*keyspace.record).clone();
                // Of a catalog whose end is lost, the tables may know more.
                let ttl =
                    record.ttl.map(|ttl| told.filter(|told| told.alive_from > ttl.alive_from).unwrap_or(ttl));
                KeyspaceRecord { ttl, ..record }
            }
            None => {
                let record =
                    crate::engine::shared::settings::keyspace_record(id, &self.name(id), &self.unknown);
                KeyspaceRecord { ttl: told.or(record.ttl), ..record }
            }
        }
    }

    /// The name of a keyspace that the catalog does not know. If several keyspaces had a name one after the other, the
    /// newest keeps it, unless the catalog knows another one of that name.
    fn name(&self, id: KeyspaceId) -> String {
        if id == crate::batch::DEFAULT_KEYSPACE {
            return "default".to_owned();
        }
        let is_taken = |name: &str, since: (Bound<KeyspaceId>, Bound<KeyspaceId>)| {
            name == "default"
                || self.names.range(since).any(|(_, other)| **other == *name)
                || self.catalog.keyspaces.values().any(|keyspace| keyspace.record.name == name)
        };
        if let Some(name) =
            self.names.get(&id).filter(|name| !is_taken(name, (Bound::Excluded(id), Bound::Unbounded)))
        {
            return name.to_string();
        }
        let mut name = format!("keyspace-{id}");
        while is_taken(&name, (Bound::Unbounded, Bound::Unbounded)) {
            name.push('-');
        }
        name
    }

    fn find_tables(&mut self) -> Result<()> {
        for (&keyspace, state) in self.catalog.keyspaces.iter() {
            let tables = self.tables.entry(keyspace).or_default();
            tables.extend(state.version.tables().map(|(_, table)| FoundTable {
                smallest: table.range.start.clone(),
                range_tombstones: table.range_tombstones,
                id: table.id,
                extent: table.extent,
                number: table.max_seq,
            }));
            let values = state.version.values().iter();
            self.values.extend(values.map(|table| (table.record.id, table.record.extent)));
        }
        if self.whole_catalog {
            return Ok(());
        }
        let is_zeroed = |scan: &Self, table: &FoundTable| {
            let file = scan.pack(table.extent.device, table.extent.pack);
            file.is_ok_and(|file| is_zeroed(&file, table.extent))
        };
        // Those are met again, and counted, in the directories of packs.
        let mut tables = std::mem::take(&mut self.tables);
        tables.values_mut().for_each(|tables| tables.retain(|table| !is_zeroed(self, table)));
        self.tables = tables;
        let mut packs = Vec::new();
        for (id, device) in &self.devices {
            packs.extend(device.list()?.into_iter().map(|name| (*id, name)));
        }
        for (device, name) in packs {
            if let FileName::Pack(pack) = name {
                self.search_pack(device, pack).unwrap_or_else(|error| self.lost.push(error));
            }
        }
        self.drop_lost_copies();
        Ok(())
    }

    /// Drops copies of tables that do not open, where another copy is left. A table lies in several packs if one of
    /// them was rewritten. Every copy that opens is read: only its blocks tell which is whole, and an entry that is
    /// found twice is the same.
    fn drop_lost_copies(&mut self) {
        let mut tables = std::mem::take(&mut self.tables);
        for found in tables.values_mut() {
            let mut copies: BTreeMap<TableId, usize> = BTreeMap::new();
            found.iter().for_each(|table| *copies.entry(table.id).or_default() += 1);
            found.retain(|table| match copies.get_mut(&table.id) {
                Some(count) if *count > 1 && self.open(table).is_err() => {
                    *count -= 1;
                    false
                }
                _ => true,
            });
        }
        self.tables = tables;
    }

    /// Adds the tables of a pack that the catalog does not know.
    fn search_pack(&mut self, device: DeviceId, pack: PackId) -> Result<()> {
        let file = self.pack(device, pack)?;
        let found = match list_directory(&file, (device, pack)) {
            Ok(found) => found,
            Err(_) if is_unsealed(&file).unwrap_or(false) => return Ok(()),
            Err(error) => {
                self.lost.push(error);
                search_footers(&file, (device, pack))?
            }
        };
        for (id, extent) in found {
            let known = self.tables.values().flatten().any(|table| (table.id, table.extent) == (id, extent));
            if known || self.values.contains_key(&id) {
                continue;
            }
            if is_value_table(&file, id, extent) {
                self.values.insert(id, extent);
                continue;
            }
            let properties = TableReader::open_data(&file, id, extent, Seq::ZERO)
                .and_then(|table| table.properties(&file));
            // Only the catalog has the number of ingested entries. A copy is as old as what it was copied from.
            let copied =
                self.tables.values().flatten().find(|table| table.id == id).map(|table| table.number);
            match properties {
                Ok(properties) => {
                    if let Some(ttl) = properties.ttl {
                        let newest = self.ttls.entry(properties.keyspace).or_insert((id, ttl));
                        if (newest.1.alive_from, newest.0) < (ttl.alive_from, id) {
                            *newest = (id, ttl);
                        }
                    }
                    self.names.extend(properties.name.map(|name| (properties.keyspace, name)));
                    self.tables.entry(properties.keyspace).or_default().push(FoundTable {
                        smallest: properties.range.start,
                        range_tombstones: properties.range_tombstones,
                        id,
                        extent,
                        number: copied.unwrap_or(properties.max_seq),
                    });
                }
                Err(_) if is_zeroed(&file, extent) => self.zeroed += 1,
                Err(error) => self.lost.push(error),
            }
        }
        Ok(())
    }

    fn read_log(&mut self) -> Result<()> {
        let floor = if self.whole_catalog { self.catalog.counters.wal_floor } else { SegmentId(0) };
        let (memory, catalog, whole) = (&mut self.memory, &self.catalog, self.whole_catalog);
        let mut last = Seq::ZERO;
        let chunks = Arc::new(ChunkPool::new(0));
        let mut lost = wal::repair_scan(&self.devices[0].1, floor, |first: Seq, ops: Ops<'_>| {
            if first <= last {
                return Err(Malformed::new(0, "sequence numbers of the log do not grow"));
            }
            for (op, seq) in ops.zip(first.0..) {
                let op = op?;
                last = Seq(seq);
                let dropped = whole && !catalog.keyspaces.contains_key(&op.keyspace);
                if !dropped {
                    // What is in tables is kept, too: they may be damaged.
                    let memtable = memory.entry(op.keyspace).or_insert_with(|| new_memtable(&chunks, b""));
                    memtable.apply(last, &op.action);
                }
            }
            Ok(())
        })?;
        self.lost.append(&mut lost);
        Ok(())
    }

    /// The range tombstones of a keyspace that check. What does not is told when the entries of its table are read.
    pub(crate) fn range_tombstones(&self, keyspace: KeyspaceId) -> Vec<RangeTombstone> {
        let tables = self.tables.get(&keyspace).into_iter().flatten();
        let opened =
            tables.filter(|table| table.range_tombstones > 0).filter_map(|table| self.open(table).ok());
        let memory = self.memory.get(&keyspace).map_or_else(Vec::new, |memtable| memtable.range_tombstones());
        opened.flat_map(|(_, table)| table.range_tombstones().to_vec()).chain(memory).collect()
    }

    fn open(&self, table: &FoundTable) -> Result<(StoreFile, TableReader)> {
        let file = self.pack(table.extent.device, table.extent.pack)?;
        let reader = TableReader::open_data(&file, table.id, table.extent, table.number)?;
        Ok((file, reader))
    }

    /// The value that the pointer `stored` of an entry leads to.
    pub(crate) fn follow(&self, stored: &[u8]) -> Result<Vec<u8>> {
        let pointer = pointer_of(stored)?;
        let Some(extent) = self.values.get(&pointer.table) else {
            let lost = format!("value table {} is lost, and a value in it", pointer.table);
            return Err(Error::new(ErrorKind::Corruption, lost));
        };
        let file = self.pack(extent.device, extent.pack)?;
        let at = extent.offset + u64::from(pointer.offset);
        let bytes = file.read(ReadCause::Open, at, pointer.stored as usize)?;
        let opened = pointer.open(&bytes, Buffer::alone).map_err(|error| file.malformed(at, &error))?;
        Ok(opened.map_or(bytes, |value| value.to_vec()))
    }

    /// The entries of a table that check, in order. What does not is added to the list.
    pub(crate) fn entries(&self, table: &FoundTable) -> TableEntries {
        match self.open(table) {
            Ok(opened) => TableEntries { opened: Some(opened), lost: Vec::new(), ..TableEntries::default() },
            Err(error) => TableEntries { lost: vec![error], ..TableEntries::default() },
        }
    }
}

/// A walk along the blocks of a table, past those that are damaged.
#[derive(Default)]
pub(crate) struct TableEntries {
    opened: Option<(StoreFile, TableReader)>,
    /// The partition at hand, if the table has any.
    partition: Option<TableReader>,
    next_partition: usize,
    next_block: usize,
    block: std::collections::VecDeque<Entry>,
    pub(crate) lost: Vec<Error>,
}

impl Iterator for TableEntries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while self.block.is_empty() {
            let (file, table) = self.opened.as_ref()?;
            let Some(handle) = self.partition.as_ref().unwrap_or(table).handle(self.next_block) else {
                if self.next_partition >= table.partitions() {
                    return None;
                }
                let opened = table.open_partition_data(file, self.next_partition);
                // Of one that is damaged the entries are lost, and of no other.
                self.partition = opened.map_err(|error| self.lost.push(error)).ok();
                self.next_partition += 1;
                self.next_block = 0;
                continue;
            };
            self.next_block += 1;
            let place = TablePlace { file, id: table.id(), extent: table.extent() };
            match place.decode(handle, Block::decode) {
                Ok(block) => self.block.extend((0..block.len()).map(|at| {
                    let mut key = Vec::new();
                    block.key_into(at, &mut key);
                    Entry { key, stamp: table.stamp(block.stamp(at)), value: block.value(at).to_vec() }
                })),
                Err(error) => self.lost.push(error),
            }
        }
        self.block.pop_front()
    }
}

/// The tables of a pack, by its directory.
fn list_directory(file: &StoreFile, (device, pack): (DeviceId, PackId)) -> Result<Vec<(TableId, Extent)>> {
    let (_, directory) = read_directory(file, pack, file.len()?)?;
    let extent = |offset, length| Extent { device, pack, offset, length };
    Ok(directory.tables.iter().map(|entry| (entry.table, extent(entry.offset, entry.length))).collect())
}

/// Whether a file that does not end in its own directory was never sealed under its name: it is empty, or it is
/// another pack, dead, that was to be overwritten. The directory alone does not tell: it may have come into the wrong
/// file.
fn is_unsealed(file: &StoreFile) -> Result<bool> {
    let length = file.len()?;
    if length == 0 {
        return Ok(true);
    }
    let (_, directory) = stored_directory(file, length)?;
    let stands = |entry: &PackEntry| {
        let extent =
            Extent { device: DeviceId(0), pack: directory.pack, offset: entry.offset, length: entry.length };
        if is_value_table(file, entry.table, extent) {
            return Some(());
        }
        let at = entry.offset.saturating_add(entry.length).checked_sub(FOOTER_BYTES as u64)?;
        let footer = Footer::decode(&file.read(ReadCause::Open, at, FOOTER_BYTES).ok()?).ok()?;
        (footer.table == entry.table).then_some(())
    };
    Ok(directory.tables.iter().any(|entry| stands(entry).is_some()))
}

/// Whether a table is all zeros. Then it was dead, most likely, and its space has been given back.
fn is_zeroed(file: &StoreFile, extent: Extent) -> bool {
    (0..extent.length).step_by(SEARCH_BYTES as usize).all(|at| {
        let length = usize::try_from(SEARCH_BYTES.min(extent.length - at)).unwrap_or(0);
        let piece = file.read(ReadCause::Open, extent.offset + at, length);
        piece.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    })
}

/// The tables of a pack, found by their footers. Each footer tells how far before it the table begins.
fn search_footers(file: &StoreFile, (device, pack): (DeviceId, PackId)) -> Result<Vec<(TableId, Extent)>> {
    let (length, overlap) = (file.len()?, FOOTER_BYTES as u64 - 1);
    let mut found = Vec::new();
    let mut start = 0;
    while start < length {
        let end = length.min(start + SEARCH_BYTES + overlap);
        let piece = file.read(ReadCause::Open, start, usize::try_from(end - start).unwrap_or(0))?;
        for (at, bytes) in piece.windows(FOOTER_BYTES).enumerate() {
            let Some(footer) = bytes.starts_with(&TABLE_MAGIC).then(|| Footer::decode(bytes).ok()).flatten()
            else {
                continue;
            };
            let before = footer.properties.offset.saturating_add(footer.properties.length.into());
            if let Some(offset) = (start + at as u64).checked_sub(before) {
                let length = before + FOOTER_BYTES as u64;
                found.push((footer.table, Extent { device, pack, offset, length }));
            }
        }
        for (at, bytes) in piece.windows(VALUE_FOOTER_BYTES).enumerate() {
            let Some(footer) =
                bytes.starts_with(&VALUE_MAGIC).then(|| ValueFooter::decode(bytes).ok()).flatten()
            else {
                continue;
            };
            if let Some(offset) = (start + at as u64).checked_sub(footer.length) {
                let length = footer.length + VALUE_FOOTER_BYTES as u64;
                found.push((footer.table, Extent { device, pack, offset, length }));
            }
        }
        start += SEARCH_BYTES;
    }
    Ok(found)
}

/// Whether the value table `id` lies at `extent`.
fn is_value_table(file: &StoreFile, id: TableId, extent: Extent) -> bool {
    let Some(at) = extent.end().checked_sub(VALUE_FOOTER_BYTES as u64) else { return false };
    let stored = file.read(ReadCause::Open, at, VALUE_FOOTER_BYTES);
    let footer = stored.ok().and_then(|stored| ValueFooter::decode(&stored).ok());
    footer.is_some_and(|footer| footer.table == id && extent.offset + footer.length == at)
}
