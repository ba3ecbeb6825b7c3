//! A cursor over one table.
//!
//! It fetches blocks in one of two ways ([`Fetch`]). An iterator goes through the cache, by blocks or spans; once it
//! has missed several in a row it reads longer and longer pieces past the cache. A compaction, which reads everything
//! once, reads large pieces past the cache from the start.
//!
//! In a table with partitions the cursor walks from one to the next, as if each were a table.
//!
//! A *lazy* cursor stands on the entry of a single block without reading it, by the key and stamp of the index. The block is read
//! when its value is asked for.
//!
//! The cursor holds at most one block, span and piece at a time. It holds a pinned table only weakly, so that an idle
//! cursor keeps no whole table in memory.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::reader::{TablePlace, TableReader};
use crate::catalog::{TableMeta, Values};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::merge::Cursor;
use crate::store::cache::{HeldBlock, PinnedTable, SPAN_BYTES, Span, TableCache, Unit};
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::types::{Buffer, Stamp};

/// A compaction reads its inputs in pieces of this many bytes.
const COMPACTION_READAHEAD_BYTES: u64 = 256 * 1024;

/// An iterator reads this many units in a row one at a time, and the cache may keep them. After that it counts as a
/// long scan: it reads pieces past the cache, each twice as long as the last one, between the bounds below.
const SINGLE_UNITS: u32 = 2;
const SCAN_PIECE_BYTES_MIN: u64 = 16 * 1024;
const SCAN_PIECE_BYTES_MAX: u64 = 256 * 1024;

/// About how many bytes lie between the last value of a block and the first value of the next: headers, and keys of
/// large records.
const BETWEEN_VALUES_BYTES: usize = 256;

/// At most this many bytes of the next value are prefetched: beyond that, the processor prefetches by itself.
const PREFETCH_BYTES_MAX: usize = 2048;

/// A value that took longer to read than this, and this for each byte, came from the device.
const SLOW_READ: Duration = Duration::from_micros(30);
const SLOW_READ_BYTE_PICOS: u64 = 400;

/// The device is told of so many values that lie apart at a time, and of about so many bytes at most.
const EXPECTED_MIN: usize = 4;
const EXPECTED_MAX: usize = 64;
const EXPECTED_BYTES_MAX: u64 = 2 << 20;

/// No block is behind this one.
const NOWHERE: usize = usize::MAX - 1;

/// The place before the first block, if the cursor came from the partition before.
const BEFORE_THE_FIRST: usize = usize::MAX;

/// Where a cursor's blocks come from.
#[derive(Debug)]
pub(crate) enum Fetch {
    /// For iterators: from the block cache, and in pieces past it once the scan is a long one.
    Cached {
        /// The unit by which the cache keeps large records; `None` if the table's records are small.
        large: Option<Unit>,
        /// Units in a row that were not in memory.
        missed: u32,
        /// Length of the next piece, in bytes.
        piece_bytes: u64,
    },
    /// For compactions, which read everything once: from the pack, in large pieces, past the cache.
    Readahead,
}

impl Fetch {
    /// Through the block cache, which keeps large records by `unit`.
    pub(crate) fn cached(cache: &TableCache, table: &TableMeta, unit: Unit) -> Self {
        let large = cache.has_large_records(table).then_some(unit);
        Self::Cached { large, missed: 0, piece_bytes: SCAN_PIECE_BYTES_MIN }
    }

    fn hit(&mut self) {
        if let Self::Cached { missed, .. } = self {
            *missed = 0;
        }
    }

    /// Length of the piece to read after a miss; `None` to read one unit into the cache. `goes_on`: the cursor came
    /// from the block before. If the cache has room for all data (`holds_all`), units of large records are kept, so
    /// that long scans do not read them again and again.
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

/// The direction in which a cursor goes on from the block that it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Towards {
    /// Towards larger keys.
    End,
    /// Towards smaller keys.
    Start,
}

/// Values that lie apart, and that the device has been told of.
#[derive(Debug, Default)]
struct ExpectedValues {
    /// The entry whose value was read when it was told last: its block and place.
    last: Option<(usize, usize)>,
    /// Of how many it was told.
    count: usize,
}

