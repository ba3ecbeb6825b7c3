//! The figures of one phase as a JSON object.

use std::collections::BTreeMap;

use serde::Serialize;

use super::LatencySummary;
use crate::recording::Recording;
use crate::store::{ByCause, Counters};

/// The figures of one phase; counters are differences over the phase, its drain included.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// Name of the engine.
    pub engine: String,
    /// Name of the engine's configuration.
    pub profile: String,
    /// Name of the phase.
    pub workload: String,
    /// Records in the store at the end.
    pub records: u64,
    /// Operations done.
    pub operations: u64,
    /// Load threads.
    pub threads: usize,
    /// Size of the first key, which is that of all keys where the size is fixed.
    pub key_bytes: usize,
    /// Size of every value.
    pub value_bytes: usize,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// Intended rate of an open loop; none in a closed one.
    pub target_ops_per_s: Option<f64>,
    /// Duration without the drain.
    pub seconds: f64,
    /// Operations per second of that duration.
    pub ops_per_s: f64,
    /// Time the background work took to settle after a load; 0 in other phases.
    pub drain_s: f64,
    /// Upper bound of what the load generator itself costs, in microseconds of one thread.
    pub harness_us_per_op: f64,
    /// Latencies by operation, from the intended start in an open loop.
    pub latency_us: BTreeMap<&'static str, LatencySummary>,
    /// What the store counted.
    #[serde(flatten)]
    pub counted: Counted,
    /// Bytes of keys and values of all records at the end.
    pub logical_bytes: u64,
    /// Processor time of the whole process, load generator included, in microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// Values read that were what the workload had written.
    pub verified: u64,
    /// Answers that were not.
    pub wrong: u64,
    /// What happened in the course of the phase, its drain included.
    pub recording: Recording,
}

/// Figures of the store's own counters.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// Bytes written and read.
    pub io: Io,
    /// Barriers by cause.
    pub syncs: Amounts,
    /// Bytes of keys and values written by the workload.
    pub user_bytes_written: u64,
    /// Bytes written to devices per byte written by the workload; none where it wrote nothing.
    pub write_amplification: Option<f64>,
    /// Bytes of tables that each device was given, by its id; none where there is but one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub device_bytes: BTreeMap<u16, u64>,
    /// Bytes of disk in use at the end.
    pub space_bytes: u64,
    /// Time that writers were held up.
    pub stall_ms: f64,
    /// Share of block reads that the cache answered; none where there were none.
    pub cache_hit_ratio: Option<f64>,
}

impl From<&Counters> for Counted {
    fn from(counters: &Counters) -> Self {
        Self {
            io: Io {
                written_bytes: Amounts::from(&counters.written),
                read_bytes: Amounts::from(&counters.read),
            },
            syncs: Amounts::from(&counters.syncs),
            user_bytes_written: counters.user_bytes_written,
            write_amplification: counters.write_amplification(),
            device_bytes: counters.device_bytes.clone(),
            space_bytes: counters.space_bytes,
            stall_ms: counters.stall_micros as f64 / 1000.0,
            cache_hit_ratio: counters.cache_hit_ratio(),
        }
    }
}

/// Bytes moved between memory and files.
#[derive(Clone, Debug, Serialize)]
pub struct Io {
    /// Written, by cause.
    pub written_bytes: Amounts,
    /// Read, by cause.
    pub read_bytes: Amounts,
}

/// Amounts by cause and their sum.
#[derive(Clone, Debug, Serialize)]
pub struct Amounts {
    /// Sum over all causes.
    pub total: u64,
    /// By the engine's own names of the causes.
    #[serde(flatten)]
    pub by_cause: ByCause,
}

impl From<&ByCause> for Amounts {
    fn from(by_cause: &ByCause) -> Self {
        Self { total: by_cause.values().sum(), by_cause: by_cause.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_carry_their_sum() {
        let amounts = Amounts::from(&ByCause::from([("wal", 2), ("compaction", 3)]));
        assert_eq!(serde_json::to_string(&amounts).unwrap(), r#"{"total":5,"compaction":3,"wal":2}"#);
    }
}
