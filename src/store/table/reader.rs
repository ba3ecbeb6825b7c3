//! The table reader: a table's index, filter and range tombstones in memory, and the way to its blocks.
//!
//! It is opened by one read of the table's end. It holds no file: whoever reads a block gives it the file
//! ([`TablePlace`]).
//!
//! A large table has its index and filter in partitions ([`table`](crate::format::table)). Its reader knows where they are,
//! and no block. A partition is opened by itself, as a reader of a part of the table: of all blocks that may hold any of its
//! keys. So whoever looks for a key, or walks, goes to a partition first and then to a block of it.

mod partitions;

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use self::partitions::Partition;
use crate::catalog::{Heat, Warm};
use crate::error::Result;
use crate::format::Malformed;
use crate::format::block::Block;
use crate::format::checksum::Place;
use crate::format::edit::TableRecord;
use crate::format::filter::{Filter, PrefixProbe};
use crate::format::table::{
    BlockHandle, DataHandle, FOOTER_BYTES, Footer, Opened, PARTITION_HANDLE_BYTES, PartitionHandle,
    Properties, check_block, open_block, open_block_in,
};
use crate::format::tombstones;
use crate::merge::key_head;
use crate::store::cache::frames::Charge;
use crate::store::cache::{BlockPointers, PinState};
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::store::table::fence_pointers::{FencePointers, IndexPrefix};
use crate::types::{Buffer, Extent, RangeTombstone, Seq, Stamp, TableId};

/// One part in this many of a table is read at once to open it. Footer, index and filter are a smaller part
/// (`docs/benchmarks/choices.md`, "One read to open a table").
const TAIL_FRACTION: u64 = 32;
/// Bounds of that read, in bytes. A block that begins before it is read by itself.
const TAIL_BYTES: Range<u64> = 1 << 10..256 << 10;

/// An open table: index, filter, range tombstones, and the handles of its blocks.
#[derive(Debug)]
pub(crate) struct TableReader {
    id: TableId,
    /// Sequence number of the entries that are stored with number 0: those of ingested tables.
    number: Seq,
    extent: Extent,
    /// `None` in a table of range tombstones alone. In a table with partitions it has an entry for each of these.
    index: Option<Block>,
    index_prefix: IndexPrefix,
    /// For each index key, the first bytes behind the prefix that all of them share. A search reads the index only
    /// where these are equal.
    fence_pointers: FencePointers,
    /// Of the data blocks; none in a table with partitions.
    handles: Handles,
    /// To those of the data blocks that are cached.
    pointers: BlockPointers,
    singles: Singles,
    partitions: Box<[Partition]>,
    /// Whether this is a partition.
    is_part: bool,
    filter: Option<Filter>,
    range_tombstones: Vec<RangeTombstone>,
    properties: BlockHandle,
    pin_state: PinState,
    /// What counts how much of the table is in the block cache. Not set before the table is in the tree.
    heat: OnceLock<Heat>,
    /// The table's charge to the cache's budget, while it is attached to its metadata.
    _charge: Option<Charge>,
}

impl TableReader {
    /// Reads footer, index, filter and range tombstones of the table `id` at `extent` of `file`, and checks them. `number`
    /// is the largest sequence number that the catalog has for it.
    pub(crate) fn open(file: &StoreFile, id: TableId, extent: Extent, number: Seq) -> Result<Self> {
        let length = (extent.length / TAIL_FRACTION).clamp(TAIL_BYTES.start, TAIL_BYTES.end);
        let tail = Tail::read(TablePlace { file, id, extent }, length)?;
        Self::with_filter(&tail, number)
    }

    /// Opens the table of `record`, the last table of `file`. `end` holds the last bytes written to the file, with at
    /// least the table's index and filter; they are checked as if they had been read. A partition is opened as well if `keep`
    /// says so.
    pub(crate) fn written(
        file: &StoreFile,
        record: &TableRecord,
        end: &[u8],
        mut keep: impl FnMut(&mut Self) -> bool,
    ) -> Result<Self> {
        let place = TablePlace { file, id: record.id, extent: record.extent };
        let length = usize::try_from(record.extent.length).unwrap_or(usize::MAX);
        let end = &end[end.len().saturating_sub(length)..];
        let tail = Tail::new(place, Cow::Borrowed(end))?;
        let table = Self::with_filter(&tail, record.max_seq)?;
        for at in 0..table.partitions.len() {
            let mut partition = table.partition_from(&tail, at)?;
            if !keep(&mut partition) {
                break;
            }
            table.keep_partition(at, Arc::new(partition));
        }
        Ok(table)
    }

