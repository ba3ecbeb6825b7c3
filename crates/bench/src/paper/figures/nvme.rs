//! "Improving Performance in LSM-Tree based Key-Value Stores using NVMe": tables on a fast and a slow disk.
//!
//! The disks write 450 and 100 MB/s, as the paper's do to each other. The page cache takes what is written at a speed that does not
//! count, and holds no more than 2 MiB of it for each disk, so that the disks alone decide.
//!
//! This file has the disks, and the figures of loads and of the log; `nvme_writes` those of random writes, `nvme_devices` those of bare
//! devices, calls and processor time, `nvme_records` those of large records and of YCSB's mixes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::DeviceModel;
use terrace::env::striped::{Stripe, StripedEnv};
use terrace::tree::{Cutter, Files, Flushes, PackLayout, Placer, TableSize, Unit};
use terrace::{Db, Options, TreeOptions};

use super::{memory_for, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::lab_env::LabEnv;
use crate::paper::machine::{Body, Lab, Machine};
use crate::paper::record::{Axis, Relation};
use crate::paper::timeline::{Latencies, sampled};
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

pub(super) const KEY_BYTES: usize = 16;
pub(super) const VALUE_BYTES: usize = 1024 - KEY_BYTES;

/// Records of 20 GB.
pub(super) const RECORDS: u64 = 20 << 20;

pub(super) const FAST: u64 = 450_000_000;
pub(super) const SLOW: u64 = 100_000_000;

/// The best that both disks can do together, over what the fast one can.
const SUM: f64 = (FAST + SLOW) as f64 / FAST as f64;

pub(super) fn disk(bandwidth: u64, flush: Duration) -> DeviceModel {
    DeviceModel {
        read_bandwidth: bandwidth * 6 / 5,
        write_bandwidth: bandwidth,
        flush_latency: flush,
        cache_bandwidth: 100_000_000_000,
        dirty_bytes_max: 2 << 20,
        read_latency: Duration::from_micros(if bandwidth == FAST { 70 } else { 100 }),
        ..DeviceModel::nvme()
    }
}

pub(super) fn fast() -> DeviceModel {
    disk(FAST, Duration::from_micros(100))
}

pub(super) fn slow() -> DeviceModel {
    disk(SLOW, Duration::from_millis(1))
}

/// Where a store is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Disks {
    One(DeviceModel),
    /// Home, then the other one.
    Two(DeviceModel, DeviceModel),
    /// The fast and the slow one, with packs striped over them: so many chunks for each in turn.
    Striped([u32; 2]),
}

pub(super) const BOTH: fn() -> Disks = || Disks::Two(fast(), slow());

/// Blocks of both, in turns: the slow one has half of the blocks, and each transfer waits for both.
pub(super) fn striped() -> DeviceModel {
    DeviceModel { queue_depth: fast().queue_depth * 2, ..disk(2 * SLOW, slow().flush_latency) }
}

/// A machine whose first disk is `model`.
pub(super) fn machine(model: DeviceModel, what: &str) -> Result<Machine> {
    Ok(Machine::preset("nvme")?.with(what, |device| *device = model))
}

pub(super) fn open(lab: &Lab, disks: Disks, options: Options) -> Result<Db> {
    open_in(lab, lab.env().clone(), disks, options)
}

/// As [`open`], without a write-ahead log.
pub(super) fn open_without_log(lab: &Lab, disks: Disks, options: Options) -> Result<Db> {
    open_in(lab, LabEnv::without_log(lab.env().clone()), disks, options)
}

fn open_in(lab: &Lab, env: Arc<dyn Env>, disks: Disks, options: Options) -> Result<Db> {
    let builder = Db::builder(lab.dir()).options(options);
    let builder = match disks {
        Disks::One(_) => builder.env(env),
        Disks::Two(_, other) => builder.env(env).device(lab.add_device("second", other)?),
        Disks::Striped(weights) => {
            let dir = lab.add_device("second", slow())?;
            let stripe = Stripe { chunk_bytes: 64 << 10, weights: weights.to_vec(), ..Stripe::default() };
            builder.env(StripedEnv::new(env, lab.dir(), &[&dir], stripe)?)
        }
    };
    Ok(builder.open()?)
}

