//! What pictures need of stored runs, whoever wrote them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::LatencySummary;
use crate::Result;
use crate::paper::record;
use crate::recording::Recording;

/// A stored run, read for [`super::html`].
///
/// It is read from one JSON object. All of its fields can be missing, but not all of these: `phases`, as `terrace bench
/// ycsb` and `terrace bench db` write them; `results` and `ratios`, as `terrace-compare` does; or those of a paper's
/// experiment (`id`, `series`, `relations`). An array stands for a run of its phases or experiments. `machine` and
/// `calibration` can be any JSON, and are shown as they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stored {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) command: Option<String>,
    pub(super) version: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) machine: Value,
    pub(super) calibration: Value,
    pub(super) phases: Vec<Phase>,
    pub(super) results: Vec<Figure>,
    pub(super) ratios: Vec<Ratio>,
    pub(super) experiments: Vec<record::Run>,
}

/// A phase of a load generator; a part of [`super::PhaseReport`].
#[derive(Debug, Deserialize)]
pub(super) struct Phase {
    #[serde(default)]
    pub engine: String,
    #[serde(default)]
    pub profile: String,
    pub workload: String,
    pub ops_per_s: f64,
    #[serde(default)]
    pub latency_us: BTreeMap<String, LatencySummary>,
    #[serde(default)]
    pub cpu_us_per_op: Option<f64>,
    #[serde(default)]
    pub write_amplification: Option<f64>,
    #[serde(default)]
    pub space_bytes: Option<u64>,
    #[serde(default)]
    pub logical_bytes: Option<u64>,
    #[serde(default)]
    pub syncs: BTreeMap<String, u64>,
    #[serde(default)]
    pub cache_hit_ratio: Option<f64>,
    #[serde(default)]
    pub stall_ms: Option<f64>,
    #[serde(default)]
    pub recording: Recording,
}

/// One metric of one engine in one workload of a comparison.
#[derive(Debug, Deserialize)]
pub(super) struct Figure {
    pub engine: String,
    pub workload: String,
    pub metric: String,
    #[serde(default)]
    pub unit: String,
    pub median: Option<f64>,
    #[serde(default)]
    pub rounds: Vec<f64>,
}

/// How Terrace does beside one peer; above 1, it does better.
#[derive(Debug, Deserialize)]
pub(super) struct Ratio {
    pub workload: String,
    pub metric: String,
    pub peer: String,
    pub advantage: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Stored {
    /// Reads a run; `name` is what it is called on the page, usually that of its file.
    ///
    /// # Errors
    /// JSON in which there is nothing to draw, or a field that is not what it must be.
    pub fn new(name: impl Into<String>, json: Value) -> Result<Self> {
        let name = name.into();
        let part = |json: &Value| if json.get("relations").is_some() { "experiments" } else { "phases" };
        let whole = match json {
            Value::Array(parts) => {
                let field = parts.first().map_or("phases", part);
                serde_json::json!({ field: parts })
            }
            Value::Object(_) if part(&json) == "experiments" => serde_json::json!({ "experiments": [json] }),
            whole => whole,
        };
        let mut run: Self = serde_json::from_value(whole).map_err(|error| format!("{name}: {error}"))?;
        if run.phases.is_empty()
            && run.results.is_empty()
            && run.ratios.is_empty()
            && run.experiments.is_empty()
        {
            return Err(format!("{name}: neither phases, results, ratios nor relations to draw").into());
        }
        if let Some(first) = run.experiments.first() {
            run.version.get_or_insert_with(|| first.version.clone());
            run.seed.get_or_insert(first.seed);
        }
        run.name = name;
        Ok(run)
    }
}
