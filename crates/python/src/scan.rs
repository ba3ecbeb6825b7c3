//! Scans: entries one after the other, in either direction, some of them read ahead.

use std::collections::VecDeque;

use pyo3::prelude::*;
use terrace::{Error, Iter, Keys, Result, Slice, TransactionIter};

use crate::errors::OrRaise;

/// Entries that a step reads ahead, at most. So the interpreter's lock is let go once for as many, not for each.
const READAHEAD_MAX: usize = 128;

/// Bytes of keys and values at which a step stops reading ahead.
const READAHEAD_BYTES: usize = 64 << 10;

/// One of the store's iterators.
pub enum Scan {
    /// Of a keyspace or snapshot.
    Entries(Iter),
    /// The same without values.
    Keys(Keys),
    /// Of a transaction.
    Transaction(Box<TransactionIter>),
}

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// In ascending order of the keys.
    Forwards,
    /// In descending order.
    Backwards,
}

/// A key, and its value unless the scan leaves values out.
pub type Entry = (Slice, Option<Slice>);

impl Scan {
    /// The next entry in `direction`.
    pub fn step(&mut self, direction: Direction) -> Option<Result<Entry>> {
        let whole = |entry: Result<(Slice, Slice)>| entry.map(|(key, value)| (key, Some(value)));
        let bare = |key: Result<Slice>| key.map(|key| (key, None));
        match (self, direction) {
            (Self::Entries(iter), Direction::Forwards) => iter.next().map(whole),
            (Self::Entries(iter), Direction::Backwards) => iter.next_back().map(whole),
            (Self::Keys(keys), Direction::Forwards) => keys.next().map(bare),
            (Self::Keys(keys), Direction::Backwards) => keys.next_back().map(bare),
            (Self::Transaction(iter), Direction::Forwards) => iter.next().map(whole),
            (Self::Transaction(iter), Direction::Backwards) => iter.next_back().map(whole),
        }
    }
}

/// A scan with the entries that are read ahead: one at first, then twice as many each time.
pub struct Readahead {
    /// `None` once it has ended: what it held of the store is let go of.
    scan: Option<Scan>,
    direction: Direction,
    ready: VecDeque<Entry>,
    /// Why the scan has ended, told behind what is ready.
    failed: Option<Error>,
    /// Entries to read next.
    next: usize,
}

impl Readahead {
    /// Reads nothing yet.
    pub fn new(scan: Scan, direction: Direction) -> Self {
        Self { scan: Some(scan), direction, ready: VecDeque::new(), failed: None, next: 1 }
    }

    /// The next entry. Lets the interpreter's lock go if it is not ready.
    pub fn step(&mut self, py: Python<'_>) -> PyResult<Option<Entry>> {
        if self.ready.is_empty() && self.scan.is_some() {
            py.detach(|| self.fill());
        }
        match (self.ready.pop_front(), self.failed.take()) {
            (Some(entry), failed) => {
                self.failed = failed;
                Ok(Some(entry))
            }
            (None, Some(error)) => Err(error).or_raise(py),
            (None, None) => Ok(None),
        }
    }

    fn fill(&mut self) {
        let mut bytes = 0;
        while self.ready.len() < self.next && bytes < READAHEAD_BYTES {
            match self.scan.as_mut().and_then(|scan| scan.step(self.direction)) {
                Some(Ok((key, value))) => {
                    bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
                    self.ready.push_back((key, value));
                }
                Some(Err(error)) => {
                    (self.scan, self.failed) = (None, Some(error));
                    return;
                }
                None => {
                    self.scan = None;
                    return;
                }
            }
        }
        self.next = (2 * self.next).min(READAHEAD_MAX);
    }
}