/// A part of a table that was read past the cache.
#[derive(Debug)]
struct Piece {
    start: u64,
    buffer: Buffer,
    length: usize,
}

impl Piece {
    /// Offset in the buffer of the sealed block under `handle`, if the buffer holds all of it.
    fn find(&self, handle: BlockHandle) -> Option<usize> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        (from.checked_add(handle.length as usize)? <= self.length).then_some(from)
    }
}

/// A cursor over one table.
#[derive(Debug)]
pub(crate) struct TableCursor {
    cache: Arc<TableCache>,
    /// The table, or its partition at hand.
    table: Arc<TableReader>,
    /// If the table has partitions: the table, and the number of the partition at hand, of which there is none at first.
    whole: Option<(Arc<TableReader>, Option<usize>)>,
    fetch: Fetch,
    /// The table's file, once a piece of it was read: to look it up costs as much as a small read.
    file: Option<Arc<StoreFile>>,
    piece: Option<Piece>,
    /// All blocks, while the table is pinned. Weak: an idle cursor must not keep them in memory.
    pinned: Option<Weak<PinnedTable>>,
    span: Option<Span>,
    /// Whether the block was found in memory, where its bytes may not be in the processor's cache. Bytes that were
    /// just read are.
    is_far: bool,
    at: usize,
    block: Option<Block>,
    entry: usize,
    key: Vec<u8>,
    /// See [`Cursor::kept`].
    kept: usize,
    stamp: Stamp,
    /// Range of the value in the block's buffer.
    value: Range<usize>,
    is_lazy: bool,
    /// Whether it stands on the entry of a single block that is not loaded.
    is_unread: bool,
    /// With these it reads values that lie apart.
    values: Option<Values>,
    /// Whether it stands on an entry whose value lies apart and is not read.
    is_apart: bool,
    /// The value of the entry, if that lay apart.
    apart: Option<Buffer>,
    /// What the device has been told of values to come.
    expected: Option<Box<ExpectedValues>>,
}

impl TableCursor {
    pub(crate) fn new(cache: Arc<TableCache>, table: Arc<TableReader>, fetch: Fetch) -> Self {
        let pinned = match fetch {
            Fetch::Cached { .. } => cache.pinned(&table).as_ref().map(Arc::downgrade),
            Fetch::Readahead => None,
        };
        let whole = (table.partitions() > 0).then(|| (table.clone(), None));
        Self {
            cache,
            table,
            whole,
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
            is_lazy: false,
            is_unread: false,
            values: None,
            is_apart: false,
            apart: None,
            expected: None,
        }
    }

    /// The same cursor, but lazy.
    pub(crate) fn lazy(mut self) -> Self {
        self.is_lazy = true;
        self
    }

    /// The same cursor, but it reads values that lie apart, in these value tables.
    pub(crate) fn following(mut self, values: Option<Values>) -> Self {
        self.values = values;
        self
    }

    /// The current entry's value, in a form that outlives the cursor: a buffer, and the value's range in it.
    pub(crate) fn pin_value(&self) -> Option<(Buffer, Range<usize>)> {
        if let Some(value) = &self.apart {
            return Some((value.clone(), 0..value.len()));
        }
        self.block.as_ref().map(|block| (block.buffer().clone(), self.value.clone()))
    }

    /// Offset in the table behind the piece that was read past the cache; 0 if there is none.
    pub(super) fn read_upto(&self) -> u64 {
        self.piece.as_ref().map_or(0, |piece| piece.start + piece.length as u64)
    }

    /// Goes to partition `at`, if there is one; whether there is.
    fn enter(&mut self, at: Option<usize>) -> Result<bool> {
        let Some((whole, here)) = &mut self.whole else { return Ok(false) };
        let Some(at) = at.filter(|at| *at < whole.partitions()) else { return Ok(false) };
        if *here != Some(at) {
            self.block = None;
            (self.is_unread, self.is_apart) = (false, false);
            self.at = NOWHERE;
            self.table = match self.fetch {
                Fetch::Cached { .. } => self.cache.partition_arc(whole, at)?,
                Fetch::Readahead => self.cache.partition_past(whole, at)?,
            };
            *here = Some(at);
        }
        Ok(true)
    }

