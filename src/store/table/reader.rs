//! A table's index, filter and range tombstones in memory, and the way to its blocks.

use super::super::file::StoreFile;
use super::super::meter::ReadCause;
use crate::error::Result;
use crate::format::block::Block;
use crate::format::checksum::Place;
use crate::format::filter;
use crate::format::table::{BlockHandle, FOOTER_BYTES, Footer, Properties, open_block};
use crate::format::tombstones;
use crate::types::{Extent, RangeTombstone, Seq, Stamp, TableId};

/// An open table: index, filter, range tombstones, and where the blocks lie. Holds no file.
#[derive(Debug)]
pub(crate) struct TableReader {
    id: TableId,
    /// What entries with number 0 are numbered: those of tables that came from outside.
    number: Seq,
    extent: Extent,
    /// `None` in a table of range tombstones alone.
    index: Option<Block>,
    handles: Vec<BlockHandle>,
    filter: Option<Vec<u8>>,
    range_tombstones: Vec<RangeTombstone>,
    properties: BlockHandle,
}

impl TableReader {
    /// Reads footer, index, filter and range tombstones of the table `id` at `extent` of `file`, and checks them. `number`
    /// is the largest sequence number that the catalog has for it.
    pub(crate) fn open(file: &StoreFile, id: TableId, extent: Extent, number: Seq) -> Result<Self> {
        let (mut table, filter) = Self::open_parts(file, id, extent, number)?;
        if let Some(handle) = filter {
            let bytes = read_payload(file, id, extent, handle, ReadCause::Open)?;
            filter::Filter::decode(&bytes).map_err(|e| file.malformed(extent.offset + handle.offset, &e))?;
            table.filter = Some(bytes);
        }
        Ok(table)
    }

    /// As [`TableReader::open`], without the filter: for those who read everything, whatever state the filter is in.
    pub(crate) fn open_data(file: &StoreFile, id: TableId, extent: Extent, number: Seq) -> Result<Self> {
        Self::open_parts(file, id, extent, number).map(|(table, _)| table)
    }

    /// A table without its filter, and where that lies.
    fn open_parts(
        file: &StoreFile,
        id: TableId,
        extent: Extent,
        number: Seq,
    ) -> Result<(Self, Option<BlockHandle>)> {
        let footer_at = extent
            .length
            .checked_sub(FOOTER_BYTES as u64)
            .ok_or_else(|| file.corruption(extent.offset, "the table is shorter than its footer"))?;
        let bytes = file.read(ReadCause::Open, extent.offset + footer_at, FOOTER_BYTES)?;
        let footer = Footer::decode(&bytes).map_err(|e| file.malformed(extent.offset + footer_at, &e))?;
        if footer.table != id {
            let what = format!("table {id} is not here, but table {}", footer.table);
            return Err(file.corruption(extent.offset + footer_at, what));
        }
        let (mut index, mut handles) = (None, Vec::new());
        if let Some(handle) = footer.index {
            let block = read_block(file, id, extent, handle, ReadCause::Open)?;
            let decoded = (0..block.len()).map(|at| BlockHandle::decode(block.value(at)));
            handles = decoded
                .collect::<Result<_, _>>()
                .map_err(|e| file.malformed(extent.offset + handle.offset, &e))?;
            index = Some(block);
        }
        let range_tombstones = match footer.tombstones {
            Some(handle) => {
                let bytes = read_payload(file, id, extent, handle, ReadCause::Open)?;
                tombstones::decode(&bytes).map_err(|e| file.malformed(extent.offset + handle.offset, &e))?
            }
            None => Vec::new(),
        };
        let (filter, properties) = (None, footer.properties);
        let table = Self { id, number, extent, index, handles, filter, range_tombstones, properties };
        Ok((table, footer.filter))
    }

    pub(crate) fn id(&self) -> TableId {
        self.id
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// The stamp of an entry that is stored with `stamp`.
    pub(crate) fn stamp(&self, stamp: Stamp) -> Stamp {
        if stamp.seq() == Seq::ZERO { Stamp::new(self.number, stamp.kind()) } else { stamp }
    }

    /// Whether the table may hold the key with this hash.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_deref().is_none_or(|bytes| filter::may_contain(bytes, hash))
    }

    /// The range tombstones, fragmented.
    pub(crate) fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// Number of data blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.handles.len()
    }

    /// The first block that may hold an entry at or behind (`key`, `stamp`); `blocks()` if none does.
    pub(crate) fn block_for(&self, key: &[u8], stamp: Stamp) -> usize {
        self.index.as_ref().map_or(0, |index| index.seek(key, stamp))
    }

    /// Where block `at` lies; `None` behind the last.
    pub(crate) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.handles.get(at).copied()
    }

    /// The table's properties, read anew.
    pub(crate) fn properties(&self, file: &StoreFile) -> Result<Properties> {
        let bytes = read_payload(file, self.id, self.extent, self.properties, ReadCause::Open)?;
        Properties::decode(&bytes)
            .map_err(|e| file.malformed(self.extent.offset + self.properties.offset, &e))
    }

    /// Bytes of memory that index, filter and range tombstones take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bounds = self.range_tombstones.iter().map(|RangeTombstone { range, .. }| {
            size_of::<RangeTombstone>() + range.start.len() + range.end.as_bytes().len()
        });
        size_of::<Self>()
            + self.index.as_ref().map_or(0, Block::memory_bytes)
            + size_of_val(&self.handles[..])
            + self.filter.as_ref().map_or(0, Vec::len)
            + bounds.sum::<usize>()
    }
}

/// Reads, checks and decodes a block of the table `id` at `extent`.
pub(crate) fn read_block(
    file: &StoreFile,
    id: TableId,
    extent: Extent,
    handle: BlockHandle,
    cause: ReadCause,
) -> Result<Block> {
    let payload = read_payload(file, id, extent, handle, cause)?;
    Block::decode(payload).map_err(|e| file.malformed(extent.offset + handle.offset, &e))
}

fn read_payload(
    file: &StoreFile,
    id: TableId,
    extent: Extent,
    handle: BlockHandle,
    cause: ReadCause,
) -> Result<Vec<u8>> {
    let end = handle.offset.checked_add(u64::from(handle.length));
    if end.is_none_or(|end| end > extent.length) {
        return Err(file.corruption(extent.offset, "a block lies outside its table"));
    }
    let at = extent.offset + handle.offset;
    let stored = file.read(cause, at, handle.length as usize)?;
    let place = Place { id: id.0, offset: handle.offset };
    open_block(place, stored).map_err(|e| file.malformed(at, &e))
}
