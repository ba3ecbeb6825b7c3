//! A call that fails, each one in turn.
//!
//! Each schedule is run once to count its calls, then again and again with one of them failing: with EIO, with a full
//! device (syncs as well), with too many open files; that once, or from then on. Every operation succeeds or says what
//! failed and where; reads stay right; nothing hangs, by a watch in virtual time. Afterwards the store is opened by
//! another process on the same machine, and after a power cut: every synced write is there, and a batch that came
//! back with an error is there as a whole or not at all.
//!
//! `TERRACE_FAULT_FULL=1` leaves no call out; otherwise a seeded share is tried. `TERRACE_SEED=n` draws another
//! schedule of the threads and another share; `TERRACE_FAULT_ONLY=name` runs one schedule.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::client::{Client, DIR, History, Manners, open};
use common::recovery::examine;
use common::schedules::{SCHEDULES, Schedule};
use common::{Replay, Rng, seed_or, switched_on, tiny};
use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Durability, ErrorKind, Options, WriteBatch};

/// Cases of each schedule that are tried unless all are.
const CASES_SAMPLED: usize = 90;

/// Virtual time that no schedule takes: a failed job is tried again every second.
const PATIENCE: Duration = Duration::from_secs(1800);

#[derive(Clone)]
struct Case {
    schedule: &'static str,
    seed: u64,
    journal: Journal,
    rule: FaultRule,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedule, seed, journal, rule } = self;
        write!(f, "TERRACE_SEED={seed} TERRACE_FAULT_FULL=1 TERRACE_FAULT_ONLY={schedule:?}: ")?;
        write!(f, "{journal:?}, {rule:?}")
    }
}

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() })
}

/// Panics when a simulation does not end in time: a store that waits for ever, or tries for ever.
struct Watch(Arc<AtomicBool>);

impl Watch {
    fn start(env: &Arc<SimEnv>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (env_of_watch, seen) = (env.clone(), over.clone());
        let body = move || {
            while !seen.load(Ordering::Relaxed) {
                env_of_watch.sleep(Duration::from_secs(20));
                assert!(env_of_watch.now() < PATIENCE, "the store hangs");
            }
        };
        env.spawn("watch", Priority::Normal, Box::new(body)).expect("no fault strikes the first call");
        Self(over)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a schedule on `machine` with whatever faults it has.
fn run(schedule: &Schedule, machine: &Arc<SimEnv>) -> History {
    let (options, steps) = ((schedule.options)(), schedule.run);
    machine.simulate(move |env| {
        let _watch = Watch::start(&env);
        let mut client = Client::new(env, options, Manners::Tolerant);
        let _ = steps(&mut client);
        if client.is_open() {
            let _ = client.check_reads("at the end");
        }
        let _ = client.close();
        client.history
    })
}

/// Every fault of a schedule that can strike, or a seeded share of them.
fn cases(schedule: &Schedule, seed: u64, rng: &mut Rng) -> Vec<Case> {
    let mut rules = Vec::new();
    let whole = machine(seed, Journal::default());
    let history = run(schedule, &whole);
    assert_eq!(history.errors, 0, "{} fails by itself", schedule.name);
    for error in [FaultError::Io, FaultError::NoSpace] {
        for sticky in [false, true] {
            // The first call starts the watch.
            rules.extend((1..whole.calls()).map(|call| FaultRule {
                target: FaultTarget::Call(call),
                error,
                sticky,
                partial: call % 2 == 1,
            }));
        }
    }
    for operation in [Operation::Open, Operation::Create] {
        for sticky in [false, true] {
            rules.extend((0..whole.calls() / 8).map(|skipped| FaultRule {
                target: FaultTarget::Matching { operation, path_suffix: String::new(), skipped },
                error: FaultError::TooManyFiles,
                sticky,
                partial: false,
            }));
        }
    }
    if !switched_on("TERRACE_FAULT_FULL") {
        let all = std::mem::take(&mut rules);
        rules = (0..CASES_SAMPLED).map(|_| rng.pick(&all).clone()).collect();
    }
    let journal = |at: usize| if at.is_multiple_of(2) { Journal::None } else { Journal::Ext4Like };
    let case = |(at, rule)| Case { schedule: schedule.name, seed, journal: journal(at), rule };
    rules.into_iter().enumerate().map(case).collect()
}

#[test]
fn a_failed_call_is_reported_and_does_no_harm() {
    let seed = seed_or(1);
    let only = std::env::var("TERRACE_FAULT_ONLY").ok();
    let (mut total, mut struck) = (0, 0);
    for schedule in SCHEDULES.iter().filter(|s| only.as_deref().is_none_or(|only| only == s.name)) {
        let mut rng = Rng::new(seed);
        let cases = cases(schedule, seed, &mut rng);
        for (at, case) in cases.iter().enumerate() {
            let _replay = Replay(case);
            let machine = machine(case.seed, case.journal);
            machine.fault(case.rule.clone());
            let history = run(schedule, &machine);
            struck += usize::from(machine.faults_fired() > 0);
            machine.clear_faults();
            let options = (schedule.options)();
            for survival in [Survival::Nothing, Survival::Random(at as u64)] {
                examine(&machine.crash(survival), &options, &history, at as u64);
            }
            examine(&machine, &options, &history.without_power_cut(), at as u64);
        }
        total += cases.len();
        println!("{}: {} faults", schedule.name, cases.len());
    }
    println!("{total} faults in all, of which {struck} struck");
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

/// What one of several writers was told.
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

/// Lets writers put numbered keys beside each other until one fails, and tells what each was told.
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
    let (first, full) = (seed_or(0), switched_on("TERRACE_FAULT_FULL"));
    let mut struck = 0;
    for seed in first..first + if full { 400 } else { 24 } {
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
