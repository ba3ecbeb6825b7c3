//! Packs: the files that hold tables.
//!
//! A job writes its tables one behind the other, each at a multiple of [`PAGE_BYTES`], then a directory of them. It
//! syncs the file once ([`PackWriter::seal`]).
//!
//! # Invariants
//!
//! * A sealed pack never changes, but for holes where its dead tables lay.
//! * A pack's name is durable before any edit names it ([`PackStore::sync_names`]). Most often it is so before the
//!   job begins ([`PackStore::create_pooled`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::device::{Device, Named};
use super::file::{StoreFile, write_piece};
use super::meter::{ReadCause, WriteCause};
use crate::env::Access;
use crate::error::Result;
use crate::format::edit::PackRecord;
use crate::format::names::FileName;
use crate::format::pack::{PACK_TRAILER_BYTES, PackDirectory, PackEntry};
use crate::store::files::recycled::{NewFile, RecycledFiles};
use crate::types::{DeviceId, Extent, KeyspaceId, PAGE_BYTES, PackId, TableId};

/// Bytes are written in pieces of about this size.
const WRITE_BYTES: usize = 1 << 20;

/// So many bytes of a pack may be on their way to the disk. Users' reads wait behind them. (If a pack is synced at once, all of it is.)
const IN_FLIGHT_BYTES: u64 = 2 << 20;

/// Most file descriptors that are kept open for reading.
const DESCRIPTORS_MAX: usize = 768;

/// The packs of one device, opened on demand.
#[derive(Debug)]
pub(crate) struct PackStore {
    device: Arc<Device>,
    recycled: Arc<RecycledFiles>,
    /// Packs that stay open: a reader beside a writer holds its packs by their open files.
    pinned: BTreeMap<PackId, Arc<StoreFile>>,
    /// Whether each table has a file descriptor of its own, instead of each pack.
    per_table: bool,
    /// Open files by pack, and by the offset there of the table that the descriptor is for.
    open: quick_cache::sync::Cache<(PackId, u64), Arc<StoreFile>>,
    opened: AtomicU64,
}

/// The offset under which the descriptor of a whole pack is kept.
const WHOLE: u64 = 0;

impl PackStore {
    /// The packs in `device`. Those that are `pinned` stay readable even if their names are removed.
    pub(crate) fn new(
        device: Arc<Device>,
        recycled: Arc<RecycledFiles>,
        pinned: BTreeMap<PackId, Arc<StoreFile>>,
        per_table: bool,
    ) -> Self {
        let open = quick_cache::sync::Cache::new(DESCRIPTORS_MAX);
        Self { device, recycled, pinned, per_table, open, opened: AtomicU64::new(0) }
    }

    /// Where the packs are.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The pack's file, for reading.
    pub(crate) fn file(&self, pack: PackId) -> Result<Arc<StoreFile>> {
        self.file_at(pack, WHOLE)
    }

    /// The file of the table that lies at `extent`, for reading.
    pub(crate) fn table_file(&self, extent: Extent) -> Result<Arc<StoreFile>> {
        self.file_at(extent.pack, if self.per_table { extent.offset } else { WHOLE })
    }

    fn file_at(&self, pack: PackId, place: u64) -> Result<Arc<StoreFile>> {
        if let Some(file) = self.pinned.get(&pack) {
            return Ok(file.clone());
        }
        // Not opened under the cache's own lock, where others would wait for the disk.
        if let Some(file) = self.open.get(&(pack, place)) {
            return Ok(file);
        }
        let file = Arc::new(self.device.open(FileName::Pack(pack), Access::Read)?);
        self.opened.fetch_add(1, Relaxed);
        self.open.insert((pack, place), file.clone());
        Ok(file)
    }

