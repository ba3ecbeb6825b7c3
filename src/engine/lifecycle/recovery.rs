//! Recovery: from files to an engine.
//!
//! # A new store
//!
//! It is created in this order: IDENTITY, with its name durable; the manifest; CURRENT, which completes the store.
//! Until CURRENT exists there can be neither a pack nor a log segment. What a creation that was cut off has left is
//! made anew.
//!
//! # Open
//!
//! 1. Take the lock. Read IDENTITY.
//! 2. Read the manifest that CURRENT names: it gives the catalog.
//! 3. Check that every pack is there and as long as when it was sealed.
//! 4. Read the log from the catalog's floor: it gives the memtables. Nothing is written up to here, and a store that
//!    is opened for reading alone stops here.
//! 5. Cut the torn end of the log ([`wal::Recovered::repair`]). Start a new segment.
//! 6. Switch to a new manifest, which starts with a snapshot.
//! 7. Remove files that nothing refers to.
//!
//! Invariant: a power cut between any two of these steps leaves a store that opens to the same state.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::assemble::{Recovered, assemble};
use super::devices;
use super::engine::Engine;
use super::opening::Opening;
use crate::batch::DEFAULT_KEYSPACE;
use crate::catalog::{Catalog, ExtentSink, Lease, Version};
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Sealed, Tree, View, common_prefix, new_memtable};
use crate::engine::log::writer::Writer;
use crate::engine::schedule::preallocate::PreallocateThread;
use crate::engine::shared::settings::{Limits, Settings, keyspace_record};
use crate::engine::space::reclaim::{ReclaimThread, Reclaimer, gaps};
use crate::engine::space::reserve::Reserve;
use crate::env::sync::{OrderedMutex, Rank};
use crate::env::{Access, FileLock, Priority};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Malformed;
use crate::format::batch::Ops;
use crate::format::edit::{Edit, KeyspaceChange, PackRecord, TreeEdit};
use crate::format::identity::{Identity, StoreId};
use crate::format::names::FileName;
use crate::options::Descriptors;
use crate::store::files::device::Device;
use crate::store::files::devices::Devices;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::Meter;
use crate::store::files::pack::PackStore;
use crate::store::files::punch::stored;
use crate::store::manifest::{Loaded, Manifest};
use crate::store::memtable::{ChunkPool, Memtable};
use crate::store::wal::{self, Wal};
use crate::store::{device_list, identity};
use crate::types::{DeviceId, Epoch, Extent, KeyspaceId, PackId, SegmentId, Seq, TableId};

/// A store that is read beside a writer is looked at so often before what was found is believed.
const READ_ATTEMPTS_MAX: usize = 100;

/// Byte ranges of packs that are dead and take up space.
type StoredGaps = BTreeMap<PackId, Vec<Range<u64>>>;

/// What the log gives each keyspace.
type Memtables = BTreeMap<KeyspaceId, Recovering>;

/// Memtables of a keyspace that is being recovered.
struct Recovering {
    active: Arc<Memtable>,
    /// Newest first.
    sealed: Vec<Sealed>,
}

impl Recovering {
    fn new(chunks: &Arc<ChunkPool>, version: &Version) -> Self {
        Self { active: new_memtable(chunks, &common_prefix(version, None)), sealed: Vec::new() }
    }

    /// Goes on in a new memtable if the one at hand has reached `bytes`. The log has been read up to `upto`.
    fn seal_full(&mut self, bytes: u64, upto: Seq, chunks: &Arc<ChunkPool>) {
        if self.active.bytes() >= bytes {
            let prefix = common_prefix(&Version::empty(), Some(&self.active));
            let memtable = std::mem::replace(&mut self.active, new_memtable(chunks, &prefix));
            self.sealed.insert(0, Sealed { memtable, upto });
        }
    }

    fn first_seq(&self) -> Option<Seq> {
        let sealed = self.sealed.iter().map(|sealed| &sealed.memtable);
        sealed.chain([&self.active]).filter_map(|memtable| memtable.min_seq()).min()
    }
}

/// Opens a store and starts its threads.
pub(crate) fn open(opening: &Opening) -> Result<Arc<Engine>> {
    opening.options.validate()?;
    if opening.read_only {
        return open_beside_writer(opening);
    }
    match attempt(opening) {
        // The reserve is there for this, too.
        Err(error) if error.kind() == ErrorKind::DiskFull => {
            let reserve = opening.dir.join(FileName::Reserve.to_string());
            if opening.env.remove(&reserve).is_ok() { attempt(opening) } else { Err(error) }
        }
        opened => opened,
    }
}

