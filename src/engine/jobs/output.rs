//! Output: what a job writes, as tables in packs.
//!
//! * A flush writes one pack, whatever its size: each pack has a sync of its own.
//! * A compaction or an ingest may be much larger than a memtable. It begins a new pack when one is full. Otherwise
//!   tables that live on would hold the space of dead tables whose keys are far away.
//! * A rewrite takes whole tables over. Its packs are like a compaction's.
//! * In a store on several devices, a job has a pack on each that it writes to at the same time. The [placer](crate::policy::placer)
//!   says where each table goes. At the end all of them are synced at once.
//! * Tables that are files of their own take no preallocated packs. They stand for stores that make a file, and its
//!   name durable, when they need it.
//!
//! Invariant: the names of all packs are durable before the output is handed to an edit. They are made so ahead
//! ([`Preallocator`](crate::engine::space::preallocator::Preallocator)), or else once, at the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use super::context::JobContext;
use super::value_output::{ValueOutput, WrittenValues, is_separated};
use crate::catalog::TableMeta;
use crate::engine::jobs::compaction_iterator::{KeptRange, Sink};
use crate::error::Result;
use crate::format::edit::{PackRecord, TableRecord};
use crate::options::PackLayout;
use crate::store::files::device::Named;
use crate::store::files::meter::WriteCause;
use crate::store::files::pack::{PackStore, PackWriter, Sealing};
use crate::store::table::{TableBuilder, TableReader, TableSettings, copy_table};
use crate::types::{
    DeviceId, Holders, KeyRange, KeyRanges, KeySum, Kind, LEVELS, PackId, RangeTombstone, Stamp, TableId,
    UpperBound,
};

/// So many packs of a job may be on their way to being durable: each of them has a file open.
const SEALING_MAX: usize = 16;

/// What kind of job writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writing {
    /// A memtable of about this many bytes.
    Flush { bytes: u64 },
    /// Tables of so many bytes.
    Compaction { bytes: u64 },
    /// Tables of this many bytes together, as they are.
    Rewrite { bytes: u64 },
    /// Nobody knows how much.
    Ingest,
}

impl Writing {
    fn cause(self) -> WriteCause {
        match self {
            Self::Flush { .. } | Self::Ingest => WriteCause::Flush,
            Self::Compaction { .. } => WriteCause::Compaction,
            Self::Rewrite { .. } => WriteCause::Rewrite,
        }
    }

    /// Bytes at which a pack is full, where those of other kinds of jobs are full at `bytes_max`.
    fn pack_bytes_max(self, bytes_max: u64) -> u64 {
        match self {
            Self::Flush { .. } => u64::MAX,
            Self::Compaction { .. } | Self::Rewrite { .. } | Self::Ingest => bytes_max,
        }
    }

    /// The number of packs to expect if they are full at `bytes_max`.
    fn packs(self, bytes_max: u64) -> usize {
        match self {
            Self::Flush { .. } | Self::Ingest => 1,
            Self::Compaction { bytes } | Self::Rewrite { bytes } => {
                usize::try_from(bytes.div_ceil(bytes_max)).unwrap_or(usize::MAX)
            }
        }
    }

    /// The bytes to expect of the next pack if packs are full at `bytes_max`.
    fn next_pack_bytes(self, bytes_max: u64) -> u64 {
        match self {
            Self::Flush { bytes } => bytes,
            Self::Compaction { bytes } | Self::Rewrite { bytes } => bytes.min(bytes_max),
            Self::Ingest => bytes_max,
        }
    }
}

