//! Walks along a table, and along a list of tables that follow one another.

use std::ops::Range;
use std::sync::Arc;

use super::reader::TableReader;
use crate::catalog::{Run, TableMeta};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::checksum::Place;
use crate::format::table::{BlockHandle, open_block};
use crate::merge::Cursor;
use crate::store::cache::TableCache;
use crate::store::meter::ReadCause;
use crate::types::Stamp;

/// A merge reads its inputs in pieces of this size.
const READ_AHEAD_BYTES: u64 = 256 * 1024;

/// Where a cursor's blocks come from.
#[derive(Debug)]
pub(crate) enum Fetch {
    /// From the block cache, which keeps what was read: for iterators.
    Cached,
    /// From the pack, in large pieces, past the cache: for merges, which read everything once.
    Ahead(Piece),
}

impl Fetch {
    /// Large reads past the cache.
    pub(crate) fn ahead() -> Self {
        Self::Ahead(Piece::default())
    }
}

/// A stretch of a table in memory.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    start: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn get(&self, handle: BlockHandle) -> Option<&[u8]> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(handle.length as usize)?)
    }
}

/// A walk along one table.
#[derive(Debug)]
pub(crate) struct TableCursor {
    cache: Arc<TableCache>,
    table: Arc<TableReader>,
    fetch: Fetch,
    at: usize,
    block: Option<Arc<Block>>,
    entry: usize,
    key: Vec<u8>,
}

impl TableCursor {
    pub(crate) fn new(cache: Arc<TableCache>, table: Arc<TableReader>, fetch: Fetch) -> Self {
        Self { cache, table, fetch, at: 0, block: None, entry: 0, key: Vec::new() }
    }

    /// The current entry's block and where its value lies in it, so that the value can outlive the cursor.
    pub(crate) fn pinned(&self) -> Option<(&Arc<Block>, Range<usize>)> {
        self.block.as_ref().map(|block| (block, block.value_span(self.entry)))
    }

    /// Loads block `at`; leaves the cursor invalid if there is none.
    fn load(&mut self, at: usize) -> Result<Option<Arc<Block>>> {
        self.block = None;
        self.at = at;
        let Some(handle) = self.table.handle(at) else { return Ok(None) };
        let block = match &mut self.fetch {
            Fetch::Cached => self.cache.block(&self.table, handle, ReadCause::Scan)?,
            Fetch::Ahead(piece) => Arc::new(read_ahead(&self.cache, &self.table, piece, at, handle)?),
        };
        Ok(Some(block))
    }

    fn stand(&mut self, block: Arc<Block>, entry: usize) {
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

/// Block `at` from the piece in memory, which is read anew if the block is not in it.
fn read_ahead(
    cache: &TableCache,
    table: &TableReader,
    piece: &mut Piece,
    at: usize,
    handle: BlockHandle,
) -> Result<Block> {
    let extent = table.extent();
    let file = cache.packs().file(extent.pack)?;
    if piece.get(handle).is_none() {
        let mut end = handle.end();
        // Whole blocks alone, so that no byte is read twice.
        for next in (at + 1..table.blocks()).map_while(|at| table.handle(at)) {
            let next_end = next.offset.saturating_add(u64::from(next.length));
            if next_end > handle.offset + READ_AHEAD_BYTES {
                break;
            }
            end = end.max(next_end);
        }
        if end > extent.length {
            return Err(file.corruption(extent.offset, "a block lies outside its table"));
        }
        piece.start = handle.offset;
        piece.bytes.resize(usize::try_from(end - handle.offset).unwrap_or(0), 0);
        let filled = file.read_into(ReadCause::Merge, extent.offset + handle.offset, &mut piece.bytes);
        filled.inspect_err(|_| piece.bytes.clear())?;
    }
    let stored = piece.get(handle).unwrap_or_default().to_vec();
    let place = Place { id: table.id().0, offset: handle.offset };
    open_block(place, stored)
        .and_then(Block::decode)
        .map_err(|e| file.malformed(extent.offset + handle.offset, &e))
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
                block.key_into(self.entry, &mut self.key);
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
                block.key_into(self.entry, &mut self.key);
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

    /// See [`TableCursor::pinned`].
    pub(crate) fn pinned(&self) -> Option<(&Arc<Block>, Range<usize>)> {
        self.table.as_ref().and_then(TableCursor::pinned)
    }

    fn open(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        if self.at == at && self.table.is_some() {
            return Ok(self.table.as_mut());
        }
        self.table = None;
        self.at = at;
        if let Some(meta) = self.list.table(at) {
            let reader = self.cache.table(meta)?;
            let fetch = if self.cached { Fetch::Cached } else { Fetch::ahead() };
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
