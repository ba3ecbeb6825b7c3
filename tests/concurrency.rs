//! Tests of threads: whatever runs at the same time, every reader sees one moment, no write is lost, and nobody waits
//! for ever.
//!
//! Each scenario runs twice: on the operating system's threads, and on a simulated machine. There the seed decides
//! the order of the threads and preempts them at their calls and, in some schedules, at their locks and where they
//! read a value that others replace without a lock. `TERRACE_SEED` repeats one schedule; `TERRACE_SCHEDULES=1000`
//! tries more of them.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Random, Seed, number, tiny};
use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Durability, Error, ErrorKind, Keyspace, Snapshot, WriteBatch};
use terrace_torture::schedules;

/// Schedules that each scenario tries on the simulated machine.
const SCHEDULES: u64 = 25;

/// Simulated schedules of each test unless the run is a long one.
const BRIEF: u64 = 10;

/// Where a scenario runs, and how much it does.
#[derive(Clone)]
struct Stage {
    env: Arc<dyn Env>,
    dir: PathBuf,
    seed: u64,
    /// Multiplies the work of the scenario.
    scale: u64,
}

impl Stage {
    fn open(&self) -> Db {
        Db::builder(&self.dir).env(self.env.clone()).options(tiny()).open().unwrap()
    }

    fn stop(&self) -> Stop {
        Stop { env: self.env.clone(), told: Arc::default() }
    }

    fn crew(&self) -> Crew<'_> {
        Crew { stage: self, threads: Vec::new(), ended: Arc::default(), next_seed: self.seed }
    }
}

/// Threads of a scenario.
struct Crew<'a> {
    stage: &'a Stage,
    threads: Vec<Thread>,
    ended: Arc<AtomicUsize>,
    next_seed: u64,
}

impl Crew<'_> {
    /// Starts a thread with random numbers of its own.
    fn start(&mut self, name: &str, body: impl FnOnce(Random) + Send + 'static) {
        self.next_seed = Random(self.next_seed).next();
        let (random, ended) = (Random(self.next_seed), self.ended.clone());
        let body = move || {
            body(random);
            ended.fetch_add(1, Ordering::SeqCst);
        };
        self.threads.push(self.stage.env.spawn(name, Priority::Normal, Box::new(body)).unwrap());
    }

    /// Waits for all, and fails if one has panicked.
    fn join(self) {
        let started = self.threads.len();
        self.threads.into_iter().for_each(Thread::join);
        assert_eq!(self.ended.load(Ordering::SeqCst), started, "a thread has panicked");
    }
}

/// Runs a scenario on real threads and on simulated ones.
fn everywhere(scenario: fn(&Stage)) {
    let dir = tempfile::tempdir().unwrap();
    let seed = Seed::new(1);
    scenario(&Stage { env: PosixEnv::shared(), dir: dir.path().into(), seed: seed.0, scale: 10 });
    let chosen = number("TERRACE_SEED");
    let schedules = number("TERRACE_SCHEDULES").unwrap_or(schedules(BRIEF, SCHEDULES));
    let seeds = chosen.map_or(100..100 + schedules, |seed| seed..seed + 1);
    for seed in seeds {
        let _told = Seed(seed);
        simulate(seed, scenario);
    }
}

fn simulate(seed: u64, scenario: fn(&Stage)) {
    // Some of the machines are quick, so that many things happen at one moment; some preempt at every second call.
    let device = if seed.is_multiple_of(3) { DeviceModel::instant() } else { DeviceModel::nvme() };
    let preemption_percent = [0, 20, 50][seed as usize / 3 % 3];
    // At nothing else, at locks, at locks and looks, at looks.
    let (preempt_at_locks, preempt_at_looks) = (seed % 4 < 2, matches!(seed % 8, 1 | 2 | 5));
    let preempted =
        SimConfig { preemption_percent, preempt_at_locks, preempt_at_looks, ..SimConfig::default() };
    let config = SimConfig { seed, device, ..preempted };
    SimEnv::run(config, move |env| scenario(&Stage { env, dir: "/db".into(), seed, scale: 1 }));
}

