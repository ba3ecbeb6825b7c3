//! YCSB: latency by phase, write amplification and size.
//!
//! The paper loads 100 million records of 16 and 100 bytes and runs A, B, C, F and D on them, wipes the store, loads again
//! and runs E; 100 million operations a phase.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::super::ycsb::{Size, draw};
use super::{
    Cache, DEVIATIONS, KEY_BYTES, Phase, ROWS, Store, at_least, at_most, judged, known, lines, of, options,
    testbed,
};
use crate::Result;
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::workload::order::{self, Order};
use crate::ycsb::keys::InsertOrder;

const VALUE_BYTES: usize = 100;
const RECORDS: u64 = 100_000_000;

/// The phases of the paper's order.
const PHASES: [&str; 8] = ["LA", "A", "B", "C", "F", "D", "LE", "E"];
const LA: usize = 0;
const A: usize = 1;
const B: usize = 2;
const C: usize = 3;
const F: usize = 4;
const D: usize = 5;
const E: usize = 7;

/// Until the store is wiped: what Table I counts.
const FIRST: Order = &[order::PTIER[0]];

/// Runs `order` on the store of a row.
fn run(setting: &Setting, row: &'static str, cache: Cache, order: Order) -> Result<Store> {
    let setting = testbed(setting, cache);
    let records = setting.scaled(RECORDS);
    let options = options(&setting, row, records * (KEY_BYTES + VALUE_BYTES) as u64, cache)?;
    let size = Size { records, operations: records, uniform: false, seed: setting.seed };
    let mut phases = Vec::new();
    for &names in order {
        let opened = options.clone();
        phases.extend(setting.machine.run(setting.seed, move |lab| {
            let db = lab.open(opened)?;
            let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
            let inserted = Arc::new(AtomicU64::new(size.records));
            let done = names.iter().map(|name| {
                let draw = draw(name, size, &inserted);
                Phase::measure(lab, &db, &records, (draw.actions, size.seed), draw.action)
            });
            let done = done.collect::<Result<Vec<_>>>()?;
            db.close()?;
            Ok(done)
        })?);
    }
    Ok(Store { row, cache, options, phases })
}

fn run_all(setting: &Setting, rows: &[&'static str], caches: &[Cache], order: Order) -> Result<Vec<Store>> {
    let each = caches.iter().flat_map(|&cache| known(rows).map(move |row| (row, cache)));
    each.map(|(row, cache)| run(setting, row, cache, order)).collect()
}

fn findings(setting: &Setting, stores: &[Store], phases: &[&str], relations: Vec<Relation>) -> Findings {
    let mut series = lines(stores, &Axis::linear("mean latency", "us"), |phase| phase.latencies.mean());
    let p999 = Axis::linear("99.9 % take no longer", "us");
    series.extend(lines(stores, &p999, |phase| phase.latencies.percentile(99.9)));
    let written = Axis::linear("written to tables / by the client", "");
    series.extend(lines(stores, &written, Phase::write_amplification));
    series.extend(lines(stores, &Axis::linear("tables asked per lookup", ""), Phase::tables_per_lookup));
    series.extend(lines(stores, &Axis::linear("blocks searched per lookup", ""), Phase::blocks_per_lookup));
    series.extend(lines(stores, &Axis::linear("live tables", "MB"), |phase| phase.live_bytes as f64 / 1e6));
    Findings {
        x: Axis::named("phase", phases),
        series,
        relations: judged(relations),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Tenth).machine,
    }
}

/// Mean latency of each phase.
pub fn figure_7(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &ROWS, &Cache::BOTH, order::PTIER)?;
    let relations = Cache::BOTH.into_iter().flat_map(|cache| relations_of_7(&stores, cache)).collect();
    Ok(findings(setting, &stores, &PHASES, relations))
}

