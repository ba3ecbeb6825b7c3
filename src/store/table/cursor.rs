//! Walks along a table, and along a list of tables that follow one another.

use std::ops::Range;
use std::sync::Arc;

use super::reader::{TablePlace, TableReader};
use crate::catalog::{Run, TableMeta};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::merge::Cursor;
use crate::store::cache::{Stretch, TableCache};
use crate::store::meter::ReadCause;
use crate::types::Stamp;

/// A merge reads its inputs in pieces of this size.
const MERGE_PIECE_BYTES: u64 = 256 * 1024;

/// An iterator reads this many units in a row by themselves, and leaves them in the cache. If it goes on, it is a long one:
/// it reads pieces past the cache, of which each is twice as long as the last, between these bounds.
const SINGLE_UNITS: u32 = 2;
const SCAN_PIECE_BYTES_MIN: u64 = 16 * 1024;
const SCAN_PIECE_BYTES_MAX: u64 = 256 * 1024;

/// Where a cursor's blocks come from.
#[derive(Debug)]
pub(crate) enum Fetch {
    /// From the block cache, and in pieces once the walk has gone on for a while: for iterators.
    Cached {
        /// Whether the units of the cache are stretches, or else blocks.
        stretches: bool,
        /// Units in a row that were not in memory.
        missed: u32,
        /// Length of the next piece.
        piece_bytes: u64,
    },
    /// From the pack, in large pieces, past the cache: for merges, which read everything once.
    Ahead,
}

impl Fetch {
    /// Through the block cache.
    pub(crate) fn cached(table: &TableMeta) -> Self {
        let stretches = TableCache::has_large_records(table);
        Self::Cached { stretches, missed: 0, piece_bytes: SCAN_PIECE_BYTES_MIN }
    }

    fn hit(&mut self) {
        if let Self::Cached { missed, .. } = self {
            *missed = 0;
        }
    }

    /// How long a piece is to be read, now that something was not in memory, with or without what went before it; nothing
    /// for a unit of the cache.
    fn miss(&mut self, goes_on: bool) -> Option<u64> {
        let Self::Cached { missed, piece_bytes, .. } = self else { return Some(MERGE_PIECE_BYTES) };
        *missed = if goes_on { *missed + 1 } else { 1 };
        if *missed <= SINGLE_UNITS {
            return None;
        }
        let bytes = *piece_bytes;
        *piece_bytes = (bytes * 2).min(SCAN_PIECE_BYTES_MAX);
        Some(bytes)
    }
}

/// A part of a table, read past the cache.
#[derive(Debug)]
struct Piece {
    start: u64,
    buffer: Arc<[u8]>,
    length: usize,
}

impl Piece {
    /// Where in the buffer the sealed block under `handle` lies, if all of it does.
    fn find(&self, handle: BlockHandle) -> Option<usize> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        (from.checked_add(handle.length as usize)? <= self.length).then_some(from)
    }
}

/// A walk along one table.
#[derive(Debug)]
pub(crate) struct TableCursor {
    cache: Arc<TableCache>,
    table: Arc<TableReader>,
    fetch: Fetch,
    piece: Option<Piece>,
    stretch: Option<Stretch>,
    at: usize,
    block: Option<Block>,
    entry: usize,
    key: Vec<u8>,
}

impl TableCursor {
    pub(crate) fn new(cache: Arc<TableCache>, table: Arc<TableReader>, fetch: Fetch) -> Self {
        Self {
            cache,
            table,
            fetch,
            piece: None,
            stretch: None,
            at: 0,
            block: None,
            entry: 0,
            key: Vec::new(),
        }
    }

    /// The current entry's value, to outlive the cursor: a buffer, and where in it the value lies.
    pub(crate) fn pin_value(&self) -> Option<(Arc<[u8]>, Range<usize>)> {
        self.block.as_ref().map(|block| block.pin_value(self.entry))
    }

    /// Loads block `at`; leaves the cursor invalid.
    fn load(&mut self, at: usize) -> Result<Option<Block>> {
        let goes_on = at == self.at + 1;
        self.block = None;
        self.at = at;
        let Some(handle) = self.table.handle(at) else { return Ok(None) };
        if let Some(found) = self.piece.as_ref().and_then(|piece| piece.find(handle)) {
            return self.block_of_piece(handle, found).map(Some);
        }
        if let Some(block) = self.of_stretch(handle) {
            return Ok(Some(block));
        }
        if let Some(block) = self.lookup(handle) {
            self.fetch.hit();
            return Ok(Some(block));
        }
        match self.fetch.miss(goes_on) {
            None => self.read(handle).map(Some),
            Some(piece_bytes) => {
                self.read_piece(at, handle, piece_bytes)?;
                self.block_of_piece(handle, 0).map(Some)
            }
        }
    }