/// Opens a store for reading alone. A writer may be at work: whatever vanishes or changes while it is being read shows as
/// damage, of which another look says something else, or is told by [`Store::check_held`].
fn open_beside_writer(opening: &Opening) -> Result<Arc<Engine>> {
    let mut last: Option<String> = None;
    for _ in 1..READ_ATTEMPTS_MAX {
        match attempt(opening) {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            // A device that the writer lets go is missing, until DEVICES is read again.
            Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotFound) => {
                let found = error.to_string();
                if last.as_ref() == Some(&found) {
                    return Err(error);
                }
                last = Some(found);
            }
            opened => return opened,
        }
    }
    attempt(opening)
}

fn attempt(opening: &Opening) -> Result<Arc<Engine>> {
    let meter = Arc::new(Meter::default());
    let Home { device, id, lock, lists_devices } = open_home(opening, &meter)?;
    let chunk_bytes = Limits::new(&opening.options, &*opening.env).chunk_bytes;
    let chunks = Arc::new(ChunkPool::new(chunk_bytes));
    let device = Arc::new(device);
    let listed = if lists_devices { Some(device_list::read(&device)?) } else { None };
    let devices = Arc::new(devices::open(opening, (&device, id), listed, &meter)?);
    let store = Store { opening, device, devices, id, chunks };
    let found = Found::list(&store.device)?;
    if !found.current {
        store.refuse_or_create(&found)?;
    }
    let engine = Arc::new(store.load(lock, meter)?);
    if !opening.read_only {
        // Threads that have started hold the engine, and with it the lock, until it is closed.
        engine.start_work().inspect_err(|_| {
            // A thread that is missing is not to be waited for.
            engine.stop_work();
            engine.jobs.events.stop();
        })?;
    }
    Ok(engine)
}

/// The directory that has log and manifest.
struct Home {
    device: Device,
    id: StoreId,
    lock: Option<FileLock>,
    /// Whether there are others.
    lists_devices: bool,
}

/// Finds or makes the directory, takes its lock unless it is only read, and finds out whose it is.
fn open_home(opening: &Opening, meter: &Arc<Meter>) -> Result<Home> {
    let env = &opening.env;
    let creates = !opening.read_only && !opening.must_exist;
    if creates {
        env.create_dir(&opening.dir).map_err(|e| Error::io("create the directory", &opening.dir, e))?;
    }
    let absent =
        || Error::new(ErrorKind::NotFound, format!("there is no store in {}", opening.dir.display()));
    let dir = env.canonical(&opening.dir).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => absent(),
        _ => Error::io("find the directory", &opening.dir, e),
    })?;
    let device = Device::new(env.clone(), dir, meter.clone());
    let ours = |name: &FileName| !matches!(name, FileName::Lock | FileName::IdentityTemp | FileName::Reserve);
    if !creates && !device.list()?.iter().any(ours) {
        return Err(absent());
    }
    let unlocked = opening.read_only || planted!("store-not-locked");
    let lock = if unlocked { None } else { Some(device.lock()?) };
    // Looked at again under the lock: another process may have created the store meanwhile.
    let names = device.list()?;
    if names.contains(&FileName::Identity) {
        let identity = identity::read(&device)?;
        if identity.device != DeviceId(0) {
            let what = format!("the directory is device {} of a store", identity.device);
            return Err(Error::corruption(&device.path(FileName::Identity), 0, what));
        }
        if !opening.read_only && !names.contains(&FileName::Current) {
            // A creation that failed may have left the name where later syncs pass over it: it is given once more.
            identity::write(&device, &identity)?;
        }
        let lists_devices = names.contains(&FileName::Devices);
        Ok(Home { device, id: identity.store, lock, lists_devices })
    } else {
        if let Some(name) = names.iter().copied().find(ours) {
            let what = format!("IDENTITY is missing, but the directory holds {name} of a store");
            return Err(Error::corruption(&device.path(FileName::Identity), 0, what));
        }
        if !creates {
            return Err(absent());
        }
        let identity = Identity { store: StoreId(env.random()), device: DeviceId(0) };
        identity::write(&device, &identity)?;
        Ok(Home { device, id: identity.store, lock, lists_devices: false })
    }
}

/// What lies in the directory.
struct Found {
    current: bool,
    packs: Vec<PackId>,
    segments: Vec<SegmentId>,
    manifests: Vec<u64>,
}

