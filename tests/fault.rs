//! Tests of single failing calls: a failed sync poisons the store, the answers to other writers hold, and a failed
//! opening leaves the store free. The suite `fault` of `crates/torture` lets every call fail.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;

use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Durability, ErrorKind, Options, WriteBatch};
use terrace_torture::client::{DIR, open};
use terrace_torture::fault::Watch;
use terrace_torture::{Replay, Rng, number, seed_or, tiny};

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() })
}

fn matching(operation: Operation, path_suffix: &str, skipped: u64) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: path_suffix.into(), skipped };
    FaultRule { target, error: FaultError::Io, sticky: false, partial: false }
}

/// Opens a store, lets `act` do what meets a failing sync, and checks that only reading goes on.
fn poisons(rule: fn(&SimEnv) -> FaultRule, error: FaultError, act: fn(&Db) -> terrace::Result<()>) {
    let machine = machine(3, Journal::None);
    machine.simulate(move |env| {
        let db = open(&env, &tiny()).unwrap();
        db.put("old", "value").unwrap();
        db.sync().unwrap();
        env.fault(FaultRule { error, ..rule(&env) });
        let failed = act(&db).unwrap_err();
        assert_eq!(env.faults_fired(), 1);
        // A background job's failure reaches the caller as the reason of a refusal.
        assert!(matches!(failed.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{failed:?}");
        assert!(failed.file().is_some());
        let calls = env.mutations();
        for refused in [db.put("new", "value"), db.sync(), db.flush(), db.compact(), db.drop_keyspace("none")]
        {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
        }
        assert_eq!(db.keyspace("another").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(env.mutations(), calls, "a poisoned store changes files");
        assert_eq!(db.get("old").unwrap().unwrap(), "value");
        assert!(db.iter().unwrap().any(|entry| entry.unwrap().0 == "old"));
        assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

#[test]
fn a_failed_sync_of_the_log_poisons() {
    for error in [FaultError::Io, FaultError::NoSpace] {
        poisons(
            |_| matching(Operation::Sync, ".wal", 0),
            error,
            |db| {
                let mut batch = WriteBatch::new();
                batch.put("key", "value");
                db.write_with(batch, Durability::Synced)
            },
        );
        poisons(
            |_| matching(Operation::Sync, ".wal", 0),
            error,
            |db| {
                db.put("key", "value")?;
                db.sync()
            },
        );
    }
}

#[test]
fn a_failed_sync_of_the_manifest_poisons() {
    for error in [FaultError::Io, FaultError::NoSpace] {
        let current = |env: &SimEnv| {
            let (path, _) = env
                .files()
                .into_iter()
                .find(|(path, _)| path.to_string_lossy().contains("MANIFEST-"))
                .unwrap();
            matching(Operation::Sync, path.file_name().unwrap().to_str().unwrap(), 0)
        };
        poisons(current, error, |db| db.keyspace("another").map(drop));
    }
}

#[test]
fn a_failed_sync_of_the_directory_poisons() {
    for error in [FaultError::Io, FaultError::NoSpace] {
        // The first is that of a log segment, the second that of a pack.
        for skipped in [0, 1] {
            let rule = if skipped == 0 {
                |_: &SimEnv| matching(Operation::SyncDir, DIR, 0)
            } else {
                |_: &SimEnv| matching(Operation::SyncDir, DIR, 1)
            };
            poisons(rule, error, |db| db.put("key", "value").and_then(|()| db.flush()));
        }
    }
}

/// Nobody waits for it, and everybody hears of it.
#[test]
fn a_failed_sync_of_names_that_are_made_ahead_poisons() {
    for error in [FaultError::Io, FaultError::NoSpace] {
        for seed in 0..8 {
            let _replay = Replay(format!("seed {seed}"));
            let machine = machine(seed, Journal::None);
            let flushed = machine.simulate(move |env| {
                let _watch = Watch::start(&env);
                let db = open(&env, &tiny()).unwrap();
                let flush = |n: u32| db.put(format!("{n:04}"), "value").and_then(|()| db.flush());
                flush(0).unwrap();
                db.wait_idle().unwrap();
                env.fault(FaultRule { error, sticky: true, ..matching(Operation::SyncDir, DIR, 0) });
                let failed = (1..).find_map(|n| flush(n).err().map(|error| (n, error)));
                let (flushed, error) = failed.unwrap();
                assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{error:?}");
                assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Poisoned);
                assert_eq!(db.put("new", "value").unwrap_err().kind(), ErrorKind::Poisoned);
                assert!(db.iter().unwrap().count() as u32 >= flushed);
                flushed
            });
            machine.crash(Survival::Nothing).simulate(move |env| {
                let db = open(&env, &tiny()).unwrap();
                assert!(db.iter().unwrap().count() as u32 >= flushed, "what was flushed is durable");
                assert!(db.verify().unwrap().problems.is_empty());
            });
        }
    }
}

/// The answer to one of several writers.
#[derive(Clone, Copy, Default)]
struct Told {
    /// Puts that were asked for; the last one may have failed.
    asked: usize,
    /// Puts that are durable.
    durable: usize,
}

/// Writers that the test runs beside each other.
const WRITERS: usize = 3;

/// What each of them does.
#[derive(Clone, Copy)]
struct Load {
    puts: usize,
    /// Of so many puts, one is synced.
    synced_every: usize,
    memtable_bytes: u64,
}

/// Lets writers put numbered keys at the same time until one fails, and returns the answers to each.
fn write_together(machine: &Arc<SimEnv>, rule: FaultRule, load: Load) -> Vec<Told> {
    let options = Options { memtable_bytes: load.memtable_bytes, wal_bytes_max: 64 << 10, ..tiny() };
    machine.simulate(move |env| {
        let _watch = Watch::start(&env);
        let db = open(&env, &options).unwrap();
        env.fault(rule);
        let told = Arc::new(Mutex::new(vec![Told::default(); WRITERS]));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, told) = (db.clone(), told.clone());
                let body = move || write_numbered(&db, writer, load, &told);
                env.spawn("writer", Priority::Normal, Box::new(body)).unwrap()
            })
            .collect();
        writers.into_iter().for_each(Thread::join);
        let _ = db.close();
        std::mem::take(&mut *told.lock())
    })
}

fn write_numbered(db: &Db, writer: usize, load: Load, told: &Mutex<Vec<Told>>) {
    let mut failures = 0;
    for n in 0..load.puts {
        // A put that failed is asked for again: a gap would be a hole in the history.
        loop {
            told.lock()[writer].asked = n + 1;
            let mut batch = WriteBatch::new();
            batch.put(format!("{writer}/{n:03}"), vec![writer as u8; 120 + 60 * (n % 7)]);
            let durability =
                if n % load.synced_every == writer { Durability::Synced } else { Durability::Buffered };
            match db.write_with(batch, durability) {
                Ok(()) if durability == Durability::Synced => told.lock()[writer].durable = n + 1,
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Poisoned => return,
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull), "{error:?}");
                    failures += 1;
                    if failures > 3 {
                        return;
                    }
                    // The end of the log after a failure must be no worse a place to start a segment at.
                    let _ = db.flush();
                    continue;
                }
            }
            break;
        }
    }
}

