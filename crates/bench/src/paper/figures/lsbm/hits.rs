//! Hit ratios under lookups: figures 2, 8 and 9, and ours of independent writes.

use std::time::Duration;

use terrace::Stats;

use super::stores::Store;
use super::swing::{COLD_SAMPLES, Swing};
use super::workload::{Load, by_interval, held, hit_ratio, mean, over_time, reads, run, writes};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::figures::{seconds, series};
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Sample;

/// The time in which level 1 fills.
const FILLING: Duration = Duration::from_secs(1000);

fn percent(label: &str) -> Axis {
    Axis::linear(label, "%")
}

/// Lines of one store.
fn lines(setting: &Setting, store: Store, samples: &[Sample<Stats>]) -> Vec<Series> {
    let options = store.options(setting);
    let use_of_cache = by_interval(samples, |_, after, _| {
        100.0 * after.cache.bytes as f64 / after.cache.capacity.max(1) as f64
    });
    let merged = by_interval(samples, |before, after, time| {
        (after.compaction.bytes_in - before.compaction.bytes_in) as f64 / 1e6 / time
    });
    let line = |name: &str, y: Axis, points| series(name, &options, y, points);
    let mut lines = vec![
        line("hit ratio", percent("hit ratio"), hit_ratio(samples)),
        line("cache use", percent("cache in use"), use_of_cache),
        line("merges read", Axis::linear("read by merges", "MB/s"), merged),
        line("reads", Axis::linear("reads", "1/s"), reads(samples)),
        line("writes", Axis::linear("writes", "1/s"), writes(samples)),
    ];
    if store == Store::Lsbm {
        let found = |stats: &Stats| stats.user_reads.found_in_buffer as f64;
        let of = |stats: &Stats| stats.user_reads.gets as f64;
        let share = by_interval(samples, |before, after, _| {
            100.0 * (found(after) - found(before)) / (of(after) - of(before)).max(1.0)
        });
        lines.push(line("found in the buffer", percent("of the lookups"), share));
        lines.push(line("buffer", Axis::linear("held by the buffer", "MB"), held(samples)));
    }
    lines
}

/// Mean time between falls, over the time in which level 1 fills.
fn period(setting: &Setting, swing: &Swing) -> f64 {
    swing.span / swing.falls as f64 / seconds(setting.scaled_time(FILLING))
}

/// Hit ratios over time, of a cache of the store's own and of the system's alone.
pub fn figure_2(setting: &Setting) -> Result<Findings> {
    let (mut lines, mut relations) = (Vec::new(), Vec::new());
    for (store, name) in [(Store::SystemCache, "cache of the system"), (Store::Blsm, "cache of the store")] {
        let ratio = hit_ratio(&run(setting, Load::Lookups, store)?);
        let named = |relation: Relation| Relation { name: format!("{name}: {}", relation.name), ..relation };
        relations.extend(Swing::of(&ratio).relations().into_iter().map(named));
        lines.push(series(&format!("bLSM, {name}"), &store.options(setting), percent("hit ratio"), ratio));
    }
    Ok(over_time(setting, lines, relations))
}

/// bLSM.
pub fn figure_8a(setting: &Setting) -> Result<Findings> {
    let samples = run(setting, Load::Lookups, Store::Blsm)?;
    let ratio = hit_ratio(&samples);
    let swing = Swing::of(&ratio);
    let mut relations = swing.relations();
    let name = "mean time between falls / time in which level 1 fills";
    relations.push(Relation::within(name, "about 1", 0.6..=1.5, period(setting, &swing)));
    let warm = &ratio[COLD_SAMPLES.min(ratio.len())..];
    let half = warm.len() / 2;
    let depth = |points: &[[f64; 2]]| {
        let values = || points.iter().map(|point| point[1]);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    };
    relations.push(Relation::within(
        "depth of the second half / depth of the first",
        "deeper as C2 fills",
        1.0..=f64::INFINITY,
        depth(&warm[half..]) / depth(&warm[..half]),
    ));
    Ok(over_time(setting, lines(setting, Store::Blsm, &samples), relations))
}

/// LevelDB.
pub fn figure_8b(setting: &Setting) -> Result<Findings> {
    let samples = run(setting, Load::Lookups, Store::LevelDb)?;
    let swing = Swing::of(&hit_ratio(&samples));
    // The hot range of level 2 is updated every 2,000 s, twice the time in which level 1 fills.
    let mut relations = swing.relations();
    let name = "mean time between falls / time in which level 1 fills";
    relations.push(Relation::within(name, "about 2", 1.5..=2.5, period(setting, &swing)));
    Ok(over_time(setting, lines(setting, Store::LevelDb, &samples), relations))
}

