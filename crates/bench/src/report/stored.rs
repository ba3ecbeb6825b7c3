//! The part of stored runs that pictures need, whichever program has written them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{LatencySummary, Machine, Provenance};
use crate::Result;
use crate::calm::EngineReport;
use crate::deletes::DeletesRun;
use crate::layouts::Cell;
use crate::paper::record;
use crate::punch::PunchRun;
use crate::recording::{Curve, Interval, Recording, Span, Tail};
use crate::values::ValuesRun;

/// A stored run, read for [`super::html`].
///
/// It is read from one JSON object. All of its fields can be missing, but not all of these: `phases`, as `terrace bench
/// ycsb` and `terrace bench db` write them; `results` and `ratios`, as `terrace-compare` does, with its `turns`; those of a paper's
/// experiment (`id`, `series`, `relations`); those of `terrace bench punch` (`punches`, `files`, `churn`); `layout_map`, of `terrace
/// bench layouts`; `deletes`, of `terrace bench deletes`; `values`, of `terrace bench values`; or `calm`, of `terrace bench calm`. An array stands for a run of its phases,
/// experiments or engines that delete. `engines`,
/// `machine` and `calibration` can be any JSON, and are shown as they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stored {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) command: Option<String>,
    pub(super) version: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) engines: Value,
    pub(super) machine: Value,
    pub(super) calibration: Value,
    pub(super) phases: Vec<Phase>,
    pub(super) results: Vec<Figure>,
    pub(super) ratios: Vec<Ratio>,
    pub(super) experiments: Vec<record::Run>,
    /// Engines whose calm was measured.
    pub(super) calm: Vec<EngineReport>,
    /// The map of layouts.
    pub(super) layout_map: Vec<Cell>,
    /// Engines whose deletes were measured.
    pub(super) deletes: Vec<DeletesRun>,
    /// Runs in which large values were measured.
    pub(super) values: Vec<ValuesRun>,
    /// Courses without figures, which stand in `results`.
    #[serde(rename = "turns", deserialize_with = "courses")]
    pub(super) courses: Vec<Phase>,
    /// What holes cost.
    #[serde(skip)]
    pub(super) holes: Option<PunchRun>,
    /// What Terrace says of those of its own, in their order.
    #[serde(skip)]
    pub(super) told: Vec<Phase>,
}

/// One phase of one turn of a comparison.
#[derive(Deserialize)]
struct Turn {
    engine: String,
    workload: String,
    /// Operations that ended in each tenth of a second.
    #[serde(default)]
    series: Vec<u64>,
    #[serde(default)]
    latency: BTreeMap<String, Distribution>,
    /// 99th percentiles of what ended in each second, in microseconds, by operation.
    #[serde(default)]
    p99: BTreeMap<String, Vec<Option<f64>>>,
    /// What Terrace says of itself.
    #[serde(default)]
    terrace_course: Option<Recording>,
}

impl Turn {
    /// The tails of a second.
    fn tails(&self, second: usize) -> BTreeMap<String, Tail> {
        let p99 = self.p99.iter().filter_map(|(kind, p99)| Some((kind, (*p99.get(second)?)?)));
        p99.map(|(kind, p99)| (kind.clone(), Tail { p99, ..Tail::default() })).collect()
    }
}

#[derive(Deserialize)]
struct Distribution {
    #[serde(default)]
    curve: Curve,
}

/// The engine name of the load generator alone. Beside the bars of its rates, the others would be too short to
/// compare.
pub(super) const NO_ENGINE: &str = "empty";

/// Tenths of a second in an interval of a picture.
const TENTHS: usize = 10;

/// The courses of the first turn of each engine that counts: those of later ones would hide one another.
fn courses<'de, D: Deserializer<'de>>(turns: D) -> Result<Vec<Phase>, D::Error> {
    let mut seen = BTreeSet::new();
    let turns = Vec::<Turn>::deserialize(turns)?.into_iter();
    Ok(turns
        .filter(|turn| turn.engine != NO_ENGINE)
        .filter(|turn| seen.insert((turn.engine.clone(), turn.workload.clone())))
        .map(|turn| {
            // The last tenth is not whole.
            let whole = &turn.series[..turn.series.len().saturating_sub(1)];
            let seconds = whole.chunks_exact(TENTHS).enumerate();
            let intervals = seconds.map(|(second, tenths)| Interval {
                start_s: second as f64,
                seconds: 1.0,
                operations: tenths.iter().sum(),
                latency_us: turn.tails(second),
                ..Interval::default()
            });
            let intervals: Vec<_> = intervals.collect();
            let curves = turn.latency.into_iter().map(|(kind, one)| (kind, one.curve));
            Phase {
                engine: turn.engine,
                workload: turn.workload,
                recording: Recording {
                    interval_s: 1.0,
                    intervals,
                    latency_curves_us: curves.collect(),
                    ..Recording::default()
                },
                course: turn.terrace_course,
                ..Phase::default()
            }
        })
        .collect())
}

