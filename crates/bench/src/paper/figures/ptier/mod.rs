//! PTierDB beside the layouts that its authors compare it with.
//!
//! The paper writes and reads 50 to 100 million small records by one client, with memtables of 32 MB and level 1 of 10 MB,
//! on a machine whose 64 GB of memory hold all of the data.
//!
//! A row is one store, by the name of its profile. [`Phase`] is what clients do in one go on a store, and what it costs.
//! `layouts` has the cost of each layout, `sizes` loads and lookups by the size of records, `ycsb` YCSB's phases, and `ours`
//! what the paper leaves open. `recency` replays the paper's rules of recency in a model.

mod layouts;
mod ours;
mod recency;
mod sizes;
mod ycsb;

use std::sync::Arc;
use std::time::Duration;

use terrace::tree::{Cutter, Layout, Leveled, Pacer, Silk};
use terrace::{Db, Options, Stats};

use super::scaled::scale_tree;
use super::{MEMTABLE_BYTES_MIN, closed_loop, memory_for, seconds, series};
use crate::Result;
use crate::paper::client::Records;
use crate::paper::experiment::Setting;
use crate::paper::machine::{Lab, Machine};
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Latencies;

pub use layouts::{figure_2_left, figure_2_right};
pub use ours::{figure_deletes, figure_reads};
pub use recency::figure_recency;
pub use sizes::{figure_6a, figure_6b};
pub use ycsb::{figure_7, section_1, table_1};

const KEY_BYTES: usize = 16;
const MEMTABLE_BYTES: u64 = 32 << 20;

/// A smaller table would take longer to find than to transfer.
const TABLE_BYTES_MIN: u64 = 64 << 10;

/// The stores that the paper compares, and the default.
const ROWS: [&str; 8] = ["l-lsm", "t-lsm", "ll-lsm", "pebblesdb", "silk", "wisckey", "ptier", "default"];

