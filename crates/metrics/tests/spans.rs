//! The events of a store as spans, as a subscriber sees them. A program of its own: a store tells its events on a thread of
//! its own, so the subscriber must be the one of the process.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::env::sync::Mutex;
use terrace::tree::{Governor, Layout, Leveled, Pacer};
use terrace::{Db, Options, TreeOptions};
use terrace_metrics::Spans;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes everything down.
#[derive(Default)]
struct Diary {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, String>>,
    /// The spans that were closed, with all that was recorded.
    closed: Mutex<Vec<String>>,
    events: Mutex<Vec<String>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

struct Subscribed(Arc<Diary>);

impl Subscriber for Subscribed {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "terrace"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(format!("{} {}", span.metadata().level(), span.metadata().name()));
        span.record(&mut fields);
        let id = self.0.next.fetch_add(1, Relaxed) + 1;
        self.0.open.lock().insert(id, fields.0);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(text) = self.0.open.lock().get_mut(&span.into_u64()) {
            let mut fields = Fields(std::mem::take(text));
            values.record(&mut fields);
            *text = fields.0;
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.events.lock().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn try_close(&self, id: Id) -> bool {
        if let Some(text) = self.0.open.lock().remove(&id.into_u64()) {
            self.0.closed.lock().push(text);
        }
        true
    }
}

impl Diary {
    fn has_closed(&self, parts: &[&str]) -> bool {
        self.closed.lock().iter().any(|span| parts.iter().all(|part| span.contains(part)))
    }

    fn has_event(&self, parts: &[&str]) -> bool {
        self.events.lock().iter().any(|event| parts.iter().all(|part| event.contains(part)))
    }
}

/// Waits for events, which come a moment later.
fn until(env: &Arc<SimEnv>, what: &str, told: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if told() {
            return;
        }
        env.sleep(Duration::from_millis(1));
    }
    panic!("never told: {what}");
}

fn small() -> Options {
    let limits = Governor { l0_slow: 1, l0_stop: 2, ..Governor::default() };
    let layout = Layout::Leveled(Leveled { level1_bytes: 8 << 10, ratio: 4, l0_trigger: 1 });
    let tree = TreeOptions { layout, pacer: Pacer::Governor(limits), ..TreeOptions::default() };
    Options { memtable_bytes: 8 << 10, wal_bytes_max: 64 << 10, tree, ..Options::default() }
}

/// One test, for there is one subscriber.
#[test]
fn jobs_and_stalls_are_spans_and_failures_events() {
    let diary = Arc::new(Diary::default());
    tracing::subscriber::set_global_default(Subscribed(diary.clone())).unwrap();
    let told = diary.clone();
    SimEnv::run(SimConfig::default(), |env| {
        let diary = told;
        let db = Db::builder("/db").env(env.clone()).options(small()).listener(Arc::new(Spans::default()));
        let db = db.open().unwrap();
        (0..2000).for_each(|n| db.put(format!("{}", n * 7 % 600), vec![1; 200]).unwrap());
        db.wait_idle().unwrap();
        db.put("last", "").unwrap();
        until(&env, "stalls", || {
            diary.has_closed(&["WARN stopped reason="]) || diary.has_closed(&["INFO slowed"])
        });
        let flushed = ["DEBUG flush keyspace=\"default\" level=0 target_level=0 bytes_in=", " bytes_out="];
        let compacted = ["DEBUG compaction keyspace=\"default\"", " target_level=", " bytes_out="];
        until(&env, "jobs", || diary.has_closed(&flushed) && diary.has_closed(&compacted));
        assert!(
            diary.has_event(&["DEBUG", "message=job ended", "job=\"flush\"", "seconds="]),
            "{:?}",
            diary.events.lock()
        );

        let fault = |operation, suffix: &str, error| FaultRule {
            target: FaultTarget::Matching { operation, path_suffix: suffix.into(), skipped: 0 },
            error,
            // Until it is cleared: there may be packs made ahead, and another try.
            sticky: true,
            partial: false,
        };
        env.fault(fault(Operation::WriteAt, ".pack", FaultError::NoSpace));
        db.put("key", "value").unwrap();
        db.flush().unwrap_err();
        until(&env, "a failed job", || diary.has_event(&["WARN", "will be tried again", "kind=DiskFull"]));
        until(&env, "its span", || diary.has_closed(&["DEBUG flush", " error="]));
        env.clear_faults();
        until(&env, "the end of the fault", || db.flush().is_ok());
        env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
        db.put("key", "value").unwrap();
        db.sync().unwrap_err();
        until(&env, "poisoning", || diary.has_event(&["ERROR", "refuses writes", "kind=Io"]));
        _ = db.close();
    });
    assert!(diary.open.lock().is_empty(), "left open: {:?}", diary.open.lock());
}
