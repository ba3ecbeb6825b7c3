//! Section of the page: whether clients notice background work, level of load by level of load.

use maud::{Markup, html};

use super::axis::Axis;
use super::bars::{BarTable, Scale};
use super::chart::{Chart, Lane, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run};
use crate::Result;
use crate::calm::report::{by, capacity_words, operations, told, waits};
use crate::calm::{EngineReport, KindReport, LevelReport, Row, Split};
use crate::latency::LatencySummary;
use crate::report::Stored;

/// Length of a window on the page, in seconds.
const WINDOW_S: f64 = 0.5;

/// An engine of a run.
struct Shown<'a> {
    name: String,
    engine: &'a EngineReport,
}

/// All engines together, then each by itself.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let engines = runs.iter().flat_map(|run| {
        let shown = run.calm.iter().map(|engine| Shown { name: of_run(runs, run, &engine.name()), engine });
        shown.collect::<Vec<_>>()
    });
    let engines: Vec<Shown> = engines.collect();
    if engines.is_empty() {
        return Ok(html! {});
    }
    let each = engines.iter().map(section).collect::<Result<Vec<_>>>()?;
    Ok(html! {
        h2 { "Do clients notice the background?" }
        p {
            "Operations arrive by themselves at a share of what the store sustains; latency counts from the arrival. Windows "
            "of half a second with background work are held against those without. An AUC of 0.5 means that a signal does "
            "not give the work away, 1 that it always does. Windows of which more than 2 % was stolen are left out. The empty "
            "engine does nothing: below what it shows, nothing can be told."
        }
        (summary(&engines))
        div.pictures { @for picture in &by_level(&engines)? { (picture) } }
        @for one in &each { (one) }
    })
}

/// One row for each level of each engine.
fn summary(engines: &[Shown]) -> Markup {
    let columns = [
        ("rate", "operations/s"),
        ("reads, p99", "ms, without"),
        ("reads, p99", "ms, with"),
        ("ratio", "with/without"),
        ("writes, p99", "ms, without"),
        ("writes, p99", "ms, with"),
        ("ratio", "with/without"),
        ("AUC", "reads, p99"),
        ("AUC", "writes, p99"),
        ("AUC", "throughput"),
        ("AUC", "all that clients see"),
        ("seconds kept up with", "%"),
        ("worst 10 s", "reads, p99, ms"),
        ("empty engine", "reads, p99, ms"),
    ];
    let rows = levels(engines).map(|(name, level)| {
        let split = level.outside();
        let auc = |signal| split.and_then(|split| split.auc.get(signal).copied());
        let p99 = |of: fn(&Split) -> &Option<LatencySummary>| Some(of(split?).as_ref()?.p99 / 1000.0);
        let row = vec![
            Some(level.rate),
            p99(|split| &split.without.read),
            p99(|split| &split.with.read),
            split.and_then(|split| split.read_p99_ratio),
            p99(|split| &split.without.write),
            p99(|split| &split.with.write),
            split.and_then(|split| split.write_p99_ratio),
            auc("read p99"),
            auc("write p99"),
            auc("throughput"),
            split.and_then(|split| split.auc_clients),
            level.seconds_kept_up.map(|share| share * 100.0),
            Some(level.worst.read_p99_us / 1000.0),
            level.floor.get("read").map(|floor| floor.p99 / 1000.0),
        ];
        (name, row)
    });
    BarTable {
        caption: "With and without background work, told from outside",
        key: "engine and level",
        columns: columns.map(|(name, unit)| (name.to_owned(), unit)).to_vec(),
        rows: rows.collect(),
        scale: Scale::Column,
        without_bars: None,
    }
    .markup()
}

fn levels<'a>(engines: &'a [Shown]) -> impl Iterator<Item = (String, &'a LevelReport)> {
    engines.iter().flat_map(|one| {
        one.engine.levels.iter().map(move |level| (format!("{}, {:.0} %", one.name, level.percent), level))
    })
}

