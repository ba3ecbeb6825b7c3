//! The cost of each layout: write, space and read amplification, and latency.
//!
//! The paper's first test: 100 million random writes, then as many operations of YCSB A, by one client, on records of 256
//! bytes; each level 6 times larger than the one before.

use std::sync::Arc;

use terrace::Options;
use terrace::tree::Layout;

use super::{
    Cache, DEVIATIONS, KEY_BYTES, Phase, Store, at_least, at_most, judged, known, of, options, series,
    testbed,
};
use crate::Result;
use crate::generator::{ScrambledZipfian, Uniform};
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

const VALUE_BYTES: usize = 240;
const RECORDS: u64 = 100_000_000;
const LEVEL_RATIO: u32 = 6;

const ROWS: [&str; 4] = ["leveldb", "l-lsm", "t-lsm", "ll-lsm"];

/// The ratio of this test.
fn set_ratio(options: &mut Options) {
    match &mut options.tree.layout {
        Layout::Leveled(leveled) => leveled.ratio = LEVEL_RATIO,
        Layout::Tiered(tiered) => {
            tiered.ratio = LEVEL_RATIO;
            // As many runs as a level is larger than the one above.
            for runs in [&mut tiered.runs, &mut tiered.last_runs] {
                if *runs > 1 {
                    *runs = LEVEL_RATIO;
                }
            }
        }
        _ => {}
    }
}

/// Random writes, then YCSB A, on the store of a row.
fn run(setting: &Setting, row: &'static str, cache: Cache) -> Result<Store> {
    let setting = testbed(setting, cache);
    let (seed, count) = (setting.seed, setting.scaled(RECORDS));
    let mut options = options(&setting, row, count * (KEY_BYTES + VALUE_BYTES) as u64, cache)?;
    set_ratio(&mut options);
    let opened = options.clone();
    let phases = setting.machine.run(seed, move |lab| {
        let db = lab.open(opened)?;
        let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
        let write = |number, _: &mut _| Action::Put(number);
        let writes = Phase::measure(lab, &db, &records, (count, seed), Arc::new(write))?;
        let uniform = Uniform::new(0, 1);
        let popular = ScrambledZipfian::new(0, count);
        let mixed = move |_, rng: &mut _| {
            let record = popular.next(rng);
            if uniform.next(rng) == 0 { Action::Get(record) } else { Action::Put(record) }
        };
        let mixed = Phase::measure(lab, &db, &records, (count, seed), Arc::new(mixed))?;
        db.close()?;
        Ok(vec![writes, mixed])
    })?;
    Ok(Store { row, cache, options, phases })
}

fn run_all(setting: &Setting, rows: &[&'static str], caches: &[Cache]) -> Result<Vec<Store>> {
    let each = caches.iter().flat_map(|&cache| known(rows).map(move |row| (row, cache)));
    each.map(|(row, cache)| run(setting, row, cache)).collect()
}

/// Bytes of live tables for each byte of data.
fn space(setting: &Setting, store: &Store) -> f64 {
    store.live_bytes() / (setting.scaled(RECORDS) * (KEY_BYTES + VALUE_BYTES) as u64) as f64
}

/// Blocks that a lookup searched.
fn blocks(store: &Store) -> f64 {
    store.phases.last().map_or(f64::NAN, Phase::blocks_per_lookup)
}

/// Latencies of all operations.
fn latencies(store: &Store) -> Latencies {
    let mut all = Latencies::default();
    store.phases.iter().for_each(|phase| all.merge(&phase.latencies));
    all
}

/// Write, space and read amplification and mean latency.
pub fn figure_2_left(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &ROWS, &Cache::BOTH)?;
    let amplification = |store: &Store| {
        let points =
            vec![[0.0, store.write_amplification()], [1.0, space(setting, store)], [2.0, blocks(store)]];
        series(&store.cache.named(store.row), &store.options, Axis::linear("amplification", ""), points)
    };
    let latency = |store: &Store| {
        let y = Axis::linear("mean latency", "us");
        series(&store.cache.named(store.row), &store.options, y, vec![[3.0, store.mean_latency()]])
    };
    let whole = Cache::Whole;
    let written = |row: &str| of(&stores, row, whole, Store::write_amplification);
    let mut relations = vec![
        Relation::falling(
            "written to tables / by the client: l, ll, t",
            "l highest, t lowest",
            &[written("l-lsm"), written("ll-lsm"), written("t-lsm")],
        ),
        at_least("written: l / LevelDB", "l highest", 1.0, written("l-lsm") / written("leveldb")),
        at_most("written: ll / t", "just above", 1.5, written("ll-lsm") / written("t-lsm")),
        Relation::falling(
            "blocks searched per lookup: t, ll, l",
            "the reverse",
            &["t-lsm", "ll-lsm", "l-lsm"].map(|row| of(&stores, row, whole, blocks)),
        ),
    ];
    for cache in Cache::BOTH {
        let mean = |row: &str| of(&stores, row, cache, Store::mean_latency);
        let others = ["leveldb", "t-lsm", "ll-lsm"].map(mean).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let name = format!("{}mean latency: l / the worst other", cache.prefix());
        relations.push(at_least(&name, "l worst", 1.0, mean("l-lsm") / others));
    }
    Ok(Findings {
        x: Axis::named("cost", &["written", "space", "blocks per lookup", "latency"]),
        relations: judged(relations),
        series: stores.iter().map(amplification).chain(stores.iter().map(latency)).collect(),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Tenth).machine,
    })
}

/// Distribution of latencies.
pub fn figure_2_right(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &["leveldb", "l-lsm"], &[Cache::Whole])?;
    let [leveldb, whole] = ["leveldb", "l-lsm"]
        .map(|row| stores.iter().find(|store| store.row == row).map(latencies).unwrap_or_default());
    let lower = (1_u32..100)
        .map(f64::from)
        .filter(|&percent| whole.percentile(percent) < leveldb.percentile(percent))
        .count();
    Ok(Findings {
        x: Axis::logarithmic("latency of an operation", "us"),
        relations: judged(vec![
            Relation::within(
                "share of percentiles at which l is faster than LevelDB",
                "about half of the operations",
                0.3..=0.7,
                if whole.count() > 0 { lower as f64 / 99.0 } else { f64::NAN },
            ),
            at_least(
                "p99.9 of l / LevelDB",
                "a long tail",
                2.0,
                whole.percentile(99.9) / leveldb.percentile(99.9),
            ),
        ]),
        series: stores
            .iter()
            .map(|store| {
                let y = Axis::linear("operations that take no longer", "%");
                series(store.row, &store.options, y, latencies(store).distribution())
            })
            .collect(),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Whole).machine,
    })
}
