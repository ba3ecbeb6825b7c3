//! Reports as aligned tables for people.

use std::fmt::Write as _;

use super::PhaseReport;

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
            format!("{:.1}", report.counted.stall_ms),
            megabytes(report.counted.io.written_bytes.total),
            optional(report.counted.write_amplification),
            megabytes(report.counted.io.read_bytes.total),
            report.counted.syncs.total.to_string(),
            optional(report.counted.cache_hit_ratio.map(|ratio| ratio * 100.0)),
            megabytes(report.counted.space_bytes),
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
}