/// Retries nothing: any other failure than `expected` fails the test. Whether the call went well.
fn went_well<T>(result: Result<T, Error>, expected: ErrorKind) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), expected, "{error}");
            false
        }
    }
}

fn durability(random: &mut Random) -> Durability {
    if random.below(8) == 0 { Durability::Synced } else { Durability::Buffered }
}

/// Tells the threads that go round until the others have done their work when to end.
#[derive(Clone)]
struct Stop {
    env: Arc<dyn Env>,
    told: Arc<AtomicBool>,
}

impl Stop {
    fn tell(&self) {
        self.told.store(true, Ordering::SeqCst);
    }

    /// Whether to end. Lets a little time pass, without which the simulated machine stands still.
    fn is_told(&self) -> bool {
        self.env.sleep(Duration::from_micros(20));
        self.told.load(Ordering::SeqCst)
    }
}

/// A thread that flushes, compacts and checks the store until it is stopped.
fn caretaker(db: Db, stop: Stop) -> impl FnOnce(Random) + Send + 'static {
    move |mut random| {
        while !stop.is_told() {
            match random.below(6) {
                0 => db.flush().unwrap(),
                1 => db.compact().unwrap(),
                2 => db.wait_idle().unwrap(),
                3 => db.sync().unwrap(),
                4 => {
                    let report = db.verify().unwrap();
                    assert!(report.problems.is_empty(), "{report:?}");
                }
                _ => assert!(db.stats().last_seq < u64::MAX),
            }
        }
    }
}

// ---- Money moves between accounts, and its sum never changes. ----

const MOVERS: u64 = 3;
const ACCOUNTS: u64 = 8;
const DEPOSIT: i64 = 1000;

fn account(mover: u64, n: u64) -> String {
    format!("{mover}/{n}")
}

/// Sum and number of all accounts: the even ones are in the first keyspace, the odd ones in the second.
fn sum(snapshot: &Snapshot, other: &Keyspace) -> (i64, u64) {
    let mut sum = (0, 0);
    for iter in [snapshot.iter().unwrap(), snapshot.keyspace(other).iter().unwrap()] {
        for entry in iter {
            let (_, value) = entry.unwrap();
            let balance = i64::from_le_bytes(value[..8].try_into().unwrap());
            sum = (sum.0 + balance, sum.1 + 1);
        }
    }
    sum
}

/// Reads one moment again and again while it is compacted away from under it.
fn historian(db: Db, stop: Stop) -> impl FnOnce(Random) + Send + 'static {
    move |_| {
        while !stop.is_told() {
            let snapshot = db.snapshot();
            let all = || snapshot.iter().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
            let then = all();
            // Newer versions come in, and compactions look for what nobody needs any more.
            for _ in 0..3 {
                (0..20).for_each(|_| _ = stop.is_told());
                db.compact().unwrap();
                assert!(all() == then, "the past has changed at {}", snapshot.seq());
            }
        }
    }
}

/// Sets the balance of an account; those of odd numbers are in the keyspace `other`.
fn put(batch: &mut WriteBatch, other: &Keyspace, mover: u64, n: u64, balance: i64) {
    // Padded, so that there is something to flush and compact.
    let mut value = balance.to_le_bytes().to_vec();
    value.resize(150, 0);
    if n.is_multiple_of(2) {
        batch.put(account(mover, n), value);
    } else {
        batch.put_in(other, account(mover, n), value);
    }
}

