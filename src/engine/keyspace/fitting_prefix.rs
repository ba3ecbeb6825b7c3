//! The length of prefixes that fits the data of a keyspace without a rule of its own.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use crate::types::Prefix;

/// The length is chosen again once the deepest level has this many times the bytes.
const GROWTH: u64 = 4;

/// The length of prefixes that fits the data of a tree.
#[derive(Debug, Default)]
pub(in crate::engine) struct FittingPrefix {
    /// 0 before it is chosen.
    length: AtomicU16,
    /// Bytes of the deepest level when it was chosen.
    bytes: AtomicU64,
}

impl FittingPrefix {
    /// The rule that has been chosen.
    pub(in crate::engine) fn rule(&self) -> Option<Prefix> {
        match self.length.load(Relaxed) {
            0 => None,
            length => Some(Prefix::Fixed(length)),
        }
    }

    /// Whether the length is to be chosen, now that the deepest level has `bytes`.
    pub(in crate::engine) fn is_due(&self, bytes: u64) -> bool {
        let is_new = self.length.load(Relaxed) == 0 && bytes > 0;
        is_new || bytes / GROWTH >= self.bytes.load(Relaxed).max(1)
    }

    /// The length that fits a deepest level of `bytes`. A shorter one than before is not taken.
    pub(in crate::engine) fn choose(&self, length: u16, bytes: u64) {
        self.length.fetch_max(length, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }
}
