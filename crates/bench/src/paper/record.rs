//! The record of a run of a figure: plain data, written as JSON, drawn by whoever reads it.
//!
//! A [`Run`] is complete in itself: what was run, on what, how each series was configured, every point, and whether
//! each relation that the paper claims holds. Series with equal `y` axes belong into one picture; all share the `x`
//! axis.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::Provenance;

/// One run of one figure or table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the experiment, such as `bolt-4a`.
    pub id: String,
    /// The paper, in a word.
    pub paper: String,
    /// What the figure or table shows.
    pub title: String,
    /// The load.
    pub workload: String,
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// What it ran on.
    pub device: DeviceRecord,
    /// The paper's sizes were divided by this.
    pub scale: f64,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// What all series are drawn over.
    pub x: Axis,
    /// What was measured.
    pub series: Vec<Series>,
    /// Series of the paper's figure that were not run, for want of what they need.
    pub missing: Vec<MissingSeries>,
    /// What the paper claims, held against the series.
    pub relations: Vec<Relation>,
    /// Where this set-up is not the paper's.
    pub deviations: Vec<String>,
}

/// The device under the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Whether times are virtual or real. Never draw the two beside each other without saying which is which.
    pub kind: DeviceKind,
    /// Name of the simulated device; of a real one, that it is one.
    pub name: String,
    /// Bandwidths, latencies and depth, with their units; empty for a real device.
    pub model: BTreeMap<String, String>,
}

/// Where times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A model, in virtual time.
    Simulated,
    /// The machine's own file system, in real time.
    Real,
}

/// What a coordinate means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// Its unit; empty for ratios and counts.
    pub unit: String,
    /// Whether a logarithmic scale suits it.
    pub logarithmic: bool,
    /// Names of the coordinates 0, 1, ... where they are not numbers; otherwise empty.
    pub categories: Vec<String>,
}

impl Axis {
    /// A linear axis of numbers.
    #[must_use]
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.into(), logarithmic: false, categories: Vec::new() }
    }

    /// A logarithmic axis of numbers.
    #[must_use]
    pub fn logarithmic(label: &str, unit: &str) -> Self {
        Self { logarithmic: true, ..Self::linear(label, unit) }
    }

    /// An axis of names.
    #[must_use]
    pub fn named(label: &str, names: &[&str]) -> Self {
        Self { categories: names.iter().map(|&name| name.into()).collect(), ..Self::linear(label, "") }
    }
}

/// One line, or one row of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Name of the store's profile, or `custom`.
    pub profile: String,
    /// The settings that matter, with their units.
    pub configuration: BTreeMap<String, String>,
    /// What the second coordinate means.
    pub y: Axis,
    /// In ascending order of `x`.
    pub points: Vec<[f64; 2]>,
}

/// A series that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSeries {
    /// Its name in the paper.
    pub name: String,
    /// What it needs and the engine or the benchmark does not have.
    pub needs: String,
}

/// A claim of the paper, and how it came out here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// What is compared.
    pub name: String,
    /// What the paper says, with the bounds by which it is judged.
    pub expected: String,
    /// What was measured.
    pub measured: String,
    /// Whether the measured lies within the bounds.
    pub holds: bool,
}
