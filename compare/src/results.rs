//! What is measured in a phase, in a form that can be sent, stored and read again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use terrace_bench::recording::Recording;

use crate::latency::Percentiles;
use crate::store::Durability;

/// Rates.
pub const OPS_PER_S: &str = "ops/s";
/// Rates that count the time until the store is at rest.
pub const DRAINED_OPS_PER_S: &str = "drained ops/s";
/// Rates of scans.
pub const ROWS_PER_S: &str = "rows/s";

/// One figure of a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub metric: String,
    pub unit: String,
    pub higher_is_better: bool,
    pub value: f64,
}

/// All that was measured in one phase of one turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name of the phase.
    pub workload: String,
    /// What its writes survive; `None` when it writes nothing.
    pub durability: Option<Durability>,
    pub figures: Vec<Figure>,
    /// Operations that ended in each tenth of a second.
    pub series: Vec<u64>,
    /// Of reads and of writes.
    pub latency: BTreeMap<String, Percentiles>,
    /// 99th percentiles of those that ended in each second, in microseconds.
    #[serde(default)]
    pub p99: BTreeMap<String, Vec<Option<f64>>>,
    /// What must be known to read the figures.
    pub notes: Vec<String>,
    /// What Terrace says of itself, from the beginning until it was at rest. None of the figures is made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terrace_course: Option<Box<Recording>>,
}

impl PhaseResult {
    /// Nothing measured yet.
    pub fn new(workload: &str, durability: Option<Durability>) -> Self {
        Self {
            workload: workload.to_owned(),
            durability,
            figures: Vec::new(),
            series: Vec::new(),
            latency: BTreeMap::new(),
            p99: BTreeMap::new(),
            notes: Vec::new(),
            terrace_course: None,
        }
    }

    /// Adds a figure of which more is better.
    pub fn more(&mut self, metric: &str, unit: &str, value: f64) {
        self.add(metric, unit, true, value);
    }

    /// Adds a figure of which less is better.
    pub fn less(&mut self, metric: &str, unit: &str, value: f64) {
        self.add(metric, unit, false, value);
    }

    /// Adds a figure, unless nothing was there to be measured.
    fn add(&mut self, metric: &str, unit: &str, higher_is_better: bool, value: f64) {
        if value.is_finite() {
            let (metric, unit) = (metric.to_owned(), unit.to_owned());
            self.figures.push(Figure { metric, unit, higher_is_better, value });
        }
    }

    /// The figure of that name.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value)
    }
}
