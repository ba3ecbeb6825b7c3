//! Iterators of a transaction: its snapshot, overlaid with its own writes.

use std::collections::VecDeque;
use std::fmt;

use crate::error::Result;
use crate::iter::Iter;
use crate::slice::Slice;
use crate::types::KeyRange;

/// Entries in key order, from both ends, as a [`Transaction`](super::Transaction) sees them: its snapshot, overlaid
/// with its own writes when the iterator was made.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// db.put("a", "1")?;
/// db.put("b", "2")?;
/// let mut transaction = db.transaction();
/// transaction.delete("a").put("c", "3");
/// let keys: Vec<_> = transaction.iter()?.rev().map(|entry| Ok(entry?.0)).collect::<terrace::Result<_>>()?;
/// assert_eq!(keys, ["c", "b"]);
/// # Ok::<(), terrace::Error>(())
/// ```
///
/// A failure (a damaged block, say) is returned once and ends the iteration.
pub struct TransactionIter {
    /// The transaction's own writes that are still to come; `None` is a delete.
    own: VecDeque<(Vec<u8>, Option<Slice>)>,
    /// Ranges that the transaction had deleted from `stored`.
    deleted: Vec<KeyRange>,
    stored: Iter,
    /// An entry taken from either end of `stored` and not yet returned.
    front: Option<(Slice, Slice)>,
    back: Option<(Slice, Slice)>,
}

impl TransactionIter {
    pub(super) fn new(own: VecDeque<(Vec<u8>, Option<Slice>)>, deleted: Vec<KeyRange>, stored: Iter) -> Self {
        Self { own, deleted, stored, front: None, back: None }
    }

    fn step(&mut self) -> Result<Option<(Slice, Slice)>> {
        loop {
            if self.front.is_none() {
                // The last entry may have been taken from the other end.
                self.front = self
                    .stored
                    .find(|entry| shows(entry, &self.deleted))
                    .transpose()?
                    .or_else(|| self.back.take());
            }
            let Some((own, _)) = self.own.front() else { return Ok(self.front.take()) };
            match &self.front {
                Some((stored, _)) if **stored < own[..] => return Ok(self.front.take()),
                Some((stored, _)) if *stored == own[..] => self.front = None,
                _ => {}
            }
            if let Some((key, Some(value))) = self.own.pop_front() {
                return Ok(Some((key.into(), value)));
            }
        }
    }

    fn step_back(&mut self) -> Result<Option<(Slice, Slice)>> {
        loop {
            if self.back.is_none() {
                self.back = self
                    .stored
                    .rfind(|entry| shows(entry, &self.deleted))
                    .transpose()?
                    .or_else(|| self.front.take());
            }
            let Some((own, _)) = self.own.back() else { return Ok(self.back.take()) };
            match &self.back {
                Some((stored, _)) if **stored > own[..] => return Ok(self.back.take()),
                Some((stored, _)) if *stored == own[..] => self.back = None,
                _ => {}
            }
            if let Some((key, Some(value))) = self.own.pop_back() {
                return Ok(Some((key.into(), value)));
            }
        }
    }

    /// A failure ends the iteration: the rest of the transaction's own writes alone would look like a whole result.
    fn ended<T>(&mut self, step: Result<T>) -> Result<T> {
        if step.is_err() {
            self.own.clear();
            (self.front, self.back) = (None, None);
        }
        step
    }
}

/// Whether to return an entry: it lies in none of the `deleted` ranges, or it is a failure.
fn shows(entry: &Result<(Slice, Slice)>, deleted: &[KeyRange]) -> bool {
    entry.as_ref().map_or(true, |(key, _)| !deleted.iter().any(|range| range.contains(key)))
}

impl Iterator for TransactionIter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        self.ended(step).transpose()
    }
}

impl DoubleEndedIterator for TransactionIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        let step = self.step_back();
        self.ended(step).transpose()
    }
}

impl std::iter::FusedIterator for TransactionIter {}

impl fmt::Debug for TransactionIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionIter")
    }
}
