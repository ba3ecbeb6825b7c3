//! Tests of rare but ordinary conditions: many keyspaces, readers that stay for hours, clocks that jump, and a close
//! that ends.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::env::{Env, Priority};
use terrace::{Db, ErrorKind, Options, Snapshot, Stats};
use terrace_torture::TreeParts as _;
use terrace_torture::client::{DIR, open};
use terrace_torture::{Replay, tiny};

const HOUR: Duration = Duration::from_secs(3600);
const YEAR_MILLIS: i64 = 365 * 24 * 3600 * 1000;

fn version(n: usize) -> Vec<u8> {
    vec![n as u8; 2000]
}

/// Each of `readers` sees its version of one key.
fn check_versions(readers: &[(Snapshot, usize)], when: &str) {
    for (snapshot, n) in readers {
        assert_eq!(snapshot.get("hot").unwrap().unwrap(), version(*n), "{when}");
        let keys = snapshot.iter().unwrap().map(|entry| entry.unwrap().0);
        assert_eq!(keys.filter(|key| *key == "hot").count(), 1, "{when}");
    }
}

/// Nobody is left who reads old versions.
fn read_after_opening(env: &Arc<SimEnv>, options: &Options) {
    let db = open(env, options).unwrap();
    assert_eq!(db.get("hot").unwrap().unwrap(), version(200));
    assert_eq!(db.iter().unwrap().count(), 81);
    db.put("hot", version(201)).unwrap();
    db.compact().unwrap();
    env.sleep(Duration::from_secs(2));
    assert_eq!(db.get("hot").unwrap().unwrap(), version(201));
    assert!(db.verify().unwrap().problems.is_empty());
}

/// All versions of a key lie in one table of a run (I1), however large those make it that somebody still reads.
#[test]
fn versions_of_one_key_that_outgrow_a_table_stay_together() {
    const VERSIONS: usize = 60;
    SimEnv::run(SimConfig::default(), |env| {
        let options = Options { memtable_bytes: 256 << 10, memory_bytes: Some(8 << 20), ..tiny() };
        let table_bytes = options.tree.clone().tables().table_bytes;
        let db = open(&env, &options).unwrap();
        let space = db.keyspace("default").unwrap();
        let mut readers = Vec::new();
        let tables_and_bytes = |level: usize| {
            let shape = db.stats().keyspaces[0].shape.levels[level].clone();
            (shape.tables, shape.bytes)
        };
        // Versions on both sides of every flush: in the log, in runs of level 0, and in memory.
        for n in 0..VERSIONS {
            db.put("hot", version(n)).unwrap();
            readers.push((db.snapshot(), n));
            if n == VERSIONS / 2 {
                check_versions(&readers, "in memory");
                db.flush().unwrap();
                let (tables, bytes) = tables_and_bytes(0);
                assert!(tables == 1 && bytes > 10 * table_bytes, "{tables} of {bytes} bytes");
                check_versions(&readers, "in level 0");
            }
        }
        for n in 0..40 {
            db.put(format!("cold{n:02}"), version(n)).unwrap();
            db.put(format!("late{n:02}"), version(n)).unwrap();
        }
        db.compact().unwrap();
        check_versions(&readers, "after a compaction");
        let (tables, bytes) = (0..db.stats().keyspaces[0].shape.levels.len())
            .map(tables_and_bytes)
            .fold((0, 0), |sum, level| (sum.0 + level.0, sum.1 + level.1));
        assert!(bytes > (VERSIONS as u64 + 80) * 2000 && tables >= 10, "{tables} of {bytes} bytes");
        // Beside others that are written again it sinks, compacted or as it is.
        for round in 0..4 {
            for n in 0..40 {
                db.put(format!("{}{n:02}", if round % 2 == 0 { "cold" } else { "late" }), version(round))
                    .unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            check_versions(&readers, "below");
        }
        assert!(db.stats().compaction.moves > 0);
        // Most versions are needed no more, and their space comes back.
        let before = db.stats().space.live_bytes;
        readers.retain(|(_, n)| n % 10 == 0);
        db.put("hot", version(200)).unwrap();
        space.compact_range("hot".."hou").unwrap();
        check_versions(&readers, "after most readers have gone");
        env.sleep(Duration::from_secs(2));
        check_versions(&readers, "beside holes");
        let Stats { space: after, punch, .. } = db.stats();
        assert!(after.live_bytes < before - 40 * 2000, "{after:?} of {before}");
        assert!(punch.punches > 0, "{punch:?}");
        assert!(db.verify().unwrap().problems.is_empty());
        drop(readers);
        drop(space);
        db.close().unwrap();
        read_after_opening(&env, &options);
    });
}

#[test]
fn a_reader_keeps_a_descriptor_for_each_file_that_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    (0..2000).for_each(|n| db.put(format!("{n:04}"), [0; 100]).unwrap());
    db.compact().unwrap();
    db.put("in", "the log").unwrap();
    drop(db);
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.get("in").unwrap().unwrap(), "the log");
    reader.iter().unwrap().for_each(|entry| drop(entry.unwrap()));
    let root = dir.path().canonicalize().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let mut held: Vec<_> = open.filter(|file| file.starts_with(&root)).collect();
    held.sort();
    let count = held.len();
    held.dedup();
    assert_eq!(held.len(), count, "{held:?}");
    let packs = reader.stats().space.pack_files as usize;
    assert!(packs > 3 && count > packs && count <= packs + 3, "{count} of {packs} packs and a log");
}

