//! Regression tests of the write-ahead log after calls that failed.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::Thread;
use terrace::env::simulated::{
    DeviceModel, FaultError, FaultRule, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::{Db, Durability, ErrorKind, Options, WriteBatch};

use super::{fault, files, open, put_synced, spawn, tiny};

/// The extremes, and some of what lies between.
fn survivals() -> [Survival; 12] {
    std::array::from_fn(|n| match n {
        0 => Survival::Nothing,
        1 => Survival::Everything,
        _ => Survival::Random(n as u64),
    })
}

/// A disk on which a sync takes long enough for other writers to queue up.
fn slow_to_sync() -> DeviceModel {
    DeviceModel { flush_latency: Duration::from_millis(2), queue_depth: 4, ..DeviceModel::instant() }
}

fn keys(db: &Db) -> Vec<String> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    db.iter().unwrap().map(|entry| text(&entry.unwrap().0)).collect()
}

/// A group whose append fails on a full disk is cut off the log again, durably, before its callers get the error.
/// Otherwise whole frames of it stay in the log, and the next opening brings back writes that were reported as
/// failed. And if the segment ends meanwhile, it is longer than its successor says. That looks like a gap, and
/// recovery drops the successor with the synced writes in it.
#[test]
fn a_group_that_failed_neither_comes_back_nor_takes_later_writes_along() {
    for rolled in [false, true] {
        let env = SimEnv::new(SimConfig { device: slow_to_sync(), ..SimConfig::default() });
        let crashes = env.simulate(move |env| {
            let db = open(&env).unwrap();
            let (sender, results) = mpsc::channel();
            let write = |key: &'static str| {
                let (db, sender) = (db.clone(), sender.clone());
                spawn(&env, move || sender.send((key, put_synced(&db, key, b"value"))).unwrap())
            };
            let first = write("first");
            env.sleep(Duration::from_millis(1));
            env.fault(FaultRule {
                partial: true,
                sticky: true,
                ..fault(Operation::WriteAt, ".wal", FaultError::NoSpace)
            });
            let group = ["a", "b", "c"].map(write);
            first.join();
            group.into_iter().for_each(Thread::join);
            env.clear_faults();
            for (key, result) in results.try_iter() {
                let expected = if key == "first" { None } else { Some(ErrorKind::DiskFull) };
                assert_eq!(result.err().map(|error| error.kind()), expected, "{key}");
            }
            let at_once = survivals().map(|survival| env.crash(survival));
            if rolled {
                // Packs find no space, so the log stays.
                env.fault(FaultRule {
                    sticky: true,
                    ..fault(Operation::Create, ".pack", FaultError::NoSpace)
                });
                assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
            }
            put_synced(&db, "after", b"value").unwrap();
            [at_once, survivals().map(|survival| env.crash(survival))]
        });
        for (crashes, expected) in crashes.into_iter().zip([&["first"][..], &["after", "first"]]) {
            for (crashed, survival) in crashes.into_iter().zip(survivals()) {
                crashed.simulate(move |env| {
                    let db = open(&env).unwrap();
                    assert_eq!(keys(&db), expected, "rolled {rolled}, {survival:?}");
                });
            }
        }
    }
}

/// What a failed append leaves in the log is overwritten by the next one, which must start where the failed one did,
/// with the same sequence numbers: otherwise the log ends, for the next opening, at the half that was stored.
#[test]
fn a_batch_that_failed_and_was_written_again_is_there_once() {
    for partial in [false, true] {
        SimEnv::run(SimConfig::default(), move |env| {
            let db = open(&env).unwrap();
            db.put("before", "value").unwrap();
            let mut batch = WriteBatch::new();
            for n in 0..50 {
                batch.put(format!("{n:02}"), format!("value {n:02}"));
            }
            env.fault(FaultRule { partial, ..fault(Operation::WriteAt, ".wal", FaultError::NoSpace) });
            let error = db.write_with(batch.clone(), Durability::Synced).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DiskFull);
            assert_eq!(db.iter().unwrap().count(), 1, "nothing of it shows");
            db.write_with(batch, Durability::Synced).unwrap();
            for survival in survivals() {
                let crashed = env.crash(survival);
                let mut log = Vec::new();
                for path in files(&crashed, ".wal") {
                    log.extend(crashed.read_file(&path).unwrap());
                }
                let db = open(&crashed).unwrap();
                for n in 0..50 {
                    let value = format!("value {n:02}");
                    let copies = log.windows(value.len()).filter(|bytes| *bytes == value.as_bytes()).count();
                    assert_eq!(copies, 1, "{value}, partial {partial}, {survival:?}");
                    assert_eq!(db.get(format!("{n:02}")).unwrap().unwrap(), value);
                }
                assert_eq!(db.stats().last_seq, 51);
                db.flush().unwrap();
                assert_eq!(db.stats().flush.records, 51);
            }
        });
    }
}

