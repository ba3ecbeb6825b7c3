//! BoLT: YCSB over its parts, and beside stores of other shapes.
//!
//! The paper loads 50 GB and runs A, B, C, F and D on it, wipes it, loads again and runs E; 10 million operations a phase by
//! four threads. Its other stores are stood for by Terrace with their shapes, so that nothing but the shape differs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrace::{Db, Options};

use super::bolt::{KEY_BYTES, MEMORY_BYTES, THREADS, grouped, leveldb};
use super::{LEVEL1_BYTES_MIN, closed_loop, memory_for, seconds, series};
use crate::Result;
use crate::generator::{Rng, ScrambledZipfian, Zipfian};
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::Lab;
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::workload::order::{self, Order};
use crate::ycsb::keys::InsertOrder;

const OPERATIONS: u64 = 10_000_000;

/// Rows of a scan, at most.
const SCAN_ROWS: u64 = 100;

/// YCSB's skew.
const THETA: f64 = 0.99;

/// The phases of the paper's order; E has a store and a load of its own.
const PHASES: [&str; 8] = ["LA", "A", "B", "C", "F", "D", "LE", "E"];
const LOAD_A: usize = 0;
const LOAD_E: usize = 6;
const E: usize = 7;

const DEVIATIONS: &[&str] = &[
    "the compared stores are Terrace with their shapes: levels, tables, files, limits of level 0",
    "each phase's rate includes the background work that it leaves behind",
    "writers are slowed by Terrace's governor, a rate, where LevelDB sleeps 1 ms per write",
    "merges cost device time alone: the processor's is not modelled",
    "syncs are shortened by the scale, as tables are smaller; reads are not, as blocks are the paper's",
];

/// What a data set is like.
#[derive(Clone, Copy)]
struct Data {
    records: u64,
    value_bytes: usize,
    /// Whether all records are equally popular.
    uniform: bool,
}

/// The paper's data of 50 GB.
const SMALL: Data = Data { records: 50_000_000, value_bytes: 1000, uniform: false };

/// Its two of 100 GB.
const LARGE: [Data; 2] = [
    Data { records: 100_000_000, ..SMALL },
    Data { records: 1_000_000_000, value_bytes: 100, uniform: false },
];

/// A store and what each phase was on it.
struct Store {
    name: &'static str,
    options: Options,
    phases: Vec<Phase>,
}

struct Phase {
    /// Operations per second, the background work that they leave included.
    rate: f64,
    latencies: Latencies,
    /// Bytes that flushes and merges wrote.
    written: u64,
}

/// One kind of store.
type Shape = (&'static str, fn(&Setting) -> Options);

const LEVELDB: Shape = ("LevelDB", |setting| leveldb(setting, 2));
const LVL64MB: Shape = ("LVL64MB", |setting| leveldb(setting, 64));
const ROCKSDB: Shape = ("RocksDB's shape", rocksdb);
const LOGICAL: Shape = ("+LS", |setting| grouped(setting, 0));
const GROUPED: Shape = ("+GC", |setting| grouped(setting, 64));
const SETTLED: Shape = ("+STL", settled);
const BOLT: Shape = ("BoLT", bolt);

/// All parts, and flushes cut into logical tables, as Terrace does: so a part of level 0 can be merged by itself.
fn bolt(setting: &Setting) -> Options {
    let mut options = settled(setting);
    options.tree.flush_single_table = false;
    options
}

/// Groups, and settled compaction.
fn settled(setting: &Setting) -> Options {
    let mut options = grouped(setting, 64);
    options.tree.settle = true;
    options
}

/// RocksDB's levels, tables and limits of level 0, as the paper has set them (section 4.3.3).
fn rocksdb(setting: &Setting) -> Options {
    let mut options = leveldb(setting, 64);
    options.tree.level1_bytes = setting.scaled(256 << 20).max(LEVEL1_BYTES_MIN);
    (options.tree.l0_slow, options.tree.l0_stop) = (20, 36);
    options
}

/// Runs the phases of `order` on stores of that shape, one for each list; the same as the paper's order or a part of it.
fn run(setting: &Setting, (name, options): Shape, data: Data, order: Order) -> Result<Store> {
    let mut options = options(setting);
    // More data is no more memory; fewer or smaller records, as in tests, would all be cached.
    let bytes = data.records * (KEY_BYTES + data.value_bytes) as u64;
    let memory = setting.scaled(MEMORY_BYTES.min(bytes / 6));
    options.memory_bytes = Some(memory_for(memory, options.memtable_bytes));
    let mut all = Vec::new();
    for &phases in order {
        let (opened, seed) = (options.clone(), setting.seed);
        let size = Size {
            records: setting.scaled(data.records),
            operations: setting.scaled(OPERATIONS),
            uniform: data.uniform,
            seed,
        };
        all.extend(setting.machine.run(seed, move |lab| {
            let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, data.value_bytes)?);
            let db = lab.open(opened)?;
            let inserted = Arc::new(AtomicU64::new(size.records));
            let done =
                phases.iter().map(|phase| measure(lab, &db, &records, size, draw(phase, size, &inserted)));
            let done: Vec<Phase> = done.collect::<Result<_>>()?;
            db.close()?;
            Ok(done)
        })?);
    }
    Ok(Store { name, options, phases: all })
}

