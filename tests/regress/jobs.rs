//! Regression tests of threads that wait for each other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use terrace::ErrorKind;
use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, FaultError, FaultRule, Operation, SimConfig, SimEnv};

use super::{fault, open, put_synced, seeds, spawn};

/// A failed sync that poisons the store wakes everybody who waits for background work. Otherwise they wait for ever,
/// since the flush that would end their wait never starts. The simulation finds such a wait as a deadlock.
#[test]
fn a_poisoned_store_keeps_nobody_waiting() {
    for seed in seeds(200) {
        SimEnv::run(SimConfig { seed, preemption_percent: 50, ..SimConfig::default() }, move |env| {
            let db = open(&env).unwrap();
            db.put("key", [1; 10 << 10]).unwrap();
            env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
            let (sender, synced) = mpsc::channel();
            let (flushing, syncing) = (db.clone(), db.clone());
            // Ends well if it comes first.
            let flusher = spawn(&env, move || drop(flushing.flush()));
            let syncer = spawn(&env, move || sender.send(syncing.sync()).unwrap());
            flusher.join();
            syncer.join();
            assert!(synced.recv().unwrap().is_err(), "seed {seed}");
            assert_eq!(db.put("key", "").unwrap_err().kind(), ErrorKind::Poisoned, "seed {seed}");
            assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Poisoned, "seed {seed}");
            assert!(db.contains("key").unwrap(), "seed {seed}");
        });
    }
}

/// A manual compaction takes what is there when it begins, passes each level once, and goes before compactions that
/// have not started. If it waited until each level is empty and nothing is due, a writer that never stops would keep
/// it from ending. So would a compaction thread that starts its next job before the manual compaction has its turn.
#[test]
fn compaction_ends_while_a_writer_goes_on() {
    const WRITES_MAX: u64 = 50_000;
    for seed in seeds(8) {
        let config = SimConfig { seed, device: DeviceModel::nvme(), ..SimConfig::default() };
        SimEnv::run(config, move |env| {
            let db = open(&env).unwrap();
            for n in 0..2000 {
                db.put(format!("{n:05}"), [7; 100]).unwrap();
            }
            let compacted = Arc::new(AtomicBool::new(false));
            let (stop, writing) = (compacted.clone(), db.clone());
            let writer = spawn(&env, move || {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    assert!(n < WRITES_MAX, "seed {seed}: the compaction has not ended");
                    writing.put(format!("{:05}", n * 7919 % 2000), [8; 100]).unwrap();
                    n += 1;
                }
            });
            db.compact().unwrap();
            compacted.store(true, Ordering::Relaxed);
            writer.join();
            assert_eq!(db.iter().unwrap().count(), 2000, "seed {seed}");
        });
    }
}

/// A failed sync wakes the waiting writers under their lock. Otherwise a writer that has found the store sound, and
/// is about to wait for room, misses the wake-up and waits for ever: the flush that would make room never starts.
#[test]
fn a_failed_sync_is_heard_by_a_writer_that_is_about_to_wait_for_room() {
    for seed in seeds(200) {
        SimEnv::run(SimConfig { seed, preemption_percent: 100, ..SimConfig::default() }, move |env| {
            let db = open(&env).unwrap();
            env.set_space(Path::new("/"), 64 << 20);
            env.fault(FaultRule { sticky: true, ..fault(Operation::Create, ".pack", FaultError::NoSpace) });
            let full = (0..20).find_map(|n| db.put([n], [n; 36 << 10]).err()).unwrap();
            assert_eq!(full.kind(), ErrorKind::DiskFull, "seed {seed}");
            env.clear_faults();
            // With more space a writer has the flush tried again, and waits for it.
            env.set_space(Path::new("/"), 128 << 20);
            env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
            let writing = db.clone();
            let writer = spawn(&env, move || _ = writing.put("waits", "for room"));
            assert!(db.sync().is_err(), "seed {seed}");
            writer.join();
        });
    }
}

