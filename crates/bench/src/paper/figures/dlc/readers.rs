//! What delay costs readers: figures 11 and 12, db_bench with one writer and thirty readers.

use std::sync::Arc;
use std::time::Duration;

use terrace::{Options, Stats};

use super::load::{INTERVAL, loaded};
use super::{DEVIATIONS, RECORD_BYTES, ROWS, TABLES, Testbed, seconds, series};
use crate::Result;
use crate::generator::{Rng, Uniform};
use crate::paper::client::Client;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::machine::Body;
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::{Latencies, Sample, Timeline, sampled};
use crate::workload::{Action, Arrivals, Rate};

const READERS: u64 = 30;

/// Records of a scan.
const SCAN_RECORDS: u64 = 100;

/// What the writer writes, in bytes per second: about what 1,200 transactions do.
const WRITTEN: f64 = 1_400_000.0;

const TIME: Duration = Duration::from_secs(3000);

/// Readers fill the cache until then, in the paper's seconds.
const WARM: f64 = 600.0;

const READERS_DEVIATIONS: &[&str] = &[
    "the writer of db_bench is held to 1.4 MB/s, so that level 0 grows as in the other figures",
    "200-byte records of the other figures, read uniformly",
];

/// What readers did.
struct Reads {
    testbed: Testbed,
    options: Options,
    timeline: Timeline,
    samples: Vec<Sample<Stats>>,
    interval: Duration,
    time: Duration,
}

/// Draws what a reader does.
type ReadAction = fn(u64, u64) -> Action;

fn lookup(record: u64, _: u64) -> Action {
    Action::Get(record)
}

fn scan(record: u64, records: u64) -> Action {
    Action::Scan { from: record, records: SCAN_RECORDS.min(records - record) }
}

fn run(setting: &Setting, action: ReadAction) -> Result<Reads> {
    let testbed = Testbed::new(setting);
    // Readers who do not wait take all of the device.
    let options = testbed.options("dlc-full", testbed.bandwidth() as f64 * 0.9);
    let (seed, count) = (setting.seed, TABLES * setting.scaled(ROWS));
    let (time, interval) = (testbed.time(TIME), testbed.time(INTERVAL));
    let rate = WRITTEN / RECORD_BYTES / testbed.slowdown;
    let opened = options.clone();
    let (timeline, samples) = testbed.setting.machine.run(seed, move |lab| {
        let (db, records) = loaded(lab, opened, count)?;
        let started = lab.env().now();
        let draw = Arc::new(Uniform::new(0, count - 1));
        let mut bodies: Vec<Body<Timeline>> = Vec::new();
        let mut writer = Client::new(lab, &db, records.clone());
        let (keys, mut rng) = (draw.clone(), Rng::stream(seed, READERS));
        bodies.push(Box::new(move || {
            for arrival in Arrivals::new(Rate::Sustained(rate)).take_while(|at| *at < time) {
                writer.wait_until(started + arrival);
                writer.perform(Action::Put(keys.next(&mut rng)))?;
            }
            Ok(Timeline::new(started, interval))
        }));
        for thread in 0..READERS {
            let mut reader = Client::new(lab, &db, records.clone());
            let (keys, mut rng) = (draw.clone(), Rng::stream(seed, thread));
            bodies.push(Box::new(move || {
                let mut timeline = Timeline::new(started, interval);
                while reader.now() - started < time {
                    let latency = reader.perform(action(keys.next(&mut rng), count))?;
                    timeline.record(reader.now(), latency);
                }
                Ok(timeline)
            }));
        }
        let store = db.clone();
        let (samples, timelines) = sampled(lab, interval, move || store.stats(), bodies)?;
        let mut timeline = Timeline::new(started, interval);
        timelines.iter().for_each(|one| timeline.merge(one));
        db.close()?;
        Ok((timeline, samples))
    })?;
    Ok(Reads { testbed, options, timeline, samples, interval, time })
}

impl Reads {
    fn by_interval(&self, measure: impl Fn(&Latencies) -> f64) -> Vec<[f64; 2]> {
        let intervals = (1..).zip(self.timeline.within(self.time));
        intervals
            .map(|(end, latencies): (u32, _)| [self.testbed.seconds(self.interval * end), measure(latencies)])
            .collect()
    }

