//! The reserve: what the store does on a full disk, and the space that it keeps back for it.
//!
//! # Order
//!
//! On a full disk, space that nobody needs is freed first: what compaction buffers hold, recycled files, then dead
//! tables in live packs. Where these cannot be punched, jobs and batches that put have packs rewritten, as far as there
//! is room for their live tables.
//!
//! # The file RESERVE
//!
//! To free space takes some space: a delete needs its record in the log, a compaction its outputs. So the file
//! RESERVE holds [`Options::reserve_bytes`](crate::Options) of zeros. It is given up when a write or a job finds the
//! disk full. Until it is made again, batches that put anything are refused, and flushes and compactions run one at a
//! time. Batches that only delete may take half of it. The other half, [`for_jobs`], is left to the jobs without
//! which deletes free nothing. If jobs have taken it, the next batch that only deletes makes it again, or is refused
//! too. The first batch that puts makes the whole reserve again, once twice its size is free.
//!
//! Recovery ignores the file: it may be missing, short, or left over.

use std::sync::atomic::{AtomicU64, Ordering};

use super::storage::Storage;
use crate::env::Access;
use crate::env::sync::{OrderedMutex, Rank};
use crate::error::{ErrorKind, Result};
use crate::format::names::FileName;
use crate::store::files::device::Device;
use crate::store::files::meter::WriteCause;

/// The file is written in pieces of this many bytes.
const WRITE_BYTES: u64 = 1 << 20;

/// A write that finds the disk full is repeated once this many bytes have been freed.
const FREED_BYTES: u64 = 4 << 20;

/// The reserve of an open store.
#[derive(Debug)]
pub(crate) struct Reserve {
    pub(in crate::engine) bytes: u64,
    /// Length of the file, in bytes: the whole reserve, the part for jobs, or 0.
    held: AtomicU64,
    /// Locked while the file is made, cut or removed.
    pub(in crate::engine) changing: OrderedMutex<()>,
}

impl Reserve {
    /// The reserve of the store in `device`, made if there is room for it.
    pub(crate) fn open(device: &Device, bytes: u64) -> Result<Self> {
        let mut held = 0;
        for part in [bytes, for_jobs(bytes)] {
            match prepare(device, part) {
                Err(error) if error.kind() == ErrorKind::DiskFull => {}
                prepared => {
                    prepared?;
                    held = part;
                    break;
                }
            }
        }
        Ok(Self { bytes, held: held.into(), changing: OrderedMutex::new(Rank::Reserve, ()) })
    }

    /// No reserve, for a read-only store.
    pub(crate) fn none() -> Self {
        Self { bytes: 0, held: 0.into(), changing: OrderedMutex::new(Rank::Reserve, ()) }
    }

    /// Whether at least `bytes` of it are held.
    pub(in crate::engine) fn holds(&self, bytes: u64) -> bool {
        self.held.load(Ordering::Relaxed) >= bytes
    }
}

impl Storage {
    /// Calls `write`. While that finds the disk full, frees space and calls it again, until no space can be freed.
    pub(crate) fn with_space<T>(&self, write: impl FnMut() -> Result<T>) -> Result<T> {
        self.with_space_but(0, write)
    }

    /// As [`Storage::with_space`], for writes to the log: jobs keep their part of the reserve.
    pub(crate) fn with_space_for_log<T>(&self, write: impl FnMut() -> Result<T>) -> Result<T> {
        self.with_space_but(for_jobs(self.reserve.bytes), write)
    }

    fn with_space_but<T>(&self, kept: u64, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match self.recycled.yielding(&mut write) {
                // The caller may hold a lock, so free a little at a time.
                Err(error)
                    if error.kind() == ErrorKind::DiskFull
                        && (self.free_dead(FREED_BYTES)
                            || self.free_recycled()
                            || self.give_up_reserve(kept)) => {}
                written => return written,
            }
        }
    }

    /// Frees the recycled files: a pack that died before anybody asked for space may have become one.
    pub(in crate::engine) fn free_recycled(&self) -> bool {
        matches!(self.devices.free_recycled(), Ok(true))
    }

    /// Whether the reserve is given up, wholly or in part.
    pub(crate) fn is_short_of_space(&self) -> bool {
        !self.reserve.holds(self.reserve.bytes)
    }

    /// Bytes that jobs may still take of a reserve that is given up in part.
    pub(in crate::engine) fn rest_of_reserve(&self) -> u64 {
        if self.is_short_of_space() { self.reserve.held.load(Ordering::Relaxed) } else { 0 }
    }

    /// Gives that rest to a job that writes `bytes`, if it needs it.
    pub(in crate::engine) fn take_rest_of_reserve(&self, bytes: u64) {
        if self.rest_of_reserve() > 0 && bytes > self.free_bytes() / 2 {
            self.give_up_reserve(0);
        }
    }

    /// Gives up the reserve except for `kept` bytes. Returns whether that has freed space.
    pub(in crate::engine) fn give_up_reserve(&self, kept: u64) -> bool {
        let _changing = self.reserve.changing.lock();
        if self.reserve.held.fetch_min(kept, Ordering::Relaxed) <= kept {
            return false;
        }
        // Space is free once no power cut can bring it back.
        let give_up = || match kept {
            0 => self.device.remove(FileName::Reserve).and_then(|()| self.device.sync_names()),
            _ => {
                let file = self.device.open(FileName::Reserve, Access::ReadWrite)?;
                file.set_len(kept).and_then(|()| file.sync(WriteCause::Manifest))
            }
        };
        give_up().is_ok()
    }

    /// Writes `bytes` of reserve. Returns whether there was room.
    pub(in crate::engine) fn prepare_reserve(&self, bytes: u64) -> Result<bool> {
        let made = prepare(&self.device, bytes);
        self.reserve.held.store(if made.is_ok() { bytes } else { 0 }, Ordering::Relaxed);
        match made {
            Err(error) if error.kind() == ErrorKind::DiskFull => Ok(false),
            made => made.map(|()| true),
        }
    }

    pub(in crate::engine) fn has_room(&self) -> bool {
        let space = self.env.space(self.device.dir());
        space.is_ok_and(|space| space.free >= self.reserve.bytes.saturating_mul(2))
    }
}

/// How much of a reserve of `bytes` only jobs may take.
pub(in crate::engine) fn for_jobs(bytes: u64) -> u64 {
    if planted!("deletes-take-the-whole-reserve") { 0 } else { bytes / 2 }
}

/// Makes the file with a length of `bytes`, or removes it if that is 0.
fn prepare(device: &Device, bytes: u64) -> Result<()> {
    let name = FileName::Reserve;
    if device.list()?.contains(&name) {
        if bytes > 0 && device.open(name, Access::Read)?.len()? == bytes {
            return Ok(());
        }
        device.remove(name)?;
    }
    if bytes == 0 {
        return Ok(());
    }
    let file = device.create(name)?;
    let zeros = vec![0; usize::try_from(WRITE_BYTES.min(bytes)).unwrap_or(0)];
    for at in (0..bytes).step_by(zeros.len()) {
        let piece = zeros.len().min(usize::try_from(bytes - at).unwrap_or(zeros.len()));
        let written = file.write(WriteCause::Manifest, at, &zeros[..piece]);
        written.inspect_err(|_| drop(device.remove(name)))?;
    }
    Ok(())
}