    /// The block under `handle`, if the stretch that was found last holds it.
    fn of_stretch(&self, handle: BlockHandle) -> Option<Block> {
        self.stretch.as_ref()?.block(handle).cloned()
    }

    /// The block under `handle`, if it is in the cache.
    fn lookup(&mut self, handle: BlockHandle) -> Option<Block> {
        match self.fetch {
            Fetch::Ahead => None,
            Fetch::Cached { stretches: true, .. } if Stretch::has(handle) => {
                self.stretch = self.cache.stretch(&self.table, handle);
                self.of_stretch(handle)
            }
            Fetch::Cached { .. } => self.cache.lookup(&self.table, handle),
        }
    }

    /// Reads the block under `handle`, and what the cache keeps with it.
    fn read(&mut self, handle: BlockHandle) -> Result<Block> {
        if matches!(self.fetch, Fetch::Cached { stretches: true, .. }) && Stretch::has(handle) {
            // One block that cannot be read must not hide those around it.
            self.stretch = self.cache.read_stretch(&self.table, handle, ReadCause::Scan).ok();
            if let Some(block) = self.of_stretch(handle) {
                return Ok(block);
            }
        }
        self.cache.read(&self.table, handle, ReadCause::Scan)
    }

    /// Reads block `at` and as many behind it as fit into `bytes`.
    fn read_piece(&mut self, at: usize, handle: BlockHandle, bytes: u64) -> Result<()> {
        let (extent, id) = (self.table.extent(), self.table.id());
        // Whole blocks alone, so that no byte is read twice.
        let behind = (at + 1..self.table.blocks()).map_while(|at| self.table.handle(at));
        let ends = behind.map(BlockHandle::end).take_while(|&end| end <= handle.offset + bytes);
        let end = ends.fold(handle.end(), u64::max);
        let file = self.cache.packs().table_file(extent)?;
        let place = TablePlace { file: &file, id, extent };
        let length = usize::try_from(end - handle.offset).unwrap_or(usize::MAX);
        place.length(handle)?;
        self.drop_piece();
        let mut buffer = self.cache.buffers().take(length);
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            let cause = match self.fetch {
                Fetch::Cached { .. } => ReadCause::Scan,
                Fetch::Ahead => ReadCause::Merge,
            };
            place.read(cause, handle.offset..end, bytes)?;
        }
        self.piece = Some(Piece { start: handle.offset, buffer, length });
        Ok(())
    }

    /// The block that lies at `found` of the piece.
    fn block_of_piece(&self, handle: BlockHandle, found: usize) -> Result<Block> {
        let extent = self.table.extent();
        let file = self.cache.packs().table_file(extent)?;
        let place = TablePlace { file: &file, id: self.table.id(), extent };
        let buffer = self.piece.as_ref().map(|piece| piece.buffer.clone()).unwrap_or_default();
        place.block(handle, &buffer, found)
    }

    fn drop_piece(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.cache.buffers().give(piece.buffer);
        }
    }

    fn stand(&mut self, block: Block, entry: usize) {
        block.key_into(entry, &mut self.key);
        self.entry = entry;
        self.block = Some(block);
    }

    /// Whether an entry that is stored at or behind (`key`, `stamp`) lies before it.
    fn is_before(&self, block: &Block, entry: usize, key: &[u8], stamp: Stamp) -> bool {
        entry < block.len()
            && self.table.stamp(block.stamp(entry)) > stamp
            && key.strip_prefix(block.prefix()).is_some_and(|rest| rest == block.suffix(entry))
    }

    fn first_of(&mut self, at: usize) -> Result<()> {
        if let Some(block) = self.load(at)? {
            self.stand(block, 0);
        }
        Ok(())
    }

    fn last_of(&mut self, at: Option<usize>) -> Result<()> {
        self.block = None;
        if let Some(at) = at
            && let Some(block) = self.load(at)?
        {
            let last = block.len() - 1;
            self.stand(block, last);
        }
        Ok(())
    }
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        self.block = None;
        self.drop_piece();
    }
}

impl Cursor for TableCursor {
    type Error = Error;

