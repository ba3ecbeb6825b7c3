//! Section of the page: a paper's figures and tables, run again: series, and whether the paper's relations hold.

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::{Chart, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run};
use crate::Result;
use crate::paper::record::{self, DeviceKind, Run, Series};
use crate::report::Stored;

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

fn section(name: &str, experiment: &Run) -> Result<Markup> {
    let device = &experiment.device;
    let model = device.model.iter().map(|(name, value)| format!("{name} {value}"));
    let model = model.collect::<Vec<_>>().join(", ");
    let kind = match device.kind {
        DeviceKind::Simulated => "simulated",
        DeviceKind::Real => "real",
    };
    Ok(html! {
        h2 { (name) ": " (experiment.title) }
        p {
            (experiment.paper) ". " (experiment.workload) ". Device: " (device.name) ", " (kind)
            @if !model.is_empty() { " (" (model) ")" }
            ". Sizes are the paper's divided by " (experiment.scale) ". Seed " (experiment.seed)
            ". Terrace " (experiment.provenance.version) "."
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
fn pictures(experiment: &Run) -> Result<Vec<Markup>> {
    let mut axes: Vec<&record::Axis> = Vec::new();
    for series in &experiment.series {
        if !axes.contains(&&series.y) {
            axes.push(&series.y);
        }
    }
    let picture = |y: &record::Axis| {
        let shown: Vec<&Series> = experiment.series.iter().filter(|series| series.y == *y).collect();
        let points = || shown.iter().flat_map(|series| &series.points);
        let lines = shown.iter().enumerate().map(|(ink, series)| Line {
            ink: Ink(ink),
            points: series.points.iter().map(|&[x, y]| (x, y)).collect(),
        });
        let chart = Chart {
            x: axis(&experiment.x, points().map(|&[x, _]| x).collect()),
            y: axis(y, points().map(|&[_, y]| y).collect()),
            lines: lines.collect(),
            lanes: Vec::new(),
        };
        let key = shown.iter().enumerate().map(|(ink, series)| (Ink(ink), series.name.as_str()));
        Ok(figure(&titled(y), &legend(key), chart.svg()?))
    };
    axes.into_iter().map(picture).collect()
}

fn axis(coordinate: &record::Axis, values: Vec<f64>) -> Axis {
    let title = titled(coordinate);
    if !coordinate.categories.is_empty() {
        Axis::named(&title, &coordinate.categories)
    } else if coordinate.logarithmic {
        Axis::log(&title, values)
    } else {
        Axis::linear(&title, values)
    }
}

fn titled(coordinate: &record::Axis) -> String {
    match coordinate.unit.as_str() {
        "" => coordinate.label.clone(),
        unit => format!("{}, {unit}", coordinate.label),
    }
}

fn relations(experiment: &Run) -> Markup {
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