/// Tables and packs of a job that is still running. Dropped without [`Output::finish`], it removes its packs.
pub(crate) struct Output<C> {
    pub(super) jobs: C,
    writing: Writing,
    pub(super) settings: TableSettings,
    /// Where the job goes, if it goes there as a whole.
    place: Option<DeviceId>,
    /// The pack of the current table.
    pack: Option<PackWriter>,
    /// Packs on other devices that are not full.
    aside: Vec<PackWriter>,
    /// Packs that are being made durable.
    sealing: Vec<Sealing>,
    table: Option<TableBuilder>,
    /// Values that lie apart.
    pub(super) values: ValueOutput,
    /// Which keys the current table has; `None` if that is not counted.
    keys: Option<KeySum>,
    /// Keys of which the cache has had blocks of the inputs.
    hot: Option<Arc<KeyRanges>>,
    /// Keys of inputs that users read much from their device.
    read: Option<KeyRanges>,
    /// The range tombstones that no table has yet, fragmented.
    range_tombstones: VecDeque<KeptRange>,
    packs: SealedPacks,
    /// When the last of the packs on each device got its name.
    named: BTreeMap<DeviceId, Named>,
    tables: Vec<TableRecord>,
    open: Vec<(TableId, Arc<TableReader>)>,
}

/// Packs that are whole but that no edit names yet. Dropped before [`SealedPacks::commit`], it removes them.
pub(crate) struct SealedPacks {
    store: Arc<PackStore>,
    records: Vec<PackRecord>,
    committed: bool,
}

/// What a finished job hands to its edit.
pub(crate) struct Finished {
    pub(crate) tables: Vec<TableRecord>,
    pub(crate) values: WrittenValues,
    /// Those that stay open.
    pub(crate) open: Vec<(TableId, Arc<TableReader>)>,
    pub(crate) packs: SealedPacks,
}

