//! The figures of one benchmark as an object for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Benchmark, Config, Tally};
use crate::recording::Recording;
use crate::report::{Amounts, Io, LatencySummary};
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
    /// Bytes written and read.
    pub io: Io,
    /// Barriers by cause.
    pub syncs: Amounts,
    /// Bytes of keys and values written.
    pub user_bytes_written: u64,
    /// Bytes written to devices per byte written by the benchmark; none where it wrote nothing.
    pub write_amplification: Option<f64>,
    /// Bytes of disk in use at the end.
    pub space_bytes: u64,
    /// Time that writers were held up.
    pub stall_ms: f64,
    /// Share of block reads that the cache answered; none where there were none.
    pub cache_hit_ratio: Option<f64>,
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
        let (written, seconds) = (Amounts::from(&since.written), tally.seconds());
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
            write_amplification: since.write_amplification(),
            io: Io { written_bytes: written, read_bytes: Amounts::from(&since.read) },
            syncs: Amounts::from(&since.syncs),
            user_bytes_written: since.user_bytes_written,
            space_bytes: since.space_bytes,
            stall_ms: since.stall_micros as f64 / 1000.0,
            cache_hit_ratio: since.cache_hit_ratio(),
            recording,
        }
    }
}