/// Of each writer's puts, the first ones are there, with all that is durable.
fn check_together(machine: &Arc<SimEnv>, survival: Survival, told: &[Told]) {
    let told = told.to_vec();
    machine.crash(survival).simulate(move |env| {
        let db = open(&env, &tiny()).unwrap_or_else(|error| panic!("{error:?}, files: {:?}", env.files()));
        for (writer, told) in told.iter().enumerate() {
            let found = db.prefix(format!("{writer}/")).unwrap().map(|entry| entry.unwrap().0);
            let found: Vec<String> = found.map(|key| String::from_utf8(key.to_vec()).unwrap()).collect();
            assert!(found.len() >= told.durable, "{} of {} synced puts are there", found.len(), told.durable);
            assert!(found.len() <= told.asked);
            assert!(found.iter().enumerate().all(|(n, key)| *key == format!("{writer}/{n:03}")), "{found:?}");
        }
        assert!(db.verify().unwrap().problems.is_empty());
    });
}

#[test]
fn what_one_writer_is_told_holds_whatever_happens_to_another() {
    let first = seed_or(0);
    let mut struck = 0;
    for seed in first..first + number("TERRACE_SCHEDULES").unwrap_or(24) {
        let mut rng = Rng::new(seed);
        let (operation, suffix) = *rng.pick(&[
            (Operation::Sync, ".wal"),
            (Operation::Sync, ".wal"),
            (Operation::SyncDir, ""),
            (Operation::WriteAt, ".wal"),
            (Operation::WriteAt, ".wal"),
            (Operation::WriteAt, ".pack"),
            (Operation::Sync, ".pack"),
        ]);
        let skipped = rng.below(if operation == Operation::WriteAt { 60 } else { 20 }) as u64;
        let error = if operation == Operation::WriteAt { FaultError::NoSpace } else { FaultError::Io };
        let rule = FaultRule { error, partial: true, ..matching(operation, suffix, skipped) };
        let _replay = Replay(format!("TERRACE_SEED={seed}: {rule:?}"));
        let config =
            SimConfig { seed, journal: Journal::None, preemption_percent: 50, ..SimConfig::default() };
        let machine = SimEnv::new(config);
        let memtable_bytes = *rng.pick(&[4 << 10, 8 << 10]);
        let load = Load { puts: 60, synced_every: *rng.pick(&[4, 12]), memtable_bytes };
        let told = write_together(&machine, rule, load);
        struck += usize::from(machine.faults_fired() > 0);
        for survival in
            [Survival::Nothing, Survival::Everything, Survival::Random(seed), Survival::Random(!seed)]
        {
            check_together(&machine, survival, &told);
        }
    }
    println!("{struck} faults struck several writers");
    assert!(struck > 8);
}

#[test]
fn an_opening_that_fails_leaves_the_store_free() {
    let prepare = |env: &Arc<SimEnv>| {
        let db = open(env, &tiny()).unwrap();
        for n in 0..4 {
            db.put(format!("key{n}"), vec![7; 2500]).unwrap();
        }
        db.close().unwrap();
    };
    let calls = SimEnv::run(SimConfig::default(), move |env| {
        prepare(&env);
        let before = env.calls();
        drop(open(&env, &tiny()).unwrap());
        before..env.calls()
    });
    let mut failed = 0;
    for call in calls {
        let _replay = Replay(format!("call {call} fails"));
        failed += usize::from(SimEnv::run(SimConfig::default(), move |env| {
            prepare(&env);
            let target = FaultTarget::Call(call);
            env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
            let failed = open(&env, &tiny()).is_err();
            let again = open(&env, &tiny()).unwrap_or_else(|error| panic!("not free: {error:?}"));
            assert_eq!(again.iter().unwrap().count(), 4);
            failed
        }));
    }
    assert!(failed > 10, "only {failed} openings failed");
}