/// bLSM with incremental warming up.
pub fn figure_8c(setting: &Setting) -> Result<Findings> {
    let samples = run(setting, Load::Lookups, Store::WarmUp)?;
    let swing = Swing::of(&hit_ratio(&samples));
    Ok(over_time(setting, lines(setting, Store::WarmUp, &samples), swing.relations()))
}

/// LSbM, with LevelDB in the same run to compare the swing with.
pub fn figure_8d(setting: &Setting) -> Result<Findings> {
    let samples = run(setting, Load::Lookups, Store::Lsbm)?;
    let swing = Swing::of(&hit_ratio(&samples));
    let leveldb = hit_ratio(&run(setting, Load::Lookups, Store::LevelDb)?);
    let other = Swing::of(&leveldb);
    let relations = vec![
        Relation::within(
            "variation of the hit ratio, LSbM / LevelDB",
            "flat: a third at most",
            0.0..=1.0 / 3.0,
            swing.variation / other.variation,
        ),
        Relation::within(
            "mean hit ratio, LSbM - LevelDB",
            "high: the highest",
            0.0..=f64::INFINITY,
            swing.mean - other.mean,
        ),
    ];
    let mut lines = lines(setting, Store::Lsbm, &samples);
    lines.push(series(
        "LevelDB's hit ratio",
        &Store::LevelDb.options(setting),
        percent("hit ratio"),
        leveldb,
    ));
    Ok(over_time(setting, lines, relations))
}

/// Mean hit ratio and reads per second of all four, and of two that the paper does not have here.
pub fn figure_9(setting: &Setting) -> Result<Findings> {
    const STORES: [Store; 6] =
        [Store::Blsm, Store::LevelDb, Store::WarmUp, Store::Lsbm, Store::LsbmWarmUp, Store::RecordCache];
    let mut means = Vec::new();
    for store in STORES {
        let samples = run(setting, Load::Lookups, store)?;
        means.push([mean(&hit_ratio(&samples), COLD_SAMPLES), mean(&reads(&samples), COLD_SAMPLES)]);
    }
    let bars = |at: usize, y: &Axis| {
        let bar = |(place, store): (usize, Store)| {
            series(store.name(), &store.options(setting), y.clone(), vec![[place as f64, means[place][at]]])
        };
        STORES.into_iter().enumerate().map(bar).collect::<Vec<_>>()
    };
    let (hits, rates) = (bars(0, &percent("mean hit ratio")), bars(1, &Axis::linear("reads", "1/s")));
    let others = |at: usize| means[..3].iter().map(|mean| mean[at]).fold(0.0, f64::max);
    let relations = vec![
        Relation::within(
            "mean hit ratio, LSbM - best other",
            "highest",
            0.0..=f64::INFINITY,
            means[3][0] - others(0),
        ),
        Relation::within("reads, LSbM / best other", "highest", 1.0..=f64::INFINITY, means[3][1] / others(1)),
        Relation::within("reads, LSbM / LevelDB", "about 2", 1.5..=f64::INFINITY, means[3][1] / means[1][1]),
    ];
    let names = STORES.map(Store::name);
    let x = Axis::named("store", &names);
    Ok(Findings { x, ..over_time(setting, [hits, rates].concat(), relations) })
}

/// Ours: writes that repeat keys within a round of a level.
pub fn independent(setting: &Setting) -> Result<Findings> {
    let mut series_of = Vec::new();
    let mut swings = Vec::new();
    let mut frozen = 0.0;
    for store in [Store::Blsm, Store::Lsbm] {
        let options = store.options(setting);
        let samples = run(setting, Load::IndependentWrites, store)?;
        let ratio = hit_ratio(&samples);
        swings.push(Swing::of(&ratio));
        series_of.push(series(store.name(), &options, percent("hit ratio"), ratio));
        let levels = by_interval(&samples, |_, after, _| {
            after.keyspaces.iter().map(|keyspace| keyspace.buffer.frozen_levels).sum::<u64>() as f64
        });
        if store == Store::Lsbm {
            frozen = levels.iter().map(|point| point[1]).fold(0.0, f64::max);
            series_of.push(series(
                "LSbM, frozen levels",
                &options,
                Axis::linear("frozen levels", ""),
                levels,
            ));
        }
    }
    let relations = vec![
        Relation::within("frozen levels, at most", "B2 freezes", 1.0..=f64::INFINITY, frozen),
        Relation::within(
            "mean hit ratio, LSbM / bLSM",
            "falls back to bLSM, never below",
            0.99..=f64::INFINITY,
            swings[1].mean / swings[0].mean,
        ),
    ];
    Ok(over_time(setting, series_of, relations))
}
