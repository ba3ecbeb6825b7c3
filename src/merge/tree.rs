//! The k-way merge: many sorted sources as one, by a loser tree.
//!
//! The tree is a tournament among the sources' current entries. The winner is the source whose entry comes first.
//! Every inner node holds the loser of one match; leaf `i` plays at node `(i + k) / 2`, then at half of that, and so
//! on. A step moves the winner. It replays the matches on the winner's path, log2(k) of them, only if the winner may
//! have lost: if its new entry does not come before the challenger, the first entry of those that it has beaten.
//!
//! A match compares cached ranks: the eight bytes of the key behind the prefix that all sources share. That prefix is
//! taken from the entries at which a seek ends. It is cut when a key does not have it, which ranks all sources anew;
//! until the next seek it only gets shorter, so this is rare. Keys are read only where ranks are equal. `cargo bench
//! --bench merge` measures the time per entry.
//!
//! # Invariants
//!
//! * Every loser's entry comes behind, or equals, that of the winner of its match, as both stand now.
//! * Sources with the same (key, stamp) meet in a match, for everything between them is equal as well. The one with
//!   the higher index loses and is marked as passed. A step passes over marked winners.
//! * A source that waits ([`Cursor::waits`]) is marked too: it reads its entries once it has won.
//!
//! The merge knows nothing of visibility, bounds or where entries come from.

use super::direction::{Backward, Direction, Forward};
use super::{Cursor, key_head};
use crate::types::Stamp;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// A merge from the first entry to the last.
pub type MergeForward<C> = Merge<C, Forward>;

/// A merge from the last entry to the first.
pub type MergeBackward<C> = Merge<C, Backward>;

/// Walks over the entries of many sources as if they were one. Entries with equal key and stamp count once.
///
/// Not valid before the first seek, and after an error until the next seek.
pub struct Merge<C, D> {
    sources: Vec<C>,
    /// The cached part of each source that matches compare.
    slots: Vec<Slot>,
    /// Index of the source that lost each match; the first place is unused.
    losers: Vec<usize>,
    winner: usize,
    /// Rank of the winner's entry.
    rank: u64,
    /// The least rank of the other sources: while the winner's rank is below it, the winner comes first.
    challenger: u64,
    /// The prefix with which every live source's key begins.
    prefix: Vec<u8>,
    valid: bool,
    direction: PhantomData<D>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// A smaller rank comes first. The largest rank if the source is not live.
    rank: u64,
    live: bool,
    /// Whether the merge does not show the source's entry: an equal one of another source comes before it, or the
    /// source waits.
    passed: bool,
}

const EXHAUSTED: Slot = Slot { rank: u64::MAX, live: false, passed: false };

/// While the tree is built: no source has come to this match yet.
const NOBODY: usize = usize::MAX;

impl<C: Cursor> Merge<C, Forward> {
    /// Moves to the first entry at or behind (`key`, `stamp`).
    ///
    /// # Errors
    /// The first error of a source.
    pub fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<(), C::Error> {
        self.seek_all(|source| source.seek(key, stamp))
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// The first error of a source.
    pub fn seek_first(&mut self) -> Result<(), C::Error> {
        self.seek_all(C::seek_first)
    }
}

impl<C: Cursor> Merge<C, Backward> {
    /// Moves to the last entry strictly before (`key`, `stamp`).
    ///
    /// # Errors
    /// The first error of a source.
    pub fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<(), C::Error> {
        self.seek_all(|source| source.seek_before(key, stamp))
    }

    /// The source that stands on the newest version of `key` at or below `stamp`, if there is one. The merge stands on no
    /// entry after that, until the next seek.
    ///
    /// # Errors
    /// The first error of a source.
    pub fn newest_of(&mut self, key: &[u8], stamp: Stamp) -> Result<Option<&mut C>, C::Error> {
        self.valid = false;
        for source in &mut self.sources {
            source.seek(key, stamp)?;
        }
        // A source that waits has no version of the key.
        let of_key =
            self.sources.iter_mut().filter(|source| source.valid() && !source.waits() && source.key() == key);
        Ok(of_key.max_by_key(|source| source.stamp()))
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// The first error of a source.
    pub fn seek_last(&mut self) -> Result<(), C::Error> {
        self.seek_all(C::seek_last)
    }
}

impl<C: Cursor, D: Direction> Merge<C, D> {
    /// A merge of `sources`, in any order.
    #[must_use]
    pub fn new(sources: Vec<C>) -> Self {
        let count = sources.len();
        Self {
            sources,
            slots: vec![EXHAUSTED; count],
            losers: vec![NOBODY; count],
            winner: 0,
            rank: u64::MAX,
            challenger: u64::MAX,
            prefix: Vec::new(),
            valid: false,
            direction: PhantomData,
        }
    }

