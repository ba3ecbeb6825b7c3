//! PTierDB: the cost of each layout.
//!
//! The paper's first test: 100 million random writes, then as many operations of YCSB A, by one client, on records of
//! 256 bytes; memtables of 32 MB, level 1 of 10 MB, each level 6 times larger than the one before.

use std::sync::Arc;

use terrace::tree::{Cutter, Flushes, Layout, Leveled, TableSize};
use terrace::{Options, Stats};

use super::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, closed_loop, memory_for, series};
use crate::Result;
use crate::generator::{ScrambledZipfian, Uniform};
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 240;
const RECORDS: u64 = 100_000_000;
const MEMTABLE_BYTES: u64 = 32 << 20;
const TABLE_BYTES: u64 = 2 << 20;
const LEVEL1_BYTES: u64 = 10 << 20;
const LEVEL_RATIO: u32 = 6;

/// A smaller table would take longer to find than to transfer.
const TABLE_BYTES_MIN: u64 = 64 << 10;

/// A table that is never cut: each level is one.
const LEVEL_TABLE_BYTES: u64 = 1 << 30;

/// The cache holds one part in this many of the data.
const DATA_PER_CACHE: u64 = 10;

const DEVIATIONS: &[&str] = &[
    "the cache holds a tenth of the data; the paper's machine has room for all of it",
    "tables of at least 64 KiB, whatever the scale, so that finding them does not outweigh their transfer",
    "each thread has a processor of its own, compactions too",
];

/// LevelDB's shape, with tables of that size.
fn leveled(setting: &Setting, table_bytes: u64) -> Options {
    let mut options = Options::profile("leveldb-2m").unwrap_or_default();
    options.memtable_bytes = setting.scaled(MEMTABLE_BYTES).max(MEMTABLE_BYTES_MIN);
    let data = setting.scaled(RECORDS) * (KEY_BYTES + VALUE_BYTES) as u64;
    options.memory_bytes = Some(memory_for(data / DATA_PER_CACHE, options.memtable_bytes));
    options.tree.cutter = Cutter::Size(TableSize { table_bytes, flushes: Flushes::Whole });
    let level1_bytes = setting.scaled(LEVEL1_BYTES).max(LEVEL1_BYTES_MIN);
    options.tree.layout = Layout::Leveled(Leveled { level1_bytes, ratio: LEVEL_RATIO, ..Leveled::default() });
    options
}

/// What a layout cost.
struct Cost {
    name: &'static str,
    options: Options,
    /// Bytes of tables written for each byte that the client wrote.
    write: f64,
    /// Bytes of live tables for each byte of data.
    space: f64,
    /// Blocks that a lookup asked for.
    read: f64,
    latencies: Latencies,
}

fn measure(setting: &Setting, name: &'static str, options: Options) -> Result<Cost> {
    let (seed, count) = (setting.seed, setting.scaled(RECORDS));
    setting.machine.run(seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options.clone())?;
        let write = |number, _: &mut _| Action::Put(number);
        let mut latencies = closed_loop(lab, &db, &records, (1, count, seed), Arc::new(write))?;
        let uniform = Uniform::new(0, 1);
        let popular = ScrambledZipfian::new(0, count);
        let mixed = Arc::new(move |_, rng: &mut _| {
            let record = popular.next(rng);
            if uniform.next(rng) == 0 { Action::Get(record) } else { Action::Put(record) }
        });
        let before = db.stats();
        latencies.merge(&closed_loop(lab, &db, &records, (1, count, seed), mixed)?);
        let blocks = |stats: &Stats| stats.cache.hits + stats.cache.misses;
        let asked = blocks(&db.stats()) - blocks(&before);
        db.wait_idle()?;
        let stats = db.stats();
        db.close()?;
        let gets = 2 * count - stats.user_ops_written;
        let data = count * (KEY_BYTES + VALUE_BYTES) as u64;
        Ok(Cost {
            name,
            options,
            write: (stats.written.flush + stats.written.compaction) as f64 / stats.user_bytes_written as f64,
            space: stats.space.live_bytes as f64 / data as f64,
            read: asked as f64 / gets.max(1) as f64,
            latencies,
        })
    })
}

fn leveled_and_leveldb(setting: &Setting) -> Result<[Cost; 2]> {
    let leveldb = leveled(setting, setting.scaled(TABLE_BYTES).max(TABLE_BYTES_MIN));
    let one_table = leveled(setting, LEVEL_TABLE_BYTES);
    Ok([measure(setting, "LevelDB", leveldb)?, measure(setting, "l_LSM", one_table)?])
}

/// Write, space and read amplification and mean latency.
pub fn figure_2_left(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let costs = leveled_and_leveldb(&setting)?;
    let amplification = |cost: &Cost| {
        let points = vec![[0.0, cost.write], [1.0, cost.space], [2.0, cost.read]];
        series(cost.name, &cost.options, Axis::linear("amplification", ""), points)
    };
    let latency = |cost: &Cost| {
        let y = Axis::linear("mean latency", "us");
        series(cost.name, &cost.options, y, vec![[3.0, cost.latencies.mean()]])
    };
    let [leveldb, whole] = &costs;
    Ok(Findings {
        x: Axis::named("cost", &["written", "space", "blocks per lookup", "latency"]),
        relations: vec![Relation::within(
            "mean latency of l_LSM / LevelDB",
            "leveling has the worst latency",
            1.0..=f64::INFINITY,
            whole.latencies.mean() / leveldb.latencies.mean(),
        )],
        series: costs.iter().map(amplification).chain(costs.iter().map(latency)).collect(),
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}

/// Distribution of latencies.
pub fn figure_2_right(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let costs = leveled_and_leveldb(&setting)?;
    let [leveldb, whole] = &costs;
    let lower = (1_u32..100)
        .map(f64::from)
        .filter(|&percent| whole.latencies.percentile(percent) < leveldb.latencies.percentile(percent))
        .count();
    Ok(Findings {
        x: Axis::logarithmic("latency of an operation", "us"),
        relations: vec![
            Relation::within(
                "share of percentiles at which l_LSM is faster",
                "about half of the operations",
                0.3..=0.7,
                lower as f64 / 99.0,
            ),
            Relation::within(
                "p99.9 of l_LSM / LevelDB",
                "a long tail",
                2.0..=f64::INFINITY,
                whole.latencies.percentile(99.9) / leveldb.latencies.percentile(99.9),
            ),
        ],
        series: costs
            .iter()
            .map(|cost| {
                let y = Axis::linear("operations that take no longer", "%");
                series(cost.name, &cost.options, y, cost.latencies.distribution())
            })
            .collect(),
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}
