//! Tests of jobs that fail for what is in their keyspace: they hold up no other keyspace, and are heard of by all who
//! wait for them.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::Random;
use terrace::env::Env;
use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Operation, ProcessorModel, SimConfig, SimEnv,
};
use terrace::{Db, ErrorKind, Keyspace, Options};
use terrace_torture::client::open;
use terrace_torture::{TreeParts as _, tiny};

/// Longer than any compaction of these tests takes, shorter than the first pause after a failure.
const SOON: Duration = Duration::from_millis(500);

fn options() -> Options {
    let tree = tiny().tree.with(|tree| {
        *tree.l0_trigger() = 2;
        tree.governor().l0_slow = 6;
        tree.governor().l0_stop = 8;
    });
    Options { tree, ..tiny() }
}

/// Adds a run to level 0 that overlaps all others.
fn add_run(db: &Db, keyspace: &Keyspace, round: u8) -> terrace::Result<()> {
    (0..20).try_for_each(|n| keyspace.put(format!("{n:02}"), vec![round; 100]))?;
    db.flush()
}

fn level0(keyspace: &Keyspace) -> usize {
    keyspace.shape().levels[0].runs
}

fn packs(env: &SimEnv) -> Vec<PathBuf> {
    let is_pack = |path: &Path| path.extension().is_some_and(|extension| extension == "pack");
    env.files().into_iter().map(|(path, _)| path).filter(|path| is_pack(path)).collect()
}

/// A store in which no compaction of the keyspace "bad" can go well, for the first table of that is damaged, and level 0
/// of it is due.
fn with_a_bad_keyspace(env: &Arc<SimEnv>) -> (Db, Keyspace, Keyspace) {
    let db = open(env, &options()).unwrap();
    let (bad, good) = (db.keyspace("bad").unwrap(), db.keyspace("good").unwrap());
    add_run(&db, &bad, 0).unwrap();
    db.compact().unwrap();
    db.wait_idle().unwrap();
    drop((bad, good));
    db.close().unwrap();
    for pack in packs(env) {
        // In the first block of the only table.
        env.overwrite(&pack, 40, &[0x55; 8]).unwrap();
    }
    let db = open(env, &options()).unwrap();
    let (bad, good) = (db.keyspace("bad").unwrap(), db.keyspace("good").unwrap());
    (1..4).for_each(|round| add_run(&db, &bad, round).unwrap());
    env.sleep(SOON);
    assert!(db.stats().background_errors > 0 && level0(&bad) >= 2, "{:?}", bad.shape());
    (db, bad, good)
}

#[test]
fn a_keyspace_whose_compactions_fail_holds_up_no_other() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, bad, good) = with_a_bad_keyspace(&env);
        let before = db.stats().background_errors;
        for round in 0..40 {
            add_run(&db, &good, round).unwrap();
            env.sleep(SOON);
            assert!(level0(&good) < 3, "round {round}: {:?}", good.shape());
        }
        // It is tried again at longer and longer intervals.
        let failures = db.stats().background_errors - before;
        assert!((2..=6).contains(&failures), "{failures} failures in twenty seconds");
        assert!(level0(&bad) >= 2);
        assert_eq!(good.get("07").unwrap().unwrap(), vec![39; 100]);
        db.close().unwrap();
    });
}

#[test]
fn who_waits_hears_of_the_failures_that_concern_them_and_of_no_others() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, bad, good) = with_a_bad_keyspace(&env);
        // Who waits for everything, or asks for this.
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(bad.compact_range(..).unwrap_err().kind(), ErrorKind::Corruption);
        // Who asks for something else.
        add_run(&db, &good, 0).unwrap();
        good.compact_range(..).unwrap();
        assert_eq!(level0(&good), 0);
        // Writers, whom only the keyspace "bad" can hold up in the end.
        let refused = (4..100).find_map(|round| add_run(&db, &bad, round).err()).unwrap();
        assert_eq!(refused.kind(), ErrorKind::Corruption);
        assert!(level0(&bad) >= 8, "{:?}", bad.shape());
        assert_eq!(good.put("key", "value").unwrap_err().kind(), ErrorKind::Corruption);
        // It ends with the keyspace.
        drop(bad);
        db.drop_keyspace("bad").unwrap();
        (0..40).for_each(|round| add_run(&db, &good, round).unwrap());
        db.wait_idle().unwrap();
        assert!(level0(&good) < 2);
        db.close().unwrap();
    });
}

/// Writers who are stopped by another keyspace wait for its compactions, whatever fails elsewhere.
#[test]
fn a_writer_who_is_held_up_by_what_goes_on_is_told_of_no_failure() {
    // Compactions take longer than flushes, for they read more.
    let processor = ProcessorModel { record_nanos: 100_000, kibibyte_nanos: 0 };
    SimEnv::run(SimConfig { processor, ..SimConfig::default() }, |env| {
        let (db, bad, good) = with_a_bad_keyspace(&env);
        let (mut most, mut random) = (0, Random(1));
        for _ in 0..200 {
            (0..60).for_each(|_| good.put(format!("{:04}", random.below(5000)), [7; 100]).unwrap());
            db.flush().unwrap();
            most = most.max(level0(&good));
        }
        assert!(most >= 8 && level0(&bad) < 8, "writers were not stopped: {most} runs");
        assert!(level0(&bad) >= 2 && db.stats().background_errors > 0);
        db.close().unwrap();
    });
}

/// What concerns the device concerns all keyspaces: they are not tried one after the other.
#[test]
fn a_device_that_fails_pauses_the_compactions_of_all_keyspaces() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        for name in ["one", "other"] {
            add_run(&db, &db.keyspace(name).unwrap(), 0).unwrap();
        }
        db.compact().unwrap();
        db.close().unwrap();
        // Nothing of the tables is in memory any more.
        let db = open(&env, &options()).unwrap();
        let both = ["one", "other"].map(|name| db.keyspace(name).unwrap());
        let target =
            FaultTarget::Matching { operation: Operation::ReadAt, path_suffix: ".pack".into(), skipped: 0 };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
        for keyspace in both.iter().cycle().take(6) {
            add_run(&db, keyspace, 1).unwrap();
        }
        env.sleep(Duration::from_secs(20));
        let failures = db.stats().background_errors;
        assert!((2..=6).contains(&failures), "{failures} failures in twenty seconds");
        env.clear_faults();
        env.sleep(Duration::from_secs(20));
        assert!(both.iter().all(|keyspace| level0(keyspace) < 2));
        db.close().unwrap();
    });
}
