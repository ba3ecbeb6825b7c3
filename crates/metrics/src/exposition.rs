//! Prometheus' text format, version 0.0.4: what a server answers when it is scraped.

use std::fmt::Write;

use crate::catalogue::{Kind, Metric, catalogue};
use crate::histogram::Buckets;
use crate::picture::{Picture, Reading, Series};

/// The content type of [`prometheus`]'s text, for the answer's header.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of stores as Prometheus reads them. Several stores of one process need a name each ([`Picture::store`]), or
/// their series could not be told apart.
///
/// ```
/// use terrace_metrics::{Picture, prometheus};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrace::Db::open(dir.path())?;
/// let text = prometheus(&[Picture::of(&db.stats())]);
/// assert!(text.contains("# TYPE terrace_flushes_total counter\nterrace_flushes_total 0\n"));
/// # Ok::<(), terrace::Error>(())
/// ```
#[must_use]
pub fn prometheus(pictures: &[Picture<'_>]) -> String {
    let mut text = String::new();
    for metric in catalogue() {
        let mut series = pictures.iter().flat_map(|picture| picture.series(metric)).peekable();
        if series.peek().is_some() {
            write_head(&mut text, metric);
            series.for_each(|series| write_series(&mut text, metric.name, &series));
        }
    }
    text
}

// Writing to a string does not fail.

fn write_head(text: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = write!(text, "# HELP {0} {help}\n# TYPE {0} {kind}\n", metric.name);
}

fn write_series(text: &mut String, name: &str, series: &Series) {
    let labels: Vec<_> = series.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
    match &series.reading {
        Reading::Count(count) => write_sample(text, name, &labels, &count.to_string()),
        Reading::Real(real) => write_sample(text, name, &labels, &number(*real)),
        Reading::Histogram(buckets) => write_buckets(text, name, &labels, buckets),
    }
}

/// The counts up to each bound, those of smaller buckets included, as the format wants them.
fn write_buckets(text: &mut String, name: &str, labels: &[(&str, &str)], buckets: &Buckets) {
    let mut up_to = 0;
    let bounds = buckets.bounds.iter().copied().chain([f64::INFINITY]);
    for (bound, count) in bounds.zip(&buckets.counts) {
        up_to += count;
        let bound = number(bound);
        let labels = [labels, &[("le", bound.as_str())]].concat();
        write_sample(text, &format!("{name}_bucket"), &labels, &up_to.to_string());
    }
    write_sample(text, &format!("{name}_sum"), labels, &number(buckets.sum));
    write_sample(text, &format!("{name}_count"), labels, &up_to.to_string());
}

fn write_sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: &str) {
    text.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let before = if at == 0 { '{' } else { ',' };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{before}{label}=\"{value}\"");
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{end} {value}");
}

/// A number as the format has it, which is as Rust has it but for what is no finite number.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use terrace::{KeyspaceStats, StallStats, Stats};

    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut stats = Stats::default();
        stats.stalls = vec![StallStats { reason: "a\"b\\c\nd".into(), count: 2, micros: 1_500_000 }];
        let text = prometheus(&[Picture::of(&stats)]);
        assert!(text.contains("terrace_stalls_total{reason=\"a\\\"b\\\\c\\nd\"} 2\n"), "{text}");
        assert!(text.contains("terrace_stall_seconds_total{reason=\"a\\\"b\\\\c\\nd\"} 1.5\n"), "{text}");
    }

    #[test]
    fn large_counts_keep_every_digit_and_no_limit_is_infinite() {
        let mut stats = Stats::default();
        stats.user_bytes_written = u64::MAX;
        let text = prometheus(&[Picture::of(&stats)]);
        assert!(text.contains("terrace_user_written_bytes_total 18446744073709551615\n"), "{text}");
        assert!(text.contains("terrace_load_background_limit_bytes_per_second +Inf\n"), "{text}");
    }

    #[test]
    fn buckets_count_up_to_their_bounds() {
        let buckets = Buckets { bounds: &[0.5, 2.0], counts: vec![3, 4, 1], sum: 20.25 };
        let series = Series::new(&[("kind", "flush")], Reading::Histogram(buckets));
        let mut text = String::new();
        write_series(&mut text, "x", &series);
        let expected = "x_bucket{kind=\"flush\",le=\"0.5\"} 3\nx_bucket{kind=\"flush\",le=\"2\"} 7\n\
                        x_bucket{kind=\"flush\",le=\"+Inf\"} 8\nx_sum{kind=\"flush\"} 20.25\nx_count{kind=\"flush\"} 8\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_metric_has_one_head_over_all_stores() {
        let mut stats = Stats::default();
        stats.keyspaces = vec![KeyspaceStats { name: "k".into(), ..KeyspaceStats::default() }];
        let pictures = ["a", "b"].map(|name| Picture::of(&stats).store(name));
        let text = prometheus(&pictures);
        assert_eq!(text.matches("# TYPE terrace_keyspace_debt_bytes gauge\n").count(), 1);
        for store in ["a", "b"] {
            let line = format!("terrace_keyspace_debt_bytes{{store=\"{store}\",keyspace=\"k\"}} 0\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