    /// As [`TableReader::open`], without the filter, for callers that read all entries.
    pub(crate) fn open_data(file: &StoreFile, id: TableId, extent: Extent, number: Seq) -> Result<Self> {
        // An unreadable sector of the filter must not hide the data.
        Self::from_tail(&Tail::read(TablePlace { file, id, extent }, FOOTER_BYTES as u64)?, number)
    }

    fn with_filter(tail: &Tail<'_>, number: Seq) -> Result<Self> {
        let mut table = Self::from_tail(tail, number)?;
        if let Some(handle) = tail.footer.filter {
            table.filter = Some(tail.decode(handle, |bytes| Filter::decode(&bytes))?);
        }
        Ok(table)
    }

    /// A table without its filter.
    fn from_tail(tail: &Tail<'_>, number: Seq) -> Result<Self> {
        let Tail { place, footer, .. } = tail;
        let index = footer.index.map(|handle| tail.decode(handle, Block::decode)).transpose()?;
        let range_tombstones =
            footer.tombstones.map(|handle| tail.decode(handle, |b| tombstones::decode(&b)));
        let mut table = Self {
            id: place.id,
            number,
            extent: place.extent,
            index: None,
            index_prefix: IndexPrefix::of(&[]),
            fence_pointers: FencePointers::new(&[]),
            handles: Box::default(),
            pointers: BlockPointers::default(),
            singles: Box::default(),
            partitions: Box::default(),
            is_part: false,
            filter: None,
            range_tombstones: range_tombstones.transpose()?.unwrap_or_default(),
            properties: footer.properties,
            pin_state: PinState::default(),
            heat: OnceLock::new(),
            _charge: None,
        };
        let Some((index, at)) = index.zip(footer.index) else { return Ok(table) };
        if index.value(0).len() == PARTITION_HANDLE_BYTES {
            let decoded = (0..index.len()).map(|entry| PartitionHandle::decode(index.value(entry)));
            let decoded = decoded.map(|handle| handle.map(Partition::new));
            table.partitions = decoded.collect::<Result<_, _>>().map_err(|e| place.malformed(at, &e))?;
        } else {
            (table.handles, table.singles) = handles_of(&index).map_err(|e| place.malformed(at, &e))?;
            table.pointers = BlockPointers::new(table.handles.len());
        }
        table.set_index(index);
        Ok(table)
    }

    fn set_index(&mut self, index: Block) {
        let heads: Vec<u64> = (0..index.len()).map(|entry| key_head(index.suffix(entry))).collect();
        self.fence_pointers = FencePointers::new(&heads);
        self.index_prefix = IndexPrefix::of(index.prefix());
        self.index = Some(index);
    }

    /// Attaches a charge to the cache's budget, which lasts as long as the table.
    pub(crate) fn set_charge(&mut self, charge: Option<Charge>) {
        self._charge = charge;
    }

    pub(crate) fn id(&self) -> TableId {
        self.id
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// The cache's note of whether the table is pinned.
    #[inline]
    pub(crate) fn pin_state(&self) -> &PinState {
        &self.pin_state
    }

    /// From here on, what the cache keeps of the table counts in `heat`.
    pub(crate) fn count_in(&self, heat: &Heat) {
        // If somebody has done this, it was with the same one: a table has one.
        let _ = self.heat.set(heat.clone());
        let kept = self.partitions.iter().filter_map(|partition| partition.reader.get());
        kept.for_each(|partition| partition.count_in(heat));
    }

    /// Bytes of the data blocks, padding included: what comes before the first filter or index.
    pub(crate) fn data_bytes(&self) -> u64 {
        let first = self.partitions.first().map(|partition| partition.handle.start());
        first.or_else(|| Some(self.handles.last()?.end())).unwrap_or(0)
    }

    /// Counts `bytes` of the table as kept, for as long as the result lives; nothing before the table is in the tree.
    pub(crate) fn warm(&self, bytes: u64) -> Option<Warm> {
        Some(self.heat.get()?.warm(bytes))
    }

    /// The real stamp of an entry that is stored with `stamp`.
    #[inline]
    pub(crate) fn stamp(&self, stamp: Stamp) -> Stamp {
        if stamp.seq() == Seq::ZERO { Stamp::new(self.number, stamp.kind()) } else { stamp }
    }

    /// Counts `bytes` that a user has read from the device, at this age; nothing before the table is in the tree.
    pub(crate) fn was_read(&self, bytes: u64, age: u16) {
        if let Some(heat) = self.heat.get() {
            heat.read(bytes, age);
        }
    }

    /// Whether the table may hold the key with this hash.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Prefetches the memory that [`TableReader::may_contain`] reads.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
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

    /// The first block, or partition, that may hold an entry at or behind (`key`, `stamp`); their number if none does.
    pub(crate) fn block_for(&self, key: &[u8], stamp: Stamp) -> usize {
        let Some(index) = &self.index else { return 0 };
        let prefix = self.index_prefix.get().unwrap_or_else(|| index.prefix());
        let Some(suffix) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { index.len() };
        };
        match self.fence_pointers.lower_bound(key_head(suffix)) {
            (at, false) => at,
            // Equal heads say nothing: the index decides.
            (_, true) => index.seek(key, stamp),
        }
    }

