//! Reads of 100 KB, and the size of the database under them: figures 10 to 13.

use terrace::Stats;

use super::stores::Store;
use super::swing::COLD_SAMPLES;
use super::workload::{Load, mean, over_time, reads, run, size};
use crate::Result;
use crate::paper::experiment::{Findings, Setting};
use crate::paper::figures::series;
use crate::paper::record::{Axis, Relation, Series};
use crate::paper::timeline::Sample;

/// The samples of each store.
fn runs(setting: &Setting, stores: &[Store]) -> Result<Vec<Vec<Sample<Stats>>>> {
    stores.iter().map(|store| run(setting, Load::Scans, *store)).collect()
}

fn lines(
    setting: &Setting,
    stores: &[Store],
    y: &Axis,
    points: impl Fn(usize) -> Vec<[f64; 2]>,
) -> Vec<Series> {
    let line =
        |(at, store): (usize, &Store)| series(store.name(), &store.options(setting), y.clone(), points(at));
    stores.iter().enumerate().map(line).collect()
}

/// A bar for each store.
fn bars(setting: &Setting, stores: &[Store], y: &Axis, means: &[f64]) -> Vec<Series> {
    lines(setting, stores, y, |at| vec![[at as f64, means[at]]])
}

fn named(setting: &Setting, stores: &[Store], series: Vec<Series>, relations: Vec<Relation>) -> Findings {
    let names: Vec<&str> = stores.iter().map(|store| store.name()).collect();
    Findings { x: Axis::named("store", &names), ..over_time(setting, series, relations) }
}

/// bLSM over time, with and without a cache of records.
pub fn figure_10a(setting: &Setting) -> Result<Findings> {
    let stores = [Store::Blsm, Store::RecordCache];
    let runs = runs(setting, &stores)?;
    let means = [0, 1].map(|at| mean(&reads(&runs[at]), COLD_SAMPLES));
    let relations = vec![Relation::within(
        "with K-V store cache / without",
        "68 / 1066: much lower",
        0.0..=0.9,
        means[1] / means[0],
    )];
    let y = Axis::linear("scans of 100 KB", "1/s");
    Ok(over_time(setting, lines(setting, &stores, &y, |at| reads(&runs[at])), relations))
}

/// Stepped merge and LSbM over time.
pub fn figure_10b(setting: &Setting) -> Result<Findings> {
    let stores = [Store::SteppedMerge, Store::Lsbm];
    let runs = runs(setting, &stores)?;
    let points = reads(&runs[0]);
    let half = points.len() / 2;
    let relations = vec![Relation::within(
        "SM, second half / first half",
        "sinks for 10,000 s, recovers slightly, ends very low",
        0.0..=1.0,
        mean(&points, half) / mean(&points[..half], 0),
    )];
    let y = Axis::linear("scans of 100 KB", "1/s");
    Ok(over_time(setting, lines(setting, &stores, &y, |at| reads(&runs[at])), relations))
}

/// Their means.
pub fn figure_11(setting: &Setting) -> Result<Findings> {
    let stores = [Store::Blsm, Store::SteppedMerge, Store::Lsbm, Store::RecordCache];
    let runs = runs(setting, &stores)?;
    let means: Vec<f64> = runs.iter().map(|samples| mean(&reads(samples), COLD_SAMPLES)).collect();
    let relations = vec![
        Relation::within("LSbM / bLSM", "1134 / 1066", 0.99..=f64::INFINITY, means[2] / means[0]),
        Relation::within("SM / bLSM", "228 / 1066", 0.0..=0.99, means[1] / means[0]),
        Relation::within("K-V store cache / SM", "68 / 228", 0.0..=0.99, means[3] / means[1]),
    ];
    let series = bars(setting, &stores, &Axis::linear("scans of 100 KB", "1/s"), &means);
    Ok(named(setting, &stores, series, relations))
}

const SIZED: [Store; 4] = [Store::LevelDb, Store::Blsm, Store::SteppedMerge, Store::Lsbm];

/// What the means of the sizes are to be.
fn sizes(means: &[f64]) -> Vec<Relation> {
    let others = means[0].max(means[1]);
    vec![
        Relation::within("LSbM / larger of LevelDB and bLSM", "+ 4 %", 0.0..=1.1, means[3] / others),
        Relation::within("SM / larger of LevelDB and bLSM", "+ 50 %", 1.2..=2.0, means[2] / others),
    ]
}

/// The size of the database over time.
pub fn figure_12(setting: &Setting) -> Result<Findings> {
    let runs = runs(setting, &SIZED)?;
    let means: Vec<f64> = runs.iter().map(|samples| mean(&size(samples), COLD_SAMPLES)).collect();
    let y = Axis::linear("tables on disk", "MB");
    Ok(over_time(setting, lines(setting, &SIZED, &y, |at| size(&runs[at])), sizes(&means)))
}

/// Its mean.
pub fn figure_13(setting: &Setting) -> Result<Findings> {
    let runs = runs(setting, &SIZED)?;
    let means: Vec<f64> = runs.iter().map(|samples| mean(&size(samples), COLD_SAMPLES)).collect();
    let series = bars(setting, &SIZED, &Axis::linear("tables on disk, mean", "MB"), &means);
    Ok(named(setting, &SIZED, series, sizes(&means)))
}