    /// Whether the merge stands on an entry.
    #[must_use]
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Stands on no entry, until the next seek.
    pub fn leave(&mut self) {
        self.valid = false;
    }

    /// The source that holds the current entry. The merge must be valid, as for the three below.
    #[must_use]
    #[inline]
    pub fn current(&self) -> &C {
        debug_assert!(self.valid, "the merge stands on no entry");
        &self.sources[self.winner]
    }

    /// The same, with its number.
    #[must_use]
    #[inline]
    pub fn current_at(&self) -> (usize, &C) {
        (self.winner, self.current())
    }

    /// Source `at`, not to be moved.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn source_mut(&mut self, at: usize) -> &mut C {
        &mut self.sources[at]
    }

    /// Reads the value of the current entry, if it is unread.
    ///
    /// # Errors
    /// That of the source. The merge is not valid after that.
    #[inline]
    pub fn read_value(&mut self) -> Result<(), C::Error> {
        if self.current().is_unread() { self.read_unread() } else { Ok(()) }
    }

    #[cold]
    fn read_unread(&mut self) -> Result<(), C::Error> {
        self.sources[self.winner].read_value().inspect_err(|_| self.valid = false)
    }

    /// User key of the current entry.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.current().key()
    }

    /// Stamp of the current entry.
    #[must_use]
    #[inline]
    pub fn stamp(&self) -> Stamp {
        self.current().stamp()
    }

