//! Files that are dead but not removed, to be written over by new ones.
//!
//! To write over a file is cheaper than to write a new one: its blocks are allocated, its pages are in memory, and
//! nothing need be unlinked (`docs/design.md`, 5, has the figures). So a dead pack or log segment takes the name of a
//! spare, and whoever needs a file renames a spare to the name it wants. Contents are foreign to the new owner: it
//! writes from offset 0, and what it reads is guarded by checksums that cover ids and offsets.
//!
//! Needs no barrier: nothing refers to a spare, nor to the names before and after it in a state that a crash can bring
//! back. At the end, when a store is opened, and when the disk is full, spares are removed.
//!
//! # Whoever still reads a dead file
//!
//! has it by [`Device::hold`]: a checkpoint the log of its moment, a reader beside the writer, perhaps in another process,
//! its packs and, while it opens, the log. What is held when it is given is removed, which leaves its bytes to whoever has
//! it open. To have held a file *before it was given* is what counts, so a holder makes sure of that:
//!
//! * a checkpoint takes hold of the log under the writer's lock, where nothing of it can be released, hence given;
//! * a reader takes hold of all that a manifest names and then reads the manifest again. A file is given only after the
//!   edit that drops it (or, of the log, raises the floor above it) is in the manifest. So if the manifest still names it,
//!   the edit came later, and what was given later yet was held by then. Otherwise the reader lets go and begins again.
//!
//! Names are never used twice, so what is held is what was named. Between the question and the rename somebody may take
//! hold of a file in vain: its manifest, read again, tells.

use std::sync::Arc;

use super::device::Device;
use super::file::StoreFile;
use crate::env::Access;
use crate::env::sync::Mutex;
use crate::error::{ErrorKind, Result};
use crate::format::names::FileName;

/// A shorter file is not worth its keep, unless it is a good part of what is kept.
const KEPT_BYTES_MIN: u64 = 256 << 10;
const KEPT_SHARE_MIN: u64 = 16;

/// The spares of one device.
#[derive(Debug)]
pub(crate) struct Spares {
    device: Arc<Device>,
    /// Spares are kept up to this many bytes.
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number and length of each.
    kept: Vec<(u64, u64)>,
    next: u64,
    closed: bool,
}

impl State {
    fn bytes(&self) -> u64 {
        self.kept.iter().map(|(_, length)| length).sum()
    }

    /// Takes out the spare whose length is closest to `length`, unless the most of it would have to be cut off.
    fn closest(&mut self, length: u64) -> Option<(u64, u64)> {
        let fits = |kept: &u64| *kept / 2 <= length;
        let candidates = self.kept.iter().enumerate().filter(|(_, (_, kept))| fits(kept));
        let (at, _) = candidates.min_by_key(|(_, (_, kept))| kept.abs_diff(length))?;
        Some(self.kept.remove(at))
    }
}

impl Spares {
    /// Keeps up to `bytes_max` bytes of dead files.
    pub(crate) fn new(device: Arc<Device>, bytes_max: u64) -> Self {
        Self { device, bytes_max, state: Mutex::default() }
    }

    /// Takes over the dead file `name` of `length` bytes, or removes it.
    pub(crate) fn give(&self, name: FileName, length: u64) -> Result<()> {
        let number = {
            let mut state = self.state.lock();
            let shortest = KEPT_BYTES_MIN.min(self.bytes_max / KEPT_SHARE_MIN).max(1);
            let kept = shortest..=self.bytes_max.saturating_sub(state.bytes());
            (kept.contains(&length) && !state.closed).then(|| {
                state.next += 1;
                state.next
            })
        };
        let Some(number) = number else { return self.device.remove(name) };
        if self.device.is_held(name) || self.device.rename(name, FileName::Spare(number)).is_err() {
            return self.device.remove(name);
        }
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return self.device.remove(FileName::Spare(number));
        }
        state.kept.push((number, length));
        Ok(())
    }

    /// A file called `name`, which must not exist, for about `length` bytes: a spare of about that length, or a new one.
    pub(crate) fn take(&self, name: FileName, length: u64) -> Result<StoreFile> {
        let spare = self.state.lock().closest(length);
        if let Some((number, _)) = spare {
            let spare = FileName::Spare(number);
            match self.device.rename(spare, name).and_then(|()| self.device.open(name, Access::ReadWrite)) {
                Ok(file) => return Ok(file),
                // Only a spare: whatever stands under either name goes, and a new file takes its place.
                Err(_) => {
                    let _ = self.device.remove(spare);
                    self.device.remove(name)?;
                }
            }
        }
        self.yielding(|| self.device.create(name))
    }

    /// Does `write`. Where that finds the disk full, does it again in the space that spares have taken.
    pub(crate) fn yielding<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        match write() {
            Err(error) if error.kind() == ErrorKind::DiskFull && self.free()? => write(),
            written => written,
        }
    }

    /// Bytes that spares take.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes()
    }

    /// Gives back the space that spares take; whether there were any.
    pub(crate) fn free(&self) -> Result<bool> {
        if !self.clear() {
            return Ok(false);
        }
        // Space is free once no power cut can bring the files back.
        self.device.sync_names()?;
        Ok(true)
    }

    /// Removes all spares; whether there were any.
    fn clear(&self) -> bool {
        let kept = std::mem::take(&mut self.state.lock().kept);
        for &(number, _) in &kept {
            // One that cannot be removed now is removed at the next open.
            let _ = self.device.remove(FileName::Spare(number));
        }
        !kept.is_empty()
    }

    /// Removes all spares and keeps none from now on.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.clear();
    }
}

#[cfg(test)]
mod tests;
