//! Loads that never drop: the stores of figures 1, 2 and 4, and the bursts of figure 9.

use std::time::Duration;

use super::load::{Drive, Driven, INTERVAL, Interval, RUN_TIME, drive, find_peak, steady_share, stretches};
use super::{DEVIATIONS, LIMITS_DEVIATION, Testbed, seconds};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::workload::{Mix, Rate};

/// The paper's last part of a run is where compactions have become regular; drops are looked for from here on.
const SETTLED: f64 = 600.0;

/// Part merges come before a full one four times, which takes longer than the paper's run.
const PARTS_TIME: Duration = Duration::from_secs(11_000);

fn sustained(setting: &Setting, profile: &str, time: Duration) -> Result<Driven> {
    let testbed = Testbed::new(setting);
    let peak = find_peak(&testbed, Mix::SYSBENCH)?;
    let options = testbed.options(profile, peak.bytes);
    let run = Drive { mix: Mix::SYSBENCH, rate: Rate::Sustained(peak.rate), time };
    drive(&testbed, options, &run)
}

fn findings(driven: Driven, series: Vec<Series>, relations: Vec<Relation>, paced: bool) -> Findings {
    let mut deviations = DEVIATIONS.to_vec();
    if paced {
        deviations.push(LIMITS_DEVIATION);
    }
    let machine = driven.testbed.setting.machine;
    Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine }
}

fn settled<'a>(intervals: &[Interval<'a>]) -> Vec<Interval<'a>> {
    let last = intervals.last().map_or(0.0, |one| one.at);
    intervals.iter().filter(|one| one.at > SETTLED.min(last / 2.0)).copied().collect()
}

/// Throughput and tail over time, RocksDB's shape.
pub fn figure_1(setting: &Setting) -> Result<Findings> {
    let driven = sustained(setting, "rocksdb-myrocks", RUN_TIME)?;
    let intervals = settled(&driven.intervals());
    let drops = stretches(&intervals, Interval::is_drop).len();
    let relations = vec![
        Relation::within(
            "drops below nine tenths of the offered rate",
            "periodic drops",
            3.0..=f64::INFINITY,
            drops as f64,
        ),
        Relation::within(
            "share of intervals within 5 % of the offered rate",
            "unstable",
            f64::NEG_INFINITY..=0.95,
            steady_share(&intervals),
        ),
    ];
    let series = driven.series("RocksDB");
    Ok(findings(driven, series, relations, false))
}

/// The same of SILK.
pub fn figure_2(setting: &Setting) -> Result<Findings> {
    let driven = sustained(setting, "silk", RUN_TIME)?;
    let intervals = settled(&driven.intervals());
    let (early, late): (Vec<_>, Vec<_>) = intervals.iter().partition(|one| one.at < 3500.0);
    let relations = vec![
        Relation::within(
            "share of intervals within 5 % of the offered rate, up to 3500 s",
            "stable",
            0.95..=1.0,
            steady_share(&early),
        ),
        Relation::within(
            "drops below nine tenths of the offered rate, from 3500 s on",
            "drops",
            1.0..=f64::INFINITY,
            stretches(&late, Interval::is_drop).len() as f64,
        ),
        Relation::within(
            "p99 from 3500 s on / up to then",
            "spikes",
            1.5..=f64::INFINITY,
            driven.p99(&late) / driven.p99(&early),
        ),
    ];
    let series = driven.series("SILK");
    Ok(findings(driven, series, relations, false))
}

