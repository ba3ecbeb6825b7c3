//! Tests of limits: the smallest and the largest of everything, the first value beyond, and handles that outlive
//! their store.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;

use crate::common::{Random, scheduled, tiny};
use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::{Compression, Db, Durability, Error, ErrorKind, KeyspaceOptions, WriteBatch};

fn machine() -> Arc<SimEnv> {
    SimEnv::new(SimConfig::default())
}

fn open(env: &Arc<SimEnv>) -> Db {
    Db::builder("/db").env(env.clone()).options(tiny()).open().unwrap()
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("should have failed"),
        Err(error) => error.kind(),
    }
}

/// Noise, so that no compression makes it small.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

#[test]
fn keys_and_values_of_every_allowed_length_come_back() {
    let env = machine();
    let db = open(&env);
    let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    let packed = db.keyspace_with("packed", lz4).unwrap();
    // Around every length at which a field or a unit of the formats changes.
    let keys = [0usize, 1, 2, 127, 128, 255, 256, 4095, 4096, 16_383, 16_384, 65_534, 65_535];
    let values = [0usize, 1, 127, 128, 4091, 4096, 65_535, 65_536, 1 << 20, (3 << 20) + 5];
    let mut expected = std::collections::BTreeMap::new();
    for (n, &len) in keys.iter().enumerate() {
        // Keys of equal beginnings, and of none.
        for key in [vec![b'k'; len], noise(len, n as u64)] {
            expected.insert(key, noise(values[n % values.len()], n as u64));
        }
    }
    for (n, &len) in values.iter().enumerate() {
        expected.insert(format!("value{n}").into_bytes(), noise(len, 100 + n as u64));
    }
    for (key, value) in &expected {
        db.put(key, value).unwrap();
        packed.put(key, value).unwrap();
    }
    drop(packed);
    let check = |db: &Db| {
        for name in ["default", "packed"] {
            let keyspace = db.existing_keyspace(name).unwrap().unwrap();
            for (key, value) in &expected {
                assert_eq!(keyspace.get(key).unwrap().unwrap(), value.as_slice(), "{} bytes", key.len());
            }
            let forward: Vec<_> = keyspace.iter().unwrap().map(|entry| entry.unwrap()).collect();
            assert!(
                forward.iter().zip(&expected).all(|(a, b)| a.0 == b.0.as_slice() && a.1 == b.1.as_slice())
            );
            let mut backward: Vec<_> = keyspace.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
            backward.reverse();
            assert!(forward == backward && forward.len() == expected.len());
        }
        assert!(db.verify().unwrap().problems.is_empty());
    };
    check(&db);
    db.close().unwrap();
    let db = open(&env);
    check(&db);
    db.compact().unwrap();
    check(&db);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn what_is_too_long_is_refused_and_changes_nothing() {
    let env = machine();
    let db = open(&env);
    db.put("key", "value").unwrap();
    assert_eq!(kind(db.put(vec![0; 65_536], "value")), ErrorKind::InvalidInput);
    assert_eq!(kind(db.delete(vec![0; 65_536])), ErrorKind::InvalidInput);
    let huge = vec![0; (1 << 30) + 1];
    let error = db.put("key", &huge).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1073741825"), "{error}");
    // A batch with one such operation is refused whole, whatever its place.
    let mut batch = WriteBatch::new();
    batch.put("before", "1").put(vec![0; 65_536], "2").put("after", "3");
    assert_eq!(kind(db.write(batch)), ErrorKind::InvalidInput);
    // No key can be as long as these, so nothing is found; asking is no mistake.
    assert!(db.get(vec![0; 65_536]).unwrap().is_none());
    assert_eq!(db.range(vec![0; 70_000]..).unwrap().count(), 1);
    assert_eq!(db.prefix(vec![0xff; 70_000]).unwrap().count(), 0);
    assert_eq!(db.stats().last_seq, 1);
    db.close().unwrap();
    assert_eq!(open(&env).iter().unwrap().count(), 1);
}

#[test]
fn a_batch_holds_nothing_or_very_much() {
    let env = machine();
    let db = open(&env);
    let other = db.keyspace("other").unwrap();
    db.write(WriteBatch::new()).unwrap();
    db.write_with(WriteBatch::new(), Durability::Synced).unwrap();
    assert_eq!(db.stats().last_seq, 0);
    let mut batch = WriteBatch::new();
    for n in 0..100_000u32 {
        batch.put(format!("{n:06}"), n.to_le_bytes()).put_in(&other, format!("{:06}", n / 2), "");
    }
    assert_eq!(batch.len(), 200_000);
    // Far more than a memtable, a segment of the log, or a group of writers holds.
    assert!(batch.bytes() > 2 << 20);
    db.write(batch.clone()).unwrap();
    batch.clear();
    assert!(batch.is_empty() && batch.bytes() == 0);
    batch.put("~", "after");
    db.write(batch).unwrap();
    let check = |db: &Db| {
        assert_eq!(db.iter().unwrap().count(), 100_001);
        assert_eq!(db.existing_keyspace("other").unwrap().unwrap().iter().unwrap().count(), 50_000);
        assert_eq!(db.get("099999").unwrap().unwrap(), 99_999u32.to_le_bytes());
    };
    check(&db);
    // As a killed process leaves it, and after a regular end.
    check(&open(&env.crash(Survival::Everything)));
    drop(other);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn an_empty_batch_that_is_synced_syncs_what_was_before() {
    let env = machine();
    let db = open(&env);
    db.put("key", "value").unwrap();
    assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_none());
    db.write_with(WriteBatch::new(), Durability::Synced).unwrap();
    assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_some());
}

