//! Recycled files: dead packs and log segments that are kept to be overwritten by new files.
//!
//! # Why
//!
//! To overwrite a file is cheaper than to write a new one: its blocks are allocated, its pages are in memory, and
//! nothing need be unlinked (`docs/benchmarks/choices.md`, "Recycled files").
//!
//! # How
//!
//! A dead pack or log segment takes the name of a recycled file. Whoever needs a file of its kind renames it to the
//! name that it wants. The old contents mean nothing to the new owner: it writes from offset 0, and its reads are
//! guarded by checksums that cover ids and offsets.
//!
//! Packs and segments are kept apart. The kernel holds a pack's pages in large pieces, and would write back a whole
//! piece for a small append to a log.
//!
//! Renames need no barrier: nothing that a crash can bring back refers to a recycled file, or to the names that its
//! file had and gets. When the store is closed or opened, and when the disk is full, recycled files are removed.
//!
//! # Preallocated packs
//!
//! Some recycled files, and some empty files, take the names of packs before a job needs them; [`Pool`] says why and
//! how many. They are as dead as recycled files, count as such, and are removed with them. Whoever has them made
//! ([`RecycledFiles::make_packs`]) makes their names durable, with one sync for all.
//!
//! # Readers of dead files
//!
//! Two kinds of readers may still need a file that is dead for the writer. Both take a hold on it ([`Device::hold`]):
//! a checkpoint on the log of its moment; a reader beside the writer, perhaps in another process, on its packs and
//! the log that it has read. A file that is held when it is given is not recycled but removed, which leaves its bytes
//! to whoever has it open. This protects only a hold that was taken *before the file was given*. So each holder makes
//! sure of that:
//!
//! * A checkpoint takes hold of the log under the writer's lock. No segment can be released, hence given, meanwhile.
//! * A reader takes hold of everything that a manifest names, and then reads the manifest again. A file is given only
//!   after the edit that drops it is in the manifest (for the log: the edit that raises its floor). If the manifest
//!   still names the file, that edit, and so the giving of the file, came after the hold. Otherwise the reader lets
//!   go and begins again.
//!
//! Names are never used twice, so the file that is held is the one that was named. Between the check for holders and
//! the rename somebody may take hold of a file in vain. It finds out when it reads its manifest again.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use super::device::{Device, Named};
use super::file::StoreFile;
use super::pool::{Pool, Pooled, fits};
use crate::env::Access;
use crate::env::sync::{OrderedMutex, Rank};
use crate::error::{ErrorKind, Result};
use crate::format::names::FileName;
use crate::types::PackId;

/// A shorter file is not kept, unless it is a good part of all that may be kept, in bytes.
const KEPT_BYTES_MIN: u64 = 256 << 10;
const KEPT_SHARE_MIN: u64 = 16;

/// A file to be written, and the moment by which it had its name.
#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) file: StoreFile,
    pub(crate) named: Named,
}

/// The recycled files of one device.
#[derive(Debug)]
pub(crate) struct RecycledFiles {
    device: Arc<Device>,
    state: OrderedMutex<State>,
    /// Whether recycled files were removed whose directory has not been synced since. Locked while files are removed,
    /// before `state`.
    removed: OrderedMutex<bool>,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<Recycled>,
    pool: Pool,
    /// Recycled files are kept up to this many bytes.
    bytes_max: u64,
    next: u64,
    closed: bool,
}

#[derive(Debug)]
struct Recycled {
    number: u64,
    length: u64,
    /// The kind of file that it was, and may become again.
    kind: Discriminant<FileName>,
}

impl State {
    fn bytes(&self) -> u64 {
        self.kept.iter().map(|recycled_file| recycled_file.length).sum::<u64>() + self.pool.bytes()
    }

    /// Takes out the recycled file of the kind of `name` whose length is closest to `length`, among those that need
    /// not lose more than half.
    fn closest(&mut self, name: FileName, length: u64) -> Option<Recycled> {
        let suits = |recycled_file: &Recycled| {
            recycled_file.kind == discriminant(&name) && fits(recycled_file.length, length)
        };
        let candidates = self.kept.iter().enumerate().filter(|(_, recycled_file)| suits(recycled_file));
        let (at, _) = candidates.min_by_key(|(_, recycled_file)| recycled_file.length.abs_diff(length))?;
        Some(self.kept.remove(at))
    }

