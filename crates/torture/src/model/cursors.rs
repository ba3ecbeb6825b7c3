//! How the caller moves cursors: they seek, step and turn round, and are kept across writes, jobs and drops.
//!
//! A cursor shows the moment at which it was made. So what it may show is a list, and where it stands is an index.

use terrace::Cursor;

use super::reading::{as_slice, is_inverted, shown, starting_with};
use super::run::Runner;
use crate::oracle::{Entries, show};

/// Cursors that are kept at a time.
const CURSORS_MAX: usize = 3;

/// A cursor, what lies within its bounds, and where it stands.
pub(super) struct Position {
    cursor: Cursor,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// 0 before the first entry, `n` on the `n`th, and one more than there are entries behind the last one.
    at: usize,
    what: String,
}

/// A way to move.
#[derive(Clone, Debug)]
enum Move {
    Next,
    Prev,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    SeekToFirst,
    SeekToLast,
}

impl Position {
    fn new(cursor: Cursor, entries: Entries, what: String) -> Self {
        Self { cursor, entries: entries.into_iter().collect(), at: 0, what }
    }

    /// Moves, and checks what the movement shows, and what the cursor shows afterwards.
    fn advance(&mut self, to: &Move) {
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

impl Runner {
    /// Makes a cursor, or moves one that there is.
    pub(super) fn use_cursor(&mut self) {
        if self.cursors.is_empty() || self.cursors.len() < CURSORS_MAX && self.rng.percent(25) {
            self.make_cursor();
        }
        let index = self.rng.below(self.cursors.len());
        for _ in 0..1 + self.rng.below(16) {
            let to = self.any_move();
            self.cursors[index].advance(&to);
        }
        if self.rng.percent(15) {
            self.cursors.swap_remove(index);
        }
    }

    /// Leads each cursor over all that it may show, and back.
    pub(super) fn end_cursors(&mut self) {
        for mut position in std::mem::take(&mut self.cursors) {
            position.advance(&Move::SeekToFirst);
            (0..=position.entries.len()).for_each(|_| position.advance(&Move::Next));
            (0..=position.entries.len()).for_each(|_| position.advance(&Move::Prev));
        }
    }

    fn make_cursor(&mut self) {
        let space = self.any_space();
        let view = (!self.views.is_empty() && self.rng.percent(40)).then(|| self.rng.below(self.views.len()));
        let view = view.filter(|&index| self.views[index].has(&space));
        let at = view.map_or(self.model.last(), |index| self.views[index].at);
        let prefix = self.rng.percent(25).then(|| self.key());
        let (from, to) = prefix.as_deref().map_or_else(|| (self.bound(), self.bound()), starting_with);
        let entries = if is_inverted(&from, &to) {
            Entries::new()
        } else {
            self.model.entries(space.id(), (as_slice(&from), as_slice(&to)), at)
        };
        let what = format!("{} {} .. {} at {at}", space.name(), shown(&from), shown(&to));
        self.note(format!("cursor {what}"));
        let cursor = match (view.map(|index| self.views[index].snapshot.keyspace(&space)), prefix) {
            (Some(view), Some(prefix)) => view.prefix_cursor(prefix),
            (Some(view), None) => view.cursor((from, to)),
            (None, Some(prefix)) => space.prefix_cursor(prefix),
            (None, None) => space.cursor((from, to)),
        };
        self.cursors.push(Position::new(cursor.unwrap(), entries, what));
        self.ran.cursors += 1;
    }

    fn any_move(&mut self) -> Move {
        match self.rng.below(20) {
            0..7 => Move::Next,
            7..13 => Move::Prev,
            13..16 => Move::Seek(self.key()),
            16..18 => Move::SeekForPrev(self.key()),
            18 => Move::SeekToFirst,
            _ => Move::SeekToLast,
        }
    }
}
