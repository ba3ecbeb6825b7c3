//! The block cache: blocks, spans, rows and open tables under one budget of bytes.
//!
//! * **Keys.** A block is keyed by its table and its offset within the table. So a table that moves to another level,
//!   pack or device keeps its warm blocks. The exception is a table of large records that leaves level 0: there other
//!   [units](Unit) are kept.
//! * **Open tables.** An open table (index and filter) is attached to its [`TableMeta`], where a read finds it
//!   without a search for as long as the metadata lives. Attached tables take at most one part in [`ATTACHED_SHARE`]
//!   of the budget. Open tables beyond that share compete with the blocks. A job attaches the tables that it writes,
//!   so that no reader waits for one to be opened after a compaction.
//! * **Partitions** of the index and filter of a large table are opened one by one, and kept by the same rules: in the open
//!   table while the share allows it, and else beside the blocks.
//! * **Pointers.** An open table has a pointer to each of its cached blocks ([`block_pointers`]), so that a reader finds it
//!   without the hash table.
//! * **Frames.** All other entries lie in [`Frames`], whose memory is the rest of the budget. Their contents take a
//!   little less than that, since some frames are always free.
//!
//! `docs/design/read.md` says what is kept and why.

mod admission;
mod block_pointers;
pub(crate) mod buffers;
mod entries;
pub(crate) mod frames;
mod partitions;
mod pinned;
mod readahead;
pub(crate) mod row_cache;
mod values;
mod warm_up;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use self::admission::Admission;
pub(crate) use self::block_pointers::{BlockPointers, HeldBlock};
use self::block_pointers::{Resident, Shown, Turns};
use self::entries::Entries;
use super::stripes::Stripes;
use super::table::{TablePlace, TableReader};
use crate::catalog::{TableMeta, Warm};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::edit::TableRecord;
use crate::format::table::BlockHandle;
use crate::store::cache::buffers::Buffers;
use crate::store::cache::frames::{Charge, Frames, Keeper};
pub(crate) use crate::store::cache::pinned::{PinState, PinnedTable};
pub(crate) use crate::store::cache::readahead::{SPAN_BYTES, Span, Unit};
use crate::store::cache::row_cache::Row;
use crate::store::cache::warm_up::Found;
use crate::store::files::meter::ReadCause;
use crate::store::files::pack::{PackStore, PackWriter};
use crate::types::buffer::{Tag, prefetch_all};
use crate::types::{Buffer, TableId};

/// Offset in the key under which a table's index and filter are kept. No block has an offset that large.
const READER: u64 = u64::MAX;

/// Bytes of the cache's own bookkeeping for an entry.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// One part in this many of the blocks' share of the budget is left for free frames.
const FREE_FRAMES_PART: u64 = 16;

/// An entry longer than one part in this many of a shard's capacity is not kept: too many others would be evicted for
/// it.
const KEPT_PART: u64 = 2;

/// Attached tables take at most one part in this many of the budget. An index and a filter are a small part of a
/// table (`docs/benchmarks/choices.md`, "One read to open a table").
const ATTACHED_SHARE: u64 = 4;

/// A job attaches the tables that it writes while attached tables take less than one part in this many of the budget.
/// The rest of their share is for tables that somebody reads.
const WRITTEN_SHARE: u64 = 2 * ATTACHED_SHARE;

/// The blocks' share of the budget changes in steps of one part in this many.
const CAPACITY_STEPS: u64 = 64;

#[derive(Clone, Debug)]
enum Entry {
    Block(Arc<Resident>),
    Row(Row),
    /// A value that lies apart from its key.
    Value(Buffer),
    Span(Span),
    PinnedTable(Arc<PinnedTable>),
    Table(Arc<TableReader>),
}