impl<C: Deref<Target = JobContext>> Output<C> {
    /// Output of a job that has written nothing yet.
    pub(crate) fn new(jobs: C, writing: Writing, settings: TableSettings) -> Self {
        let packs = SealedPacks { store: jobs.cache.packs().clone(), records: Vec::new(), committed: false };
        Self {
            jobs,
            writing,
            settings,
            place: None,
            pack: None,
            aside: Vec::new(),
            sealing: Vec::new(),
            table: None,
            values: ValueOutput::default(),
            keys: None,
            hot: None,
            read: None,
            range_tombstones: VecDeque::new(),
            packs,
            named: BTreeMap::new(),
            tables: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The same, whose tables tell which keys they have, by sums with this seed. Of each key it gets one version alone.
    pub(crate) fn keyed(self, seed: Option<u64>) -> Self {
        Self { keys: seed.map(KeySum::new), ..self }
    }

    /// The same, whose blocks with keys in `hot` go into the cache.
    pub(crate) fn warming(self, hot: Option<Arc<KeyRanges>>) -> Self {
        Self { hot, ..self }
    }

    /// The same, whose tables are placed as such that are read much if they begin in `read`.
    pub(crate) fn placing_hot(self, read: Option<KeyRanges>) -> Self {
        Self { read, ..self }
    }

    /// The same, all on one device.
    pub(crate) fn at(self, place: DeviceId) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Ends the current table, and returns those of the keyspace at hand. What comes is another one's, written as
    /// `settings` say, to the same pack.
    pub(crate) fn turn_to(&mut self, settings: TableSettings) -> Result<(Vec<TableRecord>, WrittenValues)> {
        self.cut(&UpperBound::Unbounded)?;
        let values = self.take_values()?;
        self.settings = settings;
        Ok((std::mem::take(&mut self.tables), values))
    }

    /// Starts a table with `key`, and a pack, where there is none.
    fn begin(&mut self, key: &[u8]) -> Result<()> {
        if self.table.is_some() {
            return Ok(());
        }
        let bytes = self.jobs.settings.load().policy.cutter.table_bytes();
        let is_hot = self.read.as_ref().is_some_and(|read| read.contains(key));
        self.begin_pack(bytes, is_hot)?;
        let new = |pack| {
            let table = TableBuilder::new(self.settings.clone(), self.jobs.ids.table(), pack);
            table.remembering(self.hot.clone())
        };
        self.table = self.pack.as_mut().map(new);
        Ok(())
    }

    /// Takes the pack for a table of about `bytes`, and starts one where there is none.
    fn begin_pack(&mut self, bytes: u64, is_hot: bool) -> Result<()> {
        let place = self.place(bytes, is_hot);
        if self.pack.as_ref().is_some_and(|pack| pack.device() != place) {
            self.aside.extend(self.pack.take());
        }
        if self.pack.is_none() {
            self.pack = match self.aside.iter().position(|pack| pack.device() == place) {
                Some(at) => Some(self.aside.swap_remove(at)),
                None => Some(self.new_pack(place)?),
            };
            if self.writing == Writing::Ingest
                && let Some(pack) = &self.pack
            {
                // It ends when its user likes.
                self.packs.store.devices().note_ended(pack.id());
            }
        }
        if let Some(mut pack) = self.pack.take() {
            // Home, if the device has gone meanwhile.
            self.place = self.place.map(|_| pack.device());
            self.note_named(&pack);
            pack.expect(bytes);
            self.pack = Some(pack);
        }
        Ok(())
    }

    /// Starts a pack for values.
    pub(super) fn begin_value_pack(&mut self, bytes: u64) -> Result<PackWriter> {
        // They live as long as what lies deepest.
        let deepest = LEVELS as u8 - 1;
        let place = self.place.unwrap_or_else(|| self.jobs.place(deepest, bytes, false));
        let pack = self.new_pack(place)?;
        if self.writing == Writing::Ingest {
            self.packs.store.devices().note_ended(pack.id());
        }
        self.note_named(&pack);
        Ok(pack)
    }

    /// The name of `pack` is to be durable before the end.
    fn note_named(&mut self, pack: &PackWriter) {
        let named = self.named.entry(pack.device()).or_insert(pack.named());
        *named = pack.named().max(*named);
    }

    /// The device for a table of about `bytes`.
    fn place(&mut self, bytes: u64, is_hot: bool) -> DeviceId {
        if let Some(place) = self.place {
            return place;
        }
        let place = self.jobs.place(self.settings.level, bytes, is_hot);
        if self.jobs.settings.load().policy.placer.places_jobs() {
            self.place = Some(place);
        }
        place
    }

    fn new_pack(&self, place: DeviceId) -> Result<PackWriter> {
        let (jobs, store, cause) = (&self.jobs, &self.packs.store, self.writing.cause());
        let settings = jobs.settings.load();
        match settings.policy.files.packs {
            PackLayout::OneTable => {
                let bytes = self.writing.next_pack_bytes(settings.policy.cutter.table_bytes());
                store.create(jobs.ids.pack(), place, cause, bytes)
            }
            PackLayout::Many { bytes_max } => {
                let bytes = self.writing.next_pack_bytes(bytes_max);
                let begun = self.packs.records.len() + self.aside.len() + self.sealing.len() + 1;
                let coming = self.writing.packs(bytes_max).saturating_sub(begun);
                let pack = store.create_pooled(|| jobs.ids.pack(), place, cause, (bytes, coming))?;
                if store.devices().member(place).recycled.wants_packs(pack.named()) {
                    jobs.preallocator.ask();
                }
                Ok(pack)
            }
        }
    }

    /// Takes a whole table over: the same table, at another place. Tells `progress` how much of it has been read.
    pub(crate) fn copy(&mut self, table: &TableMeta, progress: impl FnMut(u64)) -> Result<()> {
        let file = self.packs.store.file(table.extent.pack)?;
        self.begin_pack(table.extent.length, self.jobs.is_hot(table))?;
        let Some(pack) = self.pack.as_mut() else { return Ok(()) };
        let extent = copy_table(&file, table, pack, progress)?;
        self.tables.push(TableRecord { extent, ..table.record() });
        self.seal_full()
    }

    /// Ends the pack if it is full.
    fn seal_full(&mut self) -> Result<()> {
        if self.is_full(self.pack.as_ref()) { self.seal() } else { Ok(()) }
    }

    pub(super) fn is_full(&self, pack: Option<&PackWriter>) -> bool {
        match (self.jobs.settings.load().policy.files.packs, pack) {
            (PackLayout::OneTable, _) => true,
            (PackLayout::Many { bytes_max }, Some(pack)) => {
                pack.len() >= self.writing.pack_bytes_max(bytes_max)
            }
            (PackLayout::Many { .. }, None) => false,
        }
    }

    fn seal(&mut self) -> Result<()> {
        self.pack.take().map_or(Ok(()), |pack| self.seal_pack(pack))
    }

    /// Ends `pack`. One of a single table is durable then, as LevelDB's are; others become so together.
    pub(super) fn seal_pack(&mut self, pack: PackWriter) -> Result<()> {
        match self.jobs.settings.load().policy.files.packs {
            PackLayout::OneTable => self.packs.records.push(pack.seal()?),
            PackLayout::Many { .. } => self.sealing.push(pack.begin_seal()?),
        }
        self.end_sealed()
    }

    /// Lets go of the files of packs that are durable by now, and waits for some where too many are not.
    fn end_sealed(&mut self) -> Result<()> {
        let beyond = |sealing: &Vec<Sealing>| (sealing.len() > SEALING_MAX).then_some(0);
        while let Some(at) = self.sealing.iter().position(Sealing::is_done).or_else(|| beyond(&self.sealing))
        {
            let sealing = self.sealing.remove(at);
            self.packs.records.push(sealing.finish()?);
        }
        Ok(())
    }

    /// Completes everything and makes it durable: first the contents, on all devices at once, then, with one sync for each, the
    /// names that are not durable yet.
    pub(crate) fn finish(mut self) -> Result<Finished> {
        self.cut(&UpperBound::Unbounded)?;
        let values = self.take_values()?;
        self.seal()?;
        self.seal_values()?;
        self.end_sealed()?;
        for pack in std::mem::take(&mut self.aside) {
            self.sealing.push(pack.begin_seal()?);
        }
        for sealing in std::mem::take(&mut self.sealing) {
            self.packs.records.push(sealing.finish()?);
        }
        let named: Vec<_> = std::mem::take(&mut self.named).into_iter().collect();
        // Other jobs' names, and the log's, may be among those whose fate is unknown after a failure.
        let synced = self.packs.store.devices().sync_names(&named);
        synced.map_err(|error| self.jobs.alarm.poison(error))?;
        Ok(Finished { tables: self.tables, values, open: self.open, packs: self.packs })
    }
}

impl<C: Deref<Target = JobContext>> Sink for Output<C> {
    fn set_range_tombstones(&mut self, tombstones: Vec<KeptRange>) {
        self.range_tombstones = tombstones.into();
    }

    fn has_range_tombstones(&self) -> bool {
        !self.range_tombstones.is_empty()
    }

    fn reaches(&self, bound: &UpperBound) -> bool {
        self.table.is_some()
            || self.range_tombstones.front().is_some_and(|next| bound.admits(&next.tombstone.range.start))
    }

    fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8], held: Option<Holders>) -> Result<()> {
        if is_separated(&self.settings, stamp, value) {
            let pointer = self.separate(key, stamp, value)?;
            self.add(key, Stamp::new(stamp.seq(), Kind::Separated), &pointer, held)?;
            self.recycle(pointer);
            return Ok(());
        }
        self.begin(key)?;
        let (Some(table), Some(pack)) = (self.table.as_mut(), self.pack.as_mut()) else { return Ok(()) };
        if let Some(holders) = held {
            table.hold(holders, (key.len() + value.len()) as u64);
        }
        table.add(key, stamp, value, pack)?;
        if let Some(keys) = &mut self.keys {
            keys.add(key);
        }
        Ok(())
    }

