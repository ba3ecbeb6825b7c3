//! Iterators, snapshots and cursors that the caller keeps across operations, with what each must show.
//!
//! A cursor shows the moment at which it was made. So what it may show is a list, and where it stands is an index.

use std::collections::VecDeque;

use terrace::{Cursor, Iter, Keyspace, Snapshot};

use crate::oracle::{Entries, show};

/// An iterator in the middle of its way, and what it must still show.
pub(super) struct Walk {
    pub(super) iter: Iter,
    pub(super) rest: VecDeque<(Vec<u8>, Vec<u8>)>,
    pub(super) what: String,
}

/// A snapshot.
pub(super) struct View {
    pub(super) snapshot: Snapshot,
    /// Number of the last batch that it shows.
    pub(super) at: u64,
    /// Keyspaces that existed then.
    pub(super) spaces: Vec<Keyspace>,
}

impl View {
    /// Whether `space` existed then.
    pub(super) fn has(&self, space: &Keyspace) -> bool {
        self.spaces.iter().any(|other| other.id() == space.id())
    }
}

/// A cursor, what lies within its bounds, and where it stands.
pub(super) struct Position {
    cursor: Cursor,
    pub(super) entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// 0 before the first entry, `n` on the `n`th, and one more than there are entries behind the last one.
    at: usize,
    what: String,
}

/// A way to move.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Next,
    Prev,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    SeekToFirst,
    SeekToLast,
}

impl Position {
    pub(super) fn new(cursor: Cursor, entries: Entries, what: String) -> Self {
        Self { cursor, entries: entries.into_iter().collect(), at: 0, what }
    }

    /// Moves, and checks what the movement shows, and what the cursor shows afterwards.
    pub(super) fn advance(&mut self, to: &Move) {
        let own = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        let found = match to {
            Move::Next => self.cursor.next(),
            Move::Prev => self.cursor.prev(),
            Move::Seek(key) => self.cursor.seek(key),
            Move::SeekForPrev(key) => self.cursor.seek_for_prev(key),
            Move::SeekToFirst => self.cursor.seek_to_first(),
            Move::SeekToLast => self.cursor.seek_to_last(),
        };
        let found = found.unwrap().map(own);
        self.at = self.target(to);
        let expected = self.at.checked_sub(1).and_then(|index| self.entries.get(index));
        assert!(
            found.as_ref() == expected,
            "cursor {}, {to:?}: found {}, expected {}",
            self.what,
            told(found.as_ref()),
            told(expected)
        );
        let current = self.cursor.current().map(own);
        let pinned = self.cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert!(
            current == found && pinned == found,
            "cursor {}, {to:?}: it led to {}, and shows {} and {}",
            self.what,
            told(found.as_ref()),
            told(current.as_ref()),
            told(pinned.as_ref())
        );
    }

    /// Where the movement leads.
    fn target(&self, to: &Move) -> usize {
        let behind = self.entries.len() + 1;
        match to {
            Move::Next => (self.at + 1).min(behind),
            Move::Prev => self.at.saturating_sub(1),
            Move::Seek(key) => self.entries.partition_point(|(other, _)| other < key) + 1,
            Move::SeekForPrev(key) => self.entries.partition_point(|(other, _)| other <= key),
            Move::SeekToFirst => 1,
            Move::SeekToLast => self.entries.len(),
        }
    }
}

fn told(entry: Option<&(Vec<u8>, Vec<u8>)>) -> String {
    entry.map_or("no entry".into(), |(key, value)| format!("{} = {}", show(key), show(value)))
}
