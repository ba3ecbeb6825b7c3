//! Figures as text: aligned tables for the terminal, and Markdown.

use std::fmt::Write as _;

use super::goals::{Verdict, verdicts};
use super::result::{Group, Phase, ValuesRun, groups};
use super::size::Size;
use crate::report::table;

/// A row for each phase, one for each engine and size, and one for each goal.
#[must_use]
pub fn text(run: &ValuesRun) -> String {
    let groups = groups(run);
    format!("{}\n{}\n{}\n{}", settings(run), phases(&groups), spaces(&groups), goals(run))
}

fn settings(run: &ValuesRun) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let rounds = run.values.iter().map(|cell| cell.round).max().unwrap_or(0);
    format!(
        "data {:.0} MB, memory of a store {:.0} MB, updates {:.1} s, reads {:.1} s, at rest after {:.1} s, rounds: {rounds}, seed {}\n",
        mb(run.data_bytes),
        mb(run.memory_bytes),
        run.update_s,
        run.read_s,
        run.rest_s,
        run.seed,
    )
}

/// What the table of phases tells of each, but for its name.
type Column = (&'static str, fn(&Phase) -> Option<f64>);
const COLUMNS: &[Column] = &[
    ("ops/s", |phase| Some(phase.ops_per_s)),
    ("drained", |phase| Some(phase.drained_ops_per_s)),
    ("MB/s", |phase| Some(phase.user_bytes_per_s / 1e6)),
    ("written/user", |phase| phase.written_over_user),
    ("told/user", |phase| phase.told_over_user),
    ("p50 us", |phase| Some(phase.latency_us.p50)),
    ("p99 us", |phase| Some(phase.latency_us.p99)),
    ("max us", |phase| Some(phase.latency_us.max)),
    ("space peak", |phase| phase.space_peak),
    ("rested", |phase| phase.space_rested),
];

fn phases(groups: &[Group<'_>]) -> String {
    let head: Vec<&str> =
        ["engine", "size", "phase"].into_iter().chain(COLUMNS.iter().map(|column| column.0)).collect();
    let mut rows = Vec::new();
    for group in groups {
        for name in names(group) {
            let figures =
                COLUMNS.iter().map(|(_, figure)| group.median(&|cell| cell.phase(name).and_then(figure)));
            let keys = [group.engine.to_owned(), group.size.to_string(), name.to_owned()];
            rows.push(keys.into_iter().chain(figures.map(or_dash)).collect());
        }
    }
    table(&head, rows)
}

/// Names of the phases of a group, in order.
fn names<'a>(group: &Group<'a>) -> Vec<&'a str> {
    let longest = group.cells.iter().max_by_key(|cell| cell.phases.len());
    longest.map_or_else(Vec::new, |cell| cell.phases.iter().map(|phase| phase.name.as_str()).collect())
}

