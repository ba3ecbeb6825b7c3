//! A cursor over tables in key order that do not overlap: a run, or a compaction's inputs from one level.
//!
//! It opens a table when it reaches it. A cursor for scans may also wait in the gap before a table and leave the
//! table closed until it is needed ([`Cursor::waits`]).

use std::ops::Range;
use std::sync::Arc;

use super::cursor::{Fetch, TableCursor};
use super::read_ahead::ReadAhead;
use crate::catalog::{Run, TableMeta, Values};
use crate::error::{Error, Result};
use crate::merge::Cursor;
use crate::store::cache::{TableCache, Unit};
use crate::store::files::meter::ReadCause;
use crate::types::{Buffer, Stamp};

/// Tables in key order, disjoint in user keys.
pub(crate) trait TableList {
    /// The table at `index`.
    fn table(&self, index: usize) -> Option<&Arc<TableMeta>>;
    /// Number of tables.
    fn tables(&self) -> usize;
    /// Index of the first table that is not wholly before `key`.
    fn position(&self, key: &[u8]) -> usize;
}

impl TableList for Run {
    fn table(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.get(index)
    }

    fn tables(&self) -> usize {
        self.len()
    }

    fn position(&self, key: &[u8]) -> usize {
        self.lower_bound(key)
    }
}

impl TableList for Vec<Arc<TableMeta>> {
    fn table(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.get(index)
    }

    fn tables(&self) -> usize {
        self.len()
    }

    fn position(&self, key: &[u8]) -> usize {
        self.partition_point(|table| !table.range.end.admits(key))
    }
}

/// A cursor over a list of tables, each opened when the cursor reaches it.
#[derive(Debug)]
pub(crate) struct TablesCursor<L> {
    cache: Arc<TableCache>,
    list: L,
    /// `Some`: reads through the block cache, which keeps large records by this unit. `None`: reads large pieces past
    /// the cache.
    cached: Option<Unit>,
    /// Whether a seek may leave the table behind a gap unopened.
    may_wait: bool,
    /// Whether values of single blocks are read only when they are asked for.
    is_lazy: bool,
    /// With these it reads values that lie apart.
    values: Option<Values>,
    at: usize,
    table: Option<TableCursor>,
    /// Whether the cursor stands before the table at `at`, which is not open.
    waits: bool,
    /// If it reads all, and on several devices.
    ahead: Option<Box<ReadAhead>>,
}

impl<L: TableList> TablesCursor<L> {
    /// A cursor that reads through the block cache, which keeps large records by `unit`.
    pub(crate) fn cached(cache: Arc<TableCache>, list: L, unit: Unit) -> Self {
        let at = 0;
        let (cached, may_wait, is_lazy) = (Some(unit), false, false);
        let values = None;
        Self { cache, list, cached, may_wait, is_lazy, values, at, table: None, waits: false, ahead: None }
    }

    /// A cursor that reads large pieces past the cache, and all of the list. It tells the devices of what lies up to `ahead_bytes`
    /// ahead of it, and of the start at once.
    pub(crate) fn readahead(cache: Arc<TableCache>, list: L, ahead_bytes: u64) -> Self {
        let tables = || (0..list.tables()).filter_map(|at| list.table(at)).map(|table| &**table);
        let ahead = (ahead_bytes > 0)
            .then(|| Box::new(ReadAhead::of_entries(cache.packs().clone(), tables(), ahead_bytes)));
        let (cached, may_wait, is_lazy) = (None, false, false);
        let values = None;
        Self { cache, list, cached, may_wait, is_lazy, values, at: 0, table: None, waits: false, ahead }
    }

    /// The same cursor, but a seek that ends between two tables waits there ([`Cursor::waits`]), since most scans end
    /// before the second table. A run of level 0 has gaps where parts of it have been compacted.
    pub(crate) fn waiting(self) -> Self {
        Self { may_wait: true, ..self }
    }

    /// The same cursor, but a large value is read only when it is asked for ([`Cursor::read_value`]).
    pub(crate) fn lazy(self) -> Self {
        Self { is_lazy: true, ..self }
    }

    /// The same cursor, but it reads values that lie apart, in these value tables, when they are asked for. Without, it shows the
    /// pointers.
    pub(crate) fn following(self, values: Values) -> Self {
        Self { values: Some(values), ..self }
    }

    /// See [`TableCursor::pin_value`].
    pub(crate) fn pin_value(&self) -> Option<(Buffer, Range<usize>)> {
        self.table.as_ref().and_then(TableCursor::pin_value)
    }

    /// The value to which a `pointer` leads that was pinned of this cursor before its last step back.
    pub(crate) fn read_pinned(&mut self, pointer: &[u8]) -> Result<(Buffer, Range<usize>)> {
        let value = match (&mut self.table, &self.values) {
            (Some(table), _) => table.read_pinned(pointer),
            (None, Some(values)) => {
                self.cache.value(values, pointer, ReadCause::Scan).map(|(value, _)| value)
            }
            (None, None) => Ok(Buffer::from(pointer)),
        };
        value.map(|value| {
            let range = 0..value.len();
            (value, range)
        })
    }

    fn open(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        self.waits = false;
        if self.at == at && self.table.is_some() {
            return Ok(self.table.as_mut());
        }
        self.table = None;
        self.at = at;
        if let Some(meta) = self.list.table(at) {
            let reader = self.cache.table_arc(meta)?;
            let fetch = self.cached.map_or(Fetch::Readahead, |unit| Fetch::cached(&self.cache, meta, unit));
            let cursor = TableCursor::new(self.cache.clone(), reader, fetch);
            let cursor = cursor.following(self.values.clone());
            self.table = Some(if self.is_lazy { cursor.lazy() } else { cursor });
        }
        Ok(self.table.as_mut())
    }

