//! Regression tests of what keyspaces share, and must not take from each other.

use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, FaultError, FaultRule, Operation, SimConfig, SimEnv, Survival};
use terrace::{Db, ErrorKind, WriteBatch};
use terrace_torture::TreeParts as _;

use super::{fault, files, open, seeds, spawn, tiny};

/// A flush syncs the log first if other keyspaces have older entries in it, or entries of the same batch. Otherwise a
/// power cut keeps the flushed entries without these. A comparison of single sequence numbers is not enough: the
/// numbers of one batch in two keyspaces are consecutive, so those of the second keyspace look newer. The operations
/// are small, so that the memtable is full while the log's segment is not: a segment that ends is synced anyway.
#[test]
fn a_flush_keeps_no_half_of_a_batch_over_two_keyspaces() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env).unwrap();
        let other = db.keyspace("other").unwrap();
        let mut batch = WriteBatch::new();
        for n in 0..1200u16 {
            batch.put(n.to_le_bytes(), "");
        }
        batch.put_in(&other, "last", "");
        db.write(batch).unwrap();
        // Finds the memtable full and gives it up for flushing.
        db.put("next", "").unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().flush.jobs, 1, "only one keyspace is flushed");

        let db = open(&env.crash(Survival::Nothing)).unwrap();
        let other = db.keyspace("other").unwrap();
        let survivors = (db.contains(0u16.to_le_bytes()).unwrap(), other.contains("last").unwrap());
        assert_eq!(survivors, (true, true));
    });
}

/// Runs `body` once with the power cut at each of its mutating calls, and calls `check` on what is left each time.
/// `prepare` makes the machine and what `body` starts from.
fn cut_everywhere(
    prepare: fn(&Arc<SimEnv>),
    body: fn(&Arc<SimEnv>),
    check: impl Fn(&Db, &str) + Clone + Send + 'static,
) {
    let run = move |cut: Option<u64>| {
        SimEnv::run(SimConfig::default(), move |env| {
            prepare(&env);
            let before = env.mutations();
            cut.into_iter().for_each(|cut| env.cut_after(cut));
            body(&env);
            (env.crash(Survival::Nothing), env.mutations() - before)
        })
    };
    let (_, mutations) = run(None);
    assert!(mutations > 10);
    for cut in 0..mutations {
        let (crashed, _) = run(Some(cut));
        let check = check.clone();
        crashed.simulate(move |env| {
            let db = open(&env).unwrap_or_else(|e| panic!("cut {cut}: {e}"));
            check(&db, &format!("cut {cut}"));
        });
    }
}

fn assert_whole_or_absent(db: &Db, when: &str) {
    let Some(other) = db.existing_keyspace("other").unwrap() else { return };
    let halves = (db.contains("first").unwrap(), other.contains("second").unwrap());
    assert_eq!(halves.0, halves.1, "{when}: {halves:?}");
}

/// The same for a segment that has ended: it is synced before the flush is installed. Otherwise a power cut in
/// between leaves one half of the batch.
#[test]
fn no_power_cut_during_a_flush_tears_a_batch_over_two_keyspaces() {
    cut_everywhere(
        |_| {},
        |env| {
            let Ok(db) = open(env) else { return };
            let Ok(other) = db.keyspace("other") else { return };
            let mut batch = WriteBatch::new();
            batch.put("first", [7; 40 << 10]).put_in(&other, "second", "value");
            let _ = db.write(batch).and_then(|()| db.put("next", "value")).and_then(|()| db.wait_idle());
        },
        assert_whole_or_absent,
    );
}

/// Recovery ends a full memtable between batches, and makes the log durable before it flushes the memtable.
/// Otherwise, if the log is only in the page cache, as after a failed sync, a power cut loses the rest of a batch
/// whose beginning was flushed.
#[test]
fn no_power_cut_tears_a_batch_that_recovery_reads_from_the_log() {
    cut_everywhere(
        |env| {
            let db = open(env).unwrap();
            let other = db.keyspace("other").unwrap();
            env.fault(FaultRule { sticky: true, ..fault(Operation::Create, ".pack", FaultError::NoSpace) });
            let mut batch = WriteBatch::new();
            batch.put("first", [7; 40 << 10]).put("middle", [7; 40 << 10]).put_in(&other, "second", "value");
            db.write(batch).unwrap();
            env.fault(fault(Operation::Sync, ".wal", FaultError::Io));
            db.sync().unwrap_err();
            drop((db, other));
            env.clear_faults();
        },
        |env| {
            let _ = open(env).and_then(|db| db.wait_idle());
        },
        |db, when| {
            assert_whole_or_absent(db, when);
            assert_eq!(db.contains("first").unwrap(), db.contains("middle").unwrap(), "{when}");
        },
    );
}

