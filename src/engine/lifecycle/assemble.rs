//! Assembly: puts an engine together from what recovery has found.
//!
//! What several parts share ([`Common`]) is made first, then each part, then the engine. No thread runs when this
//! ends; the caller starts them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;

use super::engine::Engine;
use super::keyspaces::Keyspaces;
use super::opening::Opening;
use crate::batch::DEFAULT_KEYSPACE;
use crate::catalog::Catalog;
use crate::engine::jobs::context::JobContext;
use crate::engine::jobs::install::CatalogLog;
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::expiry::Clock;
use crate::engine::log::log_tail::LogTail;
use crate::engine::log::writer::Writer;
use crate::engine::pace::sampler::LoadSampler;
use crate::engine::pace::throttle::Throttle;
use crate::engine::pace::users::{Seen, UserCounters};
use crate::engine::read::path::ReadPath;
use crate::engine::schedule::background::Background;
use crate::engine::schedule::deleted_keys::DeletedKeys;
use crate::engine::schedule::idle_time::IdleTime;
use crate::engine::schedule::scheduler::Scheduler;
use crate::engine::shared::alarm::Alarm;
use crate::engine::shared::events::Events;
use crate::engine::shared::ids::IdCounters;
use crate::engine::shared::pressure::Pressure;
use crate::engine::shared::settings::{Limits, Settings, options_of};
use crate::engine::shared::statistics::Statistics;
use crate::engine::shared::visibility::Visibility;
use crate::engine::space::preallocator::Preallocator;
use crate::engine::space::reclaim::Reclaimer;
use crate::engine::space::reserve::Reserve;
use crate::engine::space::storage::Storage;
use crate::engine::write::commit::SyncGroup;
use crate::engine::write::path::WritePath;
use crate::engine::write::tickets::Tickets;
use crate::env::sync::{OrderedMutex, Rank};
use crate::env::{Env, FileLock};
use crate::options::Caching;
use crate::store::cache::{Cached, Kinds, TableCache};
use crate::store::files::devices::Devices;
use crate::store::files::meter::Meter;
use crate::store::files::pack::PackStore;
use crate::store::manifest::Manifest;
use crate::store::memtable::ChunkPool;
use crate::store::wal::RecoveredSegment;
use crate::types::Seq;

/// What recovery has gathered for the engine.
pub(super) struct Recovered {
    pub(super) lock: Option<FileLock>,
    pub(super) devices: Arc<Devices>,
    pub(super) packs: PackStore,
    pub(super) meter: Arc<Meter>,
    pub(super) reclaimer: Arc<Reclaimer>,
    pub(super) catalog: Catalog,
    pub(super) manifest: Option<Manifest>,
    pub(super) writer: Option<OrderedMutex<Writer>>,
    pub(super) reserve: Reserve,
    pub(super) trees: Trees,
    pub(super) chunks: Arc<ChunkPool>,
    pub(super) last_seq: Seq,
    pub(super) replayed: Vec<RecoveredSegment>,
    pub(super) limits: Limits,
}

/// What more than one part holds.
struct Common {
    env: Arc<dyn Env>,
    lock: Option<Arc<FileLock>>,
    meter: Arc<Meter>,
    cache: Arc<TableCache>,
    storage: Arc<Storage>,
    settings: Arc<ArcSwap<Settings>>,
    trees: Arc<ArcSwap<Trees>>,
    clock: Arc<Clock>,
    scheduler: Arc<Scheduler>,
    pressure: Arc<Pressure>,
    visibility: Arc<Visibility>,
    tickets: Arc<Tickets>,
    alarm: Arc<Alarm>,
    statistics: Arc<Statistics>,
    preallocator: Arc<Preallocator>,
    writer: Option<Arc<OrderedMutex<Writer>>>,
    catalog: Arc<OrderedMutex<CatalogLog>>,
}