fn spaces(groups: &[Group<'_>]) -> String {
    let head = ["engine", "size", "records", "space peak", "rested", "end", "memory growth MB", "notes"];
    let rows = groups.iter().map(|group| {
        let updated = |figure: fn(&Phase) -> Option<f64>| {
            group.median(&|cell| cell.phase("uniform").or(cell.phases.last()).and_then(figure))
        };
        vec![
            group.engine.to_owned(),
            group.size.to_string(),
            group.cells.first().map_or(0, |cell| cell.records).to_string(),
            or_dash(updated(|phase| phase.space_peak)),
            or_dash(updated(|phase| phase.space_rested)),
            or_dash(group.median(&|cell| whole(cell.space_end))),
            or_dash(group.median(&|cell| whole(cell.memory_growth_bytes as f64 / 1e6))),
            notes(group),
        ]
    });
    table(&head, rows.collect())
}

/// A cell that failed has zeros.
fn whole(figure: f64) -> Option<f64> {
    (figure > 0.0).then_some(figure)
}

fn notes(group: &Group<'_>) -> String {
    let failed = group.cells.iter().filter_map(|cell| cell.failed.clone());
    let cut_off = group.cells.iter().flat_map(|cell| &cell.phases).filter(|phase| phase.is_cut_off);
    let mut notes: Vec<String> =
        failed.chain(cut_off.map(|phase| format!("not at rest after {}", phase.name))).collect();
    notes.dedup();
    if notes.is_empty() { "-".to_owned() } else { notes.join("; ") }
}

fn goals(run: &ValuesRun) -> String {
    table(&["engine", "size", "measured", "figure", "goal", "verdict"], goal_rows(run))
}

fn goal_rows(run: &ValuesRun) -> Vec<Vec<String>> {
    let row = |Verdict { size, engine, measured, figure, goal }| {
        let word = if goal.is_met(figure) { "met" } else { "missed" };
        vec![engine, size.to_string(), measured, digits(figure), goal.to_string(), word.to_owned()]
    };
    verdicts(run).into_iter().map(row).collect()
}

/// What the table of a size tells of each engine: the name of the column, the phase and its figure.
type Told = (&'static str, &'static str, fn(&Phase) -> Option<f64>);
const TOLD: &[Told] = &[
    ("load/s", "load", |phase| Some(phase.drained_ops_per_s)),
    ("uniform/s", "uniform", |phase| Some(phase.drained_ops_per_s)),
    ("p99 us", "uniform", |phase| Some(phase.latency_us.p99)),
    ("written/user", "uniform", |phase| phase.written_over_user),
    ("told/user", "uniform", |phase| phase.told_over_user),
    ("space peak", "uniform", |phase| phase.space_peak),
    ("rested", "uniform", |phase| phase.space_rested),
    ("zipfian/s", "zipfian", |phase| Some(phase.drained_ops_per_s)),
    ("p99 us", "zipfian", |phase| Some(phase.latency_us.p99)),
    ("written/user", "zipfian", |phase| phase.written_over_user),
    ("told/user", "zipfian", |phase| phase.told_over_user),
    ("get/s", "get", |phase| Some(phase.ops_per_s)),
    ("p99 us", "get", |phase| Some(phase.latency_us.p99)),
    ("scan-10/s", "scan-10", |phase| Some(phase.ops_per_s)),
    ("scan-100/s", "scan-100", |phase| Some(phase.ops_per_s)),
    ("keys-100/s", "keys-100", |phase| Some(phase.ops_per_s)),
    ("contains/s", "contains", |phase| Some(phase.ops_per_s)),
    ("put/s", "put", |phase| Some(phase.drained_ops_per_s)),
    ("written/user", "put", |phase| phase.written_over_user),
    ("told/user", "put", |phase| phase.told_over_user),
    ("delete/s", "delete", |phase| Some(phase.drained_ops_per_s)),
    ("rested", "delete", |phase| phase.space_rested),
];

/// A table of all engines with values of one size.
pub(crate) struct SizeTable {
    pub size: Size,
    pub head: Vec<&'static str>,
    /// A row for each engine.
    pub rows: Vec<Vec<String>>,
}

/// A table for each size. Rates of writes are drained.
pub(crate) fn tables(run: &ValuesRun) -> Vec<SizeTable> {
    let groups = groups(run);
    let mut sizes: Vec<Size> = groups.iter().map(|group| group.size).collect();
    sizes.dedup();
    sizes.into_iter().map(|size| size_table(size, &groups)).collect()
}

fn size_table(size: Size, groups: &[Group<'_>]) -> SizeTable {
    let of_size: Vec<&Group<'_>> = groups.iter().filter(|group| group.size == size).collect();
    let has = |name| of_size.iter().any(|group| group.cells.iter().any(|cell| cell.phase(name).is_some()));
    let columns: Vec<&Told> = TOLD.iter().filter(|column| has(column.1)).collect();
    let names = columns.iter().map(|column| column.0);
    let head = ["engine"].into_iter().chain(names).chain(["memory growth MB", "notes"]).collect();
    let rows = of_size.iter().map(|group| {
        let figures =
            columns.iter().map(|(_, name, figure)| group.median(&|cell| cell.phase(name).and_then(figure)));
        let memory = group.median(&|cell| whole(cell.memory_growth_bytes as f64 / 1e6));
        let cells = figures.chain([memory]).map(or_dash);
        [group.engine.to_owned()].into_iter().chain(cells).chain([notes(group)]).collect()
    });
    SizeTable { size, head, rows: rows.collect() }
}

/// A table for each size, with a row for each engine, and one of the goals. Rates of writes are drained.
#[must_use]
pub fn markdown(run: &ValuesRun) -> String {
    let mut markdown = settings(run);
    for SizeTable { size, head, rows } in tables(run) {
        let _ = writeln!(markdown, "\n## Values of {size}\n");
        let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
        lines(&mut markdown, &head, &rows);
    }
    markdown.push_str("\n## Goals\n\n");
    let head = ["engine", "size", "measured", "figure", "goal", "verdict"].map(str::to_owned);
    lines(&mut markdown, &head, &goal_rows(run));
    markdown
}

/// Adds a table.
fn lines(markdown: &mut String, head: &[String], rows: &[Vec<String>]) {
    let rule = vec!["---".to_owned(); head.len()];
    for line in [head, &rule].into_iter().chain(rows.iter().map(Vec::as_slice)) {
        // Writing to a string cannot fail.
        let _ = writeln!(markdown, "| {} |", line.join(" | "));
    }
}

fn or_dash(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), digits)
}

/// A figure with three digits at least.
fn digits(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        middle if middle >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}