fn run_all(setting: &Setting, shapes: &[Shape], data: Data, order: Order) -> Result<Vec<Store>> {
    shapes.iter().map(|&shape| run(setting, shape, data, order)).collect()
}

/// A data set at the scale of a run.
#[derive(Clone, Copy)]
struct Size {
    records: u64,
    operations: u64,
    uniform: bool,
    seed: u64,
}

/// What clients do in a phase.
struct Draw {
    action: Arc<super::Draw>,
    actions: u64,
    operations: u64,
}

fn measure(lab: &Lab, db: &Db, records: &Arc<Records>, size: Size, draw: Draw) -> Result<Phase> {
    let written = || {
        let stats = db.stats();
        stats.written.flush + stats.written.merge
    };
    let (started, before) = (lab.env().now(), written());
    let latencies = closed_loop(lab, db, records, (THREADS, draw.actions, size.seed), draw.action)?;
    db.wait_idle()?;
    let rate = draw.operations as f64 / seconds(lab.env().now() - started);
    Ok(Phase { rate, latencies, written: written() - before })
}

fn draw(phase: &str, size: Size, inserted: &Arc<AtomicU64>) -> Draw {
    let Size { records, operations, uniform, seed } = size;
    let popular = ScrambledZipfian::new(0, records);
    let any = Arc::new(move |rng: &mut Rng| if uniform { rng.below(records) } else { popular.next(rng) });
    let inserted = inserted.clone();
    let insert = {
        let inserted = inserted.clone();
        move || Action::Put(inserted.fetch_add(1, Ordering::Relaxed))
    };
    let mixed = |action| Draw { action, actions: operations, operations };
    let updates = |percent: u64| -> Arc<super::Draw> {
        let any = any.clone();
        Arc::new(move |_, rng| {
            let record = any(rng);
            if rng.below(100) < percent { Action::Put(record) } else { Action::Get(record) }
        })
    };
    match phase {
        "load" => {
            Draw { action: Arc::new(|number, _| Action::Put(number)), actions: records, operations: records }
        }
        "a" => mixed(updates(50)),
        "b" => mixed(updates(5)),
        "c" => mixed(updates(0)),
        "d" => {
            let ages = Zipfian::new(records, THETA);
            mixed(Arc::new(move |_, rng| match rng.below(100) {
                0..5 => insert(),
                _ => Action::Get(inserted.load(Ordering::Relaxed).saturating_sub(1 + ages.next(rng))),
            }))
        }
        "e" => mixed(Arc::new(move |_, rng| match rng.below(100) {
            0..5 => insert(),
            _ => Action::Scan { from: any(rng), records: 1 + rng.below(SCAN_ROWS) },
        })),
        // Half of the operations read, half write what they have read: three actions in two operations.
        _ => Draw {
            action: Arc::new(move |number, _| {
                let (pair, action) = (number / 3, number % 3);
                let record = any(&mut Rng::stream(seed, 2 * pair + action.min(1)));
                if action == 2 { Action::Put(record) } else { Action::Get(record) }
            }),
            actions: operations / 2 * 3,
            operations,
        },
    }
}

fn bars(stores: &[Store], y: &Axis, measure: impl Fn(&Phase) -> f64) -> Vec<Series> {
    let points = |store: &Store| -> Vec<[f64; 2]> {
        store.phases.iter().zip(0_u8..).map(|(phase, at)| [f64::from(at), measure(phase)]).collect()
    };
    stores.iter().map(|store| series(store.name, &store.options, y.clone(), points(store))).collect()
}

/// Rates and bytes of all phases.
fn rates_and_bytes(stores: &[Store]) -> Vec<Series> {
    let mut all = bars(stores, &Axis::linear("operations, drained", "1/s"), |phase| phase.rate);
    all.extend(bars(stores, &Axis::linear("written to tables", "MB"), |phase| phase.written as f64 / 1e6));
    all
}

fn curves(stores: &[Store], phase: usize) -> Vec<Series> {
    let y = || Axis::linear("operations that take no longer", "%");
    let line =
        |store: &Store| series(store.name, &store.options, y(), store.phases[phase].latencies.distribution());
    stores.iter().map(line).collect()
}

impl Store {
    fn rate(&self, phase: usize) -> f64 {
        self.phases[phase].rate
    }

