//! Readahead spans: blocks that follow one another, read and kept as one.
//!
//! Where records are large, a scan walks over many blocks. To find each of them in the cache, or to read it, costs more than
//! to walk over it. So iterators over such tables read spans of about four blocks; lookups, which keep rows, find their
//! blocks in those that are kept. In level 0 both go by blocks ([`Unit`]).
//!
//! A span that is not to be kept ([`admission`](super::admission)) goes into a buffer that is in the processor's cache from its last use.

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

/// A span holds the blocks that begin in one section of this length of their table. With twice as much, the cache keeps
/// more of what lies beside scans, and these take as long as with blocks alone.
pub(crate) const SPAN_BYTES: u64 = 16 << 10;

/// What scans read and keep at once of a table of large records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// In level 0: of each of its runs, which are many and hold a small part of the keys, a scan sees a record or two.
    Block,
    /// Elsewhere.
    Span,
}

impl Unit {
    /// That of tables in `level`.
    #[inline]
    pub(crate) fn of_level(level: u8) -> Self {
        if level == 0 { Self::Block } else { Self::Span }
    }
}

/// Blocks that follow one another in a table.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Each block with its offset in the table. Raw ones share a buffer: what was read.
    blocks: Arc<[(u64, Block)]>,
}

impl Span {
    /// Whether the block under `handle` is part of one: a block that reaches far beyond its section stands by itself.
    #[inline]
    pub(crate) fn has(handle: BlockHandle) -> bool {
        handle.end() <= (section(handle) + 2).saturating_mul(SPAN_BYTES)
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
    handle.offset / SPAN_BYTES
}

/// The place of a span in the cache. No block has an offset that large, and rows have the next bit set.
fn place(table: TableId, handle: BlockHandle) -> (TableId, u64) {
    (table, section(handle) | (1 << 62))
}

impl TableCache {
    /// The span that holds the block under `handle`, if it is in memory.
    pub(crate) fn span(&self, table: &TableReader, handle: BlockHandle) -> Option<Span> {
        let counts = self.stripe(table.id(), handle.offset >> 12);
        let entry = self.entry(&place(table.id(), handle));
        let Some(Entry::Span(span)) = entry else {
            counts.misses.fetch_add(1, Relaxed);
            return None;
        };
        counts.hits.fetch_add(1, Relaxed);
        Some(span)
    }

    /// Lets go of all spans of a table.
    pub(super) fn forget_spans(&self, table: &TableReader) {
        let mut last = None;
        for &handle in table.handles_in(0..u64::MAX) {
            let place = place(table.id(), handle);
            if last.replace(place) != Some(place) {
                self.entries.remove(&place);
            }
        }
    }

    /// Whether the span with the block under `handle`, which a scan has not found in memory, is to be kept.
    pub(crate) fn admits_span(&self, table: &TableReader, handle: BlockHandle) -> bool {
        self.admits_unit(table.id(), section(handle))
    }

    /// The bytes of the span with the block under `handle`, from there on or up to there, read from `from` past the cache: a
    /// buffer, which may be longer, and where in the table they lie.
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
            self.timed(table, handle, || from.read(cause, range.clone(), bytes))?;
        }
        Ok((buffer, range))
    }

    /// As [`TableCache::span`], for one that is not in memory. Fails if any of its blocks is damaged.
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
            self.timed(table, handle, || from.read(cause, range, bytes))?;
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
        self.keep(place(table.id(), handle), Entry::Span(span.clone()));
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
    // Blocks follow one another: no other one reaches out of the section.
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