/// While a keyspace is being dropped, and the drop is not durable, a flush of another keyspace must keep the log that
/// the dropped one needs. Otherwise, after a power cut, the keyspace is there, but not what was written to it with a
/// sync.
#[test]
fn a_keyspace_whose_drop_was_cut_off_still_has_its_log() {
    let device = DeviceModel {
        flush_latency: Duration::from_millis(1),
        read_latency: Duration::from_millis(5),
        ..DeviceModel::instant()
    };
    let crashes = SimEnv::run(SimConfig { device, ..SimConfig::default() }, |env| {
        let db = open(&env).unwrap();
        let doomed = db.keyspace("doomed").unwrap();
        for _ in 0..2 {
            for n in 0..400 {
                doomed.put(format!("{n:05}"), [7; 100]).unwrap();
            }
            db.flush().unwrap();
        }
        doomed.put("precious", "value").unwrap();
        db.sync().unwrap();
        db.put("fills", [1; 33 << 10]).unwrap();
        let compacted = doomed.clone();
        // Fails when the keyspace is dropped under it.
        let compaction = spawn(&env, move || drop(compacted.compact_range(..)));
        env.sleep(Duration::from_millis(8));
        let dropping = db.clone();
        let drop_keyspace = spawn(&env, move || dropping.drop_keyspace("doomed").unwrap());
        env.sleep(Duration::from_micros(100));
        let mut crashes = Vec::new();
        for n in 0..40 {
            db.put(format!("other {n}"), [1; 16 << 10]).unwrap();
            env.sleep(Duration::from_millis(1));
            crashes.push(env.crash(Survival::Nothing));
        }
        compaction.join();
        drop_keyspace.join();
        crashes
    });
    for (n, crashed) in crashes.into_iter().enumerate() {
        crashed.simulate(move |env| {
            let db = open(&env).unwrap_or_else(|e| panic!("crash {n}: {e}"));
            if let Some(doomed) = db.existing_keyspace("doomed").unwrap() {
                assert!(doomed.contains("precious").unwrap(), "crash {n}");
            }
        });
    }
}

/// Failures of flushes and of compactions are noted apart: a keyspace whose compactions fail because of a damaged
/// table must not make the flushes of others fail and wait.
#[test]
fn flushes_go_on_while_the_compactions_of_a_damaged_keyspace_fail() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env).unwrap();
        let damaged = db.keyspace("damaged").unwrap();
        let add_run = |n: usize| {
            damaged.put("same", format!("{n}")).unwrap();
            damaged.put(format!("{n}"), [3; 2000]).unwrap();
            db.flush().unwrap();
        };
        let runs = *tiny().tree.l0_trigger();
        (1..runs).for_each(add_run);
        for pack in files(&env, ".pack") {
            env.overwrite(&pack, 100, &[0xff; 200]).unwrap();
        }
        add_run(runs);
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Corruption);
        for n in 0..10 {
            db.put(format!("{n}"), "value").unwrap();
            db.flush().unwrap();
            // Through the pauses after which the compaction is tried again.
            env.sleep(Duration::from_secs(1));
        }
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Corruption, "the compaction still fails");
        assert!(db.stats().flush.jobs as usize >= runs + 10);
    });
}

/// A keyspace that is being dropped refuses reads as soon as it refuses writes, even while a compaction in it still
/// runs. Otherwise a caller learns that it is gone, and then reads what is in it.
#[test]
fn what_is_gone_for_a_writer_is_gone_for_readers() {
    for seed in seeds(50) {
        SimEnv::run(SimConfig { seed, device: DeviceModel::nvme(), ..SimConfig::default() }, move |env| {
            let db = open(&env).unwrap();
            let passing = db.keyspace("passing").unwrap();
            for n in 0..2000 {
                passing.put(format!("{:05}", n * 7919 % 2000), [7; 100]).unwrap();
            }
            let dropping = db.clone();
            let dropper = spawn(&env, move || dropping.drop_keyspace("passing").unwrap());
            while let Ok(()) = passing.put("late", "") {
                env.sleep(Duration::from_micros(10));
            }
            let read = passing.get("late").map_err(|error| error.kind());
            assert_eq!(read, Err(ErrorKind::NotFound), "seed {seed}");
            dropper.join();
            db.close().unwrap();
        });
    }
}
