//! A walk along one table.

use std::ops::Range;
use std::sync::{Arc, Weak};

use super::reader::{TablePlace, TableReader};
use crate::catalog::TableMeta;
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::merge::Cursor;
use crate::store::cache::{PinnedTable, SPAN_BYTES, Span, TableCache, Unit};
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::types::{Buffer, Stamp};

/// A compaction reads its inputs in pieces of this size.
const COMPACTION_READAHEAD_BYTES: u64 = 256 * 1024;

/// An iterator reads this many units in a row by themselves, and the cache may keep them. If it goes on, it is a long one: it reads
/// pieces past the cache, of which each is twice as long as the last, between these bounds.
const SINGLE_UNITS: u32 = 2;
const SCAN_PIECE_BYTES_MIN: u64 = 16 * 1024;
const SCAN_PIECE_BYTES_MAX: u64 = 256 * 1024;

/// What lies between the last value of a block and the first one of the next: headers, and keys of large records.
const BETWEEN_VALUES_BYTES: usize = 256;

/// No more than so much of the next value is brought from memory ahead: behind that, the processor reads ahead by itself.
const PREFETCH_BYTES_MAX: usize = 2048;

/// Where a cursor's blocks come from.
#[derive(Debug)]
pub(crate) enum Fetch {
    /// From the block cache, and in pieces once the walk has gone on for a while: for iterators.
    Cached {
        /// By what the cache holds large records.
        large: Option<Unit>,
        /// Units in a row that were not in memory.
        missed: u32,
        /// Length of the next piece.
        piece_bytes: u64,
    },
    /// From the pack, in large pieces, past the cache: for compactions, which read everything once.
    Readahead,
}

impl Fetch {
    /// Through the block cache, which holds large records by `unit`.
    pub(crate) fn cached(table: &TableMeta, unit: Unit) -> Self {
        let large = TableCache::has_large_records(table).then_some(unit);
        Self::Cached { large, missed: 0, piece_bytes: SCAN_PIECE_BYTES_MIN }
    }

    fn hit(&mut self) {
        if let Self::Cached { missed, .. } = self {
            *missed = 0;
        }
    }

    /// How long a piece is to be read, now that something was not in memory, with or without what went before it; nothing
    /// for a unit of the cache. If that can hold all there is (`holds_all`), what is large is kept, and not read again by each
    /// walk that is long: scans of up to 100 records of a kilobyte, two million in all, take a third less of the processors.
    fn miss(&mut self, goes_on: bool, holds_all: impl FnOnce() -> bool) -> Option<u64> {
        let Self::Cached { large, missed, piece_bytes } = self else {
            return Some(COMPACTION_READAHEAD_BYTES);
        };
        *missed = if goes_on { *missed + 1 } else { 1 };
        if *missed <= SINGLE_UNITS || large.is_some() && holds_all() {
            return None;
        }
        let bytes = *piece_bytes;
        *piece_bytes = (bytes * 2).min(SCAN_PIECE_BYTES_MAX);
        Some(bytes)
    }
}

/// Which way a walk goes from the block that it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Towards {
    /// To greater keys.
    End,
    /// To smaller ones.
    Start,
}

/// A part of a table, read past the cache.
#[derive(Debug)]
struct Piece {
    start: u64,
    buffer: Buffer,
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
    /// Where the table lies, once a piece of it was read: to find it costs as much as a small read.
    file: Option<Arc<StoreFile>>,
    piece: Option<Piece>,
    /// All blocks, as long as they are in memory: a walk that rests must not keep them there.
    pinned: Option<Weak<PinnedTable>>,
    span: Option<Span>,
    /// Whether the block was found in memory, where its bytes may be far away; what has just been read is near.
    is_far: bool,
    at: usize,
    block: Option<Block>,
    entry: usize,
    key: Vec<u8>,
    /// See [`Cursor::kept`].
    kept: usize,
    stamp: Stamp,
    /// Where in the block's buffer the value lies.
    value: Range<usize>,
}

impl TableCursor {
    pub(crate) fn new(cache: Arc<TableCache>, table: Arc<TableReader>, fetch: Fetch) -> Self {
        let pinned = match fetch {
            Fetch::Cached { .. } => cache.pinned(&table).as_ref().map(Arc::downgrade),
            Fetch::Readahead => None,
        };
        Self {
            cache,
            table,
            fetch,
            file: None,
            piece: None,
            pinned,
            span: None,
            is_far: false,
            at: 0,
            block: None,
            entry: 0,
            key: Vec::new(),
            kept: 0,
            stamp: Stamp::MAX,
            value: 0..0,
        }
    }

    /// The current entry's value, to outlive the cursor: a buffer, and where in it the value lies.
    pub(crate) fn pin_value(&self) -> Option<(Buffer, Range<usize>)> {
        self.block.as_ref().map(|block| (block.buffer().clone(), self.value.clone()))
    }

