//! Packs: the files that hold tables.
//!
//! A job writes its tables one behind the other, each at a multiple of [`PAGE_BYTES`], then a directory of them. It
//! syncs the file once ([`PackWriter::seal`]). A job that writes to several devices has a pack on each, which their queues write
//! ([`write_queue`](super::write_queue)), and syncs all of them at once.
//!
//! # Invariants
//!
//! * A sealed pack never changes, but for holes where its dead tables lay.
//! * A pack's name is durable before any edit names it ([`PackStore::sync_names`]). Most often it is so before the
//!   job begins ([`PackStore::create_pooled`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::device::Named;
use super::devices::{Devices, Member};
use super::file::{StoreFile, write_piece};
use super::meter::{ReadCause, WriteCause};
use super::write_queue::{PackFile, What};
use crate::env::Access;
use crate::error::Result;
use crate::format::edit::PackRecord;
use crate::format::names::FileName;
use crate::format::pack::{PACK_TRAILER_BYTES, PackDirectory, PackEntry};
use crate::store::files::recycled::NewFile;
use crate::types::{DeviceId, Extent, KeyspaceId, PAGE_BYTES, PackId, TableId};

/// Bytes are written in pieces of about this size.
const WRITE_BYTES: usize = 1 << 20;

/// Room for a piece and for what is behind it.
const BUFFER_BYTES: usize = WRITE_BYTES + WRITE_BYTES / 4;

/// Most file descriptors that are kept open for reading.
const DESCRIPTORS_MAX: usize = 768;

/// The packs of a store, opened on demand.
#[derive(Debug)]
pub(crate) struct PackStore {
    devices: Arc<Devices>,
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
    /// The packs on `devices`. Those that are `pinned` stay readable even if their names are removed.
    pub(crate) fn new(
        devices: Arc<Devices>,
        pinned: BTreeMap<PackId, Arc<StoreFile>>,
        per_table: bool,
    ) -> Self {
        let open = quick_cache::sync::Cache::new(DESCRIPTORS_MAX);
        Self { devices, pinned, per_table, open, opened: AtomicU64::new(0) }
    }

    /// Where the packs are.
    pub(crate) fn devices(&self) -> &Arc<Devices> {
        &self.devices
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
        let file = Arc::new(self.devices.of(pack).device.open(FileName::Pack(pack), Access::Read)?);
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
        self.begin(place, cause, |member| Ok((id, member.recycled.take(FileName::Pack(id), bytes)?)))
    }

    /// As [`PackStore::create`], in a preallocated file if there is one, otherwise in one that is made now under the
    /// id that `id` gives. The job will start about `coming` more packs.
    pub(crate) fn create_pooled(
        &self,
        id: impl Fn() -> PackId,
        place: DeviceId,
        cause: WriteCause,
        (bytes, coming): (u64, usize),
    ) -> Result<PackWriter> {
        self.begin(place, cause, |member| member.recycled.take_pack(bytes, coming, &id))
    }

    /// Starts a pack in the file that `take` gives, at home if the device `place` has gone or is leaving.
    fn begin(
        &self,
        mut place: DeviceId,
        cause: WriteCause,
        take: impl Fn(&Member) -> Result<(PackId, NewFile)>,
    ) -> Result<PackWriter> {
        loop {
            let member = self.devices.member(place);
            let (id, file) = member.noting(take(&member))?;
            if self.devices.note_begun(id, member.id) {
                return Ok(self.writer(id, file, member, cause));
            }
            member.device.remove(FileName::Pack(id))?;
            place = self.devices.home().id;
        }
    }

    fn writer(&self, id: PackId, file: NewFile, member: Arc<Member>, cause: WriteCause) -> PackWriter {
        PackWriter {
            devices: self.devices.clone(),
            file: Arc::new(PackFile::new(file.file, member.recycled.clone(), cause)),
            member,
            named: file.named,
            directory: PackDirectory { pack: id, tables: Vec::new() },
            written: 0,
            expected: 0,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            sealed: false,
        }
    }

    /// Gives up a pack that nobody refers to. Needs no barrier: a name that a power cut brings back is removed at the
    /// next open. Returns `true` if the file has been removed, `false` if it became a recycled file.
    pub(crate) fn release(&self, pack: PackId, length: u64) -> Result<bool> {
        self.close(pack);
        let given = self.devices.of(pack).recycled.give(FileName::Pack(pack), length);
        self.devices.forget(pack);
        given
    }

    /// As [`PackStore::release`], for a pack that must not be recycled.
    pub(crate) fn remove(&self, pack: PackId) -> Result<()> {
        self.close(pack);
        let removed = self.devices.of(pack).device.remove(FileName::Pack(pack));
        self.devices.forget(pack);
        removed
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
    devices: Arc<Devices>,
    member: Arc<Member>,
    file: Arc<PackFile>,
    named: Named,
    directory: PackDirectory,
    /// Bytes that are written, or handed to the device's queue.
    written: u64,
    /// Bytes of the pack that the queue expects to be handed.
    expected: u64,
    buffer: Vec<u8>,
    sealed: bool,
}

/// A pack that is being made durable. If it is dropped before [`Sealing::finish`], its file is removed.
#[derive(Debug)]
pub(crate) struct Sealing(PackWriter);

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

