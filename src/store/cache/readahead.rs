//! Readahead spans: consecutive blocks that are read and kept as one entry.
//!
//! Where records are large, a scan passes many blocks. To find each of them in the cache, or to read it, costs more
//! than to walk over it. So iterators over such tables read spans of about four blocks. Lookups, which keep rows,
//! also find their blocks in spans that are kept. In level 0 both use single blocks ([`Unit`]).
//!
//! A span that is not admitted to the cache ([`admission`](super::admission)) is read into a reused buffer, which is
//! still in the processor's cache from its last use.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Entry, TableCache};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::table::BlockHandle;
use crate::store::files::meter::ReadCause;
use crate::store::table::{TablePlace, TableReader, Towards};
use crate::types::{Buffer, TableId};

/// A span holds the blocks that begin in one section of this length of their table. With longer spans the cache would
/// keep more of what scans do not read.
pub(crate) const SPAN_BYTES: u64 = 16 << 10;

/// What the cache keeps as one entry, for scans of a table of large records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// In level 0: a scan sees a record or two of each run there, for runs are many and each holds a small part of
    /// the keys.
    Block,
    /// In deeper levels.
    Span,
}

impl Unit {
    /// The unit for tables in `level`.
    #[inline]
    pub(crate) fn of_level(level: u8) -> Self {
        if level == 0 { Self::Block } else { Self::Span }
    }
}

/// Consecutive blocks of a table.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Each block with its offset in the table. Uncompressed blocks share the buffer that was read.
    blocks: Arc<[(u64, Block)]>,
}

impl Span {
    /// Whether the block under `handle` belongs to a span: a block that reaches far beyond its section stands by
    /// itself.
    #[inline]
    pub(crate) fn has(handle: BlockHandle) -> bool {
        handle.end() <= (section(handle) + 2).saturating_mul(SPAN_BYTES)
    }

    /// The block under `handle`, if the span holds it.
    #[inline]
    pub(crate) fn block(&self, handle: BlockHandle) -> Option<&Block> {
        self.blocks.iter().find(|(offset, _)| *offset == handle.offset).map(|(_, block)| block)
    }

    /// Bytes of memory that the span takes besides its buffers.
    pub(super) fn blocks_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    /// The buffers of the blocks; a shared one once.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let buffer = |at: usize| self.blocks[at].1.buffer();
        let is_first = move |&at: &usize| !(0..at).any(|before| buffer(before).is(buffer(at)));
        (0..self.blocks.len()).filter(is_first).map(buffer)
    }
}

fn section(handle: BlockHandle) -> u64 {
    handle.offset / SPAN_BYTES
}

/// The cache key of a span. No block has an offset that large, and the keys of rows have the next higher bit set.
fn place(table: TableId, handle: BlockHandle) -> (TableId, u64) {
    (table, section(handle) | (1 << 62))
}

impl TableCache {
    /// The span that holds the block under `handle`, if it is in memory.
    pub(crate) fn span(&self, table: &TableReader, handle: BlockHandle) -> Option<Span> {
        let counts = self.counts.mine();
        let entry = self.entry(&place(table.id(), handle));
        let Some(Entry::Span(span)) = entry else {
            counts.misses.fetch_add(1, Relaxed);
            return None;
        };
        counts.hits.fetch_add(1, Relaxed);
        Some(span)
    }

    /// Drops all spans of a table.
    pub(super) fn forget_spans(&self, table: &TableReader) {
        let mut last = None;
        for &handle in table.handles_in(0..u64::MAX) {
            let place = place(table.id(), handle);
            if last.replace(place) != Some(place) {
                self.entries.remove(&place);
            }
        }
    }

    /// Whether the span with the block under `handle`, which a scan has missed, is to be kept.
    pub(crate) fn admits_span(&self, table: &TableReader, handle: BlockHandle) -> bool {
        self.admits_unit(table.id(), section(handle))
    }

    /// Reads the bytes of the span with the block under `handle`, from that block on or up to it, from `from` past
    /// the cache. Returns a buffer, which may be longer, and where in the table the bytes lie.
    pub(crate) fn read_span_past(
        &self,
        table: &TableReader,
        from: TablePlace<'_>,
        handle: BlockHandle,
        towards: Towards,
        cause: ReadCause,
    ) -> Result<(Buffer, Range<u64>)> {
        let (_, mut range) = blocks_of_span(table, from, handle)?;
        match towards {
            Towards::End => range.start = handle.offset.clamp(range.start, range.end),
            Towards::Start => range.end = handle.end().clamp(range.start, range.end),
        }
        let mut buffer = self.buffers.take((range.end - range.start) as usize);
        if let Some(bytes) = buffer.get_mut() {
            let length = bytes.len() as u64;
            self.timed(table, length, cause, || from.read(cause, range.clone(), bytes))?;
        }
        Ok((buffer, range))
    }

    /// Reads and keeps the span with the block under `handle`, which is not in memory. Fails if any of its blocks is
    /// damaged.
    pub(crate) fn read_span(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<Span> {
        let file = self.packs.table_file(table.extent())?;
        let from = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let (handles, range) = blocks_of_span(table, from, handle)?;
        let start = range.start;
        let mut buffer = self.frame((range.end - start) as usize);
        if let Some(bytes) = buffer.get_mut() {
            let length = bytes.len() as u64;
            self.timed(table, length, cause, || from.read(cause, range, bytes))?;
        }
        let block = |handle: &BlockHandle| {
            let at = handle.offset.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            Ok((
                handle.offset,
                from.block(*handle, &buffer, at.unwrap_or(usize::MAX), |bytes| self.frame(bytes))?,
            ))
        };
        let blocks: Vec<_> = handles.iter().map(block).collect::<Result<_>>()?;
        let span = Span { blocks: blocks.into() };
        let bytes = handles.iter().map(|handle| u64::from(handle.length)).sum();
        let warm = if cause.is_users() { table.warm(bytes) } else { None };
        self.keep(place(table.id(), handle), Entry::Span(span.clone()), warm);
        Ok(span)
    }
}

/// The blocks of the span with the block under `handle`, and where in the table they lie.
fn blocks_of_span<'a>(
    table: &'a TableReader,
    place: TablePlace<'_>,
    handle: BlockHandle,
) -> Result<(&'a [BlockHandle], Range<u64>)> {
    let start = section(handle) * SPAN_BYTES;
    let mut handles = table.handles_in(start..start.saturating_add(SPAN_BYTES));
    // Blocks are consecutive, so only the last one can reach out of the section.
    if let [before @ .., last] = handles
        && !Span::has(*last)
    {
        handles = before;
    }
    let (start, end) =
        handles.first().zip(handles.last()).map_or((0, 0), |(first, last)| (first.offset, last.end()));
    if end.checked_sub(start).is_none_or(|length| length > 2 * SPAN_BYTES) {
        return Err(place.file.corruption(place.extent.offset, "blocks are out of order"));
    }
    Ok((handles, start..end))
}