/// Pictures over the levels of load, all engines together.
fn by_level(engines: &[Shown]) -> Result<Vec<Markup>> {
    if engines.iter().all(|one| one.engine.levels.len() < 2) {
        return Ok(Vec::new());
    }
    let p99 = |of: fn(&KindReport) -> &Option<LatencySummary>| {
        move |level: &LevelReport, with: bool| {
            let split = level.outside()?;
            let kind = if with { &split.with } else { &split.without };
            Some(of(kind).as_ref()?.p99 / 1000.0)
        }
    };
    let auc = |level: &LevelReport, _: bool| level.outside()?.auc.get("read p99").copied();
    let pictures = [
        over_levels(engines, "Reads, p99", "ms", &[false, true], &p99(|kind| &kind.read))?,
        over_levels(engines, "Writes, p99", "ms", &[false, true], &p99(|kind| &kind.write))?,
        over_levels(engines, "AUC of the reads' p99", "AUC", &[true], &auc)?,
    ];
    Ok(pictures.into_iter().flatten().collect())
}

/// One line for each engine, or one without and one with background work; none where there are no figures.
fn over_levels(
    engines: &[Shown],
    title: &str,
    unit: &str,
    kinds: &[bool],
    of: &dyn Fn(&LevelReport, bool) -> Option<f64>,
) -> Result<Option<Markup>> {
    let mut lines = Vec::new();
    for (index, one) in engines.iter().enumerate() {
        for (at, &with) in kinds.iter().enumerate() {
            let levels = one.engine.levels.iter();
            let points: Vec<(f64, f64)> =
                levels.filter_map(|level| Some((level.percent, of(level, with)?))).collect();
            let name = match (kinds.len(), with) {
                (1, _) => one.name.clone(),
                (_, true) => format!("{}, with", one.name),
                (_, false) => format!("{}, without", one.name),
            };
            lines.push((name, Line { ink: Ink(index * kinds.len() + at), points }));
        }
    }
    lines.retain(|(_, line)| !line.points.is_empty());
    if lines.is_empty() {
        return Ok(None);
    }
    let values = lines.iter().flat_map(|(_, line)| line.points.iter().map(|point| point.1));
    let percents = lines.iter().flat_map(|(_, line)| line.points.iter().map(|point| point.0));
    let y = if unit == "ms" { Axis::log(unit, values) } else { Axis::linear(unit, values.chain([1.0])) };
    let x = Axis::linear("offered, % of the capacity", percents.chain([100.0]));
    picture(title, (x, y), lines, Vec::new()).map(Some)
}

/// A chart of named lines.
fn picture(
    title: &str,
    (x, y): (Axis, Axis),
    lines: Vec<(String, Line)>,
    lanes: Vec<Lane>,
) -> Result<Markup> {
    let legend = legend(lines.iter().map(|(name, line)| (line.ink, name.as_str())));
    let lines = lines.into_iter().map(|(_, line)| line).collect();
    Ok(figure(title, &legend, Chart { x, y, lines, lanes }.svg()?))
}

/// One engine: its levels in pictures and tables.
fn section(shown: &Shown) -> Result<Markup> {
    let engine = shown.engine;
    let mut levels = Vec::new();
    for level in &engine.levels {
        let mut pictures = Vec::new();
        pictures.extend(course(level)?);
        pictures.extend(curves(level)?);
        levels.push(html! {
            h3 { (shown.name) " at " (format!("{:.0} %", level.percent)) ": " (format!("{:.0}", level.rate)) " operations/s" }
            p { (words(level)) }
            div.pictures { @for picture in &pictures { (picture) } }
        });
    }
    Ok(html! {
        h2 { (shown.name) @if !engine.version.is_empty() { " " (engine.version) } }
        p {
            (capacity_words(&engine.capacity)) "; loaded and at rest after " (format!("{:.0} s", engine.load_s)) "."
            @if engine.wrong > 0 { strong { " Wrong answers: " (engine.wrong) "." } }
        }
        (tails(engine))
        (visibility(engine))
        (causes(engine))
        @for level in &levels { (level) }
    })
}