fn money_is_neither_made_nor_lost(stage: &Stage) {
    let db = stage.open();
    let other = db.keyspace("other").unwrap();
    let mut batch = WriteBatch::new();
    for mover in 0..MOVERS {
        (0..ACCOUNTS).for_each(|n| put(&mut batch, &other, mover, n, DEPOSIT));
    }
    db.write(batch).unwrap();
    let stop = stage.stop();
    let mut movers = stage.crew();
    for mover in 0..MOVERS {
        let (db, other, rounds) = (db.clone(), other.clone(), 60 * stage.scale);
        movers.start("mover", move |mut random| {
            let mut balances = [DEPOSIT; ACCOUNTS as usize];
            for _ in 0..rounds {
                let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                let amount = random.below(100) as i64;
                balances[from as usize] -= amount;
                balances[to as usize] += amount;
                let mut batch = WriteBatch::new();
                put(&mut batch, &other, mover, from, balances[from as usize]);
                put(&mut batch, &other, mover, to, balances[to as usize]);
                db.write_with(batch, durability(&mut random)).unwrap();
            }
        });
    }
    let mut others = stage.crew();
    for _ in 0..2 {
        let (db, other, stop) = (db.clone(), other.clone(), stop.clone());
        others.start("auditor", move |_| {
            while !stop.is_told() {
                let snapshot = db.snapshot();
                let expected = ((MOVERS * ACCOUNTS) as i64 * DEPOSIT, MOVERS * ACCOUNTS);
                assert_eq!(sum(&snapshot, &other), expected, "at {}", snapshot.seq());
                // The same moment, once more, after whatever happened meanwhile.
                assert_eq!(sum(&snapshot, &other), expected, "at {} again", snapshot.seq());
            }
        });
    }
    others.start("caretaker", caretaker(db.clone(), stop.clone()));
    others.start("historian", historian(db.clone(), stop.clone()));
    let coming_and_going = db.clone();
    let stopped = stop.clone();
    others.start("founder", move |mut random| {
        while !stopped.is_told() {
            let keyspace = coming_and_going.keyspace("passing").unwrap();
            for n in 0..random.below(30) {
                keyspace.put(format!("{n}"), vec![7; 200]).unwrap();
            }
            if random.below(2) == 0 {
                coming_and_going.flush().unwrap();
            }
            coming_and_going.drop_keyspace("passing").unwrap();
            assert!(!went_well(keyspace.put("late", ""), ErrorKind::NotFound));
        }
    });
    movers.join();
    stop.tell();
    others.join();
    drop(other);
    db.close().unwrap();
    let db = stage.open();
    let other = db.existing_keyspace("other").unwrap().unwrap();
    assert_eq!(sum(&db.snapshot(), &other).0, (MOVERS * ACCOUNTS) as i64 * DEPOSIT);
    assert!(db.verify().unwrap().problems.is_empty());
    drop(other);
    db.close().unwrap();
}

#[test]
fn sums_stay_while_parts_move_between_keyspaces() {
    everywhere(money_is_neither_made_nor_lost);
}

// ---- Writers fight over the same keys. ----

const GROUP: [&str; 4] = ["a", "g", "n", "z"];

/// The writer and number in a value.
fn parse(value: &[u8]) -> (u64, u64) {
    let text = std::str::from_utf8(value).unwrap();
    let (writer, rest) = text.split_once(':').unwrap();
    (writer.parse().unwrap(), rest.trim_end_matches('.').parse().unwrap())
}

/// What all of a group have in common; they are written together, so they are equal.
fn agreed(values: impl Iterator<Item = Vec<u8>>) -> (u64, u64) {
    let values: Vec<Vec<u8>> = values.collect();
    assert_eq!(values.len(), GROUP.len());
    assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "half a batch is visible: {values:?}");
    parse(&values[0])
}

/// The latest number of each writer that a reader has seen: time does not go back.
#[derive(Default)]
struct Horizon(BTreeMap<u64, u64>);

impl Horizon {
    fn see(&mut self, (writer, n): (u64, u64)) {
        let last = self.0.entry(writer).or_insert(n);
        assert!(n >= *last, "record {n} of writer {writer} after {last}");
        *last = n;
    }
}

