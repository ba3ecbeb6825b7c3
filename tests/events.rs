//! Tests of listeners: they receive every event that they are promised, and do no harm, however they behave.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::tiny;
use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::env::sync::{Condvar, Mutex};
use terrace::{Db, Error, ErrorKind, EventListener, JobBegin, JobEnd, Options, Stall};
use terrace_torture::TreeParts as _;

/// Writes everything down.
#[derive(Default)]
struct Diary {
    begun: Mutex<Vec<(&'static str, JobBegin)>>,
    ended: Mutex<Vec<(&'static str, JobEnd)>>,
    stalls: Mutex<Vec<(Stall, Option<Duration>)>>,
    errors: Mutex<Vec<ErrorKind>>,
    poison: Mutex<Vec<ErrorKind>>,
}

impl EventListener for Diary {
    fn flush_begin(&self, flush: &JobBegin) {
        self.begun.lock().push(("flush", flush.clone()));
    }

    fn flush_end(&self, flush: &JobEnd) {
        self.ended.lock().push(("flush", flush.clone()));
    }

    fn compaction_begin(&self, compaction: &JobBegin) {
        self.begun.lock().push(("compaction", compaction.clone()));
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        self.ended.lock().push(("compaction", compaction.clone()));
    }

    fn stall_begin(&self, stall: &Stall) {
        self.stalls.lock().push((stall.clone(), None));
    }

    fn stall_end(&self, stall: &Stall, time: Duration) {
        self.stalls.lock().push((stall.clone(), Some(time)));
    }

    fn background_error(&self, error: &Error) {
        self.errors.lock().push(error.kind());
    }

    fn poisoned(&self, error: &Error) {
        self.poison.lock().push(error.kind());
    }
}

fn open(env: &Arc<SimEnv>, options: Options, listener: Arc<dyn EventListener>) -> Db {
    Db::builder("/db").env(env.clone()).options(options).listener(listener).open().unwrap()
}

/// Waits for events, which come a moment later.
fn until(env: &Arc<SimEnv>, told: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if told() {
            return;
        }
        env.sleep(Duration::from_millis(1));
    }
    panic!("the listener was never told");
}

#[test]
fn every_job_is_told_with_what_it_read_and_wrote() {
    SimEnv::run(SimConfig::default(), |env| {
        let diary = Arc::new(Diary::default());
        let db = open(&env, tiny(), diary.clone());
        let users = db.keyspace("users").unwrap();
        (0..600).for_each(|n| users.put(format!("{}", n * 7 % 600), vec![1; 200]).unwrap());
        db.compact().unwrap();
        let stats = db.stats();
        until(&env, || diary.ended.lock().len() as u64 == stats.flush.jobs + stats.compaction.jobs);
        let (begun, ended) = (diary.begun.lock(), diary.ended.lock());
        let sum = |what: &str, of: fn(&JobEnd) -> u64| -> u64 {
            ended.iter().filter(|(kind, _)| *kind == what).map(|(_, end)| of(end)).sum()
        };
        assert_eq!(sum("flush", |_| 1), stats.flush.jobs);
        assert_eq!(sum("flush", |end| end.bytes_out), stats.flush.bytes);
        assert_eq!(sum("compaction", |end| end.begin.bytes_in), stats.compaction.bytes_in);
        assert_eq!(sum("compaction", |end| end.bytes_out), stats.compaction.bytes_out);
        assert!(stats.flush.jobs > 0 && stats.compaction.jobs > 0 && begun.len() == ended.len());
        for (kind, end) in ended.iter() {
            assert!(begun.contains(&(*kind, end.begin.clone())));
            assert!(end.begin.keyspace == "users" && end.error.is_none());
            assert_eq!(end.begin.target, if *kind == "flush" { 0 } else { end.begin.level + 1 });
        }
        drop((begun, ended));
        db.close().unwrap();
    });
}

#[test]
fn stalls_are_told_from_their_beginning_to_their_end() {
    SimEnv::run(SimConfig::default(), |env| {
        let diary = Arc::new(Diary::default());
        let tree = tiny().tree.with(|tree| {
            *tree.l0_trigger() = 1;
            tree.governor().l0_slow = 1;
            tree.governor().l0_stop = 2;
        });
        let db = open(&env, Options { tree, ..tiny() }, diary.clone());
        (0..2000).for_each(|n| db.put(format!("{}", n * 7 % 600), vec![1; 200]).unwrap());
        db.wait_idle().unwrap();
        // The write that finds nothing in its way tells of the end.
        db.put("last", "").unwrap();
        until(&env, || diary.stalls.lock().last().is_some_and(|(_, time)| time.is_some()));
        let stalls = diary.stalls.lock();
        for pair in stalls.chunks(2) {
            let [(begin, None), (end, Some(_))] = pair else { panic!("not in pairs: {stalls:?}") };
            assert_eq!(begin, end);
        }
        let reasons: Vec<_> = db.stats().stalls.into_iter().map(|stall| stall.reason).collect();
        assert!(stalls.iter().all(|(stall, _)| !stall.stopped || reasons.contains(&stall.reason)));
        assert!(
            stalls.iter().any(|(stall, _)| stall.stopped) && stalls.iter().any(|(stall, _)| !stall.stopped)
        );
        drop(stalls);
        db.close().unwrap();
    });
}

#[test]
fn failures_are_told_and_poisoning_once() {
    SimEnv::run(SimConfig::default(), |env| {
        let diary = Arc::new(Diary::default());
        let db = open(&env, tiny(), diary.clone());
        let fault = |operation, suffix: &str, error| FaultRule {
            target: FaultTarget::Matching { operation, path_suffix: suffix.into(), skipped: 0 },
            error,
            sticky: false,
            partial: false,
        };
        env.fault(fault(Operation::Create, ".pack", FaultError::NoSpace));
        db.put("key", "value").unwrap();
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
        until(&env, || *diary.errors.lock() == [ErrorKind::DiskFull]);
        assert_eq!(diary.ended.lock()[0].1.error.as_ref().unwrap().kind(), ErrorKind::DiskFull);
        env.clear_faults();
        until(&env, || db.flush().is_ok());
        env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
        db.put("key", "value").unwrap();
        db.sync().unwrap_err();
        db.put("key", "value").unwrap_err();
        until(&env, || *diary.poison.lock() == [ErrorKind::Io]);
        assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(*diary.poison.lock(), [ErrorKind::Io]);
    });
}

/// Panics at everything.
#[derive(Default)]
struct Nervous(AtomicU64);

impl EventListener for Nervous {
    fn flush_begin(&self, _: &JobBegin) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a listener's own fault");
    }

