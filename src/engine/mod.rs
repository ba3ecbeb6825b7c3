//! The engine: all mechanisms of an open store, put together.
//!
//! [`Engine`] consists of parts. The struct of a part says what the part can reach: [`ReadPath`], [`Background`],
//! [`JobContext`], [`Storage`]. Writes and the life cycle are methods of the engine itself. Each folder is one path
//! of data:
//!
//! * [`write`]: from a batch to the log and the memtables; when writers wait; what readers may see.
//! * [`read`]: lookups and iterators over one [`View`](read::tree::View); snapshots.
//! * [`jobs`]: flush, compaction, rewrite and ingest; what they write, and the edit that makes it durable, then
//!   visible.
//! * [`schedule`]: the threads, what may run at the same time, and when jobs pause.
//! * [`space`]: from dead tables to free space; what is left when the disk is full.
//! * [`lifecycle`]: from files to an engine and back; settings, checkpoints, repair.
//! * [`observe`]: events, statistics, health.
//!
//! [`Rank`](crate::env::sync::Rank) gives the order in which locks are taken. Debug builds check it.

mod jobs;
pub(crate) mod lifecycle;
mod observe;
pub(crate) mod read;
mod schedule;
mod space;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

pub(crate) use jobs::ingest::Ingestion;
pub(crate) use lifecycle::recovery::{Opening, open};
pub(crate) use lifecycle::repair::repair;
pub(crate) use observe::events::Listener;
pub(crate) use read::snapshots::Pin;
pub(crate) use write::conflict::Condition;
pub(crate) use write::tickets::Tickets;

use crate::catalog::Catalog;
use crate::env::sync::{OrderedMutex, before_look};
use crate::env::{Env, FileLock};
use crate::error::{Error, Result};
use crate::format::edit::Counters;
use crate::store::cache::TableCache;
use crate::store::files::device::Device;
use crate::store::manifest::Manifest;
use crate::store::memtable::ChunkPool;
use crate::store::wal::{NextSegment, RecoveredSegment, Wal};
use crate::types::{Epoch, KeyspaceId, PackId, SegmentId, Seq, TableId};

use jobs::context::JobContext;
use lifecycle::preallocate::Preallocator;
use lifecycle::settings::Settings;
use observe::alarm::Alarm;
use observe::events::{Events, NotifiedStall};
use observe::health::Health;
use observe::statistics::Statistics;
use read::path::ReadPath;
use read::tree::Tree;
use schedule::background::Background;
use schedule::scheduler::Scheduler;
use space::storage::Storage;
use write::commit::SyncGroup;
use write::conflict::Recent;
use write::pressure::Pressure;
use write::visibility::Visibility;

/// The keyspaces that exist, by id.
pub(crate) type Trees = BTreeMap<KeyspaceId, Arc<Tree>>;

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Lookups, iterators and snapshots.
    pub(crate) read: Arc<ReadPath>,
    /// What runs jobs.
    pub(crate) background: Arc<Background>,
    /// Flush, compaction, rewrite, and the install of what they make.
    jobs: Arc<JobContext>,
    /// What takes space, and what gives it back.
    storage: Arc<Storage>,
    /// Who hears of a failure whose outcome is unknown.
    alarm: Arc<Alarm>,
    // Constant after opening.
    pub(crate) env: Arc<dyn Env>,
    pub(crate) device: Arc<Device>,
    pub(crate) cache: Arc<TableCache>,
    /// The log as it was at opening, held, in a store that was opened for reading alone.
    replayed: Vec<RecoveredSegment>,
    /// `None` in a store that was opened for reading alone.
    writer: Option<Arc<OrderedMutex<Writer>>>,
    // Each synchronises itself.
    settings: Arc<ArcSwap<Settings>>,
    trees: Arc<ArcSwap<Trees>>,
    visibility: Arc<Visibility>,
    /// `None` in a store that was opened for reading alone.
    syncs: Option<SyncGroup>,
    pub(crate) tickets: Arc<Tickets>,
    scheduler: Arc<Scheduler>,
    pressure: Arc<Pressure>,
    pub(crate) health: Arc<Health>,
    /// The segment that the log goes on in; `None` in a store that was opened for reading alone.
    next_segment: Option<Arc<NextSegment>>,
    preallocator: Arc<Preallocator>,
    /// Memory for memtables.
    chunks: Arc<ChunkPool>,
    statistics: Arc<Statistics>,
    events: Arc<Events>,
    // Guarded.
    /// Held while the store is being closed, or its settings change.
    closing: OrderedMutex<()>,
    /// Held while a keyspace comes or goes.
    keyspace_changes: OrderedMutex<()>,
    catalog: Arc<OrderedMutex<CatalogLog>>,
    /// Held as long as anything of the store is; none in a store that was opened for reading alone.
    _lock: Option<Arc<FileLock>>,
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
    notified_stall: Option<NotifiedStall>,
    /// Number of writers that wait for flushes because their batches have no room beside the memtables.
    crowding: usize,
    /// Number of callers that hold all writers back for a while.
    pub(crate) holds: usize,
}

impl Writer {
    /// A writer that goes on after `last_seq`.
    fn new(wal: Wal, last_seq: Seq, active_bytes: u64) -> Self {
        Self {
            wal,
            last_seq,
            recent: Recent::default(),
            active_bytes,
            notified_stall: None,
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
pub(crate) struct IdCounters {
    table: AtomicU64,
    pack: AtomicU64,
    epoch: AtomicU64,
    segment: AtomicU64,
}

impl IdCounters {
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
        self.trees.load().get(&id).cloned().ok_or_else(read::tree::dropped)
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

    /// As [`Alarm::poison`].
    fn poison(&self, cause: Error) -> Error {
        self.alarm.poison(cause)
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
            filters: self.jobs.filters.clone(),
        }))
    }

    /// The writer's state, or why there is none.
    fn writer(&self) -> Result<&OrderedMutex<Writer>> {
        self.jobs.log.writer()
    }
}