/// A flush whose edit is durable does not fail if a segment of the log can be neither renamed nor removed. That harms
/// nothing: the next opening removes the file.
#[test]
fn a_log_that_cannot_be_removed_does_not_fail_the_flush() {
    let (rename, ask, remove) =
        ((Operation::Rename, ".recycled"), (Operation::Lock, ".wal"), (Operation::Remove, ".wal"));
    for calls in [vec![rename], vec![rename, remove], vec![ask, remove]] {
        SimEnv::run(SimConfig::default(), move |env| {
            let db = open(&env).unwrap();
            for &(operation, name) in &calls {
                env.fault(FaultRule { sticky: true, ..fault(operation, name, FaultError::Io) });
            }
            for round in 0..3 {
                (0..40).for_each(|n| db.put(format!("{n:02}"), [round; 1000]).unwrap());
                db.flush().unwrap();
            }
            assert!(env.faults_fired() > 0, "{calls:?}");
            assert_eq!(db.stats().background_errors, 0, "{calls:?}");
            env.clear_faults();
            db.close().unwrap();
            let db = open(&env).unwrap();
            db.wait_idle().unwrap();
            assert!(db.iter().unwrap().all(|entry| entry.unwrap().1 == [2; 1000][..]), "{calls:?}");
            assert!(db.verify().unwrap().problems.is_empty(), "{calls:?}");
        });
    }
}

/// A write whose sync has failed is in the memtable and never becomes visible. A transaction on its key must not
/// conflict with it for ever: `Db::update`, which tries again, would never end.
#[test]
fn a_transaction_on_a_poisoned_store_is_told_of_that_and_not_of_a_conflict() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env).unwrap();
        db.put("key", "old").unwrap();
        env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
        assert_eq!(put_synced(&db, "key", b"unknown").unwrap_err().kind(), ErrorKind::Io);
        let mut transaction = db.transaction();
        assert_eq!(transaction.get("key").unwrap().unwrap(), "old");
        transaction.put("key", "new");
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Poisoned);
        let updated = db.update("key", |_| Some("new"));
        assert_eq!(updated.map(drop).unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

/// A transaction that loses against a write that is not visible yet, because its sync is running, waits for that
/// write. Otherwise each new attempt loses too: `Db::update` would spin for as long as the sync takes, in the
/// simulation for ever.
#[test]
fn who_loses_against_a_write_sees_it_when_trying_again() {
    let config = SimConfig { device: DeviceModel::nvme(), ..SimConfig::default() };
    let lost = SimEnv::run(config, |env| {
        let db = open(&env).unwrap();
        let mut lost = 0;
        for n in 0..100 {
            let (key, writing) = (format!("{n}"), db.clone());
            let written = key.clone();
            let writer = spawn(&env, move || put_synced(&writing, &written, b"theirs").unwrap());
            // Somewhere between its beginning and the end of its sync.
            env.sleep(Duration::from_micros(n));
            let mut transaction = db.transaction();
            transaction.put(&key, "mine");
            if transaction.commit().is_err() {
                assert_eq!(db.get(&key).unwrap().unwrap(), "theirs");
                lost += 1;
            }
            writer.join();
        }
        db.close().unwrap();
        lost
    });
    assert!(lost > 0, "nobody has lost");
}

/// A flush that finds the disk full must not count its own packs as space that was freed. If they become recycled
/// files, which are removed to make space for the flush, it begins again for ever in the space that it has taken
/// itself. The store has one table a file, so that a flush writes several files.
#[test]
fn a_flush_that_frees_only_what_it_took_itself_gives_up() {
    SimEnv::run(SimConfig::default(), |env| {
        let mut options = super::tiny();
        options.tree.files.packs = terrace::tree::PackLayout::OneTable;
        let shared: Arc<dyn Env> = env.clone();
        let db = terrace::Db::builder("/db").env(shared).options(options).open().unwrap();
        for n in 0..60 {
            db.put(format!("{n:05}"), [7; 200]).unwrap();
        }
        // Room for the log's next segment and one table, but not for two.
        for pages in 0..40 {
            env.set_space(Path::new("/db"), env.used_bytes(Path::new("/db")) + pages * 4096);
            match db.flush() {
                Ok(()) => return,
                Err(error) => assert_eq!(error.kind(), ErrorKind::DiskFull),
            }
        }
        panic!("40 pages are enough");
    });
}
