//! The ordered log of operations that a power cut may undo.
//!
//! Each inode and each directory has a durable state and a log of the operations on it since. A sync marks operations
//! as synced; a failed sync marks them as abandoned. The synced operations at the start of the log are taken out and
//! applied to the durable state. A synced operation behind one that is not synced stays in the log, so that a crash
//! applies the survivors in the order in which they were done.

use std::collections::VecDeque;

use super::random::Random;

/// Operations in the order in which they were done.
pub(super) struct Log<Op> {
    entries: VecDeque<Entry<Op>>,
}

struct Entry<Op> {
    number: u64,
    state: State,
    op: Op,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next sync makes it durable.
    Dirty,
    /// A sync or write-back of it failed: no later one writes it, and whether it reached the device is unknown.
    Abandoned,
    /// Durable.
    Synced,
}

/// Which un-synced operations survive a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// A choice by this seed: each operation whole, in part or not at all.
    Random(u64),
}

/// What a power cut does to one un-synced operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Luck {
    Kept,
    Lost,
    /// For a write: some of its sectors, or only the length it gave the file. For anything else: as `Lost`.
    Torn,
}

/// Draws what happens to operations at a power cut, one after another.
pub(super) enum Lottery {
    Always(Luck),
    Seeded(Random),
}

impl Lottery {
    pub(super) fn new(survival: Survival) -> Self {
        match survival {
            Survival::Nothing => Self::Always(Luck::Lost),
            Survival::Everything => Self::Always(Luck::Kept),
            Survival::Random(seed) => Self::Seeded(Random::new(seed)),
        }
    }

    pub(super) fn draw(&mut self) -> Luck {
        match self {
            Self::Always(luck) => *luck,
            Self::Seeded(random) => match random.below(5) {
                0 | 1 => Luck::Kept,
                2 | 3 => Luck::Lost,
                _ => Luck::Torn,
            },
        }
    }

    /// Whether one part of a torn operation is kept.
    pub(super) fn keeps_part(&mut self) -> bool {
        match self {
            Self::Always(luck) => *luck == Luck::Kept,
            Self::Seeded(random) => random.coin(),
        }
    }

    /// How many of the first `most` are kept, at least `least`.
    fn prefix(&mut self, least: usize, most: usize) -> usize {
        match self {
            Self::Always(Luck::Kept) => most,
            Self::Always(_) => least,
            Self::Seeded(random) => least + random.below(most - least + 1),
        }
    }
}

impl<Op> Default for Log<Op> {
    fn default() -> Self {
        Self { entries: VecDeque::new() }
    }
}

impl<Op> Log<Op> {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an operation; numbers grow.
    pub(super) fn push(&mut self, number: u64, op: Op) {
        self.entries.push_back(Entry { number, state: State::Dirty, op });
    }

    /// The operations that a sync would write.
    pub(super) fn dirty(&self) -> impl Iterator<Item = &Op> {
        self.entries.iter().filter(|entry| entry.state == State::Dirty).map(|entry| &entry.op)
    }

    /// Marks as synced the dirty operations with numbers below `end` that `chosen` accepts.
    pub(super) fn sync(&mut self, end: u64, chosen: impl Fn(&Op) -> bool) {
        self.mark(end, chosen, State::Synced);
    }

    /// Marks as abandoned the dirty operations with numbers below `end` that `chosen` accepts.
    pub(super) fn abandon(&mut self, end: u64, chosen: impl Fn(&Op) -> bool) {
        self.mark(end, chosen, State::Abandoned);
    }

    fn mark(&mut self, end: u64, chosen: impl Fn(&Op) -> bool, state: State) {
        for entry in self.entries.iter_mut().take_while(|entry| entry.number < end) {
            if entry.state == State::Dirty && chosen(&entry.op) {
                entry.state = state;
            }
        }
    }

    /// Whether every operation in the log is synced.
    pub(super) fn all_synced(&self) -> bool {
        self.entries.iter().all(|entry| entry.state == State::Synced)
    }

    /// Takes out the leading synced operations.
    pub(super) fn take_settled(&mut self) -> impl Iterator<Item = Op> {
        let settled = self.entries.iter().take_while(|entry| entry.state == State::Synced).count();
        self.entries.drain(..settled).map(|entry| entry.op)
    }

    /// Each operation with its own draw; synced ones are kept.
    pub(super) fn survivors(&self, lottery: &mut Lottery) -> Vec<(&Op, Luck)> {
        let fate = |entry: &Entry<Op>| match entry.state {
            State::Synced => Luck::Kept,
            State::Dirty | State::Abandoned => lottery.draw(),
        };
        let lucks: Vec<Luck> = self.entries.iter().map(fate).collect();
        self.entries.iter().map(|entry| &entry.op).zip(lucks).collect()
    }

    /// The operations of a prefix that holds at least all synced ones.
    pub(super) fn surviving_prefix(&self, lottery: &mut Lottery) -> impl Iterator<Item = &Op> {
        let least =
            self.entries.iter().rposition(|entry| entry.state == State::Synced).map_or(0, |last| last + 1);
        let kept = lottery.prefix(least, self.entries.len());
        self.entries.iter().take(kept).map(|entry| &entry.op)
    }
}
