//! Ours on two disks: writes of large records with and without a log, and YCSB's mixes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use terrace::tree::{Placer, Unit};
use terrace::{Options, TreeOptions};

use super::nvme::{
    BOTH, Disks, KEY_BYTES, RECORDS, VALUE_BYTES, fast, findings, open, open_without_log, run,
};
use super::ycsb::{Size, draw};
use super::{closed_loop, memory_for, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

/// Our defaults, with memtables of 4 MiB and not much of a cache.
fn ours(placer: Placer, cache_bytes: u64) -> Options {
    let tree = TreeOptions { placer, ..TreeOptions::default() };
    let memory_bytes = Some(memory_for(cache_bytes, 4 << 20));
    Options { tree, memtable_bytes: 4 << 20, memory_bytes, ..Options::default() }
}

/// The default: dynamic, and tables that are read come near.
const BY_DEFAULT: Placer = Placer::Heat { unit: Unit::Table };

/// Sizes of records, with their names.
const SIZES: [(usize, &str); 3] = [(16 << 10, "16 KiB"), (128 << 10, "128 KiB"), (1 << 20, "1 MiB")];

/// Bytes per second and latencies of random writes of records of `bytes`.
fn writes_of(setting: &Setting, bytes: usize, has_log: bool, placer: Placer) -> Result<(f64, Latencies)> {
    let writes = (setting.scaled(RECORDS) * 1024 / bytes as u64).max(8);
    run(setting, BOTH(), move |lab| {
        let options = ours(placer, 8 << 20);
        let open = if has_log { open } else { open_without_log };
        let db = open(lab, BOTH(), options)?;
        let format = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, bytes - KEY_BYTES)?);
        let mut client = Client::new(lab, &db, format);
        let (before, mut rng, mut latencies) = (lab.env().now(), Rng::new(1), Latencies::default());
        for _ in 0..writes {
            latencies.record(client.perform(Action::Put(rng.below(writes)))?);
        }
        let time = (client.now() - before).as_secs_f64();
        db.close()?;
        Ok(((writes * bytes as u64) as f64 / time, latencies))
    })
}

/// Large records with the log on and off, all at home or placed by default (`nvme-records`).
pub fn large_records(setting: &Setting) -> Result<Findings> {
    let (mut lines, mut relations) = (Vec::new(), Vec::new());
    for has_log in [true, false] {
        let log = if has_log { "log" } else { "no log" };
        let mut by_placer = Vec::new();
        for (name, placer) in [("home", Placer::Home), ("default", BY_DEFAULT)] {
            let found = SIZES
                .iter()
                .map(|(bytes, _)| writes_of(setting, *bytes, has_log, placer))
                .collect::<Result<Vec<_>>>()?;
            let mut line = |what: &str, y: Axis, measure: &dyn Fn(&(f64, Latencies)) -> f64| {
                let points =
                    found.iter().enumerate().map(|(at, found)| [at as f64, measure(found)]).collect();
                let name = format!("{name}, {log}{what}");
                lines.push(series(&name, &ours(placer, 8 << 20), y, points));
            };
            line("", Axis::linear("writes", "MB/s"), &|found| found.0 / 1e6);
            for percent in [50.0, 99.0, 99.9] {
                let y = Axis::logarithmic(&format!("p{percent} of writes"), "us");
                line(&format!(": p{percent}"), y, &|found| found.1.percentile(percent));
            }
            by_placer.push(found);
        }
        let [home, default] = &by_placer[..] else { continue };
        for (at, (_, size)) in SIZES.iter().enumerate() {
            relations.push(Relation::within(
                &format!("{size}, {log}: default / home"),
                "ours: not slower",
                0.99..=f64::INFINITY,
                default[at].0 / home[at].0,
            ));
        }
        for (at, (_, size)) in SIZES.iter().enumerate() {
            relations.push(Relation::within(
                &format!("{size}, {log}: p99.9, default / home"),
                "ours: not higher",
                0.0..=1.05,
                default[at].1.percentile(99.9) / home[at].1.percentile(99.9),
            ));
        }
    }
    let mut findings = findings(Axis::named("record", &SIZES.map(|(_, name)| name)), lines, relations)?;
    findings.deviations.push("a write takes 4.4 us of the processor, however large it is");
    Ok(findings)
}

const THREADS: u64 = 4;

const MIXES: [&str; 4] = ["load", "a", "c", "e"];

/// Operations a second in each mix, and their p99 in microseconds.
fn mixes(setting: &Setting, disks: Disks, options: Options) -> Result<Vec<[f64; 2]>> {
    let records = setting.scaled(RECORDS);
    let size = Size { records, operations: (records / 2).max(64), uniform: false, seed: setting.seed };
    run(setting, disks, move |lab| {
        let db = open(lab, disks, options)?;
        let format = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
        let inserted = Arc::new(AtomicU64::new(records));
        let mut found = Vec::new();
        for mix in MIXES {
            let draw = draw(mix, size, &inserted);
            let before = lab.env().now();
            let latencies = closed_loop(lab, &db, &format, (THREADS, draw.actions, size.seed), draw.action)?;
            let rate = draw.operations as f64 / (lab.env().now() - before).as_secs_f64();
            db.wait_idle()?;
            found.push([rate, latencies.percentile(99.0)]);
        }
        db.close()?;
        Ok(found)
    })
}

/// YCSB's mixes on the fast disk alone and on both (`nvme-ycsb`).
pub fn ycsb_mixes(setting: &Setting) -> Result<Findings> {
    // A sixth of the data is cached.
    let options = ours(BY_DEFAULT, (setting.scaled(RECORDS) * 1024 / 6).max(1 << 20));
    let alone = mixes(setting, Disks::One(fast()), options.clone())?;
    let both = mixes(setting, BOTH(), options.clone())?;
    let mut lines: Vec<Series> = Vec::new();
    for (name, found) in [("fast alone", &alone), ("both, default", &both)] {
        for (at, (what, y)) in
            [("", Axis::linear("operations", "1/s")), (": p99", Axis::logarithmic("p99 of operations", "us"))]
                .into_iter()
                .enumerate()
        {
            let points = found.iter().enumerate().map(|(mix, found)| [mix as f64, found[at]]).collect();
            lines.push(series(&format!("{name}{what}"), &options, y, points));
        }
    }
    let relations = MIXES
        .iter()
        .enumerate()
        .map(|(at, mix)| {
            Relation::within(
                &format!("{mix}: both, default / fast alone"),
                "ours: never below the fast disk alone",
                0.99..=f64::INFINITY,
                both[at][0] / alone[at][0],
            )
        })
        .collect();
    findings(Axis::named("mix", &["load", "A", "C", "E"]), lines, relations)
}
