//! Tests of the store's main paths, by its public API on a real directory.

use terrace::{Db, Durability, ErrorKind, WriteBatch};
use terrace_torture::tiny;

fn key(n: u64) -> String {
    format!("key{:08}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5000)
}

#[test]
fn many_entries_survive_flushes_compactions_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = std::collections::BTreeMap::new();
    for round in 0..3 {
        let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
        for n in 0..20_000u64 {
            let (key, value) = (key(n * 3 + round), format!("value-{round}-{n}"));
            if n % 7 == 0 {
                db.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                db.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        for (key, value) in &expected {
            assert_eq!(db.get(key).unwrap().unwrap(), value.as_str(), "{key}");
        }
        let found: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(a, b)| a.0 == b.0.as_str() && a.1 == b.1.as_str()));
        let mut backward: Vec<_> = db.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
        backward.reverse();
        assert_eq!(found, backward);
        if round == 1 {
            db.compact().unwrap();
            let stats = db.stats();
            assert!(stats.compaction.jobs > 0 && stats.flush.jobs > 0, "{stats:?}");
            assert_eq!(stats.keyspaces[0].shape.levels.last().unwrap().tombstones, 0);
        }
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        db.close().unwrap();
    }
}

#[test]
fn a_snapshot_sees_its_moment_through_compactions() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    for n in 0..1000 {
        db.put(format!("{n:05}"), "old").unwrap();
    }
    let snapshot = db.snapshot();
    for round in 0..5 {
        for n in 0..1000 {
            if n % 2 == 0 {
                db.delete(format!("{n:05}")).unwrap()
            } else {
                db.put(format!("{n:05}"), format!("{round}")).unwrap()
            }
        }
    }
    db.compact().unwrap();
    assert_eq!(snapshot.iter().unwrap().count(), 1000);
    assert!(snapshot.iter().unwrap().all(|entry| entry.unwrap().1 == "old"));
    assert_eq!(db.iter().unwrap().count(), 500);
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(db.iter().unwrap().rev().count(), 500);
}

#[test]
fn a_second_opening_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("is open in another handle or process"), "{error}");
    db.put("still", "works").unwrap();
    drop(db);
    Db::open(dir.path()).unwrap();
}

#[test]
fn keyspaces_come_and_go_with_their_entries() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    let a = db.keyspace("a").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("x", "default").put_in(&a, "x", "in a");
    db.write_with(batch, Durability::Synced).unwrap();
    for n in 0..5000 {
        a.put(format!("{n}"), vec![7; 100]).unwrap();
    }
    db.drop_keyspace("a").unwrap();
    assert_eq!(a.put("y", "z").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.keyspaces(), ["default"]);
    let again = db.keyspace("a").unwrap();
    assert_eq!(again.iter().unwrap().count(), 0);
    again.put("new", "life").unwrap();
    drop((a, again));
    db.close().unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    assert_eq!(db.keyspaces(), ["a", "default"]);
    assert_eq!(db.existing_keyspace("a").unwrap().unwrap().iter().unwrap().count(), 1);
    assert_eq!(db.get("x").unwrap().unwrap(), "default");
}

/// A handle or a snapshot of a dropped keyspace fails. It does not read as an empty keyspace.
#[test]
fn a_dropped_keyspace_is_not_read_as_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    let a = db.keyspace("a").unwrap();
    for n in 0..2000 {
        a.put(format!("{n:04}"), [7; 100]).unwrap();
    }
    let snapshot = db.snapshot().keyspace(&a);
    let mut iter = a.iter().unwrap();
    iter.next().unwrap().unwrap();
    db.drop_keyspace("a").unwrap();
    assert_eq!(iter.filter(|entry| entry.is_ok()).count(), 1999);
    assert_eq!(a.get("0001").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(snapshot.get("0001").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(a.iter().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(snapshot.prefix("0").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(a.compact_range(..).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn reading_alone_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let list = || {
        let mut files: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                (entry.file_name(), meta.len(), meta.modified().unwrap())
            })
            .collect();
        files.sort();
        files
    };
    assert_eq!(Db::builder(dir.path()).read_only().open().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(list().is_empty());
    let db = Db::open(dir.path()).unwrap();
    db.put("key", "value").unwrap();
    drop(db);
    let before = list();
    let reader = Db::builder(dir.path()).read_only().open().unwrap();
    let second = Db::builder(dir.path()).read_only().open().unwrap();
    assert_eq!(reader.get("key").unwrap().unwrap(), "value");
    assert_eq!(second.put("key", "other").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert!(reader.verify().unwrap().problems.is_empty());
    drop((reader, second));
    assert_eq!(list(), before);
}