/// A phase of a load generator; a part of [`super::PhaseReport`].
#[derive(Debug, Default, Deserialize)]
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
    /// What the store says of its own course, where `recording` was taken from outside of it.
    #[serde(skip)]
    pub course: Option<Recording>,
}

impl Phase {
    /// Whether jobs and stalls would be known if there were any: all stores that report them also report their
    /// levels.
    pub fn tells_of_jobs(&self) -> bool {
        let recording = self.course.as_ref().unwrap_or(&self.recording);
        !recording.spans.is_empty() || recording.intervals.iter().any(|one| !one.level_bytes.is_empty())
    }

    /// Jobs and stalls that began before the end of the recording.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        let end = self.recording.intervals.last().map_or(0.0, |last| last.start_s + last.seconds);
        let recording = self.course.as_ref().unwrap_or(&self.recording);
        recording.spans.iter().filter(move |span| span.start_s < end)
    }

    /// What the store says of its own course, as a phase.
    fn told(&self) -> Option<Self> {
        let course = self.course.as_ref()?;
        let mut syncs = BTreeMap::from([("total".to_owned(), 0)]);
        for (cause, count) in course.intervals.iter().flat_map(|interval| &interval.syncs) {
            for name in ["total", cause] {
                *syncs.entry(name.to_owned()).or_default() += count;
            }
        }
        Some(Self {
            engine: self.engine.clone(),
            workload: self.workload.clone(),
            syncs,
            recording: course.clone(),
            ..Self::default()
        })
    }
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

/// Terrace's advantage over one other engine; above 1, Terrace is better.
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
        let part = |json: &Value| match json {
            json if json.get("relations").is_some() => "experiments",
            json if json.get("deletes").is_some() => "deletes",
            json if json.get("values").is_some() => "values",
            _ => "phases",
        };
        let whole = match json {
            Value::Array(parts) => {
                let field = parts.first().map_or("phases", part);
                serde_json::json!({ field: parts })
            }
            Value::Object(_) if part(&json) != "phases" => serde_json::json!({ part(&json): [json] }),
            whole => whole,
        };
        let wrong = |error: serde_json::Error| format!("{name}: {error}");
        let holes = whole.get("punches").map(|_| serde_json::from_value(whole.clone()));
        let holes = holes.transpose().map_err(wrong)?;
        let mut run: Self = serde_json::from_value(whole).map_err(wrong)?;
        if run.phases.is_empty()
            && run.results.is_empty()
            && run.ratios.is_empty()
            && run.experiments.is_empty()
            && run.calm.is_empty()
            && run.layout_map.is_empty()
            && run.deletes.is_empty()
            && run.values.is_empty()
            && holes.is_none()
        {
            return Err(format!(
                "{name}: neither phases, results, ratios, relations, holes, layouts, deletes, values nor calm to draw"
            )
            .into());
        }
        run.holes = holes;
        let experiment =
            run.experiments.first().map(|record::Run { provenance, seed, .. }| (provenance, seed));
        let deletes = run.deletes.first().map(|DeletesRun { provenance, seed, .. }| (provenance, seed));
        let values = run.values.first().map(|ValuesRun { provenance, seed, .. }| (provenance, seed));
        if let Some((provenance, seed)) = experiment.or(deletes).or(values) {
            let Provenance { command, version, commit, machine } = provenance.clone();
            let told = |text: String| (!text.is_empty()).then_some(text);
            (run.command, run.version, run.commit) = (told(command), told(version), told(commit));
            run.machine =
                if machine == Machine::default() { Value::Null } else { serde_json::to_value(machine)? };
            run.seed.get_or_insert(*seed);
        }
        run.told = run.courses.iter().filter_map(Phase::told).collect();
        run.name = name;
        Ok(run)
    }
}
