//! Section of the page: what large values cost, by their size, and the space that they take over time.

use maud::{Markup, PreEscaped, html};

use super::axis::{Axis, figure as digits};
use super::bars::{RatioBar, ratio_bars};
use super::chart::{Chart, Line};
use super::deletes::goal_bar;
use super::ink::{Ink, legend};
use super::{figure, of_run, wide_figure};
use crate::Result;
use crate::report::Stored;
use crate::values::{Cell, Group, Phase, Size, SizeTable, ValuesRun, groups, tables, verdicts};

/// While less of what lives in the end is there, the files of an empty store would be most of its space.
const LIVE_SHARE_MIN: f64 = 0.1;

/// A chart by size: its title, the title of its axis, the phase, the figure, and whether the axis is logarithmic.
type BySize = (&'static str, &'static str, &'static str, fn(&Phase) -> Option<f64>, bool);

const RATES: &str = "MB/s";
const BY_SIZE: &[BySize] = &[
    ("Uniform updates, drained", RATES, "uniform", |phase| Some(phase.user_bytes_per_s / 1e6), true),
    ("Zipfian updates, drained", RATES, "zipfian", |phase| Some(phase.user_bytes_per_s / 1e6), true),
    ("Uniform updates, written over users' bytes", "times", "uniform", |phase| phase.written_over_user, true),
    ("Most space during uniform updates over live bytes", "times", "uniform", |phase| phase.space_peak, true),
    ("Space at rest after them over live bytes", "times", "uniform", |phase| phase.space_rested, true),
    ("Uniform updates, p99", "us", "uniform", |phase| Some(phase.latency_us.p99), true),
    ("Lookups", RATES, "get", |phase| Some(phase.user_bytes_per_s / 1e6), true),
    ("Scans of 100", RATES, "scan-100", |phase| Some(phase.user_bytes_per_s / 1e6), true),
    ("Scans of 100 keys", "scans/s", "keys-100", |phase| Some(phase.ops_per_s), true),
];

/// One section for each run of `terrace bench values` or `terrace-compare values`.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let mut sections = Vec::new();
    for stored in runs {
        for run in &stored.values {
            sections.push(section(&of_run(runs, stored, "What large values cost"), run)?);
        }
    }
    Ok(html! { @for section in &sections { (section) } })
}

fn section(name: &str, run: &ValuesRun) -> Result<Markup> {
    let groups = groups(run);
    let engines = engines(&groups);
    let (goals, mut pictures) = (against_goals(run)?, Vec::new());
    for by_size in BY_SIZE {
        pictures.extend(chart(by_size, &groups, &engines)?);
    }
    let mut courses = Vec::new();
    for table in tables(run) {
        courses.push((course(table.size, &groups, &engines)?, sheet(&table)));
    }
    Ok(html! {
        h2 { (name) }
        p {
            "Data of " (digits(run.data_bytes as f64 / 1e6)) " MB, a store's memory " (digits(run.memory_bytes as f64 / 1e6))
            " MB. Drained rates count the time until the store was at rest. Each bar tells how many times its goal a figure is, "
            "the worse the further to the right."
        }
        @for picture in &goals { (picture) }
        div.pictures { @for picture in &pictures { (picture) } }
        @for (picture, sheet) in &courses { div.pictures { (picture) } (sheet) }
    })
}

/// Names of the engines, in the order in which they were measured.
fn engines<'a>(groups: &[Group<'a>]) -> Vec<&'a str> {
    let mut engines: Vec<&str> = Vec::new();
    for group in groups {
        if !engines.contains(&group.engine) {
            engines.push(group.engine);
        }
    }
    engines
}

fn ink(engines: &[&str], engine: &str) -> Ink {
    Ink(engines.iter().position(|other| *other == engine).unwrap_or(0) + 1)
}

/// A picture for each size that has goals.
fn against_goals(run: &ValuesRun) -> Result<Vec<Markup>> {
    let verdicts = verdicts(run);
    let mut sizes: Vec<Size> = verdicts.iter().map(|verdict| verdict.size).collect();
    sizes.dedup();
    let mut pictures = Vec::new();
    for size in sizes {
        let bars = verdicts.iter().filter(|verdict| verdict.size == size).map(|verdict| {
            let name = format!("{}: {}: {}", verdict.engine, verdict.measured, digits(verdict.figure));
            goal_bar(name, verdict.figure, verdict.goal)
        });
        let svg = PreEscaped(ratio_bars("times its goal", &bars.collect::<Vec<RatioBar>>())?);
        pictures.push(wide_figure(&format!("Values of {size}"), &html! { (svg) }));
    }
    Ok(pictures)
}

/// A line for each engine over the sizes; none where there are not two of them.
fn chart(by_size: &BySize, groups: &[Group<'_>], engines: &[&str]) -> Result<Option<Markup>> {
    let (title, unit, phase, of, is_log) = *by_size;
    let mut sizes: Vec<Size> = groups.iter().map(|group| group.size).collect();
    sizes.dedup();
    let figure_of = |group: &Group<'_>| group.median(&|cell| cell.phase(phase).and_then(of));
    sizes.retain(|&size| groups.iter().any(|group| group.size == size && figure_of(group).is_some()));
    if sizes.len() < 2 {
        return Ok(None);
    }
    let line = |engine: &&str| Line {
        ink: ink(engines, engine),
        points: (0..sizes.len())
            .filter_map(|place| {
                let is_here = |group: &&Group<'_>| group.size == sizes[place] && group.engine == *engine;
                Some((place as f64, groups.iter().find(is_here).and_then(figure_of)?))
            })
            .collect(),
    };
    let lines: Vec<Line> = engines.iter().map(line).collect();
    let names: Vec<String> = sizes.iter().map(Size::to_string).collect();
    let figures = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let y = if is_log { Axis::log(unit, figures) } else { Axis::linear(unit, figures) };
    let chart = Chart { x: Axis::named("bytes of a value", &names), y, lines, lanes: Vec::new() };
    Ok(Some(figure(title, &key(engines), chart.svg()?)))
}

fn key(engines: &[&str]) -> Markup {
    legend(engines.iter().map(|&engine| (ink(engines, engine), engine)))
}

/// Space over live bytes in the first round of each engine.
fn course(size: Size, groups: &[Group<'_>], engines: &[&str]) -> Result<Markup> {
    let of_size = groups.iter().filter(|group| group.size == size);
    let lines: Vec<Line> = of_size
        .filter_map(|group| {
            Some(Line { ink: ink(engines, group.engine), points: ratios(group.cells.first()?) })
        })
        .collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let (x, y) =
        (Axis::time(points().map(|point| point.0)), Axis::linear("times", points().map(|point| point.1)));
    let title = format!("Space over live bytes, values of {size}");
    Ok(figure(&title, &key(engines), Chart { x, y, lines, lanes: Vec::new() }.svg()?))
}

fn ratios(cell: &Cell) -> Vec<(f64, f64)> {
    let most = cell.course.iter().map(|point| point.live_bytes).max().unwrap_or(0);
    let counts = cell.course.iter().filter(|point| point.live_bytes as f64 >= most as f64 * LIVE_SHARE_MIN);
    counts.filter(|point| point.live_bytes > 0).map(|point| (point.at_s, point.ratio())).collect()
}

fn sheet(table: &SizeTable) -> Markup {
    html! {
        div.scroll {
            table {
                caption { "Values of " (table.size) "; rates of writes are drained" }
                tr { @for name in &table.head { th { (name) } } }
                @for row in &table.rows { tr { @for cell in row { td { (cell) } } } }
            }
        }
    }
}
