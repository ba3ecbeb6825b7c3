//! Partitions of a table's index and filter: which one has a key, and how each is opened.

use std::sync::{Arc, OnceLock};

use super::{FencePointers, IndexPrefix, TablePlace, TableReader, Tail, handles_of};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::filter::Filter;
use crate::format::table::{BlockHandle, PartitionHandle};
use crate::store::cache::{BlockPointers, PinState};
use crate::store::files::file::StoreFile;
use crate::store::files::meter::ReadCause;
use crate::types::Stamp;

/// A part of a table's index and filter.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) handle: PartitionHandle,
    /// Its reader, if it has been opened to stay.
    pub(super) reader: OnceLock<Arc<TableReader>>,
}

impl Partition {
    pub(super) fn new(handle: PartitionHandle) -> Self {
        Self { handle, reader: OnceLock::new() }
    }
}

impl TableReader {
    /// Number of partitions; 0 if the table has none.
    #[inline]
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Whether this has only a part of the table's blocks, or none of them, because the table has partitions.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_part || !self.partitions.is_empty()
    }

    /// The partition that has all entries of `key`, if there are any; the last one for a key behind all. Only if the table has
    /// partitions.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8]) -> usize {
        // No user key is in two partitions, so the stamp does not matter.
        self.block_for(key, Stamp::MAX).min(self.partitions.len().saturating_sub(1))
    }

    /// A key that is not before any of a partition's, and before those of the next one.
    pub(crate) fn partition_end(&self, at: usize) -> Option<Vec<u8>> {
        let index = self.index.as_ref().filter(|index| at < index.len())?;
        Some([index.prefix(), index.suffix(at)].concat())
    }

    /// Offset of a partition in the table.
    #[cfg(test)]
    pub(crate) fn partition_start(&self, at: usize) -> Option<u64> {
        self.partitions.get(at).map(|partition| partition.handle.start())
    }

    /// A partition that was kept.
    #[inline]
    pub(crate) fn kept_partition(&self, at: usize) -> Option<&Arc<Self>> {
        self.partitions.get(at)?.reader.get()
    }

    /// Keeps a partition for as long as the table is open.
    pub(crate) fn keep_partition(&self, at: usize, partition: Arc<Self>) {
        if let Some(place) = self.partitions.get(at) {
            // If two threads do this, the second one has opened the same.
            let _ = place.reader.set(partition);
        }
    }

    /// What is open of the table that says whether it has `key`: all of it, or the partition. `None` if that is not open.
    pub(crate) fn open_for(&self, key: &[u8]) -> Option<&Self> {
        if self.partitions.is_empty() {
            return Some(self);
        }
        self.kept_partition(self.partition_of(key)).map(|partition| &**partition)
    }

    /// Reads index and filter of a partition at once, and checks them.
    pub(crate) fn open_partition(&self, file: &StoreFile, at: usize) -> Result<Self> {
        let place = TablePlace { file, id: self.id, extent: self.extent };
        let handle = self.partition_at(place, at)?;
        let (start, end) = (handle.start(), handle.index.end());
        place.length(handle.index)?;
        let bytes = usize::try_from(end - start).map_err(|_| place.too_short())?;
        let mut bytes = vec![0; bytes];
        place.read(ReadCause::Open, start..end, &mut bytes)?;
        let part = |handle: BlockHandle| {
            let from = (handle.offset - start) as usize;
            bytes.get(from..from.saturating_add(handle.length as usize)).ok_or_else(|| place.too_short())
        };
        let filter = handle.filter.map(|at| place.open(at, part(at)?, |bytes| Filter::decode(&bytes)));
        let filter = filter.transpose()?;
        self.part(place, handle, place.open(handle.index, part(handle.index)?, Block::decode)?, filter)
    }

    /// As [`TableReader::open_partition`], without the filter, for callers that read all entries.
    pub(crate) fn open_partition_data(&self, file: &StoreFile, at: usize) -> Result<Self> {
        let place = TablePlace { file, id: self.id, extent: self.extent };
        let handle = self.partition_at(place, at)?;
        self.part(place, handle, place.decode(handle.index, Block::decode)?, None)
    }

    /// A partition, from the end of the table.
    pub(super) fn partition_from(&self, tail: &Tail<'_>, at: usize) -> Result<Self> {
        let handle = self.partition_at(tail.place, at)?;
        let filter = handle.filter.map(|at| tail.decode(at, |bytes| Filter::decode(&bytes))).transpose()?;
        self.part(tail.place, handle, tail.decode(handle.index, Block::decode)?, filter)
    }

    fn partition_at(&self, place: TablePlace<'_>, at: usize) -> Result<PartitionHandle> {
        let found = self.partitions.get(at).map(|partition| partition.handle);
        found.ok_or_else(|| place.file.corruption(place.extent.offset, "the table has no such partition"))
    }

    /// A reader of the blocks of `index`.
    fn part(
        &self,
        place: TablePlace<'_>,
        handle: PartitionHandle,
        index: Block,
        filter: Option<Filter>,
    ) -> Result<Self> {
        let (handles, singles) = handles_of(&index).map_err(|e| place.malformed(handle.index, &e))?;
        let mut part = Self {
            id: self.id,
            number: self.number,
            extent: self.extent,
            index: None,
            index_prefix: IndexPrefix::of(&[]),
            fence_pointers: FencePointers::new(&[]),
            pointers: BlockPointers::new(handles.len()),
            handles,
            singles,
            partitions: Box::default(),
            is_part: true,
            filter,
            range_tombstones: Vec::new(),
            properties: self.properties,
            pin_state: PinState::default(),
            heat: self.heat.clone(),
            _charge: None,
        };
        part.set_index(index);
        Ok(part)
    }
}