    /// Loads block `at`, if there is one: the caller is to stand on one of its entries.
    fn load(&mut self, at: usize, towards: Towards) -> Result<()> {
        let goes_on = at == self.at + 1;
        self.block = None;
        self.at = at;
        if let Some(pinned) = &self.pinned {
            if let Some(pinned) = pinned.upgrade() {
                self.is_far = true;
                self.block = pinned.block(at).cloned();
                return Ok(());
            }
            self.pinned = None;
        }
        let Some(handle) = self.table.handle(at) else { return Ok(()) };
        let block = if let Some(found) = self.piece.as_ref().and_then(|piece| piece.find(handle)) {
            self.is_far = false;
            self.block_of_piece(handle, found)?
        } else if let Some(block) = self.of_span(handle) {
            block
        } else if let Some(block) = self.lookup(handle) {
            self.fetch.hit();
            block
        } else if let Some(piece_bytes) = self.fetch.miss(goes_on, || self.cache.holds_all()) {
            self.read_piece(at, handle, piece_bytes)?;
            self.block_of_piece(handle, 0)?
        } else {
            self.read(at, handle, towards)?
        };
        self.block = Some(block);
        Ok(())
    }

    /// The block under `handle`, if the span that was found last holds it.
    fn of_span(&self, handle: BlockHandle) -> Option<Block> {
        self.span.as_ref()?.block(handle).cloned()
    }

    /// The block under `handle`, if it is in the cache.
    fn lookup(&mut self, handle: BlockHandle) -> Option<Block> {
        match self.fetch {
            Fetch::Readahead => None,
            Fetch::Cached { large: Some(Unit::Span), .. } if Span::has(handle) => {
                self.span = self.cache.span(&self.table, handle);
                self.is_far = self.span.is_some();
                self.of_span(handle)
            }
            Fetch::Cached { .. } => self.cache.lookup(&self.table, handle),
        }
    }

    /// Reads block `at`, under `handle`, and what is read with it.
    fn read(&mut self, at: usize, handle: BlockHandle, towards: Towards) -> Result<Block> {
        self.is_far = false;
        let is_span =
            matches!(self.fetch, Fetch::Cached { large: Some(Unit::Span), .. }) && Span::has(handle);
        let missed_bytes = if is_span { SPAN_BYTES } else { handle.length.into() };
        if let Some(pinned) = self.cache.missed_by_scan(&self.table, missed_bytes) {
            self.pinned = Some(Arc::downgrade(&pinned));
            if let Some(block) = pinned.block(at) {
                return Ok(block.clone());
            }
        }
        match self.fetch {
            _ if is_span => {}
            Fetch::Cached { large: Some(Unit::Block), .. }
                if !self.cache.admits_unit(self.table.id(), handle.offset) =>
            {
                return self.cache.read_past(&self.table, handle, ReadCause::Scan);
            }
            _ => return self.cache.read(&self.table, handle, ReadCause::Scan),
        }
        // One block that cannot be read must not hide those around it.
        let found = if self.cache.admits_span(&self.table, handle) {
            self.span = self.cache.read_span(&self.table, handle, ReadCause::Scan).ok();
            self.of_span(handle)
        } else {
            self.read_span_past(handle, towards).ok()
        };
        found.map_or_else(|| self.cache.read(&self.table, handle, ReadCause::Scan), Ok)
    }

    /// Reads the block under `handle`, with what of its span lies `towards`, past the cache.
    fn read_span_past(&mut self, handle: BlockHandle, towards: Towards) -> Result<Block> {
        self.drop_piece();
        let from = place_of(&self.table, &self.cache, &mut self.file)?;
        let (buffer, range) =
            self.cache.read_span_past(&self.table, from, handle, towards, ReadCause::Scan)?;
        let piece = Piece { start: range.start, buffer, length: (range.end - range.start) as usize };
        let found = piece.find(handle);
        self.piece = Some(piece);
        match found {
            Some(found) => self.block_of_piece(handle, found),
            None => self.cache.read(&self.table, handle, ReadCause::Scan),
        }
    }

    /// Reads block `at` and as many behind it as fit into `bytes`.
    fn read_piece(&mut self, at: usize, handle: BlockHandle, bytes: u64) -> Result<()> {
        // Whole blocks alone, so that no byte is read twice.
        let behind = (at + 1..self.table.blocks()).map_while(|at| self.table.handle(at));
        let ends = behind.map(BlockHandle::end).take_while(|&end| end <= handle.offset + bytes);
        let end = ends.fold(handle.end(), u64::max);
        let length = usize::try_from(end - handle.offset).unwrap_or(usize::MAX);
        self.drop_piece();
        self.is_far = false;
        let place = place_of(&self.table, &self.cache, &mut self.file)?;
        place.length(handle)?;
        let mut buffer = self.cache.buffers().take(length);
        if let Some(bytes) = buffer.get_mut() {
            let cause = match self.fetch {
                Fetch::Cached { .. } => ReadCause::Scan,
                Fetch::Readahead => ReadCause::Compaction,
            };
            place.read(cause, handle.offset..end, bytes)?;
        }
        self.piece = Some(Piece { start: handle.offset, buffer, length });
        Ok(())
    }

