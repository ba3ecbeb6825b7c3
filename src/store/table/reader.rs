//! A table's index, filter and range tombstones in memory, and the way to its blocks.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::heads::Heads;
use crate::error::Result;
use crate::format::Malformed;
use crate::format::block::Block;
use crate::format::checksum::Place;
use crate::format::filter::{Filter, PrefixProbe};
use crate::format::table::{BlockHandle, FOOTER_BYTES, Footer, Properties, check_block, open_block};
use crate::format::tombstones;
use crate::merge::key_head;
use crate::store::cache::Charge;
use crate::store::file::StoreFile;
use crate::store::meter::ReadCause;
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
    /// Of each index key, the head of what follows the prefix that they share: a search reads the index only where heads
    /// are equal.
    heads: Heads,
    handles: Box<[BlockHandle]>,
    filter: Option<Filter>,
    range_tombstones: Vec<RangeTombstone>,
    properties: BlockHandle,
    /// Its part of the cache's budget, while it is attached to its metadata.
    _charge: Option<Charge>,
}

impl TableReader {
    /// Reads footer, index, filter and range tombstones of the table `id` at `extent` of `file`, and checks them. `number`
    /// is the largest sequence number that the catalog has for it.
    pub(crate) fn open(file: &StoreFile, id: TableId, extent: Extent, number: Seq) -> Result<Self> {
        let (mut table, filter) = Self::open_parts(file, id, extent, number)?;
        if let Some(handle) = filter {
            let place = TablePlace { file, id, extent };
            table.filter = Some(place.decode(handle, |bytes| Filter::decode(&bytes))?);
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
        let place = TablePlace { file, id, extent };
        let index = footer.index.map(|handle| place.decode(handle, Block::decode)).transpose()?;
        let (mut handles, mut heads) = (Vec::new(), Vec::new());
        if let (Some(index), Some(at)) = (&index, footer.index) {
            let decoded = (0..index.len()).map(|entry| BlockHandle::decode(index.value(entry)));
            handles = decoded.collect::<Result<_, _>>().map_err(|e| place.malformed(at, &e))?;
            heads = (0..index.len()).map(|entry| key_head(index.suffix(entry))).collect();
        }
        let range_tombstones =
            footer.tombstones.map(|handle| place.decode(handle, |b| tombstones::decode(&b)));
        let table = Self {
            id,
            number,
            extent,
            index,
            heads: Heads::new(&heads),
            handles: handles.into(),
            filter: None,
            range_tombstones: range_tombstones.transpose()?.unwrap_or_default(),
            properties: footer.properties,
            _charge: None,
        };
        Ok((table, footer.filter))
    }

    /// Notes what of the budget the table takes, for as long as it lives.
    pub(crate) fn set_charge(&mut self, charge: Option<Charge>) {
        self._charge = charge;
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
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Whether an entry of the table may have a key with this prefix.
    pub(crate) fn may_contain_prefix(&self, probe: &PrefixProbe) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain_prefix(probe))
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
        let Some(index) = &self.index else { return 0 };
        let Some(suffix) = key.strip_prefix(index.prefix()) else {
            return if key < index.prefix() { 0 } else { self.blocks() };
        };
        match self.heads.lower_bound(key_head(suffix)) {
            (at, false) => at,
            // Equal heads decide nothing.
            (_, true) => index.seek(key, stamp),
        }
    }

    /// Where block `at` lies; `None` behind the last.
    #[inline]
    pub(crate) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.handles.get(at).copied()
    }

    /// The blocks that begin in `range` of the table.
    pub(crate) fn handles_in(&self, range: Range<u64>) -> &[BlockHandle] {
        let position = |offset| self.handles.partition_point(|handle| handle.offset < offset);
        self.handles.get(position(range.start)..position(range.end)).unwrap_or_default()
    }

    /// The newest version of `key` at or below `stamp`: its block, among those that `fetch` brings, and its place there.
    pub(crate) fn find(
        &self,
        key: &[u8],
        stamp: Stamp,
        mut fetch: impl FnMut(BlockHandle) -> Result<Block>,
    ) -> Result<Option<(Block, usize)>> {
        let mut at = self.block_for(key, stamp);
        while let Some(handle) = self.handle(at) {
            let block = fetch(handle)?;
            let entry = block.seek(key, stamp);
            if entry < block.len() {
                let hit = key.strip_prefix(block.prefix()).is_some_and(|rest| rest == block.suffix(entry));
                return Ok(hit.then_some((block, entry)));
            }
            // The separator lies behind the block's last entry, and so does the target.
            at += 1;
        }
        Ok(None)
    }

    /// The table's properties, read anew.
    pub(crate) fn properties(&self, file: &StoreFile) -> Result<Properties> {
        let place = TablePlace { file, id: self.id, extent: self.extent };
        place.decode(self.properties, |bytes| Properties::decode(&bytes))
    }

    /// Bytes of memory that index, filter and range tombstones take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bounds = self.range_tombstones.iter().map(|RangeTombstone { range, .. }| {
            size_of::<RangeTombstone>() + range.start.len() + range.end.as_bytes().len()
        });
        size_of::<Self>()
            + self.index.as_ref().map_or(0, Block::memory_bytes)
            + self.heads.memory_bytes()
            + size_of_val(&*self.handles)
            + self.filter.as_ref().map_or(0, Filter::memory_bytes)
            + bounds.sum::<usize>()
    }
}

