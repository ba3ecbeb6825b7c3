//! Phases of load generators: figures of all of them, then the course of each.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::axis::Axis;
use super::bars::{self, BarTable};
use super::chart::{Chart, Lane, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run};
use crate::Result;
use crate::recording::{Interval, Job};
use crate::report::stored::Phase;
use crate::report::{LatencySummary, Stored};

/// An interval shorter than this share of the usual one, as the last can be, says nothing about rates.
const WHOLE_SHARE: f64 = 0.5;

/// Title of a picture.
const TAILS: &str = "99th percentile of each interval";

/// One phase of one run.
struct Shown<'a> {
    /// What tells it from others of the same workload.
    name: String,
    phase: &'a Phase,
}

/// The figures of all phases, then a section for each workload with its course, that of comparisons included.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let all = |of: fn(&Stored) -> &[Phase]| -> Vec<Shown> {
        runs.iter().flat_map(|run| of(run).iter().map(|phase| shown(runs, run, phase))).collect()
    };
    let (mut shown, courses) = (all(|run| &run.phases), all(|run| &run.courses));
    let mut workloads: Vec<&str> = Vec::new();
    for one in shown.iter().chain(&courses) {
        if !workloads.contains(&one.phase.workload.as_str()) {
            workloads.push(&one.phase.workload);
        }
    }
    // What can be held against each other stands together.
    shown.sort_by_key(|one| workloads.iter().position(|&workload| workload == one.phase.workload));
    let mut sections = Vec::new();
    for workload in workloads {
        let same: Vec<&Shown> =
            shown.iter().chain(&courses).filter(|one| one.phase.workload == workload).collect();
        let pictures = pictures(&same)?;
        sections.push(html! {
            @if !pictures.is_empty() {
                h2 { "Phase " (workload) }
                div.pictures { @for picture in &pictures { (picture) } }
            }
        });
    }
    Ok(html! {
        @if !shown.is_empty() { h2 { "Phases" } (tables(&shown)) }
        @for section in &sections { (section) }
    })
}

fn shown<'a>(runs: &[Stored], run: &Stored, phase: &'a Phase) -> Shown<'a> {
    let engine = match (phase.engine.as_str(), phase.profile.as_str()) {
        (engine, "" | "default") => engine.to_owned(),
        (engine, profile) => format!("{engine} ({profile})"),
    };
    let commit = run.commit.as_deref().filter(|_| runs.len() > 1);
    let name = commit.map_or_else(|| engine.clone(), |commit| format!("{engine} at {commit}"));
    Shown { name: of_run(runs, run, &name), phase }
}

fn tables(shown: &[Shown]) -> Markup {
    let is_one = shown.iter().all(|one| one.name == shown[0].name);
    let name = |one: &Shown| match is_one {
        true => one.phase.workload.clone(),
        false => format!("{}, {}", one.phase.workload, one.name),
    };
    let columns = [
        ("throughput", "operations/s"),
        ("median", "us, slowest kind"),
        ("p99", "us, slowest kind"),
        ("p99.9", "us, slowest kind"),
        ("longest", "ms"),
        ("processor", "us/operation"),
        ("write amplification", "written/user bytes"),
        ("space", "used/data bytes"),
        ("cache hits", "% of block reads"),
        ("stalls", "ms, all writers"),
        ("syncs", ""),
    ];
    let slowest =
        |phase: &Phase, of: fn(&LatencySummary) -> f64| phase.latency_us.values().map(of).reduce(f64::max);
    let row = |one: &Shown| {
        let phase = one.phase;
        let space = phase.space_bytes.zip(phase.logical_bytes.filter(|&bytes| bytes > 0));
        vec![
            Some(phase.ops_per_s),
            slowest(phase, |latency| latency.p50),
            slowest(phase, |latency| latency.p99),
            slowest(phase, |latency| latency.p999),
            slowest(phase, |latency| latency.max / 1000.0),
            phase.cpu_us_per_op,
            phase.write_amplification,
            space.map(|(used, data)| used as f64 / data as f64),
            phase.cache_hit_ratio.map(|ratio| ratio * 100.0),
            phase.stall_ms,
            phase.syncs.get("total").map(|&syncs| syncs as f64),
        ]
    };
    let figures = BarTable {
        caption: "Figures",
        key: "phase",
        columns: columns.map(|(name, unit)| (name.to_owned(), unit)).to_vec(),
        rows: shown.iter().map(|one| (name(one), row(one))).collect(),
        scale: bars::Scale::Column,
    };
    html! {
        (figures.markup())
        div.pictures {
            (by_cause(shown, "Syncs by cause", "syncs", &name, syncs_of))
            (by_cause(shown, "Bytes written by cause", "MB", &name, megabytes_of))
            (levels(shown, &name))
        }
    }
}

