//! Tests of linearizability: the answers of concurrent calls could have come from one call after another.
//!
//! The histories have puts, batches, range deletes, lookups, scans, snapshots, transactions and ingests, while the
//! store flushes, compacts, reclaims, is copied, drops keyspaces and is closed. A power cut must leave a moment of
//! such an order, no earlier than the last durable call.
//!
//! `history` defines calls, `client` makes and records them, `checker` looks for the order.
//!
//! Each run uses the operating system's threads, or simulated ones, where the seed decides the order of the threads.
//! `TERRACE_SEED` repeats one schedule; `TERRACE_SCHEDULES=1000` tries more of them. Clients with deliberate flaws,
//! which the store might have, show that the checker notices.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

mod checker;
mod client;
mod history;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Random, Seed, number, tiny};
use checker::check;
use client::{ALL_SLOTS, Client, Closed, Flaw, PASSING_MAX, Passing, SLOTS, Shared, dump, whole};
use history::{ABSENT, Call, Clock, State, known_at};
use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Options};
use terrace_torture::schedules;

/// Schedules that each test tries on the simulated machine.
const SCHEDULES: u64 = 40;

/// Schedules in which a flaw must show.
const FLAW_SCHEDULES: u64 = 200;

const DIR: &str = "/db";

/// What happens to the store in the midst of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    Close,
    PowerCut,
}

/// The life of a store.
#[derive(Clone)]
struct Life {
    env: Arc<dyn Env>,
    dir: PathBuf,
    seed: u64,
    clients: usize,
    /// Calls of each client.
    calls: u64,
    flaw: Flaw,
    event: Event,
}

/// What is known of it.
struct Record {
    initial: State,
    calls: Vec<Call>,
    /// The power is cut at one of these moments.
    cut: Option<Range<u64>>,
}

/// Threads that must all end well.
struct Crew {
    env: Arc<dyn Env>,
    threads: Vec<Thread>,
    ended: Arc<AtomicUsize>,
}

impl Crew {
    fn new(env: &Arc<dyn Env>) -> Self {
        Self { env: env.clone(), threads: Vec::new(), ended: Arc::default() }
    }

    fn start(&mut self, name: &str, body: impl FnOnce() + Send + 'static) {
        let ended = self.ended.clone();
        let body = move || {
            body();
            ended.fetch_add(1, Ordering::SeqCst);
        };
        self.threads.push(self.env.spawn(name, Priority::Normal, Box::new(body)).unwrap());
    }

    fn join(self) {
        let started = self.threads.len();
        self.threads.into_iter().for_each(Thread::join);
        assert_eq!(self.ended.load(Ordering::SeqCst), started, "a thread has panicked");
    }
}

impl Life {
    fn options(&self) -> Options {
        let mut options = tiny();
        options.background_threads = Some(1 + self.seed as usize % 2);
        options.memtable_bytes = [4 << 10, 8 << 10][self.seed as usize / 2 % 2];
        options
    }

    fn open(&self, dir: &Path) -> Db {
        Db::builder(dir).env(self.env.clone()).options(self.options()).open().unwrap()
    }

    /// Lives it. `cut` is called at the power cut.
    fn live(&self, cut: impl FnOnce() + Send + 'static) -> Record {
        let db = self.open(&self.dir);
        let shared = Shared {
            env: self.env.clone(),
            other: db.keyspace("other").unwrap(),
            db,
            passing: Arc::default(),
            clock: Arc::default(),
            flaw: self.flaw,
        };
        // Numbers go on behind those that are there.
        let initial = dump(&shared.db);
        while shared.clock.tick() <= initial.iter().copied().max().unwrap_or(ABSENT) {}
        let mut random = Random(self.seed);
        let mut client = |number| Client::new(shared.clone(), number, Random(random.next()));
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let told: Arc<AtomicBool> = Arc::default();
        let mut clients = Crew::new(&self.env);
        for number in 0..self.clients {
            let (mut client, calls, rounds) = (client(number), calls.clone(), self.calls);
            clients.start("client", move || {
                let _ = (0..rounds).try_for_each(|_| client.step());
                calls.lock().extend(client.calls);
            });
        }
        let mut others = Crew::new(&self.env);
        type Work = fn(&Life, &mut Client) -> Result<(), Closed>;
        let mut works: Vec<Work> = vec![Self::tend];
        if self.event != Event::PowerCut {
            works.extend([Self::copy as Work, Self::found]);
        }
        for (at, work) in works.into_iter().enumerate() {
            let (mut client, calls) = (client(self.clients + at), calls.clone());
            let (life, told) = (self.clone(), told.clone());
            others.start("caretaker", move || {
                while !told.load(Ordering::SeqCst) && work(&life, &mut client).is_ok() {
                    life.env.sleep(Duration::from_micros(20));
                }
                calls.lock().extend(client.calls);
            });
        }
        let moments: Arc<Mutex<Option<Range<u64>>>> = Arc::default();
        let due = random.below(self.clients as u64 * self.calls * 3);
        let (life, slot, stopped) = (self.clone(), moments.clone(), told.clone());
        let (db, clock) = (shared.db.clone(), shared.clock.clone());
        others.start("event", move || {
            while clock.tick() < due && !stopped.load(Ordering::SeqCst) {
                life.env.sleep(Duration::from_micros(5));
            }
            *slot.lock() = life.strike(db, &clock, cut);
        });
        clients.join();
        told.store(true, Ordering::SeqCst);
        others.join();
        let clock = shared.clock.clone();
        match self.event {
            Event::Close => drop(shared),
            _ => self.end(shared),
        }
        let mut calls = std::mem::take(&mut *calls.lock());
        let (invoked, found) = (clock.tick(), self.look(&self.dir));
        let returned = Some(clock.tick());
        calls.push(Call { name: "end", invoked, returned, saw: whole(&found), ..Call::default() });
        Record { initial, calls, cut: moments.lock().take() }
    }