pub(super) fn run<R: Send + 'static>(
    setting: &Setting,
    disks: Disks,
    body: impl FnOnce(&Lab) -> Result<R> + Send + 'static,
) -> Result<R> {
    let home = match disks {
        Disks::One(home) | Disks::Two(home, _) => home,
        Disks::Striped(_) => fast(),
    };
    machine(home, "as given")?.run(setting.seed, body)
}

/// A store of tables of `table_bytes`, each in a file of its own or many in one.
pub(super) fn options(placer: Placer, table_bytes: u64, is_alone: bool) -> Options {
    let cutter = Cutter::Size(TableSize { table_bytes, flushes: Flushes::Cut });
    let packs = if is_alone { PackLayout::OneTable } else { PackLayout::default() };
    let tree =
        TreeOptions { placer, cutter, files: Files { packs, ..Files::default() }, ..TreeOptions::default() };
    Options {
        tree,
        memory_bytes: Some(memory_for(64 << 20, 16 << 20)),
        memtable_bytes: 16 << 20,
        ..Options::default()
    }
}

/// Bytes per second at which `writers` at once bring sorted records into tables, `jobs` loads each.
fn bulk(setting: &Setting, disks: Disks, options: Options, (writers, jobs): (u64, u64)) -> Result<f64> {
    let records = setting.scaled(RECORDS) / (writers * jobs);
    run(setting, disks, move |lab| {
        let db = open(lab, disks, options)?;
        let format = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let before = lab.env().now();
        let load = |writer: u64| -> Body<()> {
            let (db, format) = (db.clone(), format.clone());
            Box::new(move || {
                for job in 0..jobs {
                    let first = (writer * jobs + job) * records;
                    format.ingest_range(&db, first..first + records)?;
                }
                Ok(())
            })
        };
        lab.threads((0..writers).map(load).collect())?;
        let time = (lab.env().now() - before).as_secs_f64();
        let bytes: u64 = db.stats().devices.iter().map(|device| device.given_bytes).sum();
        db.close()?;
        Ok(bytes as f64 / time)
    })
}

fn over_fast() -> Axis {
    Axis::linear("throughput / that of the fast disk alone", "")
}

pub(super) fn findings(
    x: Axis,
    series: Vec<crate::paper::record::Series>,
    relations: Vec<Relation>,
) -> Result<Findings> {
    Ok(Findings {
        x,
        series,
        relations,
        deviations: vec![
            "two simulated disks of 450 and 100 MB/s, with syncs of 0.1 and 1 ms",
            "the page cache takes writes at a speed that does not count, as direct writes would",
        ],
        machine: machine(fast(), "450 MB/s; a second one of 100 MB/s")?,
    })
}

/// One file after the other, each synced before the next one: the paper's result, explained (`nvme-model1`).
pub fn serial_writer(setting: &Setting) -> Result<Findings> {
    const TABLE: u64 = 8 << 20;
    let with = |placer| options(placer, TABLE, true);
    let unit = Unit::Table;
    let alone = bulk(setting, Disks::One(fast()), with(Placer::Home), (1, 1))?;
    let (mut points, mut relations) = (vec![[0.0, 1.0]], Vec::new());
    for n in [6_u32, 4, 2] {
        let share = 1.0 / f64::from(n);
        let measured = bulk(setting, BOTH(), with(Placer::Mod { n, unit }), (1, 1))? / alone;
        let model = 1.0 / (1.0 - share + share * FAST as f64 / SLOW as f64);
        points.push([share, measured]);
        let claim = format!("{model:.2}, by the model");
        relations.push(Relation::within(
            &format!("Mod{n} / fast alone"),
            &claim,
            model * 0.95..=model * 1.05,
            measured,
        ));
    }
    let slow_alone = bulk(setting, Disks::One(slow()), with(Placer::Home), (1, 1))? / alone;
    points.push([1.0, slow_alone]);
    let model = SLOW as f64 / FAST as f64;
    relations.push(Relation::within(
        "slow alone / fast alone",
        "0.22",
        model * 0.95..=model * 1.05,
        slow_alone,
    ));
    let line = series("a file after the other", &with(Placer::Mod { n: 2, unit }), over_fast(), points);
    findings(Axis::linear("share of the slow disk", ""), vec![line], relations)
}

