//! BoLT: the phases of YCSB on a store.
//!
//! The paper loads 50 GB and runs A, B, C, F and D on it, wipes it, loads again and runs E; 10 million operations a
//! phase by four threads.
//!
//! Each store is loaded once. On a simulated device the loaded store is kept, and each list of phases after the load
//! starts from it, with cold caches.
//!
//! The cost of a sync is divided by the scale, so that the ratio of a table's barrier to its transfer stays the same.
//! So is the cost of reads, and of opening files, while a store is loaded: then only compactions read, and they read
//! tables of scaled size. In the other phases blocks are read, whose size is not scaled.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use terrace::{Db, Options};

use super::bolt::{KEY_BYTES, THREADS};
use super::bolt_shapes::{MEMORY_BYTES, Shape};
use super::ycsb::{Draw, Size, draw};
use super::{closed_loop, memory_for, seconds, series};
use crate::Result;
use crate::paper::client::Records;
use crate::paper::experiment::Setting;
use crate::paper::machine::{Kept, Lab};
use crate::paper::record::{Axis, Series};
use crate::paper::timeline::Latencies;
use crate::workload::order::Order;
use crate::ycsb::keys::InsertOrder;

const OPERATIONS: u64 = 10_000_000;

/// The phases of the paper's order; E has a store and a load of its own.
pub(super) const PHASES: [&str; 8] = ["LA", "A", "B", "C", "F", "D", "LE", "E"];

/// What a data set is like.
#[derive(Clone, Copy)]
pub(super) struct Data {
    pub(super) records: u64,
    pub(super) value_bytes: usize,
    /// Whether all records are equally popular.
    pub(super) uniform: bool,
}

/// The paper's data of 50 GB.
pub(super) const SMALL: Data = Data { records: 50_000_000, value_bytes: 1000, uniform: false };

/// Its two of 100 GB, of small records an eighth: a billion would take hours at any scale that leaves tables several blocks.
pub(super) const LARGE: [Data; 2] =
    [Data { records: 100_000_000, ..SMALL }, Data { records: 125_000_000, value_bytes: 100, uniform: false }];

/// A store and what each phase was on it.
pub(super) struct Store {
    name: &'static str,
    options: Options,
    phases: Vec<Phase>,
}

#[derive(Clone)]
struct Phase {
    /// Operations per second, the background work that they leave included.
    rate: f64,
    latencies: Latencies,
    /// Bytes that flushes and compactions wrote.
    written: u64,
}

/// A store behind its load, from which the phases of each list of an order start.
struct Loaded {
    name: &'static str,
    options: Options,
    load: Phase,
    /// On a real machine there is none, and each list loads a store of its own.
    kept: Option<Kept>,
}

fn load(setting: &Setting, (name, options): Shape, data: Data) -> Result<Loaded> {
    let mut options = options(setting);
    // More data is no more memory; fewer or smaller records, as in tests, would all be cached.
    let bytes = data.records * (KEY_BYTES + data.value_bytes) as u64;
    let memory = setting.scaled(MEMORY_BYTES.min(bytes / 6));
    options.memory_bytes = Some(memory_for(memory, options.memtable_bytes));
    let (opened, scale) = (options.clone(), setting.scale);
    let size = size(setting, data);
    let (load, kept) = setting.machine.run(setting.seed, move |lab| {
        let db = lab.open(opened)?;
        let load = run_phases(lab, &db, data, size, scale, &["load"])?.remove(0);
        db.close()?;
        Ok((load, lab.keep()))
    })?;
    Ok(Loaded { name, options, load, kept })
}

/// Runs the phases of `order`, the paper's or a part of it, of which each list begins with a load.
fn run(setting: &Setting, loaded: &Loaded, data: Data, order: Order) -> Result<Store> {
    let (size, scale) = (size(setting, data), setting.scale);
    let mut all = Vec::new();
    for &phases in order {
        all.push(loaded.load.clone());
        if phases == ["load"] {
            continue;
        }
        let (opened, is_loaded) = (loaded.options.clone(), loaded.kept.is_some());
        all.extend(setting.machine.run_from(loaded.kept.as_ref(), setting.seed, move |lab| {
            let db = lab.open(opened)?;
            if !is_loaded {
                run_phases(lab, &db, data, size, scale, &["load"])?;
            }
            let done = run_phases(lab, &db, data, size, scale, &phases[1..])?;
            db.close()?;
            Ok(done)
        })?);
    }
    Ok(Store { name: loaded.name, options: loaded.options.clone(), phases: all })
}

