//! Stretches: blocks that follow one another, read and kept as one.
//!
//! Where records are large, a scan walks over many blocks. To find each of them in the cache, or to read it, costs more than
//! to walk over it. So iterators over such tables read stretches of about four blocks; lookups, which keep rows, find their
//! blocks in those that are kept.
//!
//! In a cache that is about full, and too small for all that there is, a stretch is kept if it was missed before, no longer ago
//! than as many misses as it holds stretches. What is read once goes into a buffer that is in the processor's cache from its
//! last use: to find a place for it in memory, and to evict what is there, takes as long as the read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;

use super::misses::{MISSES_MIN, Misses};
use super::{Entry, TableCache};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::store::file::StoreFile;
use crate::store::meter::ReadCause;
use crate::store::table::{TablePlace, TableReader};
use crate::types::{Buffer, TableId};

/// A stretch holds the blocks that begin in one section of this length of their table. With twice as much, the cache keeps
/// more of what lies beside scans, and these take as long as with blocks alone.
const STRETCH_BYTES: u64 = 16 << 10;

/// The cache is about full where more than three quarters of what it may keep are there: a small one, in shards, seldom is quite.
const FULL: (u64, u64) = (3, 4);

/// That is looked at once in so many misses.
const MISSES_PER_LOOK: u64 = 64;

/// Which stretches that scans have missed are to be kept.
#[derive(Debug)]
pub(super) struct Admission {
    /// About as many as fit into the cache, where not all does: 8 bytes for each 16 KiB of it.
    misses: ArcSwap<Misses>,
    missed: AtomicU64,
    /// Bytes of all tables.
    data_bytes: AtomicU64,
    /// Whether what is kept takes the place of something else that may be asked for.
    is_scarce: AtomicBool,
}

impl Default for Admission {
    fn default() -> Self {
        let misses = ArcSwap::from_pointee(Misses::new(MISSES_MIN));
        Self { misses, missed: 0.into(), data_bytes: 0.into(), is_scarce: false.into() }
    }
}

impl Admission {
    /// Tells how much there is to be kept in a cache of `capacity`.
    fn expect(&self, data_bytes: u64, capacity: u64) {
        self.data_bytes.store(data_bytes, Relaxed);
        let fit = usize::try_from(capacity / STRETCH_BYTES).unwrap_or(usize::MAX);
        // Less than a thousandth of the tables takes that, however large the budget.
        if data_bytes > capacity && self.misses.load().remembered() < fit {
            self.misses.store(Arc::new(Misses::new(fit)));
        }
    }
}

/// Blocks that follow one another in a table.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// Each block with its offset in the table. Raw ones share a buffer: what was read.
    blocks: Arc<[(u64, Block)]>,
}

impl Stretch {
    /// Whether the block under `handle` is part of one: a block that reaches far beyond its section stands by itself.
    #[inline]
    pub(crate) fn has(handle: BlockHandle) -> bool {
        handle.end() <= (section(handle) + 2).saturating_mul(STRETCH_BYTES)
    }

    /// The block under `handle`, if it is one of them.
    #[inline]
    pub(crate) fn block(&self, handle: BlockHandle) -> Option<&Block> {
        self.blocks.iter().find(|(offset, _)| *offset == handle.offset).map(|(_, block)| block)
    }

    /// Bytes of memory that it takes besides its buffers.
    pub(super) fn blocks_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    /// What it lies in, the shared buffer once.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let buffer = |at: usize| self.blocks[at].1.buffer();
        let is_first = move |&at: &usize| !(0..at).any(|before| buffer(before).is(buffer(at)));
        (0..self.blocks.len()).filter(is_first).map(buffer)
    }
}

fn section(handle: BlockHandle) -> u64 {
    handle.offset / STRETCH_BYTES
}

/// The place of a stretch in the cache. No block has an offset that large, and rows have the next bit set.
fn place(table: TableId, handle: BlockHandle) -> (TableId, u64) {
    (table, section(handle) | (1 << 62))
}