    /// Where block `at` lies; `None` behind the last.
    #[inline]
    pub(crate) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.handles.get(at).copied()
    }

    /// Pointers to the cached blocks.
    #[inline]
    pub(crate) fn pointers(&self) -> &BlockPointers {
        &self.pointers
    }

    /// If block `at` is single, the prefix and the rest of its entry's key, and the stamp.
    #[inline]
    pub(crate) fn single(&self, at: usize) -> Option<(&[u8], &[u8], Stamp)> {
        if self.singles.is_empty() {
            return None;
        }
        self.singles.binary_search(&u32::try_from(at).ok()?).ok()?;
        let index = self.index.as_ref()?;
        Some((index.prefix(), index.suffix(at), self.stamp(index.stamp(at))))
    }

    /// The blocks that begin in `range` of the table.
    pub(crate) fn handles_in(&self, range: Range<u64>) -> &[BlockHandle] {
        let first = self.handles.partition_point(|handle| handle.offset < range.start);
        let behind = self.handles.get(first..).unwrap_or_default();
        // The caller asks for few blocks, or looks at each: a second search would cost more.
        let count = behind.iter().take_while(|handle| handle.offset < range.end).count();
        &behind[..count]
    }

    /// For each block, a key that is not before any of its own, and its bytes.
    pub(crate) fn index_keys(&self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        let index = self.index.iter().flat_map(|index| (0..index.len()).map(move |at| (index, at)));
        index
            .zip(&self.handles)
            .map(|((index, at), handle)| ([index.prefix(), index.suffix(at)].concat(), handle.length.into()))
    }

    /// Finds the newest version of `key` at or below `stamp`: its block, fetched by its number, and its index there.
    pub(crate) fn find<B: Deref<Target = Block>>(
        &self,
        key: &[u8],
        stamp: Stamp,
        fetch: impl FnMut(usize) -> Result<B>,
    ) -> Result<Option<(B, usize)>> {
        self.find_from(self.block_for(key, stamp), key, stamp, fetch)
    }

    /// As [`TableReader::find`], from the block on that [`TableReader::block_for`] has found.
    pub(crate) fn find_from<B: Deref<Target = Block>>(
        &self,
        mut at: usize,
        key: &[u8],
        stamp: Stamp,
        mut fetch: impl FnMut(usize) -> Result<B>,
    ) -> Result<Option<(B, usize)>> {
        while at < self.blocks() {
            let block = fetch(at)?;
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

    /// Reads the table's properties from `file`.
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
            + self.fence_pointers.memory_bytes()
            + size_of_val(&*self.handles)
            + self.pointers.memory_bytes()
            + size_of_val(&*self.singles)
            + size_of_val(&*self.partitions)
            + self.filter.as_ref().map_or(0, Filter::memory_bytes)
            + bounds.sum::<usize>()
    }
}

/// Where the data blocks of a table lie.
type Handles = Box<[BlockHandle]>;

/// Places of the single blocks among them, ascending.
type Singles = Box<[u32]>;

/// The handles of the data blocks of an index, and which of them are single.
fn handles_of(index: &Block) -> Result<(Handles, Singles), Malformed> {
    let mut singles = Vec::new();
    let handles = (0..index.len()).map(|entry| {
        let DataHandle { block, is_single } = DataHandle::decode(index.value(entry))?;
        singles.extend(is_single.then_some(entry as u32));
        Ok(block)
    });
    let handles = handles.collect::<Result<_, Malformed>>()?;
    Ok((handles, singles.into()))
}

/// The end of a table, read at once instead of by three reads that wait for each other.
struct Tail<'a> {
    place: TablePlace<'a>,
    /// The last bytes of the table, up to its footer.
    bytes: Cow<'a, [u8]>,
    footer: Footer,
}

impl<'a> Tail<'a> {
    /// Reads the last `length` bytes of a table, all of it if it is shorter, and checks its footer.
    fn read(place: TablePlace<'a>, length: u64) -> Result<Self> {
        let TablePlace { file, extent, .. } = place;
        let start = extent.length.saturating_sub(length);
        let length = usize::try_from(extent.length - start).map_err(|_| place.too_short())?;
        Self::new(place, Cow::Owned(file.read(ReadCause::Open, extent.offset + start, length)?))
    }

