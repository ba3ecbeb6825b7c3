//! Section of the page: the figures of all phases of load generators, then the course of each.

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

/// Titles of pictures.
const TAILS: &str = "99th percentile of each interval";
const DISTRIBUTION: &str = "Latency by percentile";

/// One phase of one run.
struct Shown<'a> {
    /// What distinguishes it from others of the same workload.
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
    let (mut phases, courses) = (all(|run| &run.phases), all(|run| &run.courses));
    let told = all(|run| &run.told);
    let mut workloads: Vec<&str> = Vec::new();
    for one in phases.iter().chain(&courses) {
        if !workloads.contains(&one.phase.workload.as_str()) {
            workloads.push(&one.phase.workload);
        }
    }
    // Comparable workloads stand together.
    phases.sort_by_key(|one| workloads.iter().position(|&workload| workload == one.phase.workload));
    let mut sections = Vec::new();
    for workload in workloads {
        let is_of = |one: &&Shown| one.phase.workload == workload;
        let same: Vec<&Shown> = phases.iter().chain(&courses).filter(is_of).collect();
        let told: Vec<&Shown> = told.iter().filter(is_of).collect();
        sections.push(section(workload, &same, &told)?);
    }
    Ok(html! {
        @if !phases.is_empty() { h2 { "Phases" } (tables(&phases)) }
        @if !told.is_empty() { (self_report(&told)) }
        @for section in &sections { (section) }
    })
}

/// The course of one workload. `told` is Terrace's own report of it, if other engines were measured beside it.
fn section(workload: &str, same: &[&Shown], told: &[&Shown]) -> Result<Markup> {
    let mut pictures = measured(same)?;
    pictures.extend(counted(same)?);
    let told = counted(told)?;
    Ok(html! {
        @if !pictures.is_empty() {
            h2 { "Phase " (workload) }
            div.pictures { @for picture in &pictures { (picture) } }
        }
        @if !told.is_empty() {
            h3 { "Phase " (workload) ", as Terrace reports of itself" }
            div.pictures { @for picture in &told { (picture) } }
        }
    })
}

/// What Terrace says of itself where others were measured beside it.
fn self_report(told: &[Shown]) -> Markup {
    html! {
        h2 { "Terrace, as it reports of itself" }
        p {
            "Terrace's own counters, looked at once a second, and its own events, in the first of its turns that counts, "
            "until the work that a phase has left behind is done. Its peers cannot be observed so, and no figure and no "
            "ratio of the comparison rests on this."
        }
        (by_causes(told, &name_among(told)))
    }
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

/// What a row of a table is called: by its workload, and by its store where there are several.
fn name_among(shown: &[Shown]) -> impl Fn(&Shown) -> String {
    let is_one = shown.iter().all(|one| one.name == shown[0].name);
    move |one| match is_one {
        true => one.phase.workload.clone(),
        false => format!("{}, {}", one.phase.workload, one.name),
    }
}

fn tables(shown: &[Shown]) -> Markup {
    let name = name_among(shown);
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
        without_bars: None,
    };
    html! {
        (figures.markup())
        (by_causes(shown, &name))
    }
}