impl TableCache {
    /// The stretch that holds the block under `handle`, if it is in memory.
    pub(crate) fn stretch(&self, table: &TableReader, handle: BlockHandle) -> Option<Stretch> {
        let counts = self.stripe(table.id(), handle.offset >> 12);
        let entry = self.entry(&place(table.id(), handle));
        let Some(Entry::Stretch(stretch)) = entry else {
            counts.misses.fetch_add(1, Relaxed);
            return None;
        };
        counts.hits.fetch_add(1, Relaxed);
        Some(stretch)
    }

    /// Lets go of all stretches of a table.
    pub(super) fn forget_stretches(&self, table: &TableReader) {
        let mut last = None;
        for &handle in table.handles_in(0..u64::MAX) {
            let place = place(table.id(), handle);
            if last.replace(place) != Some(place) {
                self.entries.remove(&place);
            }
        }
    }

    /// Tells how much there is to be kept: bytes of all tables.
    pub(crate) fn expect(&self, data_bytes: u64) {
        self.admission.expect(data_bytes, self.entries.capacity());
    }

    /// Whether the stretch with the block under `handle`, which a scan has not found in memory, is to be kept.
    pub(crate) fn admits_stretch(&self, table: &TableReader, handle: BlockHandle) -> bool {
        let Admission { misses, missed, data_bytes, is_scarce } = &self.admission;
        if missed.fetch_add(1, Relaxed).is_multiple_of(MISSES_PER_LOOK) {
            let ((full, of), capacity) = (FULL, self.entries.capacity());
            let fits = data_bytes.load(Relaxed) <= capacity;
            is_scarce.store(!fits && self.entries.weight() > capacity / of * full, Relaxed);
        }
        misses.load().again(table.id(), section(handle)) || !is_scarce.load(Relaxed)
    }

    /// The bytes of the stretch with the block under `handle`, past the cache: a buffer, which may be longer, where in the table
    /// they lie, and the file.
    pub(crate) fn read_stretch_past(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<(Buffer, Range<u64>, Arc<StoreFile>)> {
        let (_, range) = self.blocks_of_stretch(table, handle)?;
        let file = self.packs.table_file(table.extent())?;
        let from = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let mut buffer = self.buffers.take((range.end - range.start) as usize);
        if let Some(bytes) = buffer.get_mut() {
            self.timed(|| from.read(cause, range.clone(), bytes))?;
        }
        Ok((buffer, range, file))
    }

    /// The blocks of the stretch with the block under `handle`, and where in the table they lie.
    fn blocks_of_stretch(
        &self,
        table: &TableReader,
        handle: BlockHandle,
    ) -> Result<(Vec<BlockHandle>, Range<u64>)> {
        let start = section(handle) * STRETCH_BYTES;
        let handles = table.handles_in(start..start.saturating_add(STRETCH_BYTES));
        let handles: Vec<BlockHandle> =
            handles.iter().copied().filter(|&handle| Stretch::has(handle)).collect();
        let (start, end) =
            handles.first().zip(handles.last()).map_or((0, 0), |(first, last)| (first.offset, last.end()));
        if end.checked_sub(start).is_none_or(|length| length > 2 * STRETCH_BYTES) {
            let file = self.packs.table_file(table.extent())?;
            return Err(file.corruption(table.extent().offset, "blocks are out of order"));
        }
        Ok((handles, start..end))
    }

    /// As [`TableCache::stretch`], for one that is not in memory. Fails if any of its blocks is damaged.
    pub(crate) fn read_stretch(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<Stretch> {
        let (handles, range) = self.blocks_of_stretch(table, handle)?;
        let file = self.packs.table_file(table.extent())?;
        let from = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let start = range.start;
        let mut buffer = self.frame((range.end - start) as usize);
        if let Some(bytes) = buffer.get_mut() {
            self.timed(|| from.read(cause, range, bytes))?;
        }
        let block = |handle: &BlockHandle| {
            let at = handle.offset.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            Ok((
                handle.offset,
                from.block(*handle, &buffer, at.unwrap_or(usize::MAX), |bytes| self.copy(bytes))?,
            ))
        };
        let blocks: Vec<_> = handles.iter().map(block).collect::<Result<_>>()?;
        let stretch = Stretch { blocks: blocks.into() };
        self.keep(place(table.id(), handle), Entry::Stretch(stretch.clone()));
        Ok(stretch)
    }
}