/// The engine of `opening`, without its threads.
pub(super) fn assemble(opening: &Opening, mut found: Recovered) -> Engine {
    let chunks = found.chunks.clone();
    let replayed = std::mem::take(&mut found.replayed);
    let ids = Arc::new(IdCounters::new(&found.catalog.counters));
    let common = common(opening, found);
    let read = Arc::new(read_path(&common));
    let jobs = Arc::new(job_context(&common, opening, &read, ids));
    let background = Arc::new(background(&common, &jobs, &read));
    let write = Arc::new(write_path(&common, &read, &background));
    let trees = common.trees.load();
    let names = trees.iter().map(|(id, tree)| (tree.record.name.clone(), *id)).collect();
    drop(trees);
    let keyspaces = Keyspaces {
        jobs: jobs.clone(),
        write: write.clone(),
        background: background.clone(),
        chunks,
        names: OrderedMutex::leaf(names),
        changing: OrderedMutex::new(Rank::KeyspaceChanges, ()),
    };
    Engine {
        read,
        write,
        background,
        jobs,
        keyspaces,
        settings: common.settings,
        health: common.alarm.health.clone(),
        replayed,
        closing: OrderedMutex::new(Rank::Closing, ()),
        _lock: common.lock,
    }
}

fn common(opening: &Opening, found: Recovered) -> Common {
    let env = &opening.env;
    let mut options = opening.options.clone();
    // Those of the keyspace that is there count, not those that it would have been created with.
    if let Some(tree) = found.trees.get(&DEFAULT_KEYSPACE) {
        options.keyspace = options_of(&tree.record);
    }
    let block_bytes = u64::from(options.tree.block_bytes);
    let cache = TableCache::new(Arc::new(found.packs), found.limits.cache_bytes, block_bytes)
        .with(kinds(options.tree.caching));
    // Nobody else tells those who open for reading alone.
    cache.expect(found.reclaimer.space().live_bytes);
    let (scheduler, pressure) = (Arc::<Scheduler>::default(), Arc::<Pressure>::default());
    let (visibility, tickets) = (Arc::new(Visibility::new(found.last_seq)), Tickets::new(env.clone()));
    let alarm = Alarm {
        health: Arc::default(),
        events: Events::new(opening.listener.clone()),
        waiters: vec![scheduler.clone(), pressure.clone(), visibility.clone(), tickets.clone()],
    };
    let trees = Arc::new(ArcSwap::from_pointee(found.trees));
    let storage = Storage {
        env: env.clone(),
        device: found.devices.home().device.clone(),
        recycled: found.devices.home().recycled.clone(),
        devices: found.devices,
        reclaimer: found.reclaimer,
        reserve: found.reserve,
        trees: trees.clone(),
        needed_until: AtomicU64::new(0),
    };
    let clock = Clock::starting_at(env.clone(), found.catalog.counters.clock);
    let log = CatalogLog { catalog: found.catalog, manifest: found.manifest };
    Common {
        env: env.clone(),
        lock: found.lock.map(Arc::new),
        meter: found.meter,
        cache: Arc::new(cache),
        storage: Arc::new(storage),
        settings: Arc::new(ArcSwap::from_pointee(Settings::new(&options, &**env))),
        trees,
        clock: Arc::new(clock),
        scheduler,
        pressure,
        visibility,
        tickets,
        alarm: Arc::new(alarm),
        statistics: Arc::default(),
        preallocator: Arc::default(),
        writer: found.writer.map(Arc::new),
        catalog: Arc::new(OrderedMutex::new(Rank::Catalog, log)),
    }
}

/// What the cache keeps by that option.
fn kinds(caching: Caching) -> Kinds {
    match caching {
        Caching::Adaptive => Kinds { of: Cached::Everything, settles: true, warms_up: true },
        Caching::OnRead => Kinds { of: Cached::Everything, settles: false, warms_up: false },
        Caching::Tables => Kinds { of: Cached::OpenTables, settles: false, warms_up: false },
        Caching::Blocks => Kinds { of: Cached::Blocks, settles: false, warms_up: false },
        Caching::WarmUp => Kinds { of: Cached::Blocks, settles: false, warms_up: true },
    }
}

