//! The engine: all mechanisms of an open store, put together.
//!
//! [`Engine`] consists of parts. The struct of a part says what the part can reach: [`ReadPath`], [`WritePath`],
//! [`JobContext`], [`Background`], [`Keyspaces`], [`Storage`](space::storage::Storage). Calls go straight to the part:
//! `engine.write.commit(..)`. Statistics, verification and checkpoints are small structs that borrow the parts which
//! they look at.
//!
//! Methods of the engine itself are those that span all parts: open and start, change the options, close. They are in
//! [`lifecycle`] (`recovery.rs`, `settings.rs`, `close.rs`).
//!
//! Each folder is one path of data:
//!
//! * [`write`]: from a batch to the log and the memtables; when writers wait; what readers may see.
//! * [`read`]: lookups and iterators over one [`View`](read::tree::View); snapshots.
//! * [`jobs`]: flush, compaction, rewrite and ingest; what they write, and the edit that makes it durable, then
//!   visible.
//! * [`schedule`]: the threads, what may run at the same time, and when jobs pause.
//! * [`space`]: from dead tables to free space; what is left when the disk is full.
//! * [`lifecycle`]: from files to an engine and back; settings, keyspaces, checkpoints, repair.
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
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

pub(crate) use jobs::ingest::Ingestion;
pub(crate) use lifecycle::recovery::{Opening, open};
pub(crate) use lifecycle::repair::repair;
pub(crate) use observe::events::Listener;
pub use observe::replay::{JobVerdict, LoadSample, LoadVerdict, replay};
pub(crate) use read::snapshots::Pin;
pub(crate) use write::conflict::Condition;
pub(crate) use write::tickets::Tickets;

use crate::catalog::Catalog;
use crate::env::FileLock;
use crate::env::sync::OrderedMutex;
use crate::error::Result;
use crate::format::edit::Counters;
use crate::stats::{Shape, Stats, VerifyReport};
use crate::store::manifest::Manifest;
use crate::store::wal::RecoveredSegment;
use crate::types::{Epoch, KeyspaceId, PackId, SegmentId, TableId};

use jobs::context::JobContext;
use lifecycle::checkpoint::Checkpoint;
use lifecycle::keyspaces::Keyspaces;
use lifecycle::settings::Settings;
use lifecycle::verify::Verification;
use observe::health::Health;
use observe::statistics::StatsView;
use read::path::ReadPath;
use read::tree::Tree;
use schedule::background::Background;
use write::path::WritePath;

/// The keyspaces that exist, by id.
pub(crate) type Trees = BTreeMap<KeyspaceId, Arc<Tree>>;

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    // The parts. Some hold others: what several share is made once, by `lifecycle/assemble.rs`.
    /// Lookups, iterators and snapshots.
    pub(crate) read: Arc<ReadPath>,
    /// Commits, syncs and tickets.
    pub(crate) write: Arc<WritePath>,
    /// What runs jobs.
    pub(crate) background: Arc<Background>,
    /// Flush, compaction, rewrite, and the install of what they make.
    jobs: Arc<JobContext>,
    /// Creates, drops and alters keyspaces.
    pub(crate) keyspaces: Keyspaces,

    // What belongs to the whole.
    settings: Arc<ArcSwap<Settings>>,
    pub(crate) health: Arc<Health>,
    /// The log as it was at opening, held, in a store that was opened for reading alone.
    replayed: Vec<RecoveredSegment>,
    /// Held while the store is being closed, or its settings change.
    closing: OrderedMutex<()>,
    /// Held as long as anything of the store is; none in a store that was opened for reading alone.
    _lock: Option<Arc<FileLock>>,
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
    /// Where the store is.
    pub(crate) fn dir(&self) -> &Path {
        self.jobs.storage.device.dir()
    }

    /// How to open a store that is only read once more; `None` where it is written here.
    pub(crate) fn reopening(&self) -> Result<Option<Opening>> {
        self.health.check_open()?;
        Ok(self.write.writer.is_none().then(|| Opening {
            dir: self.dir().to_path_buf(),
            env: self.jobs.env.clone(),
            options: self.settings().options.clone(),
            read_only: true,
            must_exist: true,
            listener: self.jobs.events.listener(),
            filters: self.jobs.filters.clone(),
        }))
    }

    /// As [`Checkpoint::make`].
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        let Self { jobs, write, replayed, .. } = self;
        Checkpoint { jobs, write, replayed }.make(dir)
    }

    /// As [`Verification::run`].
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        Verification { jobs: &self.jobs }.run()
    }

    /// As [`StatsView::stats`].
    pub(crate) fn stats(&self) -> Stats {
        let Self { read, write, background, jobs, replayed, .. } = self;
        StatsView { read, write, background, jobs, replayed }.stats()
    }

    /// The levels of a tree, down to the deepest that holds anything.
    pub(crate) fn shape(&self, tree: &Tree) -> Shape {
        observe::statistics::shape(&self.jobs, tree)
    }
}
