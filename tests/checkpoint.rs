//! Tests of checkpoints: complete copies, of one moment, independent, and never taken for a store before they are
//! complete.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::env::simulated::{
    DeviceModel, FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Durability, ErrorKind, Options};
use terrace_torture::TreeParts as _;
use terrace_torture::client::{DIR, open};
use terrace_torture::counter::{moment, write_batch};
use terrace_torture::{Replay, is_long, tiny};

const COPY: &str = "/backup/copy";

fn open_copy(env: &Arc<SimEnv>) -> terrace::Result<Db> {
    Db::builder(COPY).env(env.clone()).options(tiny()).must_exist().open()
}

/// Checks that a copy is a store of its own, and tells its moment.
fn check_copy(db: &Db) -> u64 {
    let found = moment(db, &db.snapshot());
    assert!(db.verify().unwrap().problems.is_empty());
    write_batch(db, found + 1).unwrap();
    db.compact().unwrap();
    assert_eq!(moment(db, &db.snapshot()), found + 1);
    found
}

#[test]
fn a_copy_beside_writers_shows_one_moment_with_all_that_was_acknowledged() {
    for seed in 0..4 {
        let _replay = Replay(format!("seed {seed}"));
        let config = SimConfig { seed, preemption_percent: 60, ..SimConfig::default() };
        SimEnv::run(config, |env| {
            let db = open(&env, &tiny()).unwrap();
            (1..300).for_each(|n| write_batch(&db, n).unwrap());
            let acknowledged = Arc::new(AtomicU64::new(299));
            let (writer, told) = (db.clone(), acknowledged.clone());
            let write = move || {
                for n in 300..700 {
                    write_batch(&writer, n).unwrap();
                    told.store(n, Ordering::Relaxed);
                }
            };
            let writing = env.spawn("writer", Priority::Normal, Box::new(write)).unwrap();
            let mut copies = Vec::new();
            for n in 0..5 {
                env.sleep(Duration::from_millis(10));
                let dir = format!("{COPY}{n}");
                let before = acknowledged.load(Ordering::Relaxed);
                db.checkpoint(&dir).unwrap();
                copies.push((dir, before..=acknowledged.load(Ordering::Relaxed) + 1));
            }
            writing.join();
            db.close().unwrap();
            for (dir, possible) in copies {
                let copy = Db::builder(&dir).env(env.clone()).options(tiny()).must_exist().open().unwrap();
                let found = check_copy(&copy);
                assert!(possible.contains(&found), "{found} is not in {possible:?}");
            }
            let db = open(&env, &tiny()).unwrap();
            assert_eq!(moment(&db, &db.snapshot()), 699);
        });
    }
}

/// A store whose syncs take long, beside a quick place for copies, and a thread that syncs a write of "new".
fn writing_slowly(env: &Arc<SimEnv>, rule: Option<FaultRule>) -> (Db, Thread) {
    let slow = DeviceModel { flush_latency: Duration::from_millis(100), ..DeviceModel::instant() };
    env.add_device(Path::new(DIR), slow, 1 << 30);
    env.add_device(Path::new("/backup"), DeviceModel::instant(), 1 << 30);
    let db = open(env, &tiny()).unwrap();
    db.put_with("old", "value", Durability::Synced).unwrap();
    let fails = rule.is_some();
    rule.into_iter().for_each(|rule| env.fault(rule));
    let writer = db.clone();
    let write = move || assert_eq!(writer.put_with("new", "value", Durability::Synced).is_err(), fails);
    let writing = env.spawn("writer", Priority::Normal, Box::new(write)).unwrap();
    // It is in the log by then, and its sync takes longer.
    env.sleep(Duration::from_millis(10));
    (db, writing)
}

/// The copy took the log as far as it was written, and came back while a write in it waited for its sync: a lookup did not find what
/// the copy had.
#[test]
fn what_a_copy_has_is_found_by_whoever_looks_behind_it() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, writing) = writing_slowly(&env, None);
        assert!(db.get("new").unwrap().is_none(), "the sync is over");
        db.checkpoint(COPY).unwrap();
        let found = db.get("new").unwrap();
        assert!(open_copy(&env).unwrap().get("new").unwrap().is_some(), "the copy came before the write");
        assert_eq!(found.unwrap(), "value");
        writing.join();
    });
}

