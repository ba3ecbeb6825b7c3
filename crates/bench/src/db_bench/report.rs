//! The figures of one benchmark as a JSON object.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Benchmark, Config, Tally};
use crate::recording::Recording;
use crate::report::{Counted, LatencySummary};
use crate::store::{Counters, Store};

/// The figures of one benchmark; counters are differences over it.
#[derive(Clone, Debug, Serialize)]
pub struct BenchmarkReport {
    /// Name of the engine.
    pub engine: String,
    /// Name of the engine's configuration.
    pub profile: String,
    /// Name of the benchmark.
    pub workload: String,
    /// Operations done.
    pub operations: u64,
    /// Threads, a writer behind readers left out.
    pub threads: usize,
    /// Size of a key.
    pub key_bytes: usize,
    /// Size of a value.
    pub value_bytes: usize,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// Duration.
    pub seconds: f64,
    /// Operations per second of that duration.
    pub ops_per_s: f64,
    /// Keys that were looked for and those that were found, where keys were.
    pub found_of_tried: Option<(u64, u64)>,
    /// Latencies by operation, the choice of the next key included.
    pub latency_us: BTreeMap<&'static str, LatencySummary>,
    /// What the store counted.
    #[serde(flatten)]
    pub counted: Counted,
    /// What happened in the course of the benchmark.
    pub recording: Recording,
}

impl BenchmarkReport {
    pub(super) fn new(
        config: &Config,
        benchmark: Benchmark,
        store: &dyn Store,
        tally: &Tally,
        since: &Counters,
        (recording, latency_us): (Recording, BTreeMap<&'static str, LatencySummary>),
    ) -> Self {
        let seconds = tally.seconds();
        Self {
            engine: store.engine().to_owned(),
            profile: store.profile().to_owned(),
            workload: benchmark.name().to_owned(),
            operations: tally.done,
            threads: config.threads,
            key_bytes: config.key_size,
            value_bytes: config.value_size,
            seed: config.seed,
            seconds,
            ops_per_s: tally.done as f64 / seconds,
            found_of_tried: tally.lookups.map(|lookups| (lookups.found, lookups.tried)),
            latency_us,
            counted: Counted::from(since),
            recording,
        }
    }
}
