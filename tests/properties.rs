//! Tests of properties: each name has its figure, and the figures are those of the store.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;

use crate::common::{scheduled, tiny};
use terrace::env::simulated::SimEnv;
use terrace::{Db, Options};

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options).open().unwrap()
}

#[test]
fn every_name_is_known_once_and_under_the_prefixes_of_others() {
    scheduled(|env| {
        let db = open(&env, Options::default());
        // No figure changes between two looks.
        db.wait_idle().unwrap();
        let names = Db::properties();
        for (n, name) in names.iter().enumerate() {
            assert!(!names[..n].contains(name), "{name} is there twice");
            let value = db.property(name).unwrap();
            let bare = name.strip_prefix("terrace.").unwrap();
            assert_eq!(db.property(&format!("rocksdb.{bare}")), Some(value));
            assert_eq!(db.property(&format!("leveldb.{bare}")), db.property(name));
            assert_eq!(db.property(&format!("other.{bare}")), None);
            assert_eq!(db.property(bare), None);
        }
        assert_eq!(db.property("terrace."), None);
    });
}

#[test]
fn figures_follow_the_store() {
    scheduled(|env| {
        let db = open(&env, tiny());
        let users = db.keyspace("users").unwrap();
        let number = |name: &str| db.property(&format!("terrace.{name}")).unwrap().parse::<u64>().unwrap();
        db.put("a", "1").unwrap();
        users.put("b", "2").unwrap();
        assert_eq!((number("num-entries-all-mem-tables"), number("estimate-num-keys")), (2, 2));
        assert!(number("cur-size-active-mem-table") > 0);
        db.flush().unwrap();
        assert_eq!((number("num-entries-all-mem-tables"), number("num-files-at-level0")), (0, 2));
        let first = db.snapshot();
        db.delete("a").unwrap();
        let second = db.snapshot();
        assert_eq!((number("num-snapshots"), number("oldest-snapshot-sequence")), (2, first.seq()));
        drop(first);
        assert_eq!((number("num-snapshots"), number("oldest-snapshot-sequence")), (1, second.seq()));
        drop(second);
        assert_eq!((number("num-snapshots"), number("oldest-snapshot-sequence")), (0, 0));
        db.flush().unwrap();
        assert_eq!((number("num-deletes"), number("num-entries"), number("estimate-num-keys")), (1, 3, 1));
        (0..600).for_each(|n| users.put(format!("{n}"), vec![1; 200]).unwrap());
        db.compact().unwrap();
        assert_eq!((number("estimate-num-keys"), number("num-files-at-level0")), (601, 0));
        let table = db.property("terrace.levelstats").unwrap();
        let tables: u64 =
            (0..terrace::types::LEVELS).map(|level| number(&format!("num-files-at-level{level}"))).sum();
        let listed = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
        assert_eq!(table.lines().skip(1).map(listed).sum::<u64>(), tables, "{table}");
        assert!(db.property("terrace.stats").unwrap().contains("Flushes: "));
    });
}

#[test]
fn tables_that_the_store_has_written_are_open() {
    scheduled(|env| {
        let db = open(&env, tiny());
        let opened = || db.stats().read.open;
        let before = opened();
        let get_all = || (0..600).for_each(|n| assert!(db.get(format!("{n}")).unwrap().is_some()));
        (0..600).for_each(|n| db.put(format!("{n}"), vec![1; 200]).unwrap());
        db.flush().unwrap();
        get_all();
        db.compact().unwrap();
        get_all();
        let stats = db.stats();
        assert!(stats.read.get > 0 && stats.compaction.jobs > 0, "{stats:?}");
        assert_eq!(opened(), before);
    });
}