/// DLC without bursts.
pub fn figure_4(setting: &Setting) -> Result<Findings> {
    let driven = sustained(setting, "dlc-full", RUN_TIME)?;
    let intervals = settled(&driven.intervals());
    let quarter = intervals.len() / 4;
    let (first, last) = (&intervals[..quarter], &intervals[intervals.len() - quarter..]);
    let done = |part: &[Interval<'_>]| part.iter().map(|one| one.done / one.offered).sum::<f64>();
    let relations = vec![
        Relation::within(
            "transactions done, last quarter / first",
            "a slow steady decay",
            0.5..=0.99,
            done(last) / done(first).max(f64::MIN_POSITIVE),
        ),
        Relation::within(
            "p99, last quarter / first",
            "grows with level 0",
            1.0..=f64::INFINITY,
            driven.p99(last) / driven.p99(first),
        ),
        Relation::within(
            "runs of level 0 at the end",
            "grows",
            20.0..=f64::INFINITY,
            runs(&driven).last().map_or(0.0, |run| run[1]),
        ),
        Relation::within(
            "share of intervals in which the load is high",
            "always, once the cache is warm",
            0.95..=1.0,
            high_share(&driven, SETTLED),
        ),
    ];
    let series = driven.series("DLC");
    Ok(findings(driven, series, relations, true))
}

/// Runs of level 0 at the end of each interval.
pub(super) fn runs(driven: &Driven) -> Vec<[f64; 2]> {
    driven.by_sample(|pair| pair[1].seen.0.load.level0_runs as f64)
}

/// The share of samples in which the load is high, from `from` on.
fn high_share(driven: &Driven, from: f64) -> f64 {
    let high = driven.by_sample(|pair| f64::from(u8::from(pair[1].seen.0.load.is_high)));
    let late: Vec<f64> = high.iter().filter(|point| point[0] > from).map(|point| point[1]).collect();
    late.iter().sum::<f64>() / late.len().max(1) as f64
}

/// What makes level 0 shrink.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// Flushed runs became one run of level 0.
    Part,
    /// Level 0 was merged into level 1.
    Full,
}

/// What happens when level 0 has become too large.
struct Bursts<'a> {
    /// Intervals around the end of each burst: it begins before that.
    bursts: Vec<Vec<Interval<'a>>>,
    /// Intervals that are near no burst of any kind, from the first on that is settled.
    calm: Vec<Interval<'a>>,
}

/// Runs by which level 0 shrinks at least when it is merged into level 1.
const SHRINKS_BY: f64 = 3.0;

/// How long before its end a burst may begin, and how long its backlog may last, in the paper's seconds.
const BURST_AROUND: f64 = 200.0;

/// When level 0 shrank, and by what.
fn merges(driven: &Driven) -> Vec<(f64, Merge)> {
    let intra = driven.by_sample(|pair| {
        let [before, after] = [0, 1].map(|at| pair[at].seen.0.compaction.intra_l0);
        (after - before) as f64
    });
    let runs = runs(driven);
    let shrinks = (1..runs.len()).filter_map(|at| {
        let (time, shrunk) = (runs[at][0], runs[at - 1][1] - runs[at][1]);
        match (intra[at][1] > 0.0, shrunk >= SHRINKS_BY) {
            (true, _) => Some((time, Merge::Part)),
            (false, true) => Some((time, Merge::Full)),
            (false, false) => None,
        }
    });
    shrinks.collect()
}

impl<'a> Bursts<'a> {
    fn of(driven: &'a Driven, kind: Merge) -> Self {
        let merges = merges(driven);
        let intervals = settled(&driven.intervals());
        let is_near = |one: &Interval<'_>, end: f64| (one.at - end).abs() <= BURST_AROUND;
        let around = |end: f64| intervals.iter().filter(|one| is_near(one, end)).copied().collect();
        let of_kind = merges.iter().filter(|(_, of)| *of == kind);
        let is_calm = |one: &&Interval<'_>| !merges.iter().any(|(end, _)| is_near(one, *end));
        Self {
            bursts: of_kind.map(|(end, _)| around(*end)).collect(),
            calm: intervals.iter().filter(is_calm).copied().collect(),
        }
    }