/// Both disks at the same time (`nvme-model2`).
pub fn overlapped_writer(setting: &Setting) -> Result<Findings> {
    let with = |placer| options(placer, 1 << 20, false);
    let unit = Unit::Table;
    let alone = bulk(setting, Disks::One(fast()), with(Placer::Home), (1, 1))?;
    let (mut points, mut model, mut worst) = (Vec::new(), Vec::new(), 0.0_f64);
    for slow_percent in [0_u8, 6, 12, 18, 25, 33, 50, 75, 100] {
        let share = f64::from(slow_percent) / 100.0;
        let measured = bulk(setting, BOTH(), with(Placer::Weighted { slow_percent, unit }), (1, 1))? / alone;
        let expected = (1.0 / (1.0 - share)).min(SLOW as f64 / FAST as f64 / share);
        points.push([share, measured]);
        model.push([share, expected]);
        worst = worst.max((measured / expected - 1.0).abs());
    }
    let dynamic = bulk(setting, BOTH(), with(Placer::Dynamic { unit }), (1, 1))? / alone;
    let peak = points.iter().copied().max_by(|one, other| one[1].total_cmp(&other[1])).unwrap_or_default();
    let relations = vec![
        Relation::within("peak: share of the slow disk", "near 0.18", 0.12..=0.25, peak[0]),
        Relation::within("peak / fast alone", "about 1.22", SUM * 0.9..=SUM * 1.05, peak[1]),
        Relation::within(
            "largest deviation from the model",
            "sides follow the least of both",
            0.0..=0.1,
            worst,
        ),
        Relation::within("dynamic / sum of both", "ours: at least 0.9", 0.9..=f64::INFINITY, dynamic / SUM),
        Relation::within(
            "dynamic / best share",
            "ours: at least 0.95",
            0.95..=f64::INFINITY,
            dynamic / peak[1],
        ),
    ];
    let shares = with(Placer::Weighted { slow_percent: 18, unit });
    let lines = vec![
        series("by share", &shares, over_fast(), points),
        series("model", &shares, over_fast(), model),
        series("dynamic", &with(Placer::Dynamic { unit }), over_fast(), vec![[0.0, dynamic], [1.0, dynamic]]),
    ];
    findings(Axis::linear("share of the slow disk", ""), lines, relations)
}

/// Whole jobs, or tables (`nvme-model3`).
pub fn units(setting: &Setting) -> Result<Findings> {
    const JOBS: u64 = 16;
    let alone = bulk(setting, Disks::One(fast()), options(Placer::Home, 1 << 20, false), (1, JOBS))?;
    let mut lines = Vec::new();
    let mut by_unit = Vec::new();
    for (unit, name) in [(Unit::Job, "by job"), (Unit::Table, "by table")] {
        let with = options(Placer::Weighted { slow_percent: 18, unit }, 1 << 20, false);
        let mut points = Vec::new();
        for writers in [1, 2, 4, 8] {
            points.push([
                writers as f64,
                bulk(setting, BOTH(), with.clone(), (writers, JOBS / writers))? / alone,
            ]);
        }
        by_unit.push(points.clone());
        lines.push(series(name, &with, over_fast(), points));
    }
    let with = options(Placer::Home, 1 << 20, false);
    let mut by_block = Vec::new();
    for writers in [1, 2, 4, 8] {
        let jobs = (writers, JOBS / writers);
        by_block.push([writers as f64, bulk(setting, Disks::Striped([5, 1]), with.clone(), jobs)? / alone]);
    }
    let one_by_block = by_block[0][1];
    lines.push(series("by block, 5:1", &with, over_fast(), by_block));
    let (one_by_table, by_job) = (by_unit[1][0][1], &by_unit[0]);
    let relations = vec![
        Relation::within(
            "by table, 1 job / by job, 1 job",
            "one job keeps both busy",
            1.05..=f64::INFINITY,
            one_by_table / by_job[0][1],
        ),
        Relation::within(
            "by table, 1 job / by job, 4 jobs",
            "by table with 1 job reaches what by job needs 4 for",
            0.95..=f64::INFINITY,
            one_by_table / by_job[2][1],
        ),
        Relation::within(
            "by table / by block, 1 job",
            "ours: tables spread as well as blocks",
            0.95..=f64::INFINITY,
            one_by_table / one_by_block,
        ),
    ];
    findings(Axis::linear("jobs at the same time", ""), lines, relations)
}

