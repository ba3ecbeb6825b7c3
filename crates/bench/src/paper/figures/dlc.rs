//! DLC: compactions of level 0 under an OLTP-like load, and how to detect the load.
//!
//! The paper runs sysbench's transactions on 64 tables of 10 million rows, 16-byte keys and 184-byte values, with
//! memtables of 128 MB, level 1 of 2 GB, tables of 64 MB, blocks of 64 KB, a cache of 12 GB and a disk of 350 MB/s;
//! level 0 neither slows nor stops writers before it has 100 runs. It finds the greatest throughput first and then
//! offers 90 % of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::env::sync::Mutex;
use terrace::tree::{Cutter, Flushes, Layout, Leveled, Pacer, TableSize};
use terrace::{Db, Options, Stats};

use super::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, memory_for, seconds, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::{Body, Lab};
use crate::paper::record::{Axis, Relation};
use crate::paper::timeline::{Latencies, Sample, Timeline, sampled};
use crate::workload::{Arrivals, Oltp, Rate};
use crate::ycsb::keys::InsertOrder;

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 184;
const TABLES: u64 = 64;
const ROWS: u64 = 10_000_000;
const MEMTABLE_BYTES: u64 = 128 << 20;
const LEVEL1_BYTES: u64 = 2 << 30;
const TABLE_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u32 = 64 << 10;
const CACHE_BYTES: u64 = 12 << 30;
const DEVICE_BANDWIDTH: u64 = 350_000_000;

const THREADS: u64 = 32;

/// How the greatest throughput is found, and the share of it that is offered.
const SEARCH_TIME: Duration = Duration::from_secs(2000);
const OFFERED_SHARE: f64 = 0.9;

const RUN_TIME: Duration = Duration::from_secs(4300);
const INTERVAL: Duration = Duration::from_secs(10);

const DEVIATIONS: &[&str] = &[
    "no SQL: the transaction's reads and writes go to the store one by one, without its locks",
    "time is scaled as data is; rates, blocks and the device's bandwidth are the paper's",
    "log and data on one device",
];

fn options(setting: &Setting) -> Options {
    let mut options = Options::profile("leveldb-64m").unwrap_or_default();
    options.memtable_bytes = setting.scaled(MEMTABLE_BYTES).max(MEMTABLE_BYTES_MIN);
    options.memory_bytes = Some(memory_for(setting.scaled(CACHE_BYTES), options.memtable_bytes));
    let tree = &mut options.tree;
    let level1_bytes = setting.scaled(LEVEL1_BYTES).max(LEVEL1_BYTES_MIN);
    tree.layout = Layout::Leveled(Leveled { level1_bytes, ..Leveled::default() });
    let table_bytes = setting.scaled(TABLE_BYTES).max(u64::from(BLOCK_BYTES));
    tree.cutter = Cutter::Size(TableSize { table_bytes, flushes: Flushes::Whole });
    tree.block_bytes = BLOCK_BYTES;
    if let Pacer::Governor(governor) = &mut tree.pacer {
        (governor.l0_slow, governor.l0_stop) = (100, 101);
    }
    options
}

/// What transactions did and what the store counted meanwhile.
struct Driven {
    timeline: Timeline,
    /// Counters, and transactions that had ended.
    samples: Vec<Sample<(Stats, u64)>>,
    /// Transactions per second that were offered.
    offered: f64,
    interval: Duration,
    time: Duration,
}

/// What the clients of a run share.
struct Load {
    oltp: Oltp,
    arrivals: Mutex<Arrivals>,
    started: Duration,
    time: Duration,
    interval: Duration,
    seed: u64,
    /// Transactions that have ended.
    done: AtomicU64,
}

/// One client of an open loop: takes the next arrival, waits for it, runs a transaction.
fn open_loop(mut client: Client, load: Arc<Load>, thread: u64) -> Body<Timeline> {
    Box::new(move || {
        let mut timeline = Timeline::new(load.started, load.interval);
        let mut rng = Rng::stream(load.seed, thread);
        loop {
            let Some(arrival) = load.arrivals.lock().next().filter(|at| *at < load.time) else {
                return Ok(timeline);
            };
            client.wait_until(load.started + arrival);
            for action in load.oltp.transaction(&mut rng) {
                client.perform(action)?;
            }
            load.done.fetch_add(1, Ordering::Relaxed);
            timeline.record(client.now(), client.now().saturating_sub(load.started + arrival));
        }
    })
}

/// The transactions per second that clients do who do not wait; they warm the cache, too.
fn greatest_rate(
    lab: &Lab,
    db: &Db,
    records: &Arc<Records>,
    oltp: &Oltp,
    time: Duration,
    seed: u64,
) -> Result<f64> {
    let started = lab.env().now();
    let bodies = (0..THREADS).map(|thread| -> Body<u64> {
        let mut client = Client::new(lab, db, records.clone());
        let (oltp, mut rng) = (oltp.clone(), Rng::stream(!seed, thread));
        Box::new(move || {
            let mut counted = 0;
            while client.now() - started < time {
                for action in oltp.transaction(&mut rng) {
                    client.perform(action)?;
                }
                // The second half counts: the cache is warm by then.
                counted += u64::from(client.now() - started >= time / 2);
            }
            Ok(counted)
        })
    });
    let counted: u64 = lab.threads(bodies.collect())?.iter().sum();
    Ok(counted as f64 / seconds(time / 2))
}

