//! The report as tables, workload by workload.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use terrace_bench::report::table;

use crate::report::{Calibrated, Ratio, Report, Summary};
use crate::store::{Durability, Engine};

/// Metrics that have columns of their own; the others are in the JSON alone.
const COLUMNS: &[&str] = &[
    "ops/s",
    "rows/s",
    "drained ops/s",
    "worst second",
    "cpu",
    "read p99",
    "read p99.9",
    "write p99",
    "write p99.9",
    "write amplification",
    "syncs",
    "pages read",
    "space over data",
    "peak space over data",
    "peak resident",
    "reopen",
];

/// Metrics whose advantages are shown; of the tail workload, all are.
const ADVANTAGES: &[&str] = &["ops/s", "rows/s", "drained ops/s", "cpu"];

/// The tables.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for about in report.engines.iter().filter(|about| about.engine != Engine::Empty) {
        let checksums = if about.checksums_verified { "verified" } else { "not verified" };
        let version = if about.version.is_empty() { "of unknown version" } else { &about.version };
        writeln!(text, "{} {version}, checksums {checksums}", about.engine.name())
            .expect("invariant: strings take everything");
    }
    writeln!(text, "{}", report.settings.data()).expect("invariant: strings take everything");
    let void = report.calibration.iter().filter(|one| one.void.is_some()).count();
    writeln!(text, "{void} of {} turns are void and left out", report.calibration.len())
        .expect("invariant: strings take everything");
    for Calibrated { round, group, engine, void, .. } in &report.calibration {
        let Some(void) = void else { continue };
        writeln!(text, "VOID: round {round}, {group}, {}: {void}", engine.name())
            .expect("invariant: strings take everything");
    }
    for skipped in &report.skipped {
        writeln!(text, "SKIPPED: {skipped}").expect("invariant: strings take everything");
    }
    for (note, phases) in notes(report) {
        writeln!(text, "NOTE, of {}: {note}", phases.join(", ")).expect("invariant: strings take everything");
    }
    text.push('\n');
    let mut seen = BTreeSet::new();
    for result in &report.results {
        if seen.insert(&result.workload) {
            let of = report.results.iter().filter(|other| other.workload == result.workload);
            text += &workload(&result.workload, &of.collect::<Vec<_>>());
            text.push('\n');
        }
    }
    text + &ratios(&report.ratios)
}

/// What must be known to read the figures, and of which phases.
fn notes(report: &Report) -> BTreeMap<&str, Vec<String>> {
    let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for turn in &report.turns {
        let phase = format!("{} {} in round {}", turn.engine.name(), turn.workload, turn.round);
        turn.notes.iter().for_each(|note| notes.entry(note).or_default().push(phase.clone()));
    }
    notes
}

fn workload(name: &str, results: &[&Summary]) -> String {
    let metrics: Vec<&str> =
        COLUMNS.iter().copied().filter(|metric| results.iter().any(|one| one.metric == *metric)).collect();
    let engines: BTreeSet<Engine> = results.iter().map(|result| result.engine).collect();
    let unit = |metric: &str| {
        let unit = results.iter().find(|one| one.metric == metric).map_or("", |one| &one.unit);
        if metric.ends_with(unit) || unit == "ratio" {
            metric.to_owned()
        } else {
            format!("{metric}, {unit}")
        }
    };
    let head: Vec<String> = [name.to_owned(), "class".to_owned()]
        .into_iter()
        .chain(metrics.iter().map(|metric| unit(metric)))
        .collect();
    let rows = engines.into_iter().map(|engine| {
        let of = |metric: &str| results.iter().find(|one| one.engine == engine && one.metric == metric);
        let durability = results.iter().find(|one| one.engine == engine).and_then(|one| one.durability);
        let cells = metrics.iter().map(|metric| of(metric).map_or("-".to_owned(), |one| figure(one.median)));
        [engine.name(), class(durability)].into_iter().chain(cells).collect()
    });
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), rows.collect())
}

/// Terrace's advantages in the metrics that say most, the worst of each workload first.
fn ratios(ratios: &[Ratio]) -> String {
    let head = ["workload", "class", "metric", "over", "advantage", "95 % interval", "rounds"];
    let telling = |ratio: &&Ratio| ADVANTAGES.contains(&&*ratio.metric) || ratio.workload == "tail";
    let mut shown: Vec<&Ratio> = ratios.iter().filter(telling).collect();
    if shown.is_empty() {
        return "No ratios: in no round do turns of Terrace and of a peer of its class both count.\n"
            .to_owned();
    }
    let mut order: Vec<(&str, &str)> = Vec::new();
    for ratio in &shown {
        if !order.contains(&(&ratio.workload, &ratio.metric)) {
            order.push((&ratio.workload, &ratio.metric));
        }
    }
    let place = |ratio: &Ratio| order.iter().position(|one| *one == (&*ratio.workload, &*ratio.metric));
    shown.sort_by(|a, b| place(a).cmp(&place(b)).then(a.advantage.total_cmp(&b.advantage)));
    let rows = shown.into_iter().map(|ratio| {
        let interval =
            if ratio.pairs > 1 { format!("{:.2} to {:.2}", ratio.low, ratio.high) } else { "-".to_owned() };
        vec![
            ratio.workload.clone(),
            class(ratio.durability),
            ratio.metric.clone(),
            ratio.peer.name(),
            format!("{:.2}", ratio.advantage),
            interval,
            ratio.pairs.to_string(),
        ]
    });
    table(&head, rows.collect())
}

fn class(durability: Option<Durability>) -> String {
    durability.map_or("-".to_owned(), |durability| durability.to_string())
}

/// Three digits, or all before the point.
fn figure(value: f64) -> String {
    let digits = 2.0 - value.abs().max(1e-3).log10().floor();
    format!("{value:.*}", digits.clamp(0.0, 4.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let all = [123_456.7, 99.94, 1.234, 0.0123, 0.0].map(figure);
        assert_eq!(all, ["123457", "99.9", "1.23", "0.0123", "0.0000"]);
    }

    #[test]
    fn engines_are_rows_and_metrics_columns() {
        let result = |engine, metric: &str, unit: &str, median| Summary {
            engine,
            workload: "load-r".to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            higher_is_better: true,
            median,
            rounds: vec![median],
            durability: Some(Durability::Kill),
        };
        let (terrace, lmdb) = (Engine::Terrace, Engine::Lmdb);
        let all = [
            result(lmdb, "ops/s", "ops/s", 5.0),
            result(terrace, "cpu", "us/op", 7.0),
            result(terrace, "ops/s", "ops/s", 6.0),
            result(terrace, "of no column", "", 1.0),
        ];
        let text = workload("load-r", &all.iter().collect::<Vec<_>>());
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["load-r", "class", "ops/s", "cpu,", "us/op"]);
        assert_eq!(
            (&words[1][..], &words[2][..]),
            (&["terrace", "N", "6.00", "7.00"][..], &["lmdb", "N", "5.00", "-"][..])
        );
    }
}
