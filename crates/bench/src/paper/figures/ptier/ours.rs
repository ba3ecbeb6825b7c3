//! What the paper leaves open: reads after a load, and deletes.

use std::sync::Arc;

use terrace::Db;

use super::{
    Cache, DEVIATIONS, KEY_BYTES, Phase, Store, at_least, at_most, judged, known, lines, of, options, testbed,
};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::Records;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::Lab;
use crate::paper::record::{Axis, Relation};
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

const VALUE_BYTES: usize = 100;
const RECORDS: u64 = 100_000_000;

/// After the load, every record is read so many times, in so many parts.
const READS_PER_RECORD: u64 = 10;
const PARTS: u64 = 20;

/// The last parts, in which no merge is expected.
const QUIET_PARTS: usize = 5;

/// Deletes in a hundred writes.
const DELETES: u64 = 30;

/// A lookup that finds a record asks a block, and a filter in a hundred is wrong.
const BLOCKS_MAX: f64 = 1.05;

fn load(lab: &Lab, db: &Db, (count, seed): (u64, u64)) -> Result<(Arc<Records>, Phase)> {
    let records = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
    let write = |number, _: &mut Rng| Action::Put(number);
    let loaded = Phase::measure(lab, db, &records, (count, seed), Arc::new(write))?;
    Ok((records, loaded))
}

/// Reads alone after the load: a phase for each part of them.
fn read_only(setting: &Setting, row: &'static str, cache: Cache) -> Result<Store> {
    let setting = testbed(setting, cache);
    let (seed, count) = (setting.seed, setting.scaled(RECORDS));
    let options = options(&setting, row, count * (KEY_BYTES + VALUE_BYTES) as u64, cache)?;
    let opened = options.clone();
    let phases = setting.machine.run(seed, move |lab| {
        let db = lab.open(opened)?;
        let (records, _) = load(lab, &db, (count, seed))?;
        let part = |at: u64| {
            let read = move |_, rng: &mut Rng| Action::Get(rng.below(count));
            let reads = (count * READS_PER_RECORD / PARTS).max(1);
            Phase::measure(lab, &db, &records, (reads, seed.wrapping_add(at)), Arc::new(read))
        };
        let phases = (0..PARTS).map(part).collect::<Result<_>>()?;
        db.close()?;
        Ok(phases)
    })?;
    Ok(Store { row, cache, options, phases })
}

/// Reads alone after a load.
pub fn figure_reads(setting: &Setting) -> Result<Findings> {
    let each =
        Cache::BOTH.into_iter().flat_map(|cache| known(&["ptier", "t-lsm"]).map(move |row| (row, cache)));
    let stores = each.map(|(row, cache)| read_only(setting, row, cache)).collect::<Result<Vec<_>>>()?;
    let mut relations = Vec::new();
    for cache in Cache::BOTH {
        let name = |what: &str| format!("{}{what}", cache.prefix());
        let late = |store: &Store| {
            let quiet = store.phases.iter().rev().take(QUIET_PARTS);
            quiet.map(|phase| phase.merges).sum::<u64>() as f64
        };
        let last = |store: &Store| store.phases.last().map_or(f64::NAN, Phase::blocks_per_lookup);
        let gain = |store: &Store| {
            let mean = |phase: Option<&Phase>| phase.map_or(f64::NAN, |phase| phase.latencies.mean());
            mean(store.phases.last()) / mean(store.phases.first())
        };
        relations.extend([
            Relation::within(
                &name("PTierDB: merges in the last quarter of the reads"),
                "merges die out",
                0.0..=0.0,
                of(&stores, "ptier", cache, late),
            ),
            at_most(
                &name("PTierDB: blocks searched per lookup in the end"),
                "one table",
                BLOCKS_MAX,
                of(&stores, "ptier", cache, last),
            ),
            at_most(
                &name("PTierDB: mean latency in the end / in the beginning"),
                "reads pay for merges once",
                1.0,
                of(&stores, "ptier", cache, gain),
            ),
        ]);
    }
    let mut series = lines(&stores, &Axis::linear("mean latency", "us"), |phase| phase.latencies.mean());
    series.extend(lines(&stores, &Axis::linear("merges", ""), |phase| phase.merges as f64));
    series.extend(lines(&stores, &Axis::linear("tables asked per lookup", ""), Phase::tables_per_lookup));
    series.extend(lines(&stores, &Axis::linear("blocks searched per lookup", ""), Phase::blocks_per_lookup));
    Ok(Findings {
        x: Axis::linear("part of the reads, each half as many as records", ""),
        series,
        relations: judged(relations),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Tenth).machine,
    })
}

/// A load, then as many writes, some of them deletes. The store, and the bytes of the records that there are in the end.
fn deletes(setting: &Setting, row: &'static str) -> Result<(Store, f64)> {
    let cache = Cache::Whole;
    let setting = testbed(setting, cache);
    let (seed, count) = (setting.seed, setting.scaled(RECORDS));
    let options = options(&setting, row, count * (KEY_BYTES + VALUE_BYTES) as u64, cache)?;
    let opened = options.clone();
    let (phases, left) = setting.machine.run(seed, move |lab| {
        let db = lab.open(opened)?;
        let (records, loaded) = load(lab, &db, (count, seed))?;
        let write = move |_, rng: &mut Rng| {
            let record = rng.below(count);
            if rng.below(100) < DELETES { Action::Delete(record) } else { Action::Put(record) }
        };
        let mixed = Phase::measure(lab, &db, &records, (count, seed), Arc::new(write))?;
        let left = db.iter()?.count() as f64;
        db.close()?;
        Ok((vec![loaded, mixed], left))
    })?;
    Ok((Store { row, cache, options, phases }, left * (KEY_BYTES + VALUE_BYTES) as f64))
}

/// Space after deletes.
pub fn figure_deletes(setting: &Setting) -> Result<Findings> {
    let (mut stores, mut data) = (Vec::new(), 0.0);
    for row in known(&["ptier", "l-lsm", "t-lsm"]) {
        let (store, bytes) = deletes(setting, row)?;
        stores.push(store);
        data = bytes;
    }
    let size = |row: &str| of(&stores, row, Cache::Whole, Store::live_bytes) / data;
    let relations = vec![
        at_least("bytes on disk: PTierDB / l", "between l and t", 1.0, size("ptier") / size("l-lsm")),
        at_most("bytes on disk: PTierDB / t", "between l and t", 1.0, size("ptier") / size("t-lsm")),
        at_most("bytes on disk: PTierDB / l", "near l", 1.25, size("ptier") / size("l-lsm")),
    ];
    let mut series =
        lines(&stores, &Axis::linear("live tables", "MB"), |phase| phase.live_bytes as f64 / 1e6);
    let written = Axis::linear("written to tables / by the client", "");
    series.extend(lines(&stores, &written, Phase::write_amplification));
    Ok(Findings {
        x: Axis::named("phase", &["load", "30 % deletes"]),
        series,
        relations: judged(relations),
        deviations: DEVIATIONS.to_vec(),
        machine: testbed(setting, Cache::Whole).machine,
    })
}