/// Finds the greatest rate, then offers nine tenths of it.
fn drive(setting: &Setting, options: Options) -> Result<Driven> {
    let seed = setting.seed;
    let oltp = Oltp::new(TABLES, setting.scaled(ROWS));
    let [search, time, interval] = [SEARCH_TIME, RUN_TIME, INTERVAL].map(|time| setting.scaled_time(time));
    setting.machine.run(seed, move |lab| {
        let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
        let db = lab.open(options)?;
        records.ingest(&db, oltp.records())?;
        let offered = OFFERED_SHARE * greatest_rate(lab, &db, &records, &oltp, search, seed)?;
        let arrivals = Mutex::new(Arrivals::new(Rate::Sustained(offered)));
        let (started, done) = (lab.env().now(), AtomicU64::new(0));
        let load = Arc::new(Load { oltp, arrivals, started, time, interval, seed, done });
        let bodies = (0..THREADS)
            .map(|thread| open_loop(Client::new(lab, &db, records.clone()), load.clone(), thread))
            .collect();
        let store = db.clone();
        let probe = move || (store.stats(), load.done.load(Ordering::Relaxed));
        let (samples, timelines) = sampled(lab, interval, probe, bodies)?;
        let mut timeline = Timeline::new(started, interval);
        timelines.iter().for_each(|one| timeline.merge(one));
        db.close()?;
        Ok(Driven { timeline, samples, offered, interval, time })
    })
}

fn at_the_papers_bandwidth(setting: &Setting) -> Setting {
    setting.on("at 350 MB/s", |model| {
        model.read_bandwidth = DEVICE_BANDWIDTH;
        model.write_bandwidth = DEVICE_BANDWIDTH;
    })
}

/// A figure for each interval of the timeline, over the time at its end.
fn by_interval(driven: &Driven, measure: impl Fn(&Latencies) -> f64) -> Vec<[f64; 2]> {
    let intervals = driven.timeline.within(driven.time).iter();
    let ends = (1_u32..).map(|end| seconds(driven.interval * end));
    ends.zip(intervals).map(|(end, latencies)| [end, measure(latencies)]).collect()
}

/// Separate stretches of intervals below `limit`.
fn drops(points: &[[f64; 2]], limit: f64) -> usize {
    let below = |point: &[f64; 2]| point[1] < limit;
    let begins = points.windows(2).filter(|pair| !below(&pair[0]) && below(&pair[1])).count();
    begins + usize::from(points.first().is_some_and(below))
}

/// Throughput and tail over time, RocksDB's shape.
pub fn figure_1(setting: &Setting) -> Result<Findings> {
    let setting = at_the_papers_bandwidth(setting);
    let options = options(&setting);
    let driven = drive(&setting, options.clone())?;
    let length = seconds(driven.interval);
    let rate = by_interval(&driven, |latencies| latencies.count() as f64 / length);
    let steady = rate.iter().filter(|point| (point[1] / driven.offered - 1.0).abs() <= 0.05).count();
    let offered = rate.iter().map(|&[at, _]| [at, driven.offered]).collect();
    let merged = driven
        .samples
        .windows(2)
        .map(|pair| {
            let bytes = pair[1].seen.0.compaction.bytes_out - pair[0].seen.0.compaction.bytes_out;
            [seconds(pair[1].at), bytes as f64 / 1e6 / seconds(pair[1].at - pair[0].at)]
        })
        .collect();
    let throughput = || Axis::linear("transactions", "1/s");
    Ok(Findings {
        x: Axis::linear("time", "s"),
        relations: vec![
            Relation::within(
                "drops below nine tenths of the offered rate",
                "periodic drops",
                3.0..=f64::INFINITY,
                drops(&rate, OFFERED_SHARE * driven.offered) as f64,
            ),
            Relation::within(
                "share of intervals within 5 % of the offered rate",
                "unstable",
                f64::NEG_INFINITY..=0.95,
                steady as f64 / rate.len().max(1) as f64,
            ),
        ],
        series: vec![
            series("done", &options, throughput(), rate),
            series("offered", &options, throughput(), offered),
            series(
                "p99",
                &options,
                Axis::logarithmic("p99 of a transaction", "us"),
                by_interval(&driven, |latencies| latencies.percentile(99.0)),
            ),
            series("merges", &options, Axis::linear("written by merges", "MB/s"), merged),
        ],
        deviations: DEVIATIONS.to_vec(),
        machine: setting.machine,
    })
}

