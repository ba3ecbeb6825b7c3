//! What commits depend on, and what a key with many versions costs: entries of memtables looked at, bytes read.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::batch::DEFAULT_KEYSPACE;
use crate::db::{Db, Isolation, TransactionOptions};
use crate::env::Env;
use crate::env::simulated::{SimConfig, SimEnv};
use crate::options::Options;
use crate::store::memtable::entries_seen;

const VERSIONS: u64 = 10_000;

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let env: Arc<dyn Env> = env.clone();
    Db::builder(Path::new("/db")).env(env).options(options).open().unwrap()
}

fn write_hot(db: &Db, value: &[u8], mut written: impl FnMut()) {
    db.put("a", value).unwrap();
    db.put("z", value).unwrap();
    for _ in 0..VERSIONS {
        db.put("hot", value).unwrap();
        written();
    }
}

/// Does everything that may meet the hot key, telling of each what it was, when it is done.
fn act(db: &Db, at: &crate::Snapshot, mut done: impl FnMut(&str)) {
    let value = at.get("hot").unwrap();
    assert!(value.is_some());
    done("get");
    assert_eq!(at.multi_get(["a", "hot", "z"]).unwrap()[1], value);
    done("multi_get");
    assert_eq!(at.range("b"..).unwrap().next().unwrap().unwrap().0, "hot");
    done("next");
    assert_eq!(at.range(.."y").unwrap().next_back().unwrap().unwrap().0, "hot");
    done("next_back");
    assert_eq!(at.iter().unwrap().count(), 3);
    done("all forward");
    assert_eq!(at.iter().unwrap().rev().count(), 3);
    done("all backward");
    let begin = || db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
    let mut over_range = begin();
    assert_eq!(over_range.range("b".."y").unwrap().count(), 1);
    // So that it has to look through the range.
    db.put("zz", "1").unwrap();
    over_range.put("other", "1");
    over_range.commit().unwrap();
    db.delete("zz").unwrap();
    db.delete("other").unwrap();
    done("a commit that depends on a range");
    let mut on_key = begin();
    assert!(on_key.get("hot").unwrap().is_some());
    db.delete("other").unwrap();
    on_key.delete("other");
    assert_eq!(on_key.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let mut on_key = begin();
    assert!(on_key.get("hot").unwrap().is_some());
    db.delete("zz").unwrap();
    on_key.delete("other");
    on_key.commit().unwrap();
    done("a commit that depends on the key");
}

#[test]
fn a_key_with_many_versions_in_memory_costs_no_more_than_searches() {
    let db = open(&SimEnv::new(SimConfig::default()), Options::default());
    let mut snapshots = Vec::new();
    write_hot(&db, b"value", || {
        if snapshots.is_empty() {
            snapshots.push(db.snapshot());
        }
    });
    snapshots.push(db.snapshot());
    for at in &snapshots {
        let mut before = entries_seen();
        act(&db, at, |what| {
            // A search looks at some 40, a walk backward takes one for each step.
            assert!(entries_seen() - before < VERSIONS / 5, "{what}: {} entries", entries_seen() - before);
            before = entries_seen();
        });
        db.update("hot", |_| Some("value")).unwrap();
        assert!(entries_seen() - before < VERSIONS / 5, "update: {} entries", entries_seen() - before);
    }
}

#[test]
fn a_key_with_many_versions_in_a_table_costs_a_few_blocks() {
    let env = SimEnv::new(SimConfig::default());
    let db = open(&env, Options::default());
    let mut snapshots = Vec::new();
    write_hot(&db, &[7; 200], || snapshots.push(db.snapshot()));
    db.flush().unwrap();
    drop(snapshots);
    db.close().unwrap();
    let db = open(&env, Options { memory_bytes: Some(1 << 20), ..Options::default() });
    let at = db.snapshot();
    let read = || {
        let read = db.stats().read;
        read.get + read.scan
    };
    let mut before = read();
    act(&db, &at, |what| {
        assert!(read() - before < VERSIONS * 200 / 10, "{what}: {} bytes", read() - before);
        before = read();
    });
}

#[test]
fn a_condition_knows_what_it_depends_on() {
    let key = |n: u64| Key::from(format!("{n:02}").as_bytes());
    let range = |from, to| KeyRange::half_open(key(from), UpperBound::Excluded(key(to)));
    let mut draw = 7_u64;
    let mut below = |n: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (draw >> 33) % n
    };
    for _ in 0..500 {
        let mut some = || -> Vec<(KeyspaceId, u64, u64)> {
            let count = below(5);
            (0..count).map(|_| (KeyspaceId(1 + below(2) as u32), below(20), 1 + below(5))).collect()
        };
        let (keys, ranges) = (some(), some());
        let own: Vec<(KeyspaceId, Key)> = keys.iter().map(|&(id, at, _)| (id, key(at))).collect();
        let condition = Condition::new(
            Seq(1),
            own.iter().map(|(id, key)| (*id, &**key)).collect(),
            ranges.iter().map(|&(id, from, length)| (id, range(from, from + length))).collect(),
        );
        for id in [1, 2].map(KeyspaceId) {
            let depends = |n| {
                let in_range = |&(other, from, length): &(_, u64, u64)| {
                    other == id && (from..from + length).contains(&n)
                };
                keys.iter().any(|&(other, at, _)| (other, at) == (id, n)) || ranges.iter().any(in_range)
            };
            for n in 0..30 {
                assert_eq!(condition.depends_on(id, &key(n)), depends(n), "{n} in {condition:?}");
                let found = condition.depends_on_range(id, &range(n, n + 3));
                let expected = (n..n + 3).any(depends);
                assert_eq!(found.is_some(), expected, "{n} and two more in {condition:?}");
                assert!(
                    found.is_none_or(
                        |found| range(n, n + 3).contains(&found) && condition.depends_on(id, &found)
                    )
                );
            }
        }
    }
}