    fn valid(&self) -> bool {
        self.block.is_some()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn stamp(&self) -> Stamp {
        self.block.as_ref().map_or(Stamp::MAX, |block| self.table.stamp(block.stamp(self.entry)))
    }

    fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| block.value(self.entry))
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let at = self.table.block_for(key, stamp);
        if let Some(block) = self.load(at)? {
            let entry = block.seek(key, stamp);
            if entry < block.len() {
                self.stand(block, entry);
            } else {
                // The separator lies behind the block's last entry, and so does the target.
                self.first_of(at + 1)?;
            }
        }
        // An entry that is stored with number 0 lies further ahead than it is stored.
        if self.valid() && self.key == key && self.stamp() > stamp { self.next() } else { Ok(()) }
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let at = self.table.block_for(key, stamp);
        match self.load(at)? {
            Some(block) => match block.seek(key, stamp) {
                // As in `seek`.
                entry if self.is_before(&block, entry, key, stamp) => {
                    self.stand(block, entry);
                    Ok(())
                }
                0 => self.last_of(at.checked_sub(1)),
                entry => {
                    self.stand(block, entry - 1);
                    Ok(())
                }
            },
            None => self.seek_last(),
        }
    }

    fn seek_first(&mut self) -> Result<()> {
        self.first_of(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.last_of(self.table.blocks().checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        match &self.block {
            Some(block) if self.entry + 1 < block.len() => {
                self.entry += 1;
                self.key.truncate(block.prefix().len());
                self.key.extend_from_slice(block.suffix(self.entry));
                Ok(())
            }
            Some(_) => self.first_of(self.at + 1),
            None => Ok(()),
        }
    }

    fn prev(&mut self) -> Result<()> {
        match &self.block {
            Some(block) if self.entry > 0 => {
                self.entry -= 1;
                self.key.truncate(block.prefix().len());
                self.key.extend_from_slice(block.suffix(self.entry));
                Ok(())
            }
            Some(_) => self.last_of(self.at.checked_sub(1)),
            None => Ok(()),
        }
    }
}

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

/// A walk along a list of tables, each opened when the walk reaches it.
#[derive(Debug)]
pub(crate) struct TablesCursor<L> {
    cache: Arc<TableCache>,
    list: L,
    cached: bool,
    at: usize,
    table: Option<TableCursor>,
}

impl<L: TableList> TablesCursor<L> {
    /// Through the block cache.
    pub(crate) fn cached(cache: Arc<TableCache>, list: L) -> Self {
        Self { cache, list, cached: true, at: 0, table: None }
    }

    /// In large pieces past the cache.
    pub(crate) fn ahead(cache: Arc<TableCache>, list: L) -> Self {
        Self { cache, list, cached: false, at: 0, table: None }
    }

    /// See [`TableCursor::pin_value`].
    pub(crate) fn pin_value(&self) -> Option<(Arc<[u8]>, Range<usize>)> {
        self.table.as_ref().and_then(TableCursor::pin_value)
    }

    fn open(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        if self.at == at && self.table.is_some() {
            return Ok(self.table.as_mut());
        }
        self.table = None;
        self.at = at;
        if let Some(meta) = self.list.table(at) {
            let reader = self.cache.table_arc(meta)?;
            let fetch = if self.cached { Fetch::cached(meta) } else { Fetch::Ahead };
            self.table = Some(TableCursor::new(self.cache.clone(), reader, fetch));
        }
        Ok(self.table.as_mut())
    }

    fn current(&self) -> Option<&TableCursor> {
        self.table.as_ref().filter(|table| table.valid())
    }

    /// Goes on to the next table if the current one is exhausted.
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
                    }
                }
                None => self.table = None,
            }
        }
        Ok(())
    }

    /// Makes the cursor invalid after a failure, as [`Cursor`] asks.
    fn guard(&mut self, result: Result<()>) -> Result<()> {
        result.inspect_err(|_| self.table = None)
    }
}

impl<L: TableList> Cursor for TablesCursor<L> {
    type Error = Error;

    fn valid(&self) -> bool {
        self.current().is_some()
    }

    fn key(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::key)
    }

    fn stamp(&self) -> Stamp {
        self.current().map_or(Stamp::MAX, Cursor::stamp)
    }

    fn value(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::value)
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let walk = |cursor: &mut Self| {
            if let Some(table) = cursor.open(cursor.list.position(key))? {
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

    fn next(&mut self) -> Result<()> {
        let walk = |cursor: &mut Self| {
            if let Some(table) = cursor.table.as_mut() {
                table.next()?;
                if !table.valid() {
                    cursor.settle_forward()?;
                }
            }
            Ok(())
        };
        let result = walk(self);
        self.guard(result)
    }

    fn prev(&mut self) -> Result<()> {
        let walk = |cursor: &mut Self| {
            if let Some(table) = cursor.table.as_mut() {
                table.prev()?;
                if !table.valid() {
                    cursor.settle_backward()?;
                }
            }
            Ok(())
        };
        let result = walk(self);
        self.guard(result)
    }
}
