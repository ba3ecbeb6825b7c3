//! Tests of the exporter, against a recorder that keeps what it is told.

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, KeyName, SharedString, with_local_recorder,
};
use terrace::env::sync::Mutex;
use terrace::{KeyspaceStats, StallStats};

use super::*;
use crate::monitor::Operation;

/// What it was told, by metric and labels.
type Told<T> = Arc<Mutex<BTreeMap<String, T>>>;

#[derive(Default)]
struct Kept {
    described: Told<Description>,
    /// Whatever was set last.
    values: Told<f64>,
    recorded: Told<Vec<(f64, usize)>>,
}

#[derive(PartialEq, Debug)]
struct Description {
    kind: &'static str,
    unit: Option<metrics::Unit>,
    help: String,
}

struct Cell {
    name: String,
    values: Told<f64>,
    recorded: Told<Vec<(f64, usize)>>,
}

impl CounterFn for Cell {
    fn increment(&self, _: u64) {
        unreachable!("counters are published as they are");
    }

    fn absolute(&self, value: u64) {
        self.values.lock().insert(self.name.clone(), value as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, _: f64) {
        unreachable!("gauges are published as they are");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are published as they are");
    }

    fn set(&self, value: f64) {
        self.values.lock().insert(self.name.clone(), value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.recorded.lock().entry(self.name.clone()).or_default().push((value, count));
    }
}

impl Kept {
    fn cell(&self, kind: &str, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{kind} {}{{{}}}", key.name(), labels.join(","));
        Arc::new(Cell { name, values: self.values.clone(), recorded: self.recorded.clone() })
    }

    fn describe(&self, kind: &'static str, name: &KeyName, unit: Option<metrics::Unit>, help: &SharedString) {
        let description = Description { kind, unit, help: help.to_string() };
        let before = self.described.lock().insert(name.as_str().to_owned(), description);
        assert_eq!(before, None, "{} is described twice", name.as_str());
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.values.lock().get(name).copied()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, unit: Option<metrics::Unit>, help: SharedString) {
        self.describe("counter", &name, unit, &help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<metrics::Unit>, help: SharedString) {
        self.describe("gauge", &name, unit, &help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<metrics::Unit>, help: SharedString) {
        self.describe("histogram", &name, unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell("counter", key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell("gauge", key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell("histogram", key))
    }
}

#[test]
fn all_metrics_are_described_once_and_all_of_the_statistics_published() {
    let kept = Kept::default();
    let mut stats = Stats::default();
    stats.user_bytes_written = 7;
    stats.stalls = vec![StallStats { reason: "r".into(), count: 3, micros: 2_500_000 }];
    let mut exporter = Exporter::new().store("people").monitor(Arc::default());
    with_local_recorder(&kept, || {
        exporter.publish(&stats);
        exporter.publish(&stats);
    });
    let described = kept.described.lock();
    for metric in catalogue() {
        let found = described.get(metric.name).unwrap_or_else(|| panic!("{} is not described", metric.name));
        assert_eq!(found.help, metric.help);
    }
    assert_eq!(described["terrace_space_total_bytes"].unit, Some(metrics::Unit::Bytes));
    assert_eq!(described["terrace_stall_seconds_total"].kind, "gauge");
    assert_eq!(kept.value("counter terrace_user_written_bytes_total{store=people}"), Some(7.0));
    assert_eq!(kept.value("counter terrace_stalls_total{store=people,reason=r}"), Some(3.0));
    assert_eq!(kept.value("gauge terrace_stall_seconds_total{store=people,reason=r}"), Some(2.5));
    assert_eq!(kept.value("gauge terrace_poisoned{store=people}"), Some(0.0));
}

#[test]
fn gauges_of_what_is_gone_become_zero() {
    let kept = Kept::default();
    let mut stats = Stats::default();
    stats.keyspaces = vec![KeyspaceStats { name: "users".into(), debt_bytes: 5, ..KeyspaceStats::default() }];
    let name = "gauge terrace_keyspace_debt_bytes{keyspace=users}";
    let mut exporter = Exporter::new();
    with_local_recorder(&kept, || exporter.publish(&stats));
    assert_eq!(kept.value(name), Some(5.0));
    with_local_recorder(&kept, || exporter.publish(&Stats::default()));
    assert_eq!(kept.value(name), Some(0.0));
}

#[test]
fn only_keyspaces_that_were_chosen_are_published() {
    let kept = Kept::default();
    let mut stats = Stats::default();
    let keyspace = |name: &str| KeyspaceStats { name: name.into(), ..KeyspaceStats::default() };
    stats.keyspaces = vec![keyspace("users"), keyspace("scratch")];
    with_local_recorder(&kept, || Exporter::new().keyspaces(["users"]).publish(&stats));
    assert_eq!(kept.value("gauge terrace_keyspace_debt_bytes{keyspace=users}"), Some(0.0));
    assert_eq!(kept.value("gauge terrace_keyspace_debt_bytes{keyspace=scratch}"), None);
}

#[test]
fn a_time_is_recorded_once_as_the_bound_of_its_bucket() {
    let kept = Kept::default();
    let monitor = Arc::new(Monitor::default());
    let mut exporter = Exporter::new().monitor(monitor.clone());
    let publish =
        |exporter: &mut Exporter| with_local_recorder(&kept, || exporter.publish(&Stats::default()));
    monitor.add(Operation::Get, Duration::from_micros(2));
    monitor.add(Operation::Get, Duration::from_micros(2));
    publish(&mut exporter);
    publish(&mut exporter);
    monitor.add(Operation::Get, Duration::from_secs(60));
    publish(&mut exporter);
    let recorded = kept.recorded.lock();
    assert_eq!(recorded["histogram terrace_operation_seconds{operation=get}"], [(2.5e-6, 2), (20.0, 1)]);
}

#[test]
fn a_publisher_publishes_until_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let publisher = Exporter::new().start(db.clone(), Duration::from_secs(3600)).unwrap();
    drop(publisher);
    // Its handle is gone, so that the directory can be opened again.
    drop(db);
    Db::open(dir.path()).unwrap().close().unwrap();
}