fn put(key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, "value");
    batch
}

fn on_key(since: u64, key: &str) -> Condition<'_> {
    Condition::new(Seq(since), vec![(DEFAULT_KEYSPACE, key.as_bytes())], Vec::new())
}

fn on_range(since: u64, start: &str, end: &str) -> Condition<'static> {
    let range = KeyRange::half_open(start.as_bytes(), UpperBound::Excluded(end.as_bytes().into()));
    Condition::new(Seq(since), Vec::new(), vec![(DEFAULT_KEYSPACE, range)])
}

fn wanted(last: u64) -> Recent {
    let mut recent = Recent::default();
    recent.want(Seq(last));
    recent
}

#[test]
fn it_tells_what_has_been_touched_and_since_when() {
    let mut recent = wanted(7);
    recent.note(&put("b"), Seq(8));
    let mut batch = put("d");
    batch.delete_range("m".."p").delete("x");
    recent.note(&batch, Seq(9));
    assert!(recent.covers(Seq(7), Seq(11)) && recent.covers(Seq(9), Seq(11)));
    let when =
        |condition: Condition<'_>| condition.changed_by(&recent).map(|(_, key, seq)| (key.to_vec(), seq.0));
    assert_eq!(when(on_key(7, "b")), Some((b"b".to_vec(), 8)));
    assert_eq!(when(on_key(8, "b")), None);
    assert_eq!(when(on_key(7, "c")), None);
    assert_eq!(when(on_key(7, "n")), Some((b"n".to_vec(), 10)));
    assert_eq!(when(on_key(7, "p")), None);
    assert_eq!(when(on_key(7, "x")), Some((b"x".to_vec(), 11)));
    assert_eq!(when(on_range(7, "a", "c")), Some((b"b".to_vec(), 8)));
    assert_eq!(when(on_range(8, "a", "d")), None);
    assert_eq!(when(on_range(8, "a", "n")), Some((b"d".to_vec(), 9)));
    assert_eq!(when(on_range(9, "a", "n")), Some((b"m".to_vec(), 10)));
    assert_eq!(when(on_range(7, "o", "w")), Some((b"o".to_vec(), 10)));
    assert_eq!(when(on_range(7, "p", "w")), None);
    let elsewhere = Condition::new(Seq(7), vec![(KeyspaceId(9), &b"b"[..])], Vec::new());
    assert_eq!(when(elsewhere), None);
}
