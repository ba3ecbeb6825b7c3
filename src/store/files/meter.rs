//! Counters of bytes and syncs that reach the disks, by cause.
//!
//! The counters are relaxed atomics: each is exact, but a set of them is not read at one moment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::store::stripes::Stripes;

/// Why bytes are written or synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteCause {
    /// The write-ahead log.
    Wal,
    /// Flushes: tables made of memtables.
    Flush,
    /// Compactions: tables made of tables.
    Compaction,
    /// Rewrites: tables copied into other packs.
    Rewrite,
    /// The manifest, the small files that name the store and its manifest, and the reserve.
    Manifest,
    /// Names of files, while somebody waits for them; only syncs, no bytes.
    Directory,
    /// Holes in packs; only syncs, no bytes.
    Reclaim,
    /// Names of preallocated files; only syncs, no bytes.
    Preallocate,
}

/// Why bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadCause {
    /// A lookup.
    Get,
    /// An iterator.
    Scan,
    /// The inputs of a compaction or of a rewrite.
    Compaction,
    /// Opening the store or a table: manifest, log, indexes and filters.
    Open,
}

impl ReadCause {
    /// Whether a client reads.
    pub(crate) fn is_users(self) -> bool {
        match self {
            Self::Get | Self::Scan => true,
            Self::Compaction | Self::Open => false,
        }
    }
}

/// Bytes and syncs by cause, since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    written: [AtomicU64; WriteCause::Preallocate as usize + 1],
    syncs: [AtomicU64; WriteCause::Preallocate as usize + 1],
    read: Stripes<[AtomicU64; ReadCause::Open as usize + 1]>,
}

impl Meter {
    /// Adds bytes handed to the operating system.
    pub(crate) fn wrote(&self, cause: WriteCause, bytes: usize) {
        self.written[cause as usize].fetch_add(bytes as u64, Relaxed);
    }

    /// Adds one barrier.
    pub(crate) fn synced(&self, cause: WriteCause) {
        self.syncs[cause as usize].fetch_add(1, Relaxed);
    }

    /// Adds bytes read.
    pub(crate) fn read(&self, cause: ReadCause, bytes: usize) {
        self.read.mine()[cause as usize].fetch_add(bytes as u64, Relaxed);
    }

    /// Bytes written for `cause`.
    pub(crate) fn bytes_written(&self, cause: WriteCause) -> u64 {
        self.written[cause as usize].load(Relaxed)
    }

    /// Barriers for `cause`.
    pub(crate) fn syncs(&self, cause: WriteCause) -> u64 {
        self.syncs[cause as usize].load(Relaxed)
    }

    /// Bytes read and written, for whatever cause.
    pub(crate) fn all_bytes(&self) -> u64 {
        let written: u64 = self.written.iter().map(|written| written.load(Relaxed)).sum();
        let read = self.read.iter().flatten().map(|read| read.load(Relaxed));
        written + read.sum::<u64>()
    }

    /// Bytes read for `cause`.
    pub(crate) fn bytes_read(&self, cause: ReadCause) -> u64 {
        self.read.iter().map(|read| read[cause as usize].load(Relaxed)).sum()
    }
}
