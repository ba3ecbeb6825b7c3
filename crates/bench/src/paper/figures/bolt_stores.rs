//! BoLT's parts one by one, and BoLT beside other stores: figures 12 to 16.
//!
//! The other stores are Terrace with their layouts, so that nothing but the layout differs.

use super::bolt_shapes::{
    BOLT, BOLT_FOR_LARGE, DEFAULT, DEFAULT_FOR_LARGE, GROUPED, HYPER_GROUPED, HYPER_LOGICAL, HYPER_SETTLED,
    HYPER_SHARED, HYPERBOLT, HYPERLEVELDB, LEVELDB, LOGICAL, LVL64MB, ROCKSDB, SETTLED, SHARED, Shape,
};
use super::bolt_ycsb::{Data, LARGE, PHASES, SMALL, Store, curves, rates_and_bytes, run_all, run_both};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::workload::order::{self, Order};

/// Places of phases in [`PHASES`].
const LA: usize = 0;
const A: usize = 1;
const B: usize = 2;
const C: usize = 3;
const F: usize = 4;
const D: usize = 5;
const LE: usize = 6;
const E: usize = 7;

/// The tolerance of "not worse": the order of a simulation's threads alone changes a rate by this much.
const NOISE: f64 = 0.02;

const DEVIATIONS: &[&str] = &[
    "the compared stores are Terrace with their shapes: levels, tables, files, limits of level 0",
    "each phase's rate includes the background work that it leaves behind",
    "writers are slowed by Terrace's governor, a rate, where LevelDB sleeps 1 ms per write",
    "each thread has a processor of its own, compactions too",
    "a store is closed and opened again behind its load, which is run once for all phases and distributions",
    "syncs are shortened by the scale, as tables are smaller; reads and opening files while loading alone, as blocks are the paper's",
    "open tables and blocks share one budget of bytes; the paper's stores count open tables",
];

fn stores<const N: usize>(
    setting: &Setting,
    shapes: [Shape; N],
    data: Data,
    order: Order,
) -> Result<[Store; N]> {
    run_all(setting, &shapes, data, order)?.try_into().map_err(|_| "a store is missing".into())
}

fn at_least(name: &str, claim: &str, least: f64, measured: f64) -> Relation {
    Relation::within(name, claim, least..=f64::INFINITY, measured)
}

fn at_most(name: &str, claim: &str, most: f64, measured: f64) -> Relation {
    Relation::within(name, claim, f64::NEG_INFINITY..=most, measured)
}

/// Further settings of the stores of 100 GB.
const LARGE_DEVIATION: &str =
    "tables of BoLT and the default are of 128 KiB at the least, 32 blocks; the paper's hold 256";

fn findings_of_large(setting: Setting, x: Axis, series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    let mut findings = findings(setting, x, series, relations);
    findings.deviations.push(LARGE_DEVIATION);
    findings
}

fn findings(setting: Setting, x: Axis, series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    Findings { x, series, relations, deviations: DEVIATIONS.to_vec(), machine: setting.machine }
}

/// The ratio of a phase's rates.
fn faster(one: &Store, other: &Store, phase: usize) -> f64 {
    one.rate(phase) / other.rate(phase)
}

/// The ratio of `one` to `other` in the phase in which `one` does worst.
fn worst(one: &Store, other: &Store) -> f64 {
    (0..PHASES.len()).map(|phase| faster(one, other, phase)).fold(f64::INFINITY, f64::min)
}

fn named(mut series: Vec<Series>, what: &str) -> Vec<Series> {
    for series in &mut series {
        series.name = format!("{}, {what}", series.name);
    }
    series
}

/// The parts of BoLT, one after the other, on LevelDB.
pub fn figure_12a(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let stores = stores(&setting, [LEVELDB, LOGICAL, GROUPED, SETTLED, SHARED], SMALL, order::BOLT)?;
    let [base, logical, grouped, settled, shared] = &stores;
    let relations = vec![
        Relation::within("LA: +LS / LevelDB", "about equal", 0.8..=1.25, faster(logical, base, LA)),
        Relation::within("LE: +LS / LevelDB", "about equal", 0.8..=1.25, faster(logical, base, LE)),
        at_least("LA: +GC / LevelDB", "2.5 times", 2.5, faster(grouped, base, LA)),
        at_least("LE: +GC / LevelDB", "2.5 times", 2.5, faster(grouped, base, LE)),
        at_most(
            "bytes: +STL / +GC",
            "9.53 % less; at least fewer",
            0.999,
            settled.written() / grouped.written(),
        ),
        at_least(
            "the worst phase: +FC / +STL",
            "a gain; at least not worse",
            1.0 - NOISE,
            worst(shared, settled),
        ),
        at_least("D: all parts / LevelDB", "51 % more", 1.51, faster(shared, base, D)),
    ];
    Ok(findings(setting, Axis::named("phase", &PHASES), rates_and_bytes(&stores), relations))
}

