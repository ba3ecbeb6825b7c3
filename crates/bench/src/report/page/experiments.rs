//! A paper's figures and tables, run again: series, and how the paper's relations came out.

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::{Chart, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run};
use crate::Result;
use crate::report::Stored;
use crate::report::stored::{Coordinate, Experiment, Series};

/// One section for each experiment.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let mut sections = Vec::new();
    for run in runs {
        for experiment in &run.experiments {
            sections.push(section(&of_run(runs, run, &experiment.id), experiment)?);
        }
    }
    Ok(html! { @for section in &sections { (section) } })
}

fn section(name: &str, experiment: &Experiment) -> Result<Markup> {
    let device = &experiment.device;
    let model = device.model.iter().map(|(name, value)| format!("{name} {value}"));
    let model = model.collect::<Vec<_>>().join(", ");
    Ok(html! {
        h2 { (name) ": " (experiment.title) }
        p {
            (experiment.paper) ". " (experiment.workload) ". Device: " (device.name) ", " (device.kind)
            @if !model.is_empty() { " (" (model) ")" }
            @if let Some(scale) = experiment.scale { ". Sizes are the paper's divided by " (scale) }
            @if let Some(seed) = experiment.seed { ". Seed " (seed) }
            @if let Some(version) = &experiment.version { ". Terrace " (version) }
            "."
        }
        div.pictures { @for picture in pictures(experiment)? { (picture) } }
        (relations(experiment))
        @if !experiment.missing.is_empty() {
            h3 { "Not run" }
            ul { @for missing in &experiment.missing { li { (missing.name) ": needs " (missing.needs) } } }
        }
        @if !experiment.deviations.is_empty() {
            h3 { "Where this is not the paper's set-up" }
            ul { @for deviation in &experiment.deviations { li { (deviation) } } }
        }
    })
}

/// A picture for each kind of vertical axis.
fn pictures(experiment: &Experiment) -> Result<Vec<Markup>> {
    let mut axes: Vec<&Coordinate> = Vec::new();
    for series in &experiment.series {
        if !axes.contains(&&series.y) {
            axes.push(&series.y);
        }
    }
    let picture = |y: &Coordinate| {
        let shown: Vec<&Series> = experiment.series.iter().filter(|series| series.y == *y).collect();
        let points = || shown.iter().flat_map(|series| &series.points);
        let lines = shown
            .iter()
            .enumerate()
            .map(|(ink, series)| Line { ink: Ink(ink), points: series.points.clone() });
        let chart = Chart {
            x: axis(&experiment.x, points().map(|point| point.0).collect()),
            y: axis(y, points().map(|point| point.1).collect()),
            lines: lines.collect(),
            lanes: Vec::new(),
        };
        let key = shown.iter().enumerate().map(|(ink, series)| (Ink(ink), series.name.as_str()));
        Ok(figure(&titled(y), &legend(key), chart.svg()?))
    };
    axes.into_iter().map(picture).collect()
}

fn axis(coordinate: &Coordinate, values: Vec<f64>) -> Axis {
    let title = titled(coordinate);
    if !coordinate.categories.is_empty() {
        Axis::named(&title, &coordinate.categories)
    } else if coordinate.logarithmic {
        Axis::log(&title, values)
    } else {
        Axis::linear(&title, values)
    }
}

fn titled(coordinate: &Coordinate) -> String {
    match coordinate.unit.as_str() {
        "" => coordinate.label.clone(),
        unit => format!("{}, {unit}", coordinate.label),
    }
}

fn relations(experiment: &Experiment) -> Markup {
    html! {
        @if !experiment.relations.is_empty() {
            div.scroll {
                table {
                    caption { "What the paper claims" }
                    tr { th { "relation" } th { "expected" } th { "measured" } th { "holds" } }
                    @for relation in &experiment.relations {
                        tr {
                            td { (relation.name) }
                            td { (relation.expected) }
                            td { (relation.measured) }
                            @if relation.holds { td { "yes" } } @else { td.misses { "NO" } }
                        }
                    }
                }
            }
        }
    }
}