fn by_cause(
    shown: &[Shown],
    caption: &str,
    unit: &str,
    name: &impl Fn(&Shown) -> String,
    of: impl Fn(&Phase, &str) -> Option<f64>,
) -> Markup {
    let causes = shown.iter().flat_map(|one| one.phase.syncs.keys().filter(|cause| *cause != "total"));
    let causes: BTreeSet<&String> = causes.collect();
    let row = |one: &Shown| (name(one), causes.iter().map(|cause| of(one.phase, cause)).collect());
    BarTable {
        caption,
        key: "phase",
        columns: causes.iter().map(|cause| ((*cause).clone(), unit)).collect(),
        rows: shown.iter().map(row).collect(),
        scale: bars::Scale::Table,
    }
    .markup()
}

fn syncs_of(phase: &Phase, cause: &str) -> Option<f64> {
    phase.syncs.get(cause).map(|&syncs| syncs as f64)
}

fn megabytes_of(phase: &Phase, cause: &str) -> Option<f64> {
    let bytes = phase.recording.intervals.iter().filter_map(|interval| interval.written_bytes.get(cause));
    Some(bytes.sum::<u64>() as f64 / 1e6)
}

/// The shape of the tree that each phase left.
fn levels(shown: &[Shown], name: &impl Fn(&Shown) -> String) -> Markup {
    let of = |phase: &Phase| {
        phase.recording.intervals.last().map(|last| last.level_bytes.clone()).unwrap_or_default()
    };
    let deepest = shown.iter().map(|one| of(one.phase).len()).max().unwrap_or(0);
    let row = |one: &Shown| {
        let bytes = of(one.phase);
        (name(one), (0..deepest).map(|level| bytes.get(level).map(|&bytes| bytes as f64 / 1e6)).collect())
    };
    BarTable {
        caption: "Shape of the tree at the end",
        key: "phase",
        columns: (0..deepest).map(|level| (format!("level {level}"), "MB")).collect(),
        rows: shown.iter().map(row).collect(),
        scale: bars::Scale::Table,
    }
    .markup()
}

/// The pictures of one workload, without those that would be empty.
fn pictures(shown: &[&Shown]) -> Result<Vec<Markup>> {
    let mut pictures = Vec::new();
    if shown.iter().any(|one| !one.phase.recording.intervals.is_empty()) {
        pictures.push(throughput(shown)?);
        let tails =
            series(shown, |one| by_kind(one, |interval, kind| Some(interval.latency_us.get(kind)?.p99)));
        let scale = Scale::Log("p99, us");
        pictures.extend(match shown {
            [_] => {
                let lanes = all_lanes(shown);
                over_time(&over_lanes(TAILS, &lanes), scale, shown, tails, lanes)?
            }
            // The inks are those of phases and kinds of operations: rows in the inks of phases would deceive.
            _ => over_time(TAILS, scale, shown, tails, Vec::new())?,
        });
    }
    pictures.extend(percentiles(shown)?);
    let hits = series(shown, |one| {
        let ratio = |interval: &Interval| {
            let all = interval.cache_hits + interval.cache_misses;
            (all > 0).then(|| interval.cache_hits as f64 / all as f64 * 100.0)
        };
        vec![(String::new(), points(one, ratio))]
    });
    pictures.extend(over_time(
        "Cache hits",
        Scale::Linear("hits, % of block reads"),
        shown,
        hits,
        Vec::new(),
    )?);
    let is_written = |one: &&&Shown| {
        one.phase.recording.intervals.iter().any(|interval| !interval.written_bytes.is_empty())
    };
    if shown.iter().any(|one| is_written(&one)) {
        let space = series(shown, |one| {
            vec![(String::new(), points(one, |interval| Some(interval.space_bytes as f64 / 1e6)))]
        });
        pictures.extend(over_time(
            "Space on the disk",
            Scale::Linear("space, MB"),
            shown,
            space,
            Vec::new(),
        )?);
        if let [one] = shown {
            let rates = series(shown, written);
            pictures.extend(over_time(
                "Writing by cause",
                Scale::Linear("written, MB/s"),
                &[one],
                rates,
                Vec::new(),
            )?);
            let levels = series(shown, level_bytes);
            pictures.extend(over_time(
                "Shape of the tree",
                Scale::Linear("tables, MB"),
                &[one],
                levels,
                Vec::new(),
            )?);
        }
    }
    Ok(pictures)
}