/// Those of `rows` whose profile there is.
fn known(rows: &[&'static str]) -> impl Iterator<Item = &'static str> + Clone {
    rows.iter().copied().filter(|row| *row == "leveldb" || Options::profile(row).is_some())
}

/// Of `relations` those between rows that there are.
fn judged(mut relations: Vec<Relation>) -> Vec<Relation> {
    relations.retain(|relation| !relation.measured.contains("NaN"));
    relations
}

/// RocksDB's level 1, which SILK's code has, for the authors of PTierDB set none.
const SILK_LEVEL1_BYTES: u64 = 256 << 20;
const SILK_INTERVAL: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What the block cache holds of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cache {
    /// All of it, and whatever else is read comes from the operating system's memory: the paper's machine.
    Whole,
    /// A tenth. Whatever else is read comes from the device.
    Tenth,
}

impl Cache {
    const BOTH: [Self; 2] = [Self::Whole, Self::Tenth];

    /// The name of a series.
    fn named(self, row: &str) -> String {
        match self {
            Self::Whole => row.into(),
            Self::Tenth => format!("{row}, cache 10 %"),
        }
    }

    /// Where the name of a relation begins.
    fn prefix(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Tenth => "cache 10 %: ",
        }
    }

    /// Tiers hold several versions of a record.
    fn bytes(self, data_bytes: u64) -> u64 {
        match self {
            Self::Whole => 4 * data_bytes,
            Self::Tenth => data_bytes / 10,
        }
    }
}

/// To read a block that is in the operating system's memory (`docs/design/costs.md`).
const MEMORY_READ: Duration = Duration::from_nanos(1900);

const DEVIATIONS: &[&str] = &[
    "sizes of memtables, tables and levels are divided by the scale; tables of at least 64 KiB, so that finding them does not outweigh their transfer",
    "the paper's machine has memory for all of the data: here a cache for all of it, and reads that miss it take what the operating system's memory takes; `cache 10 %` has a cache for a tenth of the data, and reads that miss it go to the device",
    "what a read takes of the processor follows from the tables, blocks and runs that the store searches",
    "each phase ends when the store has done all background work; latencies are the clients'",
    "no compression",
    "each thread has a processor of its own, compactions too",
];

/// The machine for a store of which so much is cached.
fn testbed(setting: &Setting, cache: Cache) -> Setting {
    let setting = setting.with_scaled_barriers();
    let setting = Setting { machine: setting.machine.clone().with_read_costs(), ..setting };
    match cache {
        Cache::Tenth => setting,
        Cache::Whole => setting.on("reads from memory", |model| {
            model.read_latency = MEMORY_READ;
            model.read_bandwidth = model.cache_bandwidth;
        }),
    }
}

/// The store of a row at the scale of a run.
fn options(setting: &Setting, row: &str, data_bytes: u64, cache: Cache) -> Result<Options> {
    let mut options = match row {
        "leveldb" => profile("leveldb-2m")?,
        "silk" => silk(setting)?,
        _ => profile(row)?,
    };
    options.memtable_bytes = setting.scaled(MEMTABLE_BYTES).max(MEMTABLE_BYTES_MIN);
    options.memory_bytes = Some(memory_for(cache.bytes(data_bytes), options.memtable_bytes));
    scale_tree(setting, &mut options.tree);
    if let Cutter::Size(size) | Cutter::Guards(size) | Cutter::Prefix(size) = &mut options.tree.cutter {
        size.table_bytes = size.table_bytes.max(TABLE_BYTES_MIN);
    }
    Ok(options)
}

fn profile(name: &str) -> Result<Options> {
    Options::profile(name).ok_or_else(|| format!("there is no profile {name:?}").into())
}

/// SILK as its authors' benchmark sets it up, on RocksDB's shape.
fn silk(setting: &Setting) -> Result<Options> {
    let (base, mut options) = (profile("rocksdb-64m")?, profile("silk")?);
    options.tree.layout = Layout::Leveled(Leveled { level1_bytes: SILK_LEVEL1_BYTES, ..Leveled::default() });
    if let (Pacer::Silk(Silk { limits, bandwidth, interval, .. }), Pacer::Governor(rocksdb)) =
        (&mut options.tree.pacer, base.tree.pacer)
    {
        *limits = rocksdb;
        limits.debt_slow_bytes = setting.scaled(limits.debt_slow_bytes);
        limits.debt_stop_bytes = setting.scaled(limits.debt_stop_bytes);
        if let Machine::Simulated { model, .. } = &setting.machine {
            bandwidth.device = Some(model.write_bandwidth);
            *interval = setting.scaled_time(SILK_INTERVAL).max(INTERVAL_MIN);
        }
    }
    Ok(options)
}

/// What clients did in one go, and what it cost.
#[derive(Clone)]
struct Phase {
    latencies: Latencies,
    /// Until the last client was done.
    time: Duration,
    /// Bytes of keys and values written by the client, and bytes written to tables.
    user_bytes: u64,
    table_bytes: u64,
    lookups: u64,
    tables_asked: u64,
    blocks: u64,
    /// Compactions of any kind.
    merges: u64,
    /// Bytes of live tables in the end.
    live_bytes: u64,
}

impl Phase {
    /// What `count` actions of one client cost, the background work that they leave included.
    fn measure(
        lab: &Lab,
        db: &Db,
        records: &Arc<Records>,
        (count, seed): (u64, u64),
        draw: Arc<super::Draw>,
    ) -> Result<Self> {
        let (started, before) = (lab.env().now(), db.stats());
        let latencies = closed_loop(lab, db, records, (1, count, seed), draw)?;
        let time = lab.env().now() - started;
        db.wait_idle()?;
        let after = db.stats();
        let grown = |count: fn(&Stats) -> u64| count(&after) - count(&before);
        Ok(Self {
            latencies,
            time,
            user_bytes: grown(|stats| stats.user_bytes_written),
            table_bytes: grown(|stats| stats.written.flush + stats.written.compaction),
            lookups: grown(|stats| stats.user_reads.gets),
            tables_asked: grown(|stats| stats.user_reads.tables_asked),
            blocks: grown(|stats| stats.cache.hits + stats.cache.misses),
            merges: grown(|stats| stats.compaction.jobs),
            live_bytes: after.space.live_bytes,
        })
    }

    /// Actions per second until the last client was done.
    fn rate(&self) -> f64 {
        self.latencies.count() as f64 / seconds(self.time).max(1e-9)
    }

    /// Bytes written to tables for each byte that the client wrote; 0 if it wrote none.
    fn write_amplification(&self) -> f64 {
        ratio(self.table_bytes, self.user_bytes)
    }

    fn tables_per_lookup(&self) -> f64 {
        ratio(self.tables_asked, self.lookups)
    }

    fn blocks_per_lookup(&self) -> f64 {
        ratio(self.blocks, self.lookups)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A store and what each phase cost on it.
struct Store {
    row: &'static str,
    cache: Cache,
    options: Options,
    phases: Vec<Phase>,
}

impl Store {
    /// Bytes written to tables for each byte that the client wrote, in all phases.
    fn write_amplification(&self) -> f64 {
        let sum = |bytes: fn(&Phase) -> u64| self.phases.iter().map(bytes).sum();
        ratio(sum(|phase| phase.table_bytes), sum(|phase| phase.user_bytes))
    }

    /// Mean over all actions of all phases, in microseconds.
    fn mean_latency(&self) -> f64 {
        let count: u64 = self.phases.iter().map(|phase| phase.latencies.count()).sum();
        let micros: f64 =
            self.phases.iter().map(|phase| phase.latencies.mean() * phase.latencies.count() as f64).sum();
        micros / count.max(1) as f64
    }

    /// Bytes of live tables after the last phase.
    fn live_bytes(&self) -> f64 {
        self.phases.last().map_or(0.0, |phase| phase.live_bytes as f64)
    }
}

/// What `measure` gives for the store of a row and a cache; not a number if it was not run.
fn of(stores: &[Store], row: &str, cache: Cache, measure: impl Fn(&Store) -> f64) -> f64 {
    let store = stores.iter().find(|store| store.row == row && store.cache == cache);
    store.map_or(f64::NAN, measure)
}

/// A line for each store: `measure` by phase.
fn lines(stores: &[Store], y: &Axis, measure: impl Fn(&Phase) -> f64) -> Vec<Series> {
    let points = |store: &Store| -> Vec<[f64; 2]> {
        store.phases.iter().zip(0_u32..).map(|(phase, at)| [f64::from(at), measure(phase)]).collect()
    };
    let line =
        |store: &Store| series(&store.cache.named(store.row), &store.options, y.clone(), points(store));
    stores.iter().map(line).collect()
}

fn at_least(name: &str, claim: &str, bound: f64, measured: f64) -> Relation {
    Relation::within(name, claim, bound..=f64::INFINITY, measured)
}

fn at_most(name: &str, claim: &str, bound: f64, measured: f64) -> Relation {
    Relation::within(name, claim, f64::NEG_INFINITY..=bound, measured)
}
