//! Recordings: the course of a phase, with throughput, latencies, counters and background jobs by interval.
//!
//! 1. Each load thread has a [`Probe`], which keeps the latencies of the interval in histograms that no other thread
//!    touches. At its first operation of a new interval it hands them over and goes on with empty ones.
//! 2. The [`Recorder`] samples the store's counters at the end of every interval, on a thread that does nothing else
//!    ([`Recorder::sampling`]), and adds up the histograms that the probes have handed over.
//! 3. An interval is a tenth of a second in the first half minute, and a second from then on. A phase that lasted
//!    longer is reported in seconds throughout.
//! 4. Jobs and stalls come from the store as [`Event`]s, which [`EventLog`] receives from Terrace, with its samples of the load.

mod events;
mod recorder;

use std::collections::BTreeMap;
use std::time::Instant;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

pub use self::events::{Event, EventLog, Job};
pub use self::recorder::{Probe, Recorder};

/// The course of one phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// Intended length of an interval, in seconds; each states its own.
    pub interval_s: f64,
    /// Without a gap from the start of the phase to the end of its drain.
    #[serde(serialize_with = "lines")]
    pub intervals: Vec<Interval>,
    /// Jobs and stalls that were going on, in the order of their ends.
    #[serde(serialize_with = "lines")]
    pub spans: Vec<Span>,
    /// Samples of the load, from which what a pacer decides can be told again; none of engines other than Terrace.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "lines")]
    pub samples: Vec<Sample>,
    /// By operation: points of the distribution over the whole phase, as quantile (0 to 1) and microseconds.
    pub latency_curves_us: BTreeMap<String, Curve>,
}

/// A sample of the load.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds from the start of the phase.
    pub at_s: f64,
    /// The sample as text: [`terrace::LoadSample`].
    pub load: String,
}

/// `samples` of a phase that began at `started`.
pub(crate) fn samples_of(started: Instant, samples: Vec<(Instant, String)>) -> Vec<Sample> {
    let since = |at: Instant| at.checked_duration_since(started).map(|at| rounded(at.as_secs_f64()));
    let samples = samples.into_iter();
    samples.filter_map(|(at, load)| Some(Sample { at_s: since(at)?, load })).collect()
}

/// Seconds to the tenth of a millisecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e4).round() / 1e4
}

/// Points of a distribution of latencies: quantile (0 to 1) and microseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve(#[serde(serialize_with = "lines")] pub Vec<(f64, f64)>);

/// One interval; amounts are of the interval alone, sizes as of its end.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Seconds from the start of the phase.
    pub start_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Operations that ended.
    pub operations: u64,
    /// Their latencies, by operation.
    pub latency_us: BTreeMap<String, Tail>,
    /// Bytes written, by cause; causes without any are left out, here and below.
    pub written_bytes: BTreeMap<String, u64>,
    /// Bytes read, by cause.
    pub read_bytes: BTreeMap<String, u64>,
    /// Barriers, by cause.
    pub syncs: BTreeMap<String, u64>,
    /// Time that writers were held up, over all of them.
    pub stall_ms: f64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks read because they were not.
    pub cache_misses: u64,
    /// Bytes of disk in use.
    pub space_bytes: u64,
    /// Bytes of the tables of each level, from level 0 on; none where the engine does not tell.
    pub level_bytes: Vec<u64>,
}

/// Latencies of one kind of operation in one interval, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tail {
    /// Operations.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

/// A job or a stall.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Span {
    /// What it was.
    pub job: Job,
    /// Levels of a compaction, reason of a stall.
    pub detail: String,
    /// Seconds from the start of the phase; 0 if it began before.
    pub start_s: f64,
    /// Its length within the phase.
    pub seconds: f64,
    /// Bytes that it wrote.
    pub bytes: u64,
}

/// Each item in a line of its own, however pretty the JSON around it is.
pub(crate) fn lines<T: Serialize, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let lines: Result<Vec<_>, _> = items.iter().map(serde_json::value::to_raw_value).collect();
    serializer.collect_seq(lines.map_err(S::Error::custom)?)
}