fn read_path(common: &Common) -> ReadPath {
    ReadPath {
        cache: common.cache.clone(),
        health: common.alarm.health.clone(),
        visibility: common.visibility.clone(),
        snapshots: Arc::default(),
        settings: common.settings.clone(),
        clock: common.clock.clone(),
        scheduler: common.scheduler.clone(),
        pressure: common.pressure.clone(),
        lookups: Default::default(),
        reads: Default::default(),
        _lock: common.lock.clone(),
    }
}

fn job_context(common: &Common, opening: &Opening, read: &ReadPath, ids: Arc<IdCounters>) -> JobContext {
    let Common { env, cache, storage, settings, trees, alarm, statistics, preallocator, .. } = common;
    let users = UserCounters {
        cache: cache.clone(),
        meter: common.meter.clone(),
        statistics: statistics.clone(),
        reads: read.reads.clone(),
        block_bytes: u64::from(settings.load().options.tree.block_bytes),
    };
    let sampler = LoadSampler {
        env: env.clone(),
        settings: settings.clone(),
        users: Arc::new(users),
        pressure: common.pressure.clone(),
        events: alarm.events.clone(),
        scheduler: common.scheduler.clone(),
        running: Default::default(),
        waiters: AtomicU64::new(0),
        seen: OrderedMutex::leaf(Seen::since(env.now())),
    };
    let (limiter, seen, lost) = Default::default();
    let throttle = Throttle { sampler, limiter, seen, lost };
    let log = LogTail {
        writer: common.writer.clone(),
        visibility: common.visibility.clone(),
        trees: trees.clone(),
        alarm: alarm.clone(),
        recycled: storage.recycled.clone(),
        preallocator: preallocator.clone(),
    };
    JobContext {
        env: env.clone(),
        settings: settings.clone(),
        trees: trees.clone(),
        snapshots: read.snapshots.clone(),
        clock: common.clock.clone(),
        filters: opening.filters.clone(),
        throttle: Arc::new(throttle),
        cache: cache.clone(),
        storage: storage.clone(),
        preallocator: preallocator.clone(),
        ids,
        log,
        catalog: common.catalog.clone(),
        health: alarm.health.clone(),
        alarm: alarm.clone(),
        events: alarm.events.clone(),
        statistics: statistics.clone(),
        compacting_bytes: AtomicU64::new(0),
        placed: AtomicU64::new(0),
        moving_level: Default::default(),
        retention: Default::default(),
        relocations: Default::default(),
    }
}

fn background(common: &Common, jobs: &Arc<JobContext>, read: &Arc<ReadPath>) -> Background {
    let changes = Arc::default();
    common.trees.load().values().for_each(|tree| tree.tell(&changes));
    Background {
        jobs: jobs.clone(),
        scheduler: common.scheduler.clone(),
        pressure: common.pressure.clone(),
        idle_time: IdleTime::since(common.env.now()),
        deleted: DeletedKeys::none(read.clone()),
        changes,
        totals: OrderedMutex::new(Rank::AllTrees, Default::default()),
        attention: OrderedMutex::new(Rank::AllTrees, Default::default()),
        meter: common.meter.clone(),
        ingesting_bytes: AtomicU64::new(0),
        _lock: common.lock.clone(),
    }
}

fn write_path(common: &Common, read: &Arc<ReadPath>, background: &Arc<Background>) -> WritePath {
    let Common { env, storage, settings, trees, clock, alarm, statistics, preallocator, writer, .. } = common;
    WritePath {
        env: env.clone(),
        settings: settings.clone(),
        trees: trees.clone(),
        clock: clock.clone(),
        writer: writer.clone(),
        syncs: writer.as_ref().map(|writer| SyncGroup::new(writer.lock().wal.durable().clone())),
        tickets: common.tickets.clone(),
        ids: background.jobs.ids.clone(),
        preallocator: preallocator.clone(),
        visibility: common.visibility.clone(),
        pressure: common.pressure.clone(),
        storage: storage.clone(),
        background: background.clone(),
        read: read.clone(),
        health: alarm.health.clone(),
        alarm: alarm.clone(),
        events: alarm.events.clone(),
        statistics: statistics.clone(),
    }
}