    fn table_bytes(&self) -> u64 {
        match (&self.table, &self.pack) {
            (Some(table), Some(pack)) => table.bytes(pack),
            _ => 0,
        }
    }

    /// Ends the pack, too, where that is full.
    fn cut(&mut self, bound: &UpperBound) -> Result<()> {
        let tombstones = take_before(&mut self.range_tombstones, bound);
        if let Some(first) = tombstones.first() {
            self.begin(&first.tombstone.range.start)?;
        }
        let (Some(mut table), Some(pack)) = (self.table.take(), self.pack.as_mut()) else { return Ok(()) };
        for KeptRange { tombstone: RangeTombstone { range, .. }, held } in &tombstones {
            if let Some(holders) = held {
                table.hold(*holders, (range.start.len() + range.end.as_bytes().len()) as u64);
            }
        }
        table.set_range_tombstones(tombstones.into_iter().map(|kept| kept.tombstone).collect());
        let hot_blocks = table.take_hot_blocks(pack)?;
        let mut record = table.finish(pack)?;
        self.jobs.cache.keep_written(record.id, hot_blocks);
        record.keys = self.keys.filter(|_| record.range_tombstones == 0);
        self.keys = self.keys.map(|keys| KeySum::new(keys.seed));
        // Entries from outside have no number yet.
        if self.writing != Writing::Ingest
            && let Some(open) = self.jobs.cache.written(&record, pack)?
        {
            self.open.push((record.id, open));
        }
        self.tables.push(record);
        pack.drain()?;
        self.seal_full()
    }
}