#[test]
fn a_reader_that_stays_for_hours_keeps_its_moment_and_its_space_until_it_goes() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let fill = |round: usize| {
            (0..300).for_each(|n| db.put(format!("{n:04}"), format!("{round}/").repeat(100)).unwrap());
            db.compact().unwrap();
        };
        fill(0);
        let settled = db.stats().space.pack_files;
        let (mut iter, snapshot) = (db.iter().unwrap(), db.snapshot());
        let first = iter.next().unwrap().unwrap();
        for round in 1..6 {
            fill(round);
            env.sleep(5 * HOUR);
            assert_eq!(snapshot.get("0007").unwrap().unwrap(), "0/".repeat(100).as_str());
        }
        let held = db.stats().space.pack_files;
        let rest: Vec<_> = iter.by_ref().map(|entry| entry.unwrap()).collect();
        assert_eq!(rest.len(), 299);
        assert!(rest.iter().chain([&first]).all(|(_, value)| *value == "0/".repeat(100).as_str()));
        let (files, bytes) = (|| env.files().len(), || env.used_bytes(Path::new("/")));
        let before = (files(), bytes());
        drop((iter, snapshot, rest, first));
        fill(6);
        db.wait_idle().unwrap();
        env.sleep(HOUR);
        assert!(files() < before.0 && bytes() < before.1, "{before:?}, then {:?}", (files(), bytes()));
        assert!(db.stats().space.pack_files < held && db.stats().space.pack_files <= settled + 2);
    });
}

#[test]
fn clocks_may_jump_either_way() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let writing = {
            let db = db.clone();
            let body = move || {
                (0..1200).for_each(|n| db.put(format!("{:04}", n % 300), vec![n as u8; 200]).unwrap());
            };
            env.spawn("writer", Priority::Normal, Box::new(body)).unwrap()
        };
        for jump in [YEAR_MILLIS, -2 * YEAR_MILLIS, 3_600_000, -1, -100 * YEAR_MILLIS, i64::MAX, i64::MIN] {
            env.jump_clock(jump);
            env.sleep(Duration::from_millis(20));
            db.flush().unwrap();
            assert!(db.get("0000").unwrap().is_none_or(|value| value.len() == 200));
        }
        writing.join();
        db.compact().unwrap();
        assert_eq!(db.iter().unwrap().count(), 300);
        env.jump_clock(-YEAR_MILLIS);
        db.close().unwrap();
        env.jump_clock(YEAR_MILLIS);
        assert_eq!(open(&env, &tiny()).unwrap().iter().unwrap().count(), 300);
    });
}

/// Options under which compactions are always due, and writers are stopped for them.
fn overwhelmed() -> Options {
    let mut options = tiny();
    (*options.tree.l0_trigger(), options.tree.governor().l0_slow, options.tree.governor().l0_stop) =
        (1, 2, 3);
    options
}

fn put_many(db: &Db) -> terrace::Result<()> {
    (0..400).try_for_each(|n| db.put(format!("{:04}", n * 7 % 400), vec![n as u8; 200]))
}

/// Opens a store with work to do, lets `hinder` get in its way, and closes it while others write. The simulation fails if
/// anybody waits for ever.
fn close_ends(what: &'static str, hinder: impl Fn(&Arc<SimEnv>, &Db) + Send + Sync + 'static) {
    let hinder = Arc::new(hinder);
    for seed in 0..8 {
        let _replay = Replay(format!("{what}, seed {seed}"));
        let hinder = hinder.clone();
        let config = SimConfig { seed, preemption_percent: 50, ..SimConfig::default() };
        SimEnv::run(config, move |env| {
            let db = open(&env, &overwhelmed()).unwrap();
            let _ = put_many(&db);
            hinder(&env, &db);
            let users: Vec<_> = (0..3)
                .map(|user| {
                    let db = db.clone();
                    let body = move || {
                        let ended = match user {
                            0 => put_many(&db).and_then(|()| db.compact()),
                            1 => db.wait_idle().and_then(|()| db.flush()),
                            _ => db.clone().close(),
                        };
                        if let Err(error) = ended {
                            use ErrorKind::{Closed, DiskFull, Io, Poisoned};
                            assert!(matches!(error.kind(), Closed | DiskFull | Io | Poisoned), "{error:?}");
                        }
                    };
                    env.spawn("user", Priority::Normal, Box::new(body)).unwrap()
                })
                .collect();
            let start = env.now();
            let _ = db.clone().close();
            users.into_iter().for_each(|user| user.join());
            assert!(env.now() - start < HOUR);
            assert_eq!(db.put("key", "value").unwrap_err().kind(), ErrorKind::Closed);
        });
    }
}

#[test]
fn closing_ends_whatever_is_going_on() {
    let fault = |operation, suffix: &str, error| {
        let target = FaultTarget::Matching { operation, path_suffix: suffix.into(), skipped: 0 };
        FaultRule { target, error, sticky: true, partial: false }
    };
    close_ends("pending compactions", |_, _| {});
    close_ends("open readers", |_, db| {
        // Left open for good.
        std::mem::forget((db.iter().unwrap(), db.snapshot(), db.ingest().unwrap()));
    });
    close_ends("poisoned", move |env, _| env.fault(fault(Operation::Sync, ".wal", FaultError::Io)));
    close_ends("failing packs", move |env, _| env.fault(fault(Operation::WriteAt, ".pack", FaultError::Io)));
    close_ends("failing compactions", move |env, _| {
        env.fault(fault(Operation::ReadAt, ".pack", FaultError::Io))
    });
    close_ends("full disk", |env, _| env.set_space(Path::new(DIR), 0));
}