    /// Takes `bytes`, the last bytes of a table, and checks its footer.
    fn new(place: TablePlace<'a>, mut bytes: Cow<'a, [u8]>) -> Result<Self> {
        let TablePlace { file, id, extent } = place;
        let before = bytes.len().checked_sub(FOOTER_BYTES).ok_or_else(|| place.too_short())?;
        let footer_at = extent.offset + extent.length.saturating_sub(FOOTER_BYTES as u64);
        let footer = Footer::decode(&bytes[before..]).map_err(|e| file.malformed(footer_at, &e))?;
        match &mut bytes {
            Cow::Borrowed(bytes) => *bytes = &bytes[..before],
            Cow::Owned(bytes) => bytes.truncate(before),
        }
        if footer.table != id {
            let what = format!("table {id} is not here, but table {}", footer.table);
            return Err(file.corruption(footer_at, what));
        }
        Ok(Self { place, bytes, footer })
    }

    /// As [`TablePlace::decode`], from the tail's bytes if they hold the block.
    fn decode<T>(
        &self,
        handle: BlockHandle,
        decode: impl FnOnce(Vec<u8>) -> Result<T, Malformed>,
    ) -> Result<T> {
        let start = self.place.extent.length - (self.bytes.len() + FOOTER_BYTES) as u64;
        let within = |at: u64| at.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        let sealed =
            within(handle.offset).zip(within(handle.end())).and_then(|(from, to)| self.bytes.get(from..to));
        match sealed {
            Some(sealed) => self.place.open(handle, sealed, decode),
            None => self.place.decode(handle, decode),
        }
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

    /// The block under `handle`, whose sealed bytes lie at `at` of `buffer`. An uncompressed block shares the buffer.
    /// Another one is decompressed into a buffer that `take` gives for a number of bytes.
    pub(crate) fn block(
        self,
        handle: BlockHandle,
        buffer: &Buffer,
        at: usize,
        take: impl FnOnce(usize) -> Buffer,
    ) -> Result<Block> {
        let opened = open_block_in(self.place(handle), self.sealed(handle, buffer, at)?, take);
        let block = opened.and_then(|payload| match payload {
            Opened::Raw(raw) => Block::decode_part(buffer.clone(), at..at + raw.len()),
            Opened::Decompressed(own) => Block::decode(own),
        });
        block.map_err(|e| self.malformed(handle, &e))
    }

    /// Verifies the checksum of the block under `handle`, whose sealed bytes lie at `at` of `buffer`.
    pub(super) fn check(self, handle: BlockHandle, buffer: &[u8], at: usize) -> Result<()> {
        let covered = check_block(self.place(handle), self.sealed(handle, buffer, at)?);
        covered.map(|_| ()).map_err(|e| self.malformed(handle, &e))
    }

    fn sealed(self, handle: BlockHandle, buffer: &[u8], at: usize) -> Result<&[u8]> {
        let sealed = at.checked_add(handle.length as usize).and_then(|end| buffer.get(at..end));
        sealed.ok_or_else(|| self.file.corruption(self.extent.offset, "a block lies outside what was read"))
    }

    /// Reads the block under `handle`, and decodes its payload.
    pub(crate) fn decode<T>(
        self,
        handle: BlockHandle,
        decode: impl FnOnce(Vec<u8>) -> Result<T, Malformed>,
    ) -> Result<T> {
        let mut sealed = vec![0; self.length(handle)?];
        self.read(ReadCause::Open, handle.offset..handle.end(), &mut sealed)?;
        self.open(handle, &sealed, decode)
    }

    /// Decodes the payload of a block from its `sealed` bytes.
    fn open<T>(
        self,
        handle: BlockHandle,
        sealed: &[u8],
        decode: impl FnOnce(Vec<u8>) -> Result<T, Malformed>,
    ) -> Result<T> {
        let opened = open_block(self.place(handle), sealed).map(Cow::into_owned);
        opened.and_then(decode).map_err(|e| self.malformed(handle, &e))
    }

    /// Length of a block, checked before anything is allocated for it.
    pub(crate) fn length(self, handle: BlockHandle) -> Result<usize> {
        if handle.end() > self.extent.length {
            return Err(self.file.corruption(self.extent.offset, "a block lies outside its table"));
        }
        Ok(handle.length as usize)
    }

    fn too_short(self) -> crate::error::Error {
        self.file.corruption(self.extent.offset, "the table is shorter than its footer")
    }

    fn place(self, handle: BlockHandle) -> Place {
        Place { id: self.id.0, offset: handle.offset }
    }

    fn malformed(self, handle: BlockHandle, error: &Malformed) -> crate::error::Error {
        self.file.malformed(self.extent.offset + handle.offset, error)
    }
}