/// The slow disk halves its speed midway (`nvme-dyn1`).
pub fn slowed_midway(setting: &Setting) -> Result<Findings> {
    const SAMPLES: usize = 60;
    let unit = Unit::Table;
    // A tenth of the speed, so that the load takes seconds, as what the store remembers of its disks does.
    let tenth = |model: DeviceModel| DeviceModel { write_bandwidth: model.write_bandwidth / 10, ..model };
    let records = setting.scaled(RECORDS);
    let (mut lines, mut means) = (Vec::new(), Vec::new());
    for (name, placer) in [
        ("weighted, 18 % on the slow disk", Placer::Weighted { slow_percent: 18, unit }),
        ("dynamic", Placer::Dynamic { unit }),
    ] {
        let with = options(placer, 256 << 10, false);
        let disks = Disks::Two(tenth(fast()), tenth(slow()));
        let opened = with.clone();
        let points = run(setting, disks, move |lab| {
            let db = open(lab, disks, opened)?;
            let format = Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?;
            let bytes = records * 1024;
            let expected = Duration::from_secs_f64(bytes as f64 / ((FAST + SLOW) / 10) as f64);
            let load: Body<()> = Box::new({
                let (db, env, lab_device) = (db.clone(), lab.env().clone(), lab.device_setter("second"));
                move || {
                    let started = env.now();
                    let mut is_slowed = false;
                    for first in (0..records).step_by(4096) {
                        if !is_slowed && env.now() > started + expected / 2 {
                            is_slowed = true;
                            let slow = tenth(slow());
                            lab_device(DeviceModel { write_bandwidth: slow.write_bandwidth / 2, ..slow });
                        }
                        format.ingest_range(&db, first..(first + 4096).min(records))?;
                    }
                    Ok(())
                }
            });
            let store = db.clone();
            let given = move || store.stats().devices.iter().map(|device| device.given_bytes).sum::<u64>();
            let (samples, _) = sampled(lab, expected / SAMPLES as u32, given, vec![load])?;
            db.close()?;
            let pairs = samples.windows(2).map(|pair| {
                let time = (pair[1].at - pair[0].at).as_secs_f64();
                [pair[1].at.as_secs_f64(), (pair[1].seen - pair[0].seen) as f64 / 1e6 / time]
            });
            Ok(pairs.collect::<Vec<_>>())
        })?;
        let (half, end) = (points.len() / 2, points.len() - points.len() / 20 - 1);
        let mean = |points: &[[f64; 2]]| {
            points.iter().map(|point| point[1]).sum::<f64>() / points.len().max(1) as f64
        };
        means.push([mean(&points[half / 4..half * 9 / 10]), mean(&points[half + half / 3..end])]);
        lines.push(series(name, &with, Axis::linear("tables written", "MB/s"), points));
    }
    let sum_after = (FAST + SLOW / 2) as f64 / 1e7;
    let relations = vec![
        Relation::within(
            "dynamic afterwards / sum of both disks",
            "recovers within seconds",
            0.85..=f64::INFINITY,
            means[1][1] / sum_after,
        ),
        Relation::within(
            "weighted afterwards / sum of both disks",
            "stays low",
            0.0..=0.75,
            means[0][1] / sum_after,
        ),
    ];
    findings(Axis::linear("time", "s"), lines, relations)
}

/// p99 of lookups, in microseconds, and bytes per second of a load beside them. What is looked up is at home.
fn read_beside_load(setting: &Setting, placer: Placer, opened: Options) -> Result<(f64, f64)> {
    const READERS: u64 = 16;
    let records = setting.scaled(RECORDS) / 2;
    run(setting, BOTH(), move |lab| {
        let db = open(lab, BOTH(), opened)?;
        let format = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        format.ingest_range(&db, 0..records)?;
        db.set_options(|options| options.tree.placer = placer)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut bodies: Vec<Body<(Latencies, f64)>> = Vec::new();
        for reader in 0..READERS {
            let mut client = Client::new(lab, &db, format.clone());
            let (mut rng, stop) = (Rng::stream(1, reader), stop.clone());
            bodies.push(Box::new(move || {
                let mut latencies = Latencies::default();
                while !stop.load(Ordering::Relaxed) {
                    latencies.record(client.perform(Action::Get(rng.below(records)))?);
                }
                Ok((latencies, 0.0))
            }));
        }
        let (loaded, env) = (db.clone(), lab.env().clone());
        bodies.push(Box::new(move || {
            // Readers have begun.
            env.sleep(Duration::from_millis(50));
            let before = env.now();
            let done = format.ingest_range(&loaded, records..2 * records);
            let time = (env.now() - before).as_secs_f64();
            stop.store(true, Ordering::Relaxed);
            done?;
            Ok((Latencies::default(), records as f64 * 1024.0 / time))
        }));
        let results = lab.threads(bodies)?;
        db.close()?;
        let mut latencies = Latencies::default();
        results.iter().for_each(|(some, _)| latencies.merge(some));
        Ok((latencies.percentile(99.0), results.iter().map(|(_, rate)| rate).sum::<f64>()))
    })
}

