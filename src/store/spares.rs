//! Files that are dead but not removed, to be written over by new ones.
//!
//! To write over a file is cheaper than to write a new one: its blocks are allocated, its pages are in memory, and
//! nothing need be unlinked (`docs/design.md`, 4, has the figures). So a dead pack or log segment takes the name of a
//! spare, and whoever needs a file renames a spare to the name it wants. Contents are foreign to the new owner: it
//! writes from offset 0, and what it reads is guarded by checksums that cover ids and offsets.
//!
//! Needs no barrier: nothing refers to a spare, nor to the names before and after it in a state that a crash can bring
//! back. At the end, and when a store is opened, spares are removed.

use std::sync::Arc;

use super::device::Device;
use super::file::StoreFile;
use crate::env::Access;
use crate::env::sync::Mutex;
use crate::error::Result;
use crate::format::names::FileName;

/// A shorter file is not worth its keep.
const KEPT_BYTES_MIN: u64 = 256 << 10;

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
            let kept = KEPT_BYTES_MIN..=self.bytes_max.saturating_sub(state.bytes());
            (kept.contains(&length) && !state.closed).then(|| {
                state.next += 1;
                state.next
            })
        };
        let Some(number) = number else { return self.device.remove(name) };
        if self.device.rename(name, FileName::Spare(number)).is_err() {
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
        self.device.create(name)
    }

    /// Bytes that spares take.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes()
    }

    /// Removes all spares; whether there were any.
    pub(crate) fn clear(&self) -> bool {
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