    fn written(&self) -> f64 {
        self.phases.iter().map(|phase| phase.written as f64).sum()
    }

    fn percentile(&self, phase: usize, percent: f64) -> f64 {
        self.phases[phase].latencies.percentile(percent)
    }
}

fn at_least(name: &str, claim: &str, least: f64, measured: f64) -> Relation {
    Relation::within(name, claim, least..=f64::INFINITY, measured)
}

fn at_most(name: &str, claim: &str, most: f64, measured: f64) -> Relation {
    Relation::within(name, claim, f64::NEG_INFINITY..=most, measured)
}

fn findings(setting: Setting, x: Axis, series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    Findings { x, series, relations, deviations: DEVIATIONS.to_vec(), machine: setting.machine }
}

/// The parts of BoLT, one after the other.
pub fn figure_12a(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let stores = run_all(&setting, &[LEVELDB, LOGICAL, GROUPED, SETTLED], SMALL, order::BOLT)?;
    let [base, logical, grouped, settled] = &stores[..] else { return Err("a store is missing".into()) };
    let relations = vec![
        Relation::within(
            "LA: +LS / LevelDB",
            "about equal",
            0.8..=1.25,
            logical.rate(LOAD_A) / base.rate(LOAD_A),
        ),
        at_least("LA: +GC / LevelDB", "2.5 times", 2.5, grouped.rate(LOAD_A) / base.rate(LOAD_A)),
        at_least("LE: +GC / LevelDB", "2.5 times", 2.5, grouped.rate(LOAD_E) / base.rate(LOAD_E)),
        at_most("bytes: +STL / +GC", "9.53 % less", 0.95, settled.written() / grouped.written()),
    ];
    Ok(findings(setting, Axis::named("phase", &PHASES), rates_and_bytes(&stores), relations))
}

/// BoLT beside other stores.
pub fn figure_13(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (uniform, keys) in [(false, "zipfian"), (true, "uniform")] {
        let data = Data { uniform, ..SMALL };
        let stores = run_all(&setting, &[BOLT, LEVELDB, LVL64MB, ROCKSDB], data, order::BOLT)?;
        let [bolt, leveldb, large, rocksdb] = &stores[..] else { return Err("a store is missing".into()) };
        let load = |store: &Store| store.rate(LOAD_A);
        let name = |what: &str| format!("{keys}, {what}");
        relations.extend([
            at_least(&name("LA: BoLT / LevelDB"), "3.24", 3.24, load(bolt) / load(leveldb)),
            at_least(&name("LA: BoLT / LVL64MB"), "1.17", 1.17, load(bolt) / load(large)),
            at_least(&name("LA: BoLT / RocksDB's shape"), "1.58", 1.58, load(bolt) / load(rocksdb)),
            at_most(&name("bytes: BoLT / LevelDB"), "16 % less", 0.84, bolt.written() / leveldb.written()),
            at_most(&name("bytes: BoLT / LVL64MB"), "less", 1.0, bolt.written() / large.written()),
        ]);
        series.extend(rates_and_bytes(&stores).into_iter().map(|mut series| {
            series.name = format!("{}, {keys}", series.name);
            series
        }));
    }
    Ok(findings(setting, Axis::named("phase", &PHASES), series, relations))
}

/// Tail of inserts.
pub fn figure_14a(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_latencies();
    let stores = run_all(&setting, &[BOLT, LEVELDB, LVL64MB, ROCKSDB], SMALL, &[&["load"]])?;
    let [bolt, leveldb, ..] = &stores[..] else { return Err("a store is missing".into()) };
    let relations = vec![at_most(
        "p99.9 of BoLT / LevelDB",
        "lower",
        1.0,
        bolt.percentile(LOAD_A, 99.9) / leveldb.percentile(LOAD_A, 99.9),
    )];
    Ok(findings(setting, Axis::logarithmic("latency of an insert", "us"), curves(&stores, LOAD_A), relations))
}

/// Tail of lookups.
pub fn figure_14b(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let stores = run_all(&setting, &[BOLT, LEVELDB, LVL64MB, ROCKSDB], SMALL, &[&["load", "c"]])?;
    let [bolt, .., rocksdb] = &stores[..] else { return Err("a store is missing".into()) };
    let lookups = 1;
    let jump = |store: &Store| store.percentile(lookups, 98.5) / store.percentile(lookups, 97.0);
    let relations = vec![
        Relation::within(
            "p97 of BoLT / RocksDB's shape",
            "equal",
            0.8..=1.25,
            bolt.percentile(lookups, 97.0) / rocksdb.percentile(lookups, 97.0),
        ),
        at_most("p98.5 / p97 of BoLT", "no jump", 1.5, jump(bolt)),
        at_least("p98.5 / p97 of RocksDB's shape", "a jump at p98", 1.5, jump(rocksdb)),
    ];
    Ok(findings(setting, Axis::logarithmic("latency of a lookup", "us"), curves(&stores, lookups), relations))
}