/// What will never be visible is not waited for.
#[test]
fn a_poisoned_store_is_copied_with_all_that_its_readers_see() {
    SimEnv::run(SimConfig::default(), |env| {
        let target =
            FaultTarget::Matching { operation: Operation::Sync, path_suffix: ".wal".into(), skipped: 0 };
        let rule = FaultRule { target, error: FaultError::Io, sticky: false, partial: false };
        let (db, writing) = writing_slowly(&env, Some(rule));
        for copy in ["/backup/during", "/backup/after"] {
            db.checkpoint(copy).unwrap();
            assert_eq!(db.put("more", "value").unwrap_err().kind(), ErrorKind::Poisoned);
            let options = Db::builder(copy).env(env.clone()).options(tiny()).must_exist();
            assert_eq!(options.open().unwrap().get("old").unwrap().unwrap(), "value");
        }
        writing.join();
    });
}

/// While the packs are copied, flushes release the log of the moment, whose files new segments would write over.
#[test]
fn a_copy_that_takes_long_keeps_the_log_of_its_moment() {
    for seed in 0..4 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, |env| {
            let slow = DeviceModel { flush_latency: Duration::from_secs(1), ..DeviceModel::instant() };
            env.add_device(Path::new("/backup"), slow, 1 << 30);
            let db = prepared(&env);
            let writer = db.clone();
            let write = move || (161..900).for_each(|n| write_batch(&writer, n).unwrap());
            let log = env.files();
            let writing = env.spawn("writer", Priority::Normal, Box::new(write)).unwrap();
            db.checkpoint(COPY).unwrap();
            let files = env.files();
            let is_log =
                |path: &Path| path.starts_with(DIR) && path.extension().is_some_and(|is| is == "wal");
            let mut old = log.iter().filter(|(path, _)| is_log(path));
            assert!(old.all(|(path, _)| files.iter().all(|(other, _)| other != path)), "all is released");
            writing.join();
            assert!((160..900).contains(&check_copy(&open_copy(&env).unwrap())));
        });
    }
}

/// What a reader holds stays, however long its writer has gone on without it.
#[test]
fn a_reader_beside_a_writer_copies_the_moment_that_it_sees() {
    for seed in 0..4 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, preemption_percent: 60, ..SimConfig::default() }, |env| {
            let db = prepared(&env);
            let reader = Copier::Reader.open(&env, &db);
            let seen = env.files();
            let writer = db.clone();
            let write = move || (161..900).for_each(|n| write_batch(&writer, n).unwrap());
            let writing = env.spawn("writer", Priority::Normal, Box::new(write)).unwrap();
            let mut copies = vec![format!("{COPY} beside writes")];
            reader.checkpoint(&copies[0]).unwrap();
            writing.join();
            db.compact().unwrap();
            copies.push(format!("{COPY} after them"));
            let files = env.files();
            let mut kept = seen.iter().filter(|(path, _)| files.iter().any(|(other, _)| other == path));
            let is_data = |path: &Path| path.extension().is_some_and(|is| is == "wal" || is == "pack");
            assert!(!kept.any(|(path, _)| is_data(path)), "no name is left of what it sees");
            reader.checkpoint(&copies[1]).unwrap();
            drop(reader);
            db.close().unwrap();
            for dir in copies {
                let copy = Db::builder(&dir).env(env.clone()).options(tiny()).must_exist().open().unwrap();
                assert_eq!(check_copy(&copy), 160, "{dir}");
            }
        });
    }
}

/// On a full disk a writer cuts off what it could not write whole, and a reader may have seen a part of that.
#[test]
fn a_reader_whose_log_was_cut_since_makes_no_copy_until_it_has_looked_again() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = prepared(&env);
        let mut reader = Copier::Reader.open(&env, &db);
        db.close().unwrap();
        let is_log = |path: &Path| path.extension().is_some_and(|is| is == "wal");
        let files = env.files();
        let (log, length) = files.iter().filter(|(path, _)| is_log(path)).max().unwrap();
        env.truncate(log, length - 1).unwrap();
        let error = reader.checkpoint(COPY).unwrap_err();
        assert!(error.kind() == ErrorKind::Busy && error.to_string().contains(".wal, at byte "), "{error}");
        assert!(!env.files().iter().any(|(path, _)| path.starts_with(COPY)));
        reader.refresh().unwrap();
        reader.checkpoint(COPY).unwrap();
        check_copy(&open_copy(&env).unwrap());
    });
}