/// What the tables do not say of a level.
fn words(level: &LevelReport) -> String {
    let counts = level.windows;
    let rested = if level.rested { "" } else { "; the store had not come to rest before" };
    let split = level.outside();
    let kinds = split.map_or_else(String::new, |split| {
        let more = if split.by_median {
            " (as much as the median, since nearly all or nearly none have any)"
        } else {
            ""
        };
        format!("; {} with background work{more}, {} without", split.with.windows, split.without.windows)
    });
    let few = if level.has_few() { "; fewer than 30 of a kind tell little" } else { "" };
    format!(
        "{} windows count, {} are left out for stolen time ({:.1} % of all), {} are the warm-up{kinds}{few}{rested}; {} operations \
         had not begun when the time was up; other processes and the kernel's threads took {:.0} % of the processors.",
        counts.kept,
        counts.stolen,
        counts.stolen_share * 100.0,
        counts.warm_up,
        level.unfinished,
        counts.others_share * 100.0,
    )
}

/// Latencies with and without background work, and the floor.
fn tails(engine: &EngineReport) -> Markup {
    let mut rows = Vec::new();
    for level in &engine.levels {
        let percent = format!("{:.0} %", level.percent);
        for split in &level.splits {
            for (operation, without, with) in operations(split) {
                let name = format!("{percent}, {operation}, told from {}", told(split));
                let pairs = [
                    (without.p50, with.p50),
                    (without.p99, with.p99),
                    (without.p999, with.p999),
                    (without.max, with.max),
                ];
                rows.push((
                    name,
                    pairs.into_iter().flat_map(|(a, b)| [Some(a / 1e3), Some(b / 1e3)]).collect(),
                ));
            }
        }
        for (operation, floor) in &level.floor {
            let figures = [floor.p50, floor.p99, floor.p999, floor.max];
            let row = figures.into_iter().flat_map(|us| [Some(us / 1e3), None]).collect();
            rows.push((format!("{percent}, {operation}, empty engine"), row));
        }
    }
    let names = ["p50", "p99", "p99.9", "longest"].into_iter();
    let columns = names.flat_map(|name| [(name.to_owned(), "ms, without"), (name.to_owned(), "ms, with")]);
    BarTable {
        caption: "Latencies without and with background work",
        key: "level and operation",
        columns: columns.collect(),
        rows,
        scale: Scale::Row,
        without_bars: None,
    }
    .markup()
}

/// The AUC of every signal.
fn visibility(engine: &EngineReport) -> Markup {
    let mut signals: Vec<&String> = Vec::new();
    for signal in engine.levels.iter().flat_map(|level| &level.splits).flat_map(|split| split.auc.keys()) {
        if !signals.contains(&signal) {
            signals.push(signal);
        }
    }
    let rows = engine.levels.iter().flat_map(|level| {
        level.splits.iter().map(|split| {
            let name = format!("{:.0} %, told from {}, split by {}", level.percent, told(split), by(split));
            let each = signals.iter().map(|signal| split.auc.get(*signal).copied());
            (name, each.chain([split.auc_clients, split.auc_all]).collect())
        })
    });
    let together = [("all that clients see".to_owned(), "AUC"), ("all".to_owned(), "AUC")];
    BarTable {
        caption: "How well background work shows: 0.5 is invisible",
        key: "level",
        columns: signals.iter().map(|signal| ((*signal).clone(), "AUC")).chain(together).collect(),
        rows: rows.collect(),
        scale: Scale::Table,
        without_bars: None,
    }
    .markup()
}

