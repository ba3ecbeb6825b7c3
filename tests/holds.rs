//! Tests of locks: how long anybody holds the writer's lock and the scheduler's, on a slow disk, beside a listener that
//! sleeps, in virtual time.
//!
//! Each scenario prints the longest hold of each rank of locks, and where that lock was taken:
//!
//! ```sh
//! cargo test -p terrace --test it holds:: -- --nocapture --test-threads 1
//! ```

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Random, tiny};
use terrace::env::simulated::{
    DeviceModel, FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv,
};
use terrace::env::sync::{Hold, Rank};
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Error, ErrorKind, EventListener, JobBegin, JobEnd, LoadStats, Options, Stall, WriteBatch};
use terrace_torture::client::DIR;
use terrace_torture::fault;
use terrace_torture::large_packs::{self, value};
use terrace_torture::schedules::SCHEDULES;

/// What one event takes of the listener's time.
const NAP: Duration = Duration::from_millis(50);

/// A machine with a disk that turns, whose threads lose the processor also where they read what others replace.
fn slow(seed: u64) -> Arc<SimEnv> {
    SimEnv::new(SimConfig {
        seed,
        device: DeviceModel::hdd(),
        preempt_at_looks: true,
        ..SimConfig::default()
    })
}

/// Longer than a few syncs and what is appended beside them; much shorter than the rewrite of a pack, and than a nap of
/// the listener for each of a few events.
const WRITER_MAX: Duration = Duration::from_millis(200);

/// Longer than a thread loses the processor a few times where it looks; what takes long is not done under this lock.
const SCHEDULER_MAX: Duration = Duration::from_millis(10);

/// Sleeps through every event.
struct Sleeper(Arc<SimEnv>);

impl EventListener for Sleeper {
    fn flush_begin(&self, _: &JobBegin) {
        self.0.sleep(NAP);
    }

    fn flush_end(&self, _: &JobEnd) {
        self.0.sleep(NAP);
    }

    fn compaction_begin(&self, _: &JobBegin) {
        self.0.sleep(NAP);
    }

    fn compaction_end(&self, _: &JobEnd) {
        self.0.sleep(NAP);
    }

    fn rewrite_end(&self, _: &JobEnd) {
        self.0.sleep(NAP);
    }

    fn stall_begin(&self, _: &Stall) {
        self.0.sleep(NAP);
    }

    fn stall_end(&self, _: &Stall, _: Duration) {
        self.0.sleep(NAP);
    }

    fn load(&self, _: &LoadStats) {
        self.0.sleep(NAP);
    }

    fn background_error(&self, _: &Error) {
        self.0.sleep(NAP);
    }
}

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let listener = Arc::new(Sleeper(env.clone()));
    Db::builder(DIR).env(env.clone()).options(options).listener(listener).open().unwrap()
}

fn spawn(env: &Arc<SimEnv>, body: impl FnOnce() + Send + 'static) -> Thread {
    env.spawn("beside", Priority::Normal, Box::new(body)).unwrap()
}