/// BoLT and RocksDB's shape on 100 GB.
pub fn figure_15(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (data, size, load) in [(LARGE[0], "1 KB", 1.58), (LARGE[1], "100 B", 1.0)] {
        let stores = run_all(&setting, &[BOLT, ROCKSDB], data, order::BOLT)?;
        let [bolt, rocksdb] = &stores[..] else { return Err("a store is missing".into()) };
        for (phase, least) in [(LOAD_A, load), (E, 1.0)] {
            let name = format!("{size}, {}: BoLT / RocksDB's shape", PHASES[phase]);
            let claim = if least > 1.0 { "up to 1.58" } else { "lost in the paper; not to be lost here" };
            relations.push(at_least(&name, claim, least, bolt.rate(phase) / rocksdb.rate(phase)));
        }
        series.extend(rates_and_bytes(&stores).into_iter().map(|mut series| {
            series.name = format!("{}, {size}", series.name);
            series
        }));
    }
    Ok(findings(setting, Axis::named("phase", &PHASES), series, relations))
}

/// Latencies of BoLT and RocksDB's shape on 100 GB.
pub fn figure_16(setting: &Setting) -> Result<Findings> {
    let setting = setting.with_scaled_barriers();
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (data, size) in LARGE.into_iter().zip(["1 KB", "100 B"]) {
        let stores = run_all(&setting, &[BOLT, ROCKSDB], data, &[&["load", "a", "c"]])?;
        let [bolt, rocksdb] = &stores[..] else { return Err("a store is missing".into()) };
        for (phase, name) in ["LA", "A", "C"].into_iter().enumerate() {
            let ratio = rocksdb.percentile(phase, 99.9) / bolt.percentile(phase, 99.9);
            relations.push(at_least(
                &format!("{size}, {name}: p99.9 of RocksDB's shape / BoLT"),
                "above everywhere",
                1.0,
                ratio,
            ));
            series.extend(curves(&stores, phase).into_iter().map(|mut series| {
                series.name = format!("{}, {size}, {name}", series.name);
                series
            }));
        }
    }
    Ok(findings(setting, Axis::logarithmic("latency of an operation", "us"), series, relations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::machine::Machine;

    fn setting(scale: f64) -> Setting {
        Setting { machine: Machine::preset("laptop-sata-ssd").unwrap(), scale, seed: 1 }
    }

    #[test]
    fn every_phase_does_what_ycsb_says() {
        let size = Size { records: 1000, operations: 600, uniform: false, seed: 1 };
        for (phase, shares) in [
            ("load", [0.0, 1.0, 0.0]),
            ("a", [0.5, 0.5, 0.0]),
            ("b", [0.95, 0.05, 0.0]),
            ("c", [1.0, 0.0, 0.0]),
            ("d", [0.95, 0.05, 0.0]),
            ("e", [0.0, 0.05, 0.95]),
            ("f", [2.0 / 3.0, 1.0 / 3.0, 0.0]),
        ] {
            let draw = draw(phase, size, &Arc::new(AtomicU64::new(1000)));
            let mut rng = Rng::new(1);
            let mut found = [0.0; 3];
            for number in 0..draw.actions {
                let kind = match (draw.action)(number, &mut rng) {
                    Action::Get(_) => 0,
                    Action::Put(_) | Action::Delete(_) => 1,
                    Action::Scan { .. } => 2,
                };
                found[kind] += 1.0 / draw.actions as f64;
            }
            for (found, share) in found.iter().zip(shares) {
                assert!((found - share).abs() < 0.06, "{phase}: {found} for {share}");
            }
        }
    }

    #[test]
    fn what_is_written_in_f_has_just_been_read() {
        let size = Size { records: 1000, operations: 600, uniform: true, seed: 1 };
        let draw = draw("f", size, &Arc::new(AtomicU64::new(1000)));
        for pair in 0..100 {
            let action = |at: u64| (draw.action)(3 * pair + at, &mut Rng::new(7));
            let Action::Get(read) = action(1) else { panic!("nothing is read first") };
            assert_eq!(action(2), Action::Put(read));
        }
    }

    #[test]
    fn the_whole_order_runs_and_values_are_right() {
        let setting = setting(50_000.0);
        let store = run(&setting, GROUPED, SMALL, order::BOLT).unwrap();
        let counts: Vec<u64> = store.phases.iter().map(|phase| phase.latencies.count()).collect();
        assert_eq!(counts, [1000, 200, 200, 200, 300, 200, 1000, 200]);
        assert!(store.phases[LOAD_A].written > 1000 * 1000);
    }
}
