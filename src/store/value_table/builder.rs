//! The value table builder: writes values at the end of a pack, and makes the pointers to them.

use std::ops::Range;

use crate::error::Result;
use crate::format::edit::{Deaths, ValueTableRecord};
use crate::format::table::{Codec, compress_pieces};
use crate::format::value_table::{ValueFooter, ValuePointer, takes_pages};
use crate::store::files::pack::PackWriter;
use crate::types::{Key, KeyRange, KeyspaceId, PAGE_BYTES, Spans, TableId};

/// No value is added to a table that would be longer than this.
const BYTES_MAX: u64 = u32::MAX as u64 - PAGE_BYTES;

/// Divisor: so much of a table, and a page, may be left empty so that values begin at pages.
const GAP_PARTS: u64 = 16;

/// A value table that is being written.
#[derive(Debug)]
pub(crate) struct ValueTableBuilder {
    id: TableId,
    keyspace: KeyspaceId,
    codec: Codec,
    /// Offset in the pack.
    start: u64,
    /// Bytes that belong to no value.
    gaps: Vec<Range<u32>>,
    gap_bytes: u64,
    /// The smallest and the largest key.
    ends: Option<(Key, Key)>,
    count: u64,
}

impl ValueTableBuilder {
    /// Starts a value table at the end of `pack`.
    pub(crate) fn new(id: TableId, keyspace: KeyspaceId, codec: Codec, pack: &mut PackWriter) -> Self {
        Self {
            id,
            keyspace,
            codec,
            start: pack.align(),
            gaps: Vec::new(),
            gap_bytes: 0,
            ends: None,
            count: 0,
        }
    }

    /// Bytes written.
    pub(crate) fn bytes(&self, pack: &PackWriter) -> u64 {
        pack.len() - self.start
    }

    /// Whether there is room for a value of so many bytes.
    pub(crate) fn has_room(&self, bytes: usize, pack: &PackWriter) -> bool {
        self.bytes(pack) + 2 * PAGE_BYTES + bytes as u64 <= BYTES_MAX
    }

    /// Appends the value of `key`, and returns the pointer to it. There must be room for it.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], pack: &mut PackWriter) -> Result<ValuePointer> {
        let compressed = if self.codec == Codec::Lz4 { compress_pieces([value, &[]]) } else { None };
        let (codec, stored) = match &compressed {
            Some((stored, length)) => (Codec::Lz4, &stored[..*length]),
            None => (Codec::Raw, value),
        };
        let end = self.bytes(pack);
        let page = end.next_multiple_of(PAGE_BYTES);
        let gaps = self.gap_bytes + page - end;
        let has_room = gaps <= PAGE_BYTES + (end + stored.len() as u64) / GAP_PARTS;
        if end < page && takes_pages(stored.len() as u64) && has_room {
            self.gaps.push(small(end)..small(page));
            self.gap_bytes = gaps;
            pack.pad_to(self.start + page);
        }
        let offset = small(self.bytes(pack));
        let pointer = ValuePointer::to(self.id, offset, codec, small(value.len() as u64), stored);
        pack.append(stored)?;
        pack.pad_to(self.start + u64::from(pointer.footprint().end));
        pack.drain()?;
        self.count += 1;
        match &mut self.ends {
            Some((first, _)) if key < &**first => *first = key.into(),
            Some((_, last)) if key > &**last => *last = key.into(),
            Some(_) => {}
            None => self.ends = Some((key.into(), key.into())),
        }
        Ok(pointer)
    }

    /// Completes the table; `None` if it has no value. Its end is still in the pack's buffer afterwards. Bytes that belong to no
    /// value are dead from the beginning.
    pub(crate) fn finish(self, pack: &mut PackWriter) -> Option<(ValueTableRecord, Option<Deaths>)> {
        let (first, last) = self.ends?;
        let footer = ValueFooter { table: self.id, keyspace: self.keyspace, length: pack.len() - self.start };
        pack.buffer().extend_from_slice(&footer.encode());
        let extent = pack.add_table(self.id, self.keyspace, self.start);
        let range = KeyRange::new(first, last);
        let record =
            ValueTableRecord { id: self.id, extent, range, count: self.count, gap_bytes: self.gap_bytes };
        let spans = Spans::new(self.gaps).expect("invariant: gaps are between values");
        let gaps = (!spans.is_empty()).then_some(Deaths { table: self.id, count: 0, spans });
        Some((record, gaps))
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("invariant: a value table is shorter than 4 GiB")
}
