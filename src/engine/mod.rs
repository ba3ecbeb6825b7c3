//! Mechanism, put together: commit, read, flush, merge, recover, reclaim.
//!
//! [`Engine`] is the state that they share. Each path lives in a file of its own:
//!
//! * [`commit`]: a write's way into log and memtable; the only code that makes a caller wait on purpose.
//!   [`conflict`]: what a transaction depends on. [`visibility`]: what readers may see.
//! * [`read`], [`multi_get`], [`scan`] and [`roam`]: lookups, iterators and cursors over one [`View`](tree::View); [`reads`]
//!   counts them.
//! * [`flush`] and [`merge_job`]: jobs, which [`distill`] their inputs into [`output`] and end in an edit; [`install`]
//!   makes it durable, then visible. [`rewrite`]: a job that copies tables as they are. [`ahead`]: files that are made before they are needed.
//! * [`scheduler`]: the threads, what they may do at the same time, and when they have nothing to do.
//!   [`courtesy`]: when they pause.
//! * [`ingest`]: sorted data from outside, straight into tables.
//! * [`repair`]: a new store of what [`salvage`] finds in a damaged one.
//! * [`checkpoint`]: a copy of the store at one moment.
//! * [`recovery`]: from files to an engine. [`reclaim`]: from dead tables to free space. [`reserve`]: what a full disk
//!   has left. [`space`]: how much of a budget is left.
//! * [`expiry`]: what time and the owner's filter make of values.
//! * [`events`]: what the listener hears, under no lock. [`tickets`]: when a write has become durable.
//!
//! LOCK order, outermost first: `closing`, the tickets' syncer, `keyspace_changes`, `writer`, `catalog`, scheduler state, then `reserve`
//! and the next segment, under which files come and go, and then the leaves, which are taken last and call nothing of the
//! engine: spares, visibility, syncs, pressure, courtesy, snapshots, reclaimer, requests to work ahead, stalls, events, tickets.

mod ahead;
mod checkpoint;
mod close;
pub(crate) mod commit;
mod conflict;
mod courtesy;
mod distill;
mod events;
mod expiry;
mod flush;
mod health;
mod idleness;
mod ingest;
mod install;
mod keyspaces;
mod merge_job;
mod multi_get;
mod output;
mod payments;
mod pressure;
mod read;
mod reads;
mod reclaim;
mod recovery;
mod renewal;
mod repair;
mod reserve;
mod rewrite;
pub(crate) mod roam;
mod salvage;
pub(crate) mod scan;
mod scheduler;
pub(crate) mod settings;
mod snapshots;
mod space;
mod statistics;
mod tickets;
pub(crate) mod tree;
mod verify;
mod visibility;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

pub(crate) use conflict::Condition;
pub(crate) use events::Listener;
pub(crate) use ingest::Ingestion;
pub(crate) use recovery::{Opening, open};
pub(crate) use repair::repair;
pub(crate) use snapshots::Pin;
pub(crate) use tickets::Tickets;

use crate::catalog::Catalog;
use crate::env::sync::{Mutex, before_look};
use crate::env::{Env, FileLock};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::Filters;
use crate::format::edit::Counters;
use crate::store::cache::TableCache;
use crate::store::device::Device;
use crate::store::manifest::Manifest;
use crate::store::memtable::ChunkPool;
use crate::store::meter::Meter;
use crate::store::spares::Spares;
use crate::store::wal::{NextSegment, RecoveredSegment, Wal};
use crate::types::{Epoch, KeyspaceId, PackId, SegmentId, Seq, TableId};

use ahead::Ahead;
use commit::SyncGroup;
use conflict::Recent;
use courtesy::Courtesy;
use events::{Event, Events, ToldStall};
use expiry::Clock;
use health::Health;
use idleness::Idleness;
use payments::Lookups;
use pressure::Pressure;
use reads::Reads;
use reclaim::Reclaimer;
use reserve::Reserve;
use scheduler::Scheduler;
use settings::Settings;
use snapshots::Snapshots;
use statistics::Tally;
use tree::Tree;
use visibility::Visibility;