/// Operations of a transaction, as the estimators count them.
const GETS: f64 = 10.0;
const SCANS: f64 = 4.0;
const WRITES: f64 = 4.0;

/// What one interval of a run looked like to the estimators.
#[derive(Clone, Copy)]
struct Observed {
    /// Time at the end of the interval, in seconds.
    at: f64,
    /// Its length, in seconds.
    length: f64,
    transactions: f64,
    /// Blocks that were not in the cache when clients asked for them.
    missed: f64,
    /// Bytes that clients' lookups and scans read from the device.
    read: f64,
}

impl Observed {
    fn of(pair: &[Sample<(Stats, u64)>]) -> Self {
        let (before, after) = (&pair[0].seen, &pair[1].seen);
        let read = |stats: &Stats| stats.read.get + stats.read.scan;
        Self {
            at: seconds(pair[1].at),
            length: seconds(pair[1].at - pair[0].at),
            transactions: (after.1 - before.1) as f64,
            missed: (after.0.cache.misses - before.0.cache.misses) as f64,
            read: (read(&after.0) - read(&before.0)) as f64,
        }
    }

    /// Equation 1, SILK's: each operation moves its record.
    fn by_operations(&self) -> f64 {
        (GETS + SCANS + WRITES) * self.transactions * (KEY_BYTES + VALUE_BYTES) as f64
    }

    /// Equation 5: each lookup stands for `weight` bytes.
    fn by_weight(&self, weight: f64) -> f64 {
        GETS * self.transactions * weight
    }

    /// Equation 6: each block that enters the cache has been read.
    fn by_blocks(&self) -> f64 {
        self.missed * f64::from(BLOCK_BYTES)
    }
}

/// Mean distance of an estimate from what was read, as a share of it.
fn mean_error(observed: &[Observed], estimate: impl Fn(&Observed) -> f64) -> f64 {
    let error = |one: &Observed| (estimate(one) - one.read).abs() / one.read.max(1.0);
    observed.iter().map(error).sum::<f64>() / observed.len().max(1) as f64
}

/// Estimates of the bandwidth that clients take, and what they take.
pub fn figure_3(setting: &Setting) -> Result<Findings> {
    let setting = at_the_papers_bandwidth(setting);
    let options = options(&setting);
    let driven = drive(&setting, options.clone())?;
    let observed: Vec<Observed> = driven.samples.windows(2).map(Observed::of).collect();
    // The weight of a lookup is fitted to the first quarter, and judged by the rest.
    let (fitted, judged) = observed.split_at(observed.len() / 4);
    let sum = |measure: fn(&Observed) -> f64| fitted.iter().map(measure).sum::<f64>();
    let weight = sum(|one| one.read) / sum(|one| GETS * one.transactions).max(1.0);
    let line = |name: &str, measure: &dyn Fn(&Observed) -> f64| {
        let points = observed.iter().map(|one| [one.at, measure(one) / one.length / 1e6]).collect();
        series(name, &options, Axis::linear("read by clients", "MB/s"), points)
    };
    let mut deviations = DEVIATIONS.to_vec();
    deviations
        .push("the truth is what lookups and scans read, as the store counts it; the paper's is iostat's");
    deviations.push("the weight of a lookup is fitted to the first quarter of the run");
    Ok(Findings {
        x: Axis::linear("time", "s"),
        relations: vec![
            Relation::within("mean error of equation 1", "far off", 0.5..=f64::INFINITY, {
                mean_error(judged, Observed::by_operations)
            }),
            Relation::within("mean error with weights", "close", 0.0..=0.2, {
                mean_error(judged, |one| one.by_weight(weight))
            }),
            Relation::within("mean error of equation 6", "close", 0.0..=0.2, {
                mean_error(judged, Observed::by_blocks)
            }),
        ],
        series: vec![
            line("read", &|one| one.read),
            line("equation 1", &Observed::by_operations),
            line("equation 1 with weights", &|one| one.by_weight(weight)),
            line("equation 6", &Observed::by_blocks),
        ],
        deviations,
        machine: setting.machine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_stretches_not_intervals() {
        let points = |rates: &[f64]| rates.iter().map(|&rate| [0.0, rate]).collect::<Vec<_>>();
        assert_eq!(drops(&points(&[10.0, 8.0, 7.0, 10.0, 8.0]), 9.0), 2);
        assert_eq!(drops(&points(&[8.0, 10.0]), 9.0), 1);
        assert_eq!(drops(&points(&[10.0, 9.0]), 9.0), 0);
    }

    #[test]
    fn estimators_weigh_what_they_are_told() {
        let one = Observed { at: 1.0, length: 1.0, transactions: 10.0, missed: 3.0, read: 4e5 };
        assert_eq!((one.by_operations(), one.by_weight(2e3), one.by_blocks()), (36e3, 2e5, 196_608.0));
        assert!((mean_error(&[one], |one| one.by_weight(2e3)) - 0.5).abs() < 1e-9);
    }
}