type Points = Vec<(f64, f64)>;

enum Scale {
    Linear(&'static str),
    Log(&'static str),
}

/// The lines of all phases that have any points, each named after its phase where there are several.
fn series(shown: &[&Shown], of: impl Fn(&Shown) -> Vec<(String, Points)>) -> Vec<(String, Points)> {
    let named = shown
        .iter()
        .flat_map(|one| of(one).into_iter().map(|(name, points)| (full_name(shown, one, &name), points)));
    named.filter(|(_, points)| points.iter().any(|(_, y)| *y > 0.0)).collect()
}

fn full_name(shown: &[&Shown], one: &Shown, name: &str) -> String {
    match (shown.len(), name) {
        (1, "") => one.name.clone(),
        (1, name) => name.to_owned(),
        (_, "") => one.name.clone(),
        (_, name) => format!("{}, {name}", one.name),
    }
}

/// What `of` says of each interval that is long enough, at its middle.
fn points(one: &Shown, of: impl Fn(&Interval) -> Option<f64>) -> Points {
    let recording = &one.phase.recording;
    let whole = |interval: &&Interval| interval.seconds >= recording.interval_s * WHOLE_SHARE;
    // A phase that is shorter than an interval has none that is long enough, and shows what it has.
    let all_short = !recording.intervals.iter().any(|interval| whole(&interval));
    let intervals = recording.intervals.iter().filter(|interval| all_short || whole(interval));
    intervals
        .filter_map(|interval| Some((interval.start_s + interval.seconds / 2.0, of(interval)?)))
        .collect()
}

/// A line for each kind of operation.
fn by_kind(one: &Shown, of: impl Fn(&Interval, &str) -> Option<f64>) -> Vec<(String, Points)> {
    // Comparisons tell the distributions alone.
    let summed = one.phase.latency_us.keys();
    let kinds: BTreeSet<_> = summed.chain(one.phase.recording.latency_curves_us.keys()).collect();
    kinds
        .into_iter()
        .map(|kind| (kind.replace('_', "-"), points(one, |interval| of(interval, kind))))
        .collect()
}

fn written(one: &Shown) -> Vec<(String, Points)> {
    let causes: BTreeSet<&String> =
        one.phase.recording.intervals.iter().flat_map(|interval| interval.written_bytes.keys()).collect();
    let rate = |interval: &Interval, cause: &str| {
        let bytes = interval.written_bytes.get(cause).copied().unwrap_or(0);
        Some(bytes as f64 / 1e6 / interval.seconds)
    };
    causes.into_iter().map(|cause| (cause.clone(), points(one, |interval| rate(interval, cause)))).collect()
}

fn level_bytes(one: &Shown) -> Vec<(String, Points)> {
    let intervals = &one.phase.recording.intervals;
    let deepest = intervals.iter().map(|interval| interval.level_bytes.len()).max().unwrap_or(0);
    let of = |level: usize| {
        points(one, |interval| Some(interval.level_bytes.get(level).copied().unwrap_or(0) as f64 / 1e6))
    };
    (0..deepest).map(|level| (format!("level {level}"), of(level))).collect()
}

fn time(shown: &[&Shown]) -> Axis {
    let last = shown.iter().filter_map(|one| one.phase.recording.intervals.last());
    Axis::time(last.map(|interval| interval.start_s + interval.seconds))
}

/// A picture of lines over time; none where there is nothing to draw.
fn over_time(
    title: &str,
    scale: Scale,
    shown: &[&Shown],
    series: Vec<(String, Points)>,
    lanes: Vec<Lane>,
) -> Result<Option<Markup>> {
    if series.is_empty() {
        return Ok(None);
    }
    let values = series.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let y = match scale {
        Scale::Linear(title) => Axis::linear(title, values),
        Scale::Log(title) => Axis::log(title, values),
    };
    let (names, points): (Vec<_>, Vec<_>) = series.into_iter().unzip();
    let lines = points.into_iter().enumerate().map(|(ink, points)| Line { ink: Ink(ink), points });
    let chart = Chart { x: time(shown), y, lines: lines.collect(), lanes };
    let key = names.iter().enumerate().map(|(ink, name)| (Ink(ink), name.as_str()));
    Ok(Some(figure(title, &legend(key), chart.svg()?)))
}

/// Throughput, and under it when each store flushed, merged and held up its writers.
fn throughput(shown: &[&Shown]) -> Result<Markup> {
    let lines: Vec<Line> = shown
        .iter()
        .enumerate()
        .map(|(ink, one)| {
            let rate = |interval: &Interval| Some(interval.operations as f64 / interval.seconds);
            Line { ink: Ink(ink), points: points(one, rate) }
        })
        .collect();
    let y =
        Axis::linear("operations/s", lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)));
    let numbered = |(index, one): (usize, &&Shown)| match shown.len() {
        1 => one.name.clone(),
        _ => format!("{}: {}", index + 1, one.name),
    };
    let names: Vec<String> = shown.iter().enumerate().map(numbered).collect();
    let key = names.iter().enumerate().map(|(ink, name)| (Ink(ink), name.as_str()));
    let chart = Chart { x: time(shown), y, lines, lanes: all_lanes(shown) };
    Ok(figure(&over_lanes("Throughput", &chart.lanes), &legend(key), chart.svg()?))
}