/// The keyspaces that exist, by id.
pub(crate) type Trees = BTreeMap<KeyspaceId, Arc<Tree>>;

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    // Constant after opening.
    pub(crate) env: Arc<dyn Env>,
    pub(crate) device: Arc<Device>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) cache: Arc<TableCache>,
    filters: Filters,
    /// The log as it was when the store was opened, if that was for reading alone: held.
    replayed: Vec<RecoveredSegment>,
    /// `None` in a store that was opened for reading alone.
    writer: Option<Mutex<Writer>>,
    // Each synchronises itself.
    settings: ArcSwap<Settings>,
    trees: ArcSwap<Trees>,
    snapshots: Snapshots,
    visibility: Visibility,
    /// `None` in a store that was opened for reading alone.
    syncs: Option<SyncGroup>,
    pub(crate) tickets: Arc<Tickets>,
    scheduler: Scheduler,
    pressure: Pressure,
    courtesy: Courtesy,
    idleness: Idleness,
    pub(crate) health: Health,
    reclaimer: Arc<Reclaimer>,
    spares: Arc<Spares>,
    /// The segment that the log goes on in; `None` in a store that was opened for reading alone.
    next_segment: Option<Arc<NextSegment>>,
    ahead: Ahead,
    /// Memory for memtables.
    chunks: Arc<ChunkPool>,
    reserve: Reserve,
    ids: Ids,
    tally: Tally,
    lookups: Lookups,
    reads: Reads,
    events: Arc<Events>,
    clock: Clock,
    /// Bytes of tables that running merges read.
    merging_bytes: AtomicU64,
    /// Bytes of tables from outside that are written and not in a tree yet.
    ingesting_bytes: AtomicU64,
    // Guarded.
    /// Held while the store is being closed, or its settings change.
    closing: Mutex<()>,
    /// Held while a keyspace comes or goes.
    keyspace_changes: Mutex<()>,
    catalog: Mutex<CatalogLog>,
    /// Held as long as anything of the store is; none in a store that was opened for reading alone.
    _lock: Option<FileLock>,
}

/// What a write changes under the writer's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) wal: Wal,
    pub(crate) last_seq: Seq,
    /// What was numbered lately.
    recent: Recent,
    /// Bytes in the active memtables of all keyspaces, about.
    pub(crate) active_bytes: u64,
    /// What the listener has heard last of stalls.
    told_stall: Option<ToldStall>,
    /// How many wait for memtables to be flushed that their batches have no room beside.
    crowding: usize,
    /// How many want that nobody writes for a while.
    pub(crate) holds: usize,
}

impl Writer {
    /// One that goes on behind `last_seq`.
    fn new(wal: Wal, last_seq: Seq, active_bytes: u64) -> Self {
        Self {
            wal,
            last_seq,
            recent: Recent::default(),
            active_bytes,
            told_stall: None,
            crowding: 0,
            holds: 0,
        }
    }
}

/// The catalog in force and the log that it is in.
#[derive(Debug)]
pub(crate) struct CatalogLog {
    pub(crate) catalog: Catalog,
    /// `None` in a store that was opened for reading alone.
    pub(crate) manifest: Option<Manifest>,
}

/// Counters of ids, each the next free one.
#[derive(Debug)]
pub(crate) struct Ids {
    table: AtomicU64,
    pack: AtomicU64,
    epoch: AtomicU64,
    segment: AtomicU64,
}

impl Ids {
    pub(crate) fn new(next: &Counters) -> Self {
        let Counters { table, pack, epoch, segment, .. } = next;
        Self { table: table.0.into(), pack: pack.0.into(), epoch: epoch.0.into(), segment: segment.0.into() }
    }

    pub(crate) fn table(&self) -> TableId {
        TableId(self.table.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn pack(&self) -> PackId {
        PackId(self.pack.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.fetch_add(1, Ordering::Relaxed))
    }

    /// The log has used up the segment ids before `next`.
    pub(crate) fn segments_used(&self, next: SegmentId) {
        self.segment.store(next.0, Ordering::Relaxed);
    }

    /// Puts the counters into `counters`.
    fn fill(&self, counters: &mut Counters) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counters.table = TableId(load(&self.table));
        counters.pack = PackId(load(&self.pack));
        counters.epoch = Epoch(load(&self.epoch));
        counters.segment = SegmentId(load(&self.segment));
    }
}

impl Engine {
    /// The tree of a keyspace.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        self.trees.load().get(&id).cloned().ok_or_else(tree::dropped)
    }

    /// The keyspaces that exist.
    pub(crate) fn trees(&self) -> Arc<Trees> {
        before_look();
        self.trees.load_full()
    }

    /// Everything up to here is acknowledged or about to be.
    pub(crate) fn visible(&self) -> Seq {
        self.visibility.newest()
    }

    /// The outcome of an operation is unknown: nothing is written any more, and nobody waits for it. Returns `cause`.
    ///
    /// A writer that waits for room is woken for sure only if the caller holds the writer's lock; others call
    /// [`Engine::wake_writers`] when they hold no lock.
    fn poison(&self, cause: Error) -> Error {
        if self.health.poison(&cause) {
            self.events.tell(|| Event::Poisoned(cause.clone()));
        }
        self.scheduler.wake_all();
        self.pressure.wake();
        self.visibility.give_up();
        self.tickets.end(&Error::poisoned(&cause));
        cause
    }

    /// How to open a store that is only read once more; `None` where it is written here.
    pub(crate) fn reopening(&self) -> Result<Option<Opening>> {
        self.health.check_open()?;
        Ok(self.writer.is_none().then(|| Opening {
            dir: self.device.dir().to_path_buf(),
            env: self.env.clone(),
            options: self.settings().options.clone(),
            read_only: true,
            must_exist: true,
            listener: self.events.listener(),
            filters: self.filters.clone(),
        }))
    }

    /// The writer's state, or why there is none.
    fn writer(&self) -> Result<&Mutex<Writer>> {
        self.writer
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::ReadOnly, "the store was opened for reading alone"))
    }
}