    /// How often a pack was opened for reading.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    fn close(&self, pack: PackId) {
        if self.per_table {
            self.open.retain(|(open, _), _| *open != pack);
        } else {
            self.open.remove(&(pack, WHOLE));
        }
    }

    /// Starts a new pack on device `place`, for about `bytes` bytes, in a file that is made or recycled now.
    pub(crate) fn create(
        &self,
        id: PackId,
        place: DeviceId,
        cause: WriteCause,
        bytes: u64,
    ) -> Result<PackWriter> {
        let file = self.recycled.take(FileName::Pack(id), bytes)?;
        Ok(self.writer(id, file, place, cause))
    }

    /// As [`PackStore::create`], in a preallocated file if there is one, otherwise in one that is made now under the
    /// id that `id` gives. The job will start about `coming` more packs.
    pub(crate) fn create_pooled(
        &self,
        id: impl FnOnce() -> PackId,
        place: DeviceId,
        cause: WriteCause,
        (bytes, coming): (u64, usize),
    ) -> Result<PackWriter> {
        let (id, file) = self.recycled.take_pack(bytes, coming, id)?;
        Ok(self.writer(id, file, place, cause))
    }

    fn writer(&self, id: PackId, file: NewFile, place: DeviceId, cause: WriteCause) -> PackWriter {
        PackWriter {
            device: self.device.clone(),
            recycled: self.recycled.clone(),
            place,
            cause,
            file: file.file,
            named: file.named,
            directory: PackDirectory { pack: id, tables: Vec::new() },
            written: 0,
            on_disk: 0,
            buffer: Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4),
            sealed: false,
        }
    }

    /// Gives up a pack that nobody refers to. Needs no barrier: a name that a power cut brings back is removed at the
    /// next open. Returns `true` if the file has been removed, `false` if it became a recycled file.
    pub(crate) fn release(&self, pack: PackId, length: u64) -> Result<bool> {
        self.close(pack);
        self.recycled.give(FileName::Pack(pack), length)
    }

    /// As [`PackStore::release`], for a pack that must not be recycled.
    pub(crate) fn remove(&self, pack: PackId) -> Result<()> {
        self.close(pack);
        self.device.remove(FileName::Pack(pack))
    }

    /// Makes durable the names of packs that had them by `named`, unless they are durable: see [`PackWriter::named`].
    pub(crate) fn sync_names(&self, named: Named) -> Result<()> {
        self.device.sync_names_upto(named, WriteCause::Directory)
    }
}

/// Reads the directory at the end of `pack`, whose `file` has `length` bytes. Also returns the offset at which it
/// begins.
pub(crate) fn read_directory(file: &StoreFile, pack: PackId, length: u64) -> Result<(u64, PackDirectory)> {
    let (start, directory) = stored_directory(file, length)?;
    if directory.pack != pack {
        return Err(
            file.corruption(start, format!("the pack's directory is that of pack {}", directory.pack))
        );
    }
    Ok((start, directory))
}

/// Reads the directory at the end of `file`, which has `length` bytes, whichever pack it is of. Also returns the
/// offset at which it begins.
pub(crate) fn stored_directory(file: &StoreFile, length: u64) -> Result<(u64, PackDirectory)> {
    let trailer_at = length.saturating_sub(PACK_TRAILER_BYTES as u64);
    let trailer = file.read(ReadCause::Open, trailer_at, PACK_TRAILER_BYTES)?;
    let bytes = PackDirectory::decode_trailer(&trailer).map_err(|e| file.malformed(trailer_at, &e))?;
    let Some(start) = length.checked_sub(bytes as u64) else {
        return Err(file.corruption(trailer_at, "the pack's directory is longer than the pack"));
    };
    let stored = file.read(ReadCause::Open, start, bytes)?;
    let directory = PackDirectory::decode(&stored).map_err(|e| file.malformed(start, &e))?;
    Ok((start, directory))
}

/// A pack that a job is writing. If it is dropped before it is sealed, its file is removed.
#[derive(Debug)]
pub(crate) struct PackWriter {
    device: Arc<Device>,
    recycled: Arc<RecycledFiles>,
    place: DeviceId,
    cause: WriteCause,
    file: StoreFile,
    named: Named,
    directory: PackDirectory,
    written: u64,
    /// Up to here bytes are on the disk, or were when a part of the pack was written back.
    on_disk: u64,
    buffer: Vec<u8>,
    sealed: bool,
}