/// A segment that could not be started on a full disk must go again: without its first frame it would stand, empty,
/// between two good ones, and recovery would take it for the end of the log. The segment before it goes on.
#[test]
fn a_segment_that_could_not_be_started_leaves_no_gap() {
    for journal in [Journal::Ext4Like, Journal::None] {
        for operation in [Operation::Create, Operation::WriteAt] {
            SimEnv::run(SimConfig { journal, ..SimConfig::default() }, move |env| {
                let db = open(&env).unwrap();
                put_synced(&db, "a", b"value").unwrap();
                let check = |expected: &[&str]| {
                    for survival in survivals() {
                        let db = open(&env.crash(survival)).unwrap();
                        assert_eq!(keys(&db), expected, "{journal:?}, {operation:?}, {survival:?}");
                    }
                };
                env.fault(FaultRule { partial: true, ..fault(operation, ".wal", FaultError::NoSpace) });
                assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
                check(&["a"]);
                put_synced(&db, "b", b"value").unwrap();
                check(&["a", "b"]);
                // The next segment starts, but its log is needed: packs find no space.
                env.fault(FaultRule {
                    sticky: true,
                    ..fault(Operation::Create, ".pack", FaultError::NoSpace)
                });
                assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::DiskFull);
                put_synced(&db, "c", b"value").unwrap();
                check(&["a", "b", "c"]);
            });
        }
    }
}

/// After a sync has failed, the bytes are still in the page cache, and a later sync succeeds without writing them. So
/// recovery must not take the bytes that it reads for durable ones.
#[test]
fn a_log_whose_sync_failed_is_made_durable_when_the_store_is_opened_again() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env).unwrap();
        db.put("before", "").unwrap();
        env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
        assert!(db.sync().is_err());
        assert_eq!(db.put("refused", "").unwrap_err().kind(), ErrorKind::Poisoned);
        drop(db);
        env.clear_faults();

        let db = open(&env).unwrap();
        assert!(db.contains("before").unwrap());
        put_synced(&db, "after", b"").unwrap();
        let db = open(&env.crash(Survival::Nothing)).unwrap();
        assert!(db.contains("before").unwrap() && db.contains("after").unwrap());
    });
}

/// When a background thread and a synced writer sync an old segment of the log at the same time, the operating system
/// reports a failure to one of them only. Both must learn of it. Otherwise the writer acknowledges its write, and all
/// before it, as durable, while those in the old segment are not.
#[test]
fn a_failed_sync_of_an_old_segment_reaches_every_writer_that_counts_on_it() {
    for delay in (0..40).map(|n| n * Duration::from_micros(250)) {
        let config = SimConfig { device: slow_to_sync(), ..SimConfig::default() };
        let (crashed, synced) = SimEnv::run(config, move |env| {
            let db = open(&env).unwrap();
            // Somebody waits for syncs: old segments are made durable ahead.
            db.sync().unwrap();
            // The first one fills a memtable and a segment and is being flushed when the second one has done so, too.
            db.put("first", [1; 33 << 10]).unwrap();
            db.put("second", [1; 33 << 10]).unwrap();
            db.put("third", "value").unwrap();
            assert!(!files(&env, "000003.wal").is_empty());
            // The background thread gets there first, unless the writer is early.
            env.fault(fault(Operation::Sync, "000002.wal", FaultError::Io));
            env.sleep(delay);
            let synced = put_synced(&db, "fourth", b"value");
            let _ = db.wait_idle();
            assert_eq!(env.faults_fired(), 1);
            (env.crash(Survival::Nothing), synced)
        });
        if synced.is_ok() {
            crashed.simulate(move |env| {
                let db = open(&env).unwrap();
                assert_eq!(keys(&db), ["first", "fourth", "second", "third"], "delay {delay:?}");
            });
        }
    }
}

/// A write to the log that starts a new segment may draw on the reserve. Otherwise, if the segment is full, the next
/// one cannot be started on a full disk, and no delete can free space.
#[test]
fn a_segment_that_ends_on_a_full_disk_is_followed_by_one_in_the_reserve() {
    let options = || Options { wal_bytes_max: 64 << 10, reserve_bytes: 256 << 10, ..tiny() };
    let mut rolled = 0;
    for puts in 0..24 {
        rolled += SimEnv::run(SimConfig { preemption_percent: 0, ..SimConfig::default() }, move |env| {
            let db = Db::builder("/db").env(env.clone()).options(options()).open().unwrap();
            for n in 0..puts {
                db.put(format!("{n:02}"), [7; 1000]).unwrap();
            }
            let segments = files(&env, ".wal").len();
            // Frees what removed files have taken.
            env.sync_dir(Path::new("/db")).unwrap();
            env.set_space(Path::new("/db"), env.used_bytes(Path::new("/db")));
            db.delete("00").unwrap_or_else(|error| panic!("after {puts} puts: {error}"));
            usize::from(files(&env, ".wal").len() > segments && files(&env, "RESERVE").is_empty())
        });
    }
    assert!(rolled > 0);
}
