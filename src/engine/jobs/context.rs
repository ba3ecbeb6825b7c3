//! The job context: everything that a job can reach.
//!
//! Flush, compaction and rewrite are methods of [`JobContext`]. So is the install of what they have made. The output
//! of a job, and of an ingest, holds one. A job knows the tree that it is given and nothing else of the engine: it
//! does not plan or claim, wakes no writer, and takes no lock of the scheduler.
//!
//! Locks: the catalog's, while a result is installed; the writer's for a moment, through [`LogTail`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;

use super::install::CatalogLog;
use super::placement::MovingLevel;
use super::relocation::Relocations;
use super::retention::Retention;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::{Tree, dropped};
use crate::engine::log::log_tail::LogTail;
use crate::engine::pace::throttle::Throttle;
use crate::engine::read::snapshots::Snapshots;
use crate::engine::shared::alarm::Alarm;
use crate::engine::shared::events::{Event, Events};
use crate::engine::shared::health::Health;
use crate::engine::shared::ids::IdCounters;
use crate::engine::shared::job::Job;
use crate::engine::shared::settings::Settings;
use crate::engine::shared::statistics::Statistics;
use crate::engine::space::preallocator::Preallocator;
use crate::engine::space::storage::Storage;
use crate::env::Env;
use crate::env::sync::{OrderedMutex, Rank, before_look};
use crate::error::Result;
use crate::events::{JobBegin, JobEnd};
use crate::filter::Filters;
use crate::format::edit::KeyspaceRecord;
use crate::format::table::Codec;
use crate::store::cache::TableCache;
use crate::store::table::TableSettings;
use crate::types::{Epoch, KeyspaceId};

use crate::engine::keyspace::expiry::Clock;

/// So many bytes a job reads ahead in each list of tables, and in all of them together at most.
const AHEAD_BYTES_MAX: u64 = 2 << 20;
const AHEAD_BYTES_OF_JOB: u64 = 16 << 20;

/// What jobs need of an open store.
#[derive(Debug)]
pub(crate) struct JobContext {
    pub(in crate::engine) env: Arc<dyn Env>,

    // What they go by.
    pub(in crate::engine) settings: Arc<ArcSwap<Settings>>,
    pub(in crate::engine) trees: Arc<ArcSwap<Trees>>,
    /// The numbers at which somebody reads.
    pub(in crate::engine) snapshots: Arc<Snapshots>,
    /// What has expired.
    pub(in crate::engine) clock: Arc<Clock>,
    /// What the owner wants removed or changed.
    pub(in crate::engine) filters: Filters,
    /// When they pause for users.
    pub(in crate::engine) throttle: Arc<Throttle>,

    // What they read and write.
    pub(in crate::engine) cache: Arc<TableCache>,
    pub(in crate::engine) storage: Arc<Storage>,
    /// Makes the names of packs durable ahead.
    pub(in crate::engine) preallocator: Arc<Preallocator>,
    pub(in crate::engine) ids: Arc<IdCounters>,
    /// The log, of which flushes cut off what they have brought into tables.
    pub(in crate::engine) log: LogTail,

    /// Where their results become durable.
    pub(in crate::engine) catalog: Arc<OrderedMutex<CatalogLog>>,

    // Whom they tell.
    pub(in crate::engine) health: Arc<Health>,
    pub(in crate::engine) alarm: Arc<Alarm>,
    pub(in crate::engine) events: Arc<Events>,
    pub(in crate::engine) statistics: Arc<Statistics>,
    /// Bytes of tables that running compactions read.
    pub(in crate::engine) compacting_bytes: AtomicU64,
    /// Number of tables, or of whole jobs, that were placed on one of several devices.
    pub(in crate::engine) placed: AtomicU64,
    /// Which levels go to the fast one, where that adapts.
    pub(in crate::engine) moving_level: MovingLevel,
    /// Compaction buffers: when they were trimmed.
    pub(in crate::engine) retention: Retention,
    /// Tables that move between devices for their readers.
    pub(in crate::engine) relocations: Relocations,
}

impl JobContext {
    /// The keyspaces that exist.
    pub(in crate::engine) fn trees(&self) -> Arc<Trees> {
        before_look();
        self.trees.load_full()
    }

    /// The tree of a keyspace.
    pub(in crate::engine) fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        self.trees.load().get(&id).cloned().ok_or_else(dropped)
    }

    /// What the manifest knows of a keyspace now; of one that was dropped, what it knew when the keyspace was opened.
    pub(in crate::engine) fn record_of(&self, tree: &Tree) -> Arc<KeyspaceRecord> {
        let altered = self.catalog.lock().catalog.keyspaces.get(&tree.id()).map(|state| state.record.clone());
        altered.unwrap_or_else(|| Arc::new(tree.record.clone()))
    }

    /// How a job that begins now writes tables of a keyspace.
    pub(in crate::engine) fn table_settings(&self, tree: &Tree, level: u8, epoch: Epoch) -> TableSettings {
        let record = self.record_of(tree);
        let settings = self.settings.load();
        let tree_options = &settings.options.tree;
        // Without holes, the space of a dead value waits for those beside it.
        let has_holes = self.storage.reclaimer.hole_bytes().is_some();
        TableSettings {
            keyspace: record.id,
            name: record.name.as_str().into(),
            level,
            epoch,
            block_bytes: tree_options.block_bytes as usize,
            partitioned_bytes_min: tree_options.partitioned_bytes_min,
            filter_bits: record.filter_bits,
            prefix: record.prefix,
            codec: if record.lz4 { Codec::Lz4 } else { Codec::Raw },
            ttl: record.ttl,
            separate_from: record.separate_from.filter(|_| has_holes),
        }
    }

    /// Bytes to be read ahead in each of `lists` of tables that a job reads at the same time. None in a store on one device.
    pub(in crate::engine) fn ahead_bytes(&self, lists: usize) -> u64 {
        match self.storage.devices.members().len() {
            0 | 1 => 0,
            _ => AHEAD_BYTES_OF_JOB.checked_div(lists as u64).unwrap_or(0).min(AHEAD_BYTES_MAX),
        }
    }

    /// Runs a job, which returns how many bytes it wrote, between two events. INVARIANT(I19): the caller holds neither the
    /// writer's lock nor one that comes after it.
    pub(in crate::engine) fn notify_job(
        &self,
        kind: Job,
        begin: JobBegin,
        job: impl FnOnce() -> Result<u64>,
    ) -> Result<()> {
        self.notify_jobs(kind, vec![begin], || job().map(|bytes| vec![bytes]))
    }

    /// The same for what one job does for several keyspaces: it returns how many bytes it wrote for each.
    pub(in crate::engine) fn notify_jobs(
        &self,
        kind: Job,
        begins: Vec<JobBegin>,
        job: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<()> {
        Rank::Writer.assert_not_held();
        begins.iter().for_each(|begin| self.events.notify(|| Event::JobBegin(kind, begin.clone())));
        let start = self.env.now();
        let result = job();
        let time = self.env.now().saturating_sub(start);
        for (at, begin) in begins.into_iter().enumerate() {
            let bytes_out = result.as_ref().ok().and_then(|bytes| bytes.get(at).copied()).unwrap_or(0);
            let error = result.as_ref().err().cloned();
            self.events.notify(|| Event::JobEnd(kind, JobEnd { begin, bytes_out, time, error }));
        }
        result.map(drop)
    }
}