#[test]
fn closing_makes_every_write_durable() {
    for by_name in [true, false] {
        let env = machine();
        let db = open(&env);
        db.put("key", "value").unwrap();
        if by_name {
            db.close().unwrap()
        } else {
            drop(db)
        }
        assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_some(), "{by_name}");
    }
}

#[test]
fn keyspaces_by_the_thousand() {
    let env = machine();
    let db = open(&env);
    for round in 0..3u32 {
        for n in 0..1000 {
            let keyspace = db.keyspace(&format!("{n}")).unwrap();
            keyspace.put("key", format!("{round}")).unwrap();
        }
        assert_eq!(db.keyspaces().len(), 1001);
        db.flush().unwrap();
        for n in 0..1000 {
            if n % 10 != 0 || round < 2 {
                db.drop_keyspace(&format!("{n}")).unwrap();
            }
        }
    }
    let check = |db: &Db| {
        assert_eq!(db.keyspaces().len(), 101);
        for n in (0..1000).step_by(10) {
            let keyspace = db.existing_keyspace(&format!("{n}")).unwrap().unwrap();
            assert_eq!(keyspace.get("key").unwrap().unwrap(), "2");
        }
        assert!(db.existing_keyspace("1").unwrap().is_none());
    };
    check(&db);
    db.wait_idle().unwrap();
    // One small table each is left, many of them in one pack.
    assert!(db.stats().space.pack_files <= 100, "{:?}", db.stats().space);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn names_of_keyspaces_have_limits() {
    let env = machine();
    let db = open(&env);
    let longest = "\u{e4}".repeat(127) + "x";
    assert_eq!(longest.len(), 255);
    let names = ["a", " ", "\0", "/", "..", "Default", "\u{1f980}", longest.as_str()];
    for name in names {
        db.keyspace(name).unwrap().put("name", name).unwrap();
    }
    assert_eq!(kind(db.keyspace("")), ErrorKind::InvalidInput);
    assert_eq!(kind(db.keyspace(&(longest.clone() + "x"))), ErrorKind::InvalidInput);
    assert!(db.existing_keyspace("").unwrap().is_none());
    assert_eq!(kind(db.drop_keyspace("")), ErrorKind::NotFound);
    assert_eq!(kind(db.drop_keyspace("b")), ErrorKind::NotFound);
    assert_eq!(kind(db.drop_keyspace("default")), ErrorKind::InvalidInput);
    let bits = |bits| KeyspaceOptions { filter_bits_per_key: bits, ..KeyspaceOptions::default() };
    let error = db.keyspace_with("b", bits(21)).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("filter_bits_per_key"));
    for n in [0, 20] {
        let keyspace = db.keyspace_with(&format!("bits{n}"), bits(n)).unwrap();
        keyspace.put("key", "value").unwrap();
        db.flush().unwrap();
        assert!(keyspace.contains("key").unwrap() && !keyspace.contains("no key").unwrap());
    }
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.keyspaces().len(), names.len() + 3);
    for name in names {
        assert_eq!(db.existing_keyspace(name).unwrap().unwrap().get("name").unwrap().unwrap(), name);
    }
}