    fn flush_end(&self, _: &JobEnd) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a listener's own fault");
    }
}

#[test]
fn a_listener_that_panics_hears_the_next_event_and_the_store_goes_on() {
    SimEnv::run(SimConfig::default(), |env| {
        let nervous = Arc::new(Nervous::default());
        let db = open(&env, tiny(), nervous.clone());
        for n in 0..5 {
            db.put("key", [n]).unwrap();
            db.flush().unwrap();
        }
        until(&env, || nervous.0.load(Ordering::SeqCst) == 10);
        db.close().unwrap();
    });
}

/// Does not return from the first event until it is released.
#[derive(Default)]
struct Stubborn {
    released: Mutex<bool>,
    changed: Condvar,
    heard: AtomicU64,
    lost: AtomicU64,
}

impl EventListener for Stubborn {
    fn flush_begin(&self, _: &JobBegin) {
        self.heard.fetch_add(1, Ordering::SeqCst);
        let mut released = self.released.lock();
        while !*released {
            self.changed.wait(&mut released);
        }
    }

    fn flush_end(&self, _: &JobEnd) {
        self.heard.fetch_add(1, Ordering::SeqCst);
    }

    fn lost(&self, events: u64) {
        self.lost.fetch_add(events, Ordering::SeqCst);
    }
}

#[test]
fn a_listener_that_never_returns_holds_up_neither_writes_nor_the_end() {
    SimEnv::run(SimConfig::default(), |env| {
        let stubborn = Arc::new(Stubborn::default());
        let options = Options {
            tree: tiny().tree.with(|tree| {
                *tree.l0_trigger() = 1000;
                tree.governor().l0_slow = 2000;
                tree.governor().l0_stop = 3000;
            }),
            ..tiny()
        };
        let db = open(&env, options, stubborn.clone());
        let flushes = 600;
        for n in 0..flushes as u32 {
            db.put("key", n.to_le_bytes()).unwrap();
            db.flush().unwrap();
        }
        db.close().unwrap();
        assert!(stubborn.heard.load(Ordering::SeqCst) <= 1);
        *stubborn.released.lock() = true;
        stubborn.changed.notify_all();
        // Two events for each flush, heard late or lost.
        let all = || stubborn.heard.load(Ordering::SeqCst) + stubborn.lost.load(Ordering::SeqCst);
        until(&env, || all() == 2 * flushes);
        assert!(stubborn.lost.load(Ordering::SeqCst) > 0);
    });
}