impl Entry {
    /// What it lies in.
    fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let (single, span, pinned) = match self {
            Self::Block(resident) => (Some(resident.block().buffer()), None, None),
            Self::Row(row) => (Some(&row.buffer), None, None),
            Self::Value(value) => (Some(value), None, None),
            Self::Span(span) => (None, Some(span.buffers()), None),
            Self::PinnedTable(pinned) => (None, None, Some(pinned.buffers())),
            Self::Table(_) => (None, None, None),
        };
        single.into_iter().chain(span.into_iter().flatten()).chain(pinned.into_iter().flatten())
    }

    /// Bytes of memory that it takes, and how many of those are in no frame.
    fn memory(&self) -> (usize, usize) {
        let others = match self {
            Self::Block(_) => Resident::BYTES,
            Self::Row(_) | Self::Value(_) => 0,
            Self::Span(span) => span.blocks_bytes(),
            Self::PinnedTable(pinned) => return pinned.memory(),
            Self::Table(table) => table.memory_bytes(),
        };
        let tables = if matches!(self, Self::Table(_)) { others } else { 0 };
        self.buffers().map(Buffer::memory).fold((others, tables), |(all, apart), (bytes, is_alone)| {
            (all + bytes, apart + if is_alone { bytes } else { 0 })
        })
    }
}

/// An entry, with its charge for memory outside of frames, its share of its table's heat, and what leads to it.
#[derive(Debug)]
struct Kept {
    /// Dropped before the entry, by whose address it knows its pointer.
    _shown: Option<Shown>,
    entry: Entry,
    _charge: Option<Charge>,
    _warm: Option<Warm>,
}

/// A clone is for a reader and carries none of these: the entry in the cache counts once. (A shared charge would cost each
/// lookup a wait for memory.)
impl Clone for Kept {
    #[inline]
    fn clone(&self) -> Self {
        Self { entry: self.entry.clone(), _charge: None, _warm: None, _shown: None }
    }
}

/// What is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cached {
    Everything,
    /// Blocks and open tables, and not rows, spans and whole tables. The least recently used goes first.
    Blocks,
    OpenTables,
}

/// What is kept, and what comes in before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds {
    pub(crate) of: Cached,
    /// Whole tables that a job has written in the place of pinned ones.
    pub(crate) settles: bool,
    /// Blocks that a compaction writes in the place of cached ones.
    pub(crate) warms_up: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { of: Cached::Everything, settles: true, warms_up: false }
    }
}

/// Blocks, spans, rows and open tables. Beyond the budget the least useful are evicted.
#[derive(Debug)]
pub(crate) struct TableCache {
    packs: Arc<PackStore>,
    buffers: Buffers,
    frames: Frames,
    entries: Entries,
    /// Entries that take more bytes are not kept.
    entry_bytes_max: AtomicU64,
    capacity: AtomicU64,
    attached_bytes: Arc<AtomicU64>,
    /// What the lists of compaction buffers take of the same share.
    list_bytes: AtomicU64,
    found: Found,
    counts: Stripes<Counts>,
    admission: Admission,
    turns: Turns,
    kinds: Kinds,
}

/// Counters of one stripe: hits, misses and reads.
#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    reads: AtomicU64,
    /// Time that the reads took, in nanoseconds.
    read_nanos: AtomicU64,
}

/// Statistics of the cache since the store was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Reads of blocks and spans for lookups and iterators.
    pub(crate) reads: u64,
    /// Time that these took, in nanoseconds.
    pub(crate) read_nanos: u64,
    pub(crate) bytes: u64,
    pub(crate) capacity: u64,
}

/// An open table, held by its metadata or by whoever asked.
#[derive(Clone, Debug)]
pub(crate) enum OpenTable<'a> {
    Attached(&'a TableReader),
    Held(Arc<TableReader>),
}

impl Deref for OpenTable<'_> {
    type Target = TableReader;

    #[inline]
    fn deref(&self) -> &TableReader {
        match self {
            Self::Attached(table) => table,
            Self::Held(table) => table,
        }
    }
}

/// Where block `at` of a table lies. There must be one.
fn handle_of(table: &TableReader, at: usize) -> BlockHandle {
    table.handle(at).expect("invariant: blocks are asked for by their numbers")
}

/// The key of a block.
fn key_of(table: &TableReader, handle: BlockHandle) -> (TableId, u64) {
    let id = if planted!("cache-key-reused") { TableId(0) } else { table.id() };
    (id, handle.offset)
}