fn batches_are_seen_whole_and_in_order(stage: &Stage) {
    let db = stage.open();
    let stop = stage.stop();
    let write = |db: &Db, writer: u64, n: u64, durability| {
        let mut batch = WriteBatch::new();
        for key in GROUP {
            // Of different lengths, and sometimes large enough that writers insert side by side.
            let padding = if n.is_multiple_of(20) { 20_000 } else { 50 };
            batch.put(key, format!("{writer}:{n}{}", ".".repeat(padding)));
        }
        db.write_with(batch, durability).unwrap();
    };
    write(&db, 0, 0, Durability::Buffered);
    let mut writers = stage.crew();
    for writer in 1..=4 {
        let (db, rounds) = (db.clone(), 60 * stage.scale);
        writers.start("writer", move |mut random| {
            let mut horizon = Horizon::default();
            for n in 1..=rounds {
                write(&db, writer, n, durability(&mut random));
                let seen = parse(&db.get(GROUP[n as usize % 4]).unwrap().unwrap());
                assert!(seen.0 != writer || seen.1 == n, "wrote {n}, read {seen:?}");
                horizon.see(seen);
            }
        });
    }
    let mut others = stage.crew();
    for _ in 0..2 {
        let (db, stop) = (db.clone(), stop.clone());
        others.start("reader", move |mut random| {
            let mut horizon = Horizon::default();
            while !stop.is_told() {
                let seen = match random.below(5) {
                    0 => agreed(db.iter().unwrap().map(|entry| entry.unwrap().1.to_vec())),
                    1 => agreed(db.range("a".."zz").unwrap().rev().map(|entry| entry.unwrap().1.to_vec())),
                    2 => {
                        let snapshot = db.snapshot();
                        agreed(GROUP.iter().map(|key| snapshot.get(key).unwrap().unwrap().to_vec()))
                    }
                    3 => agreed(
                        db.multi_get(GROUP).unwrap().iter().map(|value| value.as_ref().unwrap().to_vec()),
                    ),
                    _ => {
                        let (snapshot, mut iter) = (db.snapshot(), db.iter().unwrap());
                        let first = iter.next().unwrap().unwrap().1.to_vec();
                        let rest = iter.rev().map(|entry| entry.unwrap().1.to_vec());
                        horizon.see(agreed(snapshot.iter().unwrap().map(|entry| entry.unwrap().1.to_vec())));
                        agreed([first].into_iter().chain(rest))
                    }
                };
                horizon.see(seen);
            }
        });
    }
    others.start("caretaker", caretaker(db.clone(), stop.clone()));
    writers.join();
    stop.tell();
    others.join();
    let last = agreed(db.iter().unwrap().map(|entry| entry.unwrap().1.to_vec()));
    assert_eq!(last.1, 60 * stage.scale, "the last record is somebody's last");
    db.close().unwrap();
    let db = stage.open();
    assert_eq!(agreed(db.iter().unwrap().map(|entry| entry.unwrap().1.to_vec())), last);
    db.close().unwrap();
}

#[test]
fn batches_of_fighting_writers_are_seen_whole_and_in_order() {
    everywhere(batches_are_seen_whole_and_in_order);
}

// ---- Everything is called at once, the end included. ----

/// How many of its keys each writer has had acknowledged, and up to which of these it had asked for a sync.
#[derive(Default)]
struct Acknowledged([[AtomicUsize; 2]; 3]);

impl Acknowledged {
    fn load(&self) -> Vec<(u64, u64)> {
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst) as u64;
        self.0.iter().map(|[all, synced]| (load(all), load(synced))).collect()
    }
}

/// What one more thread does in the midst of it.
type Event = Box<dyn FnOnce(&Db, &Acknowledged) + Send>;