/// Whether a write had room.
fn had_room(result: terrace::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if matches!(error.kind(), ErrorKind::OverBudget | ErrorKind::DiskFull) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Prints `holds`, and checks those of the locks that writers take.
fn judge(scenario: &str, holds: &[Hold]) {
    for Hold { rank, time, taken_at } in holds {
        println!("{scenario}: {rank:?} {:.3} ms, {taken_at}", time.as_secs_f64() * 1e3);
    }
    for (rank, max) in [(Rank::Writer, WRITER_MAX), (Rank::Scheduler, SCHEDULER_MAX)] {
        let longest = longest(holds, rank);
        assert!(longest < max, "{scenario}: {rank:?} is held for {longest:?}");
    }
}

fn longest(holds: &[Hold], rank: Rank) -> Duration {
    holds.iter().filter(|hold| hold.rank == rank).map(|hold| hold.time).max().unwrap_or_default()
}

/// Runs a scenario of several seeds, and judges the longest hold of each rank.
fn judge_scenario(scenario: &str, seeds: u64, run: fn(Arc<SimEnv>)) {
    let mut all: Vec<Hold> = Vec::new();
    for seed in 0..seeds {
        let machine = slow(seed);
        machine.simulate(run);
        all.extend(machine.longest_holds());
    }
    all.sort_by_key(|hold| (hold.rank, std::cmp::Reverse(hold.time)));
    all.dedup_by_key(|hold| hold.rank);
    judge(scenario, &all);
}

/// Two writers, and callers of everything that plans or waits for jobs.
fn callers(env: Arc<SimEnv>) {
    let db = open(&env, Options { background_threads: Some(2), ..tiny() });
    let other = db.keyspace("other").unwrap();
    let write = |seed: u64| {
        let (db, other, mut random) = (db.clone(), other.clone(), Random(seed));
        move || {
            for n in 0..250 {
                let mut batch = WriteBatch::new();
                batch.put(format!("{:04}", random.below(2000)), value(n, 0));
                batch.put_in(&other, format!("{:04}", random.below(2000)), vec![7; 300]);
                batch.delete(format!("{:04}", random.below(2000)));
                db.write(batch).unwrap();
            }
        }
    };
    let beside = [spawn(&env, write(1)), spawn(&env, write(2))];
    for round in 0..6 {
        let mut ingest = db.ingest().unwrap();
        (0..200).for_each(|n| ingest.push(format!("i{round}{n:04}"), vec![round; 100]).unwrap());
        ingest.finish().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        other.compact_range(..).unwrap();
        db.flush().unwrap();
    }
    beside.into_iter().for_each(Thread::join);
    db.wait_idle().unwrap();
    db.close().unwrap();
}

#[test]
fn callers_who_plan_and_wait_hold_nobody_up() {
    judge_scenario("callers", 3, callers);
}

/// A store on a file system without holes, of which most is dead, in packs in which much lives.
fn half_dead(env: &Arc<SimEnv>, options: Options) -> Db {
    let target =
        FaultTarget::Matching { operation: Operation::Punch, path_suffix: ".pack".into(), skipped: 0 };
    env.fault(FaultRule { target, error: FaultError::Unsupported, sticky: true, partial: false });
    let db = open(env, options);
    for part in 0..4 {
        let put = |n: usize, round| db.put(format!("{part}{n:04}"), value(n, round)).unwrap();
        (0..200).for_each(|n| put(n, 0));
        db.compact().unwrap();
        (0..88).for_each(|n| put(n, 1));
        db.compact().unwrap();
    }
    env.sleep(Duration::from_secs(1));
    db.wait_idle().unwrap();
    assert_eq!(db.stats().rewrite.jobs, 0, "they are left alone while nobody needs the space");
    db
}

/// Two writers who need more space than there is.
fn fill(env: &Arc<SimEnv>, db: &Db) {
    let write = |from: usize| {
        let db = db.clone();
        move || (from..from + 250).for_each(|n| _ = had_room(db.put(format!("w{n:04}"), value(n, 2))))
    };
    let beside = [spawn(env, write(0)), spawn(env, write(1000))];
    beside.into_iter().for_each(Thread::join);
    assert!(db.stats().rewrite.packs > 0, "this shows something else");
}

fn budget(env: Arc<SimEnv>) {
    let db = half_dead(&env, large_packs::options());
    let used = db.stats().space.total_bytes;
    db.set_options(|options| options.space_bytes = Some(used / 4 * 5)).unwrap();
    fill(&env, &db);
    db.close().unwrap();
}

#[test]
fn who_has_packs_rewritten_for_a_budget_of_space_holds_nobody_up() {
    judge_scenario("budget", 3, budget);
}

fn full_disk(env: Arc<SimEnv>) {
    let db = half_dead(&env, Options { reserve_bytes: 1 << 20, ..large_packs::options() });
    env.set_space(DIR.as_ref(), env.used_bytes(DIR.as_ref()) + (64 << 10));
    fill(&env, &db);
    drop(db.close());
}

#[test]
fn who_has_packs_rewritten_on_a_full_disk_holds_nobody_up() {
    judge_scenario("full disk", 3, full_disk);
}

#[test]
fn no_schedule_of_the_torture_suites_holds_anybody_up() {
    for schedule in SCHEDULES {
        let machine = slow(1);
        let history = fault::run(schedule, &machine);
        assert_eq!(history.errors, 0, "{}", schedule.name);
        judge(schedule.name, &machine.longest_holds());
    }
}