#[test]
fn after_closing_every_call_says_so() {
    let env = machine();
    let db = open(&env);
    let keyspace = db.keyspace("other").unwrap();
    for n in 0..500 {
        db.put(format!("{n:03}"), vec![1; 50]).unwrap();
        keyspace.put(format!("{n:03}"), vec![2; 50]).unwrap();
    }
    let snapshot = db.snapshot();
    let (mut unused, mut begun) = (db.iter().unwrap(), keyspace.iter().unwrap().rev());
    begun.next().unwrap().unwrap();
    let handle = db.clone();
    db.close().unwrap();
    let db = handle;
    let closed = |what: &str, kind: ErrorKind| assert_eq!(kind, ErrorKind::Closed, "{what}");
    closed("put", kind(db.put("key", "value")));
    closed("delete", kind(db.delete("key")));
    closed("write", kind(db.write_with(WriteBatch::new(), Durability::Synced)));
    closed("get", kind(db.get("000")));
    closed("contains", kind(db.contains("000")));
    closed("iter", kind(db.iter()));
    closed("range", kind(db.range("0"..)));
    closed("prefix", kind(db.prefix("0")));
    closed("sync", kind(db.sync()));
    closed("flush", kind(db.flush()));
    closed("compact", kind(db.compact()));
    closed("wait_idle", kind(db.wait_idle()));
    closed("verify", kind(db.verify()));
    closed("keyspace", kind(db.keyspace("other")));
    closed("new keyspace", kind(db.keyspace("another")));
    closed("existing_keyspace", kind(db.existing_keyspace("other")));
    closed("drop_keyspace", kind(db.drop_keyspace("other")));
    closed("keyspace put", kind(keyspace.put("key", "value")));
    closed("keyspace get", kind(keyspace.get("000")));
    closed("keyspace iter", kind(keyspace.iter()));
    closed("compact_range", kind(keyspace.compact_range(..)));
    closed("snapshot get", kind(snapshot.get("000")));
    closed("snapshot iter", kind(snapshot.iter()));
    closed("snapshot of a keyspace", kind(snapshot.keyspace(&keyspace).get("000")));
    // What was begun may end.
    assert_eq!(unused.next().unwrap().unwrap().0, "000");
    assert_eq!((unused.count(), begun.count()), (499, 499));
    // Pictures can still be had.
    assert_eq!((db.keyspaces().len(), db.stats().keyspaces.len()), (2, 2));
    let _ = db.snapshot();
    db.clone().close().unwrap();
}

#[test]
fn iterators_and_snapshots_show_their_moment_for_ever() {
    let env = machine();
    let db = open(&env);
    let doomed = db.keyspace("doomed").unwrap();
    for n in 0..1000 {
        db.put(format!("{n:04}"), "old").unwrap();
        doomed.put(format!("{n:04}"), "old").unwrap();
    }
    let snapshot = db.snapshot();
    let of_doomed = snapshot.keyspace(&doomed);
    let (mut iter, mut begun) = (db.iter().unwrap(), snapshot.iter().unwrap());
    let mut iter_of_doomed = doomed.iter().unwrap();
    assert_eq!(begun.next().unwrap().unwrap().0, "0000");
    for round in 0..5 {
        for n in 0..1000 {
            match (n + round) % 3 {
                0 => db.delete(format!("{n:04}")).unwrap(),
                _ => db.put(format!("{n:04}"), format!("new {round}")).unwrap(),
            }
            doomed.put(format!("{n:04}"), format!("new {round}")).unwrap();
        }
    }
    db.compact().unwrap();
    db.drop_keyspace("doomed").unwrap();
    db.wait_idle().unwrap();
    // A namesake is another keyspace.
    let namesake = db.keyspace("doomed").unwrap();
    namesake.put("0000", "of the namesake").unwrap();
    db.compact().unwrap();

    let all_old = |iter: &mut terrace::Iter| iter.all(|entry| entry.unwrap().1 == "old");
    assert!(all_old(iter.by_ref()) && all_old(&mut begun));
    assert!((0..1000).all(|n| snapshot.get(format!("{n:04}")).unwrap().unwrap() == "old"));
    assert_eq!(snapshot.iter().unwrap().count(), 1000);
    // An open iterator has a view of its own.
    assert_eq!(iter_of_doomed.by_ref().filter(|entry| entry.as_ref().unwrap().1 == "old").count(), 1000);
    // All others get an error, not an empty keyspace.
    assert_eq!(kind(of_doomed.get("0000")), ErrorKind::NotFound);
    assert_eq!(kind(of_doomed.iter()), ErrorKind::NotFound);
    assert_eq!(kind(doomed.get("0000")), ErrorKind::NotFound);
    assert_eq!(kind(doomed.iter()), ErrorKind::NotFound);
    assert_eq!(kind(doomed.put("0000", "")), ErrorKind::NotFound);
    let late = db.snapshot();
    drop((snapshot, of_doomed, iter_of_doomed, begun));
    assert_eq!(kind(late.keyspace(&doomed).get("0000")), ErrorKind::NotFound);
    assert_eq!(namesake.iter().unwrap().count(), 1);
    drop((iter, late));
}