    /// The start of the table that the cursor stands before.
    #[cold]
    fn gate(&self) -> &[u8] {
        self.list.table(self.at).filter(|_| self.waits).map_or(&[], |table| &table.range.start)
    }

    /// Whether a seek to `key` ends before table `at`, which is not open.
    fn is_gate(&self, at: usize, key: &[u8]) -> bool {
        let is_open = self.at == at && self.table.is_some();
        self.may_wait && !is_open && self.list.table(at).is_some_and(|table| *key < *table.range.start)
    }

    /// [`Cursor::next`] at the end of a block.
    #[inline(never)]
    fn next_block(&mut self) -> Result<()> {
        let moved = if self.waits {
            let opened = self.open(self.at);
            opened.and_then(|table| table.map_or(Ok(()), Cursor::seek_first))
        } else {
            self.table.as_mut().map_or(Ok(()), Cursor::next)
        };
        let result = moved.and_then(|()| self.settle_forward());
        if let (Some(ahead), Some(table)) = (&mut self.ahead, &self.table) {
            ahead.reached(self.at, table.read_upto());
        }
        self.guard(result)
    }

    /// [`Cursor::prev`] at the start of a block.
    #[inline(never)]
    fn prev_block(&mut self) -> Result<()> {
        if self.waits {
            let gate = self.gate().to_vec();
            return self.seek_before(&gate, Stamp::MAX);
        }
        let moved = self.table.as_mut().map_or(Ok(()), Cursor::prev);
        let result = moved.and_then(|()| self.settle_backward());
        self.guard(result)
    }

    /// Moves to the next table if the current one is exhausted.
    fn settle_forward(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.valid()) {
            if let Some(table) = self.open(self.at + 1)? {
                table.seek_first()?;
            }
        }
        Ok(())
    }

    fn settle_backward(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.valid()) {
            match self.at.checked_sub(1) {
                Some(previous) => {
                    if let Some(table) = self.open(previous)? {
                        table.seek_last()?;
                        if planted!("entry-skipped-between-tables-in-reverse") {
                            table.prev()?;
                        }
                    }
                }
                None => self.table = None,
            }
        }
        Ok(())
    }

    /// Makes the cursor invalid after a failure, as [`Cursor`] asks.
    fn guard(&mut self, result: Result<()>) -> Result<()> {
        let result = result.inspect_err(|_| self.table = None);
        if planted!("read-error-taken-for-the-end") { Ok(()) } else { result }
    }
}

impl<L: TableList> Cursor for TablesCursor<L> {
    type Error = Error;

    #[inline]
    fn valid(&self) -> bool {
        self.table.as_ref().map_or(self.waits, Cursor::valid)
    }

    #[inline]
    fn waits(&self) -> bool {
        self.waits
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match &self.table {
            Some(table) => table.key(),
            None => self.gate(),
        }
    }

    #[inline]
    fn stamp(&self) -> Stamp {
        self.table.as_ref().map_or(Stamp::MAX, Cursor::stamp)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], Cursor::value)
    }

    #[inline]
    fn kept(&self) -> usize {
        self.table.as_ref().map_or(0, Cursor::kept)
    }

    #[inline]
    fn is_unread(&self) -> bool {
        self.table.as_ref().is_some_and(Cursor::is_unread)
    }

    #[inline]
    fn is_apart(&self) -> bool {
        self.table.as_ref().is_some_and(Cursor::is_apart)
    }

    fn read_value(&mut self) -> Result<()> {
        let result = self.table.as_mut().map_or(Ok(()), Cursor::read_value);
        self.guard(result)
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let walk = |cursor: &mut Self| {
            let at = cursor.list.position(key);
            if cursor.is_gate(at, key) {
                (cursor.at, cursor.table, cursor.waits) = (at, None, true);
                return Ok(());
            }
            if let Some(table) = cursor.open(at)? {
                table.seek(key, stamp)?;
            }
            cursor.settle_forward()
        };
        let result = walk(self);
        self.guard(result)
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let walk = |cursor: &mut Self| {
            let at = cursor.list.position(key);
            if at == cursor.list.tables() {
                return cursor.seek_last();
            }
            if let Some(table) = cursor.open(at)? {
                table.seek_before(key, stamp)?;
            }
            cursor.settle_backward()
        };
        let result = walk(self);
        self.guard(result)
    }

    fn seek_first(&mut self) -> Result<()> {
        let walk = |cursor: &mut Self| {
            if let Some(table) = cursor.open(0)? {
                table.seek_first()?;
            }
            cursor.settle_forward()
        };
        let result = walk(self);
        self.guard(result)
    }

    fn seek_last(&mut self) -> Result<()> {
        let walk = |cursor: &mut Self| {
            if let Some(last) = cursor.list.tables().checked_sub(1)
                && let Some(table) = cursor.open(last)?
            {
                table.seek_last()?;
            }
            cursor.settle_backward()
        };
        let result = walk(self);
        self.guard(result)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.table.as_mut().is_some_and(TableCursor::next_in_block) { Ok(()) } else { self.next_block() }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.table.as_mut().is_some_and(TableCursor::prev_in_block) { Ok(()) } else { self.prev_block() }
    }
}
