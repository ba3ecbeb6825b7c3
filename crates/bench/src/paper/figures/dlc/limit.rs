//! A peak that outlasts the room in level 0: what DLC does at the limits for writers.

use std::time::Duration;

use terrace::tree::{Dlc, Pacer};

use super::load::{Drive, Driven, INTERVAL, Interval, drive, find_peak};
use super::{DEVIATIONS, LIMITS_DEVIATION, Testbed, seconds};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::workload::{Mix, Rate};

/// Reads to writes 1:9: level 0 fills up soon.
const MIX: Mix = Mix { gets: 2, scans: 0, updates: 0, replaced: 9 };

const TIME: Duration = Duration::from_secs(2000);

/// Limits of level 0: the paper's, which are next to each other, and with room in between.
const LIMITS: [(&str, usize, usize); 2] =
    [("slowed from 50 of 100 runs", 50, 100), ("stopped at 101 runs", 100, 101)];

fn run(testbed: &Testbed, (slow, stop): (usize, usize)) -> Result<Driven> {
    let peak = find_peak(testbed, MIX)?;
    let mut options = testbed.options("dlc-full", peak.bytes);
    if let Pacer::Dlc(Dlc { limits, .. }) = &mut options.tree.pacer {
        (limits.l0_slow, limits.l0_stop) = (slow, stop);
    }
    let run = Drive { mix: MIX, rate: Rate::Sustained(peak.rate), time: TIME };
    drive(testbed, options, &run)
}

/// The part of the transactions of the one before it that an interval did, where that fell most.
fn steepest(intervals: &[Interval<'_>]) -> f64 {
    let falls = intervals.windows(2).map(|pair| pair[1].done / pair[0].done.max(f64::MIN_POSITIVE));
    falls.fold(f64::INFINITY, f64::min)
}

/// The longest time without a transaction that ended, at least, in the paper's seconds.
fn longest_rest(intervals: &[Interval<'_>]) -> f64 {
    super::load::stretches(intervals, |one| one.done == 0.0)
        .into_iter()
        .map(|rest| rest.len() as f64 * seconds(INTERVAL))
        .fold(0.0, f64::max)
}

/// The share of the time that clients waited for the store because it was behind, over all of them: delays and stops.
fn held_up(driven: &Driven) -> f64 {
    let micros = |at: usize| driven.samples[at].seen.0.stalls.iter().map(|stall| stall.micros).sum::<u64>();
    let last = driven.samples.len() - 1;
    (micros(last) - micros(0)) as f64 / 1e6 / (seconds(driven.samples[last].at) * super::THREADS as f64)
}

/// A sustained peak with each pair of limits.
pub fn figure_limit(setting: &Setting) -> Result<Findings> {
    let testbed = Testbed::new(setting);
    let (mut series, mut relations) = (Vec::new(), Vec::new());
    for (name, slow, stop) in LIMITS {
        let driven = run(&testbed, (slow, stop))?;
        let intervals = driven.intervals();
        let most = super::sustained::runs(&driven).iter().map(|run| run[1]).fold(0.0, f64::max);
        relations.extend([
            Relation::within(
                &format!("{name}: most runs of level 0"),
                "the limit is reached and kept",
                slow as f64..=(stop + 1) as f64,
                most,
            ),
            Relation::within(
                &format!("{name}: least part of the interval before that an interval does"),
                "a smooth slowdown",
                0.5..=f64::INFINITY,
                steepest(&intervals),
            ),
            Relation::within(
                &format!("{name}: longest rest, in seconds"),
                "no cliff",
                0.0..=0.0,
                longest_rest(&intervals),
            ),
            Relation::within(
                &format!("{name}: share of the time for which clients are held up"),
                "short",
                0.0..=0.5,
                held_up(&driven),
            ),
        ]);
        series.extend(driven.series(name));
    }
    let deviations = DEVIATIONS.iter().copied().chain([LIMITS_DEVIATION]).collect();
    let machine = testbed.setting.machine;
    Ok(Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine })
}
