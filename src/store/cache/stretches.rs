//! Stretches: blocks that follow one another, read and kept as one.
//!
//! Where records are large, a scan walks over many blocks. To find each of them in the cache, or to read it, costs more than
//! to walk over it. So iterators over such tables read and keep stretches of about four blocks; lookups, which keep rows,
//! find their blocks in them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Entry, TableCache};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::store::meter::ReadCause;
use crate::store::table::{TablePlace, TableReader};
use crate::types::{Buffer, TableId};

/// A stretch holds the blocks that begin in one section of this length of their table. With twice as much, the cache keeps
/// more of what lies beside scans, and these take as long as with blocks alone.
const STRETCH_BYTES: u64 = 16 << 10;

/// Blocks that follow one another in a table.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// Each block with its offset in the table.
    blocks: Arc<[(u64, Block)]>,
    /// What was read, if it has raw blocks: they share it.
    buffer: Option<Buffer>,
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

    /// What it lies in.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let shared = self.buffer.as_ref();
        let unpacked = self.blocks.iter().map(|(_, block)| block.buffer());
        shared.into_iter().chain(unpacked.filter(move |own| !shared.is_some_and(|shared| shared.is(own))))
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

    /// As [`TableCache::stretch`], for one that is not in memory. Fails if any of its blocks is damaged.
    pub(crate) fn read_stretch(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<Stretch> {
        let file = self.packs.table_file(table.extent())?;
        let from = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let start = section(handle) * STRETCH_BYTES;
        let handles = table.handles_in(start..start.saturating_add(STRETCH_BYTES));
        let handles: Vec<BlockHandle> =
            handles.iter().copied().filter(|&handle| Stretch::has(handle)).collect();
        let (start, end) =
            handles.first().zip(handles.last()).map_or((0, 0), |(first, last)| (first.offset, last.end()));
        let length = end.checked_sub(start).filter(|&length| length <= 2 * STRETCH_BYTES);
        let length =
            length.ok_or_else(|| file.corruption(table.extent().offset, "blocks are out of order"))?;
        let mut buffer = self.frame(length as usize);
        if let Some(bytes) = buffer.get_mut() {
            self.timed(|| from.read(cause, start..end, bytes))?;
        }
        let block = |handle: &BlockHandle| {
            let at = handle.offset.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            Ok((
                handle.offset,
                from.block(*handle, &buffer, at.unwrap_or(usize::MAX), |bytes| self.copy(bytes))?,
            ))
        };
        let blocks: Vec<_> = handles.iter().map(block).collect::<Result<_>>()?;
        let is_shared = blocks.iter().any(|(_, block)| block.buffer().is(&buffer));
        let stretch = Stretch { blocks: blocks.into(), buffer: is_shared.then_some(buffer) };
        self.keep(place(table.id(), handle), Entry::Stretch(stretch.clone()));
        Ok(stretch)
    }
}