    /// Value of the current entry; empty for a tombstone.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.current().value()
    }

    /// Moves one entry further in the merge's direction. The merge must be valid. Returns whether the new entry may
    /// have the same key as the one before it: after `false` the caller need not compare.
    ///
    /// # Errors
    /// That of the source.
    // Inlined, as are the functions between it and the public iterator: the calls would be a large part of a row's
    // cost.
    #[inline(always)]
    pub fn step(&mut self) -> Result<bool, C::Error> {
        debug_assert!(self.valid, "the merge stands on no entry");
        self.valid = false;
        let left = self.rank;
        let cursor = &mut self.sources[self.winner];
        D::step(cursor)?;
        if cursor.valid() {
            let prefix = &self.prefix[..];
            let key = cursor.key();
            if cursor.kept() >= prefix.len() || key.starts_with(prefix) {
                let rank = D::rank(key_head(&key[prefix.len()..]));
                if rank < self.challenger {
                    (self.rank, self.valid) = (rank, true);
                    return Ok(rank == left);
                }
            }
        }
        self.contest(left)
    }

    /// Finds the entry that comes first after the winner, whose rank was `left`, has been moved. Returns as
    /// [`Merge::step`].
    #[inline(never)]
    fn contest(&mut self, left: u64) -> Result<bool, C::Error> {
        let mut ranked_anew = false;
        loop {
            let source = self.winner;
            if self.load(source) {
                self.replay(source);
            } else {
                self.rank_all();
                self.build();
                ranked_anew = true;
            }
            let slot = self.slots[self.winner];
            if !slot.passed {
                self.crown();
                return Ok(ranked_anew || slot.rank == left);
            }
            D::step(&mut self.sources[self.winner])?;
        }
    }

    /// Stands on the entry of the winner.
    fn crown(&mut self) {
        let Slot { rank, live, .. } = self.slots[self.winner];
        (self.rank, self.valid) = (rank, live);
        self.challenger = u64::MAX;
        let mut place = (self.winner + self.losers.len()) / 2;
        while place > 0 {
            self.challenger = self.challenger.min(self.slots[self.losers[place]].rank);
            place /= 2;
        }
    }

    fn seek_all(&mut self, mut seek: impl FnMut(&mut C) -> Result<(), C::Error>) -> Result<(), C::Error> {
        self.valid = false;
        self.prefix.clear();
        let mut first_live = true;
        for (source, slot) in self.sources.iter_mut().zip(&mut self.slots) {
            seek(source)?;
            *slot = Slot { live: source.valid(), passed: source.waits(), ..EXHAUSTED };
            if slot.live && first_live {
                self.prefix.extend_from_slice(source.key());
                first_live = false;
            } else if slot.live {
                let shared = shared_len(&self.prefix, source.key());
                self.prefix.truncate(shared);
            }
        }
        if self.sources.len() == 1 {
            // A single source's keys are compared with no others, so a prefix is of no use.
            self.prefix.clear();
        }
        if !self.sources.is_empty() {
            self.rank_all();
            self.build();
            if self.slots[self.winner].passed {
                D::step(&mut self.sources[self.winner])?;
                self.contest(0)?;
            } else {
                self.crown();
            }
        }
        Ok(())
    }

    /// Reads the new entry of `source`. Returns `false` if the prefix had to be cut, so that all ranks are out of
    /// date.
    #[inline]
    fn load(&mut self, source: usize) -> bool {
        let cursor = &self.sources[source];
        if !cursor.valid() {
            self.slots[source] = EXHAUSTED;
            return true;
        }
        self.slots[source] = Slot { live: true, passed: cursor.waits(), ..EXHAUSTED };
        let key = cursor.key();
        if let Some(rest) = key.strip_prefix(&self.prefix[..]) {
            self.slots[source].rank = D::rank(key_head(rest));
            return true;
        }
        let shared = shared_len(&self.prefix, key);
        self.prefix.truncate(shared);
        false
    }

    fn rank_all(&mut self) {
        let prefix_len = self.prefix.len();
        for (source, slot) in self.sources.iter().zip(&mut self.slots) {
            if slot.live {
                slot.rank = D::rank(key_head(&source.key()[prefix_len..]));
            }
        }
    }

    /// Plays the whole tournament: the source that comes to a match first waits there for the other.
    fn build(&mut self) {
        self.losers.fill(NOBODY);
        for source in 0..self.sources.len() {
            let mut winner = source;
            let mut place = (source + self.losers.len()) / 2;
            while place > 0 && self.losers[place] != NOBODY {
                let other = self.losers[place];
                if self.beats(other, winner) {
                    self.losers[place] = winner;
                    winner = other;
                }
                place /= 2;
            }
            match place {
                0 => self.winner = winner,
                _ => self.losers[place] = winner,
            }
        }
    }

    /// Plays the matches on the path of `source`, the last winner.
    #[inline]
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut place = (source + self.losers.len()) / 2;
        while place > 0 {
            let other = self.losers[place];
            if self.beats(other, winner) {
                self.losers[place] = winner;
                winner = other;
            }
            place /= 2;
        }
        self.winner = winner;
    }

    #[inline]
    fn beats(&mut self, a: usize, b: usize) -> bool {
        let (rank_a, rank_b) = (self.slots[a].rank, self.slots[b].rank);
        if rank_a == rank_b { self.beats_at_equal_rank(a, b) } else { rank_a < rank_b }
    }

    #[inline(never)]
    fn beats_at_equal_rank(&mut self, a: usize, b: usize) -> bool {
        if !(self.slots[a].live && self.slots[b].live) {
            return self.slots[a].live;
        }
        let (left, right) = (&self.sources[a], &self.sources[b]);
        let (left_key, right_key) = (left.key(), right.key());
        // Equal ranks: the prefix and the ranked bytes are equal, but for their number in a key that ends there.
        let compared = self.prefix.len() + size_of::<u64>();
        let order = left_key[compared.min(left_key.len())..]
            .cmp(&right_key[compared.min(right_key.len())..])
            .then(left_key.len().cmp(&right_key.len()))
            .then_with(|| right.stamp().cmp(&left.stamp()));
        match D::order(order) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                self.slots[a.max(b)].passed = true;
                a < b
            }
        }
    }
}

/// Length of the longest common prefix.
fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
