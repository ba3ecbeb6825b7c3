//! Loads: clients of an open loop, and what they and the store did meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::env::sync::Mutex;
use terrace::{Db, LoadStats, Options, Stats};

use super::{KEY_BYTES, OFFERED_SHARE, ROWS, TABLES, THREADS, Testbed, VALUE_BYTES, seconds, series};
use crate::Result;
use crate::generator::Rng;
use crate::paper::client::{Client, Records};
use crate::paper::machine::{Body, Lab};
use crate::paper::record::{Axis, Series};
use crate::paper::timeline::{Latencies, Sample, Timeline, sampled};
use crate::workload::{Arrivals, Mix, Oltp, Rate};
use crate::ycsb::keys::InsertOrder;

/// How the greatest throughput is found.
const SEARCH_TIME: Duration = Duration::from_secs(2000);

/// The paper's run, and its last part, of which it reports.
pub(super) const RUN_TIME: Duration = Duration::from_secs(4300);
pub(super) const REPORTED_FROM: Duration = Duration::from_secs(3300);

pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// An interval is steady within this share of the offered rate.
const STEADY: f64 = 0.05;

/// What clients do at a peak, on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakLoad {
    /// Transactions per second that are offered.
    pub(super) rate: f64,
    /// What their reads take of the device then, in bytes per second, as equation 6 estimates it.
    pub(super) bytes: f64,
}

/// What transactions did and what the store counted meanwhile.
pub(super) struct Driven {
    pub(super) testbed: Testbed,
    pub(super) options: Options,
    pub(super) mix: Mix,
    pub(super) timeline: Timeline,
    /// Counters, and transactions that had ended.
    pub(super) samples: Vec<Sample<(Stats, u64)>>,
    pub(super) rate: Rate,
    pub(super) interval: Duration,
    pub(super) time: Duration,
}

/// A run.
#[derive(Clone)]
pub(super) struct Drive {
    pub(super) mix: Mix,
    pub(super) rate: Rate,
    /// Length, in the paper's time.
    pub(super) time: Duration,
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
            // Who is behind by the whole run will not catch up.
            if client.now().saturating_sub(load.started) > load.time {
                return Ok(timeline);
            }
            for action in load.oltp.transaction(&mut rng) {
                client.perform(action)?;
            }
            load.done.fetch_add(1, Ordering::Relaxed);
            timeline.record(client.now(), client.now().saturating_sub(load.started + arrival));
        }
    })
}

/// The transactions per second of clients who do not wait, and what they read meanwhile.
fn greatest(
    lab: &Lab,
    db: &Db,
    records: &Arc<Records>,
    oltp: &Oltp,
    time: Duration,
    seed: u64,
) -> Result<PeakLoad> {
    let started = lab.env().now();
    let bodies = (0..THREADS).map(|thread| -> Body<(u64, u64)> {
        let mut client = Client::new(lab, db, records.clone());
        let (oltp, mut rng) = (oltp.clone(), Rng::stream(!seed, thread));
        let db = db.clone();
        Box::new(move || {
            let (mut counted, mut missed) = (0, None);
            while client.now() - started < time {
                for action in oltp.transaction(&mut rng) {
                    client.perform(action)?;
                }
                // The second half counts: the cache is warm by then.
                if client.now() - started >= time / 2 {
                    counted += 1;
                    missed.get_or_insert_with(|| db.stats().cache.misses);
                }
            }
            Ok((counted, missed.unwrap_or_default()))
        })
    });
    let counts = lab.threads(bodies.collect())?;
    let first = counts.iter().map(|(_, missed)| *missed).min().unwrap_or_default();
    let missed = db.stats().cache.misses.saturating_sub(first);
    let half = seconds(time / 2);
    let counted: u64 = counts.iter().map(|(counted, _)| counted).sum();
    let block = f64::from(super::BLOCK_BYTES);
    Ok(PeakLoad { rate: counted as f64 / half, bytes: missed as f64 * block / half })
}

/// Nine tenths of what RocksDB's shape does with this mix, and what it takes of the device: the peak of all stores.
pub(super) fn find_peak(testbed: &Testbed, mix: Mix) -> Result<PeakLoad> {
    let seed = testbed.setting.seed;
    let (oltp, options) = (oltp(testbed, mix), testbed.options("rocksdb-myrocks", 0.0));
    let time = testbed.time(SEARCH_TIME);
    let found = testbed.setting.machine.run(seed, move |lab| {
        let (db, records) = loaded(lab, options, oltp.records())?;
        let found = greatest(lab, &db, &records, &oltp, time, seed)?;
        db.close()?;
        Ok(found)
    })?;
    Ok(PeakLoad { rate: OFFERED_SHARE * found.rate, bytes: OFFERED_SHARE * found.bytes })
}