    /// Seconds of a burst that are below 95 % of the offered rate, on average.
    fn degraded(&self) -> f64 {
        let degraded = |burst: &Vec<Interval<'_>>| {
            let below = burst.iter().filter(|one| one.done < 0.95 * one.offered).count();
            below as f64 * seconds(INTERVAL)
        };
        self.bursts.iter().map(degraded).sum::<f64>() / self.bursts.len() as f64
    }

    /// The highest p99 of an interval, the mean over all bursts.
    fn worst(&self, driven: &Driven) -> f64 {
        let worst =
            |burst: &Vec<Interval<'_>>| burst.iter().map(|one| driven.p99(&[*one])).fold(0.0, f64::max);
        self.bursts.iter().map(worst).sum::<f64>() / self.bursts.len() as f64
    }
}

/// Bursts that merge all of level 0 into level 1.
pub fn figure_9a(setting: &Setting) -> Result<Findings> {
    let driven = sustained(setting, "dlc-burst-full", 2 * RUN_TIME)?;
    let bursts = Bursts::of(&driven, Merge::Full);
    let first = merges(&driven).first().map_or(f64::NAN, |(end, _)| *end);
    let fill = fill_seconds(&driven);
    let relations = vec![
        Relation::within(
            "seconds until the end of the first burst, by 20 flushes",
            "about 2,550 s: as long as 20 flushes take there",
            0.9..=1.3,
            first / (20.0 * fill),
        ),
        Relation::within("bursts", "at each 20 runs", 2.0..=f64::INFINITY, bursts.bursts.len() as f64),
        Relation::within("degraded seconds of a burst", "about 60 s", 10.0..=120.0, bursts.degraded()),
        Relation::within(
            "p99 of the worst ten seconds of a burst / between bursts",
            "extreme",
            5.0..=f64::INFINITY,
            bursts.worst(&driven) / driven.p99(&bursts.calm),
        ),
        Relation::within(
            "share of intervals between bursts within 5 % of the offered rate",
            "stable, full recovery",
            0.95..=1.0,
            steady_share(&bursts.calm),
        ),
    ];
    let series = driven.series("DLC, resume full");
    Ok(findings(driven, series, relations, true))
}

/// Seconds from one flush to the next, on average.
fn fill_seconds(driven: &Driven) -> f64 {
    let flushes = |at: usize| driven.samples[at].seen.0.flush.jobs as f64;
    let last = driven.samples.len() - 1;
    driven.testbed.seconds(driven.samples[last].at) / (flushes(last) - flushes(0)).max(1.0)
}

/// Bursts that merge the flushed runs, and all of level 0 after four of these.
pub fn figure_9b(setting: &Setting) -> Result<Findings> {
    let driven = sustained(setting, "dlc-burst-part", PARTS_TIME)?;
    let (parts, full) = (Bursts::of(&driven, Merge::Part), Bursts::of(&driven, Merge::Full));
    let calm = &parts.calm;
    let third = calm.len() / 3;
    let before_full = &calm[third..2 * third];
    let relations = vec![
        Relation::within(
            "part merges / full ones",
            "four, then a full one",
            3.0..=5.0,
            parts.bursts.len() as f64 / full.bursts.len() as f64,
        ),
        Relation::within("degraded seconds of a part merge", "about 40 s", 0.0..=80.0, parts.degraded()),
        Relation::within(
            "p99 of the worst ten seconds, part merges / full ones",
            "lower",
            f64::NEG_INFINITY..=1.0,
            parts.worst(&driven) / full.worst(&driven),
        ),
        Relation::within(
            "p99 between bursts, second third / first",
            "a slow sag until the full merge",
            1.0..=f64::INFINITY,
            driven.p99(before_full) / driven.p99(&calm[..third]),
        ),
        Relation::within(
            "share of intervals between bursts within 5 % of the offered rate",
            "stable",
            0.95..=1.0,
            steady_share(calm),
        ),
    ];
    let series = driven.series("DLC, resume part");
    Ok(findings(driven, series, relations, true))
}
