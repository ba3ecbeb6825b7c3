//! Pinned tables: tables whose blocks are all in memory, reached through their reader.
//!
//! If the cache has room for all data, a large part of a scan's time goes into finding each block or
//! [span](crate::store::cache::readahead) in the cache (`docs/benchmarks/choices.md`, "Pinned tables"). And after
//! each compaction, or each opening of the store, a read is needed for each of them. So a table of which scans have
//! missed a good part is read as a whole.
//!
//! The cache owns a pinned table like every other entry, within the budget. The table's reader only holds a weak
//! reference to it, and [pointers](super::block_pointers) to those of its blocks that lookups have asked for. Uses
//! through these are not noted in the cache, so a pinned table is evicted early once the cache needs memory. Then scans and
//! lookups go by units.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use arc_swap::ArcSwapWeak;

use super::block_pointers::{Resident, ShownParts};
use super::{Cached, Entry, HeldBlock, TableCache};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::block::Block;
use crate::store::files::meter::ReadCause;
use crate::store::table::{TablePlace, TableReader};
use crate::types::Buffer;

/// A table is read as a whole when scans have missed one part in this many of it. Of tables of which they miss less,
/// nothing more is read.
const MISSED_PART: u64 = 8;

/// It is read in pieces of about this length: whoever holds a value of it keeps no more than one piece in memory.
const PIECE_BYTES: u64 = 32 << 10;

/// Longer tables would take long to read at once, and are not pinned.
const TABLE_BYTES_MAX: u64 = 4 << 20;

/// After this many doublings of the price, more make no difference.
const TIMES_READ_MAX: u32 = 16;

/// Offset in the cache key of a pinned table. No block has an offset that large.
const PINNED: u64 = u64::MAX - 1;

/// All blocks of a table, in order.
#[derive(Debug)]
pub(crate) struct PinnedTable {
    blocks: Box<[Block]>,
    /// Bytes of memory that it takes, and how many of those are outside of frames.
    memory: (usize, usize),
    /// What leads to its blocks.
    shown: ShownParts,
}

impl PinnedTable {
    fn new(blocks: Box<[Block]>, shown: ShownParts) -> Self {
        let mut memory = [size_of_val(&*blocks) + blocks.len() * Resident::BYTES; 2];
        let mut last: Option<&Buffer> = None;
        for buffer in blocks.iter().map(Block::buffer) {
            // Blocks that share a buffer follow one another.
            if !last.replace(buffer).is_some_and(|last| last.is(buffer)) {
                let (bytes, is_alone) = buffer.memory();
                memory[0] += bytes;
                memory[1] += if is_alone { bytes } else { 0 };
            }
        }
        Self { blocks, memory: memory.into(), shown }
    }

    /// Block `at`; `None` behind the last.
    #[inline]
    pub(crate) fn block(&self, at: usize) -> Option<&Block> {
        self.blocks.get(at)
    }

    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.blocks.iter().map(Block::buffer)
    }

    pub(super) fn memory(&self) -> (usize, usize) {
        self.memory
    }
}

/// What a table's reader knows of its pinned blocks.
#[derive(Debug, Default)]
pub(crate) struct PinState {
    pinned: ArcSwapWeak<PinnedTable>,
    /// Bytes that scans have missed since the table was read as a whole.
    missed_bytes: AtomicU64,
    /// How often it was read as a whole. Each time that it was evicted, or could not be kept, scans must miss twice
    /// as much before the next time.
    times_read: AtomicU32,
    /// The table has left the tree and is not pinned again.
    is_closed: AtomicBool,
}

impl PinState {
    /// Whether the table is pinned.
    fn is_there(&self) -> bool {
        self.pinned.load().strong_count() > 0
    }

    /// Notes a miss. Returns whether it is the one with which scans have missed enough of a table of `table_bytes`.
    fn missed(&self, bytes: u64, table_bytes: u64) -> bool {
        let times_read = self.times_read.load(Relaxed).min(TIMES_READ_MAX);
        let enough = (table_bytes / MISSED_PART).saturating_mul(1 << times_read);
        let before = self.missed_bytes.fetch_add(bytes, Relaxed);
        let is_enough = before <= enough && before + bytes > enough;
        if is_enough {
            self.missed_bytes.store(0, Relaxed);
        }
        is_enough
    }
}

impl TableCache {
    /// The blocks of `table`, if it is pinned.
    #[inline]
    pub(crate) fn pinned(&self, table: &TableReader) -> Option<Arc<PinnedTable>> {
        let pinned = table.pin_state().pinned.load().upgrade()?;
        self.counts.mine().hits.fetch_add(1, Relaxed);
        Some(pinned)
    }

    /// Notes that a scan has not found `missed_bytes` of a table in memory. Returns all its blocks, if the table is
    /// pinned by now.
    pub(crate) fn missed_by_scan(&self, table: &TableReader, missed_bytes: u64) -> Option<Arc<PinnedTable>> {
        // The scan's cursor may be older than the pinned table.
        if let Some(pinned) = self.pinned(table) {
            return Some(pinned);
        }
        let is_enough = table.pin_state().missed(missed_bytes, table.extent().length);
        if is_enough { self.bring_in(table, ReadCause::Scan) } else { None }
    }

