//! Repair: from a damaged store to a new one that holds everything whose checksums are right.
//!
//! All that [`RepairScan`] finds of a keyspace is merged. The newest version of each key counts, wherever it was
//! found. The result goes into the new store as an ingest. Tables are opened when the merge reaches them, so memory
//! grows with the number of tables that overlap, and with the log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::engine::Engine;
use super::opening::Opening;
use super::recovery::open;
use crate::batch::DEFAULT_KEYSPACE;
use crate::engine::lifecycle::repair_scan::{Entry, RepairScan, TableEntries};
use crate::engine::shared::settings::options_of;
use crate::engine::write::ingest::Ingestion;
use crate::env::LockKind;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::KeyspaceRecord;
use crate::format::names::FileName;
use crate::merge::{Coverage, Cursor, fragment};
use crate::stats::RepairReport;
use crate::store::files::device::Device;
use crate::store::files::meter::Meter;
use crate::store::memtable::MemtableCursor;
use crate::store::{device_list, identity};
use crate::types::{DeviceId, Stamp};

/// Builds a store in `target`, an empty or new directory, of what checks in the store that `opening` names.
pub(crate) fn repair(opening: &Opening, target: &Path) -> Result<RepairReport> {
    let env = &opening.env;
    let dir = env.canonical(&opening.dir).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => nothing(&opening.dir),
        _ => Error::io("find the directory", &opening.dir, e),
    })?;
    let device = Device::new(env.clone(), dir, Arc::new(Meter::default()));
    let names = device.list()?;
    if !names.iter().any(|name| matches!(name, FileName::Pack(_) | FileName::Wal(_) | FileName::Manifest(_)))
    {
        return Err(nothing(&opening.dir));
    }
    // Taken without a change; where there is no lock file, nobody has the store open.
    let lock = env.lock(&device.path(FileName::Lock), LockKind::Shared);
    if lock.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
        return Err(Error::new(ErrorKind::Busy, "the store is open in another handle or process"));
    }
    let devices = readable_devices(opening, device);
    let repair_scan = RepairScan::new(devices, &opening.options.keyspace)?;
    env.create_dir(target).map_err(|e| Error::write_refused("create the directory", target, e))?;
    if !env.list(target).map_err(|e| Error::io("list the directory", target, e))?.is_empty() {
        let message = format!("a repaired store needs an empty directory, and {} is none", target.display());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let mut opening = Opening {
        dir: target.to_path_buf(),
        devices: Vec::new(),
        read_only: false,
        must_exist: false,
        ..opening.clone()
    };
    // The keyspace that comes with a store is to be what it was.
    opening.options.keyspace = options_of(&repair_scan.record(DEFAULT_KEYSPACE));
    // What is saved may be more than could be put.
    opening.options.space_bytes = None;
    let engine = open(&opening)?;
    let repaired = fill(&engine, repair_scan);
    let closed = engine.close();
    repaired.and_then(|report| closed.map(|()| report))
}

/// The devices of the store at `home`, as far as they are found: those that are given, and those that DEVICES names.
fn readable_devices(opening: &Opening, home: Device) -> Vec<(DeviceId, Device)> {
    let listed = device_list::find(&home).ok().flatten();
    let listed = listed.iter().flat_map(|list| list.devices.iter().map(|device| PathBuf::from(&device.dir)));
    let store = identity::read(&home).ok().map(|identity| identity.store);
    let mut found = vec![(DeviceId(0), home)];
    for dir in opening.devices.iter().cloned().chain(listed) {
        let Ok(dir) = opening.env.canonical(&dir) else { continue };
        let device = Device::new(opening.env.clone(), dir, Arc::new(Meter::default()));
        let Ok(identity) = identity::read(&device) else { continue };
        let is_ours = store.is_none_or(|store| store == identity.store);
        if is_ours && found.iter().all(|(id, _)| *id != identity.device) {
            found.push((identity.device, device));
        }
    }
    found
}

fn nothing(dir: &Path) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no store in {}", dir.display()))
}

