//! BoLT: the cost of barriers, by the size of tables and of groups.
//!
//! The paper loads 50 GB by four threads, 23-byte keys and values of 1 KB, on a machine of 8 GB; memtables of 64 MB.

use std::sync::Arc;

use std::time::Duration;

use terrace::{Options, Stats};

use super::bolt_shapes::{grouped, leveldb, set_table_bytes};
use super::bolt_syncs::{Jobs, Predicted, counted};
use super::{closed_loop, memory_for, seconds, series};
use crate::Result;
use crate::generator::Uniform;
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::paper::relation::exponent;
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

pub(super) const KEY_BYTES: usize = 23;
const VALUE_BYTES: usize = 1000;
pub(super) const THREADS: u64 = 4;

/// The paper's load.
const LOAD_RECORDS: u64 = 50_000_000;

/// The sizes that are compared, in MiB at the paper's scale.
const SIZES: [u64; 6] = [2, 4, 8, 16, 32, 64];

/// The model of `bolt_syncs`.
const MODEL: &str = "for each job a sync of each file that its bytes fill and one of the manifest";

const DEVIATIONS: &[&str] = &[
    "writers are slowed by Terrace's governor, a rate, where LevelDB sleeps 1 ms per write",
    "each thread has a processor of its own, compactions too",
];

/// A load and what it took.
struct Loaded {
    options: Options,
    stats: Stats,
    predicted: Predicted,
    latencies: Latencies,
    /// Inserts per second, the background work that they leave included.
    rate: f64,
}

/// YCSB's load.
fn load(setting: &Setting, options: Options) -> Result<Loaded> {
    let (seed, count) = (setting.seed, setting.scaled(LOAD_RECORDS));
    setting.machine.run(seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
        let jobs = Jobs::new(&options);
        let db = lab.open_told(options.clone(), jobs.clone())?;
        let started = lab.env().now();
        let insert = Arc::new(|number, _: &mut _| Action::Put(number));
        let latencies = closed_loop(lab, &db, &records, (THREADS, count, seed), insert)?;
        db.wait_idle()?;
        let rate = count as f64 / seconds(lab.env().now() - started);
        // The events of the last jobs come a moment after these have ended.
        lab.env().sleep(Duration::from_millis(100));
        let stats = db.stats();
        db.close()?;
        Ok(Loaded { options, stats, predicted: jobs.predicted(), latencies, rate })
    })
}

fn sweep(setting: &Setting, options: impl Fn(&Setting, u64) -> Options) -> Result<Vec<Loaded>> {
    SIZES.iter().map(|&mib| load(setting, options(setting, mib))).collect()
}

fn points(loads: &[Loaded], measure: impl Fn(&Loaded) -> f64) -> Vec<[f64; 2]> {
    SIZES.iter().zip(loads).map(|(&mib, loaded)| [mib as f64, measure(loaded)]).collect()
}

fn syncs(loaded: &Loaded) -> f64 {
    loaded.stats.syncs.total() as f64
}

/// Syncs that the jobs should have taken.
fn predicted(loaded: &Loaded) -> f64 {
    (loaded.predicted.floor + loaded.predicted.deep + loaded.stats.compaction.moves) as f64
}

/// The relative difference of the counted syncs of files and manifest from the predicted ones.
fn misprediction(loaded: &Loaded) -> f64 {
    (counted(&loaded.stats) as f64 / predicted(loaded) - 1.0).abs()
}

fn count_axis() -> Axis {
    Axis::logarithmic("syncs", "")
}

