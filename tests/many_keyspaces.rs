//! Tests of stores with many keyspaces: their small memtables are flushed together, many come and go by one edit, and none
//! loses anything that another one keeps.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::common::{scheduled, tiny};
use terrace::env::recording::RecordingEnv;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use terrace::{Db, Durability, ErrorKind, Keyspace, KeyspaceOptions, Options, Result, WriteBatch};

/// Options under which nothing is flushed or compacted unless it is asked for.
fn quiet() -> Options {
    Options { memtable_bytes: 4 << 20, wal_bytes_max: 16 << 20, memory_bytes: Some(32 << 20), ..tiny() }
}

fn open_with(env: Arc<SimEnv>, options: Options) -> Result<Db> {
    Db::builder("/db").env(env).options(options).open()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("ks{number:04}")).collect()
}

fn create(db: &Db, count: usize) -> Result<Vec<Keyspace>> {
    db.create_keyspaces(&names(count), KeyspaceOptions::default())
}

fn value_of(keyspace: &Keyspace, key: &str) -> Option<String> {
    keyspace.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Lines of a recording that wait for a device.
fn barriers(lines: &str) -> Vec<&str> {
    lines.lines().filter(|line| line.starts_with("sync")).collect()
}

#[test]
fn a_flush_of_many_keyspaces_is_one_job_with_few_barriers() {
    scheduled(|env| {
        let record = RecordingEnv::new(env.clone());
        let db = Db::builder("/db").env(record.clone()).options(quiet()).open().unwrap();
        let keyspaces = create(&db, 500).unwrap();
        for round in 0..3 {
            for (number, keyspace) in keyspaces.iter().enumerate() {
                keyspace.put("same", format!("{number} of round {round}")).unwrap();
                keyspace.put(format!("{round}"), format!("{number}")).unwrap();
            }
            if round == 1 {
                keyspaces.iter().step_by(7).for_each(|keyspace| keyspace.delete_range("0".."1").unwrap());
            }
            db.wait_idle().unwrap();
            let jobs = db.stats().flush.jobs;
            let _ = record.take();
            db.flush().unwrap();
            let lines = record.take();
            assert_eq!(db.stats().flush.jobs, jobs + 1);
            let barriers = barriers(&lines);
            assert!(barriers.len() <= 8, "{barriers:?}");
        }
        keyspaces.iter().for_each(|keyspace| keyspace.put("last", "in the log").unwrap());
        db.sync().unwrap();
        for survival in [Survival::Nothing, Survival::Everything] {
            let db = open_with(env.crash(survival), quiet()).unwrap();
            for (number, name) in names(500).iter().enumerate() {
                let keyspace = db.existing_keyspace(name).unwrap().unwrap();
                assert_eq!(value_of(&keyspace, "same"), Some(format!("{number} of round 2")));
                let first = (number % 7 != 0).then(|| format!("{number}"));
                assert_eq!(value_of(&keyspace, "0"), first, "{name}");
                assert_eq!(value_of(&keyspace, "1"), Some(format!("{number}")));
                assert_eq!(value_of(&keyspace, "last").as_deref(), Some("in the log"));
            }
            db.verify().unwrap();
        }
    });
}

/// What is done to four keyspaces, of which one has a large memtable, while the power may be cut. Tells `synced` how many
/// of the numbered writes are durable.
fn write_and_flush(db: &Db, synced: &AtomicU32) -> Result<()> {
    let keyspaces = create(db, 4)?;
    let mut number = 0;
    let mut write = |keyspace: &Keyspace| {
        let mut batch = WriteBatch::new();
        batch.put_in(keyspace, format!("{number:03}"), "").put(format!("{number:03}"), "");
        number += 1;
        db.write(batch).map(|()| number)
    };
    for round in 0..3 {
        let mut written = 0;
        for keyspace in &keyspaces {
            written = write(keyspace)?;
        }
        if round == 1 {
            keyspaces[2].put("large", vec![7; 1 << 20])?;
        }
        if round > 0 {
            db.sync()?;
            synced.store(written, Relaxed);
        }
        written = write(&keyspaces[3])?;
        db.flush()?;
        synced.store(written, Relaxed);
    }
    Ok(())
}

/// The numbers of the writes that are there. Each is there in both of its keyspaces, or in none.
fn survivors(db: &Db) -> Vec<u32> {
    let number = |key: &[u8]| std::str::from_utf8(key).unwrap().parse::<u32>().ok();
    let mut others = Vec::new();
    for name in names(4) {
        let Some(keyspace) = db.existing_keyspace(&name).unwrap() else { continue };
        others.extend(keyspace.iter().unwrap().filter_map(|entry| number(&entry.unwrap().0)));
    }
    others.sort_unstable();
    let ours: Vec<u32> = db.iter().unwrap().filter_map(|entry| number(&entry.unwrap().0)).collect();
    assert_eq!(ours, others, "a batch is torn");
    ours
}

#[test]
fn a_power_cut_at_any_call_of_a_flush_of_many_leaves_a_prefix() {
    let run = |cut: Option<u64>| {
        SimEnv::run(SimConfig::default(), move |env| {
            cut.into_iter().for_each(|cut| env.cut_after(cut));
            let synced = AtomicU32::new(0);
            let done = open_with(env.clone(), quiet()).and_then(|db| write_and_flush(&db, &synced));
            assert!(done.is_ok() || cut.is_some(), "{done:?}");
            let survivals = [Survival::Nothing, Survival::Everything, Survival::Random(cut.unwrap_or(0))];
            (survivals.map(|survival| env.crash(survival)), env.mutations(), synced.into_inner())
        })
    };
    let (_, mutations, all) = run(None);
    assert!(mutations > 40 && all == 15, "{mutations} calls, {all} writes");
    for cut in 0..mutations {
        let (crashed, _, synced) = run(Some(cut));
        for crashed in crashed {
            crashed.simulate(move |env| {
                let db = open_with(env, quiet()).unwrap();
                let found = survivors(&db);
                assert!(found.iter().copied().eq(0..found.len() as u32), "after call {cut}: {found:?}");
                assert!(found.len() as u32 >= synced, "after call {cut}: {found:?} of {synced}");
                db.verify().unwrap();
            });
        }
    }
}

/// Memtables that are flushed together were sealed at different moments. What came between is in none of them.
#[test]
fn each_memtable_of_a_flush_of_many_ends_where_it_was_sealed() {
    scheduled(|env| {
        let options = Options { memtable_bytes: 64 << 10, ..quiet() };
        let db = open_with(env.clone(), options.clone()).unwrap();
        let keyspaces = create(&db, 5).unwrap();
        let target =
            FaultTarget::Matching { operation: Operation::Create, path_suffix: ".pack".into(), skipped: 0 };
        let full =
            FaultRule { target: target.clone(), error: FaultError::NoSpace, sticky: true, partial: false };
        let write =
            FaultTarget::Matching { operation: Operation::WriteAt, path_suffix: ".pack".into(), skipped: 0 };
        env.fault(full.clone());
        env.fault(FaultRule { target: write, ..full });
        keyspaces[..3].iter().for_each(|keyspace| keyspace.put("first", "sealed").unwrap());
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
        for keyspace in &keyspaces[..3] {
            keyspace.put("between", "active").and_then(|()| keyspace.put("more", [7; 2 << 10])).unwrap();
        }
        for keyspace in &keyspaces[3..] {
            keyspace.put("fills", vec![7; 60 << 10]).unwrap();
            keyspace.put("next", "finds it full").unwrap();
        }
        let sealed = db.stats().keyspaces.iter().map(|keyspace| keyspace.sealed_memtables).sum::<u64>();
        assert_eq!(sealed, 5);
        db.sync().unwrap();
        env.clear_faults();
        db.wait_idle().unwrap();
        let stats = db.stats();
        assert_eq!(stats.flush.jobs, 2, "the first one by itself, since it had failed");
        let db = open_with(env.crash(Survival::Nothing), options).unwrap();
        for name in &names(5)[..3] {
            let keyspace = db.existing_keyspace(name).unwrap().unwrap();
            assert_eq!(value_of(&keyspace, "between").as_deref(), Some("active"), "{name}");
            assert_eq!(value_of(&keyspace, "first").as_deref(), Some("sealed"), "{name}");
        }
    });
}

#[test]
fn a_full_disk_fails_a_flush_of_many_and_space_brings_it_about() {
    scheduled(|env| {
        let db = open_with(env.clone(), quiet()).unwrap();
        let keyspaces = create(&db, 20).unwrap();
        keyspaces.iter().for_each(|keyspace| keyspace.put("key", "value").unwrap());
        for operation in [Operation::Create, Operation::WriteAt] {
            let target = FaultTarget::Matching { operation, path_suffix: ".pack".into(), skipped: 0 };
            env.fault(FaultRule { target, error: FaultError::NoSpace, sticky: true, partial: false });
        }
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
        assert!(keyspaces.iter().all(|keyspace| value_of(keyspace, "key").is_some()));
        env.clear_faults();
        db.flush().unwrap();
        assert!(keyspaces.iter().all(|keyspace| value_of(keyspace, "key").is_some()));
        assert_eq!(db.stats().flush.jobs, 2);
        db.verify().unwrap();
    });
}

#[test]
fn many_keyspaces_come_and_go_by_one_edit_each_or_not_at_all() {
    scheduled(|env| {
        let record = RecordingEnv::new(env.clone());
        let db = Db::builder("/db").env(record.clone()).options(quiet()).open().unwrap();
        db.wait_idle().unwrap();
        let _ = record.take();
        let keyspaces = create(&db, 300).unwrap();
        let lines = record.take();
        assert_eq!(barriers(&lines).len(), 1, "{lines}");
        assert!(keyspaces.iter().map(|keyspace| keyspace.name()).eq(names(300).iter().map(String::as_str)));
        keyspaces.iter().for_each(|keyspace| keyspace.put("key", "value").unwrap());
        db.flush().unwrap();
        keyspaces.iter().for_each(|keyspace| keyspace.put("key", "newer").unwrap());

        let mut some = names(299);
        some.push("missing".into());
        assert_eq!(db.drop_keyspaces(&some).unwrap_err().kind(), ErrorKind::NotFound);
        some.pop();
        some.push("default".into());
        assert_eq!(db.drop_keyspaces(&some).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(db.keyspaces().len(), 301);
        some.pop();
        db.wait_idle().unwrap();
        let _ = record.take();
        db.drop_keyspaces(&some).unwrap();
        let lines = record.take();
        assert!(barriers(&lines).len() <= 3, "{lines}");
        assert_eq!(db.keyspaces(), ["default", "ks0299"]);
        assert_eq!(keyspaces[0].get("key").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(value_of(&keyspaces[299], "key").as_deref(), Some("newer"));

        let empty: [&str; 0] = [];
        db.drop_keyspaces(&empty).unwrap();
        assert!(db.create_keyspaces(&empty, KeyspaceOptions::default()).unwrap().is_empty());
        let twice = db.create_keyspaces(&["new", "ks0299", "new"], KeyspaceOptions::default()).unwrap();
        twice[0].put("key", "one").unwrap();
        assert_eq!(value_of(&twice[2], "key").as_deref(), Some("one"));
        assert_eq!(value_of(&twice[1], "key").as_deref(), Some("newer"));
        db.sync().unwrap();
        let db = open_with(env.crash(Survival::Nothing), quiet()).unwrap();
        assert_eq!(db.keyspaces(), ["default", "ks0299", "new"]);
        db.verify().unwrap();
    });
}

/// A keyspace that is dropped while it is flushed with others is left out; the space that was written for it comes back.
#[test]
fn keyspaces_that_are_dropped_during_a_flush_of_many_are_left_out() {
    for seed in 0..20 {
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let db = open_with(env.clone(), quiet()).unwrap();
            let keyspaces = create(&db, 30).unwrap();
            for keyspace in &keyspaces {
                (0..50).for_each(|key| keyspace.put(format!("{key:04}"), vec![7; 100]).unwrap());
            }
            let dropping = db.clone();
            let body = Box::new(move || {
                names(30).iter().skip(10).for_each(|name| dropping.drop_keyspace(name).unwrap());
            });
            let thread =
                terrace::env::Env::spawn(&*env, "drop", terrace::env::Priority::Normal, body).unwrap();
            db.flush().unwrap();
            thread.join();
            db.wait_idle().unwrap();
            for keyspace in &keyspaces[..10] {
                assert_eq!(keyspace.iter().unwrap().count(), 50);
            }
            db.verify().unwrap();
            drop((db, keyspaces));
            let db = open_with(env.crash(Survival::Everything), quiet()).unwrap();
            assert_eq!(db.keyspaces().len(), 11);
            for name in names(10) {
                assert_eq!(db.existing_keyspace(&name).unwrap().unwrap().iter().unwrap().count(), 50);
            }
            db.verify().unwrap();
        });
    }
}

/// With the log at its limit, or memory, many small memtables are flushed together, not one by one.
#[test]
fn many_small_memtables_make_room_together() {
    scheduled(|env| {
        let options = Options { memtable_bytes: 256 << 10, wal_bytes_max: 16 << 20, ..tiny() };
        let long = Options { memtable_bytes: 16 << 20, wal_bytes_max: 256 << 10, ..tiny() };
        for (dir, options) in [("/full", options), ("/long", long)] {
            let options = Options { memory_bytes: Some(64 << 20), ..options };
            let db = Db::builder(dir).env(env.clone()).options(options).open().unwrap();
            let keyspaces = create(&db, 200).unwrap();
            for round in 0..20 {
                for keyspace in &keyspaces {
                    keyspace.put(format!("{round:04}"), vec![7; 200]).unwrap();
                }
            }
            db.wait_idle().unwrap();
            let jobs = db.stats().flush.jobs;
            assert!((1..=40).contains(&jobs), "{jobs} flushes of {dir}");
            assert!(keyspaces.iter().all(|keyspace| keyspace.iter().unwrap().count() == 20));
            db.verify().unwrap();
        }
    });
}

/// A synced write is there after a power cut, whatever flush of many it fell into.
#[test]
fn synced_writes_beside_flushes_of_many_survive() {
    for seed in 0..10 {
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let db = open_with(env.clone(), tiny()).unwrap();
            let keyspaces = create(&db, 12).unwrap();
            for round in 0..40u32 {
                let mut batch = WriteBatch::new();
                for keyspace in &keyspaces {
                    batch.put_in(
                        keyspace,
                        format!("{:02}", round % 10),
                        format!("{round} {}", "x".repeat(60)),
                    );
                }
                db.write_with(batch, Durability::Synced).unwrap();
                if round % 11 == 5 {
                    db.flush().unwrap();
                }
            }
            for survival in [Survival::Nothing, Survival::Random(seed), Survival::Everything] {
                let db = open_with(env.crash(survival), tiny()).unwrap();
                for name in names(12) {
                    let keyspace = db.existing_keyspace(&name).unwrap().unwrap();
                    for round in 30..40 {
                        let value = value_of(&keyspace, &format!("{:02}", round % 10)).unwrap();
                        assert!(value.starts_with(&format!("{round} ")), "{name}, round {round}: {value}");
                    }
                }
            }
        });
    }
}
