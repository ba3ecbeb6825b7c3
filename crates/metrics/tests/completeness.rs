//! Every field of the statistics is in the catalogue, and shows in the text.
//!
//! A struct of another crate that may get more fields cannot be taken apart without `..`, so that the compiler cannot
//! tell which are new. Its `Debug` can: it has all of them.

use std::collections::{BTreeMap, BTreeSet};

use terrace::{BufferStats, DeviceStats, KeyspaceStats, LevelShape, Shape, StallStats, Stats};
use terrace_metrics::{Kind, Picture, Unit, catalogue, prometheus};

/// Statistics with one of everything.
fn full() -> Stats {
    let shape = Shape { levels: vec![LevelShape::default()] };
    let keyspace = KeyspaceStats { shape, buffer: BufferStats::default(), ..KeyspaceStats::default() };
    let mut stats = Stats::default();
    stats.stalls = vec![StallStats::default()];
    stats.devices = vec![DeviceStats::default()];
    stats.keyspaces = vec![keyspace];
    stats
}

/// The paths of all fields that hold no others.
fn fields(stats: &Stats) -> BTreeSet<String> {
    let text = format!("{stats:#?}");
    let (mut path, mut found): (Vec<(usize, &str)>, BTreeSet<String>) = Default::default();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let Some((name, value)) = line.trim().split_once(": ") else { continue };
        while path.last().is_some_and(|(above, _)| *above >= indent) {
            path.pop();
        }
        path.push((indent, name));
        if !value.ends_with(['{', '[']) {
            found.insert(path.iter().map(|(_, name)| *name).collect::<Vec<_>>().join("."));
        }
    }
    found
}

#[test]
fn every_field_of_the_statistics_has_an_entry_and_every_entry_a_field() {
    let fields = fields(&full());
    assert!(
        fields.contains("keyspaces.shape.levels.range_tombstones") && fields.contains("load.background_rate")
    );
    let entries: BTreeSet<String> = catalogue().flat_map(|metric| metric.fields()).collect();
    let missing: Vec<_> = fields.difference(&entries).collect();
    let unknown: Vec<_> = entries.difference(&fields).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "not in the catalogue: {missing:?}; no fields: {unknown:?}"
    );
}

#[test]
fn a_field_whose_entry_is_gone_would_be_noticed() {
    let entries = || catalogue().filter(|metric| metric.name != "terrace_flushes_total");
    let entries: BTreeSet<String> = entries().flat_map(|metric| metric.fields()).collect();
    assert_eq!(fields(&full()).difference(&entries).collect::<Vec<_>>(), ["flush.jobs"]);
}

#[test]
fn names_are_unique_and_follow_the_conventions() {
    let mut seen = BTreeSet::new();
    for metric in catalogue() {
        let name = metric.name;
        assert!(seen.insert(name), "{name} is there twice");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.starts_with("terrace_") && name.chars().all(is_plain), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        let base = name.trim_end_matches("_total");
        let ends = match metric.unit {
            Unit::Bytes => "_bytes",
            Unit::Seconds => "_seconds",
            Unit::BytesPerSecond => "_bytes_per_second",
            Unit::Count | Unit::None => "",
            other => panic!("{other:?}"),
        };
        assert!(base.ends_with(ends), "{name} is in {:?}", metric.unit);
        let unit_in_name = base.ends_with("_bytes") || base.ends_with("_seconds");
        assert!(!unit_in_name || matches!(metric.unit, Unit::Bytes | Unit::Seconds), "{name}");
        assert!(
            metric.help.ends_with('.') && metric.help.starts_with(char::is_alphanumeric),
            "{name}: {}",
            metric.help
        );
    }
}

#[test]
fn series_have_the_labels_of_their_metric_and_differ_by_them() {
    let stats = full();
    let mut shown = BTreeMap::new();
    for metric in catalogue() {
        let series = Picture::of(&stats).store("s").monitor(&Default::default()).series(metric);
        let mut labels = vec!["store"];
        labels.extend(metric.labels());
        // Prometheus would rename these, for it has its own.
        assert!(!labels.contains(&"job") && !labels.contains(&"instance"), "{}", metric.name);
        for series in &series {
            let names: Vec<_> = series.labels.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, labels, "{}", metric.name);
        }
        let distinct: BTreeSet<_> = series.iter().map(|series| format!("{:?}", series.labels)).collect();
        assert_eq!(distinct.len(), series.len(), "{}", metric.name);
        shown.insert(metric.name, series.len());
    }
    let empty: Vec<_> = shown.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    let of_what_has_not_happened = [
        "terrace_errors_total",
        "terrace_last_error_timestamp_seconds",
        "terrace_stall_episode_seconds",
        "terrace_stalled",
    ];
    assert_eq!(empty, of_what_has_not_happened);
}

#[test]
fn figures_come_from_their_fields_in_base_units() {
    let mut stats = full();
    stats.written.compaction = 11;
    stats.user_reads.multi_get_keys = 12;
    stats.compaction.passed[3].merged = 13;
    stats.compaction.micros = 1_500;
    stats.load.is_high = true;
    stats.load.background_rate = Some(14);
    stats.devices[0].read_nanos = 250;
    stats.keyspaces[0].shape.levels[0].limit_bytes = u64::MAX;
    stats.keyspaces[0].shape.levels[0].score = 0.5;
    stats.costs.barrier_micros = 2_000.0;
    let text = prometheus(&[Picture::of(&stats)]);
    for line in [
        "terrace_written_bytes_total{cause=\"compaction\"} 11",
        "terrace_user_lookups_total{call=\"multi_get\"} 12",
        "terrace_level_passed_bytes_total{level=\"3\",way=\"merged\"} 13",
        "terrace_compaction_seconds_total 0.0015",
        "terrace_load_class{class=\"low\"} 0",
        "terrace_load_class{class=\"high\"} 1",
        "terrace_load_background_limit_bytes_per_second 14",
        "terrace_device_read_seconds{device=\"0\",dir=\"\"} 0.00000025",
        "terrace_level_limit_bytes{keyspace=\"\",level=\"0\"} +Inf",
        "terrace_level_score{keyspace=\"\",level=\"0\"} 0.5",
        "terrace_cost_barrier_seconds 0.002",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}
