//! The latest writes: what each has touched, for conflict checks under the writer's lock.

use std::collections::VecDeque;

use crate::batch::WriteBatch;
use crate::format::batch::Action;
use crate::types::{Key, KeyRange, KeyspaceId, Seq, UpperBound};

/// Writes that are kept, the latest.
const WRITES_MAX: usize = 1024;

/// Bytes of keys that they may have together.
const KEY_BYTES_MAX: usize = 256 << 10;

/// Numbers for which it is kept after it was wanted last.
const WANTED_FOR: u64 = 4096;

/// What the latest writes have touched, in the order of their numbers. The list is complete above `behind` and up to
/// `upto`.
///
/// It is guarded by the writer's lock, is bounded, and is kept only for a while after somebody has wanted it. Numbers
/// of writes that it was not told of (an ingest, a write that nobody wanted noted) leave a gap. The list begins anew
/// behind the gap.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// All writes numbered above this one
    behind: Seq,
    /// and up to this one are in `writes`.
    upto: Seq,
    writes: VecDeque<(Seq, Touched)>,
    key_bytes: usize,
    wanted_upto: Seq,
}

/// What a write has changed.
#[derive(Debug)]
pub(in crate::engine) enum Touched {
    Key(KeyspaceId, Key),
    Range(KeyspaceId, KeyRange),
}

impl Touched {
    fn key_bytes(&self) -> usize {
        match self {
            Self::Key(_, key) => key.len(),
            Self::Range(_, range) => range.start.len() + range.end.as_bytes().len(),
        }
    }
}

impl Recent {
    /// Somebody commits conditionally while `last` is the last number.
    pub(in crate::engine) fn want(&mut self, last: Seq) {
        self.wanted_upto = last.plus(WANTED_FOR);
    }

    /// The operations of `batch` have the numbers from `first` on.
    pub(in crate::engine) fn note(&mut self, batch: &WriteBatch, first: Seq) {
        if first > self.wanted_upto {
            self.writes = VecDeque::new();
            (self.behind, self.upto, self.key_bytes) = (first, Seq::ZERO, 0);
            return;
        }
        let last = Seq(first.0 + u64::from(batch.count()) - 1);
        if batch.count() as usize > WRITES_MAX {
            // The lock is held: what would be forgotten at once is not looked at.
            self.writes.clear();
            (self.behind, self.upto, self.key_bytes) = (last, last, 0);
            return;
        }
        if first != self.upto.plus(1) && !planted!("gap-among-the-latest-writes") {
            self.writes.clear();
            (self.behind, self.key_bytes) = (Seq(first.0 - 1), 0);
        }
        for (op, seq) in batch.iter().zip(first.0..) {
            let touched = match op.action {
                Action::Put { key, .. } | Action::Delete { key } => Touched::Key(op.keyspace, key.into()),
                Action::DeleteRange { start, end } => {
                    Touched::Range(op.keyspace, KeyRange::half_open(start, UpperBound::from_bytes(end)))
                }
            };
            self.push(Seq(seq), touched);
        }
        self.upto = last;
    }

    fn push(&mut self, seq: Seq, touched: Touched) {
        self.key_bytes += touched.key_bytes();
        self.writes.push_back((seq, touched));
        while self.writes.len() > WRITES_MAX || self.key_bytes > KEY_BYTES_MAX {
            let Some((seq, touched)) = self.writes.pop_front() else { return };
            self.key_bytes -= touched.key_bytes();
            if !planted!("latest-writes-forgotten-unseen") {
                self.behind = seq;
            }
        }
    }

    /// Whether all writes above `since` and up to `last`, the last number, are known here.
    pub(in crate::engine) fn covers(&self, since: Seq, last: Seq) -> bool {
        since >= last || self.upto == last && self.behind <= since
    }

    /// What the writes numbered above `since` have touched.
    pub(in crate::engine) fn above(&self, since: Seq) -> impl Iterator<Item = &(Seq, Touched)> {
        let first = self.writes.partition_point(|(seq, _)| *seq <= since);
        self.writes.range(first..)
    }
}

#[cfg(test)]
mod tests;
