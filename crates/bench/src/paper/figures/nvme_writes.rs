//! Random writes without a log on one or two disks (figures 8a to 8d), and SPDK's stand-in.

use std::sync::Arc;
use std::time::Duration;

use terrace::Options;
use terrace::env::simulated::DeviceModel;
use terrace::tree::{Placer, Unit};

use super::nvme::{
    BOTH, Disks, FAST, KEY_BYTES, RECORDS, VALUE_BYTES, fast, findings, open_without_log, run, slow, striped,
};
use super::{at_scale, memory_for, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Latencies;
use crate::workload::Action;
use crate::ycsb::keys::InsertOrder;

/// A store of the figure: its name, its disks and its options.
type Store = (&'static str, Disks, Options);

/// What a store did with one number of background jobs.
struct Point {
    jobs: f64,
    /// Writes a second.
    rate: f64,
    latencies: Latencies,
}

/// A store and its points.
struct Written {
    name: &'static str,
    options: Options,
    points: Vec<Point>,
}

const JOBS: [u8; 3] = [1, 2, 4];

/// Keys and values of LevelDB's shape, as the paper's RocksDB; each table is a file that is synced by itself.
fn leveldb(setting: &Setting, placer: Placer) -> Options {
    let base = Options::profile("leveldb-64m").unwrap_or_default();
    let mut options = at_scale(&base, setting, memory_for(8 << 20, 1 << 20));
    options.tree.placer = placer;
    options
}

/// The stores of figures 8a and 8b, and ours.
fn on_ext4(setting: &Setting) -> Vec<Store> {
    let unit = Unit::Table;
    let leveldb = |placer| leveldb(setting, placer);
    let mut ours = at_scale(&Options::default(), setting, memory_for(8 << 20, 1 << 20));
    ours.tree.placer = Placer::Dynamic { unit };
    vec![
        ("fast alone", Disks::One(fast()), leveldb(Placer::Home)),
        ("Mod6", BOTH(), leveldb(Placer::Mod { n: 6, unit })),
        ("Mod4", BOTH(), leveldb(Placer::Mod { n: 4, unit })),
        ("Mod2", BOTH(), leveldb(Placer::Mod { n: 2, unit })),
        ("RAID 0", Disks::One(striped()), leveldb(Placer::Home)),
        ("striped", Disks::Striped([1, 1]), leveldb(Placer::Home)),
        ("striped 5:1", Disks::Striped([5, 1]), leveldb(Placer::Home)),
        ("slow alone", Disks::One(slow()), leveldb(Placer::Home)),
        ("by level", BOTH(), leveldb(Placer::Level { upto: 1, adapt: false })),
        ("by level, adapted", BOTH(), leveldb(Placer::Level { upto: 1, adapt: true })),
        ("Terrace, fast alone", Disks::One(fast()), ours.clone()),
        ("Terrace, dynamic", BOTH(), ours),
    ]
}

/// The fast disk behind the one thread of SPDK's BlobFS, without a cache: it takes one request at a time, without what a kernel adds
/// to their latency, and passes on two thirds of what the disk could take.
///
/// That this thread is the limit, and not the disk, is what the digest of the paper concludes from its figure 8c. By how much is not
/// known.
pub(super) fn one_reactor() -> DeviceModel {
    DeviceModel {
        read_latency: Duration::from_micros(10),
        dirty_bytes_max: 0,
        queue_depth: 1,
        reactor_latency: Duration::from_micros(2),
        reactor_bandwidth: FAST * 2 / 3,
        ..fast()
    }
}

/// The stores of figures 8c and 8d.
fn on_spdk(setting: &Setting) -> Vec<Store> {
    let unit = Unit::Table;
    let with = |n| leveldb(setting, Placer::Mod { n, unit });
    let both = Disks::Two(one_reactor(), slow());
    let direct = DeviceModel { dirty_bytes_max: 0, ..fast() };
    vec![
        ("SPDK", Disks::One(one_reactor()), leveldb(setting, Placer::Home)),
        ("SPDK-Mod6", both, with(6)),
        ("SPDK-Mod4", both, with(4)),
        ("SPDK-Mod2", both, with(2)),
        ("fast alone, direct", Disks::One(direct), leveldb(setting, Placer::Home)),
        ("slow alone", Disks::One(slow()), leveldb(setting, Placer::Home)),
        ("SPDK, dynamic", both, leveldb(setting, Placer::Dynamic { unit })),
    ]
}

/// Random writes, as the paper's, on each of `stores`.
fn random_writes(setting: &Setting, stores: Vec<Store>) -> Result<Vec<Written>> {
    let writes = setting.scaled(RECORDS);
    let mut found = Vec::new();
    for (name, disks, options) in stores {
        let mut points = Vec::new();
        for jobs in JOBS {
            let opened = Options { background_threads: Some(jobs.into()), ..options.clone() };
            let (rate, latencies) = run(setting, disks, move |lab| {
                let db = open_without_log(lab, disks, opened)?;
                let format = Arc::new(Records::new(InsertOrder::Hashed, KEY_BYTES, VALUE_BYTES)?);
                let mut client = Client::new(lab, &db, format);
                let (before, mut rng, mut latencies) = (lab.env().now(), Rng::new(1), Latencies::default());
                for _ in 0..writes {
                    latencies.record(client.perform(Action::Put(rng.below(writes)))?);
                }
                let time = (lab.env().now() - before).as_secs_f64();
                db.close()?;
                Ok((writes as f64 / time, latencies))
            })?;
            points.push(Point { jobs: jobs.into(), rate, latencies });
        }
        found.push(Written { name, options, points });
    }
    Ok(found)
}

/// What `measure` says of a store with the first or the last number of jobs.
fn of(found: &[Written], name: &str, at: usize, measure: impl Fn(&Point) -> f64) -> f64 {
    let store = found.iter().find(|store| store.name == name);
    store.and_then(|store| store.points.get(at)).map_or(f64::NAN, measure)
}

const LAST: usize = JOBS.len() - 1;

fn rate(found: &[Written], name: &str, at: usize) -> f64 {
    of(found, name, at, |point| point.rate)
}

fn mean(found: &[Written], name: &str, at: usize) -> f64 {
    of(found, name, at, |point| point.latencies.mean())
}

/// A line of each store by jobs.
fn lines(found: &[Written], what: &str, y: &Axis, measure: impl Fn(&Point) -> f64) -> Vec<Series> {
    let line = |store: &Written| {
        let points = store.points.iter().map(|point| [point.jobs, measure(point)]).collect();
        let name = if what.is_empty() { store.name.into() } else { format!("{}: {what}", store.name) };
        series(&name, &store.options, y.clone(), points)
    };
    found.iter().map(line).collect()
}

fn rates(found: &[Written]) -> Vec<Series> {
    lines(found, "", &Axis::linear("writes", "1/s"), |point| point.rate)
}

/// Mean latency, and those that 50, 99 and 99.9 in a hundred writes do not exceed.
fn latencies(found: &[Written]) -> Vec<Series> {
    let mean =
        lines(found, "", &Axis::linear("mean latency of writes", "us"), |point| point.latencies.mean());
    let percentiles = [50.0, 99.0, 99.9].into_iter().flat_map(|percent| {
        let what = format!("p{percent}");
        let y = Axis::logarithmic(&format!("{what} of writes"), "us");
        lines(found, &what, &y, |point| point.latencies.percentile(percent))
    });
    mean.into_iter().chain(percentiles).collect()
}

fn jobs() -> Axis {
    Axis::linear("background jobs", "")
}

fn done(series: Vec<Series>, relations: Vec<Relation>) -> Result<Findings> {
    let mut findings = findings(jobs(), series, relations)?;
    findings.deviations.push("tables and memtables are scaled, chunks of stripes (64 KiB) are not");
    Ok(findings)
}

/// Throughput of random writes (`nvme-8a`).
pub fn throughput(setting: &Setting) -> Result<Findings> {
    let found = random_writes(setting, on_ext4(setting))?;
    let first = |name: &str| rate(&found, name, 0);
    let order = ["fast alone", "Mod6", "Mod4", "Mod2", "slow alone"].map(first);
    let relations = vec![
        Relation::falling("fast alone, Mod6, Mod4, Mod2, slow alone; 1 job", "in that order", &order),
        Relation::within("RAID 0 / Mod2", "about 1", 0.7..=1.4, first("RAID 0") / first("Mod2")),
        Relation::within(
            "striped in user space / RAID 0 as one disk",
            "ours: about 1",
            0.85..=1.15,
            first("striped") / first("RAID 0"),
        ),
        Relation::within(
            "striped 5:1 / striped evenly",
            "ours: more, by the bandwidths",
            1.0..=f64::INFINITY,
            first("striped 5:1") / first("striped"),
        ),
        Relation::within(
            "by level, adapted / by level",
            "ours: what the slow disk takes is not in the fast one's way",
            0.9..=f64::INFINITY,
            first("by level, adapted") / first("by level"),
        ),
        Relation::within(
            "ours: dynamic / fast alone",
            "never below the fast disk alone",
            0.99..=f64::INFINITY,
            first("Terrace, dynamic") / first("Terrace, fast alone"),
        ),
    ];
    done(rates(&found), relations)
}

/// Latency of random writes (`nvme-8b`).
pub fn latency(setting: &Setting) -> Result<Findings> {
    let found = random_writes(setting, on_ext4(setting))?;
    let order = ["slow alone", "Mod2", "Mod4", "Mod6", "fast alone"].map(|name| mean(&found, name, 0));
    let p999 = |name: &str| of(&found, name, 0, |point| point.latencies.percentile(99.9));
    let relations = vec![
        Relation::falling(
            "mean: slow alone, Mod2, Mod4, Mod6, fast alone; 1 job",
            "the reverse order",
            &order,
        ),
        Relation::within(
            "p99.9, ours: dynamic / fast alone",
            "ours: not above the fast disk alone",
            0.0..=1.05,
            p999("Terrace, dynamic") / p999("Terrace, fast alone"),
        ),
    ];
    done(latencies(&found), relations)
}

/// Throughput with SPDK's stand-in (`nvme-8c`).
pub fn spdk_throughput(setting: &Setting) -> Result<Findings> {
    let found = random_writes(setting, on_spdk(setting))?;
    let last = |name: &str| rate(&found, name, LAST);
    let order = ["SPDK-Mod6", "SPDK-Mod4", "SPDK-Mod2", "slow alone"].map(|name| rate(&found, name, 0));
    let above =
        |claim: &str, name: &str, measured| Relation::within(name, claim, 1.0..=f64::INFINITY, measured);
    let relations = vec![
        Relation::falling("SPDK-Mod6, Mod4, Mod2, slow alone; 1 job", "as on ext4", &order),
        above("SPDK-Mod4 above SPDK", "SPDK-Mod4 / SPDK, 4 jobs", last("SPDK-Mod4") / last("SPDK")),
        above(
            "SPDK-Mod4 above SPDK",
            "SPDK-Mod4 / SPDK, 1 job",
            rate(&found, "SPDK-Mod4", 0) / rate(&found, "SPDK", 0),
        ),
        above(
            "ours: any second path helps",
            "SPDK, dynamic / SPDK, 4 jobs",
            last("SPDK, dynamic") / last("SPDK"),
        ),
    ];
    done(rates(&found), relations)
}

/// Latency with SPDK's stand-in (`nvme-8d`).
pub fn spdk_latency(setting: &Setting) -> Result<Findings> {
    let found = random_writes(setting, on_spdk(setting))?;
    let order = ["slow alone", "SPDK-Mod2", "SPDK-Mod4", "SPDK-Mod6"].map(|name| mean(&found, name, 0));
    let relations = vec![
        Relation::falling("mean: slow alone, SPDK-Mod2, Mod4, Mod6; 1 job", "the reverse order", &order),
        Relation::within(
            "mean: SPDK-Mod4 / SPDK, 4 jobs",
            "SPDK-Mod4 below SPDK",
            0.0..=1.0,
            mean(&found, "SPDK-Mod4", LAST) / mean(&found, "SPDK", LAST),
        ),
    ];
    done(latencies(&found), relations)
}