/// The same on HyperLevelDB.
pub fn figure_12b(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let shapes = [HYPERLEVELDB, HYPER_LOGICAL, HYPER_GROUPED, HYPER_SETTLED, HYPER_SHARED];
    let stores = stores(&setting, shapes, SMALL, order::BOLT)?;
    let [base, logical, grouped, settled, shared] = &stores;
    let others = [base, grouped, settled, shared];
    let slowest =
        (0..PHASES.len()).filter(|&phase| others.iter().all(|other| faster(logical, other, phase) <= 1.0));
    let writes = [LA, A, F, LE].map(|phase| faster(shared, base, phase)).into_iter().fold(0.0, f64::max);
    let relations = vec![
        at_least("phases of 8 in which +LS is the slowest", "nearly all", 6.0, slowest.count() as f64),
        Relation::within(
            "bytes: +LS / HyperLevelDB",
            "25 % less",
            0.65..=0.85,
            logical.written() / base.written(),
        ),
        at_least("the worst phase: +GC / HyperLevelDB", "faster in all", 1.0, worst(grouped, base)),
        at_most("bytes: +STL / +GC", "less", 0.999, settled.written() / grouped.written()),
        at_least(
            "the worst phase: +FC / +STL",
            "a gain; at least not worse",
            1.0 - NOISE,
            worst(shared, settled),
        ),
        at_least("the best of LA, A, F, LE: all parts / HyperLevelDB", "up to 33 % more", 1.33, writes),
        at_least("C: all parts / HyperLevelDB", "up to 56 % more", 1.56, faster(shared, base, C)),
    ];
    Ok(findings(setting, Axis::named("phase", &PHASES), rates_and_bytes(&stores), relations))
}

/// BoLT beside other stores.
pub fn figure_13(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    let shapes = [BOLT, LEVELDB, LVL64MB, HYPERLEVELDB, HYPERBOLT, ROCKSDB, DEFAULT];
    let both = run_both(&setting, &shapes, SMALL, order::BOLT)?;
    for ((uniform, keys), stores) in [(false, "zipfian"), (true, "uniform")].into_iter().zip(both) {
        let [bolt, leveldb, large, hyper, hyperbolt, rocksdb, terrace] = &stores[..] else {
            return Err("a store is missing".into());
        };
        let name = |what: &str| format!("{keys}, {what}");
        let reads =
            [B, C].map(|phase| faster(bolt, leveldb, phase)).into_iter().fold(f64::INFINITY, f64::min);
        relations.push(at_least(&name("the worse of B, C: BoLT / LevelDB"), "faster", 1.0, reads));
        if !uniform {
            // A load has no popular keys: it is the same with both.
            relations.extend([
                at_least("LA: BoLT / LevelDB", "3.24", 3.24, faster(bolt, leveldb, LA)),
                at_least("LA: BoLT / LVL64MB", "1.17", 1.17, faster(bolt, large, LA)),
                at_least("LA: LVL64MB / LevelDB", "2.75", 2.75, faster(large, leveldb, LA)),
                at_least("LA: BoLT / RocksDB's shape", "1.58", 1.58, faster(bolt, rocksdb, LA)),
                at_least(
                    "LA: HyperLevelDB / LVL64MB",
                    "up to 1.659; at least faster",
                    1.0,
                    faster(hyper, large, LA),
                ),
                at_least("LA: HyperBoLT / HyperLevelDB", "1.44", 1.44, faster(hyperbolt, hyper, LA)),
                at_least("LA: Terrace / LevelDB", "BoLT's 3.24", 3.24, faster(terrace, leveldb, LA)),
                at_least("LA: Terrace / RocksDB's shape", "BoLT's 1.58", 1.58, faster(terrace, rocksdb, LA)),
            ]);
        }
        relations.extend([
            at_most(&name("bytes: BoLT / LevelDB"), "16 % less", 0.84, bolt.written() / leveldb.written()),
            at_most(&name("bytes: BoLT / LVL64MB"), "less", 1.0, bolt.written() / large.written()),
            Relation::within(
                &name("bytes: LVL64MB / LevelDB"),
                "9 % more",
                1.0..=1.18,
                large.written() / leveldb.written(),
            ),
        ]);
        series.extend(named(rates_and_bytes(&stores), keys));
    }
    Ok(findings(setting, Axis::named("phase", &PHASES), series, relations))
}

