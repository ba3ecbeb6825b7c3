//! Tables with index and filter in partitions, through everything that a store can do.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Seed, scheduled, tiny};
use crate::prefixed::{check, settle};
use terrace::env::simulated::SimEnv;
use terrace::tree::{Cutter, Flushes, TableSize};
use terrace::{Db, KeyspaceOptions, Options, Prefix};

/// One table in a level, of many small blocks.
fn partitioned(bytes_min: u64) -> Options {
    let mut options = tiny();
    options.tree.block_bytes = 256;
    options.tree.partitioned_bytes_min = bytes_min;
    options.tree.cutter = Cutter::Size(TableSize { table_bytes: 1 << 20, flushes: Flushes::Whole });
    options.keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(2)), ..KeyspaceOptions::default() };
    options
}

fn open(env: &Arc<SimEnv>, bytes_min: u64) -> Db {
    Db::builder("/db").env(env.clone()).options(partitioned(bytes_min)).open().unwrap()
}

#[test]
fn a_store_changes_between_whole_tables_and_partitions_at_any_opening() {
    let seed = Seed::new(5);
    let mut random = seed.random();
    scheduled(move |env| {
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (round, bytes_min) in [0, u64::MAX, 8 << 10, 0].into_iter().enumerate() {
            let db = open(&env, bytes_min);
            check(&db, &model);
            for n in 0..2500_u64 {
                let key = format!("{:04}", random.below(3000)).into_bytes();
                if n % 9 == 0 {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = vec![n as u8; 20 + random.below(60) as usize];
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            let snapshot = db.snapshot();
            let before = model.clone();
            // Every key has a second version, which the snapshot does not see.
            for key in before.keys() {
                db.put(key, [round as u8]).unwrap();
                model.insert(key.clone(), vec![round as u8]);
            }
            db.delete_range("1500".."1600").unwrap();
            model.retain(|key, _| key[..] < b"1500"[..] || key[..] >= b"1600"[..]);
            settle(&db);
            db.compact().unwrap();
            for (key, value) in &before {
                assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(&value[..]), "{}", key.escape_ascii());
            }
            check(&db, &model);
            for prefix in 0..40_u32 {
                let prefix = format!("{prefix:02}");
                let expected: Vec<_> =
                    model.keys().filter(|key| key.starts_with(prefix.as_bytes())).collect();
                let forward: Vec<_> = db.prefix(&prefix).unwrap().map(|entry| entry.unwrap().0).collect();
                assert_eq!(forward, expected, "{prefix}");
                let backward: Vec<_> =
                    db.prefix(&prefix).unwrap().rev().map(|entry| entry.unwrap().0).collect();
                assert!(backward.iter().rev().eq(&forward), "{prefix}");
            }
            let keys: Vec<_> = (0..3000_u32).map(|n| format!("{n:04}").into_bytes()).collect();
            let found = db.multi_get(&keys).unwrap();
            for (key, value) in keys.iter().zip(found) {
                assert_eq!(
                    value.as_deref(),
                    model.get(key).map(|value| &value[..]),
                    "{}",
                    key.escape_ascii()
                );
            }
            db.close().unwrap();
        }
        let builder = Db::builder("/db").env(env.clone()).options(partitioned(0));
        assert!(builder.repair(Path::new("/repaired")).unwrap().lost.is_empty());
        let repaired = Db::builder("/repaired").env(env).options(partitioned(0)).open().unwrap();
        check(&repaired, &model);
    });
}
