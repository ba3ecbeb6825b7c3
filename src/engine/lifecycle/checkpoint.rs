//! Checkpoint: a copy of the store at one moment, in another directory.
//!
//! The moment lies between two appends to the log. The copy has the catalog in force, whose versions hold their
//! tables, and the log from its floor to the last batch, whose files are held before anybody can give them up. The
//! death of the process would leave the same, so recovery makes a store of it. Everything else goes on meanwhile.
//! Batches in that log that are not visible yet become visible before the call returns, so no later reader misses
//! what the copy has.
//!
//! In a store that was opened for reading alone, the moment is that of its opening. Such a store holds its packs and
//! its log as long as it is open, even if the writer has removed their names.
//!
//! Of packs, the live extents and the directory are copied; the rest is left as holes.
//!
//! Invariant: the copy is synced before IDENTITY makes a store of it. A directory with the other files and without
//! that one is refused as damaged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::engine::jobs::context::JobContext;
use crate::engine::write::path::WritePath;
use crate::env::{Access, FileLock};
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::Edit;
use crate::format::identity::{Identity, StoreId};
use crate::format::names::FileName;
use crate::store::files::device::Device;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::{Meter, ReadCause, WriteCause};
use crate::store::files::pack::read_directory;
use crate::store::identity;
use crate::store::manifest::Manifest;
use crate::store::wal::RecoveredSegment;
use crate::types::{DeviceId, PackId, SegmentId};

/// The log is copied in pieces of this size.
const COPY_BYTES: u64 = 1 << 20;

/// Number of a copy's manifest.
const MANIFEST: u64 = 1;

/// What a checkpoint copies.
struct Moment {
    /// Its versions hold their tables, so no pack of it goes.
    catalog: Catalog,
    log: Vec<Segment>,
}

struct Segment {
    id: SegmentId,
    /// Whole batches end here.
    bytes: u64,
    file: Arc<StoreFile>,
}

/// What a checkpoint reads.
#[derive(Debug)]
pub(in crate::engine) struct Checkpoint<'a> {
    /// The catalog and the files.
    pub(in crate::engine) jobs: &'a JobContext,
    /// The log.
    pub(in crate::engine) write: &'a WritePath,
    /// The log of a store that was opened for reading alone.
    pub(in crate::engine) replayed: &'a [RecoveredSegment],
}

