//! The picture that users get of an open store's counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{LevelState, Run};
use crate::engine::jobs::context::JobContext;
use crate::engine::keyspace::tree::Tree;
use crate::engine::read::path::ReadPath;
use crate::engine::schedule::background::Background;
use crate::engine::shared::wake::BackgroundThreads;
use crate::engine::write::path::WritePath;
use crate::stats::{
    ByCause, CacheStats, DeviceStats, KeyspaceStats, LevelShape, PunchStats, ReadByCause, Shape, SpaceStats,
    Stats,
};
use crate::store::files::devices::Member;
use crate::store::files::meter::{ReadCause, WriteCause};
use crate::store::wal::RecoveredSegment;
use crate::types::{DeviceId, Seq};

/// What is looked at for a picture of the counters.
#[derive(Debug)]
pub(in crate::engine) struct StatsView<'a> {
    pub(in crate::engine) read: &'a ReadPath,
    pub(in crate::engine) write: &'a WritePath,
    pub(in crate::engine) background: &'a Background,
    pub(in crate::engine) jobs: &'a JobContext,
    /// The log of a store that was opened for reading alone.
    pub(in crate::engine) replayed: &'a [RecoveredSegment],
}

impl StatsView<'_> {
    /// A picture of the counters.
    pub(in crate::engine) fn stats(&self) -> Stats {
        let statistics = &self.jobs.statistics;
        let counts = self.jobs.cache.counts();
        let keyspaces: Vec<_> =
            self.jobs.trees().values().map(|tree| keyspace_stats(self.jobs, tree)).collect();
        let (snapshots, oldest_snapshot) = self.jobs.snapshots.count();
        let (running_flushes, running_compactions) = self.background.scheduler.running();
        let replayed_bytes = self.replayed.iter().map(|segment| segment.bytes).sum();
        let wal_bytes = self.write.writer.as_ref().map_or(replayed_bytes, |writer| writer.lock().wal.bytes());
        Stats {
            user_bytes_written: statistics.user_bytes(),
            user_ops_written: statistics.user_ops(),
            user_reads: self.read.reads.sum(),
            written: by_cause(|cause| self.background.meter.bytes_written(cause)),
            syncs: by_cause(|cause| self.background.meter.syncs(cause)),
            read: self.read_by_cause(),
            packs_opened: self.jobs.cache.packs().opened(),
            stalls: statistics.stall_stats(),
            cache: CacheStats {
                hits: counts.hits,
                misses: counts.misses,
                bytes: counts.bytes,
                capacity: counts.capacity,
            },
            prefix_filter: self.read.reads.prefix_filter(),
            compaction: statistics.compaction_stats(),
            flush: statistics.flush_stats(),
            rewrite: statistics.rewrite_stats(),
            space: self.space_stats(wal_bytes),
            devices: self.device_stats(),
            punch: self.punch_stats(),
            costs: self.background.cost_stats(),
            load: self.jobs.throttle.sampler.load_stats(),
            memtable_bytes: keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum(),
            last_seq: self.read.visible().0,
            snapshots,
            oldest_snapshot,
            running_flushes,
            running_compactions,
            background_errors: statistics.failures(),
            keyspaces,
        }
    }

    fn read_by_cause(&self) -> ReadByCause {
        ReadByCause {
            get: self.background.meter.bytes_read(ReadCause::Get),
            scan: self.background.meter.bytes_read(ReadCause::Scan),
            compaction: self.background.meter.bytes_read(ReadCause::Compaction),
            open: self.background.meter.bytes_read(ReadCause::Open),
        }
    }

    fn space_stats(&self, wal_bytes: u64) -> SpaceStats {
        let space = self.jobs.storage.reclaimer.space();
        let (data_ranges, data_ranges_max) = self.jobs.storage.reclaimer.data_ranges();
        let (mut value_bytes, mut values, mut value_tables) = (0, 0, 0);
        for tree in self.jobs.trees().values() {
            let view = tree.view();
            let sums = view.version.values().sums();
            value_bytes += sums.live_bytes;
            values += sums.count;
            value_tables += view.version.values().len() as u64;
        }
        SpaceStats {
            live_bytes: space.live_bytes,
            value_bytes,
            values,
            value_tables,
            collected_bytes: self.jobs.statistics.collected_bytes(),
            dead_bytes: space.total_bytes.saturating_sub(space.live_bytes),
            kept_bytes: space.kept_bytes,
            pack_files: space.packs,
            preallocated_files: self.jobs.storage.devices.pooled(),
            data_ranges,
            data_ranges_max,
            wal_bytes,
            total_bytes: space.total_bytes + wal_bytes + self.jobs.storage.devices.recycled_bytes(),
        }
    }

    fn device_stats(&self) -> Vec<DeviceStats> {
        let members = self.jobs.storage.devices.members();
        let mut bytes: BTreeMap<DeviceId, u64> = BTreeMap::new();
        for tree in self.jobs.trees().values() {
            let version = tree.view().version.clone();
            for (_, table) in version.tables() {
                *bytes.entry(table.extent.device).or_default() += table.bytes();
            }
            for table in version.values().iter() {
                *bytes.entry(table.record.extent.device).or_default() += table.sums().live_bytes;
            }
        }
        let has_several = members.len() > 1;
        let stats = |member: &Arc<Member>| DeviceStats {
            id: member.id.0,
            dir: member.device.dir().to_path_buf(),
            table_bytes: bytes.get(&member.id).copied().unwrap_or(0),
            given_bytes: member.given_bytes(),
            brought_bytes: member.brought_bytes(),
            read_nanos: member.read_nanos()[0],
            pending_bytes: member.pending_bytes(),
            rated_bandwidth: if has_several { member.rated_bandwidth } else { 0 },
            bandwidth: if has_several { member.bandwidth() } else { 0 },
            free_bytes: member.free_bytes(&*self.jobs.env),
        };
        members.iter().map(stats).collect()
    }

    fn punch_stats(&self) -> PunchStats {
        let punching = self.jobs.storage.reclaimer.punching();
        PunchStats {
            punches: punching.punches,
            bytes: punching.bytes,
            micros: u64::try_from(punching.time.as_micros()).unwrap_or(u64::MAX),
            failures: punching.failures,
            unsupported: punching.unsupported,
        }
    }
}

