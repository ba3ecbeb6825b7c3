//! Section of the page: ratios to other engines with their intervals, and the figures behind them.

use maud::{Markup, html};

use super::bars::{BarTable, RatioBar, Scale, ratio_bars};
use super::ink::{Ink, legend_of_bars};
use super::{figure, of_run};
use crate::Result;
use crate::report::Stored;
use crate::report::stored::{Figure, NO_ENGINE, Ratio};

/// The ink of bars on Terrace's side of 1, and of the others.
const PREALLOCATE: Ink = Ink(1);
const BEHIND: Ink = Ink(2);

/// One section for each run that compares engines.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let mut sections = Vec::new();
    for run in runs.iter().filter(|run| !run.ratios.is_empty() || !run.results.is_empty()) {
        let pictures = pictures(&run.ratios)?;
        sections.push(html! {
            h2 { (of_run(runs, run, "engines compared")) }
            @if !pictures.is_empty() {
                p {
                    "A bar is what Terrace reaches for each 1 that the peer does: to the right of 1, Terrace is better, "
                    "whether the metric is to be high or low. The line through its end is the interval over the rounds."
                }
                div.pictures { @for picture in &pictures { (picture) } }
            }
            @if run.results.iter().any(|figure| figure.engine == NO_ENGINE) {
                p { b { (NO_ENGINE) } " is no engine, but what the load generator costs by itself: figures without bars." }
            }
            @for table in tables(&run.results) { (table) }
        });
    }
    Ok(html! { @for section in &sections { (section) } })
}

/// A picture for each metric, its bars in the order of the workloads.
fn pictures(ratios: &[Ratio]) -> Result<Vec<Markup>> {
    let mut pictures = Vec::new();
    for metric in distinct(ratios.iter().map(|ratio| &ratio.metric)) {
        let of_metric = ratios.iter().filter(|ratio| ratio.metric == *metric);
        let bars: Vec<RatioBar> = of_metric.filter_map(bar).collect();
        if bars.is_empty() {
            continue;
        }
        let key = [(PREALLOCATE, "Terrace is better"), (BEHIND, "the peer is better")];
        let svg = ratio_bars(&format!("advantage of Terrace in {metric}"), &bars)?;
        pictures.push(figure(metric, &legend_of_bars(key), svg));
    }
    Ok(pictures)
}

fn bar(ratio: &Ratio) -> Option<RatioBar> {
    let advantage = ratio.advantage.filter(|advantage| *advantage > 0.0)?;
    Some(RatioBar {
        name: format!("{}, {}", ratio.workload, ratio.peer),
        ink: if advantage >= 1.0 { PREALLOCATE } else { BEHIND },
        ratio: advantage,
        interval: ratio.low.zip(ratio.high),
    })
}

/// A table for each metric: workloads down, engines across.
fn tables(results: &[Figure]) -> Vec<Markup> {
    let metrics = distinct(results.iter().map(|figure| &figure.metric));
    let table = |metric: &String| {
        let of_metric = || results.iter().filter(|figure| figure.metric == *metric);
        let engines = distinct(of_metric().map(|figure| &figure.engine));
        let unit = of_metric().map(|figure| figure.unit.as_str()).next().unwrap_or_default();
        let median = |workload: &String, engine: &String| {
            of_metric()
                .find(|one| one.workload == *workload && one.engine == *engine)
                .and_then(|one| one.median)
        };
        let rows = distinct(of_metric().map(|figure| &figure.workload)).into_iter().map(|workload| {
            (workload.clone(), engines.iter().map(|engine| median(workload, engine)).collect())
        });
        let rounds = of_metric().map(|figure| figure.rounds.len()).max().unwrap_or(0);
        BarTable {
            caption: &format!("{metric}, median of {rounds} rounds"),
            key: "workload",
            columns: engines.iter().map(|engine| ((*engine).clone(), unit)).collect(),
            rows: rows.collect(),
            scale: Scale::Row,
            without_bars: Some(NO_ENGINE),
        }
        .markup()
    };
    metrics.into_iter().map(table).collect()
}

/// Each once, in the order of their first appearance.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut distinct: Vec<&String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