#[test]
fn what_a_snapshot_kept_is_given_back() {
    scheduled(|env| {
        let db = open(&env);
        let doomed = db.keyspace("doomed").unwrap();
        let fill = |round: u64| {
            for n in 0..1000u64 {
                db.put(format!("{n:04}"), noise(100, n + round)).unwrap();
            }
        };
        fill(0);
        for n in 0..1000u64 {
            doomed.put(format!("{n:04}"), noise(100, n)).unwrap();
        }
        db.compact().unwrap();
        let packs = || -> Vec<u64> {
            let files = env.files().into_iter();
            files.filter(|(path, _)| path.to_string_lossy().ends_with(".pack")).map(|(_, len)| len).collect()
        };
        // Once what is dead has been reclaimed.
        let used = || {
            db.wait_idle().unwrap();
            packs().into_iter().sum::<u64>()
        };
        let alone = used();
        let (snapshot, iter, of_doomed) = (db.snapshot(), db.iter().unwrap(), doomed.iter().unwrap());
        (1..4).for_each(fill);
        db.compact().unwrap();
        db.drop_keyspace("doomed").unwrap();
        db.compact().unwrap();
        let held = used();
        assert!(held > alone + 80_000, "{alone} {held}");
        drop((iter, of_doomed));
        drop(snapshot);
        // The next compaction of the same keys finds nobody who needs the old versions.
        fill(4);
        db.compact().unwrap();
        let freed = used();
        // Half of what there was at first was in the dropped keyspace; and the handle to it holds nothing.
        assert!(freed < alone * 3 / 4, "{alone} {held} {freed}");
        let space = db.stats().space;
        assert_eq!(packs().len() as u64, space.pack_files + space.preallocated_files);
        assert_eq!(kind(doomed.get("0000")), ErrorKind::NotFound);
        drop(doomed);
    });
}

#[test]
fn a_dropped_keyspace_takes_no_earlier_write_along() {
    let env = machine();
    let db = open(&env);
    let source = db.keyspace("source").unwrap();
    source.put("key", "value").unwrap();
    db.flush().unwrap();
    // Moved, without asking for a barrier.
    db.put("key", "value").unwrap();
    db.drop_keyspace("source").unwrap();
    let db = open(&env.crash(Survival::Nothing));
    assert!(db.existing_keyspace("source").unwrap().is_none());
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

#[test]
fn reading_backwards_from_both_ends_meets_in_the_middle() {
    let env = machine();
    let db = open(&env);
    for n in 0..3000 {
        db.put(format!("{:04}", n % 1000), format!("{n}")).unwrap();
    }
    let (mut random, mut iter) = (Random(3), db.iter().unwrap());
    let (mut low, mut high) = (0, 1000);
    while low < high {
        if random.below(2) == 0 {
            assert_eq!(iter.next().unwrap().unwrap().0, format!("{low:04}").as_str());
            low += 1;
        } else {
            high -= 1;
            assert_eq!(iter.next_back().unwrap().unwrap().0, format!("{high:04}").as_str());
        }
    }
    assert!(iter.next().is_none() && iter.next_back().is_none() && iter.next().is_none());
}

#[test]
fn a_directory_is_made_with_its_parents() {
    let env = machine();
    let db = Db::builder("/a/b/c").env(env.clone()).options(tiny()).open().unwrap();
    db.put("key", "value").unwrap();
    db.sync().unwrap();
    let env = env.crash(Survival::Nothing);
    assert!(env.list("/a/b".as_ref()).is_ok());
    let db = Db::builder("/a/b/c").env(env).options(tiny()).must_exist().open().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}
