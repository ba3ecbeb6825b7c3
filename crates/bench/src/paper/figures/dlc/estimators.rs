//! How the load is told: the estimates of figure 3, and a peak of writes alone, which one of them does not see.

use std::time::Duration;

use terrace::Options;
use terrace::tree::{LoadEstimator, Pacer};

use super::load::{Drive, Driven, Interval, Observed, RUN_TIME, drive, find_peak};
use super::{DEVIATIONS, LIMITS_DEVIATION, Testbed, seconds, series};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation, Series};
use crate::workload::{Mix, Rate};

/// Mean distance of an estimate from what was read, as a share of it.
fn mean_error(observed: &[Observed], estimate: impl Fn(&Observed) -> f64) -> f64 {
    let error = |one: &Observed| (estimate(one) - one.read).abs() / one.read.max(1.0);
    observed.iter().map(error).sum::<f64>() / observed.len().max(1) as f64
}

/// Estimates of the bandwidth that clients take, and what they take.
pub fn figure_3(setting: &Setting) -> Result<Findings> {
    let testbed = Testbed::new(setting);
    let peak = find_peak(&testbed, Mix::SYSBENCH)?;
    let run = Drive { mix: Mix::SYSBENCH, rate: Rate::Sustained(peak.rate), time: RUN_TIME };
    let driven = drive(&testbed, testbed.options("rocksdb-myrocks", 0.0), &run)?;
    let pairs = driven.samples.windows(2);
    let observed: Vec<Observed> = pairs.map(|pair| Observed::of(driven.mix, pair)).collect();
    // The weight of a lookup is fitted to the first quarter, and judged by the rest.
    let (fitted, judged) = observed.split_at(observed.len() / 4);
    let sum = |measure: fn(&Observed) -> f64| fitted.iter().map(measure).sum::<f64>();
    let weight = sum(|one| one.read) / sum(|one| one.by_weight(1.0)).max(1.0);
    let line = |name: &str, measure: &dyn Fn(&Observed) -> f64| {
        series(name, &driven.options, Axis::linear("read by clients", "MB/s"), driven.estimates(measure))
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
        machine: testbed.setting.machine,
    })
}

/// Writes alone.
const WRITES: Mix = Mix { gets: 0, scans: 0, updates: 4, replaced: 0 };

const HIGH_TIME: Duration = Duration::from_secs(500);
const LOW_TIME: Duration = Duration::from_secs(100);
const LOW_SHARE: f64 = 0.25;

/// What comes at a peak, as a part of what the store takes in the long run while it compacts: a hundred seconds of leisure must
/// do to repay five hundred.
const PEAK_SHARE: f64 = 0.15;

/// Waves of writes, and those before which the load is not judged.
const WAVES_TIME: Duration = Duration::from_secs(2400);
const FIRST: f64 = 600.0;

fn estimating(testbed: &Testbed, estimator: LoadEstimator, peak: f64) -> Options {
    let mut options = testbed.options("dlc-full", peak);
    if let Pacer::Dlc(dlc) = &mut options.tree.pacer {
        dlc.estimator = estimator;
    }
    options
}

/// Whether a time, in the paper's seconds, is in a peak, and not in the seconds that it takes to see that.
fn is_peak(at: f64) -> bool {
    (50.0..=seconds(HIGH_TIME)).contains(&(at % seconds(HIGH_TIME + LOW_TIME)))
}

/// Values at a peak, behind the first wave.
fn at_peaks(points: &[[f64; 2]]) -> Vec<f64> {
    points.iter().filter(|point| point[0] > FIRST && is_peak(point[0])).map(|point| point[1]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// What its own pacer takes for the clients' rate at a peak of `run`, in bytes per second.
fn seen_at_a_peak(testbed: &Testbed, estimator: LoadEstimator, run: &Drive) -> Result<f64> {
    let driven = drive(testbed, estimating(testbed, estimator, testbed.bandwidth() as f64), run)?;
    Ok(mean(&at_peaks(&driven.by_sample(|pair| pair[1].seen.0.load.client_rate as f64))))
}

/// A peak of writes alone, as two estimators see it.
pub fn figure_writes(setting: &Setting) -> Result<Findings> {
    let testbed = Testbed::new(setting);
    let peak = find_peak(&testbed, WRITES)?;
    let high = PEAK_SHARE * peak.rate;
    let rate = Rate::SquareWave {
        high,
        high_time: testbed.time(HIGH_TIME),
        low: LOW_SHARE * high,
        low_time: testbed.time(LOW_TIME),
    };
    let run = Drive { mix: WRITES, rate, time: WAVES_TIME };
    let drive_by = |estimator| -> Result<Driven> {
        // Limits are set to what each of them sees at this very peak.
        let peak = seen_at_a_peak(&testbed, estimator, &run)?;
        drive(&testbed, estimating(&testbed, estimator, peak), &run)
    };
    let (blocks, composite) = (drive_by(LoadEstimator::Blocks)?, drive_by(LoadEstimator::Composite)?);
    let high = |driven: &Driven| {
        mean(&at_peaks(&driven.by_sample(|pair| f64::from(u8::from(pair[1].seen.0.load.is_high)))))
    };
    let merged = |driven: &Driven| {
        mean(&at_peaks(&driven.by_sample(|pair| {
            let [before, after] = [0, 1].map(|at| pair[at].seen.0.compaction.bytes_out);
            (after - before) as f64
        })))
    };
    let p99 = |driven: &Driven| {
        let intervals = driven.intervals();
        let peaks: Vec<Interval<'_>> =
            intervals.into_iter().filter(|one| one.at > FIRST && is_peak(one.at)).collect();
        driven.p99(&peaks)
    };
    let relations = vec![
        Relation::within(
            "equation 6: share of a peak in which the load is high",
            "stays low",
            0.0..=0.05,
            high(&blocks),
        ),
        Relation::within(
            "composite: share of a peak in which the load is high",
            "high",
            0.9..=1.0,
            high(&composite),
        ),
        Relation::within(
            "written by compactions at a peak, composite / equation 6",
            "put off",
            0.0..=0.5,
            merged(&composite) / merged(&blocks),
        ),
        Relation::within(
            "p99 at a peak, composite / equation 6",
            "no protection by equation 6",
            0.0..=1.0,
            p99(&composite) / p99(&blocks),
        ),
    ];
    let series: Vec<Series> = [blocks.series("equation 6"), composite.series("composite")].concat();
    let mut deviations = DEVIATIONS.to_vec();
    deviations.push(LIMITS_DEVIATION);
    Ok(Findings {
        x: Axis::linear("time", "s"),
        series,
        relations,
        deviations,
        machine: testbed.setting.machine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_share_of_what_was_read() {
        let mix = Mix::SYSBENCH;
        let one = Observed { mix, length: 1.0, transactions: 10.0, missed: 3.0, read: 4e5 };
        assert!((mean_error(&[one], |one| one.by_weight(2e3)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn peaks_repeat_with_their_waves() {
        assert!(is_peak(100.0) && is_peak(700.0) && !is_peak(550.0) && !is_peak(610.0));
        assert_eq!(at_peaks(&[[100.0, 1.0], [700.0, 2.0], [1150.0, 3.0], [1300.0, 4.0]]), [2.0, 4.0]);
    }
}