    /// Reads per second.
    fn rate(&self) -> Vec<[f64; 2]> {
        let length = seconds(self.interval);
        self.by_interval(|latencies| self.testbed.rate(latencies.count() as f64 / length))
    }

    fn latency(&self) -> Vec<[f64; 2]> {
        self.by_interval(|latencies| self.testbed.micros(latencies.mean()))
    }

    fn runs(&self) -> Vec<[f64; 2]> {
        let point =
            |sample: &Sample<Stats>| [self.testbed.seconds(sample.at), sample.seen.load.level0_runs as f64];
        self.samples[1..].iter().map(point).collect()
    }

    fn series(&self, what: &str) -> Vec<Series> {
        let line = |y: Axis, points| series(what, &self.options, y, points);
        vec![
            line(Axis::linear("runs of level 0", ""), self.runs()),
            line(Axis::linear("reads", "1/s"), self.rate()),
            line(Axis::linear("mean latency of a read", "us"), self.latency()),
            line(
                Axis::logarithmic("p99 of a read", "us"),
                self.by_interval(|latencies| self.testbed.micros(latencies.percentile(99.0))),
            ),
        ]
    }

    fn relations(&self, what: &str) -> Vec<Relation> {
        let runs: Vec<f64> = late(&self.runs());
        let last = runs.last().copied().unwrap_or_default();
        let steps = runs.windows(2).all(|pair| (0.0..=1.0).contains(&(pair[1] - pair[0])));
        vec![
            Relation::within(
                &format!("{what}: runs of level 0 at the end"),
                "grows",
                10.0..=f64::INFINITY,
                last,
            ),
            Relation::within(
                &format!("{what}: level 0 only grows, one run at a time (1 if so)"),
                "stepwise",
                1.0..=1.0,
                f64::from(u8::from(steps)),
            ),
            Relation::within(
                &format!("{what}: reads per second, last fifth / first"),
                "falls slightly",
                0.5..=0.99,
                growth(&late(&self.rate())),
            ),
            Relation::within(
                &format!("{what}: mean latency, last fifth / first"),
                "rises",
                1.01..=2.0,
                growth(&late(&self.latency())),
            ),
        ]
    }
}

/// The values behind the warm-up.
fn late(points: &[[f64; 2]]) -> Vec<f64> {
    points.iter().filter(|point| point[0] > WARM).map(|point| point[1]).collect()
}

/// The mean of the last fifth by that of the first.
fn growth(values: &[f64]) -> f64 {
    let fifth = (values.len() / 5).max(1).min(values.len());
    let sum = |part: &[f64]| part.iter().sum::<f64>();
    sum(&values[values.len() - fifth..]) / sum(&values[..fifth])
}

fn findings(testbed: Testbed, series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    let deviations = DEVIATIONS.iter().chain(READERS_DEVIATIONS).copied().collect();
    let machine = testbed.setting.machine;
    Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine }
}

/// Lookups.
pub fn figure_11(setting: &Setting) -> Result<Findings> {
    let lookups = run(setting, lookup)?;
    let (series, relations) = (lookups.series("lookups"), lookups.relations("lookups"));
    Ok(findings(lookups.testbed, series, relations))
}

/// Scans, and lookups beside them.
pub fn figure_12(setting: &Setting) -> Result<Findings> {
    let (scans, lookups) = (run(setting, scan)?, run(setting, lookup)?);
    let mut relations = scans.relations("scans");
    relations.push(Relation::within(
        "reads per second, last fifth / first: scans / lookups",
        "stronger",
        f64::NEG_INFINITY..=1.0,
        growth(&late(&scans.rate())) / growth(&late(&lookups.rate())),
    ));
    let series = [scans.series("scans"), lookups.series("lookups")].concat();
    Ok(findings(scans.testbed, series, relations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_compares_fifths() {
        assert!((growth(&[1.0, 5.0, 5.0, 5.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((growth(&[3.0]) - 1.0).abs() < 1e-9);
    }
}