    /// Lets happen what happens in the midst of it. Tells when the power was cut.
    fn strike(&self, db: Db, clock: &Clock, cut: impl FnOnce()) -> Option<Range<u64>> {
        match self.event {
            Event::Nothing => None,
            Event::Close => {
                db.close().unwrap();
                None
            }
            Event::PowerCut => {
                let before = clock.tick();
                cut();
                Some(before..clock.tick())
            }
        }
    }

    fn end(&self, shared: Shared) {
        let Shared { db, other, passing, .. } = shared;
        drop((other, passing));
        db.close().unwrap();
    }

    /// What an opening finds.
    fn look(&self, dir: &Path) -> State {
        let db = self.open(dir);
        let found = dump(&db);
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        db.close().unwrap();
        found
    }

    /// Keeps the store busy with flushes, compactions and records between those of the clients.
    fn tend(&self, client: &mut Client) -> Result<(), Closed> {
        let n = client.random.below(60);
        client
            .make("tend", |shared| match n % 6 {
                0 => shared.db.flush(),
                1 => shared.db.compact(),
                2 => shared.db.wait_idle(),
                _ => (n..n + 5).try_for_each(|n| shared.db.put(format!("k{}/{n}", n % 6), [7; 300])),
            })
            .map(drop)
    }

    /// Takes a copy of the store, which is a read of everything.
    fn copy(&self, client: &mut Client) -> Result<(), Closed> {
        for _ in 0..client.random.below(60) {
            self.env.sleep(Duration::from_micros(20));
        }
        let dir = self.dir.join(format!("copy-{}", client.calls.len()));
        let call = client.make("checkpoint", |shared| shared.db.checkpoint(&dir))?;
        client.calls.push(Call { saw: whole(&self.look(&dir)), ..call });
        Ok(())
    }

    /// Creates and drops keyspaces.
    fn found(&self, client: &mut Client) -> Result<(), Closed> {
        let made = client.calls.len() / 2;
        if made == PASSING_MAX {
            return Err(Closed);
        }
        let first = SLOTS + made * (ALL_SLOTS - SLOTS) / PASSING_MAX;
        let (keyspace, call) = client.call("create", |shared| shared.db.keyspace("passing"))?;
        client.calls.push(Call { saw: vec![(first, ABSENT)], wrote: vec![(first, 1)], ..call });
        *client.shared.passing.lock() = keyspace.ok().map(|keyspace| Passing { keyspace, first });
        for _ in 0..client.random.below(40) {
            self.env.sleep(Duration::from_micros(10));
        }
        let call = client.make("drop", |shared| shared.db.drop_keyspace("passing"))?;
        client.calls.push(Call { saw: vec![(first, 1)], wrote: vec![(first, ABSENT)], ..call });
        Ok(())
    }
}

/// The schedules of a test, from `first` on.
fn seeds(first: u64, count: u64) -> Range<u64> {
    let count = number("TERRACE_SCHEDULES").unwrap_or(schedules(count / 4, count));
    number("TERRACE_SEED").map_or(first..first + count, |seed| seed..seed + 1)
}

/// The machine of a schedule. Some are quick, so that many things happen at one moment.
fn machine(seed: u64) -> Arc<SimEnv> {
    let device = if seed.is_multiple_of(3) { DeviceModel::instant() } else { DeviceModel::nvme() };
    let preemption_percent = [20, 50, 80][seed as usize / 3 % 3];
    let preempt_at_locks = seed % 4 < 2;
    let preempt_at_looks = matches!(seed % 8, 1 | 2 | 5);
    SimEnv::new(SimConfig {
        seed,
        device,
        preemption_percent,
        preempt_at_locks,
        preempt_at_looks,
        ..SimConfig::default()
    })
}