    /// Goes to the partition of `key`, if the table has partitions.
    fn enter_for(&mut self, key: &[u8]) -> Result<()> {
        let at = self.whole.as_ref().map(|(whole, _)| whole.partition_of(key));
        self.enter(at).map(|_| ())
    }

    /// Number of the partition at hand.
    fn partition(&self) -> Option<usize> {
        self.whole.as_ref().and_then(|(_, here)| *here)
    }

    /// Loads block `at`, if there is one. The caller then moves to one of its entries.
    fn load(&mut self, at: usize, towards: Towards) -> Result<()> {
        let goes_on = at == self.at.wrapping_add(1);
        self.block = None;
        self.is_apart = false;
        self.at = at;
        if self.is_lazy && self.stand_unread() {
            return Ok(());
        }
        self.load_block(goes_on, towards)
    }

    /// Stands on the entry of the block, if that is single.
    fn stand_unread(&mut self) -> bool {
        let Some((prefix, suffix, stamp)) = self.table.single(self.at) else { return false };
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.key.extend_from_slice(suffix);
        (self.stamp, self.value, self.kept, self.entry, self.is_unread) = (stamp, 0..0, 0, 0, true);
        (self.is_apart, self.apart) = (false, None);
        true
    }

    /// Loads the block at the cursor's place, if there is one.
    fn load_block(&mut self, goes_on: bool, towards: Towards) -> Result<()> {
        let at = self.at;
        self.is_unread = false;
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
        } else if let Some(block) = self.lookup(at, handle) {
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

    /// The block under `handle`, if the current span holds it.
    fn of_span(&self, handle: BlockHandle) -> Option<Block> {
        self.span.as_ref()?.block(handle).cloned()
    }

    /// Block `at`, under `handle`, if it is in the cache.
    fn lookup(&mut self, at: usize, handle: BlockHandle) -> Option<Block> {
        match self.fetch {
            Fetch::Readahead => None,
            Fetch::Cached { large: Some(Unit::Span), .. } if Span::has(handle) => {
                self.span = self.cache.span(&self.table, handle);
                self.is_far = self.span.is_some();
                self.of_span(handle)
            }
            Fetch::Cached { .. } => self.cache.lookup(&self.table, at).map(HeldBlock::into_block),
        }
    }

    /// Reads block `at`, under `handle`, and the rest of its unit.
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
            _ => return self.read_kept(at),
        }
        // If the span has a damaged block, the other blocks must stay readable: the block is read by itself then.
        let found = if self.cache.admits_span(&self.table, handle) {
            self.span = self.cache.read_span(&self.table, handle, ReadCause::Scan).ok();
            self.of_span(handle)
        } else {
            self.read_span_past(handle, towards).ok()
        };
        found.map_or_else(|| self.read_kept(at), Ok)
    }

    /// Reads block `at`, which the cache may keep.
    fn read_kept(&self, at: usize) -> Result<Block> {
        self.cache.read(&self.table, at, ReadCause::Scan).map(HeldBlock::into_block)
    }

    /// Reads the block under `handle` past the cache, together with the part of its span that lies `towards`.
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
            None => self.read_kept(self.at),
        }
    }

    /// Reads block `at` and the blocks behind it that fit into `bytes`.
    fn read_piece(&mut self, at: usize, handle: BlockHandle, bytes: u64) -> Result<()> {
        // Only whole blocks, so that no byte is read twice.
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
            return self.read_kept(self.at);
        };
        let place = TablePlace { file, id: self.table.id(), extent: self.table.extent() };
        // The block is not kept, so a decompressed one takes no frame of the cache.
        place.block(handle, &piece.buffer, found, Buffer::alone)
    }

    /// Reads the value that the current entry points to.
    #[inline(never)]
    fn read_apart(&mut self) -> Result<()> {
        let stored = self.block.as_ref().and_then(|block| block.buffer().get(self.value.clone()));
        if let (Some(values), Some(stored)) = (&self.values, stored) {
            let (value, is_slow) = read_timed(&self.cache, values, stored)?;
            self.apart = Some(value);
            if is_slow {
                self.expect_values(1);
            }
        }
        self.is_apart = false;
        Ok(())
    }

    /// The value to which `pointer` leads, that of the entry which the cursor stood on before its last step back.
    pub(super) fn read_pinned(&mut self, pointer: &[u8]) -> Result<Buffer> {
        let Some(values) = &self.values else { return Ok(Buffer::from(pointer)) };
        let (value, is_slow) = read_timed(&self.cache, values, pointer)?;
        if is_slow {
            self.expect_values(0);
        }
        Ok(value)
    }

    /// Tells the device of the values that come next in the block, each time of twice as many. Called after a read that has waited
    /// for the device: so once for so many values. The next one is so far from the current entry.
    fn expect_values(&mut self, distance: usize) {
        let (Some(values), Some(block)) = (&self.values, &self.block) else { return };
        let here = (self.at, self.entry);
        let expected = self.expected.get_or_insert_default();
        let is_backward = expected.last > Some(here);
        expected.count = match expected.last {
            Some(_) => (expected.count * 2).clamp(EXPECTED_MIN, EXPECTED_MAX),
            // A lookup of one entry reads no others.
            None => 0,
        };
        expected.last = Some(here);
        let count = expected.count;
        let next = |distance: usize| match is_backward {
            true => self.entry.checked_sub(distance),
            false => Some(self.entry + distance).filter(|entry| *entry < block.len()),
        };
        let mut bytes = 0;
        for entry in (distance..distance + count).map_while(next) {
            let (_, stamp, value) = block.entry(entry);
            if let Some(stored) = block.buffer().get(value).filter(|_| stamp.is_separated()) {
                bytes += self.cache.expect_value(values, stored);
            }
            if bytes >= EXPECTED_BYTES_MAX {
                break;
            }
        }
    }

    fn drop_piece(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.cache.buffers().give(piece.buffer);
        }
    }

    /// Moves to an entry of the loaded block.
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

    /// Moves to an entry of the loaded block, whose prefix `key` begins with already.
    #[inline]
    fn move_to(&mut self, entry: usize) {
        if let Some(block) = &self.block {
            let (suffix, stamp, value) = block.entry(entry);
            self.entry = entry;
            self.stamp = self.table.stamp(stamp);
            self.is_apart = stamp.is_separated() && self.values.is_some();
            if self.apart.is_some() {
                self.apart = None;
            }
            self.value = value;
            self.kept = block.prefix_len();
            self.key.truncate(self.kept);
            self.key.extend_from_slice(suffix);
        }
    }

    /// Whether an entry that is stored at or behind (`key`, `stamp`) really lies before it, since entries with
    /// sequence number 0 have another number than they are stored with.
    fn is_before(&self, block: &Block, entry: usize, key: &[u8], stamp: Stamp) -> bool {
        entry < block.len()
            && self.table.stamp(block.stamp(entry)) > stamp
            && key.strip_prefix(block.prefix()).is_some_and(|rest| rest == block.suffix(entry))
    }

    /// Moves to the next entry of the block, if there is one.
    #[inline]
    pub(super) fn next_in_block(&mut self) -> bool {
        let found = self.block.as_ref().is_some_and(|block| self.entry + 1 < block.len());
        if found {
            self.move_to(self.entry + 1);
            self.prefetch_next();
        }
        found
    }

    /// Prefetches the next value, which may begin in the next block, while the caller works on this one
    /// (`docs/benchmarks/choices.md`, "Prefetch of the next value").
    #[inline]
    fn prefetch_next(&mut self) {
        if let (true, Some(block)) = (self.is_far, &self.block) {
            let Range { start, end } = self.value;
            block.buffer().prefetch(end..end + (end - start + BETWEEN_VALUES_BYTES).min(PREFETCH_BYTES_MAX));
        }
    }

    /// Moves to the previous entry of the block, if there is one.
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
        while !self.valid() && self.enter(self.partition().map(|at| at + 1))? {
            self.at = BEFORE_THE_FIRST;
            self.load(0, Towards::End)?;
        }
        self.stand(0);
        self.prefetch_next();
        Ok(())
    }

    fn last_of(&mut self, at: Option<usize>) -> Result<()> {
        (self.block, self.is_unread, self.is_apart) = (None, false, false);
        if let Some(at) = at {
            self.load(at, Towards::Start)?;
        }
        while !self.valid() && self.enter(self.partition().and_then(|at| at.checked_sub(1)))? {
            self.load(self.table.blocks().saturating_sub(1), Towards::Start)?;
        }
        if let Some(last) = self.block.as_ref().map(|block| block.len() - 1) {
            self.stand(last);
        }
        Ok(())
    }
}

