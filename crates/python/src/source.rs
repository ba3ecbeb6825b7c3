//! Where reads come from: a keyspace as it is, a snapshot, or a transaction.

use std::ops::Bound;

use pyo3::prelude::*;
use terrace::{Keyspace, Slice, Snapshot, Transaction};

use crate::bytes::Bytes;
use crate::errors::invalid;
use crate::scan::Scan;
use crate::store::Slot;

/// Where reads come from, with the keyspace that is read.
#[derive(Clone)]
pub enum Source {
    /// The newest state.
    Keyspace(Slot<Keyspace>),
    /// One moment.
    Snapshot(Slot<Snapshot>, Slot<Keyspace>),
    /// One moment, overlaid with the transaction's own writes.
    Transaction(Slot<Transaction>, Slot<Keyspace>),
}

/// Which keys a scan shows.
#[derive(Clone)]
pub enum Bounds {
    /// From `start` on, up to `stop`.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// All that start so.
    Prefix(Vec<u8>),
}

impl Bounds {
    /// From the arguments `start`, `stop` and `prefix` of a call.
    pub fn new(start: Option<Bytes>, stop: Option<Bytes>, prefix: Option<Bytes>) -> PyResult<Self> {
        match prefix {
            Some(_) if start.is_some() || stop.is_some() => {
                Err(invalid("give a prefix, or start and stop, but not both"))
            }
            Some(prefix) => Ok(Self::Prefix(prefix.to_vec())),
            None => {
                let (start, stop) = range(start, stop);
                Ok(Self::Range(start, stop))
            }
        }
    }

    /// Whether `key` lies within.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Range(start, stop) => {
                let above = match start {
                    Bound::Included(start) => key >= &start[..],
                    Bound::Excluded(start) => key > &start[..],
                    Bound::Unbounded => true,
                };
                let below = match stop {
                    Bound::Included(stop) => key <= &stop[..],
                    Bound::Excluded(stop) => key < &stop[..],
                    Bound::Unbounded => true,
                };
                above && below
            }
        }
    }
}

/// A range of keys as the store takes it: `start` is in it, `stop` is not.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The range from `start` on, up to `stop`.
pub fn range(start: Option<Bytes>, stop: Option<Bytes>) -> Range {
    let start = start.map_or(Bound::Unbounded, |start| Bound::Included(start.to_vec()));
    let stop = stop.map_or(Bound::Unbounded, |stop| Bound::Excluded(stop.to_vec()));
    (start, stop)
}

/// The range of the keys that start with `prefix`.
pub fn prefix_range(prefix: &[u8]) -> Range {
    // The first key behind them has the last byte that can grow grown, and ends there.
    let end = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    (Bound::Included(prefix.to_vec()), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// Calls the method for a range or the one for a prefix.
macro_rules! scan {
    ($bounds:expr, $target:ident, $range:ident($($range_of:expr)?), $prefix:ident($($prefix_of:expr)?)) => {
        match $bounds {
            Bounds::Range(start, stop) => $target.$range($($range_of,)? (start.as_ref(), stop.as_ref())),
            Bounds::Prefix(prefix) => $target.$prefix($($prefix_of,)? prefix),
        }
    };
}

pub(crate) use scan;

impl Source {
    /// The value of `key`.
    pub fn get(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Slice>> {
        match self {
            Self::Keyspace(keyspace) => keyspace.read(py, |keyspace| keyspace.get(key)),
            Self::Snapshot(snapshot, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                snapshot.read(py, |snapshot| snapshot.keyspace(&keyspace).get(key))
            }
            Self::Transaction(transaction, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                transaction.write(py, |transaction| transaction.get_in(&keyspace, key))
            }
        }
    }

    /// Whether `key` has a value.
    pub fn contains(&self, py: Python<'_>, key: &[u8]) -> PyResult<bool> {
        match self {
            Self::Keyspace(keyspace) => keyspace.read(py, |keyspace| keyspace.contains(key)),
            Self::Snapshot(snapshot, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                snapshot.read(py, |snapshot| snapshot.keyspace(&keyspace).contains(key))
            }
            Self::Transaction(transaction, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                transaction.write(py, |transaction| transaction.contains_in(&keyspace, key))
            }
        }
    }

    /// The values of `keys`, at one moment.
    pub fn multi_get(&self, py: Python<'_>, keys: &[&[u8]]) -> PyResult<Vec<Option<Slice>>> {
        match self {
            Self::Keyspace(keyspace) => keyspace.read(py, |keyspace| keyspace.multi_get(keys)),
            Self::Snapshot(snapshot, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                snapshot.read(py, |snapshot| snapshot.keyspace(&keyspace).multi_get(keys))
            }
            Self::Transaction(transaction, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                transaction.write(py, |transaction| transaction.multi_get_in(&keyspace, keys))
            }
        }
    }

    /// The entries within `bounds`; with `keys_only`, values that are not needed are not read.
    pub fn scan(&self, py: Python<'_>, bounds: &Bounds, keys_only: bool) -> PyResult<Scan> {
        let iter = match self {
            Self::Keyspace(keyspace) => {
                keyspace.read(py, |keyspace| scan!(bounds, keyspace, range(), prefix()))?
            }
            Self::Snapshot(snapshot, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                snapshot.read(py, |snapshot| {
                    let snapshot = snapshot.keyspace(&keyspace);
                    scan!(bounds, snapshot, range(), prefix())
                })?
            }
            Self::Transaction(transaction, keyspace) => {
                let keyspace = keyspace.handle(py)?;
                let iter = transaction.write(py, |transaction| {
                    scan!(bounds, transaction, range_in(&keyspace), prefix_in(&keyspace))
                })?;
                return Ok(Scan::Transaction(Box::new(iter)));
            }
        };
        Ok(if keys_only { Scan::Keys(iter.keys()) } else { Scan::Entries(iter) })
    }

    /// The slot that iterators of this source are parts beside.
    pub fn keyspace(&self) -> &Slot<Keyspace> {
        let (Self::Keyspace(keyspace) | Self::Snapshot(_, keyspace) | Self::Transaction(_, keyspace)) = self;
        keyspace
    }
}
