//! What is done on a full disk, and the space kept back for it.
//!
//! What nobody needs goes first: spares, and dead tables inside of packs that live on; where those cannot be punched, jobs
//! and batches that put have packs rewritten, as far as there is room for what lives in them.
//!
//! What frees space needs some first: a delete its record in the log, a merge its outputs. So the file RESERVE takes up
//! [`Options::reserve_bytes`](crate::Options) of zeros, and is given up when a write or a job finds the disk full. Until it
//! has been made again, batches that put anything are refused and those that delete alone go on, as do flushes and
//! merges, one at a time. It is made again, by the first batch that needs it, where twice its size is free.
//!
//! The file means nothing to recovery: it may be missing, short, or left over.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::batch::WriteBatch;
use crate::env::sync::Mutex;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;
use crate::format::names::FileName;
use crate::store::device::Device;
use crate::store::meter::WriteCause;

/// The file is written in pieces of this size.
const WRITE_BYTES: u64 = 1 << 20;

/// A write that finds the disk full is done again once so much has been freed.
const FREED_BYTES: u64 = 4 << 20;

/// The reserve of an open store.
#[derive(Debug)]
pub(crate) struct Reserve {
    bytes: u64,
    /// Whether the file is there; always, as far as anybody cares, where `bytes` is 0.
    held: AtomicBool,
    /// Held while the file comes or goes.
    changing: Mutex<()>,
}

impl Reserve {
    /// The reserve of the store in `device`, made if there is room for it.
    pub(crate) fn open(device: &Device, bytes: u64) -> Result<Self> {
        let held = match prepare(device, bytes) {
            Err(error) if error.kind() == ErrorKind::DiskFull => false,
            prepared => prepared.map(|()| true)?,
        };
        Ok(Self { bytes, held: held.into(), changing: Mutex::new(()) })
    }

    /// A store that is only read needs none.
    pub(crate) fn none() -> Self {
        Self { bytes: 0, held: true.into(), changing: Mutex::new(()) }
    }
}

impl Engine {
    /// Does `write`. Where that finds the disk full, does it again in what space can be made, until none can.
    pub(crate) fn with_space<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match self.spares.yielding(&mut write) {
                // Under whatever lock: again and again rather than long.
                Err(error) if self.make_space(&error, FREED_BYTES) => {}
                written => return written,
            }
        }
    }

    /// Makes `bytes` of space if `error` is a full disk, or what can be made; whether there is more now.
    pub(crate) fn make_space(&self, error: &Error, bytes: u64) -> bool {
        error.kind() == ErrorKind::DiskFull
            && (self.free_dead(bytes) || self.free_spares() || self.give_up_reserve())
    }

    /// As [`Engine::make_space`], for a job, which needs much and holds no lock.
    pub(crate) fn make_space_for_job(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::DiskFull
            && (self.free_dead(u64::MAX)
                || self.free_spares()
                || self.rewrite_for_space()
                || self.give_up_reserve())
    }

    /// A pack that died before anybody asked for space may have become a spare since.
    fn free_spares(&self) -> bool {
        matches!(self.spares.free(), Ok(true))
    }

    /// Whether the reserve is given up.
    pub(crate) fn is_short_of_space(&self) -> bool {
        !self.reserve.held.load(Ordering::Relaxed)
    }

    fn give_up_reserve(&self) -> bool {
        if self.reserve.bytes == 0 {
            return false;
        }
        let _changing = self.reserve.changing.lock();
        // Space is free once no power cut can bring the file back.
        let give_up = || self.device.remove(FileName::Reserve).and_then(|()| self.device.sync_names());
        self.reserve.held.swap(false, Ordering::Relaxed) && give_up().is_ok()
    }

    /// Refuses a batch that needs more space than it may come to free, while the reserve is given up.
    pub(crate) fn check_reserve(&self, batch: &WriteBatch) -> Result<()> {
        let reserve = &self.reserve;
        if reserve.held.load(Ordering::Relaxed)
            || batch.iter().all(|op| !matches!(op.action, Action::Put { .. }))
        {
            return Ok(());
        }
        // Under no lock.
        while !self.has_room() && (self.free_spares() || self.rewrite_for_space()) {}
        if self.health.is_poisoned() {
            self.wake_writers();
        }
        let _changing = reserve.changing.lock();
        let held = reserve.held.load(Ordering::Relaxed);
        let room = || {
            self.has_room() || self.spares.free().is_ok_and(|freed| freed && self.has_room()) || {
                // Also where nothing was freed: what became a hole meanwhile counts for nobody.
                self.free_dead(reserve.bytes.saturating_mul(2));
                self.has_room()
            }
        };
        let made = held || room() && prepare(&self.device, reserve.bytes).is_ok();
        reserve.held.store(made, Ordering::Relaxed);
        if made {
            return Ok(());
        }
        let full = std::io::ErrorKind::StorageFull.into();
        let action = "write more than deletes until there is room for the reserve again";
        Err(Error::io(action, &self.device.path(FileName::Reserve), full))
    }

    fn has_room(&self) -> bool {
        let space = self.env.space(self.device.dir());
        space.is_ok_and(|space| space.free >= self.reserve.bytes.saturating_mul(2))
    }
}

/// Makes the file as large as it should be.
fn prepare(device: &Device, bytes: u64) -> Result<()> {
    let name = FileName::Reserve;
    if device.list()?.contains(&name) {
        if bytes > 0 && device.open(name, crate::env::Access::Read)?.len()? == bytes {
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
