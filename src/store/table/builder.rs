//! The table builder: writes one table at the end of a pack.
//!
//! Entries come in order and go into blocks; a full block is written to the pack's buffer. The index entry of a block
//! is written when the key behind the block is known, since its separator lies between the two.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::block::{BlockBuilder, put_head_of_single};
use crate::format::checksum::Place;
use crate::format::edit::TableRecord;
use crate::format::filter::{FilterBuilder, FilterMark};
use crate::format::table::{
    self, BlockHandle, Codec, DataHandle, Footer, HANDLE_BYTES, PartitionHandle, Properties,
};
use crate::format::timestamped;
use crate::format::tombstones;
use crate::format::value_table::ValuePointer;
use crate::store::files::pack::PackWriter;
use crate::types::pages::LARGE_BYTES;
use crate::types::{
    Epoch, Holders, Holds, Key, KeyRange, KeyRanges, KeyspaceId, Kind, PAGE_BYTES, Prefix, RangeTombstone,
    Seq, Stamp, TableId, Timestamps, Ttl, ValueShare,
};

/// A block that would touch one page more than it must is moved to the next page if that wastes no more bytes than
/// this. So a read that misses the page cache costs one page instead of two.
const PAGE_WASTE_MAX: u64 = PAGE_BYTES / 16;

/// How the tables of a job are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableSettings {
    /// The keyspace of the tables.
    pub(crate) keyspace: KeyspaceId,
    /// The keyspace's name, written into each table for a repair without the manifest.
    pub(crate) name: Arc<str>,
    /// Level that the tables are written for, written into each table for a repair without the manifest.
    pub(crate) level: u8,
    /// Age of the run that the tables belong to; a higher epoch is newer.
    pub(crate) epoch: Epoch,
    /// Size at which a block is closed, in bytes.
    pub(crate) block_bytes: usize,
    /// In tables of at least this many bytes of blocks, index and filter are in partitions.
    pub(crate) partitioned_bytes_min: u64,
    /// Bits of filter per key; 0 for none.
    pub(crate) filter_bits: u8,
    /// Rule by which prefixes of keys are added to the filter too.
    pub(crate) prefix: Option<Prefix>,
    /// Whether blocks are compressed.
    pub(crate) codec: Codec,
    /// Time to live of values. If set, each stored value ends with the second of its write.
    pub(crate) ttl: Option<Ttl>,
    /// From this size on, in bytes, values lie apart.
    pub(crate) separate_from: Option<NonZeroU32>,
}

/// A block of a table that is being written, as it was before it was compressed.
#[derive(Debug)]
pub(crate) struct WrittenBlock {
    pub(crate) handle: BlockHandle,
    pub(crate) bytes: Vec<u8>,
}

/// A table being written at the end of a pack.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    settings: TableSettings,
    id: TableId,
    start: u64,
    block: BlockBuilder,
    index: IndexEntries,
    filter: FilterBuilder,
    scratch: Vec<u8>,
    /// The last block, not yet in the index: the next key decides how short its separator may be.
    pending: Option<PendingBlock>,
    smallest: Option<Key>,
    range_tombstones: Vec<RangeTombstone>,
    min_seq: Seq,
    max_seq: Seq,
    entries: u64,
    tombstones: u64,
    key_bytes: u64,
    value_bytes: u64,
    blocks: u64,
    timestamps: Option<Timestamps>,
    /// What only readers of the past need, in bytes of keys and values.
    holds: Holds,
    /// What it has of values that lie apart.
    values: ValueShare,
    /// Blocks with keys of these are wanted by the cache.
    hot: Option<Arc<KeyRanges>>,
    hot_blocks: Vec<WrittenBlock>,
}

#[derive(Debug)]
struct PendingBlock {
    last_key: Vec<u8>,
    last_stamp: Stamp,
    handle: BlockHandle,
    /// The keys up to its last one.
    keys: FilterMark,
    /// Whether it has but one entry, of a large value.
    is_single: bool,
}

impl TableBuilder {
    /// Starts a table at the end of `pack`.
    pub(crate) fn new(settings: TableSettings, id: TableId, pack: &mut PackWriter) -> Self {
        let prefix = settings.prefix;
        Self {
            settings,
            id,
            start: pack.align(),
            block: BlockBuilder::new(),
            index: IndexEntries::default(),
            filter: FilterBuilder::new(prefix),
            scratch: Vec::new(),
            pending: None,
            smallest: None,
            range_tombstones: Vec::new(),
            min_seq: Seq::MAX,
            max_seq: Seq::ZERO,
            entries: 0,
            tombstones: 0,
            key_bytes: 0,
            value_bytes: 0,
            blocks: 0,
            timestamps: None,
            holds: Holds::default(),
            values: ValueShare::default(),
            hot: None,
            hot_blocks: Vec::new(),
        }
    }