/// Takes what lies before `bound` out of fragmented tombstones.
pub(in crate::engine) fn take_before(
    tombstones: &mut VecDeque<KeptRange>,
    bound: &UpperBound,
) -> Vec<KeptRange> {
    let mut before = Vec::new();
    let mut behind = Vec::new();
    while let Some(mut kept) = tombstones.front().cloned()
        && bound.admits(&kept.tombstone.range.start)
    {
        tombstones.pop_front();
        if let UpperBound::Excluded(start) = bound
            && *bound < kept.tombstone.range.end
        {
            let end = std::mem::replace(&mut kept.tombstone.range.end, bound.clone());
            if !planted!("range-tombstone-lost-at-a-fence") {
                let range = KeyRange::half_open(start.clone(), end);
                let tombstone = RangeTombstone { range, ..kept.tombstone };
                behind.push(KeptRange { tombstone, ..kept });
            }
        }
        before.push(kept);
    }
    behind.into_iter().rev().for_each(|tombstone| tombstones.push_front(tombstone));
    before
}

impl SealedPacks {
    pub(crate) fn records(&self) -> &[PackRecord] {
        &self.records
    }

    /// These and `more`, of which no edit names any.
    pub(crate) fn and(mut self, mut more: Self) -> Self {
        self.records.append(&mut more.records);
        self
    }

    /// Removes those packs that are not `named`.
    pub(crate) fn keep(&mut self, named: &BTreeSet<PackId>) {
        let (kept, others) = self.records.drain(..).partition(|record| named.contains(&record.id));
        self.records = kept;
        drop(Self { store: self.store.clone(), records: others, committed: false });
    }

    /// From here on an edit may name the packs: they stay whatever happens.
    pub(crate) fn commit(&mut self) {
        self.committed = true;
    }
}

impl Drop for SealedPacks {
    fn drop(&mut self) {
        // Whoever installs them drops them when the tables are seen.
        self.records.iter().for_each(|record| self.store.devices().note_ended(record.id));
        if !self.committed && !planted!("failed-output-left-behind") {
            for record in &self.records {
                // Nothing refers to it; if this fails, the next open removes it. It does not become a recycled file:
                // those count as space that can be made on a full disk, so a job would begin anew for ever in space
                // that it has taken itself.
                let _ = self.store.remove(PackId(record.id.0));
            }
        }
    }
}
