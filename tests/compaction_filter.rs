//! Compaction filters: what they see, what they change, and what happens when one fails.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrace::env::simulated::SimEnv;
use terrace::env::sync::Mutex;
use terrace::tree::{Adaptive, Layout};
use terrace::{CompactionFilter, Db, Decision, ErrorKind, Options, TreeOptions};

use crate::common::{scheduled, tiny};
use crate::expiry::{TTL, aging, jump, machine, open, sleep};

/// Removes values that start with "drop", changes those with "change", and records what it has seen. Can be set to
/// fail.
#[derive(Default)]
struct Tidy(Mutex<Vec<Vec<u8>>>, AtomicBool);

impl CompactionFilter for Tidy {
    fn decide(&self, _: &[u8], value: &[u8]) -> Decision {
        self.0.lock().push(value.to_vec());
        assert!(!self.1.load(Ordering::Relaxed), "told to fail");
        match value {
            _ if value.starts_with(b"drop") => Decision::Remove,
            _ if value.starts_with(b"change") => Decision::Change(b"changed".to_vec()),
            _ if value.starts_with(b"panic") => panic!("a filter's own fault"),
            _ => Decision::Keep,
        }
    }
}

fn tidy(env: &Arc<SimEnv>) -> (Db, Arc<Tidy>) {
    let tidy = Arc::new(Tidy::default());
    let builder = Db::builder("/db").env(env.clone()).options(tiny());
    let builder = builder.compaction_filter("default", tidy.clone()).compaction_filter("aging", tidy.clone());
    (builder.open().unwrap(), tidy)
}

#[test]
fn a_filter_keeps_removes_and_changes() {
    let (db, filter) = tidy(&machine());
    let other = db.keyspace("other").unwrap();
    for (key, value) in [("a", "keep"), ("b", "drop"), ("c", "change"), ("d", "drop first")] {
        db.put(key, value).unwrap();
        other.put(key, value).unwrap();
    }
    // An older value does not come back from below.
    db.compact().unwrap();
    db.put("a", "drop now").unwrap();
    db.put("d", "second").unwrap();
    db.compact().unwrap();
    assert!(db.get("a").unwrap().is_none() && db.get("b").unwrap().is_none());
    assert_eq!(db.get("c").unwrap().unwrap(), "changed");
    assert_eq!(db.get("d").unwrap().unwrap(), "second");
    assert_eq!(other.get("b").unwrap().unwrap(), "drop");
    assert!(!filter.0.lock().is_empty());
}

#[test]
fn a_filter_never_sees_what_a_snapshot_needs() {
    let (db, filter) = tidy(&machine());
    db.put("old", "drop, but needed").unwrap();
    let snapshot = db.snapshot();
    let mut transaction = db.transaction();
    db.put("new", "drop").unwrap();
    db.compact().unwrap();
    assert!(db.get("new").unwrap().is_none());
    assert_eq!(snapshot.get("old").unwrap().unwrap(), "drop, but needed");
    assert_eq!(db.get("old").unwrap().unwrap(), "drop, but needed");
    assert_eq!(*filter.0.lock(), [b"drop"]);
    // The filter's decision is no write of others, but the write that it was about is.
    transaction.put("new", "mine");
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    drop(snapshot);
    // All of it lies in the deepest level by now.
    db.compact().unwrap();
    assert!(db.get("old").unwrap().is_none());
    // Until no thread holds an older version.
    db.wait_idle().unwrap();
    assert_eq!(db.stats().space.live_bytes, 0);
}

#[test]
fn a_filter_that_fails_on_what_has_expired_is_in_no_other_jobs_way() {
    scheduled(|env| {
        let filter = Arc::new(Tidy::default());
        let layout = Layout::Adaptive(Adaptive { l0_bytes: 1 << 20, ..Adaptive::default() });
        let tree = TreeOptions { layout, ..tiny().tree };
        let builder = Db::builder("/db").env(env.clone()).options(Options { tree, ..tiny() });
        let db = builder.compaction_filter("aging", filter.clone()).open().unwrap();
        let space = aging(&db);
        for date in 0..4 {
            (0..100).for_each(|n| space.put(format!("{:04}", 4 * n + date), vec![1; 100]).unwrap());
            sleep(&env, 10);
        }
        db.compact().unwrap();
        filter.1.store(true, Ordering::Relaxed);
        // Much has expired of what the filter fails on.
        sleep(&env, TTL - 15);
        assert!(db.stats().background_errors > 0);
        db.wait_idle().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        sleep(&env, 2);
        assert_eq!(db.keyspace("default").unwrap().shape().levels[0].tables, 0, "idle time moved it");
        drop(space);
        db.close().unwrap();
    });
}

#[test]
fn a_filter_that_panics_fails_the_compaction_and_loses_nothing() {
    let env = machine();
    let (db, _) = tidy(&env);
    db.put("a", "panic").unwrap();
    db.flush().unwrap();
    db.put("a", "panic again").unwrap();
    let error = db.compact().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(db.get("a").unwrap().unwrap(), "panic again");
    db.put("b", "value").unwrap();
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.iter().unwrap().count(), 2);
    db.compact().unwrap();
}

#[test]
fn a_filter_sees_and_changes_values_that_expire_without_their_time() {
    let env = machine();
    let (db, filter) = tidy(&env);
    let aging = aging(&db);
    aging.put("a", "change").unwrap();
    db.flush().unwrap();
    aging.put("b", "other").unwrap();
    db.compact().unwrap();
    assert_eq!(aging.get("a").unwrap().unwrap(), "changed");
    assert!(filter.0.lock().contains(&b"change".to_vec()));
    jump(&env, TTL as i64);
    assert!(aging.get("a").unwrap().is_none());
}