/// Syncs by the size of tables.
pub fn figure_4a(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_latencies();
    let loads = sweep(&setting, leveldb)?;
    let line = |name: &str, measure: fn(&Loaded) -> f64| {
        series(name, &loads[0].options, count_axis(), points(&loads, measure))
    };
    let all = points(&loads, syncs);
    let counts: Vec<f64> = all.iter().map(|point| point[1]).collect();
    Ok(Findings {
        x: Axis::logarithmic("size of a table, at the paper's scale", "MiB"),
        relations: vec![
            Relation::falling("syncs by size", "falls as tables grow", &counts),
            Relation::within(
                "exponent of syncs by size",
                "falls about in proportion to 1/size",
                -1.2..=-0.8,
                exponent(&all),
            ),
        ],
        series: vec![
            line("all", syncs),
            line("flush", |loaded| loaded.stats.syncs.flush as f64),
            line("merge", |loaded| loaded.stats.syncs.compaction as f64),
            line("manifest", |loaded| loaded.stats.syncs.manifest as f64),
            line("directory", |loaded| loaded.stats.syncs.directory as f64),
            line("directory, ahead of need", |loaded| loaded.stats.syncs.preallocate as f64),
        ],
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}

/// Latency of inserts by the size of tables.
pub fn figure_4b(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_latencies();
    let loads = sweep(&setting, leveldb)?;
    let tail = |loaded: &Loaded| loaded.latencies.percentile(99.9);
    let stalled =
        |loaded: &Loaded| loaded.stats.stalls.iter().map(|stall| stall.micros as f64 / 1e6).sum::<f64>();
    let (first, last) = (&loads[0], &loads[loads.len() - 1]);
    Ok(Findings {
        x: Axis::linear("percentile", "%"),
        series: SIZES
            .iter()
            .zip(&loads)
            .map(|(mib, loaded)| {
                let swapped =
                    loaded.latencies.distribution().iter().map(|&[micros, at]| [at, micros]).collect();
                let y = Axis::logarithmic("latency of an insert", "us");
                series(&format!("{mib} MiB"), &loaded.options, y, swapped)
            })
            .collect(),
        relations: vec![
            Relation::within(
                "p99.9 with the largest tables / with the smallest",
                "the tail falls with size",
                f64::NEG_INFINITY..=0.9,
                tail(last) / tail(first),
            ),
            Relation::within(
                "time that writers were held up, largest / smallest",
                "stalls vanish with size",
                f64::NEG_INFINITY..=0.5,
                stalled(last) / stalled(first),
            ),
        ],
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}

/// Results of loads by LevelDB, `base`, and by groups of [`SIZES`], compared with the model of their syncs.
fn modelled(base: &Loaded, loads: &[Loaded]) -> [Relation; 3] {
    let above_floor = |loaded: &Loaded| (counted(&loaded.stats) - loaded.predicted.floor) as f64;
    let worst = loads.iter().map(misprediction).fold(0.0, f64::max);
    [
        Relation::within(
            "groups: syncs of files and manifest, off the model's by at most",
            MODEL,
            0.0..=0.05,
            worst,
        ),
        Relation::within(
            "LevelDB: syncs of files and manifest, off the model's by",
            MODEL,
            0.0..=0.05,
            misprediction(base),
        ),
        Relation::within(
            "exponent of syncs, those of flushes and level 0 apart, by size of groups",
            "in inverse proportion, above a floor",
            -1.05..=-0.95,
            exponent(&points(loads, above_floor)),
        ),
    ]
}

/// Syncs and throughput by the size of groups.
pub fn figure_11(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_latencies();
    let base = load(&setting, leveldb(&setting, 2))?;
    let loads = sweep(&setting, grouped)?;
    let level = |measure: f64| SIZES.iter().map(|&mib| [mib as f64, measure]).collect();
    let rate_axis = || Axis::linear("inserts, drained", "1/s");
    let counts: Vec<f64> = loads.iter().map(syncs).collect();
    let best = loads.iter().map(|loaded| loaded.rate).fold(0.0, f64::max);
    Ok(Findings {
        x: Axis::logarithmic("size of a group of victims, at the paper's scale", "MiB"),
        relations: [
            vec![
                Relation::within(
                    "syncs of LevelDB / of groups of 2 MiB",
                    "about 2",
                    1.5..=2.5,
                    syncs(&base) / counts[0],
                ),
                Relation::falling("syncs by size of groups", "falls as groups grow", &counts),
                Relation::within(
                    "throughput with groups of 64 MiB / best",
                    "rises to groups of 64 MB",
                    0.98..=1.0,
                    loads[loads.len() - 1].rate / best,
                ),
            ],
            modelled(&base, &loads).to_vec(),
        ]
        .concat(),
        series: vec![
            series("LevelDB", &base.options, count_axis(), level(syncs(&base))),
            series("+GC", &loads[0].options, count_axis(), points(&loads, syncs)),
            series(
                "+GC, files and manifest",
                &loads[0].options,
                count_axis(),
                points(&loads, |loaded| counted(&loaded.stats) as f64),
            ),
            series(
                "+GC, files and manifest by the model",
                &loads[0].options,
                count_axis(),
                points(&loads, predicted),
            ),
            series(
                "+GC, of these by flushes and level 0",
                &loads[0].options,
                count_axis(),
                points(&loads, |loaded| loaded.predicted.floor as f64),
            ),
            series("LevelDB", &base.options, rate_axis(), level(base.rate)),
            series("+GC", &loads[0].options, rate_axis(), points(&loads, |loaded| loaded.rate)),
        ],
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}

/// The paper's database and lookups of figure 6, and the sizes of tables, which are not scaled: what a missed index costs
/// goes by its absolute size.
const READ_RECORDS: u64 = 90_000_000;
const LOOKUPS: u64 = 1_000_000;
const READ_TABLES_MIB: [u64; 2] = [2, 64];

/// The budget of the cache: one part in this many of the data, which has room for about three quarters of all
/// indexes.
const DATA_PER_CACHE: u64 = 100;

/// The index of a table of 64 MiB takes longer than this to read, a block far less.
const INDEX_MICROS: f64 = 500.0;

/// Latency of lookups by the size of tables, where indexes do not fit in memory.
pub fn figure_6(setting: &Setting) -> Result<Findings> {
    let stores = READ_TABLES_MIB.map(|mib| lookups(setting, mib));
    let [(small_options, small), (large_options, large)] = match stores {
        [Ok(small), Ok(large)] => [small, large],
        [Err(error), _] | [_, Err(error)] => return Err(error),
    };
    let y = || Axis::linear("lookups that take no longer", "%");
    let indexed = large.share_above(INDEX_MICROS);
    Ok(Findings {
        x: Axis::logarithmic("latency of a lookup", "us"),
        series: vec![
            series("2 MiB", &small_options, y(), small.distribution()),
            series("64 MiB", &large_options, y(), large.distribution()),
        ],
        relations: vec![
            Relation::within(
                "share of lookups in tables of 64 MiB that read an index",
                "about 0.25",
                0.15..=0.35,
                indexed,
            ),
            Relation::within(
                "p99 with tables of 64 MiB / of 2 MiB",
                "far higher",
                4.0..=f64::INFINITY,
                large.percentile(99.0) / small.percentile(99.0),
            ),
        ],
        deviations: vec![
            "Terrace in RocksDB's place, its cache charged by bytes, blocks and indexes together",
            "the same budget for both sizes; the paper's cache holds 32,000 tables of either",
            "tables are not scaled, the data is; loaded in the order of keys",
        ],
        machine: setting.machine.clone(),
    })
}

fn lookups(setting: &Setting, table_mib: u64) -> Result<(Options, Latencies)> {
    let (seed, count, lookups) = (setting.seed, setting.scaled(READ_RECORDS), setting.scaled(LOOKUPS));
    let mut options = leveldb(setting, table_mib);
    set_table_bytes(&mut options, table_mib << 20);
    options.memtable_bytes = 64 << 10;
    let data = count * (KEY_BYTES + VALUE_BYTES) as u64;
    options.memory_bytes = Some(memory_for(data / DATA_PER_CACHE, options.memtable_bytes));
    setting.machine.run(seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options.clone())?;
        records.ingest(&db, count)?;
        let uniform = Uniform::new(0, count - 1);
        let lookup = Arc::new(move |_, rng: &mut _| Action::Get(uniform.next(rng)));
        // The cache finds its balance before anything is measured.
        closed_loop(lab, &db, &records, (1, lookups / 2, !seed), lookup.clone())?;
        let latencies = closed_loop(lab, &db, &records, (1, lookups, seed), lookup)?;
        db.close()?;
        Ok((options, latencies))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::machine::Machine;
    use crate::paper::tests::brief_or_long;

    fn setting(scale: f64) -> Setting {
        Setting { machine: Machine::preset("laptop-sata-ssd").unwrap(), scale, seed: 1 }
    }

    #[test]
    fn larger_tables_take_fewer_syncs() {
        let setting = setting(16384.0);
        let [small, large] = [16, 64].map(|mib| load(&setting, leveldb(&setting, mib)).unwrap());
        assert!(syncs(&small) > syncs(&large), "{} and {}", syncs(&small), syncs(&large));
        for loaded in [small, large] {
            assert_eq!(loaded.stats.user_ops_written, 50_000_000 / 16384);
            assert_eq!(loaded.latencies.count(), 50_000_000 / 16384);
        }
    }

    /// The longest tests of this crate: apart, so that they run beside each other.
    fn take_the_syncs_that_the_model_says(group_mib: u64) {
        let setting = setting(brief_or_long(8192.0, 4096.0));
        let loaded = load(&setting, grouped(&setting, group_mib)).unwrap();
        let (counted, predicted) = (counted(&loaded.stats), predicted(&loaded));
        assert!(misprediction(&loaded) < 0.05, "{counted} for {predicted}");
    }

    #[test]
    fn jobs_of_small_groups_take_the_syncs_that_the_model_says() {
        take_the_syncs_that_the_model_says(2);
    }

    #[test]
    fn jobs_of_large_groups_take_the_syncs_that_the_model_says() {
        take_the_syncs_that_the_model_says(64);
    }
}