    /// Whether at least half of `tables`, by their bytes, are pinned.
    pub(crate) fn are_pinned<'a>(&self, tables: impl Iterator<Item = &'a TableMeta>) -> bool {
        let (mut pinned_bytes, mut bytes) = (0, 0);
        for table in tables {
            let reader = table.attachment.get::<TableReader>();
            bytes += table.bytes();
            pinned_bytes +=
                if reader.is_some_and(|reader| reader.pin_state().is_there()) { table.bytes() } else { 0 };
        }
        2 * pinned_bytes >= bytes
    }

    /// Pins a table that a job has written in the place of pinned ones.
    pub(crate) fn settle(&self, table: &TableMeta) {
        // An error is left for whoever reads the table.
        if self.kinds.settles
            && let Ok(reader) = self.table(table)
        {
            self.bring_in(&reader, ReadCause::Compaction);
        }
    }

    /// Reads all blocks of `table` and pins them, if there is room.
    fn bring_in(&self, table: &TableReader, cause: ReadCause) -> Option<Arc<PinnedTable>> {
        let bytes = table.extent().length;
        let has_room =
            || self.keeps(bytes as usize) && self.entries.bytes() + bytes <= self.entries.capacity();
        let pin_state = table.pin_state();
        // A reader that has a part of the blocks cannot read all of them.
        if bytes > TABLE_BYTES_MAX
            || table.is_partial()
            || !self.holds_all()
            || self.kinds.of != Cached::Everything
            || pin_state.is_closed.load(Acquire)
        {
            return None;
        }
        if !has_room() {
            return None;
        }
        pin_state.times_read.fetch_add(1, Relaxed);
        // An error is left for whoever reads the damaged block by itself.
        let shown = ShownParts::of(table.pointers());
        let pinned = Arc::new(PinnedTable::new(self.read_all(table, cause).ok()?, shown));
        // Uncompressed, the table may be too long after all.
        if !self.keeps(pinned.memory.0) {
            return None;
        }
        self.forget_units(table);
        let key = (table.id(), PINNED);
        let warm = if cause.is_users() { table.warm(bytes) } else { None };
        self.keep(key, Entry::PinnedTable(pinned.clone()), warm);
        pin_state.pinned.store(Arc::downgrade(&pinned));
        if pin_state.is_closed.load(Acquire) {
            self.entries.remove(&key);
        }
        Some(pinned)
    }

    /// Connects a table that has just been opened with its pinned blocks, if it was pinned before a rewrite copied it
    /// to its present place.
    pub(super) fn adopt_pinned(&self, table: &TableReader) {
        if let Some(Entry::PinnedTable(pinned)) = self.entry(&(table.id(), PINNED)) {
            table.pin_state().pinned.store(Arc::downgrade(&pinned));
        }
    }

    /// Block `at`, if its table is pinned. For lookups, which need one block.
    pub(super) fn block_of_pinned(&self, table: &TableReader, at: usize) -> Option<HeldBlock> {
        let pinned = table.pin_state().pinned.load().upgrade()?;
        let resident = Resident::pinned(pinned.block(at)?.clone());
        pinned.shown.show(table.pointers(), at, &resident);
        self.counts.mine().hits.fetch_add(1, Relaxed);
        Some(HeldBlock::resident(resident))
    }

    /// Reads all blocks of a table.
    fn read_all(&self, table: &TableReader, cause: ReadCause) -> Result<Box<[Block]>> {
        let file = self.packs.table_file(table.extent())?;
        let place = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let mut blocks = Vec::with_capacity(table.blocks());
        let mut rest = table.handles_in(0..u64::MAX);
        while let Some(first) = rest.first() {
            let ends =
                rest.iter().take_while(|handle| handle.end() <= first.offset.saturating_add(PIECE_BYTES));
            let (piece, behind) = rest.split_at(ends.count().max(1));
            let mut end = first.end();
            for handle in piece {
                place.length(*handle)?;
                end = end.max(handle.end());
            }
            let mut buffer = self.frame((end - first.offset) as usize);
            if let Some(bytes) = buffer.get_mut() {
                let mut read = || place.read(cause, first.offset..end, bytes);
                // The time counts only where a reader waits.
                if cause == ReadCause::Scan {
                    let length = end.saturating_sub(first.offset);
                    self.timed(table, length, cause, &mut read)?;
                } else {
                    read()?;
                }
            }
            for handle in piece {
                let at = handle.offset.checked_sub(first.offset).map_or(usize::MAX, |at| at as usize);
                blocks.push(place.block(*handle, &buffer, at, |bytes| self.frame(bytes))?);
            }
            rest = behind;
        }
        Ok(blocks.into())
    }

    /// Unpins a table for good.
    pub(super) fn forget_pinned(&self, table: &TableReader) {
        // Before the removal: a table that is pinned meanwhile is removed here or by the thread that pinned it.
        table.pin_state().is_closed.store(true, Release);
        self.entries.remove(&(table.id(), PINNED));
    }
}
