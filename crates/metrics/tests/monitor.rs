//! A monitor beside a store, and what it says afterwards.

use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation as Call, SimConfig, SimEnv};
use terrace::tree::{Governor, Layout, Leveled, Pacer};
use terrace::{Db, ErrorKind, EventListener, Options, TreeOptions};
use terrace_metrics::{Listeners, Monitor, Operation, Picture, prometheus};

fn text(db: &Db, monitor: &Monitor) -> String {
    prometheus(&[Picture::of(&db.stats()).monitor(monitor)])
}

/// The value of the series that begins so.
fn value(text: &str, series: &str) -> Option<f64> {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    found.parse().ok()
}

/// Waits for events, which come a moment later.
fn until(env: &Arc<SimEnv>, told: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if told() {
            return;
        }
        env.sleep(Duration::from_millis(1));
    }
    panic!("the monitor was never told");
}

fn failing(operation: Call, suffix: &str, error: FaultError) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: suffix.into(), skipped: 0 };
    FaultRule { target, error, sticky: false, partial: false }
}

#[test]
fn calls_are_timed_and_their_errors_counted_by_kind() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let monitor = Monitor::default();
    for _ in 0..3 {
        assert!(monitor.time(Operation::Get, || db.get("key")).unwrap().is_none());
    }
    let refused = monitor.time(Operation::Write, || db.put(vec![0; 70_000], "too long a key")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let text = text(&db, &monitor);
    for (series, expected) in [
        ("terrace_operation_seconds_count{operation=\"get\"}", 3.0),
        ("terrace_operation_seconds_bucket{operation=\"get\",le=\"+Inf\"}", 3.0),
        ("terrace_operation_seconds_count{operation=\"write\"}", 1.0),
        ("terrace_operation_seconds_count{operation=\"sync\"}", 0.0),
        ("terrace_errors_total{origin=\"call\",kind=\"InvalidInput\"}", 1.0),
        ("terrace_poisoned", 0.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
    assert!(value(&text, "terrace_operation_seconds_sum{operation=\"get\"}").unwrap() > 0.0);
    let last =
        value(&text, "terrace_last_error_timestamp_seconds{origin=\"call\",kind=\"InvalidInput\"}").unwrap();
    assert!(last > 1.7e9, "{last}");
}

#[test]
fn background_errors_and_poisoning_are_noticed() {
    SimEnv::run(SimConfig::default(), |env| {
        let monitor = Arc::new(Monitor::default());
        let listeners = Listeners::of([monitor.clone() as Arc<dyn EventListener>]);
        let db = Db::builder("/db").env(env.clone()).listener(Arc::new(listeners)).open().unwrap();
        db.put("key", "value").unwrap();
        env.fault(failing(Call::Create, ".pack", FaultError::NoSpace));
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
        env.clear_faults();
        until(&env, || db.flush().is_ok());
        env.fault(failing(Call::Sync, ".wal", FaultError::Io));
        db.put("key", "value").unwrap();
        db.sync().unwrap_err();
        until(&env, || value(&text(&db, &monitor), "terrace_poisoned") == Some(1.0));
        let text = text(&db, &monitor);
        let full = value(&text, "terrace_errors_total{origin=\"background\",kind=\"DiskFull\"}");
        assert!(full >= Some(1.0), "{text}");
        assert_eq!(value(&text, "terrace_background_errors_total"), full);
        assert_eq!(value(&text, "terrace_errors_total{origin=\"poison\",kind=\"Io\"}"), Some(1.0), "{text}");
        assert!(value(&text, "terrace_job_seconds_count{kind=\"flush\"}") >= Some(2.0), "{text}");
        _ = db.close();
    });
}

#[test]
fn stalls_are_noticed_as_long_as_they_go_on() {
    SimEnv::run(SimConfig::default(), |env| {
        let monitor = Arc::new(Monitor::default());
        let limits = Governor { l0_slow: 1, l0_stop: 2, ..Governor::default() };
        let layout = Layout::Leveled(Leveled { level1_bytes: 8 << 10, ratio: 4, l0_trigger: 1 });
        let tree = TreeOptions { layout, pacer: Pacer::Governor(limits), ..TreeOptions::default() };
        let options =
            Options { memtable_bytes: 8 << 10, wal_bytes_max: 64 << 10, tree, ..Options::default() };
        let db =
            Db::builder("/db").env(env.clone()).options(options).listener(monitor.clone()).open().unwrap();
        // One for each reason and state that there was.
        let stalled = || {
            let text = text(&db, &monitor);
            let series = text.lines().filter(|line| line.starts_with("terrace_stalled{reason="));
            series.map(|line| line.ends_with("} 1")).collect::<Vec<_>>()
        };
        let mut most = 0;
        for n in 0..4000 {
            db.put(format!("{}", n * 7 % 600), vec![1; 200]).unwrap();
            if n % 20 == 0 {
                most = most.max(stalled().into_iter().filter(|is_now| *is_now).count());
            }
        }
        assert_eq!(most, 1, "there is one reason at a time, or none");
        db.wait_idle().unwrap();
        // The write that finds nothing in its way tells of the end.
        db.put("last", "").unwrap();
        until(&env, || stalled().iter().all(|is_now| !is_now));
        let text = text(&db, &monitor);
        let starting = |with: &str| text.lines().filter(|line| line.starts_with(with)).count();
        assert!(starting("terrace_stall_seconds_total{reason=") > 0, "{text}");
        assert_eq!(starting("terrace_stall_episode_seconds_count{reason="), stalled().len(), "{text}");
        db.close().unwrap();
    });
}