    /// Appends `piece`. A large one is not copied, unless a queue writes it.
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<()> {
        if planted!("large-value-copied-for-its-table") {
            self.buffer.extend_from_slice(piece);
            return Ok(());
        }
        // The queue counts down what it is handed: all of it is expected before.
        self.expect_up_to(self.expected.max(self.len() + piece.len() as u64));
        let (file, member) = (&self.file, &self.member);
        let mut handed = self.written;
        let write = |offset, bytes: &[u8]| match &member.queue {
            Some(queue) => {
                queue.hand_over(file, What::Write { offset, bytes: bytes.to_vec() })?;
                handed = offset + bytes.len() as u64;
                Ok(())
            }
            None => file.write_piece(offset, bytes),
        };
        let written = write_piece(self.written, piece, &mut self.buffer, write);
        // After a failure, too, what was handed over is not taken back.
        self.written = *written.as_ref().unwrap_or(&handed);
        self.member.noting(written.map(drop))
    }

    /// Writes full pieces, in whole pages: before the kernel changes a part of a page of a recycled file that is not
    /// in memory, it reads the page.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let whole_pages = self.buffer.len() - self.buffer.len() % PAGE_BYTES as usize;
        if whole_pages >= WRITE_BYTES { self.write_out(whole_pages) } else { Ok(()) }
    }

    /// The file, and the bytes that are not written to it yet.
    pub(crate) fn pending(&self) -> (&StoreFile, &[u8]) {
        (self.file.file(), &self.buffer)
    }

    /// The device that has it.
    pub(crate) fn device(&self) -> DeviceId {
        self.member.id
    }

    /// Tells the device that a table of about `bytes` comes.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.expect_up_to(self.len() + bytes);
    }

    fn expect_up_to(&mut self, length: u64) {
        let before = std::mem::replace(&mut self.expected, length.max(self.written));
        if let Some(queue) = &self.member.queue {
            queue.expect(self.expected.saturating_sub(before), before.saturating_sub(self.expected));
        }
    }

    /// Notes a finished table.
    pub(crate) fn add_table(&mut self, table: TableId, keyspace: KeyspaceId, offset: u64) -> Extent {
        let length = self.len() - offset;
        self.directory.tables.push(PackEntry { table, keyspace, offset, length });
        self.expect_up_to(self.len());
        self.member.gave(length);
        Extent { device: self.member.id, pack: self.directory.pack, offset, length }
    }

    /// Appends the directory and makes the contents durable. The name may not be durable: see [`PackWriter::named`].
    pub(crate) fn seal(self) -> Result<PackRecord> {
        self.begin_seal()?.finish()
    }

    /// Begins to do that. Where the device has a queue, the caller may begin with other packs before it waits.
    pub(crate) fn begin_seal(self) -> Result<Sealing> {
        let member = self.member.clone();
        member.noting(self.seal_soon())
    }

    fn seal_soon(mut self) -> Result<Sealing> {
        self.align();
        self.buffer.extend_from_slice(&self.directory.encode());
        self.expect_up_to(self.len());
        self.write_out(self.buffer.len())?;
        self.buffer = Vec::new();
        match &self.member.queue {
            Some(queue) => queue.hand_over(&self.file, What::Seal { length: self.written })?,
            None => self.file.seal(self.written)?,
        }
        Ok(Sealing(self))
    }

    /// Writes the first `length` bytes of the buffer.
    fn write_out(&mut self, length: usize) -> Result<()> {
        let offset = self.written;
        self.expect_up_to(self.expected.max(offset + length as u64));
        let written = match &self.member.queue {
            Some(queue) => {
                let mut bytes = Vec::with_capacity(BUFFER_BYTES);
                bytes.extend_from_slice(&self.buffer[length..]);
                std::mem::swap(&mut bytes, &mut self.buffer);
                bytes.truncate(length);
                queue.hand_over(&self.file, What::Write { offset, bytes })
            }
            None => {
                let written = self.file.write(offset, &self.buffer[..length]);
                self.buffer.drain(..length);
                written
            }
        };
        // What was not handed over is taken back when the pack is dropped.
        if written.is_ok() {
            self.written += length as u64;
        }
        self.member.noting(written)
    }
}

impl Sealing {
    /// Whether [`Sealing::finish`] need not wait.
    pub(crate) fn is_done(&self) -> bool {
        self.0.file.is_done()
    }

    /// Waits until the pack is durable.
    pub(crate) fn finish(self) -> Result<PackRecord> {
        let Self(mut pack) = self;
        pack.member.noting(pack.file.wait_done())?;
        pack.sealed = true;
        Ok(PackRecord { id: pack.id(), device: pack.member.id, length: pack.written })
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.sealed {
            if let Some(queue) = &self.member.queue {
                queue.expect(0, self.expected.saturating_sub(self.written));
            }
            // Nothing refers to it; if this fails, the next open removes it.
            let _ = self.member.device.remove(FileName::Pack(self.id()));
            self.devices.forget(self.id());
        }
    }
}