/// A life on a simulated machine, with what a power cut in the midst of it has left.
fn simulate(env: &Arc<SimEnv>, seed: u64, flaw: Flaw, event: Event) -> (Record, Option<Arc<SimEnv>>) {
    env.simulate(move |env| {
        let survival =
            [Survival::Nothing, Survival::Random(seed), Survival::Random(!seed), Survival::Everything];
        let image: Arc<Mutex<Option<Arc<SimEnv>>>> = Arc::default();
        let (slot, machine) = (image.clone(), env.clone());
        let clients = 3 + seed as usize % 4;
        let life = Life { env, dir: DIR.into(), seed, clients, calls: 30, flaw, event };
        let record = life.live(move || *slot.lock() = Some(machine.crash(survival[seed as usize % 4])));
        (record, image.lock().take())
    })
}

/// Whether the history of a schedule is as it should be.
fn judge(seed: u64, flaw: Flaw, event: Event) -> Result<(), String> {
    let fail = |violation| Err(format!("no order in the history of seed {seed}: {violation:#?}"));
    let (record, image) = simulate(&machine(seed), seed, flaw, event);
    check(&record.initial, &record.calls, None).or_else(fail)?;
    let (Some(image), Some(moments)) = (image, record.cut) else { return Ok(()) };
    // What survived is where the next life begins.
    let (next, _) = simulate(&image, seed + 1, flaw, Event::Nothing);
    check(&record.initial, &known_at(&moments, &record.calls), Some(&next.initial)).or_else(fail)?;
    check(&next.initial, &next.calls, None).or_else(fail)
}

fn all_schedules(first: u64, event: Event) {
    for seed in seeds(first, SCHEDULES) {
        let _told = Seed(seed);
        judge(seed, Flaw::None, event).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn histories_are_linearizable() {
    all_schedules(100, Event::Nothing);
}

#[test]
fn histories_that_closing_ends_are_linearizable() {
    all_schedules(300, Event::Close);
}

#[test]
fn a_power_cut_leaves_a_prefix_of_a_linearizable_history() {
    all_schedules(500, Event::PowerCut);
}

#[test]
fn histories_of_real_threads_are_linearizable() {
    let seed = Seed::new(1);
    for (round, event) in [Event::Nothing, Event::Close, Event::Nothing].into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let (env, dir) = (PosixEnv::shared(), dir.path().join("db"));
        let life =
            Life { env, dir, seed: seed.0 + round as u64, clients: 8, calls: 60, flaw: Flaw::None, event };
        let record = life.live(|| ());
        check(&record.initial, &record.calls, None).unwrap_or_else(|violation| panic!("{violation:#?}"));
    }
}

/// The first schedule in which a flaw shows.
fn shows(flaw: Flaw, event: Event) {
    let caught = (2000..2000 + FLAW_SCHEDULES).any(|seed| judge(seed, flaw, event).is_err());
    assert!(caught, "{flaw:?} goes unnoticed");
}

#[test]
fn stale_reads_are_noticed() {
    shows(Flaw::StaleReads, Event::Nothing);
}

#[test]
fn answers_before_the_write_are_noticed() {
    shows(Flaw::HastyAnswers, Event::Nothing);
}

#[test]
fn torn_batches_are_noticed() {
    shows(Flaw::TornBatches, Event::Nothing);
}

#[test]
fn torn_batches_are_noticed_behind_a_power_cut() {
    let caught = (2000..2000 + FLAW_SCHEDULES).any(|seed| {
        let (record, image) = simulate(&machine(seed), seed, Flaw::TornBatches, Event::PowerCut);
        let (Some(image), Some(moments)) = (image, record.cut) else { return false };
        let found = image.simulate(|env| {
            let life = Life {
                env,
                dir: DIR.into(),
                seed: 0,
                clients: 0,
                calls: 0,
                flaw: Flaw::None,
                event: Event::Nothing,
            };
            life.look(&life.dir)
        });
        let known = known_at(&moments, &record.calls);
        check(&record.initial, &known, None).is_ok() && check(&record.initial, &known, Some(&found)).is_err()
    });
    assert!(caught);
}

#[test]
fn torn_lookups_of_many_keys_are_noticed() {
    shows(Flaw::TornReads, Event::Nothing);
}

#[test]
fn torn_scans_are_noticed() {
    shows(Flaw::TornScans, Event::Nothing);
}

#[test]
fn commits_that_nobody_checks_are_noticed() {
    shows(Flaw::BlindCommits, Event::Nothing);
}

#[test]
fn syncs_that_are_none_are_noticed() {
    shows(Flaw::Unsynced, Event::PowerCut);
}