fn fill(engine: &Arc<Engine>, mut repair_scan: RepairScan) -> Result<RepairReport> {
    let (whole_catalog, zeroed_tables) = (repair_scan.whole_catalog, repair_scan.zeroed);
    let mut report = RepairReport { whole_catalog, zeroed_tables, ..RepairReport::default() };
    for record in repair_scan.keyspaces() {
        let tree = engine.keyspaces.create(&record.name, &options_of(&record))?;
        record.ttl.map_or(Ok(()), |ttl| engine.keyspaces.inherit_ttl(&tree, ttl))?;
        let mut ingestion = Ingestion::new(&engine.write, &tree)?;
        let mut merge = Merge::new(&repair_scan, &record);
        let mut coverage = Coverage::new(fragment(&repair_scan.range_tombstones(record.id), &[]));
        let mut last: Option<Vec<u8>> = None;
        let mut lost_values = Vec::new();
        for Entry { key, stamp, value } in merge.by_ref() {
            // The newest version of a key comes first.
            if last.as_ref() != Some(&key) {
                if stamp.kind().is_put() && coverage.newer_than(&key, stamp.seq()).is_none() {
                    let value = if stamp.is_separated() { repair_scan.follow(&value) } else { Ok(value) };
                    let value = match value {
                        Ok(value) => value,
                        Err(error) => {
                            // As with a damaged block, an older version counts.
                            lost_values.push(error);
                            continue;
                        }
                    };
                    ingestion.push_stored(&key, &value)?;
                    report.entries += 1;
                }
                last = Some(key);
            }
        }
        let mut lost = merge.lost;
        ingestion.finish()?;
        report.keyspaces += 1;
        report.tables += repair_scan.tables.get(&record.id).map_or(0, |tables| tables.len() as u64);
        repair_scan.lost.append(&mut lost);
        repair_scan.lost.append(&mut lost_values);
    }
    report.lost = repair_scan.lost;
    Ok(report)
}

/// Where entries come from.
enum Source {
    Memory(MemtableCursor),
    /// Not opened yet.
    Table(usize),
    Entries(Box<TableEntries>),
}

/// A source and its next entry: by key, then newest first. A table that is not opened stands before its smallest key.
struct Head {
    entry: Entry,
    source: Source,
}

impl Head {
    fn rank(&self) -> (&[u8], Reverse<Stamp>) {
        (&self.entry.key, Reverse(self.entry.stamp))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// All that was found of a keyspace, in order.
struct Merge<'a> {
    repair_scan: &'a RepairScan,
    record: &'a KeyspaceRecord,
    heads: BinaryHeap<Reverse<Head>>,
    lost: Vec<Error>,
}

impl<'a> Merge<'a> {
    fn new(repair_scan: &'a RepairScan, record: &'a KeyspaceRecord) -> Self {
        let mut merge = Self { repair_scan, record, heads: BinaryHeap::new(), lost: Vec::new() };
        for (at, table) in repair_scan.tables.get(&record.id).into_iter().flatten().enumerate() {
            let entry = Entry { key: table.smallest.to_vec(), stamp: Stamp::MAX, value: Vec::new() };
            merge.heads.push(Reverse(Head { entry, source: Source::Table(at) }));
        }
        if let Some(memtable) = repair_scan.memory.get(&record.id) {
            let mut cursor = memtable.cursor();
            // Memory does not fail.
            let _ = cursor.seek_first();
            merge.advance(Source::Memory(cursor));
        }
        merge
    }

    /// Puts `source` back with its next entry, if there is one.
    fn advance(&mut self, mut source: Source) {
        let entry = match &mut source {
            Source::Memory(cursor) if cursor.valid() => {
                let (key, value) = (cursor.key().to_vec(), cursor.value().to_vec());
                let entry = Entry { key, stamp: cursor.stamp(), value };
                let _ = cursor.next();
                Some(entry)
            }
            Source::Memory(_) | Source::Table(_) => None,
            Source::Entries(entries) => {
                let entry = entries.next();
                self.lost.append(&mut entries.lost);
                entry
            }
        };
        if let Some(entry) = entry {
            self.heads.push(Reverse(Head { entry, source }));
        }
    }
}

impl Iterator for Merge<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let Reverse(Head { entry, source }) = self.heads.pop()?;
            if let Source::Table(at) = source {
                let table = &self.repair_scan.tables[&self.record.id][at];
                self.advance(Source::Entries(Box::new(self.repair_scan.entries(table))));
            } else {
                self.advance(source);
                return Some(entry);
            }
        }
    }
}
