//! Reports: one object per phase for programs, aligned tables for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

pub use crate::latency::LatencySummary;
use crate::store::ByCause;

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
    /// Bytes written and read.
    pub io: Io,
    /// Barriers by cause.
    pub syncs: Amounts,
    /// Bytes of keys and values written by the workload.
    pub user_bytes_written: u64,
    /// Bytes written to devices per byte written by the workload; none where it wrote nothing.
    pub write_amplification: Option<f64>,
    /// Bytes of disk in use at the end.
    pub space_bytes: u64,
    /// Bytes of keys and values of all records at the end.
    pub logical_bytes: u64,
    /// Processor time of the whole process, load generator included, in microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// Time that writers were held up.
    pub stall_ms: f64,
    /// Share of block reads that the cache answered; none where there were none.
    pub cache_hit_ratio: Option<f64>,
    /// Values read that were what the workload had written.
    pub verified: u64,
    /// Answers that were not.
    pub wrong: u64,
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

/// The reports as a JSON array.
///
/// # Errors
/// Only what the JSON writer reports.
pub fn json(reports: &[PhaseReport]) -> crate::Result<String> {
    Ok(serde_json::to_string_pretty(reports)? + "\n")
}

/// The reports as text: the setting, a table of phases, a table of latencies.
#[must_use]
pub fn text(reports: &[PhaseReport]) -> String {
    let mut text = String::new();
    if let Some(first) = reports.first() {
        let loop_kind = match first.target_ops_per_s {
            Some(target) => format!("open loop at {target} operations/s"),
            None => "closed loop".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} ({}), {}-byte keys, {}-byte values, threads: {}, {loop_kind}, seed {}\n\
             load generator: at most {:.2} us per operation and thread\n",
            first.engine,
            first.profile,
            first.key_bytes,
            first.value_bytes,
            first.threads,
            first.seed,
            reports.iter().map(|report| report.harness_us_per_op).fold(0.0, f64::max),
        );
    }
    text + &phases(reports) + "\n" + &latencies(reports)
}

fn phases(reports: &[PhaseReport]) -> String {
    let head = [
        "phase",
        "operations",
        "seconds",
        "ops/s",
        "drain s",
        "cpu us/op",
        "stall ms",
        "written MB",
        "w-amp",
        "read MB",
        "syncs",
        "hit %",
        "disk MB",
        "data MB",
        "verified",
        "wrong",
    ];
    let rows = reports.iter().map(|report| {
        vec![
            report.workload.clone(),
            report.operations.to_string(),
            format!("{:.2}", report.seconds),
            format!("{:.0}", report.ops_per_s),
            format!("{:.2}", report.drain_s),
            optional(report.cpu_us_per_op),
            format!("{:.1}", report.stall_ms),
            megabytes(report.io.written_bytes.total),
            optional(report.write_amplification),
            megabytes(report.io.read_bytes.total),
            report.syncs.total.to_string(),
            optional(report.cache_hit_ratio.map(|ratio| ratio * 100.0)),
            megabytes(report.space_bytes),
            megabytes(report.logical_bytes),
            report.verified.to_string(),
            report.wrong.to_string(),
        ]
    });
    table(&head, rows.collect())
}

fn latencies(reports: &[PhaseReport]) -> String {
    let head = ["phase", "latency, us", "count", "mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut rows = Vec::new();
    for report in reports {
        for (operation, latency) in &report.latency_us {
            let mut row = vec![report.workload.clone(), (*operation).to_owned(), latency.count.to_string()];
            let quantiles = [latency.p50, latency.p95, latency.p99, latency.p999, latency.max];
            row.extend([latency.mean].into_iter().chain(quantiles).map(|micros| format!("{micros:.1}")));
            rows.push(row);
        }
    }
    table(&head, rows)
}

/// Columns as wide as their widest cell; those that hold text to the left, figures to the right.
#[must_use]
pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut lines = vec![head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows);
    let columns = 0..head.len();
    let widths: Vec<usize> =
        columns.map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0)).collect();
    let is_text = |column: usize| {
        lines[1..].iter().all(|line| line[column].starts_with(|first: char| first.is_ascii_alphabetic()))
    };
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            if is_text(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn optional(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["load".to_owned(), "1".to_owned()], vec!["a".to_owned(), "1000".to_owned()]];
        assert_eq!(table(&["phase", "ops"], rows), "phase   ops\nload      1\na      1000\n");
    }

    #[test]
    fn amounts_carry_their_sum() {
        let amounts = Amounts::from(&ByCause::from([("wal", 2), ("merge", 3)]));
        assert_eq!(serde_json::to_string(&amounts).unwrap(), r#"{"total":5,"merge":3,"wal":2}"#);
    }
}