/// The title of a picture that has `lanes`.
fn over_lanes(title: &str, lanes: &[Lane]) -> String {
    if lanes.is_empty() { title.to_owned() } else { format!("{title}; under it flushes, merges and stalls") }
}

fn all_lanes(shown: &[&Shown]) -> Vec<Lane> {
    shown.iter().enumerate().flat_map(|(ink, one)| lanes(shown.len(), ink, one)).collect()
}

/// A row for each kind of job, also for those that never ran; none of an engine that tells of no jobs.
fn lanes(phases: usize, index: usize, one: &Shown) -> Vec<Lane> {
    let spans = &one.phase.recording.spans;
    let jobs = [(Job::Flush, "flush"), (Job::Merge, "merge"), (Job::Stall, "stall")];
    let lane = |(job, name): (Job, &str)| Lane {
        name: if phases > 1 { format!("{} {name}", index + 1) } else { name.to_owned() },
        ink: Ink(index),
        marks: spans
            .iter()
            .filter(|span| span.job == job)
            .map(|span| (span.start_s, span.start_s + span.seconds))
            .collect(),
    };
    jobs.into_iter().filter(|_| !spans.is_empty()).map(lane).collect()
}

/// The distributions of latencies over the whole phase; of each kind of operation in a picture of its own, where one
/// would have more lines than there are inks.
fn percentiles(shown: &[&Shown]) -> Result<Vec<Markup>> {
    let all = |one: &Shown| -> Vec<(String, Points)> {
        let curves = one.phase.recording.latency_curves_us.iter();
        curves.map(|(kind, curve)| (kind.replace('_', "-"), curve.0.clone())).collect()
    };
    const TITLE: &str = "Latency by percentile";
    let curves = series(shown, all);
    if curves.len() <= Ink::COUNT {
        return Ok(distribution(TITLE, curves)?.into_iter().collect());
    }
    let kinds: BTreeSet<String> = shown.iter().flat_map(|one| all(one)).map(|(kind, _)| kind).collect();
    let mut pictures = Vec::new();
    for kind in kinds {
        let of_kind = |one: &Shown| all(one).into_iter().filter(|(name, _)| *name == kind).collect();
        pictures.extend(distribution(&format!("{TITLE}: {kind}"), series(shown, of_kind))?);
    }
    Ok(pictures)
}

fn distribution(title: &str, curves: Vec<(String, Points)>) -> Result<Option<Markup>> {
    if curves.is_empty() {
        return Ok(None);
    }
    let all = || curves.iter().flat_map(|(_, points)| points);
    let (x, y) =
        (Axis::nines(all().map(|point| point.0)), Axis::log("latency, us", all().map(|point| point.1)));
    let lines =
        curves.iter().enumerate().map(|(ink, (_, points))| Line { ink: Ink(ink), points: points.clone() });
    let chart = Chart { x, y, lines: lines.collect(), lanes: Vec::new() };
    let key = curves.iter().enumerate().map(|(ink, (name, _))| (Ink(ink), name.as_str()));
    Ok(Some(figure(title, &legend(key), chart.svg()?)))
}