impl Found {
    fn list(device: &Device) -> Result<Self> {
        let mut found =
            Self { current: false, packs: Vec::new(), segments: Vec::new(), manifests: Vec::new() };
        for name in device.list()? {
            match name {
                FileName::Current => found.current = true,
                FileName::Pack(id) => found.packs.push(id),
                FileName::Wal(id) => found.segments.push(id),
                FileName::Manifest(number) => found.manifests.push(number),
                _ => {}
            }
        }
        Ok(found)
    }

    fn next_segment(&self) -> SegmentId {
        self.segments.iter().max().map_or(SegmentId(1), |id| id.next())
    }

    fn next_manifest(&self) -> u64 {
        self.manifests.iter().max().map_or(1, |number| number + 1)
    }
}

/// A store on the way to being open.
struct Store<'a> {
    opening: &'a Opening,
    /// Home.
    device: Arc<Device>,
    devices: Arc<Devices>,
    id: StoreId,
    /// Memory for memtables.
    chunks: Arc<ChunkPool>,
}

impl Store<'_> {
    /// There is no CURRENT: either the creation was cut off, and goes on here, or the store has lost it.
    fn refuse_or_create(&self, found: &Found) -> Result<()> {
        let current = self.device.path(FileName::Current);
        if !found.segments.is_empty() || !found.packs.is_empty() {
            return Err(Error::corruption(&current, 0, "the file is missing, but the store has data"));
        }
        if self.opening.read_only {
            return Err(Error::new(ErrorKind::NotFound, "the store was never completely created"));
        }
        for &number in &found.manifests {
            self.device.remove(FileName::Manifest(number))?;
        }
        let mut edit = Edit { number: crate::types::EditNo(1), ..Edit::default() };
        let counters = &mut edit.counters;
        (counters.table, counters.pack, counters.epoch) = (TableId(1), PackId(1), Epoch(1));
        (counters.segment, counters.keyspace) = (found.next_segment(), DEFAULT_KEYSPACE.next());
        let record = keyspace_record(DEFAULT_KEYSPACE, "default", &self.opening.options.keyspace);
        edit.keyspaces.extend(KeyspaceChange::creating(&record));
        // No log segment exists yet; the floor of 0 asks for none.
        Manifest::create(&self.device, self.id, found.next_manifest(), &edit)?;
        Ok(())
    }

    fn load(&self, lock: Option<FileLock>, meter: Arc<Meter>) -> Result<Engine> {
        let loaded = Manifest::load(&self.device)?;
        let found = self.found()?;
        let reclaimer = Arc::new(Reclaimer::default());
        let mut catalog = self.catalog(&loaded, &reclaimer)?;
        let limits = Limits::new(&self.opening.options, &*self.opening.env);
        let (packs, stored) = self.check_packs(&catalog)?;
        let open = |name| self.open(name, Access::ReadWrite);
        let segments = wal::segments(&self.device, catalog.counters.wal_floor, open)?;
        if self.opening.read_only {
            self.check_held(&catalog)?;
        }
        let (memtables, last_seq, log) = self.replay(&catalog, &segments, &limits)?;
        if self.opening.read_only {
            self.check_prefix(&catalog, last_seq)?;
        }
        reclaimer.register_all(&catalog, &stored);

        let (mut writer, mut manifest) = (None, None);
        if !self.opening.read_only {
            log.repair(&self.device)?;
            let segment = catalog.counters.segment.max(found.next_segment());
            let home = self.devices.home();
            let (device, recycled) = (home.device.clone(), home.recycled.clone());
            let mut wal = Wal::open(device, recycled, limits.segment_bytes, segment, &log.segments)?;
            let unflushed = memtables.values().filter_map(Recovering::first_seq).min();
            let unflushed = unflushed.filter(|_| !planted!("recovered-log-released"));
            let floor = unflushed.map_or(segment, |first| wal.floor(first));
            let mut counters = catalog.counters;
            counters.segment = wal.next_id();
            counters.wal_floor = floor;
            // Segments that held the newest entries may go with a dropped keyspace; their numbers must not come back.
            counters.seq = last_seq;
            if !planted!("pack-id-reused-after-a-crash") {
                counters.pack = counters.pack.max(found.packs.iter().max().map_or(PackId(1), |id| id.next()));
            }
            let edit = Edit { number: catalog.number.next(), counters, ..Edit::default() };
            catalog = self.apply(&catalog, &edit, &loaded.path, &mut |_| Lease::none())?;
            let number = found.next_manifest();
            manifest = Some(Manifest::create(&self.device, self.id, number, &catalog.snapshot())?);
            wal.release(floor);
            let active_bytes = memtables.values().map(|recovered| recovered.active.bytes()).sum();
            writer = Some(OrderedMutex::new(Rank::Writer, Writer::new(wal, last_seq, active_bytes)));
            self.remove_orphans(&catalog, manifest.as_ref().map_or(0, Manifest::number), floor)?;
        }
        let reserve = match self.opening.read_only {
            true => Reserve::none(),
            false => Reserve::open(&self.device, self.opening.options.reserve_bytes)?,
        };
        let trees = self.trees(&catalog, memtables);
        let recovered = Recovered {
            devices: self.devices.clone(),
            chunks: self.chunks.clone(),
            lock,
            packs,
            meter,
            reclaimer,
            catalog,
            manifest,
            writer,
            reserve,
            trees,
            last_seq,
            replayed: if self.opening.read_only { log.segments } else { Vec::new() },
            limits,
        };
        Ok(assemble(self.opening, recovered))
    }

    /// What lies at home, and the packs of all devices.
    fn found(&self) -> Result<Found> {
        let mut found = Found::list(&self.device)?;
        for member in self.devices.members().iter().skip(1) {
            found.packs.extend(Found::list(&member.device)?.packs);
        }
        Ok(found)
    }

    /// The catalog that the manifest's edits make, its tables without leases.
    fn assemble(&self, loaded: &Loaded) -> Result<Catalog> {
        loaded.edits.iter().try_fold(Catalog::empty(), |catalog, edit| {
            self.apply(&catalog, edit, &loaded.path, &mut |_| Lease::none())
        })
    }

    fn catalog(&self, loaded: &Loaded, reclaimer: &Arc<Reclaimer>) -> Result<Catalog> {
        let catalog = self.assemble(loaded)?;
        // Tables take their leases only now: those that came and went in between have no space to give back.
        let sink: Arc<dyn ExtentSink> = reclaimer.clone();
        let mut adopt = |record: &crate::format::edit::TableRecord| Lease::new(sink.clone(), record.extent);
        self.apply(&Catalog::empty(), &catalog.snapshot(), &loaded.path, &mut adopt)
    }

    fn apply(
        &self,
        catalog: &Catalog,
        edit: &Edit,
        manifest: &std::path::Path,
        adopt: &mut dyn FnMut(&crate::format::edit::TableRecord) -> Lease,
    ) -> Result<Catalog> {
        catalog.apply(edit, adopt).map_err(|inconsistent| {
            Error::corruption(manifest, 0, format!("edit {} does not fit: {inconsistent}", edit.number))
        })
    }

    /// Opens a pack or a log segment. The writer of a store that is only read may give it up any time, so it is held.
    fn open(&self, name: FileName, access: Access) -> Result<StoreFile> {
        self.open_on(&self.device, name, access)
    }

    /// The same, on any of the devices.
    fn open_on(&self, device: &Device, name: FileName, access: Access) -> Result<StoreFile> {
        let is_log = matches!(name, FileName::Wal(_));
        let holds = self.opening.read_only && !(is_log && planted!("reader-does-not-hold-the-log"));
        if holds { device.hold(name) } else { device.open(name, access) }
    }

    /// Fails with `Busy` if the writer may have given up tables or log that `catalog` needs before they were held. The
    /// manifest, read again, tells (see [`RecycledFiles`] for why that is enough).
    fn check_held(&self, catalog: &Catalog) -> Result<()> {
        let newer = self.assemble(&Manifest::load(&self.device)?)?;
        let extents: HashSet<Extent> = newer.live_extents().collect();
        // Tables, not packs alone: a dead one may be punched out of a pack that lives on.
        let is_blind = planted!("reader-that-held-too-late");
        let tables_stand = is_blind || catalog.live_extents().all(|extent| extents.contains(&extent));
        if tables_stand && newer.counters.wal_floor == catalog.counters.wal_floor {
            return Ok(());
        }
        Err(overtaken())
    }

    /// Fails with `Busy` if something that is not in the log came after `catalog` and before the log's last batch: an
    /// ingest, the drop of a keyspace, a change of the time to live. Catalog and log without it would be no prefix of
    /// the history. The manifest, read once more after the log, tells; if it was written anew meanwhile, that is
    /// `Busy`, too.
    fn check_prefix(&self, catalog: &Catalog, last_seq: Seq) -> Result<()> {
        let loaded = Manifest::load(&self.device)?;
        // Its snapshot does not tell what came when.
        let is_anew = loaded.edits.first().is_some_and(|edit| edit.number > catalog.number);
        // Flushes say up to where, compactions and moves drop what they take.
        let ingests = |tree: &TreeEdit| {
            let before = tree.add.iter().any(|(_, table)| table.max_seq <= last_seq);
            before && tree.drop.is_empty() && tree.flushed.is_none()
        };
        let drops = |change: &KeyspaceChange| {
            matches!(change, KeyspaceChange::Drop(_) | KeyspaceChange::SetTtl { .. })
        };
        let mut newer = loaded.edits.iter().filter(|edit| edit.number > catalog.number);
        let misses = newer.any(|edit| edit.trees.iter().any(ingests) || edit.keyspaces.iter().any(drops));
        if (misses || is_anew) && !planted!("reader-misses-an-ingest") {
            return Err(overtaken());
        }
        Ok(())
    }

    /// Checks that no pack is shorter than when it was sealed: a shorter one has lost data. The packs of a store that
    /// is only read stay open. Also returns what of the packs is dead and still stored; the other gaps between live
    /// tables are holes.
    fn check_packs(&self, catalog: &Catalog) -> Result<(PackStore, StoredGaps)> {
        let (mut pinned, mut stored_gaps) = (BTreeMap::new(), gaps(catalog));
        for PackRecord { id, device, length } in catalog.packs().map(|pack| pack.record) {
            let member = self.devices.member(device);
            if member.id != device {
                let what = format!("I20: pack {id} is on device {device}, which is none of the store's");
                return Err(Error::corruption(&self.device.path(FileName::Devices), 0, what));
            }
            self.devices.note(id, device);
            let file = self.open_on(&member.device, FileName::Pack(id), Access::Read)?;
            let found = file.len()?;
            if found < length {
                return Err(file.corruption(found, format!("the pack ends here instead of at byte {length}")));
            }
            if let Some(gaps) = stored_gaps.get_mut(&id).filter(|gaps| !gaps.is_empty()) {
                // Where it cannot be told, all of them count: to punch a hole once more is harmless.
                *gaps = stored(&file, gaps).unwrap_or_else(|_| std::mem::take(gaps));
            }
            if self.opening.read_only {
                pinned.insert(id, Arc::new(file));
            }
        }
        let settings = Settings::new(&self.opening.options, &*self.opening.env);
        let per_table = match settings.policy.files.descriptors {
            Descriptors::PerPack => false,
            Descriptors::PerTable => true,
        };
        Ok((PackStore::new(self.devices.clone(), pinned, per_table), stored_gaps))
    }

    /// Puts the log's entries that are in no table into memtables.
    fn replay(
        &self,
        catalog: &Catalog,
        segments: &[(SegmentId, Arc<StoreFile>)],
        limits: &Limits,
    ) -> Result<(Memtables, Seq, wal::Recovered)> {
        let mut memtables = Memtables::new();
        let mut last_seq = catalog.counters.seq;
        // Keyspaces of the last batch: no other memtable has grown since it was looked at.
        let mut grown: Vec<KeyspaceId> = Vec::new();
        let mut replay = |first: Seq, ops: Ops<'_>| {
            // Between two batches, so that a flush never makes half of one durable.
            for id in grown.drain(..) {
                if let Some(recovered) = memtables.get_mut(&id) {
                    recovered.seal_full(limits.memtable_bytes, Seq(first.0.saturating_sub(1)), &self.chunks);
                }
            }
            for (op, seq) in ops.zip(first.0..) {
                let (op, seq) = (op?, Seq(seq));
                if !planted!("sequence-number-not-advanced") {
                    last_seq = last_seq.max(seq);
                }
                match catalog.keyspaces.get(&op.keyspace) {
                    Some(keyspace) if seq > keyspace.flushed => {
                        let recovered = memtables
                            .entry(op.keyspace)
                            .or_insert_with(|| Recovering::new(&self.chunks, &keyspace.version));
                        recovered.active.apply(seq, &op.action);
                        if grown.last() != Some(&op.keyspace) {
                            grown.push(op.keyspace);
                        }
                    }
                    // It is in a table, or its keyspace was dropped since.
                    Some(_) => {}
                    None if op.keyspace < catalog.counters.keyspace => {}
                    None => {
                        return Err(Malformed {
                            offset: 0,
                            what: "the log names a keyspace that never existed",
                        });
                    }
                }
            }
            Ok(())
        };
        let log = wal::recover(segments, catalog.counters.wal_floor, &mut replay)?;
        Ok((memtables, last_seq, log))
    }

    fn trees(&self, catalog: &Catalog, mut memtables: Memtables) -> Trees {
        let mut trees = Trees::new();
        for (&id, state) in catalog.keyspaces.iter() {
            let recovered =
                memtables.remove(&id).unwrap_or_else(|| Recovering::new(&self.chunks, &state.version));
            let Recovering { active, sealed } = recovered;
            // When what is in the log was written is not looked at.
            active.note_written(u64::MAX);
            sealed.iter().for_each(|sealed| sealed.memtable.note_written(u64::MAX));
            let view =
                View { active, sealed, version: state.version.clone(), buffer: None, dead: Arc::default() };
            let tree = Tree::new((*state.record).clone(), self.chunks.clone(), view);
            note_range_deletes(&tree);
            trees.insert(id, Arc::new(tree));
        }
        trees
    }

    /// Removes files that nothing refers to. Needs no barrier: what comes back is removed again.
    fn remove_orphans(&self, catalog: &Catalog, manifest: u64, floor: SegmentId) -> Result<()> {
        for member in self.devices.members().iter() {
            for name in member.device.list()? {
                let orphan = match name {
                    FileName::Pack(id) => {
                        let is_live = catalog.pack(id).is_some_and(|pack| pack.record.device == member.id);
                        !is_live && !planted!("orphaned-packs-kept")
                    }
                    FileName::Wal(id) => id < floor,
                    FileName::Manifest(number) => number != manifest,
                    FileName::CurrentTemp
                    | FileName::IdentityTemp
                    | FileName::DevicesTemp
                    | FileName::Recycled(_) => true,
                    FileName::Current
                    | FileName::Identity
                    | FileName::Devices
                    | FileName::Lock
                    | FileName::Reserve => false,
                };
                if orphan {
                    member.device.remove(name)?;
                }
            }
        }
        Ok(())
    }
}

