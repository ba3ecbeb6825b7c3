//! Packs that are made before a job needs them, so that no job waits for the sync that makes a name durable.
//!
//! A pooled pack is a file under its own name, `000012.pack`, that nothing refers to: a dead pack that is to be written
//! over ([`RecycledFiles`](crate::store::files::recycled::RecycledFiles)), or an empty file. Several are made together, and one sync of the directory
//! makes all their names durable. A job may take one whose name is not durable yet; it asks before its edit
//! ([`PackWriter::named`](super::pack::PackWriter::named)), so that no edit names a file whose name a power cut can take.
//!
//! There are as many as jobs took between the last two times that some were made, or as a running job still needs, and of the
//! lengths that jobs asked for last: one that is much longer than what a job writes would have to be cut off.
//!
//! What a power cut leaves of them is unknown to the manifest and goes at the next open. Their ids were taken from the
//! counter of packs; where an edit has not recorded that, the name that was found says it.
//!
//! This is the list alone; the files are the business of `RecycledFiles`, which counts their bytes with its own.

use std::collections::VecDeque;

use super::device::Named;
use super::file::StoreFile;
use crate::types::PackId;

/// Packs that are kept ahead. Two at least: of a store that only flushes, the pack that a flush has taken is made again along
/// with the segment that the log goes on in, under one sync of the directory, and the next flush may come before that.
const POOLED_MIN: usize = 2;
const POOLED_MAX: usize = 4;

/// A pack that nothing refers to yet.
#[derive(Debug)]
pub(in crate::store) struct Pooled {
    pub(in crate::store) id: PackId,
    pub(in crate::store) file: StoreFile,
    /// Bytes that the file takes, all of them dead.
    pub(in crate::store) length: u64,
    pub(in crate::store) named: Named,
}

/// The packs that are kept, and how they are used.
#[derive(Debug, Default)]
pub(in crate::store) struct Pool {
    /// Oldest first.
    packs: Vec<Pooled>,
    /// Lengths that jobs asked for, newest last.
    asked: VecDeque<u64>,
    /// Packs that jobs asked for since some were made last.
    taken: usize,
    /// Packs that the last job to ask for one will ask for besides.
    coming: usize,
    /// Packs that are wanted.
    wanted: usize,
}

/// Whether a file of `length` bytes is one for a job that writes `asked`: the most of it need not be cut off.
pub(in crate::store) fn fits(length: u64, asked: u64) -> bool {
    length / 2 <= asked
}

impl Pool {
    pub(in crate::store) fn len(&self) -> usize {
        self.packs.len()
    }

    /// Bytes that its files take.
    pub(in crate::store) fn bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.length).sum()
    }

    /// Whether fewer are left than will be taken next.
    pub(in crate::store) fn is_low(&self) -> bool {
        self.packs.len() < self.coming.clamp(1, POOLED_MAX)
    }

    /// A pack for a job that writes about `length` bytes into it, and that will ask for `coming` more, if one fits: of the
    /// nearest length, those first of which `is_durable` says that their names are.
    pub(in crate::store) fn take(
        &mut self,
        length: u64,
        coming: usize,
        is_durable: impl Fn(Named) -> bool,
    ) -> Option<Pooled> {
        self.taken += 1;
        self.coming = coming;
        self.asked.push_back(length);
        if self.asked.len() > POOLED_MAX {
            self.asked.pop_front();
        }
        let fitting = self.packs.iter().enumerate().filter(|(_, pack)| fits(pack.length, length));
        let nearest = fitting.min_by_key(|(_, pack)| (!is_durable(pack.named), pack.length.abs_diff(length)));
        let (at, _) = nearest?;
        Some(self.packs.remove(at))
    }

    /// Lengths of the packs that should be made now, and the packs that go because they are in the way of these: nobody has
    /// asked for their like lately.
    pub(in crate::store) fn missing(&mut self) -> (Vec<u64>, Vec<Pooled>) {
        let used = self.taken.max(self.coming).max(self.wanted.saturating_sub(1));
        self.wanted = used.clamp(POOLED_MIN, POOLED_MAX);
        self.taken = 0;
        // Where fewer have been asked for than are wanted, the rest are as the last one.
        let Some(&last) = self.asked.back() else { return (Vec::new(), Vec::new()) };
        let asked = self.asked.iter().rev().copied().chain(std::iter::repeat(last));
        let mut unasked: Vec<usize> = (0..self.packs.len()).collect();
        let mut missing = Vec::new();
        for asked in asked.take(self.wanted) {
            let fitting = |&at: &usize| fits(self.packs[at].length, asked);
            let nearest = |&at: &usize| self.packs[at].length.abs_diff(asked);
            match unasked.iter().copied().filter(fitting).min_by_key(nearest) {
                Some(found) => unasked.retain(|&at| at != found),
                None => missing.push(asked),
            }
        }
        let surplus = (self.packs.len() + missing.len()).saturating_sub(POOLED_MAX);
        let mut gone = Vec::new();
        for &at in unasked.iter().take(surplus).rev() {
            gone.push(self.packs.remove(at));
        }
        (missing, gone)
    }

    /// Adds a pack that has been made.
    pub(in crate::store) fn add(&mut self, pack: Pooled) {
        self.packs.push(pack);
    }

    /// Takes out the newest pack whose file takes space.
    pub(in crate::store) fn newest_with_bytes(&mut self) -> Option<Pooled> {
        let at = self.packs.iter().rposition(|pack| pack.length > 0)?;
        Some(self.packs.remove(at))
    }

    /// Takes out all packs.
    pub(in crate::store) fn clear(&mut self) -> Vec<Pooled> {
        std::mem::take(&mut self.packs)
    }
}

#[cfg(test)]
mod tests;