/// What slow operations waited for.
fn causes(engine: &EngineReport) -> Markup {
    let rows = engine.levels.iter().flat_map(|level| {
        waits(level).map(|(kind, operation, waits)| {
            let operation = match operation {
                "read" => "reads",
                "write" => "writes",
                _ => "between operations",
            };
            let name = format!("{:.0} %, {operation}, {kind} background work", level.percent);
            let times = [waits.queued_ms, waits.running_ms, waits.disk_ms, waits.blocked_ms];
            let counts = [waits.slow as f64, waits.read_bytes as f64 / 1e6, waits.minor_faults as f64];
            (name, times.into_iter().chain(counts).map(Some).collect())
        })
    });
    let columns = [
        ("for a processor", "ms"),
        ("running", "ms"),
        ("for the disk", "ms"),
        ("blocked otherwise, or stolen", "ms"),
        ("how often", ""),
        ("read for them", "MB"),
        ("pages from memory", "faults"),
    ];
    BarTable {
        caption: "What clients waited for, in slow operations and between operations",
        key: "level and operation",
        columns: columns.map(|(name, unit)| (name.to_owned(), unit)).to_vec(),
        rows: rows.collect(),
        scale: Scale::Column,
        without_bars: None,
    }
    .markup()
}

/// The windows of a level, with the background under them.
fn course(level: &LevelReport) -> Result<Option<Markup>> {
    let line = |index: usize, of: fn(&Row) -> Option<f64>| {
        let points = level.course.iter().filter_map(|row| Some((row.start_s, of(row)? / 1000.0)));
        Line { ink: Ink(index), points: points.collect() }
    };
    let lines =
        [("read", line(1, |row| row.read_p99_us)), ("write", line(2, |row| row.write_p99_us))].into_iter();
    let lines: Vec<_> = lines
        .filter(|(_, line)| !line.points.is_empty())
        .map(|(name, line)| (name.to_owned(), line))
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let lane = |name: &str, ink: usize, is: fn(&Row) -> bool| {
        let marks =
            level.course.iter().filter(|row| is(row)).map(|row| (row.start_s, row.start_s + WINDOW_S));
        Lane { name: name.to_owned(), ink: Ink(ink), marks: marks.collect() }
    };
    let mut lanes = vec![lane("outside", 3, |row| row.with_outside)];
    if level.course.iter().any(|row| row.with_inside.is_some()) {
        lanes.push(lane("inside", 5, |row| row.with_inside == Some(true)));
    }
    lanes.push(lane("left out", 7, |row| !row.counts));
    let values = lines.iter().flat_map(|(_, line)| line.points.iter().map(|point| point.1));
    let y = Axis::log("p99 from the arrival, ms", values);
    let x = Axis::time(level.course.iter().map(|row| row.start_s + WINDOW_S));
    let title = "p99 of each window; under it background work, and what is left out";
    picture(title, (x, y), lines, lanes).map(Some)
}

/// Distributions with and without background work.
fn curves(level: &LevelReport) -> Result<Option<Markup>> {
    let Some(split) = level.outside() else { return Ok(None) };
    let mut lines = Vec::new();
    for (index, operation) in ["read", "write"].into_iter().enumerate() {
        for (at, (kind, report)) in
            [("without", &split.without), ("with", &split.with)].into_iter().enumerate()
        {
            if let Some(curve) = report.curves.get(operation) {
                let points = curve.0.iter().filter(|point| point.0 < 1.0);
                let points = points.map(|&(quantile, us)| (quantile, us / 1000.0)).collect();
                lines.push((format!("{operation}, {kind}"), Line { ink: Ink(2 * index + at), points }));
            }
        }
    }
    lines.retain(|(_, line)| !line.points.is_empty());
    if lines.is_empty() {
        return Ok(None);
    }
    let x = Axis::nines(lines.iter().flat_map(|(_, line)| line.points.iter().map(|point| point.0)));
    let y = Axis::log(
        "ms from the arrival",
        lines.iter().flat_map(|(_, line)| line.points.iter().map(|point| point.1)),
    );
    picture("Latency by percentile, with and without background work", (x, y), lines, Vec::new()).map(Some)
}