fn relations_of_7(stores: &[Store], cache: Cache) -> Vec<Relation> {
    let mean = |row: &str, phase: usize| of(stores, row, cache, |store| store.phases[phase].latencies.mean());
    let gain = |row: &str, phase: usize| mean(row, phase) / mean("ptier", phase);
    let average = |phases: &[usize]| {
        let gains = phases.iter().map(|&phase| (gain("l-lsm", phase) + gain("silk", phase)) / 2.0);
        gains.sum::<f64>() / phases.len() as f64
    };
    let worst = |one: &str, other: &str, phases: &[usize]| {
        phases.iter().map(|&phase| mean(one, phase) / mean(other, phase)).fold(f64::NEG_INFINITY, f64::max)
    };
    let name = |what: &str| format!("{}{what}", cache.prefix());
    let mut relations: Vec<Relation> = [LA, A, B, C, F, D, E]
        .into_iter()
        .map(|phase| {
            let others = ["l-lsm", "t-lsm", "ll-lsm", "pebblesdb", "silk"].map(|row| gain(row, phase));
            let best = others.into_iter().fold(f64::INFINITY, f64::min);
            at_least(
                &name(&format!("{}: the best other / PTierDB", PHASES[phase])),
                "lowest in all",
                1.0,
                best,
            )
        })
        .collect();
    for row in ["l-lsm", "silk"] {
        let all =
            of(stores, row, cache, Store::mean_latency) / of(stores, "ptier", cache, Store::mean_latency);
        let claim = "1.2 to 2.5 times; at least 1.2";
        relations.push(at_least(&name(&format!("mean of all phases: {row} / PTierDB")), claim, 1.2, all));
    }
    relations.extend([
        at_least(
            &name("what PTierDB gains in B, C, D, E / in LA, A, F"),
            "larger",
            1.0,
            average(&[B, C, D, E]) / average(&[LA, A, F]),
        ),
        at_most(
            &name("the worst of all but C: ll / l"),
            "slightly better",
            1.0,
            worst("ll-lsm", "l-lsm", &[LA, A, B, F, D, E]),
        ),
        at_least(
            &name("lookups (C): the better of t, PebblesDB / the worse of l, SILK"),
            "worse",
            1.0,
            mean("t-lsm", C).min(mean("pebblesdb", C)) / mean("l-lsm", C).max(mean("silk", C)),
        ),
    ]);
    relations
}

/// Write amplification and size, until the store is wiped.
pub fn table_1(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &ROWS, &[Cache::Whole], FIRST)?;
    let written = |row: &str| of(&stores, row, Cache::Whole, Store::write_amplification);
    let size = |row: &str| of(&stores, row, Cache::Whole, Store::live_bytes);
    let tiered = ["ll-lsm", "pebblesdb", "t-lsm"].map(written).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let relations = vec![
        Relation::falling(
            "written to tables / by the client: l, SILK, PTierDB, the most of ll, PebblesDB, t",
            "25.34, 17.54, 12.34, 7.3",
            &[written("l-lsm"), written("silk"), written("ptier"), tiered],
        ),
        at_most(
            "written: PTierDB / l",
            "12.34 / 25.34; at most half",
            0.5,
            written("ptier") / written("l-lsm"),
        ),
        Relation::falling(
            "bytes on disk: t, PebblesDB, SILK, PTierDB (MB)",
            "14.84, 12.7, 10.5, 8.1 GB",
            &["t-lsm", "pebblesdb", "silk", "ptier"].map(|row| size(row) / 1e6),
        ),
        at_most("written: WiscKey / the least of t, ll, PebblesDB", "2.8 / 4.91", 1.0, {
            let least =
                ["ll-lsm", "pebblesdb", "t-lsm"].map(written).into_iter().fold(f64::INFINITY, f64::min);
            written("wisckey") / least
        }),
        at_most("bytes on disk: PTierDB / l", "8.1 / 7.91", 1.1, size("ptier") / size("l-lsm")),
        at_most("bytes on disk: ll / l", "7.9 / 7.91", 1.1, size("ll-lsm") / size("l-lsm")),
    ];
    Ok(findings(setting, &stores, &PHASES[..FIRST[0].len()], relations))
}

/// Write amplification against leveled stores.
pub fn section_1(setting: &Setting) -> Result<Findings> {
    let rows = ["l-lsm", "leveldb", "silk", "ptier"];
    let stores = run_all(setting, &rows, &[Cache::Whole], FIRST)?;
    let written = |row: &str| of(&stores, row, Cache::Whole, Store::write_amplification);
    let relations = ["l-lsm", "leveldb", "silk"]
        .map(|row| {
            let name = format!("written: PTierDB / {row}");
            at_most(&name, "30 to 50 % lower; at least 30 %", 0.7, written("ptier") / written(row))
        })
        .to_vec();
    Ok(findings(setting, &stores, &PHASES[..FIRST[0].len()], relations))
}