/// Reads of the fast disk beside a load (`nvme-dyn2`).
pub fn read_beside(setting: &Setting) -> Result<Findings> {
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    let placers = [
        ("by level", Placer::Level { upto: 7, adapt: false }),
        ("dynamic", Placer::Dynamic { unit: Unit::Table }),
    ];
    for (at, (name, placer)) in placers.into_iter().enumerate() {
        let memory_bytes = Some(memory_for(8 << 20, 16 << 20));
        let with = Options { memory_bytes, ..options(Placer::Home, 1 << 20, false) };
        let (p99, rate) = read_beside_load(setting, placer, with.clone())?;
        found.push([p99, rate]);
        let shown = Options { tree: TreeOptions { placer, ..with.tree.clone() }, ..with };
        let mut line = |what: &str, y: Axis, value: f64| {
            lines.push(series(&format!("{name}: {what}"), &shown, y, vec![[at as f64, value]]));
        };
        line("p99 of reads", Axis::linear("p99 of reads", "us"), p99);
        line("load", Axis::linear("tables written", "MB/s"), rate / 1e6);
    }
    let [level, dynamic] = [found[0], found[1]];
    let relations = vec![
        Relation::within(
            "p99 of reads, dynamic / all on the fast disk",
            "shifts writes to the slow disk, lower p99",
            0.0..=1.0,
            dynamic[0] / level[0],
        ),
        Relation::within(
            "load, dynamic / all on the fast disk",
            "ours: not slower",
            0.95..=f64::INFINITY,
            dynamic[1] / level[1],
        ),
    ];
    findings(Axis::named("placer", &["by level", "dynamic"]), lines, relations)
}

/// The log on either disk (`nvme-wal`).
pub fn log_on_either(setting: &Setting) -> Result<Findings> {
    const CLIENTS: u64 = 4;
    let writes = setting.scaled(RECORDS) / 64 / CLIENTS;
    let with = options(Placer::default(), 1 << 20, false);
    let (mut points, mut p99s) = (Vec::new(), Vec::new());
    for (at, disks) in [BOTH(), Disks::Two(slow(), fast())].into_iter().enumerate() {
        let opened = with.clone();
        let (rate, p99) = run(setting, disks, move |lab| {
            let db = open(lab, disks, opened)?;
            let (key_bytes, value) = (KEY_BYTES, vec![7; VALUE_BYTES]);
            let before = lab.env().now();
            let client = |client: u64| -> Body<Latencies> {
                let (db, env, value) = (db.clone(), lab.env().clone(), value.clone());
                Box::new(move || {
                    let mut latencies = Latencies::default();
                    for n in 0..writes {
                        let started = env.now();
                        let key = format!("{:0key_bytes$}", n * CLIENTS + client);
                        db.put_with(key, &value, terrace::Durability::Synced)?;
                        latencies.record(env.now() - started);
                    }
                    Ok(latencies)
                })
            };
            let all = lab.threads((0..CLIENTS).map(client).collect())?;
            let time = (lab.env().now() - before).as_secs_f64();
            db.close()?;
            let mut latencies = Latencies::default();
            all.iter().for_each(|some| latencies.merge(some));
            Ok(((writes * CLIENTS) as f64 / time, latencies.percentile(99.0)))
        })?;
        points.push([at as f64, rate]);
        p99s.push([at as f64, p99]);
    }
    let relations = vec![Relation::within(
        "synced writes, log on the slow disk / on the fast one",
        "the log on the slow disk dominates",
        0.0..=0.5,
        points[1][1] / points[0][1],
    )];
    let lines = vec![
        series("synced writes", &with, Axis::linear("synced writes", "1/s"), points),
        series("p99 of synced writes", &with, Axis::linear("p99 of synced writes", "us"), p99s),
    ];
    findings(Axis::named("log", &["on the fast disk", "on the slow disk"]), lines, relations)
}