/// A store with tables, dead bytes in packs, and a log.
fn prepared(env: &Arc<SimEnv>) -> Db {
    let db = open(env, &tiny()).unwrap();
    (1..160).for_each(|n| write_batch(&db, n).unwrap());
    db.wait_idle().unwrap();
    write_batch(&db, 160).unwrap();
    db
}

/// Who copies.
#[derive(Clone, Copy, Debug)]
enum Copier {
    Writer,
    /// An opening for reading alone beside it.
    Reader,
}

impl Copier {
    fn open(self, env: &Arc<SimEnv>, db: &Db) -> Db {
        match self {
            Self::Writer => db.clone(),
            Self::Reader => Db::builder(DIR).env(env.clone()).options(tiny()).read_only().open().unwrap(),
        }
    }
}

fn cut_off(copier: Copier, journal: Journal, cut: u64) -> (Arc<SimEnv>, bool) {
    let machine = SimEnv::new(SimConfig { seed: 1, journal, ..SimConfig::default() });
    let done = machine.simulate(move |env| {
        let db = prepared(&env);
        db.sync().unwrap();
        let copier = copier.open(&env, &db);
        env.cut_after(cut);
        copier.checkpoint(COPY).is_ok()
    });
    (machine, done)
}

#[test]
fn a_copy_that_is_cut_off_at_any_call_is_no_store_or_a_whole_one() {
    let (mut whole, mut none) = (0, 0);
    for (copier, journal) in [
        (Copier::Writer, Journal::Ext4Like),
        (Copier::Writer, Journal::None),
        (Copier::Reader, Journal::Ext4Like),
    ] {
        for cut in (0..).step_by(if is_long() { 1 } else { 3 }) {
            let (machine, done) = cut_off(copier, journal, cut);
            for survival in
                [Survival::Nothing, Survival::Everything, Survival::Random(cut), Survival::Random(!cut)]
            {
                let _replay = Replay(format!("{copier:?}, {journal:?}, cut at {cut}, {survival:?}"));
                let opened = machine.crash(survival).simulate(move |env| {
                    let db = open(&env, &tiny()).unwrap();
                    assert_eq!(moment(&db, &db.snapshot()), 160);
                    match open_copy(&env) {
                        Ok(copy) => {
                            assert_eq!(check_copy(&copy), 160);
                            true
                        }
                        Err(error) => {
                            let kind = error.kind();
                            assert!(matches!(kind, ErrorKind::NotFound | ErrorKind::Corruption), "{error:?}");
                            false
                        }
                    }
                });
                assert!(opened || !done, "a checkpoint that was acknowledged is there");
                *(if opened { &mut whole } else { &mut none }) += 1;
            }
            if done {
                break;
            }
        }
    }
    println!("{whole} whole copies, {none} that were none");
    let (whole_min, none_min) = if is_long() { (8, 40) } else { (4, 12) };
    assert!(whole > whole_min && none > none_min);
}

/// Makes a copy, of which call number `call` fails as `rule` says. Whether there is such a call.
fn copy_with_a_fault(copier: Copier, call: u64, rule: FaultRule) -> bool {
    SimEnv::run(SimConfig { seed: 1, ..SimConfig::default() }, move |env| {
        let db = prepared(&env);
        db.sync().unwrap();
        let copier = copier.open(&env, &db);
        let first = env.calls();
        env.fault(FaultRule { target: FaultTarget::Call(first + call), ..rule.clone() });
        let result = copier.checkpoint(COPY);
        let struck = env.faults_fired() > 0;
        env.clear_faults();
        // It has read the store and written elsewhere, so nothing is wrong with the store.
        write_batch(&db, 161).unwrap();
        assert_eq!(moment(&db, &db.snapshot()), 161);
        match (result, open_copy(&env)) {
            (Ok(()), copy) => assert_eq!(check_copy(&copy.unwrap()), 160),
            (Err(error), copy) => {
                assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull), "{error:?}");
                assert!(error.file().is_some(), "{error:?}");
                // One that could not even be removed again may be whole, never a part.
                match copy {
                    Ok(copy) => assert!(rule.sticky && check_copy(&copy) == 160),
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption),
                            "{error:?}"
                        );
                    }
                }
                let again = if rule.sticky { "/backup/another" } else { COPY };
                copier.checkpoint(again).unwrap();
            }
        }
        struck
    })
}