fn by_cause(count: impl Fn(WriteCause) -> u64) -> ByCause {
    ByCause {
        wal: count(WriteCause::Wal),
        flush: count(WriteCause::Flush),
        compaction: count(WriteCause::Compaction),
        rewrite: count(WriteCause::Rewrite),
        manifest: count(WriteCause::Manifest),
        directory: count(WriteCause::Directory),
        reclaim: count(WriteCause::Reclaim),
        preallocate: count(WriteCause::Preallocate),
    }
}

fn keyspace_stats(jobs: &JobContext, tree: &Tree) -> KeyspaceStats {
    let view = tree.view();
    let sealed_bytes = view.sealed_bytes();
    KeyspaceStats {
        name: tree.record.name.clone(),
        memtable_bytes: view.active.bytes() + sealed_bytes,
        sealed_bytes,
        sealed_memtables: view.sealed.len() as u64,
        memtable_entries: view.memtables().map(|memtable| memtable.entries()).sum(),
        debt_bytes: tree.layout(&jobs.settings.load().policy).debt(&view.version),
        shape: shape(jobs, tree),
        buffer: jobs.buffer_stats(tree),
    }
}

/// The levels of a tree, down to the deepest that holds anything.
pub(in crate::engine) fn shape(jobs: &JobContext, tree: &Tree) -> Shape {
    let version = tree.view().version.clone();
    let layout = tree.layout(&jobs.settings.load().policy);
    let (scores, limits) = (layout.scores(&version), layout.limits(&version));
    let deepest = version.deepest().map_or(0, usize::from);
    let pins = jobs.snapshots.list();
    let levels = version.levels().zip(scores).take(deepest + 1).map(|((number, level), score)| LevelShape {
        level: number.into(),
        runs: level.runs.len(),
        tables: level.runs.iter().map(|run| run.len()).sum(),
        bytes: level.bytes(),
        value_bytes: level.runs.iter().map(Run::value_bytes).sum(),
        entries: level.runs.iter().map(|run| run.entries()).sum(),
        tombstones: level.runs.iter().map(|run| run.tombstones()).sum(),
        range_tombstones: level.runs.iter().map(|run| run.range_tombstones()).sum(),
        held_bytes: level.runs.iter().map(|run| run.held().bytes).sum(),
        released_bytes: released_bytes(level, &pins),
        limit_bytes: limits[usize::from(number)],
        score,
    });
    Shape { levels: levels.collect() }
}

/// What the tables of `level` hold for readers that have gone; somebody reads at `pins`.
fn released_bytes(level: &LevelState, pins: &[Seq]) -> u64 {
    let holding = level.runs.iter().filter(|run| run.held().records > 0);
    holding.flat_map(Run::iter).map(|table| table.holds.released(pins).bytes).sum()
}
