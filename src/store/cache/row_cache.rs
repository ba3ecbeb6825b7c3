//! The row cache: single records, kept in the block cache.
//!
//! Where records are large, a block holds few of them. To keep a whole block for one popular record would waste most
//! of its memory. So a lookup in a table of large records keeps the record instead, as a *row*. If lookups miss a
//! block twice within a short while, the block, or its span, is kept after all: then its neighbourhood is popular.
//!
//! Invariant: a row is the newest version of a key in its table. Tables never change, so the row stays right for
//! every reader who may see all of its table.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::{Cached, Entry, HeldBlock, Span, TableCache, Unit, handle_of};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::store::files::meter::ReadCause;
use crate::store::table::TableReader;
use crate::types::{Buffer, Seq, Stamp, TableId};

/// A table has large records if it takes at least this many bytes for each: then the overhead of a row is small
/// beside its record.
pub(super) const LARGE_BYTES: u64 = 512;

/// A record in a buffer of its own: the key, then the value.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) buffer: Buffer,
    key: u32,
    end: u32,
    stamp: Stamp,
}

/// A value: its buffer, and where in the buffer it lies.
pub(crate) type Pinned = (Buffer, Range<usize>);

/// The cache key of a row. No block has an offset that large.
fn place(table: TableId, hash: u64) -> (TableId, u64) {
    (table, hash >> 2 | 1 << 63)
}

impl TableCache {
    /// Whether the table's records are large, so that the cache keeps rows and spans of it.
    #[inline]
    pub(crate) fn has_large_records(&self, meta: &TableMeta) -> bool {
        meta.bytes() / LARGE_BYTES >= meta.entries && self.kinds.of == Cached::Everything
    }

    /// Whether a reader at `upto` may use rows of the table: only if it may see all of the table.
    #[inline]
    pub(crate) fn has_rows(&self, meta: &TableMeta, upto: Seq) -> bool {
        (meta.max_seq <= upto || planted!("row-cached-for-an-older-reader")) && self.has_large_records(meta)
    }

    /// The newest version of `key`, of that `hash`, in a table, if it is in memory.
    pub(crate) fn row(&self, table: TableId, hash: u64, key: &[u8]) -> Option<(Stamp, Pinned)> {
        let Some(Entry::Row(row)) = self.entry(&place(table, hash)) else { return None };
        let (start, end) = (row.key as usize, row.end as usize);
        if row.buffer.get(..start) != Some(key) {
            return None;
        }
        self.counts.mine().hits.fetch_add(1, Relaxed);
        Some((row.stamp, (row.buffer, start..end)))
    }

    /// As [`TableCache::block`], for a lookup of one record in a table of which scans keep `unit`s. Also returns
    /// whether the block is in the cache now.
    pub(crate) fn block_for_row(
        &self,
        table: &TableReader,
        at: usize,
        unit: Unit,
    ) -> Result<(HeldBlock, bool)> {
        let handle = handle_of(table, at);
        let read_past = || Ok((HeldBlock::own(self.read_past(table, handle, ReadCause::Get)?), false));
        if unit == Unit::Block || !Span::has(handle) {
            return match self.lookup(table, at) {
                Some(block) => Ok((block, true)),
                None if unit == Unit::Block && self.is_hot(table.id(), handle.offset) => {
                    let block = self.read(table, at, ReadCause::Get)?;
                    Ok((block, self.keeps(handle.length as usize)))
                }
                None => read_past(),
            };
        }
        if let Some(block) = self.block_of_pinned(table, at) {
            return Ok((block, true));
        }
        let mut span = self.span(table, handle);
        if span.is_none() && self.is_hot(table.id(), handle.offset) {
            span = self.read_span(table, handle, ReadCause::Get).ok();
        }
        if let Some(block) = span.as_ref().and_then(|span| span.block(handle)) {
            return Ok((HeldBlock::own(block.clone()), true));
        }
        read_past()
    }

    /// Keeps a record of a `block` that is not kept, if it is admitted. Returns the record's value.
    pub(crate) fn keep_row(
        &self,
        table: &TableReader,
        (hash, key): (u64, &[u8]),
        (stamp, block, entry): (Stamp, HeldBlock, usize),
    ) -> Pinned {
        let value = block.value(entry);
        let end = key.len() + value.len();
        if !self.keeps(end) || !self.admits_row(table.id(), hash) {
            return block.pin_value(entry);
        }
        let mut buffer = self.frame(end);
        if let Some(bytes) = buffer.get_mut() {
            let (front, back) = bytes.split_at_mut(key.len());
            front.copy_from_slice(key);
            back.copy_from_slice(value);
        }
        drop(block);
        let kept = (buffer.clone(), key.len()..end);
        // A record is far shorter than 4 GiB.
        let row = Row { buffer, key: key.len() as u32, end: end as u32, stamp };
        self.keep(place(table.id(), hash), Entry::Row(row), table.warm(end as u64));
        kept
    }
}