/// Tail of inserts.
pub fn figure_14a(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let shapes = [BOLT, LEVELDB, LVL64MB, HYPERLEVELDB, HYPERBOLT, ROCKSDB];
    let stores = stores(&setting, shapes, SMALL, &[&["load"]])?;
    let [bolt, leveldb, _, hyper, hyperbolt, rocksdb] = &stores;
    let tail =
        |one: &Store, other: &Store, percent| one.percentile(LA, percent) / other.percentile(LA, percent);
    let relations = vec![
        at_most("p99.9 of BoLT / LevelDB", "lower", 1.0, tail(bolt, leveldb, 99.9)),
        at_most("p99.5 of BoLT / RocksDB's shape", "comparable", 1.25, tail(bolt, rocksdb, 99.5)),
        at_most("p99.85 of HyperBoLT / HyperLevelDB", "lower", 1.0, tail(hyperbolt, hyper, 99.85)),
    ];
    Ok(findings(setting, Axis::logarithmic("latency of an insert", "us"), curves(&stores, LA), relations))
}

/// Tail of lookups.
pub fn figure_14b(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let shapes = [BOLT, LEVELDB, LVL64MB, HYPERLEVELDB, HYPERBOLT, ROCKSDB, DEFAULT];
    let stores = stores(&setting, shapes, SMALL, &[&["load", "c"]])?;
    let [bolt, .., rocksdb, terrace] = &stores;
    let lookups = 1;
    let jump = |store: &Store| store.percentile(lookups, 98.5) / store.percentile(lookups, 97.0);
    let p97 = bolt.percentile(lookups, 97.0) / rocksdb.percentile(lookups, 97.0);
    let relations = vec![
        Relation::within("p97 of BoLT / RocksDB's shape", "equal", 0.8..=1.25, p97),
        at_most("p98.5 / p97 of BoLT", "no jump", 1.5, jump(bolt)),
        at_most("p98.5 / p97 of Terrace", "no jump", 1.5, jump(terrace)),
        at_least("p98.5 / p97 of RocksDB's shape", "a jump at p98", 1.5, jump(rocksdb)),
    ];
    Ok(findings(setting, Axis::logarithmic("latency of a lookup", "us"), curves(&stores, lookups), relations))
}

/// BoLT and RocksDB's shape on 100 GB.
pub fn figure_15(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (data, size, load) in [(LARGE[0], "1 KB", 1.58), (LARGE[1], "100 B", 1.0)] {
        let stores = stores(&setting, [BOLT_FOR_LARGE, ROCKSDB, DEFAULT_FOR_LARGE], data, order::BOLT)?;
        let [bolt, rocksdb, terrace] = &stores;
        for (phase, least) in [(LA, load), (LE, load), (E, 1.0)] {
            let claim = if least > 1.0 { "up to 1.58" } else { "lost in the paper; not to be lost here" };
            for store in [bolt, terrace] {
                let name = format!("{size}, {}: {} / RocksDB's shape", PHASES[phase], store.name());
                relations.push(at_least(&name, claim, least, faster(store, rocksdb, phase)));
            }
        }
        series.extend(named(rates_and_bytes(&stores), size));
    }
    Ok(findings_of_large(setting, Axis::named("phase", &PHASES), series, relations))
}

/// Latencies of BoLT and RocksDB's shape on 100 GB.
pub fn figure_16(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_syncs();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (data, size) in LARGE.into_iter().zip(["1 KB", "100 B"]) {
        let stores = stores(&setting, [BOLT_FOR_LARGE, ROCKSDB], data, &[&["load", "a", "c"]])?;
        let [bolt, rocksdb] = &stores;
        for (phase, name) in ["LA", "A", "C"].into_iter().enumerate() {
            let ratio = rocksdb.percentile(phase, 99.9) / bolt.percentile(phase, 99.9);
            let relation = format!("{size}, {name}: p99.9 of RocksDB's shape / BoLT");
            relations.push(at_least(&relation, "above everywhere", 1.0, ratio));
            series.extend(named(curves(&stores, phase), &format!("{size}, {name}")));
        }
    }
    Ok(findings_of_large(setting, Axis::logarithmic("latency of an operation", "us"), series, relations))
}