    /// The same, that remembers its blocks with keys in `hot`.
    pub(crate) fn remembering(self, hot: Option<Arc<KeyRanges>>) -> Self {
        Self { hot, ..self }
    }

    /// Completes the last block, and returns those that it was to remember.
    pub(crate) fn take_hot_blocks(&mut self, pack: &mut PackWriter) -> Result<Vec<WrittenBlock>> {
        self.close_block(pack)?;
        Ok(std::mem::take(&mut self.hot_blocks))
    }

    /// Appends an entry. Entries must come in order.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        stamp: Stamp,
        value: &[u8],
        pack: &mut PackWriter,
    ) -> Result<()> {
        let new_key = self.entries == 0 || key != self.last_key();
        let is_large = value.len() >= LARGE_BYTES;
        let size = || self.block.size_with_stamp(key, stamp, value.len()) + table::TRAILER_BYTES;
        if !self.block.is_empty() && (is_large || size() > self.settings.block_bytes) {
            self.close_block(pack)?;
        }
        if self.block.is_empty() {
            self.index_pending(Some(key));
        }
        if new_key {
            let left_out = planted!("filter-built-without-the-first-key") && self.entries == 0;
            if self.settings.filter_bits > 0 && !left_out {
                self.filter.add(key);
            }
            if self.entries == 0 {
                self.smallest = Some(key.into());
            }
        }
        if is_large {
            self.add_block(key, stamp, value, pack)?;
        } else {
            self.block.add(key, stamp, value);
        }
        self.entries += 1;
        self.tombstones += u64::from(stamp.kind() == Kind::Delete);
        self.key_bytes += key.len() as u64;
        self.value_bytes += value.len() as u64;
        self.note_seq(stamp.seq());
        if stamp.kind() == Kind::Separated
            && let Ok((pointer, _)) = ValuePointer::decode(value)
        {
            let footprint = pointer.footprint();
            self.values.add(pointer.table, (footprint.end - footprint.start).into());
        }
        if self.settings.ttl.is_some() && stamp.kind().is_put() {
            self.timestamps = Some(Timestamps::with(self.timestamps, timestamped::second(value)));
        }
        Ok(())
    }

    /// Gives the table its range tombstones: fragmented, and within the range that the table may cover.
    pub(crate) fn set_range_tombstones(&mut self, tombstones: Vec<RangeTombstone>) {
        tombstones.iter().for_each(|tombstone| self.note_seq(tombstone.seq));
        self.range_tombstones = tombstones;
    }

    /// Notes that one of the table's entries or range tombstones, of this many bytes of keys and value, is kept only
    /// for readers at past sequence numbers.
    pub(crate) fn hold(&mut self, by: Holders, bytes: u64) {
        self.holds.note(by, 1, bytes);
    }

    fn note_seq(&mut self, seq: Seq) {
        self.min_seq = self.min_seq.min(seq);
        self.max_seq = self.max_seq.max(seq);
    }

    /// Bytes of the table that are written, padding included.
    pub(crate) fn bytes(&self, pack: &PackWriter) -> u64 {
        pack.len() - self.start
    }

    /// Key of the last entry; empty if there is none.
    fn last_key(&self) -> &[u8] {
        match &self.pending {
            Some(block) if self.block.is_empty() => &block.last_key,
            _ => self.block.last_key(),
        }
    }

    /// Completes the table. Its end is still in the pack's buffer afterwards. The table must hold an entry or a range
    /// tombstone.
    pub(crate) fn finish(mut self, pack: &mut PackWriter) -> Result<TableRecord> {
        self.close_block(pack)?;
        let range = self.range();
        self.index_pending(None);
        let data_bytes = pack.len() - self.start;
        let (filter, index) = if self.entries == 0 {
            (None, None)
        } else if data_bytes >= self.settings.partitioned_bytes_min {
            (None, Some(self.write_partitions(pack)))
        } else {
            let whole = self.write_partition(0..self.index.len(), pack);
            (whole.filter, Some(whole.index))
        };
        let tombstones = (!self.range_tombstones.is_empty()).then(|| {
            self.scratch.clear();
            tombstones::encode(&self.range_tombstones, &mut self.scratch);
            self.write_block(self.settings.codec, pack)
        });
        self.scratch.clear();
        let holds = self.stored_holds(pack);
        self.properties(&range, &holds).encode(&mut self.scratch);
        let properties = self.write_block(Codec::Raw, pack);
        let footer = Footer { table: self.id, data_bytes, index, filter, tombstones, properties };
        pack.buffer().extend_from_slice(&footer.encode());
        let extent = pack.add_table(self.id, self.settings.keyspace, self.start);
        Ok(TableRecord {
            id: self.id,
            extent,
            range,
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            epoch: self.settings.epoch,
            entries: self.entries,
            tombstones: self.tombstones,
            range_tombstones: self.range_tombstones.len() as u64,
            timestamps: self.timestamps,
            holds,
            keys: None,
            values: self.values,
        })
    }

    /// Writes filter and index of the blocks in `range`.
    fn write_partition(&mut self, range: Range<usize>, pack: &mut PackWriter) -> PartitionHandle {
        let filter = (self.settings.filter_bits > 0).then(|| {
            self.scratch.clear();
            let keys = [self.index.keys_before(range.start), self.index.keys_before(range.end)];
            self.filter.finish_part(keys, self.settings.filter_bits, &mut self.scratch);
            self.write_block(Codec::Raw, pack)
        });
        let mut index = BlockBuilder::new();
        for at in range {
            let (separator, entry) = self.index.get(at);
            index.add(separator, entry.stamp, &entry.handle.encode());
        }
        self.scratch.clear();
        index.finish(&mut self.scratch);
        PartitionHandle { filter, index: self.write_block(Codec::Raw, pack) }
    }

    /// Writes the partitions, and their index.
    fn write_partitions(&mut self, pack: &mut PackWriter) -> BlockHandle {
        let mut partitions = BlockBuilder::new();
        for range in self.index.partitions(self.settings.block_bytes) {
            let last = range.end - 1;
            let handle = self.write_partition(range, pack);
            let (separator, entry) = self.index.get(last);
            partitions.add(separator, entry.stamp, &handle.encode());
        }
        self.scratch.clear();
        partitions.finish(&mut self.scratch);
        self.write_block(Codec::Raw, pack)
    }

    /// What only readers of the past need, in bytes of the table as stored. Nearly all of the table is written by
    /// now.
    fn stored_holds(&mut self, pack: &PackWriter) -> Holds {
        let ends = |range: &KeyRange| (range.start.len() + range.end.as_bytes().len()) as u64;
        let ranges: u64 = self.range_tombstones.iter().map(|tombstone| ends(&tombstone.range)).sum();
        let raw_bytes = self.key_bytes + self.value_bytes + ranges;
        std::mem::take(&mut self.holds).stored(raw_bytes, self.bytes(pack))
    }

    /// The range of the keys of entries and range tombstones.
    fn range(&self) -> KeyRange {
        let entries = self.smallest.as_ref().map(|smallest| KeyRange::new(smallest.clone(), self.last_key()));
        let ends = self.range_tombstones.first().zip(self.range_tombstones.last());
        let tombstones = ends.map(|(first, last)| first.range.hull(&last.range));
        let range = entries.into_iter().chain(tombstones).reduce(|a, b| a.hull(&b));
        range.expect("invariant: a table holds an entry or a range tombstone")
    }

    fn properties(&self, range: &KeyRange, holds: &Holds) -> Properties {
        Properties {
            keyspace: self.settings.keyspace,
            level: self.settings.level,
            epoch: self.settings.epoch,
            entries: self.entries,
            tombstones: self.tombstones,
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            raw_key_bytes: self.key_bytes,
            raw_value_bytes: self.value_bytes,
            data_blocks: self.blocks,
            range_tombstones: self.range_tombstones.len() as u64,
            range: range.clone(),
            timestamps: self.timestamps,
            ttl: self.settings.ttl,
            name: Some(self.settings.name.clone()),
            holds: holds.clone(),
        }
    }

    fn close_block(&mut self, pack: &mut PackWriter) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let last_key = self.block.last_key().to_vec();
        let last_stamp = self.block.last_stamp();
        let is_hot =
            |hot: &Arc<KeyRanges>| hot.overlaps(&KeyRange::new(self.block.first_key(), &last_key[..]));
        let is_hot = self.hot.as_ref().is_some_and(is_hot);
        self.scratch.clear();
        self.block.finish(&mut self.scratch);
        let handle = self.write_block(self.settings.codec, pack);
        if is_hot {
            self.hot_blocks.push(WrittenBlock { handle, bytes: self.scratch.clone() });
        }
        self.blocks += 1;
        let keys = self.filter.mark();
        self.pending = Some(PendingBlock { last_key, last_stamp, handle, keys, is_single: false });
        pack.drain()
    }

    /// Writes a block of one entry, whose value is written from where it lies.
    fn add_block(&mut self, key: &[u8], stamp: Stamp, value: &[u8], pack: &mut PackWriter) -> Result<()> {
        self.scratch.clear();
        put_head_of_single(&mut self.scratch, key, stamp, value.len());
        let place = self.place_of(self.scratch.len() + value.len(), pack);
        let mut compressed = None;
        if self.settings.codec == Codec::Lz4 {
            compressed = table::compress_pieces([&self.scratch, value]);
        }
        let (codec, pieces) = match &compressed {
            Some((stored, length)) => (Codec::Lz4, [&stored[..*length], &[]]),
            None => (Codec::Raw, [&self.scratch[..], value]),
        };
        let trailer = table::trailer_of_pieces(place, codec, pieces);
        pieces.iter().try_for_each(|piece| pack.append(piece))?;
        pack.append(&trailer)?;
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>() + trailer.len();
        let length = u32::try_from(length).expect("invariant: blocks stay below 4 GiB");
        self.blocks += 1;
        let handle = BlockHandle { offset: place.offset, length };
        let keys = self.filter.mark();
        let last_key = key.to_vec();
        self.pending = Some(PendingBlock { last_key, last_stamp: stamp, handle, keys, is_single: true });
        pack.drain()
    }

    /// Appends `scratch` to the pack as a block.
    fn write_block(&mut self, codec: Codec, pack: &mut PackWriter) -> BlockHandle {
        let place = self.place_of(self.scratch.len(), pack);
        let length = table::seal_block(place, codec, &self.scratch, pack.buffer());
        BlockHandle { offset: place.offset, length }
    }

    /// Where the next block goes, if its payload has this many bytes.
    fn place_of(&self, payload_bytes: usize, pack: &mut PackWriter) -> Place {
        let mut offset = pack.len();
        // The stored length is not known before compression; this bound only decides about padding.
        let length = (payload_bytes + table::TRAILER_BYTES) as u64;
        let room = PAGE_BYTES - offset % PAGE_BYTES;
        if room <= PAGE_WASTE_MAX && pages(offset, length) > pages(0, length) {
            offset += room;
            pack.pad_to(offset);
        }
        Place { id: self.id.0, offset: offset - self.start }
    }

    /// Adds the last closed block to the index, now that the key behind it is known.
    fn index_pending(&mut self, next_key: Option<&[u8]>) {
        if let Some(block) = self.pending.take() {
            let mut separator = Vec::new();
            // The separator before the same key is the last entry's own key and stamp.
            let next = if block.is_single { Some(&*block.last_key) } else { next_key };
            let stamp = table::separator(&block.last_key, block.last_stamp, next, &mut separator);
            let ends_key = next_key != Some(&block.last_key) || planted!("key-in-two-partitions");
            let handle = DataHandle { block: block.handle, is_single: block.is_single };
            let entry = IndexEntry { end: 0, stamp, handle, keys: block.keys, ends_key };
            self.index.push(&separator, entry);
        }
    }
}

