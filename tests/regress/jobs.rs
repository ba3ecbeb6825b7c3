//! Threads that wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use terrace::ErrorKind;
use terrace::env::simulated::{DeviceModel, FaultError, Operation, SimConfig, SimEnv};

use crate::{fault, open, seeds, spawn};

/// A failed sync poisoned the store without a word to those who waited for background work: the flush that would have
/// ended their wait no longer started. The simulation finds such a wait as a deadlock.
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

/// Compaction went through each level until it was empty, and then waited for a store in which nothing was due: a writer
/// that never stops kept it from either. And where a merge was in its way, it waited for its turn while the merging
/// thread, lock in hand, had already started the next one. Now it takes what was there when it began, passes each level
/// once, and goes before merges that have not started.
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