/// Where the blocks of a table are read from.
#[derive(Clone, Copy)]
pub(crate) struct TablePlace<'a> {
    pub(crate) file: &'a StoreFile,
    pub(crate) id: TableId,
    pub(crate) extent: Extent,
}

impl TablePlace<'_> {
    /// Fills the front of `buffer` with the sealed bytes of the blocks that lie in `range` of the table.
    pub(crate) fn read(self, cause: ReadCause, range: Range<u64>, buffer: &mut [u8]) -> Result<()> {
        let length =
            usize::try_from(range.end - range.start).ok().filter(|_| range.end <= self.extent.length);
        match length.and_then(|length| buffer.get_mut(..length)) {
            Some(front) => self.file.read_into(cause, self.extent.offset + range.start, front),
            None => Err(self.file.corruption(self.extent.offset, "a block lies outside its table")),
        }
    }

    /// The block under `handle`, whose sealed bytes lie at `at` of `buffer`. A raw one shares the buffer.
    pub(crate) fn block(self, handle: BlockHandle, buffer: &Arc<[u8]>, at: usize) -> Result<Block> {
        let opened = open_block(self.place(handle), self.sealed(handle, buffer, at)?);
        let block = opened.and_then(|payload| match payload {
            Cow::Borrowed(raw) => Block::decode_part(buffer.clone(), at..at + raw.len()),
            Cow::Owned(bytes) => Block::decode(bytes),
        });
        block.map_err(|e| self.malformed(handle, &e))
    }

    /// Whether the block under `handle`, whose sealed bytes lie at `at` of `buffer`, is as it was sealed.
    pub(super) fn check(self, handle: BlockHandle, buffer: &[u8], at: usize) -> Result<()> {
        let covered = check_block(self.place(handle), self.sealed(handle, buffer, at)?);
        covered.map(|_| ()).map_err(|e| self.malformed(handle, &e))
    }

    fn sealed(self, handle: BlockHandle, buffer: &[u8], at: usize) -> Result<&[u8]> {
        let sealed = at.checked_add(handle.length as usize).and_then(|end| buffer.get(at..end));
        sealed.ok_or_else(|| self.file.corruption(self.extent.offset, "a block lies outside what was read"))
    }

    /// Reads what lies under `handle`, and decodes its payload.
    pub(crate) fn decode<T>(
        self,
        handle: BlockHandle,
        decode: impl FnOnce(Vec<u8>) -> Result<T, Malformed>,
    ) -> Result<T> {
        let mut sealed = vec![0; self.length(handle)?];
        self.read(ReadCause::Open, handle.offset..handle.end(), &mut sealed)?;
        let opened = open_block(self.place(handle), &sealed).map(Cow::into_owned);
        opened.and_then(decode).map_err(|e| self.malformed(handle, &e))
    }

    /// Length of a block, before anything is allocated for it.
    pub(crate) fn length(self, handle: BlockHandle) -> Result<usize> {
        if handle.end() > self.extent.length {
            return Err(self.file.corruption(self.extent.offset, "a block lies outside its table"));
        }
        Ok(handle.length as usize)
    }

    fn place(self, handle: BlockHandle) -> Place {
        Place { id: self.id.0, offset: handle.offset }
    }

    fn malformed(self, handle: BlockHandle, error: &Malformed) -> crate::error::Error {
        self.file.malformed(self.extent.offset + handle.offset, error)
    }
}