fn oltp(testbed: &Testbed, mix: Mix) -> Oltp {
    Oltp::new(TABLES, testbed.setting.scaled(ROWS)).with(mix)
}

/// A store with all rows.
pub(super) fn loaded(lab: &Lab, options: Options, count: u64) -> Result<(Db, Arc<Records>)> {
    let records = Arc::new(Records::new(InsertOrder::Ordered, KEY_BYTES, VALUE_BYTES)?);
    let db = lab.open(options)?;
    records.ingest(&db, count)?;
    Ok((db, records))
}

/// Runs transactions that come at a rate.
pub(super) fn drive(testbed: &Testbed, options: Options, drive: &Drive) -> Result<Driven> {
    let seed = testbed.setting.seed;
    let oltp = oltp(testbed, drive.mix);
    let (time, interval) = (testbed.time(drive.time), testbed.time(INTERVAL));
    let (opened, rate) = (options.clone(), drive.rate);
    let (timeline, samples) = testbed.setting.machine.run(seed, move |lab| {
        let (db, records) = loaded(lab, opened, oltp.records())?;
        let arrivals = Mutex::new(Arrivals::new(rate));
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
        Ok((timeline, samples))
    })?;
    let (testbed, mix) = (testbed.clone(), drive.mix);
    Ok(Driven { testbed, options, mix, timeline, samples, rate, interval, time })
}

/// One interval of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<'a> {
    /// Time at its end, in the paper's seconds.
    pub(super) at: f64,
    /// Transactions per second that came, in the paper's time.
    pub(super) offered: f64,
    /// Those that were done.
    pub(super) done: f64,
    pub(super) latencies: &'a Latencies,
}

impl Interval<'_> {
    pub(super) fn is_steady(&self) -> bool {
        (self.done / self.offered - 1.0).abs() <= STEADY
    }

    /// Below nine tenths of what came.
    pub(super) fn is_drop(&self) -> bool {
        self.done < 0.9 * self.offered
    }
}

impl Driven {
    /// The whole intervals of the run.
    pub(super) fn intervals(&self) -> Vec<Interval<'_>> {
        let length = seconds(self.interval);
        let middle = |end: u32| self.interval * end - self.interval / 2;
        let offered = |end| self.testbed.rate(self.rate.at(middle(end)).0);
        let intervals = (1..).zip(self.timeline.within(self.time));
        let interval = |(end, latencies): (u32, &'_ Latencies)| (end, latencies.count() as f64 / length);
        intervals
            .map(|(end, latencies)| Interval {
                at: self.testbed.seconds(self.interval * end),
                offered: offered(end),
                done: self.testbed.rate(interval((end, latencies)).1),
                latencies,
            })
            .collect()
    }

    /// Those of which the paper reports.
    pub(super) fn reported(&self) -> Vec<Interval<'_>> {
        let from = seconds(REPORTED_FROM);
        self.intervals().into_iter().filter(|one| one.at > from).collect()
    }

    /// The p99 of all transactions of `intervals`, in the paper's microseconds.
    pub(super) fn p99(&self, intervals: &[Interval<'_>]) -> f64 {
        let mut all = Latencies::default();
        intervals.iter().for_each(|one| all.merge(one.latencies));
        self.testbed.micros(all.percentile(99.0))
    }

    /// What is recorded of each interval, as lines named `name`.
    pub(super) fn series(&self, name: &str) -> Vec<Series> {
        let intervals = self.intervals();
        let of = |measure: &dyn Fn(&Interval<'_>) -> f64| {
            intervals.iter().map(|one| [one.at, measure(one)]).collect::<Vec<_>>()
        };
        let line = |y: Axis, points| series(name, &self.options, y, points);
        let p99 = Axis::logarithmic("p99 of a transaction", "us");
        let estimate = |what: &str| Axis::linear(&format!("taken by clients, by {what}"), "MB/s");
        let load = |measure: fn(&LoadStats) -> f64| self.by_sample(|pair| measure(&pair[1].seen.0.load));
        let bytes = |measure: fn(&LoadStats) -> f64| {
            self.by_sample(|pair| self.testbed.rate(measure(&pair[1].seen.0.load)) / 1e6)
        };
        vec![
            line(Axis::linear("transactions done", "1/s"), of(&|one| one.done)),
            line(Axis::linear("transactions offered", "1/s"), of(&|one| one.offered)),
            line(p99, of(&|one| self.testbed.micros(one.latencies.percentile(99.0)))),
            line(Axis::linear("load, 1 if high", ""), load(|load| f64::from(u8::from(load.is_high)))),
            line(Axis::linear("runs of level 0", ""), load(|load| load.level0_runs as f64)),
            line(estimate("the pacer"), bytes(|load| load.client_rate as f64)),
            line(estimate("equation 1"), self.estimates(Observed::by_operations)),
            line(estimate("equation 6"), self.estimates(Observed::by_blocks)),
            line(
                Axis::linear("left to compactions, 0 if not limited", "MB/s"),
                bytes(|load| load.background_rate.unwrap_or(0) as f64),
            ),
            line(Axis::linear("written by compactions", "MB/s"), self.compacted()),
        ]
    }

    /// A figure of each two neighbouring samples, over the time of the later one.
    pub(super) fn by_sample(&self, measure: impl Fn(&[Sample<(Stats, u64)>]) -> f64) -> Vec<[f64; 2]> {
        let pairs = self.samples.windows(2);
        pairs.map(|pair| [self.testbed.seconds(pair[1].at), measure(pair)]).collect()
    }

    /// What compactions wrote, in MB/s of the paper.
    fn compacted(&self) -> Vec<[f64; 2]> {
        self.by_sample(|pair| {
            let [before, after] = [0, 1].map(|at| pair[at].seen.0.compaction.bytes_out);
            self.testbed.rate((after - before) as f64 / 1e6 / seconds(pair[1].at - pair[0].at))
        })
    }

    pub(super) fn estimates(&self, estimate: impl Fn(&Observed) -> f64) -> Vec<[f64; 2]> {
        self.by_sample(|pair| {
            let observed = Observed::of(self.mix, pair);
            self.testbed.rate(estimate(&observed) / observed.length / 1e6)
        })
    }
}