impl Checkpoint<'_> {
    /// Makes `dir`, which must be empty or not exist, an independent store with the contents of this moment.
    pub(in crate::engine) fn make(&self, dir: &Path) -> Result<()> {
        self.jobs.health.check_open()?;
        let (target, _lock) = self.target(dir)?;
        self.moment().and_then(|moment| self.copy(&moment, &target)).inspect_err(|_| clean_up(&target))
    }

    fn target(&self, dir: &Path) -> Result<(Device, FileLock)> {
        self.jobs.env.create_dir(dir).map_err(|e| Error::write_refused("create the directory", dir, e))?;
        let dir = self.jobs.env.canonical(dir).map_err(|e| Error::io("find the directory", dir, e))?;
        // A lock file alone is what an attempt that failed early has left.
        let ensure_empty = || {
            let found = self.jobs.env.list(&dir).map_err(|e| Error::io("list the directory", &dir, e))?;
            if found.iter().all(|name| *name == FileName::Lock.to_string()) {
                return Ok(());
            }
            let message = format!("a checkpoint needs an empty directory, and {} is none", dir.display());
            Err(Error::new(ErrorKind::InvalidInput, message))
        };
        ensure_empty()?;
        let target = Device::new(self.jobs.env.clone(), dir.clone(), Arc::new(Meter::default()));
        let lock = target.lock()?;
        // Looked at again under the lock: another checkpoint may have been as quick.
        ensure_empty()?;
        Ok((target, lock))
    }

    fn moment(&self) -> Result<Moment> {
        if self.write.writer.is_none() {
            let held = self.replayed.iter();
            let log = held.map(|RecoveredSegment { id, bytes, file, .. }| (*id, *bytes, file.clone()));
            let log = log.map(|(id, bytes, file)| Segment { id, bytes, file }).collect();
            return Ok(Moment { log, catalog: self.jobs.catalog.lock().catalog.clone() });
        }
        // Between two appends, and before what the catalog's floor says is needed can be given up.
        let writer = self.write.writer()?.lock();
        let catalog = self.jobs.catalog.lock().catalog.clone();
        let missed = planted!("checkpoint-misses-the-log");
        let needed = writer.wal.extents().filter(|&(id, _)| id >= catalog.counters.wal_floor);
        let needed = needed.map(|(id, bytes)| (id, if missed { 0 } else { bytes }));
        let log = needed.map(|(id, bytes)| Ok(Segment { id, bytes, file: Arc::new(self.log_file(id)?) }));
        let (log, last) = (log.collect::<Result<_>>()?, writer.last_seq);
        drop(writer);
        if !planted!("checkpoint-shows-what-no-reader-sees") {
            // In a poisoned store, some batches never become visible. Whether they count is unknown, and the copy may
            // have them, as a reopened store may.
            let _ = self.write.wait_visible(last);
        }
        Ok(Moment { log, catalog })
    }

    /// A segment of the log, held: see [`Device::hold`].
    fn log_file(&self, id: SegmentId) -> Result<StoreFile> {
        let name = FileName::Wal(id);
        if planted!("checkpoint-does-not-hold-the-log") {
            return self.jobs.storage.device.open(name, Access::Read);
        }
        self.jobs.storage.device.hold(name)
    }

    fn copy(&self, moment: &Moment, target: &Device) -> Result<()> {
        let mut live: BTreeMap<PackId, Vec<Range<u64>>> = BTreeMap::new();
        for extent in moment.catalog.live_extents() {
            live.entry(extent.pack).or_default().push(extent.offset..extent.end());
        }
        for (pack, mut ranges) in live {
            self.jobs.health.check_open()?;
            ranges.push(self.directory_of(pack, &moment.catalog)?);
            let source = self.jobs.cache.packs().file(pack)?;
            let file = target.copy(&source, FileName::Pack(pack), &ranges)?;
            if !planted!("checkpoint-packs-not-synced") {
                file.sync(WriteCause::Compaction)?;
            }
        }
        for segment in &moment.log {
            let file = target.create(FileName::Wal(segment.id))?;
            for at in (0..segment.bytes).step_by(usize::try_from(COPY_BYTES).unwrap_or(usize::MAX)) {
                let length = usize::try_from(COPY_BYTES.min(segment.bytes - at)).unwrap_or(0);
                let read = segment.file.read(ReadCause::Open, at, length);
                file.write(WriteCause::Wal, at, &read.map_err(|error| self.cut_off(error, segment))?)?;
            }
            file.sync(WriteCause::Wal)?;
        }
        // Makes the names durable before CURRENT has one.
        let identity = Identity { store: StoreId(self.jobs.env.random()), device: DeviceId(0) };
        Manifest::create(target, identity.store, MANIFEST, &at_home(moment.catalog.snapshot()))?;
        identity::write(target, &identity)
    }

    /// Why a segment of the log could not be read. The writer cuts off a batch that it could not write whole, and a
    /// reader beside it may have seen that batch.
    fn cut_off(&self, error: Error, segment: &Segment) -> Error {
        let is_shorter = || segment.file.len().is_ok_and(|length| length < segment.bytes);
        if self.write.writer.is_none() && is_shorter() {
            let what = "the store's writer has cut off a write that this reader has seen, in";
            let message = format!("{what} {}, at byte {}", segment.file.path().display(), segment.bytes);
            return Error::new(ErrorKind::Busy, message);
        }
        error
    }

    /// Where the directory of `pack` lies.
    fn directory_of(&self, pack: PackId, catalog: &Catalog) -> Result<Range<u64>> {
        let file = self.jobs.cache.packs().file(pack)?;
        let length = catalog.pack(pack).map_or(0, |pack| pack.record.length);
        let (start, _) = read_directory(&file, pack, length)?;
        Ok(start..length)
    }
}

/// The snapshot of a store that has all its packs at home.
fn at_home(mut snapshot: Edit) -> Edit {
    snapshot.packs.iter_mut().for_each(|pack| pack.device = DeviceId(0));
    let tables = snapshot.trees.iter_mut().flat_map(|tree| &mut tree.add);
    tables.for_each(|(_, table)| table.extent.device = DeviceId(0));
    let values = snapshot.trees.iter_mut().flat_map(|tree| &mut tree.values);
    values.for_each(|table| table.extent.device = DeviceId(0));
    snapshot
}

/// Removes what a checkpoint that failed has written. What this leaves is no store.
fn clean_up(target: &Device) {
    for name in target.list().unwrap_or_default() {
        let _ = target.remove(name);
    }
}