#[test]
fn a_copy_of_which_any_call_fails_is_no_store_or_a_whole_one_and_harms_nothing() {
    for copier in [Copier::Writer, Copier::Reader] {
        let mut failed = 0;
        for call in 0.. {
            let error = if call % 2 == 0 { FaultError::Io } else { FaultError::NoSpace };
            let target = FaultTarget::Call(0);
            let rule = FaultRule { target, error, sticky: call % 3 == 0, partial: call % 4 < 2 };
            let _replay = Replay(format!("{copier:?}, call {call}, {rule:?}"));
            if !copy_with_a_fault(copier, call, rule) {
                break;
            }
            failed += 1;
        }
        println!("{failed} calls of the {copier:?} failed");
        assert!(failed > 50);
    }
}

#[test]
fn a_copy_takes_the_live_bytes_of_packs_alone() {
    SimEnv::run(SimConfig::default(), |env| {
        env.add_device(Path::new("/backup"), DeviceModel::instant(), 1 << 30);
        let tree = tiny().tree.with(|tree| tree.tables().table_bytes = 32 << 10);
        let db = open(&env, &Options { memtable_bytes: 1 << 20, tree, ..tiny() }).unwrap();
        let put = |keys: std::ops::Range<usize>| {
            keys.for_each(|n| db.put(format!("{n:04}"), vec![n as u8; 1000]).unwrap());
        };
        put(0..1200);
        db.compact().unwrap();
        // So few that they are not worth a hole; the tables behind them live on in the packs of the first compaction.
        put(0..120);
        db.keyspace("default").unwrap().compact_range("0000".."0120").unwrap();
        db.wait_idle().unwrap();
        let space = db.stats().space;
        assert!(space.dead_bytes > 100_000, "{space:?}");
        db.checkpoint(COPY).unwrap();
        let [copied, used] = ["/backup", "/"].map(|dir| env.used_bytes(Path::new(dir)));
        assert!(copied + 100_000 < used, "{copied} of {used}, {space:?}");
        let copy = open_copy(&env).unwrap();
        assert_eq!(copy.iter().unwrap().filter(|entry| entry.is_ok()).count(), 1200);
        assert!(copy.verify().unwrap().problems.is_empty());
    });
}

#[test]
fn a_directory_that_is_not_empty_is_refused_and_left_alone() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = prepared(&env);
        db.checkpoint(COPY).unwrap();
        let before = env.files();
        for dir in [COPY, DIR, "/backup"] {
            assert_eq!(db.checkpoint(dir).unwrap_err().kind(), ErrorKind::InvalidInput, "{dir}");
        }
        assert_eq!(env.files(), before);
    });
}

#[test]
fn a_copy_that_finds_no_space_is_removed_again() {
    SimEnv::run(SimConfig::default(), |env| {
        env.add_device(Path::new("/backup"), DeviceModel::instant(), 40 << 10);
        let db = prepared(&env);
        assert_eq!(db.checkpoint(COPY).unwrap_err().kind(), ErrorKind::DiskFull);
        assert!(!env.files().iter().any(|(path, _)| path.starts_with(COPY)));
        env.set_space(Path::new("/backup"), 1 << 30);
        db.checkpoint(COPY).unwrap();
        assert_eq!(check_copy(&open_copy(&env).unwrap()), 160);
        write_batch(&db, 161).unwrap();
    });
}

#[test]
fn files_are_copied_by_the_operating_system_too() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path().join("store")).options(tiny()).open().unwrap();
    (1..400).for_each(|n| write_batch(&db, n).unwrap());
    // Another file system, where there is one.
    let elsewhere = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for copy in [dir.path().join("copy"), elsewhere.path().join("copy")] {
        db.checkpoint(&copy).unwrap();
        assert_eq!(check_copy(&Db::builder(copy).options(tiny()).must_exist().open().unwrap()), 399);
    }
}
