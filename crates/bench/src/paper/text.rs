//! Experiments and their runs as text for people.

use std::fmt::Write as _;

use super::experiment::{Experiment, State};
use super::record::{DeviceKind, Run, Series};
use crate::report::table;

/// Series of more points are given by their extremes and mean.
const POINTS_MAX: usize = 24;

/// A line for each experiment: name, state, title.
#[must_use]
pub fn list<'a>(experiments: impl Iterator<Item = &'a Experiment>) -> String {
    let row = |experiment: &Experiment| {
        vec![experiment.id.to_owned(), state(&experiment.state), experiment.title.to_owned()]
    };
    table(&["experiment", "state", "shows"], experiments.map(row).collect())
}

fn state(state: &State) -> String {
    match state {
        State::Runs { missing: [], .. } => "runs".into(),
        State::Runs { .. } => "runs in part".into(),
        State::Needs(_) => "mechanism missing".into(),
    }
}

/// All that is known of an experiment.
#[must_use]
pub fn details(experiment: &Experiment) -> String {
    let state = match &experiment.state {
        State::Runs { missing, .. } => {
            let missing = missing.iter().map(|(name, need)| format!("; without {name}: it needs {need}"));
            format!("runs{}", missing.collect::<String>())
        }
        State::Needs(needs) => {
            let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
            format!("cannot be run yet: it needs {}", needs.join("; "))
        }
    };
    let scale = format!("divided by {} unless told otherwise", experiment.scale);
    let lines = [
        ("shows", experiment.title),
        ("workload", experiment.workload),
        ("compares", experiment.configurations),
        ("measures", experiment.metric),
        ("expected", experiment.expected),
        ("device", experiment.device),
        ("sizes", &scale),
        ("state", &state),
    ];
    let mut text = format!("{}\n", experiment.id);
    for (name, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<9} {value}");
    }
    text
}

/// A run: its setting, its series, and how the paper's claims came out.
#[must_use]
pub fn text(run: &Run) -> String {
    let time = match run.device.kind {
        DeviceKind::Simulated => "simulated device, virtual time",
        DeviceKind::Real => "real device and time",
    };
    let mut text = format!(
        "{}: {}\n{}\n{} ({time}), sizes divided by {}, seed {}\n\n",
        run.id, run.title, run.workload, run.device.name, run.scale, run.seed
    );
    for series in &run.series {
        text += &points(run, series);
    }
    text.push('\n');
    for relation in &run.relations {
        let verdict = if relation.holds { "holds" } else { "DOES NOT HOLD" };
        let (name, expected, measured) = (&relation.name, &relation.expected, &relation.measured);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{verdict}: {name}: {measured}\n  expected: {expected}");
    }
    for missing in &run.missing {
        let _ = writeln!(text, "not run: {}: it needs {}", missing.name, missing.needs);
    }
    for deviation in &run.deviations {
        let _ = writeln!(text, "unlike the paper: {deviation}");
    }
    text
}

fn points(run: &Run, series: &Series) -> String {
    let (x, y) = (&run.x, &series.y);
    let unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let head = format!("{}: {}{} by {}{}\n", series.name, y.label, unit(&y.unit), x.label, unit(&x.unit));
    let values = || series.points.iter().map(|point| point[1]);
    let body = if series.points.len() > POINTS_MAX {
        let mean = values().sum::<f64>() / series.points.len() as f64;
        let (least, greatest) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        format!("{} points, least {least:.2}, mean {mean:.2}, greatest {greatest:.2}", series.points.len())
    } else {
        let name = |x: f64| run.x.categories.get(x as usize).cloned().unwrap_or_else(|| format!("{x}"));
        let points: Vec<_> = series.points.iter().map(|&[x, y]| format!("{}: {y:.2}", name(x))).collect();
        points.join("  ")
    };
    format!("{head}  {body}\n")
}