    /// Takes out the files beyond `bytes_max`: recycled files first, the newest of them first, then pooled packs,
    /// whose names have cost a barrier.
    fn beyond(&mut self, bytes_max: u64) -> Vec<FileName> {
        let mut beyond = Vec::new();
        while self.bytes() > bytes_max {
            let recycled_file = self.kept.pop().map(|recycled_file| FileName::Recycled(recycled_file.number));
            let pooled = || self.pool.newest_with_bytes().map(|pack| FileName::Pack(pack.id));
            let Some(name) = recycled_file.or_else(pooled) else { break };
            beyond.push(name);
        }
        beyond
    }
}

impl RecycledFiles {
    /// Keeps nothing before [`RecycledFiles::keep_up_to`] is called.
    pub(crate) fn new(device: Arc<Device>) -> Self {
        Self {
            device,
            state: OrderedMutex::leaf(State::default()),
            removed: OrderedMutex::new(Rank::RecycledRemoval, false),
        }
    }

    /// From now on keeps up to `bytes_max` bytes of dead files.
    pub(crate) fn keep_up_to(&self, bytes_max: u64) {
        self.state.lock().bytes_max = bytes_max;
        self.trim();
    }

    /// Removes the files beyond the limit.
    fn trim(&self) {
        self.discard(|state| state.beyond(state.bytes_max));
    }

    /// Removes the files that `choose` takes out.
    fn discard(&self, choose: impl FnOnce(&mut State) -> Vec<FileName>) {
        let mut removed = self.removed.lock();
        let dead = choose(&mut self.state.lock());
        *removed |= !dead.is_empty();
        self.remove(&dead);
    }