/// What one interval of a run looked like to the estimators.
#[derive(Clone, Copy)]
pub(super) struct Observed {
    pub(super) mix: Mix,
    /// Its length, in seconds.
    pub(super) length: f64,
    pub(super) transactions: f64,
    /// Blocks that were not in the cache when clients asked for them.
    pub(super) missed: f64,
    /// Bytes that clients' lookups and scans read from the device.
    pub(super) read: f64,
}

impl Observed {
    pub(super) fn of(mix: Mix, pair: &[Sample<(Stats, u64)>]) -> Self {
        let (before, after) = (&pair[0].seen, &pair[1].seen);
        let read = |stats: &Stats| stats.read.get + stats.read.scan;
        Self {
            mix,
            length: seconds(pair[1].at - pair[0].at),
            transactions: (after.1 - before.1) as f64,
            missed: (after.0.cache.misses - before.0.cache.misses) as f64,
            read: (read(&after.0) - read(&before.0)) as f64,
        }
    }

    /// Equation 1, SILK's: each operation moves its record.
    pub(super) fn by_operations(&self) -> f64 {
        self.mix.actions() as f64 * self.transactions * super::RECORD_BYTES
    }

    /// Equation 5: each lookup stands for `weight` bytes.
    pub(super) fn by_weight(&self, weight: f64) -> f64 {
        self.mix.gets as f64 * self.transactions * weight
    }

    /// Equation 6: each block that enters the cache has been read.
    pub(super) fn by_blocks(&self) -> f64 {
        self.missed * f64::from(super::BLOCK_BYTES)
    }
}

/// The share of `intervals` within 5 % of the offered rate.
pub(super) fn steady_share(intervals: &[Interval<'_>]) -> f64 {
    let steady = intervals.iter().filter(|one| one.is_steady()).count();
    steady as f64 / intervals.len().max(1) as f64
}

/// Separate stretches of `intervals` of which `is_in` holds: the places of each.
pub(super) fn stretches<T>(intervals: &[T], is_in: impl Fn(&T) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..intervals.len()).filter(|&at| is_in(&intervals[at])) {
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end += 1,
            None => found.push(at..at + 1),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_stretches_not_intervals() {
        let drops = |rates: &[f64]| stretches(rates, |rate| *rate < 9.0);
        assert_eq!(drops(&[10.0, 8.0, 7.0, 10.0, 8.0]), [1..3, 4..5]);
        assert_eq!(drops(&[8.0, 10.0]).len(), 1);
        assert_eq!(drops(&[10.0, 9.0]).len(), 0);
    }

    #[test]
    fn estimators_weigh_what_they_are_told() {
        let mix = Mix::SYSBENCH;
        let one = Observed { mix, length: 1.0, transactions: 10.0, missed: 3.0, read: 4e5 };
        assert_eq!((one.by_operations(), one.by_weight(2e3), one.by_blocks()), (36e3, 2e5, 196_608.0));
    }

    #[test]
    fn an_interval_is_steady_within_a_twentieth_of_what_came() {
        let latencies = Latencies::default();
        let one = |done| Interval { at: 1.0, offered: 100.0, done, latencies: &latencies };
        assert!(one(96.0).is_steady() && one(104.0).is_steady());
        assert!(!one(94.0).is_steady() && !one(106.0).is_steady());
        assert_eq!([one(91.0).is_drop(), one(89.0).is_drop()], [false, true]);
    }
}
