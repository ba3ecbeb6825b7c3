//! The experiments of the papers that Terrace follows.
//!
//! `catalogue` lists every figure and table of the five papers. Those whose mechanism is missing are included, and
//! refused with the name of what they need. [`run`] runs one on a [`Machine`] and returns a [`record::Run`], in which
//! the paper's claims are compared with the measurement; a claim that does not hold is reported as such.
//!
//! The parts: `machine` provides time, threads and files, virtual or real; `client` carries out the actions of
//! [`crate::workload`] and checks every value; `timeline` sorts events by time; `figures` has the experiments that
//! can be run, and `relation` their checks; `calibrate` measures what virtual time charges to compactions and reads.
//!
//! Sizes are the papers', divided by a scale. The store never knows that it is in an experiment.

mod calibrate;
mod catalogue;
mod client;
mod experiment;
mod figures;
mod lab_env;
mod machine;
pub mod record;
mod record_cache;
mod relation;
mod text;
mod timeline;

pub use calibrate::{Calibration, calibrate};
pub use catalogue::experiments;
pub(crate) use client::Records;
pub(crate) use experiment::Setting;
pub use experiment::{Experiment, Need, State};
pub(crate) use figures::{at_scale, closed_loop};
pub(crate) use machine::{Kept, Lab};
pub(crate) use timeline::Latencies;

pub use machine::{Costs, Machine, ReadCosts};
pub use text::{details, list, text};

use std::time::Duration;

use self::experiment::{Figure, MissingPart, missing_series};
use self::record::Run;
use crate::Result;
use crate::report::Provenance;

/// What the user may choose about a run.
#[derive(Clone, Debug)]
pub struct Choice {
    /// In place of the experiment's own simulated device.
    pub machine: Option<Machine>,
    /// In place of the experiment's own scale; at least 1.
    pub scale: Option<f64>,
    /// What a flush of a simulated device takes at the paper's scale, in place of the device's own.
    pub sync: Option<Duration>,
    /// Names the streams of random numbers, and the order of threads.
    pub seed: u64,
}

/// The experiment of that name.
///
/// # Errors
/// A name that no experiment has.
pub fn find(id: &str) -> Result<&'static Experiment> {
    experiments()
        .find(|experiment| experiment.id == id)
        .ok_or_else(|| format!("unknown experiment {id:?}: `terrace bench paper list` has them").into())
}

/// Whether an experiment can be run so.
///
/// # Errors
/// What it needs and there is not; a scale below 1.
pub fn check(experiment: &Experiment, choice: &Choice) -> Result<()> {
    runnable(experiment, choice).map(|_| ())
}

/// What runs an experiment, what it lacks, and its scale.
fn runnable(experiment: &Experiment, choice: &Choice) -> Result<(Figure, &'static [MissingPart], f64)> {
    let (figure, missing) = match experiment.state {
        State::Runs { figure, missing } => (figure, missing),
        State::Needs(needs) => {
            let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
            return Err(format!("{} cannot be run yet: it needs {}", experiment.id, needs.join("; ")).into());
        }
    };
    let scale = choice.scale.unwrap_or(experiment.scale);
    if !(scale.is_finite() && scale >= 1.0) {
        return Err("the scale divides the paper's sizes: it must be at least 1".into());
    }
    Ok((figure, missing, scale))
}

/// Runs an experiment.
///
/// # Errors
/// As [`check`]; whatever the store reports.
pub fn run(experiment: &Experiment, choice: &Choice) -> Result<Run> {
    let (figure, missing, scale) = runnable(experiment, choice)?;
    let machine = match &choice.machine {
        Some(machine) => machine.clone(),
        None => Machine::preset(experiment.device)?,
    };
    let machine = match choice.sync {
        Some(sync) => machine.with(&format!("flushes of {sync:?}"), |model| model.flush_latency = sync),
        None => machine,
    };
    let findings = figure(&Setting { machine, scale, seed: choice.seed })?;
    Ok(Run {
        id: experiment.id.into(),
        paper: experiment.paper().into(),
        title: experiment.title.into(),
        workload: experiment.workload.into(),
        provenance: Provenance::here(),
        device: findings.machine.record(),
        scale,
        seed: choice.seed,
        x: findings.x,
        series: findings.series,
        missing: missing_series(missing),
        relations: findings.relations,
        deviations: findings.deviations.into_iter().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests;
