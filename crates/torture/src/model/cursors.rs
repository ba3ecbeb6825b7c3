//! How the caller moves cursors: they seek, step and turn round, and are kept across writes, jobs and drops.

use super::bounds::{as_slice, is_inverted, shown, starting_with};
use super::readers::{Move, Position};
use super::runner::Runner;
use crate::oracle::Entries;

/// Cursors that are kept at a time.
const CURSORS_MAX: usize = 3;

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