impl TableCache {
    pub(crate) fn new(packs: Arc<PackStore>, bytes: u64, typical_block_bytes: u64) -> Self {
        let items = usize::try_from(bytes / typical_block_bytes.max(1)).unwrap_or(usize::MAX).max(16);
        let kept = bytes - bytes / FREE_FRAMES_PART;
        let entries = Entries::adaptive(items, kept);
        Self {
            packs,
            buffers: Buffers::default(),
            frames: Frames::new(bytes),
            entry_bytes_max: (entries.part_capacity() / KEPT_PART).into(),
            entries,
            capacity: bytes.into(),
            attached_bytes: Arc::default(),
            list_bytes: AtomicU64::new(0),
            found: Found::default(),
            counts: Default::default(),
            admission: Admission::default(),
            turns: Turns::default(),
            kinds: Kinds::default(),
        }
    }

    /// The same, that keeps these kinds of entries.
    pub(crate) fn with(self, kinds: Kinds) -> Self {
        if kinds.of == Cached::Everything {
            return Self { kinds, ..self };
        }
        let entries = Entries::recent(self.entries.capacity());
        let entry_bytes_max = (entries.part_capacity() / KEPT_PART).into();
        Self { kinds, entries, entry_bytes_max, ..self }
    }

    /// Changes the budget. Blocks beyond it are evicted at once; attached tables go with their metadata.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Relaxed);
        self.frames.suit(bytes);
        self.set_blocks_bytes(bytes.saturating_sub(self.attached_bytes.load(Relaxed)));
    }

    /// Charges the budget with `bytes`, which the lists of compaction buffers take now.
    pub(crate) fn charge_lists(&self, bytes: u64) {
        let before = self.list_bytes.swap(bytes, Relaxed);
        if before != bytes {
            self.attached_bytes.fetch_add(bytes, Relaxed);
            self.attached_bytes.fetch_sub(before, Relaxed);
            self.set_capacity(self.capacity.load(Relaxed));
        }
    }

    /// Changes the blocks' share of the budget.
    fn set_blocks_bytes(&self, bytes: u64) {
        self.entries.set_capacity(bytes - bytes / FREE_FRAMES_PART);
        self.entry_bytes_max.store(self.entries.part_capacity() / KEPT_PART, Relaxed);
        self.frames.set_bytes_max(bytes, self);
    }

    fn entry(&self, key: &(TableId, u64)) -> Option<Entry> {
        self.entries.get(key).map(|kept| kept.entry)
    }

    /// Whether something of `bytes` would be kept.
    fn keeps(&self, bytes: usize) -> bool {
        bytes as u64 <= self.entry_bytes_max.load(Relaxed)
    }

    /// Keeps `entry`, unless it is too large. `warm` is what it adds to its table's heat.
    fn keep(&self, key: (TableId, u64), entry: Entry, warm: Option<Warm>) {
        self.keep_shown(key, entry, warm, || None);
    }

    /// As [`TableCache::keep`]. Before that, `show` lets a pointer lead to the entry.
    fn keep_shown(
        &self,
        key: (TableId, u64),
        entry: Entry,
        warm: Option<Warm>,
        show: impl FnOnce() -> Option<Shown>,
    ) {
        let (bytes, apart) = entry.memory();
        let is_wanted = self.kinds.of != Cached::OpenTables || matches!(entry, Entry::Table(_));
        if !is_wanted || !self.keeps(bytes) {
            return;
        }
        let (TableId(table), offset) = key;
        entry.buffers().for_each(|buffer| buffer.set_tag([table, offset]));
        let charge = (apart > 0).then(|| self.frames.charge(apart as u64, self));
        self.turns.take_in(bytes as u64, self.entries.capacity());
        self.entries.insert(key, Kept { entry, _charge: charge, _warm: warm, _shown: show() });
    }

    /// Keeps a block, and lets the pointer of its table lead to it. The least recently used goes first only if every use is
    /// told: a cache by recency has no pointers.
    fn keep_block(&self, table: &TableReader, at: usize, block: &Arc<Resident>, warm: Option<Warm>) {
        let has_pointers = self.kinds.of == Cached::Everything;
        self.keep_shown(key_of(table, handle_of(table, at)), Entry::Block(block.clone()), warm, || {
            has_pointers.then(|| table.pointers().show(at, block))
        });
    }

    /// A buffer for something that may be kept.
    pub(crate) fn frame(&self, bytes: usize) -> Buffer {
        if self.keeps(bytes) { self.frames.take(bytes, self) } else { Buffer::alone(bytes) }
    }

    pub(crate) fn packs(&self) -> &Arc<PackStore> {
        &self.packs
    }

    /// Buffers for pieces that are read past the cache.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The table's index and filter, for as long as its metadata is at hand.
    #[inline]
    pub(crate) fn table<'a>(&self, meta: &'a TableMeta) -> Result<OpenTable<'a>> {
        match meta.attachment.get() {
            Some(table) => Ok(OpenTable::Attached(table)),
            None => self.open(meta).map(OpenTable::Held),
        }
    }

    /// The table's index and filter, to keep.
    pub(crate) fn table_arc(&self, meta: &TableMeta) -> Result<Arc<TableReader>> {
        meta.attachment.get_arc().map_or_else(|| self.open(meta), Ok)
    }

    #[cold]
    fn open(&self, meta: &TableMeta) -> Result<Arc<TableReader>> {
        let key = (meta.id, READER);
        // A reader of the same table at another place, from before or after a rewrite copied it, stays valid for
        // whoever holds it, but is not taken here.
        let here = |table: &Arc<TableReader>| {
            table.extent() == meta.extent || planted!("relocated-table-read-at-its-old-place")
        };
        if let Some(Entry::Table(table)) = self.entry(&key)
            && here(&table)
        {
            return Ok(table);
        }
        let file = self.packs.table_file(meta.extent)?;
        let mut table = TableReader::open(&file, meta.id, meta.extent, meta.max_seq)?;
        let charge = self.charge(table.memory_bytes() as u64);
        let fits = charge.is_some();
        table.set_charge(charge);
        table.count_in(&meta.heat);
        let table = Arc::new(table);
        self.adopt_pinned(&table);
        if fits {
            meta.attachment.set(table.clone());
        } else {
            self.keep(key, Entry::Table(table.clone()), None);
        }
        Ok(table)
    }

    /// Opens the table of `record`, just completed in `pack`, to be attached to its metadata, so that no reader waits
    /// for it to be opened. `None` if attached tables take much of the budget already.
    pub(crate) fn written(
        &self,
        record: &TableRecord,
        pack: &PackWriter,
    ) -> Result<Option<Arc<TableReader>>> {
        if self.attached_bytes.load(Relaxed) >= self.capacity.load(Relaxed) / WRITTEN_SHARE {
            return Ok(None);
        }
        let (file, end) = pack.pending();
        let mut table = TableReader::written(file, record, end, |partition| self.has_room_for(partition))?;
        let charge = self.charge(table.memory_bytes() as u64);
        let fits = charge.is_some();
        table.set_charge(charge);
        Ok(fits.then(|| Arc::new(table)))
    }

    /// A charge for an attached table of this many bytes, unless attached tables take their share already.
    fn charge(&self, bytes: u64) -> Option<Charge> {
        let (charge, before) = Charge::new(bytes, &self.attached_bytes);
        let after = before + bytes;
        let capacity = self.capacity.load(Relaxed);
        if after > capacity / ATTACHED_SHARE {
            return None;
        }
        let step = (capacity / CAPACITY_STEPS).max(1);
        if before / step != after / step {
            self.set_blocks_bytes(capacity.saturating_sub(after.next_multiple_of(step)));
        }
        Some(charge)
    }

    /// Block `at` of a table, from memory if it is there.
    #[inline]
    pub(crate) fn block(&self, table: &TableReader, at: usize, cause: ReadCause) -> Result<HeldBlock> {
        match self.lookup(table, at) {
            Some(found) => Ok(found),
            None => self.read(table, at, cause),
        }
    }

    /// As [`TableCache::block`], for a block that is not in memory.
    pub(crate) fn read(&self, table: &TableReader, at: usize, cause: ReadCause) -> Result<HeldBlock> {
        let handle = handle_of(table, at);
        let resident = Resident::new(self.read_past(table, handle, cause)?);
        let warm = if cause.is_users() { table.warm(handle.length.into()) } else { None };
        self.keep_block(table, at, &resident, warm);
        Ok(HeldBlock::resident(resident))
    }

    /// Reads a block that is not to be kept.
    pub(crate) fn read_past(
        &self,
        table: &TableReader,
        handle: BlockHandle,
        cause: ReadCause,
    ) -> Result<Block> {
        let file = self.packs.table_file(table.extent())?;
        let place = TablePlace { file: &file, id: table.id(), extent: table.extent() };
        let mut buffer = self.frame(place.length(handle)?);
        if let Some(bytes) = buffer.get_mut() {
            let length = bytes.len() as u64;
            self.timed(table, length, cause, || place.read(cause, handle.offset..handle.end(), bytes))?;
        }
        place.block(handle, &buffer, 0, |bytes| self.frame(bytes))
    }

    /// Counts a read of so many bytes of `table`, and how long it takes.
    fn timed<T>(
        &self,
        table: &TableReader,
        length: u64,
        cause: ReadCause,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let devices = self.packs.devices();
        let started = devices.now();
        let done = read()?;
        let ended = devices.now();
        let nanos = ended.saturating_sub(started).as_nanos();
        if cause.is_users()
            && let Some(age) = devices.note_read(table.extent().device, length, (started, ended))
        {
            table.was_read(length, age);
        }
        let counts = self.counts.mine();
        counts.reads.fetch_add(1, Relaxed);
        counts.read_nanos.fetch_add(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
        Ok(done)
    }

    /// Block `at` of a table, if it is in memory.
    #[inline]
    pub(crate) fn lookup(&self, table: &TableReader, at: usize) -> Option<HeldBlock> {
        let Some(held) = table.pointers().load(at) else { return self.lookup_by_key(table, at) };
        self.counts.mine().hits.fetch_add(1, Relaxed);
        if held.as_resident().is_some_and(|resident| resident.is_first_use(self.turns.now()))
            && !planted!("use-through-a-pointer-not-told")
        {
            self.entry(&key_of(table, handle_of(table, at)));
        }
        Some(held)
    }

    /// As [`TableCache::lookup`], of a block to which no pointer leads.
    #[inline(never)]
    fn lookup_by_key(&self, table: &TableReader, at: usize) -> Option<HeldBlock> {
        let handle = handle_of(table, at);
        let counts = self.counts.mine();
        if let Some(Entry::Block(resident)) = self.entry(&key_of(table, handle)) {
            counts.hits.fetch_add(1, Relaxed);
            if self.kinds.of == Cached::Everything {
                // It was kept while nobody had this reader of its table. In an entry of its own: the one before takes its pointer with it.
                let again = Resident::new(resident.block().clone());
                self.keep_block(table, at, &again, table.warm(handle.length.into()));
            }
            prefetch_all(resident.block().searched());
            return Some(HeldBlock::resident(resident));
        }
        let found = self.block_of_pinned(table, at);
        if found.is_none() {
            counts.misses.fetch_add(1, Relaxed);
        }
        found
    }

    /// Drops the blocks of a table that has left the tree, so that others can use their memory at once. Its rows stay
    /// until they are evicted: nothing records which rows there are.
    pub(crate) fn forget(&self, meta: &TableMeta) {
        let Some(table) = meta.attachment.get::<TableReader>() else { return };
        self.forget_pinned(table);
        self.forget_units(table);
        self.forget_partitions(table);
    }

    /// Drops the blocks and spans of a table.
    fn forget_units(&self, table: &TableReader) {
        for &handle in table.handles_in(0..u64::MAX) {
            self.entries.remove(&key_of(table, handle));
        }
        self.forget_spans(table);
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let sum = |count: fn(&Counts) -> &AtomicU64| {
            self.counts.iter().map(|counts| count(counts).load(Relaxed)).sum()
        };
        CacheCounts {
            hits: sum(|counts| &counts.hits),
            misses: sum(|counts| &counts.misses),
            reads: sum(|counts| &counts.reads),
            read_nanos: sum(|counts| &counts.read_nanos),
            bytes: self.entries.bytes() + self.attached_bytes.load(Relaxed),
            capacity: self.capacity.load(Relaxed),
        }
    }
}

impl Keeper for TableCache {
    fn has(&self, [table, offset]: Tag) -> bool {
        self.entries.contains_key(&(TableId(table), offset))
    }

    fn evict(&self, [table, offset]: Tag) {
        self.entries.remove(&(TableId(table), offset));
    }
}
