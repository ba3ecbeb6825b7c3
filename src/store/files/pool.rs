//! The pool of preallocated packs: made before a job needs them, so that no job waits for the sync that makes a name
//! durable.
//!
//! A pooled pack is a file under its own name, `000012.pack`, that nothing refers to. It is an empty file or a
//! recycled one ([`RecycledFiles`](crate::store::files::recycled::RecycledFiles)). Several are made together, and one
//! sync of the directory makes all their names durable. A job may take one whose name is not durable yet. It then
//! syncs the name before its edit ([`PackWriter::named`](super::pack::PackWriter::named)), so that no edit names a
//! file whose name a power cut can take.
//!
//! **How many.** As many as jobs took between the last two times that packs were made, or as a running job still
//! needs. Their lengths are those that jobs asked for last: the end of a much longer file would have to be cut off.
//!
//! **After a crash** the manifest does not know the pooled packs, and the next open removes them. Their ids came from
//! the counter of packs. An edit may not have recorded the counter since; then the names that are found show which
//! ids are used.
//!
//! This module keeps only the list. `RecycledFiles` makes and removes the files, and counts their bytes with its own.

use std::collections::VecDeque;

use super::device::Named;
use super::file::StoreFile;
use crate::types::PackId;

/// Least number of pooled packs. In a store that only flushes, the pack that a flush has taken is replaced when the
/// next log segment is made, under the same sync of the directory. The next flush may come before that, so there are
/// two.
const POOLED_MIN: usize = 2;
const POOLED_MAX: usize = 4;

/// A pack that nothing refers to yet.
#[derive(Debug)]
pub(in crate::store) struct Pooled {
    pub(in crate::store) id: PackId,
    pub(in crate::store) file: StoreFile,
    /// Bytes that the file takes; all of them are dead.
    pub(in crate::store) length: u64,
    pub(in crate::store) named: Named,
}

/// The pooled packs, and how jobs use them.
#[derive(Debug, Default)]
pub(in crate::store) struct Pool {
    /// Oldest first.
    packs: Vec<Pooled>,
    /// Lengths that jobs asked for, newest last.
    asked: VecDeque<u64>,
    /// Packs that jobs asked for since packs were made last.
    taken: usize,
    /// Packs that the last job to ask for one will still ask for.
    coming: usize,
    /// Number of packs that the pool should hold.
    wanted: usize,
}

/// Whether a file of `length` bytes suits a job that writes `asked` bytes: at most half of it would have to be cut
/// off.
pub(in crate::store) fn fits(length: u64, asked: u64) -> bool {
    length / 2 <= asked
}

impl Pool {
    pub(in crate::store) fn len(&self) -> usize {
        self.packs.len()
    }

    /// Bytes that the files of the pool take.
    pub(in crate::store) fn bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.length).sum()
    }

    /// Whether fewer packs are left than jobs will take next.
    pub(in crate::store) fn is_low(&self) -> bool {
        self.packs.len() < self.coming.clamp(1, POOLED_MAX)
    }

    /// Takes a pack for a job that writes about `length` bytes into it and will ask for `coming` more, if one fits.
    /// Prefers names that are durable, by `is_durable`, then the nearest length.
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

    /// The lengths of the packs that should be made now, and the pooled packs that are removed to make room for them,
    /// because no job has asked for such lengths lately.
    pub(in crate::store) fn missing(&mut self) -> (Vec<u64>, Vec<Pooled>) {
        let used = self.taken.max(self.coming).max(self.wanted.saturating_sub(1));
        self.wanted = used.clamp(POOLED_MIN, POOLED_MAX);
        self.taken = 0;
        // If jobs have asked for fewer packs than are wanted, the rest get the length asked for last.
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
