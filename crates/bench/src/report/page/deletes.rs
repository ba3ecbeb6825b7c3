//! Section of the page: what deletes cost readers, each figure against its goal, and space against what lives.

use maud::{Markup, PreEscaped, html};

use super::axis::{Axis, figure as digits};
use super::bars::{RatioBar, ratio_bars};
use super::chart::{Chart, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run, wide_figure};
use crate::Result;
use crate::deletes::{Course, DeletesRun, Goal, Quantity, Row};
use crate::report::Stored;

/// Inks: of bars and of what was measured, of what is worse than its goal, and of what courses are held against.
const MEASURED: Ink = Ink(1);
const MISSED: Ink = Ink(2);
const AGAINST: Ink = Ink(0);

/// A ratio that a bar still shows: what takes no time at all would have no place on the axis.
const RATIO_MIN: f64 = 1e-3;

/// One section for each run of `terrace bench deletes` or `terrace-compare deletes`.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let mut sections = Vec::new();
    for run in runs.iter().filter(|run| !run.deletes.is_empty()) {
        sections.push(section(&of_run(runs, run, "What deletes cost"), &run.deletes)?);
    }
    Ok(html! { @for section in &sections { (section) } })
}

fn section(name: &str, engines: &[DeletesRun]) -> Result<Markup> {
    let mut parts = Vec::new();
    for run in engines {
        let bars = against_goals(run)?;
        let pictures = courses(run)?;
        parts.push(html! {
            h3 { (run.engine) ", counts divided by " (digits(run.scale)) }
            @for picture in &bars { (picture) }
            div.pictures { @for picture in &pictures { (picture) } }
        });
    }
    Ok(html! {
        h2 { (name) }
        p {
            "Each bar tells how many times its goal a figure is, the worse the further to the right: twice the time, twice the "
            "space or half the rate are 2. What meets its goal ends at 1 or to the left of it."
        }
        @for part in &parts { (part) }
        (table(engines))
    })
}

/// A picture for each case that has goals.
fn against_goals(run: &DeletesRun) -> Result<Vec<Markup>> {
    let mut cases: Vec<&str> = run.deletes.iter().map(|row| row.case.as_str()).collect();
    cases.dedup();
    let mut pictures = Vec::new();
    for case in cases {
        let rows = run.deletes.iter().filter(|row| row.case == case);
        let bars: Vec<RatioBar> = rows.filter_map(|row| Some(bar(row, row.goal?))).collect();
        if !bars.is_empty() {
            let svg = PreEscaped(ratio_bars("times its goal", &bars)?);
            pictures.push(wide_figure(case, &html! { (svg) }));
        }
    }
    Ok(pictures)
}

fn bar(row: &Row, goal: Goal) -> RatioBar {
    let name = format!("{}: {} {}", row.measured, digits(row.figure), row.unit).trim_end().to_owned();
    goal_bar(name, row.figure, goal)
}

/// How many times its goal a figure is, the worse the longer.
pub(super) fn goal_bar(name: String, figure: f64, goal: Goal) -> RatioBar {
    let ratio = match goal {
        Goal::AtMost(bound) => figure / bound,
        Goal::AtLeast(bound) => bound / figure,
    };
    RatioBar {
        name,
        ink: if goal.is_met(figure) { MEASURED } else { MISSED },
        ratio: ratio.clamp(RATIO_MIN, 1.0 / RATIO_MIN.powi(3)),
        interval: None,
    }
}

/// A picture for each case whose space was watched, and one of all rates.
fn courses(run: &DeletesRun) -> Result<Vec<Markup>> {
    let of = |quantity| run.courses.iter().filter(move |course| course.quantity == quantity);
    let mut pictures = of(Quantity::Space).map(space).collect::<Result<Vec<_>>>()?;
    let rates: Vec<&Course> = of(Quantity::Pops).collect();
    if !rates.is_empty() {
        pictures.push(pops(&rates)?);
    }
    Ok(pictures)
}

fn space(course: &Course) -> Result<Markup> {
    let line = |ink, of: fn(&crate::deletes::Point) -> f64| Line {
        ink,
        points: course.points.iter().map(|point| (point.at_s, of(point) / 1e6)).collect(),
    };
    let lines = vec![line(MEASURED, |point| point.figure), line(AGAINST, |point| point.against)];
    let x = Axis::time(course.points.iter().map(|point| point.at_s));
    let y = Axis::linear("MB", lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)));
    let key = legend([(MEASURED, "on disk"), (AGAINST, "in rows that live")]);
    Ok(figure(&format!("Space of {}", course.case), &key, Chart { x, y, lines, lanes: Vec::new() }.svg()?))
}

/// A line for each case, and one for their goal.
fn pops(courses: &[&Course]) -> Result<Markup> {
    let drawn = || courses.iter().enumerate().map(|(number, course)| (Ink(number + 1), course));
    let all = || courses.iter().flat_map(|course| &course.points);
    let end = all().map(|point| point.at_s).fold(0.0, f64::max);
    let goal = all().next().map_or(0.0, |point| point.against);
    let mut lines: Vec<Line> = drawn()
        .map(|(ink, course)| Line {
            ink,
            points: course.points.iter().map(|point| (point.at_s, point.figure)).collect(),
        })
        .collect();
    lines.push(Line { ink: AGAINST, points: vec![(0.0, goal), (end, goal)] });
    let y = Axis::log("pops/s", all().flat_map(|point| [point.figure, point.against]));
    let key = drawn().map(|(ink, course)| (ink, course.case.as_str())).chain([(AGAINST, "goal")]);
    let chart = Chart { x: Axis::time([end]), y, lines, lanes: Vec::new() };
    Ok(figure("Pops from queues and stacks", &legend(key), chart.svg()?))
}

/// All figures, a column for each engine; what misses its goal is bold.
fn table(engines: &[DeletesRun]) -> Markup {
    let mut rows: Vec<&Row> = Vec::new();
    for row in engines.iter().flat_map(|run| &run.deletes) {
        if !rows.iter().any(|other| other.is_same(row)) {
            rows.push(row);
        }
    }
    html! {
        div.scroll {
            table {
                caption { "All figures; bold ones miss their goal" }
                tr {
                    th { "case" } th { "measured" } th { "unit" } th { "goal" }
                    @for run in engines { th { (run.engine) } }
                }
                @for row in rows {
                    tr {
                        td { (row.case) } td { (row.measured) } td { (row.unit) }
                        td { (row.goal.map_or_else(String::new, |goal| goal.to_string())) }
                        @for run in engines { (cell(run.deletes.iter().find(|other| other.is_same(row)))) }
                    }
                }
            }
        }
    }
}

fn cell(row: Option<&Row>) -> Markup {
    html! {
        @match row {
            None => td { "-" },
            Some(row) if row.goal.is_some_and(|goal| !goal.is_met(row.figure)) => td.misses { (digits(row.figure)) },
            Some(row) => td { (digits(row.figure)) },
        }
    }
}
