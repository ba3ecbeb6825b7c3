//! A peak that outlasts the room in level 0: what DLC does at the limits for writers.

use std::time::Duration;

use terrace::tree::{Dlc, Governor, Pacer};

use super::load::{Drive, Driven, INTERVAL, Interval, PeakLoad, drive, find_peak};
use super::{DEVIATIONS, LIMITS_DEVIATION, Testbed, seconds};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::record::{Axis, Relation};
use crate::workload::{Mix, Rate};

/// Reads to writes 1:9: level 0 fills up soon.
const MIX: Mix = Mix { gets: 2, scans: 0, updates: 0, replaced: 9 };

const TIME: Duration = Duration::from_secs(2000);

/// Limits of level 0, slow-down and stop: with room in between, and the paper's, which are next to each other.
const WITH_ROOM: (usize, usize) = (50, 100);
const WITHOUT: (usize, usize) = (100, 101);

fn run(testbed: &Testbed, peak: &PeakLoad, (slow, stop): (usize, usize)) -> Result<Driven> {
    let mut options = testbed.options("dlc-full", peak.bytes);
    if let Pacer::Dlc(Dlc { limits, .. }) = &mut options.tree.pacer {
        // The count of runs alone is the limit here.
        let (debt_slow_bytes, debt_stop_bytes) = (u64::MAX - 1, u64::MAX);
        *limits = Governor { l0_slow: slow, l0_stop: stop, debt_slow_bytes, debt_stop_bytes };
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

/// The highest p99 of an interval, in the paper's microseconds.
fn worst(driven: &Driven) -> f64 {
    driven.intervals().iter().map(|one| driven.p99(&[*one])).fold(0.0, f64::max)
}

/// A sustained peak with each pair of limits.
pub fn figure_limit(setting: &Setting) -> Result<Findings> {
    let testbed = Testbed::new(setting);
    let peak = find_peak(&testbed, MIX)?;
    let (room, without) = (run(&testbed, &peak, WITH_ROOM)?, run(&testbed, &peak, WITHOUT)?);
    let intervals = room.intervals();
    let most = super::sustained::runs(&room).iter().map(|run| run[1]).fold(0.0, f64::max);
    let rest = longest_rest(&intervals);
    let relations = vec![
        Relation::within(
            "most runs of level 0",
            "reaches the limit of 50 and stays below 100",
            50.0..=99.0,
            most,
        ),
        Relation::within(
            "what an interval does / the one before it, where that falls most",
            "a smooth slowdown",
            0.5..=f64::INFINITY,
            steepest(&intervals),
        ),
        Relation::within("longest rest, in seconds", "no cliff", 0.0..=0.0, rest),
        Relation::within(
            "share of the time for which clients are held up",
            "short",
            0.0..=0.5,
            held_up(&room),
        ),
        Relation::within(
            "worst p99 of an interval, with room between the limits / without",
            "lower",
            0.0..=1.0,
            worst(&room) / worst(&without),
        ),
    ];
    let series =
        [room.series("slowed from 50 of 100 runs"), without.series("slowed from 100 of 101 runs")].concat();
    let deviations = DEVIATIONS.iter().copied().chain([LIMITS_DEVIATION]).collect();
    let machine = testbed.setting.machine;
    Ok(Findings { x: Axis::linear("time", "s"), series, relations, deviations, machine })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::timeline::Latencies;

    #[test]
    fn falls_and_rests_are_found() {
        let latencies = Latencies::default();
        let one = |done: &f64| Interval { at: 1.0, offered: 10.0, done: *done, latencies: &latencies };
        let intervals: Vec<Interval<'_>> = [10.0, 8.0, 9.0, 3.0, 0.0, 0.0, 5.0].iter().map(one).collect();
        assert!((steepest(&intervals[..3]) - 0.8).abs() < 1e-9);
        assert!((longest_rest(&intervals) - 20.0).abs() < 1e-9);
        assert!(longest_rest(&intervals[..3]) < 1e-9);
    }
}