/// Runs writers, readers and background calls against `db`, and `event` after half of the writes; returns what was
/// acknowledged. The store may be closed meanwhile.
fn pell_mell(stage: &Stage, db: &Db, rounds: u64, event: Event) -> Vec<(u64, u64)> {
    let acknowledged: Arc<Acknowledged> = Arc::default();
    let mut crew = stage.crew();
    for writer in 0..3 {
        let (db, acknowledged) = (db.clone(), acknowledged.clone());
        crew.start("writer", move |mut random| {
            for n in 1..=rounds {
                let key = format!("{:02}/{writer}/{n:06}", n % 17);
                let mut batch = WriteBatch::new();
                batch.put(&key, vec![n as u8; random.below(300) as usize]);
                let durability = durability(&mut random);
                if !went_well(db.write_with(batch, durability), ErrorKind::Closed) {
                    return;
                }
                acknowledged.0[writer][0].store(n as usize, Ordering::SeqCst);
                if durability == Durability::Synced {
                    acknowledged.0[writer][1].store(n as usize, Ordering::SeqCst);
                }
                match db.get(&key) {
                    Ok(found) => assert!(found.is_some(), "{key} is lost"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
                }
            }
        });
    }
    type Call = fn(&Db) -> Result<(), Error>;
    let calls: [Call; 7] = [
        Db::flush,
        Db::flush,
        Db::compact,
        Db::wait_idle,
        Db::sync,
        |db| {
            let keyspace = db.keyspace("default")?;
            keyspace.compact_range("03".."09")
        },
        |db| {
            let report = db.verify()?;
            // Closing lets go of nothing that a check reads.
            assert!(report.problems.is_empty(), "{report:?}");
            Ok(())
        },
    ];
    for call in calls {
        let (db, times) = (db.clone(), rounds / 10 + 1);
        crew.start("caller", move |mut random| {
            for _ in 0..times {
                if !went_well(call(&db), ErrorKind::Closed) {
                    return;
                }
                if random.below(3) == 0 {
                    let Ok(mut iter) = db.iter() else { return };
                    // Some way in, while tables come and go.
                    (0..random.below(200)).for_each(|_| drop(iter.next().transpose().unwrap()));
                }
            }
        });
    }
    let (half_way, counts, stop) = (db.clone(), acknowledged.clone(), stage.stop());
    crew.start("event", move |_| {
        while half_way.stats().last_seq < rounds * 3 / 2 && !stop.is_told() {}
        event(&half_way, &counts);
    });
    crew.join();
    acknowledged.load()
}

/// How many of each writer's keys are there. They are a prefix of what it wrote.
fn present(db: &Db) -> Vec<u64> {
    let mut counts = vec![(0, 0); 3];
    for entry in db.iter().unwrap() {
        let (key, _) = entry.unwrap();
        let text = std::str::from_utf8(&key).unwrap();
        let mut parts = text.split('/').skip(1).map(|part| part.parse::<u64>().unwrap());
        let (writer, n) = (parts.next().unwrap() as usize, parts.next().unwrap());
        counts[writer] = (counts[writer].0 + 1, counts[writer].1.max(n));
    }
    counts
        .into_iter()
        .map(|(count, last)| {
            assert_eq!(count, last, "keys are missing before the last one");
            count
        })
        .collect()
}

fn nothing_is_lost(stage: &Stage) {
    let rounds = 60 * stage.scale;
    let db = stage.open();
    let acknowledged = pell_mell(stage, &db, rounds, Box::new(|_, _| {}));
    assert!(acknowledged.iter().all(|&(all, _)| all == rounds));
    assert_eq!(present(&db), [rounds; 3]);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    let db = stage.open();
    assert_eq!(present(&db), [rounds; 3]);
    db.close().unwrap();
}

#[test]
fn calls_of_every_kind_at_once_lose_nothing() {
    everywhere(nothing_is_lost);
}

fn closing_is_an_end_like_any_other(stage: &Stage) {
    let db = stage.open();
    let acknowledged = pell_mell(stage, &db, 60 * stage.scale, Box::new(|db, _| db.clone().close().unwrap()));
    assert_eq!(db.put("late", "").unwrap_err().kind(), ErrorKind::Closed);
    drop(db);
    let db = stage.open();
    for (found, (all, _)) in present(&db).into_iter().zip(acknowledged) {
        // A write that was refused has not been made.
        assert_eq!(found, all);
    }
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}

#[test]
fn closing_in_the_midst_of_everything_loses_nothing() {
    everywhere(closing_is_an_end_like_any_other);
}

#[test]
fn a_power_cut_in_the_midst_of_everything_keeps_what_was_synced() {
    let schedules = number("TERRACE_SCHEDULES").unwrap_or(schedules(BRIEF, SCHEDULES));
    let chosen = number("TERRACE_SEED");
    for seed in chosen.map_or(500..500 + schedules, |seed| seed..seed + 1) {
        let _told = Seed(seed);
        let preempt_at_locks = seed % 4 < 2;
        let config =
            SimConfig { seed, device: DeviceModel::nvme(), preempt_at_locks, ..SimConfig::default() };
        // The image is taken while everything goes on.
        let (env, before, after) = SimEnv::run(config, move |env| {
            let stage = Stage { env: env.clone(), dir: "/db".into(), seed, scale: 1 };
            let db = stage.open();
            let image = Arc::new(Mutex::new(None));
            let slot = image.clone();
            let cut = move |_: &Db, acknowledged: &Acknowledged| {
                let before = acknowledged.load();
                let restarted = env.crash(Survival::Random(seed));
                *slot.lock() = Some((restarted, before, acknowledged.load()));
            };
            pell_mell(&stage, &db, 60, Box::new(cut));
            db.close().unwrap();
            image.lock().take().unwrap()
        });
        let db = Db::builder(Path::new("/db")).env(env).options(tiny()).open().unwrap();
        for ((found, (_, synced)), (all, _)) in present(&db).into_iter().zip(before).zip(after) {
            // One write of each thread may have been under way.
            assert!(found >= synced && found <= all + 1, "{synced} <= {found} <= {all}");
        }
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

// ---- What is ingested is newer than all before, whatever is flushed beside. ----

const INGESTERS: u64 = 2;

/// Each ingester has a keyspace of its own: nobody else writes there, so what it has ingested is what it must read.
fn an_ingest_is_newer_than_all_before(stage: &Stage) {
    let db = stage.open();
    let (stop, mut others) = (stage.stop(), stage.crew());
    for flusher in 0..2 {
        let (db, stop) = (db.clone(), stop.clone());
        let beside = db.keyspace("beside").unwrap();
        others.start("flusher", move |_| {
            for n in 0_u64.. {
                if stop.is_told() {
                    break;
                }
                beside.put(format!("{flusher}/{n}"), [7; 40]).unwrap();
                db.flush().unwrap();
            }
        });
    }
    let mut ingesters = stage.crew();
    for ingester in 0..INGESTERS {
        let (db, rounds) = (db.clone(), 15 * stage.scale);
        let space = db.keyspace(&format!("{ingester}")).unwrap();
        ingesters.start("ingester", move |mut random| {
            let mut model = BTreeMap::new();
            for n in 0..rounds {
                let key = format!("{:02}", random.below(20));
                space.put(&key, format!("old {n}")).unwrap();
                let mut ingest = space.ingest().unwrap();
                ingest.push(&key, format!("new {n}")).unwrap();
                ingest.finish().unwrap();
                model.insert(key.clone(), format!("new {n}"));
                let found = space.get(&key).unwrap().map(|value| value.to_vec());
                assert_eq!(found.as_ref(), model.get(&key).map(|value| value.clone().into_bytes()).as_ref());
            }
            for (key, value) in model {
                assert_eq!(space.get(&key).unwrap().unwrap(), value.as_str(), "{key}");
            }
        });
    }
    ingesters.join();
    stop.tell();
    others.join();
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}

#[test]
fn an_ingest_is_newer_than_all_before_it_beside_flushes_of_other_keyspaces() {
    everywhere(an_ingest_is_newer_than_all_before);
}

fn checks_during_replacements(stage: &Stage) {
    let db = stage.open();
    let stop = stage.stop();
    let mut others = stage.crew();
    let (checked, stopped) = (db.clone(), stop.clone());
    others.start("checker", move |_| {
        while !stopped.is_told() {
            for _ in 0..10 {
                let report = checked.verify().unwrap();
                assert!(report.problems.is_empty(), "{report:?}");
            }
        }
    });
    // A long key makes long edits, and those make the manifest outgrow its snapshot every few flushes.
    for n in 0..12 * stage.scale {
        db.put(vec![7; 60_000], n.to_le_bytes()).unwrap();
        db.flush().unwrap();
    }
    stop.tell();
    others.join();
    db.close().unwrap();
}

#[test]
fn a_check_is_not_confused_by_a_manifest_that_is_replaced() {
    // On real threads, or a device with latencies, the two hardly ever meet.
    let schedules = number("TERRACE_SCHEDULES").unwrap_or(schedules(BRIEF, 4 * SCHEDULES));
    for seed in number("TERRACE_SEED").map_or(900..900 + schedules, |seed| seed..seed + 1) {
        let _told = Seed(seed);
        let config = SimConfig { seed, preemption_percent: 40, ..SimConfig::default() };
        SimEnv::run(config, move |env| {
            checks_during_replacements(&Stage { env, dir: "/db".into(), seed, scale: 1 });
        });
    }
}