    /// Takes over the dead file `name` of `length` bytes, or removes it. Returns whether it was removed.
    pub(crate) fn give(&self, name: FileName, length: u64) -> Result<bool> {
        let number = {
            let mut state = self.state.lock();
            let shortest = KEPT_BYTES_MIN.min(state.bytes_max / KEPT_SHARE_MIN).max(1);
            let kept = shortest..=state.bytes_max.saturating_sub(state.bytes());
            (kept.contains(&length) && !state.closed).then(|| {
                state.next += 1;
                state.next
            })
        };
        let removed = |name| self.device.remove(name).map(|()| true);
        let Some(number) = number else { return removed(name) };
        let is_held = self.device.is_held(name) && !planted!("held-file-written-over");
        if is_held || self.device.rename(name, FileName::Recycled(number)).is_err() {
            return removed(name);
        }
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return removed(FileName::Recycled(number));
        }
        state.kept.push(Recycled { number, length, kind: discriminant(&name) });
        drop(state);
        // The limit may have fallen meanwhile.
        self.trim();
        Ok(false)
    }

    /// A file called `name`, which must not exist, for about `length` bytes: a recycled file of the same kind and
    /// about that length, or a new file.
    pub(crate) fn take(&self, name: FileName, length: u64) -> Result<NewFile> {
        self.take_or(name, length, || self.yielding(|| self.device.create(name)))
    }

    /// As [`RecycledFiles::take`], for a file that nobody needs yet: on a full disk it fails instead of removing
    /// recycled files.
    pub(crate) fn take_preallocated(&self, name: FileName, length: u64) -> Result<NewFile> {
        self.take_or(name, length, || self.device.create(name))
    }

    fn take_or(
        &self,
        name: FileName,
        length: u64,
        create: impl FnOnce() -> Result<StoreFile>,
    ) -> Result<NewFile> {
        let early = planted!("name-counted-before-it-is-given").then(|| self.device.named());
        let file = match self.rename_recycled(name, length)? {
            Some((file, _)) => file,
            None => create()?,
        };
        Ok(NewFile { file, named: early.unwrap_or_else(|| self.device.named()) })
    }

    /// Renames a recycled file of the kind of `name` and of about `length` bytes to `name`, if there is one. Also
    /// returns its length.
    fn rename_recycled(&self, name: FileName, length: u64) -> Result<Option<(StoreFile, u64)>> {
        let Some(Recycled { number, length, .. }) = self.state.lock().closest(name, length) else {
            return Ok(None);
        };
        let recycled_file = FileName::Recycled(number);
        match self.device.rename(recycled_file, name).and_then(|()| self.device.open(name, Access::ReadWrite))
        {
            Ok(file) => Ok(Some((file, length))),
            // The file is dead, so it is removed under both names, and the caller makes a new one.
            Err(_) => {
                let _ = self.device.remove(recycled_file);
                self.device.remove(name)?;
                Ok(None)
            }
        }
    }

    /// A pack for about `length` bytes: a preallocated one, or one that is made now under the id that `id` gives. The
    /// job will ask for `coming` more.
    pub(crate) fn take_pack(
        &self,
        length: u64,
        coming: usize,
        id: impl FnOnce() -> PackId,
    ) -> Result<(PackId, NewFile)> {
        let pooled = self.state.lock().pool.take(length, coming, |named| self.device.is_durable(named));
        if let Some(Pooled { id, file, named, .. }) = pooled {
            return Ok((id, NewFile { file, named }));
        }
        let id = id();
        Ok((id, self.take(FileName::Pack(id), length)?))
    }

    /// Preallocates packs under ids that `id` gives, as many as jobs are likely to take before the next time. Returns
    /// the moment by which they had their names, if any were made: one sync of the directory makes all of these
    /// durable. An error is ignored: the next job meets it.
    pub(crate) fn make_packs(&self, id: impl Fn() -> PackId) -> Option<Named> {
        let mut missing = Vec::new();
        self.discard(|state| {
            if state.closed {
                return Vec::new();
            }
            let gone;
            (missing, gone) = state.pool.missing();
            names(gone)
        });
        let made = missing.into_iter().map_while(|length| self.make_pack(id(), length).ok());
        made.max()
    }

    fn make_pack(&self, id: PackId, length: u64) -> Result<Named> {
        let name = FileName::Pack(id);
        // While a file moves from one list to the other it is in neither. Whoever needs space waits for this lock, so
        // that none is missed.
        let on_its_way = self.removed.lock();
        let (file, length) = match self.rename_recycled(name, length)? {
            Some(recycled_file) => recycled_file,
            // An empty file takes no space, and on a full disk no recycled file is removed for it.
            None => (self.device.create(name)?, 0),
        };
        let named = self.device.named();
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            self.device.remove(name)?;
            return Ok(named);
        }
        state.pool.add(Pooled { id, file, length, named });
        drop((state, on_its_way));
        // The limit may have fallen meanwhile.
        self.trim();
        Ok(named)
    }

    /// Whether [`RecycledFiles::make_packs`] should run soon, after a job has taken a pack that had its name by
    /// `named`.
    pub(crate) fn wants_packs(&self, named: Named) -> bool {
        !self.device.is_durable(named) || self.state.lock().pool.is_low()
    }

    /// Number of preallocated packs that no job has taken.
    pub(crate) fn pooled(&self) -> u64 {
        self.state.lock().pool.len() as u64
    }

    /// Calls `write`. If the disk is full, removes the recycled files and calls it again.
    pub(crate) fn yielding<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        match write() {
            Err(error) if error.kind() == ErrorKind::DiskFull && self.free()? => write(),
            written => written,
        }
    }

    /// Bytes that recycled files take.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes()
    }

    /// Frees the space of recycled files. Returns whether any space came free: files were removed now, or the removal
    /// of earlier ones had not been synced.
    pub(crate) fn free(&self) -> Result<bool> {
        if !self.clear() {
            return Ok(false);
        }
        // Space is free once no power cut can bring the files back.
        self.device.sync_names()?;
        Ok(true)
    }

    /// Removes all files that take space. Returns whether a removal, this one or an earlier one, is still to be
    /// synced.
    fn clear(&self) -> bool {
        let mut removed = self.removed.lock();
        let kept = self.state.lock().beyond(0);
        self.remove(&kept);
        std::mem::take(&mut *removed) || !kept.is_empty()
    }

    fn remove(&self, dead: &[FileName]) {
        for &name in dead {
            // One that cannot be removed now is removed at the next open.
            let _ = self.device.remove(name);
        }
    }

    /// Removes all recycled files and preallocated packs, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.discard(|state| {
            state.closed = true;
            names(state.pool.clear())
        });
        self.clear();
    }
}

/// The names of packs. Their files are closed here: an open file would keep its space.
fn names(packs: Vec<Pooled>) -> Vec<FileName> {
    packs.into_iter().map(|pack| FileName::Pack(pack.id)).collect()
}

#[cfg(test)]
mod tests;