/// The entries of an index, until it is known whether it is to be in partitions.
#[derive(Debug, Default)]
struct IndexEntries {
    /// The separators, one behind the other.
    separators: Vec<u8>,
    entries: Vec<IndexEntry>,
}

#[derive(Debug)]
struct IndexEntry {
    /// Where the separator ends.
    end: usize,
    stamp: Stamp,
    handle: DataHandle,
    /// The keys up to the last one of the block.
    keys: FilterMark,
    /// Whether the next block begins with another user key.
    ends_key: bool,
}

impl IndexEntries {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn push(&mut self, separator: &[u8], entry: IndexEntry) {
        self.separators.extend_from_slice(separator);
        self.entries.push(IndexEntry { end: self.separators.len(), ..entry });
    }

    fn get(&self, at: usize) -> (&[u8], &IndexEntry) {
        let start = at.checked_sub(1).map_or(0, |before| self.entries[before].end);
        (&self.separators[start..self.entries[at].end], &self.entries[at])
    }

    /// The keys before block `at`.
    fn keys_before(&self, at: usize) -> FilterMark {
        at.checked_sub(1).map_or(FilterMark::default(), |before| self.entries[before].keys)
    }

    /// Ranges of entries whose index takes about `index_bytes`. No user key is in two of them.
    fn partitions(&self, index_bytes: usize) -> Vec<Range<usize>> {
        let (mut ranges, mut start, mut bytes) = (Vec::new(), 0, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            bytes += self.get(at).0.len() + HANDLE_BYTES;
            if at + 1 == self.len() || entry.ends_key && bytes >= index_bytes {
                ranges.push(start..at + 1);
                (start, bytes) = (at + 1, 0);
            }
        }
        ranges
    }
}

/// Number of pages that `length` bytes at `offset` touch.
fn pages(offset: u64, length: u64) -> u64 {
    (offset % PAGE_BYTES + length).div_ceil(PAGE_BYTES)
}
