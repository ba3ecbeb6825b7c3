//! Loads and lookups by the size of records.
//!
//! The paper writes 50 million records in random order and reads as many of them, each record as popular as another.

use std::sync::Arc;

use super::{
    Cache, DEVIATIONS, KEY_BYTES, Phase, ROWS, Store, at_least, at_most, judged, known, of, options, series,
    testbed,
};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

/// Of keys and values together.
const RECORD_BYTES: [usize; 4] = [124, 256, 512, 1024];
const RECORDS: u64 = 50_000_000;

/// Writes to the store of a row, and then reads if `reads` are asked for: a phase for each size of records, of the last thing
/// done.
fn run(setting: &Setting, row: &'static str, cache: Cache, reads: bool) -> Result<Store> {
    let setting = testbed(setting, cache);
    let (seed, count) = (setting.seed, setting.scaled(RECORDS));
    let (mut phases, mut last) = (Vec::new(), None);
    for record_bytes in RECORD_BYTES {
        let options = options(&setting, row, count * record_bytes as u64, cache)?;
        last = Some(options.clone());
        phases.push(setting.machine.run(seed, move |lab| {
            let db = lab.open(options)?;
            let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, record_bytes - KEY_BYTES)?);
            let write = |number, _: &mut _| Action::Put(number);
            let mut phase = Phase::measure(lab, &db, &records, (count, seed), Arc::new(write))?;
            if reads {
                let read = move |_, rng: &mut Rng| Action::Get(rng.below(count));
                phase = Phase::measure(lab, &db, &records, (count, seed), Arc::new(read))?;
            }
            db.close()?;
            Ok(phase)
        })?);
    }
    Ok(Store { row, cache, options: last.unwrap_or_default(), phases })
}

fn run_all(setting: &Setting, caches: &[Cache], reads: bool) -> Result<Vec<Store>> {
    let each = caches.iter().flat_map(|&cache| known(&ROWS).map(move |row| (row, cache)));
    each.map(|(row, cache)| run(setting, row, cache, reads)).collect()
}

fn findings(setting: &Setting, stores: &[Store], y: &Axis, relations: Vec<Relation>) -> Findings {
    let points = |store: &Store, measure: fn(&Phase) -> f64| -> Vec<[f64; 2]> {
        let sizes = RECORD_BYTES.iter().map(|&bytes| bytes as f64);
        sizes.zip(&store.phases).map(|(bytes, phase)| [bytes, measure(phase)]).collect()
    };
    let lines = |y: &Axis, measure: fn(&Phase) -> f64| -> Vec<_> {
        let line = |store: &Store| {
            series(&store.cache.named(store.row), &store.options, y.clone(), points(store, measure))
        };
        stores.iter().map(line).collect()
    };
    let mut series = lines(y, Phase::rate);
    series.extend(lines(&Axis::linear("written to tables / by the client", ""), Phase::write_amplification));
    series.extend(lines(&Axis::linear("blocks searched per lookup", ""), Phase::blocks_per_lookup));
    Findings {
        x: Axis::linear("size of a record", "B"),
        series,
        relations: judged(relations),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Tenth).machine,
    }
}

/// Random writes.
pub fn figure_6a(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &[Cache::Whole], false)?;
    let mut relations = Vec::new();
    for (at, bytes) in RECORD_BYTES.into_iter().enumerate() {
        let rate = |row: &str| of(&stores, row, Cache::Whole, |store| store.phases[at].rate());
        let name = |what: &str| format!("{bytes} B: {what}");
        for row in ["l-lsm", "silk"] {
            let relation = name(&format!("PTierDB / {row}"));
            relations.push(at_least(&relation, "above", 1.0, rate("ptier") / rate(row)));
        }
        let others = ["l-lsm", "t-lsm", "ll-lsm", "pebblesdb", "silk", "ptier"].map(rate);
        let all = others.into_iter().fold(f64::NEG_INFINITY, f64::max);
        relations.push(at_least(&name("WiscKey / the best other"), "best", 1.0, rate("wisckey") / all));
        let best = rate("t-lsm").max(rate("ll-lsm"));
        relations.push(at_least(&name("PTierDB / the better of t, ll"), "near", 0.8, rate("ptier") / best));
    }
    Ok(findings(setting, &stores, &Axis::linear("writes", "1/s"), relations))
}

/// Random reads behind them.
pub fn figure_6b(setting: &Setting) -> Result<Findings> {
    let stores = run_all(setting, &Cache::BOTH, true)?;
    let mut relations = Vec::new();
    for cache in Cache::BOTH {
        for (at, bytes) in RECORD_BYTES.into_iter().enumerate() {
            let rate = |row: &str| of(&stores, row, cache, |store| store.phases[at].rate());
            let name = |what: &str| format!("{}{bytes} B: {what}", cache.prefix());
            let others = ["l-lsm", "t-lsm", "ll-lsm", "pebblesdb", "silk"].map(rate);
            let best = others.into_iter().fold(f64::NEG_INFINITY, f64::max);
            let (claim, bound) = if matches!(bytes, 124 | 1024) { ("best", 1.0) } else { ("near l", 0.9) };
            relations.push(at_least(&name("PTierDB / the best other"), claim, bound, rate("ptier") / best));
            if bytes < 1024 {
                let worst = others.into_iter().fold(f64::INFINITY, f64::min);
                let relation = name("WiscKey / the worst other");
                relations.push(at_most(&relation, "worst below 1 KB", 1.0, rate("wisckey") / worst));
            }
            let tiered = rate("t-lsm").max(rate("pebblesdb"));
            let relation = name("the better of t, PebblesDB / PTierDB");
            relations.push(at_most(
                &relation,
                "1.5 to 2 times over others",
                1.0 / 1.5,
                tiered / rate("ptier"),
            ));
        }
    }
    Ok(findings(setting, &stores, &Axis::linear("reads", "1/s"), relations))
}
