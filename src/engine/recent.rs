//! What the latest writes have touched, kept under the writer's lock for those who commit conditionally.
//!
//! A list of keys and ranges with their numbers, in order, and complete behind one number up to another. It is kept only
//! for a while after somebody has wanted it, so that others pay nothing for it, and it is bounded: who is so late that it
//! does not reach back to him must look at the memtables and tables once more. Numbers that were given to what it was not
//! told of (an ingest, a write that nobody wanted noted) leave a gap, behind which it begins anew.

use std::collections::VecDeque;

use super::conflict::Condition;
use crate::batch::WriteBatch;
use crate::format::batch::Action;
use crate::types::{Key, KeyRange, KeyspaceId, Seq, UpperBound};

/// Writes that are kept, the latest.
const WRITES_MAX: usize = 1024;

/// Bytes of keys that they may have together.
const KEY_BYTES_MAX: usize = 256 << 10;

/// Numbers for which it is kept after it was wanted last.
const WANTED_FOR: u64 = 4096;

/// The latest writes.
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
pub(super) enum Touched {
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
    pub(super) fn want(&mut self, last: Seq) {
        self.wanted_upto = last.plus(WANTED_FOR);
    }

    /// The operations of `batch` have the numbers from `first` on.
    pub(super) fn note(&mut self, batch: &WriteBatch, first: Seq) {
        if first > self.wanted_upto {
            self.writes = VecDeque::new();
            (self.behind, self.upto, self.key_bytes) = (first, Seq::ZERO, 0);
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
        self.upto = Seq(first.0 + u64::from(batch.count()) - 1);
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
    pub(super) fn covers(&self, since: Seq, last: Seq) -> bool {
        since >= last || self.upto == last && self.behind <= since
    }

    /// What of `condition` a write above its number has touched: the keyspace, a key, and when.
    pub(super) fn changed(&self, condition: &Condition) -> Option<(KeyspaceId, Key, Seq)> {
        let first = self.writes.partition_point(|(seq, _)| *seq <= condition.since);
        self.writes.range(first..).find_map(|(seq, touched)| {
            let (id, key) = match touched {
                Touched::Key(id, key) => (*id, condition.depends_on(*id, key).then(|| key.clone())?),
                Touched::Range(id, range) => (*id, condition.depends_on_range(*id, range)?),
            };
            Some((id, key, *seq))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::DEFAULT_KEYSPACE;

    fn put(key: &str) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(key, "value");
        batch
    }

    fn on_key(since: u64, key: &str) -> Condition {
        Condition::new(Seq(since), vec![(DEFAULT_KEYSPACE, key.as_bytes().into())], Vec::new())
    }

    fn on_range(since: u64, start: &str, end: &str) -> Condition {
        let range = KeyRange::half_open(start.as_bytes(), UpperBound::Excluded(end.as_bytes().into()));
        Condition::new(Seq(since), Vec::new(), vec![(DEFAULT_KEYSPACE, range)])
    }

    fn wanted(last: u64) -> Recent {
        let mut recent = Recent::default();
        recent.want(Seq(last));
        recent
    }

    #[test]
    fn it_tells_what_has_been_touched_and_since_when() {
        let mut recent = wanted(7);
        recent.note(&put("b"), Seq(8));
        let mut batch = put("d");
        batch.delete_range("m".."p").delete("x");
        recent.note(&batch, Seq(9));
        assert!(recent.covers(Seq(7), Seq(11)) && recent.covers(Seq(9), Seq(11)));
        let when = |condition| recent.changed(&condition).map(|(_, key, seq)| (key.to_vec(), seq.0));
        assert_eq!(when(on_key(7, "b")), Some((b"b".to_vec(), 8)));
        assert_eq!(when(on_key(8, "b")), None);
        assert_eq!(when(on_key(7, "c")), None);
        assert_eq!(when(on_key(7, "n")), Some((b"n".to_vec(), 10)));
        assert_eq!(when(on_key(7, "p")), None);
        assert_eq!(when(on_key(7, "x")), Some((b"x".to_vec(), 11)));
        assert_eq!(when(on_range(7, "a", "c")), Some((b"b".to_vec(), 8)));
        assert_eq!(when(on_range(8, "a", "d")), None);
        assert_eq!(when(on_range(8, "a", "n")), Some((b"d".to_vec(), 9)));
        assert_eq!(when(on_range(9, "a", "n")), Some((b"m".to_vec(), 10)));
        assert_eq!(when(on_range(7, "o", "w")), Some((b"o".to_vec(), 10)));
        assert_eq!(when(on_range(7, "p", "w")), None);
        let elsewhere = Condition::new(Seq(7), vec![(KeyspaceId(9), b"b"[..].into())], Vec::new());
        assert_eq!(when(elsewhere), None);
    }

    #[test]
    fn it_does_not_claim_to_know_what_it_was_not_told() {
        let mut recent = wanted(7);
        assert!(recent.covers(Seq(7), Seq(7)) && !recent.covers(Seq(6), Seq(7)));
        recent.note(&put("a"), Seq(8));
        assert!(recent.covers(Seq(7), Seq(8)) && !recent.covers(Seq(6), Seq(8)));
        // Number 9 was an ingest.
        assert!(!recent.covers(Seq(8), Seq(9)));
        recent.note(&put("b"), Seq(10));
        assert!(!recent.covers(Seq(8), Seq(10)) && recent.covers(Seq(9), Seq(10)));
    }

    #[test]
    fn it_is_bounded_and_knows_what_it_has_forgotten() {
        let mut recent = wanted(0);
        for seq in 1..=2 * WRITES_MAX as u64 {
            recent.want(Seq(seq));
            recent.note(&put("key"), Seq(seq));
        }
        let last = Seq(2 * WRITES_MAX as u64);
        assert!(recent.covers(Seq(WRITES_MAX as u64), last));
        assert!(!recent.covers(Seq(WRITES_MAX as u64 - 1), last));
        let long = "k".repeat(KEY_BYTES_MAX / 4);
        (1..=6).for_each(|n| recent.note(&put(&long), last.plus(n)));
        assert!(recent.key_bytes <= KEY_BYTES_MAX && recent.writes.len() == 4);
        assert!(recent.covers(last.plus(2), last.plus(6)) && !recent.covers(last.plus(1), last.plus(6)));
    }

    #[test]
    fn it_is_kept_for_a_while_only() {
        let mut recent = wanted(0);
        for seq in 1..=WANTED_FOR + 1 {
            recent.note(&put("key"), Seq(seq));
        }
        assert!(recent.writes.is_empty() && !recent.covers(Seq(WANTED_FOR), Seq(WANTED_FOR + 1)));
        recent.want(Seq(WANTED_FOR + 1));
        recent.note(&put("key"), Seq(WANTED_FOR + 2));
        assert!(recent.covers(Seq(WANTED_FOR + 1), Seq(WANTED_FOR + 2)));
        assert!(!recent.covers(Seq(WANTED_FOR), Seq(WANTED_FOR + 2)));
    }
}