/// What has been read does not fit together, for the writer has gone on: all is to be read again.
fn overtaken() -> Error {
    Error::new(ErrorKind::Busy, "the store's writer is faster than this reader opens it")
}

impl Engine {
    /// Starts the background threads.
    fn start_threads(&self) -> Result<()> {
        let background = &self.background;
        let next_segment = self.write.writer()?.lock().wal.next().clone();
        // Nobody joins this one: a listener may take for ever.
        drop(self.jobs.events.start(&*self.jobs.env).map_err(|e| background.no_thread(e))?);
        // Writers wait for flushes, so those get their share of the processors at all times.
        background.start("terrace-flush", Priority::Aside, |background| background.flush_forever())?;
        if let Some(syncs) = &self.write.syncs {
            let preallocation = PreallocateThread {
                background: background.clone(),
                alarm: self.jobs.alarm.clone(),
                next_segment,
                log: syncs.log().clone(),
            };
            // Whoever is faster waits for a sync that this one is in.
            let body = move |_: &_| preallocation.preallocate_forever();
            background.start("terrace-preallocate", Priority::Aside, body)?;
        }
        let reclaim = ReclaimThread {
            storage: self.jobs.storage.clone(),
            health: self.health.clone(),
            cache: self.jobs.cache.clone(),
            pressure: background.pressure.clone(),
            scheduler: background.scheduler.clone(),
        };
        background.start("terrace-reclaim", Priority::Background, move |_| reclaim.reclaim_forever())?;
        background.start_compaction_threads()
    }

    /// Starts the threads, and flushes at once what would make the next recovery long, too.
    fn start_work(self: &Arc<Self>) -> Result<()> {
        self.background.sample_load();
        self.background.fit_recycled();
        self.start_threads()?;
        let bytes = self.write.writer()?.lock().wal.bytes();
        if bytes > self.settings().limits.memtable_bytes / 4 { self.write.seal_all() } else { Ok(()) }
    }
}

/// Notes the range deletes of a tree's memtables, and that those of its tables are to be looked at.
fn note_range_deletes(tree: &Tree) {
    let view = tree.view();
    for tombstone in view.memtables().flat_map(|memtable| memtable.range_tombstones()) {
        tree.range_deletes.note(tombstone, &view);
    }
    if view.version.runs().any(|(_, run)| run.range_tombstones() > 0) {
        tree.range_deletes.mark_unread();
    }
}

#[cfg(test)]
mod tests;