impl PackWriter {
    pub(crate) fn id(&self) -> PackId {
        self.directory.pack
    }

    /// The moment by which the pack had its name. The name must be durable before an edit names the pack.
    pub(crate) fn named(&self) -> Named {
        self.named
    }

    /// Bytes written, those in the buffer included.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Pads up to the next multiple of [`PAGE_BYTES`] and returns that offset.
    pub(crate) fn align(&mut self) -> u64 {
        let place = self.len().next_multiple_of(PAGE_BYTES);
        self.pad_to(place);
        place
    }

    /// Fills with zeros up to the offset `place`.
    pub(crate) fn pad_to(&mut self, place: u64) {
        debug_assert!(place >= self.len());
        let missing = usize::try_from(place - self.len()).unwrap_or(0);
        self.buffer.resize(self.buffer.len() + missing, 0);
    }

    /// The buffer to append to. Call [`PackWriter::drain`] from time to time.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends `piece`. A large one is not copied.
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<()> {
        if planted!("large-value-copied-for-its-table") {
            self.buffer.extend_from_slice(piece);
            return Ok(());
        }
        let (recycled, file, cause) = (&self.recycled, &self.file, self.cause);
        let write = |at, bytes: &[u8]| recycled.yielding(|| file.write(cause, at, bytes));
        self.written = write_piece(self.written, piece, &mut self.buffer, write)?;
        Ok(())
    }

    /// Writes full pieces, in whole pages: before the kernel changes a part of a page of a recycled file that is not
    /// in memory, it reads the page.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let whole_pages = self.buffer.len() - self.buffer.len() % PAGE_BYTES as usize;
        if whole_pages >= WRITE_BYTES { self.write_out(whole_pages) } else { Ok(()) }
    }

    /// The file, and the bytes that are not written to it yet.
    pub(crate) fn pending(&self) -> (&StoreFile, &[u8]) {
        (&self.file, &self.buffer)
    }

    /// Notes a finished table.
    pub(crate) fn add_table(&mut self, table: TableId, keyspace: KeyspaceId, offset: u64) -> Extent {
        let length = self.len() - offset;
        self.directory.tables.push(PackEntry { table, keyspace, offset, length });
        Extent { device: self.place, pack: self.directory.pack, offset, length }
    }

    /// Appends the directory and makes the contents durable. The name may not be durable: see
    /// [`PackStore::sync_names`].
    pub(crate) fn seal(mut self) -> Result<PackRecord> {
        self.align();
        self.buffer.extend_from_slice(&self.directory.encode());
        self.write_out(self.buffer.len())?;
        if self.file.len()? > self.written && !planted!("rest-of-a-recycled-file-kept") {
            // Cuts off the rest of the recycled file.
            self.file.set_len(self.written)?;
        }
        if !planted!("pack-not-synced") {
            self.file.sync(self.cause)?;
        }
        self.sealed = true;
        Ok(PackRecord { id: self.id(), device: self.place, length: self.written })
    }

    /// Writes the first `length` bytes of the buffer.
    fn write_out(&mut self, length: usize) -> Result<()> {
        self.recycled.yielding(|| self.file.write(self.cause, self.written, &self.buffer[..length]))?;
        let start = self.written;
        self.written += length as u64;
        self.buffer.drain(..length);
        self.write_back(start)
    }

    /// Starts to bring to the disk what was written from `start` on, and waits for what is too far behind.
    fn write_back(&mut self, start: u64) -> Result<()> {
        self.file.write_back(start..self.written, false)?;
        let end = self.written.saturating_sub(IN_FLIGHT_BYTES);
        if end > self.on_disk {
            self.file.write_back(self.on_disk..end, true)?;
            self.on_disk = end;
        }
        Ok(())
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.sealed {
            // Nothing refers to it; if this fails, the next open removes it.
            let _ = self.device.remove(FileName::Pack(self.id()));
        }
    }
}