fn run_phases(lab: &Lab, db: &Db, data: Data, size: Size, scale: f64, phases: &[&str]) -> Result<Vec<Phase>> {
    let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, data.value_bytes)?);
    let inserted = Arc::new(AtomicU64::new(size.records));
    let done = phases.iter().map(|&phase| {
        lab.vary_device(|model| {
            if phase == "load" {
                model.read_latency = model.read_latency.div_f64(scale);
                model.metadata_latency = model.metadata_latency.div_f64(scale);
            }
        });
        measure(lab, db, &records, size, draw(phase, size, &inserted))
    });
    done.collect()
}

/// A store of each shape, by the phases of `order`.
pub(super) fn run_all(setting: &Setting, shapes: &[Shape], data: Data, order: Order) -> Result<Vec<Store>> {
    shapes.iter().map(|&shape| run(setting, &load(setting, shape, data)?, data, order)).collect()
}

/// As [`run_all`], with popular keys and with uniform ones behind the same load, which has neither.
pub(super) fn run_both(
    setting: &Setting,
    shapes: &[Shape],
    data: Data,
    order: Order,
) -> Result<[Vec<Store>; 2]> {
    let [mut popular, mut all_alike] = [Vec::new(), Vec::new()];
    for &shape in shapes {
        let loaded = load(setting, shape, data)?;
        popular.push(run(setting, &loaded, Data { uniform: false, ..data }, order)?);
        all_alike.push(run(setting, &loaded, Data { uniform: true, ..data }, order)?);
    }
    Ok([popular, all_alike])
}

/// The data at the scale of a run.
fn size(setting: &Setting, data: Data) -> Size {
    Size {
        records: setting.scaled(data.records),
        operations: setting.scaled(OPERATIONS),
        uniform: data.uniform,
        seed: setting.seed,
    }
}

fn measure(lab: &Lab, db: &Db, records: &Arc<Records>, size: Size, draw: Draw) -> Result<Phase> {
    let written = || {
        let stats = db.stats();
        stats.written.flush + stats.written.compaction
    };
    let (started, before) = (lab.env().now(), written());
    let latencies = closed_loop(lab, db, records, (THREADS, draw.actions, size.seed), draw.action)?;
    db.wait_idle()?;
    let rate = draw.operations as f64 / seconds(lab.env().now() - started);
    Ok(Phase { rate, latencies, written: written() - before })
}

fn bars(stores: &[Store], y: &Axis, measure: impl Fn(&Phase) -> f64) -> Vec<Series> {
    let points = |store: &Store| -> Vec<[f64; 2]> {
        store.phases.iter().zip(0_u8..).map(|(phase, at)| [f64::from(at), measure(phase)]).collect()
    };
    stores.iter().map(|store| series(store.name, &store.options, y.clone(), points(store))).collect()
}

/// Rates and bytes of all phases.
pub(super) fn rates_and_bytes(stores: &[Store]) -> Vec<Series> {
    let mut all = bars(stores, &Axis::linear("operations, drained", "1/s"), |phase| phase.rate);
    all.extend(bars(stores, &Axis::linear("written to tables", "MB"), |phase| phase.written as f64 / 1e6));
    all
}

pub(super) fn curves(stores: &[Store], phase: usize) -> Vec<Series> {
    let y = || Axis::linear("operations that take no longer", "%");
    let line =
        |store: &Store| series(store.name, &store.options, y(), store.phases[phase].latencies.distribution());
    stores.iter().map(line).collect()
}

impl Store {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Operations per second of a phase, the background work that they leave included.
    pub(super) fn rate(&self, phase: usize) -> f64 {
        self.phases[phase].rate
    }

    /// Bytes that flushes and compactions wrote in all phases.
    pub(super) fn written(&self) -> f64 {
        self.phases.iter().map(|phase| phase.written as f64).sum()
    }

    /// The latency of a phase, in microseconds, that `percent` in a hundred operations do not exceed.
    pub(super) fn percentile(&self, phase: usize, percent: f64) -> f64 {
        self.phases[phase].latencies.percentile(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::figures::bolt_shapes::GROUPED;
    use crate::paper::machine::Machine;
    use crate::workload::order;

    fn setting(scale: f64) -> Setting {
        Setting { machine: Machine::preset("laptop-sata-ssd").unwrap(), scale, seed: 1 }
    }

    #[test]
    fn the_whole_order_runs_and_values_are_right() {
        let setting = setting(50_000.0);
        let store = run_all(&setting, &[GROUPED], SMALL, order::BOLT).unwrap().remove(0);
        let counts: Vec<u64> = store.phases.iter().map(|phase| phase.latencies.count()).collect();
        assert_eq!(counts, [1000, 200, 200, 200, 300, 200, 1000, 200]);
        assert!(store.phases[0].written > 1000 * 1000);
    }
}
