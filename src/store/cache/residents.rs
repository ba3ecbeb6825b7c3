//! Residents: tables all of whose blocks are in memory, found through their reader.
//!
//! Where the cache can hold all that there is, to find each block or [stretch](super::stretches) in it takes a third of the time
//! of scans: it is a walk of half a dozen steps, each of which waits for memory. And after each merge, or each time the store is
//! opened, it takes a read for each of them to have them there. So a table of which scans have missed a good part is read as a whole.
//!
//! The cache keeps it like all else, within the budget; its reader only knows where it is, for as long as it is there. That
//! somebody uses it is not noted in the cache. So it goes early once there is something to go for: then the units serve, as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwapWeak;

use super::{Entry, TableCache};
use crate::catalog::TableMeta;
use crate::error::Result;
use crate::format::block::Block;
use crate::store::meter::ReadCause;
use crate::store::table::{TablePlace, TableReader};
use crate::types::{Buffer, TableId};

/// A table is read as a whole when scans have missed one part in so many of it: what they read once, of a store that is large or on a slow
/// disk, brings in an eighth more.
const MISSED_PART: u64 = 8;

/// It is read in pieces of about this length: whoever keeps a value of it keeps no more than one.
const PIECE_BYTES: u64 = 32 << 10;

/// Longer tables hold records so long that to find a block costs nothing beside.
const TABLE_BYTES_MAX: u64 = 8 << 20;

/// Offset under which the blocks of a whole table are kept.
const RESIDENT: u64 = u64::MAX - 1;

/// All blocks of a table.
#[derive(Debug)]
pub(crate) struct Resident {
    blocks: Box<[Block]>,
    /// Bytes of memory that it takes, and how many of those are in no frame.
    memory: (usize, usize),
}

impl Resident {
    fn new(blocks: Box<[Block]>) -> Self {
        let mut memory = [size_of_val(&*blocks); 2];
        let mut last: Option<&Buffer> = None;
        for buffer in blocks.iter().map(Block::buffer) {
            // Blocks that share a buffer follow one another.
            if !last.replace(buffer).is_some_and(|last| last.is(buffer)) {
                let (bytes, is_alone) = buffer.memory();
                memory[0] += bytes;
                memory[1] += if is_alone { bytes } else { 0 };
            }
        }
        Self { blocks, memory: memory.into() }
    }

    /// Block `at`; `None` behind the last.
    #[inline]
    pub(crate) fn block(&self, at: usize) -> Option<&Block> {
        self.blocks.get(at)
    }

    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.blocks.iter().map(Block::buffer)
    }

    pub(super) fn memory(&self) -> (usize, usize) {
        self.memory
    }
}

/// What a table's reader knows of its blocks in memory.
#[derive(Debug, Default)]
pub(crate) struct Residence {
    resident: ArcSwapWeak<Resident>,
    /// What scans have missed since the table was read last.
    missed_bytes: AtomicU64,
}

impl Residence {
    /// Whether the blocks are in memory.
    fn is_there(&self) -> bool {
        self.resident.load().strong_count() > 0
    }

    /// Notes a miss; whether it is the one that makes it enough of a table of `table_bytes`.
    fn missed(&self, bytes: u64, table_bytes: u64) -> bool {
        let enough = table_bytes / MISSED_PART;
        let before = self.missed_bytes.fetch_add(bytes, Relaxed);
        let is_enough = before <= enough && before + bytes > enough;
        if is_enough {
            self.missed_bytes.store(0, Relaxed);
        }
        is_enough
    }
}

impl TableCache {
    /// The blocks of `table`, if all of them are in memory.
    #[inline]
    pub(crate) fn resident(&self, table: &TableReader) -> Option<Arc<Resident>> {
        let resident = table.residence().resident.load().upgrade()?;
        self.stripe(table.id(), 0).hits.fetch_add(1, Relaxed);
        Some(resident)
    }

    /// Tells of a scan that has not found `missed_bytes` of a table in memory; its blocks, if that has brought them there.
    pub(crate) fn missed_by_scan(&self, table: &TableReader, missed_bytes: u64) -> Option<Arc<Resident>> {
        let is_enough = table.residence().missed(missed_bytes, table.extent().length);
        if is_enough { self.bring_in(table, ReadCause::Scan) } else { None }
    }

    /// Whether at least half of `tables`, by their bytes, is in memory as a whole.
    pub(crate) fn are_resident<'a>(&self, tables: impl Iterator<Item = &'a TableMeta>) -> bool {
        let (mut resident_bytes, mut bytes) = (0, 0);
        for table in tables {
            let reader = table.attachment.get::<TableReader>();
            bytes += table.bytes();
            resident_bytes +=
                if reader.is_some_and(|reader| reader.residence().is_there()) { table.bytes() } else { 0 };
        }
        2 * resident_bytes >= bytes
    }

    /// Brings a table into memory that has come in the place of some that were there.
    pub(crate) fn settle(&self, table: &TableMeta) {
        // What is wrong with it is told to who reads it.
        if let Ok(reader) = self.table(table) {
            self.bring_in(&reader, ReadCause::Merge);
        }
    }

    /// All blocks of `table`, read for good if there is room for them.
    fn bring_in(&self, table: &TableReader, cause: ReadCause) -> Option<Arc<Resident>> {
        let bytes = table.extent().length;
        let has_room =
            || self.keeps(bytes as usize) && self.entries.weight() + bytes <= self.entries.capacity();
        if bytes > TABLE_BYTES_MAX || !self.holds_all() || !has_room() {
            return None;
        }
        // Whoever asks for the block by itself is told what is wrong.
        let resident = Arc::new(Resident::new(self.read_all(table, cause).ok()?));
        self.forget_units(table);
        self.keep((table.id(), RESIDENT), Entry::Resident(resident.clone()));
        table.residence().resident.store(Arc::downgrade(&resident));
        Some(resident)
    }

    /// Reads all blocks of a table.
    fn read_all(&self, table: &TableReader, cause: ReadCause) -> Result<Box<[Block]>> {
        let file = self.packs.table_file(table.extent())?;
        let place = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let mut blocks = Vec::with_capacity(table.blocks());
        let mut rest = table.handles_in(0..u64::MAX);
        while let Some(first) = rest.first() {
            let ends = rest.iter().take_while(|handle| handle.end() <= first.offset + PIECE_BYTES);
            let (piece, behind) = rest.split_at(ends.count().max(1));
            let mut end = first.end();
            for handle in piece {
                place.length(*handle)?;
                end = end.max(handle.end());
            }
            let mut buffer = self.frame((end - first.offset) as usize);
            if let Some(bytes) = buffer.get_mut() {
                place.read(cause, first.offset..end, bytes)?;
            }
            for handle in piece {
                let at = handle.offset.checked_sub(first.offset).map_or(usize::MAX, |at| at as usize);
                blocks.push(place.block(*handle, &buffer, at, |bytes| self.copy(bytes))?);
            }
            rest = behind;
        }
        Ok(blocks.into())
    }

    /// Lets go of a table as a whole.
    pub(super) fn forget_resident(&self, table: TableId) {
        self.entries.remove(&(table, RESIDENT));
    }
}