/// Reads the value that `pointer` leads to. Also tells whether that took as long as a device does.
fn read_timed(cache: &TableCache, values: &Values, pointer: &[u8]) -> Result<(Buffer, bool)> {
    let devices = cache.packs().devices();
    let started = devices.now();
    let (value, _) = cache.value(values, pointer, ReadCause::Scan)?;
    let slow = SLOW_READ + Duration::from_nanos(value.len() as u64 * SLOW_READ_BYTE_PICOS / 1000);
    let is_slow = devices.now().saturating_sub(started) > slow;
    Ok((value, is_slow))
}

/// Where the blocks of `table` are read from. Looks `file` up the first time.
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
        self.block.is_some() || self.is_unread
    }

    #[inline]
    fn is_unread(&self) -> bool {
        self.is_unread || self.is_apart
    }

    #[inline]
    fn is_apart(&self) -> bool {
        self.is_apart
    }

    fn read_value(&mut self) -> Result<()> {
        if self.is_apart {
            return self.read_apart();
        }
        if !self.is_unread {
            return Ok(());
        }
        let (key, stamp) = (std::mem::take(&mut self.key), self.stamp);
        self.load_block(false, Towards::End)?;
        self.stand(0);
        let is_same = self.block.as_ref().is_some_and(|block| block.len() == 1)
            && self.key == key
            && self.stamp == stamp;
        if is_same {
            return Ok(());
        }
        self.block = None;
        let place = place_of(&self.table, &self.cache, &mut self.file)?;
        let at = self.table.handle(self.at).map_or(0, |handle| handle.offset);
        Err(place.file.corruption(place.extent.offset + at, "a block is not what its index says"))
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
        debug_assert!(!self.is_unread, "the value has not been read");
        if let Some(value) = &self.apart {
            return value;
        }
        self.block.as_ref().and_then(|block| block.buffer().get(self.value.clone())).unwrap_or_default()
    }

    #[inline]
    fn kept(&self) -> usize {
        self.kept
    }

    fn seek(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        self.enter_for(key)?;
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
        // An entry that is stored with sequence number 0 really has a higher one, so it lies before the place where
        // it is stored.
        if self.valid() && self.key == key && self.stamp() > stamp { self.next() } else { Ok(()) }
    }

    fn seek_before(&mut self, key: &[u8], stamp: Stamp) -> Result<()> {
        self.enter_for(key)?;
        let at = self.table.block_for(key, stamp);
        self.load(at, Towards::Start)?;
        if self.is_unread {
            // As in `seek`: it is the first entry at or behind the place, unless it really lies before it.
            let lies_before = self.key == key && self.stamp > stamp;
            return if lies_before { Ok(()) } else { self.last_of(at.checked_sub(1)) };
        }
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
        self.enter(Some(0))?;
        self.first_of(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.enter(self.whole.as_ref().and_then(|(whole, _)| whole.partitions().checked_sub(1)))?;
        self.last_of(self.table.blocks().checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        if self.next_in_block() || !self.valid() { Ok(()) } else { self.first_of(self.at + 1) }
    }

    fn prev(&mut self) -> Result<()> {
        if self.prev_in_block() || !self.valid() { Ok(()) } else { self.last_of(self.at.checked_sub(1)) }
    }
}