    /// The block that lies at `found` of the piece.
    fn block_of_piece(&self, handle: BlockHandle, found: usize) -> Result<Block> {
        let (Some(piece), Some(file)) = (&self.piece, &self.file) else {
            return self.cache.read(&self.table, handle, ReadCause::Scan);
        };
        let place = TablePlace { file, id: self.table.id(), extent: self.table.extent() };
        // Nobody keeps it: no frame of the cache for what is unpacked.
        place.block(handle, &piece.buffer, found, Buffer::alone)
    }

    fn drop_piece(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.cache.buffers().give(piece.buffer);
        }
    }

    /// Stands on an entry of the block that was loaded.
    fn stand(&mut self, entry: usize) {
        if let Some(block) = &self.block {
            let prefix = block.prefix();
            self.key.clear();
            self.key.reserve(prefix.len() + block.suffix(entry).len());
            self.key.extend_from_slice(prefix);
            self.move_to(entry);
            self.kept = 0;
        }
    }

    /// Stands on an entry of the block, with whose prefix the key begins already.
    #[inline]
    fn move_to(&mut self, entry: usize) {
        if let Some(block) = &self.block {
            let (suffix, stamp, value) = block.entry(entry);
            self.entry = entry;
            self.stamp = self.table.stamp(stamp);
            self.value = value;
            self.kept = block.prefix_len();
            self.key.truncate(self.kept);
            self.key.extend_from_slice(suffix);
        }
    }

    /// Whether an entry that is stored at or behind (`key`, `stamp`) lies before it.
    fn is_before(&self, block: &Block, entry: usize, key: &[u8], stamp: Stamp) -> bool {
        entry < block.len()
            && self.table.stamp(block.stamp(entry)) > stamp
            && key.strip_prefix(block.prefix()).is_some_and(|rest| rest == block.suffix(entry))
    }

    /// Goes to the next entry of the block, if there is one.
    #[inline]
    pub(super) fn next_in_block(&mut self) -> bool {
        let found = self.block.as_ref().is_some_and(|block| self.entry + 1 < block.len());
        if found {
            self.move_to(self.entry + 1);
            self.prefetch_next();
        }
        found
    }

    /// Has the next value, which may begin in the block behind this one, brought near while the caller is busy with this one.
    #[inline]
    fn prefetch_next(&mut self) {
        if let (true, Some(block)) = (self.is_far, &self.block) {
            let Range { start, end } = self.value;
            block.buffer().prefetch(end..end + (end - start + BETWEEN_VALUES_BYTES).min(PREFETCH_BYTES_MAX));
        }
    }

    /// Goes to the previous entry of the block, if there is one.
    #[inline]
    pub(super) fn prev_in_block(&mut self) -> bool {
        let found = self.block.is_some() && self.entry > 0;
        if found {
            self.move_to(self.entry - 1);
        }
        found
    }

    fn first_of(&mut self, at: usize) -> Result<()> {
        self.load(at, Towards::End)?;
        self.stand(0);
        self.prefetch_next();
        Ok(())
    }

    fn last_of(&mut self, at: Option<usize>) -> Result<()> {
        self.block = None;
        if let Some(at) = at {
            self.load(at, Towards::Start)?;
        }
        if let Some(last) = self.block.as_ref().map(|block| block.len() - 1) {
            self.stand(last);
        }
        Ok(())
    }
}

/// Where the blocks of `table` are read from; `file` once that is known.
fn place_of<'a>(
    table: &TableReader,
    cache: &TableCache,
    file: &'a mut Option<Arc<StoreFile>>,
) -> Result<TablePlace<'a>> {
    let (id, extent) = (table.id(), table.extent());
    let file = match file {
        Some(file) => file,
        None => file.insert(cache.packs().table_file(extent)?),
    };
    Ok(TablePlace { file, id, extent })
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        self.block = None;
        self.drop_piece();
    }
}

impl Cursor for TableCursor {
    type Error = Error;

    #[inline]
    fn valid(&self) -> bool {
        self.block.is_some()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.block.as_ref().and_then(|block| block.buffer().get(self.value.clone())).unwrap_or_default()
    }

    #[inline]
    fn kept(&self) -> usize {
        self.kept
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        let at = self.table.block_for(key, stamp);
        self.load(at, Towards::End)?;
        if let Some(block) = &self.block {
            let entry = block.seek(key, stamp);
            if entry < block.len() {
                self.stand(entry);
                self.prefetch_next();
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
        self.load(at, Towards::Start)?;
        let Some(block) = &self.block else { return self.seek_last() };
        match block.seek(key, stamp) {
            // As in `seek`.
            entry if self.is_before(block, entry, key, stamp) => self.stand(entry),
            0 => return self.last_of(at.checked_sub(1)),
            entry => self.stand(entry - 1),
        }
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.first_of(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.last_of(self.table.blocks().checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        if self.next_in_block() || self.block.is_none() { Ok(()) } else { self.first_of(self.at + 1) }
    }

    fn prev(&mut self) -> Result<()> {
        if self.prev_in_block() || self.block.is_none() {
            Ok(())
        } else {
            self.last_of(self.at.checked_sub(1))
        }
    }
}