/// What wrote and synced, and the trees that came of it.
fn by_causes(shown: &[Shown], name: &impl Fn(&Shown) -> String) -> Markup {
    html! {
        div.pictures {
            (by_cause(shown, "Syncs by cause", "syncs", name, syncs_of))
            (by_cause(shown, "Bytes written by cause", "MB", name, megabytes_of))
            (levels(shown, name))
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
    let synced = shown.iter().flat_map(|one| one.phase.syncs.keys().filter(|cause| *cause != "total"));
    let intervals = shown.iter().flat_map(|one| &one.phase.recording.intervals);
    let causes: BTreeSet<&String> =
        synced.chain(intervals.flat_map(|interval| interval.written_bytes.keys())).collect();
    let row = |one: &Shown| (name(one), causes.iter().map(|cause| of(one.phase, cause)).collect());
    BarTable {
        caption,
        key: "phase",
        columns: causes.iter().map(|cause| ((*cause).clone(), unit)).collect(),
        rows: shown.iter().map(row).collect(),
        scale: bars::Scale::Table,
        without_bars: None,
    }
    .markup()
}

fn syncs_of(phase: &Phase, cause: &str) -> Option<f64> {
    (!phase.syncs.is_empty()).then(|| phase.syncs.get(cause).map_or(0.0, |&syncs| syncs as f64))
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
        without_bars: None,
    }
    .markup()
}

/// Rates and latencies of one workload, as its load generator measured them.
fn measured(shown: &[&Shown]) -> Result<Vec<Markup>> {
    let mut pictures = Vec::new();
    if shown.iter().any(|one| !one.phase.recording.intervals.is_empty()) {
        pictures.extend(throughput(shown)?);
        pictures.extend(of_kinds(shown, |title, kinds| tails(&format!("{TAILS}{title}"), shown, kinds))?);
    }
    pictures.extend(of_kinds(shown, |title, kinds| {
        distribution(&format!("{DISTRIBUTION}{title}"), shown, kinds)
    })?);
    Ok(pictures)
}

/// What stores counted in the course of one workload, without pictures that would be empty.
fn counted(shown: &[&Shown]) -> Result<Vec<Markup>> {
    let mut pictures = Vec::new();
    let hits = by_phase(shown, |one| {
        let ratio = |interval: &Interval| {
            let all = interval.cache_hits + interval.cache_misses;
            (all > 0).then(|| interval.cache_hits as f64 / all as f64 * 100.0)
        };
        points(one, ratio)
    });
    let mut draw = |title, unit, series| -> Result<()> {
        pictures.extend(over_time(title, Scale::Linear(unit), shown, series, Vec::new())?);
        Ok(())
    };
    draw("Cache hits", "hits, % of block reads", hits)?;
    let is_written = |one: &&&Shown| {
        one.phase.recording.intervals.iter().any(|interval| !interval.written_bytes.is_empty())
    };
    if shown.iter().any(|one| is_written(&one)) {
        let space = |one: &Shown| points(one, |interval| Some(interval.space_bytes as f64 / 1e6));
        draw("Space on the disk", "space, MB", by_phase(shown, space))?;
        if let [one] = shown {
            draw("Writing by cause", "written, MB/s", numbered(written(one)))?;
            draw("Shape of the tree", "tables, MB", numbered(level_bytes(one)))?;
        }
    }
    Ok(pictures)
}

type Points = Vec<(f64, f64)>;

enum Scale {
    Linear(&'static str),
    Log(&'static str),
}

/// A line, before it is drawn.
struct Series {
    ink: Ink,
    name: String,
    points: Points,
}

/// A line for each phase, in its own ink.
fn by_phase(shown: &[&Shown], of: impl Fn(&Shown) -> Points) -> Vec<Series> {
    let series = |(index, one): (usize, &&Shown)| Series {
        ink: Ink(index),
        name: name_of(shown, index),
        points: of(one),
    };
    shown.iter().enumerate().map(series).filter(is_drawn).collect()
}

/// Lines in inks of their order.
fn numbered(named: Vec<(String, Points)>) -> Vec<Series> {
    let series = |(index, (name, points))| Series { ink: Ink(index), name, points };
    named.into_iter().enumerate().map(series).filter(is_drawn).collect()
}

fn is_drawn(series: &Series) -> bool {
    series.points.iter().any(|(_, y)| *y > 0.0)
}

/// The name of a phase; with the number of its rows, where there are several.
fn name_of(shown: &[&Shown], index: usize) -> String {
    let name = &shown[index].name;
    if shown.len() > 1 { format!("{}: {name}", index + 1) } else { name.clone() }
}

/// What `of` says of each interval that is long enough, at its middle; of one alone, at both of its ends, since a line has
/// dashes and a dot has none.
fn points(one: &Shown, of: impl Fn(&Interval) -> Option<f64>) -> Points {
    let recording = &one.phase.recording;
    let whole = |interval: &&Interval| interval.seconds >= recording.interval_s * WHOLE_SHARE;
    // A phase that is shorter than an interval has none that is long enough, and shows what it has.
    let all_short = !recording.intervals.iter().any(|interval| whole(&interval));
    let intervals = recording.intervals.iter().filter(|interval| all_short || whole(interval));
    let told: Vec<(&Interval, f64)> =
        intervals.filter_map(|interval| Some((interval, of(interval)?))).collect();
    match told[..] {
        [(only, value)] => vec![(only.start_s, value), (only.start_s + only.seconds, value)],
        _ => {
            told.iter().map(|(interval, value)| (interval.start_s + interval.seconds / 2.0, *value)).collect()
        }
    }
}

/// Draws all kinds of operations of one phase together; of several phases, each kind by itself, in the inks of the phases,
/// which are those of the rows under the picture. `draw` is given the end of the title.
fn of_kinds(
    shown: &[&Shown],
    draw: impl Fn(&str, &[&String]) -> Result<Option<Markup>>,
) -> Result<Vec<Markup>> {
    // Comparisons tell the distributions alone.
    let phases = || shown.iter().map(|one| one.phase);
    let curves = phases().flat_map(|phase| phase.recording.latency_curves_us.keys());
    let kinds: BTreeSet<&String> = phases().flat_map(|phase| phase.latency_us.keys()).chain(curves).collect();
    let kinds: Vec<&String> = kinds.into_iter().collect();
    let pictures: Result<Vec<_>> = match shown {
        [_] => [draw("", &kinds)].into_iter().collect(),
        _ => kinds.iter().map(|&kind| draw(&format!(": {}", in_words(kind)), &[kind])).collect(),
    };
    Ok(pictures?.into_iter().flatten().collect())
}

/// Lines of what `of` says of phases and kinds: of one phase, a line for each kind, otherwise one for each phase.
fn by_kind(shown: &[&Shown], kinds: &[&String], of: impl Fn(&Shown, &str) -> Points) -> Vec<Series> {
    match (shown, kinds) {
        ([one], kinds) => numbered(kinds.iter().map(|kind| (in_words(kind), of(one, kind))).collect()),
        (_, [kind]) => by_phase(shown, |one| of(one, kind)),
        _ => Vec::new(),
    }
}

/// The name of a kind of operations, in words.
fn in_words(kind: &str) -> String {
    kind.replace('_', "-")
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
    series: Vec<Series>,
    lanes: Vec<Lane>,
) -> Result<Option<Markup>> {
    let values = series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let y = match scale {
        Scale::Linear(title) => Axis::linear(title, values),
        Scale::Log(title) => Axis::log(title, values),
    };
    picture(title, (time(shown), y), series, lanes)
}

fn picture(
    title: &str,
    (x, y): (Axis, Axis),
    series: Vec<Series>,
    lanes: Vec<Lane>,
) -> Result<Option<Markup>> {
    if series.is_empty() {
        return Ok(None);
    }
    let (key, lines): (Vec<_>, Vec<_>) =
        series.into_iter().map(|Series { ink, name, points }| ((ink, name), Line { ink, points })).unzip();
    let chart = Chart { x, y, lines, lanes };
    let key = key.iter().map(|(ink, name)| (*ink, name.as_str()));
    Ok(Some(figure(title, &legend(key), chart.svg()?)))
}

/// Throughput, and under it when each store flushed, compacted and stalled its writers.
fn throughput(shown: &[&Shown]) -> Result<Option<Markup>> {
    let rate = |interval: &Interval| Some(interval.operations as f64 / interval.seconds);
    let lines = by_phase(shown, |one| points(one, rate));
    over_time(&over_lanes("Throughput", shown), Scale::Linear("operations/s"), shown, lines, lanes(shown))
}

/// The slowest hundredth, and under it the same.
fn tails(title: &str, shown: &[&Shown], kinds: &[&String]) -> Result<Option<Markup>> {
    let p99 = |one: &Shown, kind: &str| points(one, |interval| Some(interval.latency_us.get(kind)?.p99));
    let lines = by_kind(shown, kinds, p99);
    over_time(&over_lanes(title, shown), Scale::Log("p99, us"), shown, lines, lanes(shown))
}

/// The title of a picture with the rows that are under it.
fn over_lanes(title: &str, shown: &[&Shown]) -> String {
    let (jobs, told) = ("under it flushes, compactions and stalls", "as Terrace reports of itself");
    if shown.iter().any(|one| one.phase.course.is_some()) {
        format!("{title}; {jobs}, {told}")
    } else if shown.iter().any(|one| one.phase.tells_of_jobs()) {
        format!("{title}; {jobs}")
    } else {
        title.to_owned()
    }
}

/// Rows for the jobs of all phases, numbered like their lines, where there are several.
fn lanes(shown: &[&Shown]) -> Vec<Lane> {
    let of = |(index, one): (usize, &&Shown)| {
        let number = if shown.len() > 1 { format!("{} ", index + 1) } else { String::new() };
        jobs(&number, Ink(index), one.phase)
    };
    shown.iter().enumerate().flat_map(of).collect()
}

/// A row for each kind of job, also for those that never ran; none of an engine that tells of no jobs.
fn jobs(number: &str, ink: Ink, phase: &Phase) -> Vec<Lane> {
    let lane = |(job, name): (Job, &str)| Lane {
        name: format!("{number}{name}"),
        ink,
        marks: phase
            .spans()
            .filter(|span| span.job == job)
            .map(|span| (span.start_s, span.start_s + span.seconds))
            .collect(),
    };
    let jobs = [(Job::Flush, "flush"), (Job::Compaction, "compaction"), (Job::Stall, "stall")];
    jobs.into_iter().filter(|_| phase.tells_of_jobs()).map(lane).collect()
}

/// The distributions of latencies over the whole phase.
fn distribution(title: &str, shown: &[&Shown], kinds: &[&String]) -> Result<Option<Markup>> {
    let curve = |one: &Shown, kind: &str| {
        one.phase.recording.latency_curves_us.get(kind).map(|curve| curve.0.clone()).unwrap_or_default()
    };
    let curves = by_kind(shown, kinds, curve);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let x = Axis::nines(all().map(|point| point.0));
    let y = Axis::log("latency, us", all().map(|point| point.1));
    picture(title, (x, y), curves, Vec::new())
}
