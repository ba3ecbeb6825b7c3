//! Tests of expiry over time: a keyspace whose values expire answers like a map with a clock, while time passes, jobs
//! run and tables are dropped as expired.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Random, Seed, number, tiny};
use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, FaultError, FaultRule, FaultTarget, SimConfig, SimEnv, Survival};
use terrace::{Db, Ingest, Keyspace, KeyspaceOptions, Options, Snapshot};
use terrace_torture::TreeParts as _;

const TTL: u64 = 100;
const KEYS: u64 = 200;
const ROUNDS: u64 = 600;

type Key = Vec<u8>;
type Value = Vec<u8>;
/// Values and the seconds of their writes.
type Model = BTreeMap<Key, (Value, u64)>;

fn open(env: &Arc<SimEnv>, options: &Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options.clone()).open().unwrap()
}

fn aging(db: &Db) -> Keyspace {
    let ttl = Some(Duration::from_secs(TTL));
    db.keyspace_with("aging", KeyspaceOptions { ttl, ..KeyspaceOptions::default() }).unwrap()
}

/// A store, what it should hold, and who looks at its past.
struct Life {
    env: Arc<SimEnv>,
    random: Random,
    options: Options,
    /// Nothing between one opening and the next.
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    ingest: Option<(Ingest, Model)>,
    /// The latest second that the store has seen.
    seen: u64,
    ttl: u64,
    /// Values that were written before this second have expired, whatever they were given since.
    alive_from: u64,
}

impl Life {
    fn new(env: &Arc<SimEnv>, seed: u64) -> Self {
        let mut options = Options { background_threads: Some(2), ..tiny() };
        if seed.is_multiple_of(2) {
            // As the default has it, and so with idle time.
            options.tree.set_ratio(None);
            options.tree.group().bytes = 8 << 10;
        }
        let (env, random, db) = (env.clone(), Random(seed), Some(open(env, &options)));
        let (model, snapshots) = (Model::new(), Vec::new());
        Self { env, random, options, db, model, snapshots, ingest: None, seen: 0, ttl: TTL, alive_from: 0 }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn space(&self) -> Keyspace {
        aging(self.db())
    }

    /// The store looks at its clock, and so does the model.
    fn look(&mut self) {
        self.space().contains("").unwrap();
        self.seen = self.seen.max(self.env.unix_millis() / 1000);
    }

    fn key(&mut self) -> Key {
        format!("{:03}", self.random.below(KEYS)).into_bytes()
    }

    fn value(&mut self, round: u64) -> Value {
        vec![round as u8; self.random.below(300) as usize]
    }

    fn step(&mut self, round: u64) {
        let (key, space) = (self.key(), self.space());
        match self.random.below(32) {
            0..4 => {
                space.delete(&key).unwrap();
                self.model.remove(&key);
            }
            4 => {
                let end = self.key().max(key.clone());
                space.delete_range(key.clone()..end.clone()).unwrap();
                let gone = key..end;
                self.model.retain(|other, _| !gone.contains(other));
            }
            5..8 => self.env.sleep(Duration::from_secs(self.random.below(12))),
            8 => self.env.sleep(Duration::from_secs(self.random.below(60))),
            9 => self.env.jump_clock(self.random.below(41) as i64 * 1000 - 20_000),
            10 if self.snapshots.len() < 3 => {
                self.snapshots.push((self.db().snapshot(), self.model.clone()));
            }
            10 | 11 if !self.snapshots.is_empty() => {
                let at = self.random.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(at);
            }
            12 => self.db().flush().unwrap(),
            13 => space.compact_range(key..).unwrap(),
            14 => self.ingest(&space, round),
            15 if self.random.below(6) == 0 => {
                drop(space);
                self.reopen();
            }
            16 if self.random.below(4) == 0 => self.db().wait_idle().unwrap(),
            17 if self.random.below(4) == 0 => {
                let problems = self.db().verify().unwrap().problems;
                assert!(problems.is_empty(), "{problems:?}");
            }
            18 if self.random.below(4) == 0 => self.give_other_time(&space),
            _ => {
                for _ in 0..self.random.below(25) {
                    let (key, value) = (self.key(), self.value(round));
                    space.put(&key, &value).unwrap();
                    self.model.insert(key, (value, self.seen));
                }
            }
        }
    }

    /// Values live longer from now on, or shorter.
    fn give_other_time(&mut self, space: &Keyspace) {
        let ttl = TTL / 4 + self.random.below(TTL);
        if ttl != self.ttl {
            // At the beginning of a second, so that it is over in the same one.
            self.env.sleep(Duration::from_millis(1000 - self.env.unix_millis() % 1000));
            self.look();
            let before = space.options();
            assert_eq!(before.ttl, Some(Duration::from_secs(self.ttl)));
            space.set_options(&KeyspaceOptions { ttl: Some(Duration::from_secs(ttl)), ..before }).unwrap();
            assert!(self.env.unix_millis() / 1000 <= self.seen, "longer than a second");
            self.alive_from = self.alive_from.max((self.seen + 1).saturating_sub(self.ttl));
            self.ttl = ttl;
        }
    }

    /// Begins what is to come from outside, which is timestamped now, or has what was begun numbered.
    fn ingest(&mut self, space: &Keyspace, round: u64) {
        if let Some((ingest, model)) = self.ingest.take() {
            ingest.finish().unwrap();
            self.model.extend(model);
            return;
        }
        let (mut ingest, mut model) = (space.ingest().unwrap(), Model::new());
        for key in (0..KEYS).map(|key| format!("{key:03}").into_bytes()) {
            if self.random.below(5) == 0 {
                let value = self.value(round);
                ingest.push(&key, &value).unwrap();
                model.insert(key, (value, self.seen));
            }
        }
        self.ingest = Some((ingest, model));
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.ingest = None;
        // An edit of the manifest, which holds the time.
        self.space().put("", "").unwrap();
        self.model.insert(Key::new(), (Value::new(), self.seen));
        self.db().flush().unwrap();
        self.db.take().unwrap().close().unwrap();
        self.db = Some(open(&self.env, &self.options));
    }

    /// What is alive of `model`.
    fn alive(&self, model: &Model) -> BTreeMap<Key, Value> {
        let alive = model
            .iter()
            .filter(|(_, (_, written))| *written >= self.alive_from && self.seen < written + self.ttl);
        alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
    }

    fn check(&mut self) {
        self.look();
        let space = self.space();
        let found = |entries: terrace::Iter| -> BTreeMap<Key, Value> {
            entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
        };
        assert!(found(space.iter().unwrap()) == self.alive(&self.model));
        for (snapshot, model) in &self.snapshots {
            assert!(found(snapshot.keyspace(&space).iter().unwrap()) == self.alive(model), "a snapshot");
        }
    }
}

#[test]
fn answers_are_those_of_a_map_whose_values_expire() {
    let first = Seed::new(5).0;
    let mut expired = 0;
    for seed in first..first + number("LIVES").unwrap_or(6) {
        let preempt_at_locks = seed.is_multiple_of(3);
        let config = SimConfig { seed, preemption_percent: 20, preempt_at_locks, ..SimConfig::default() };
        expired += SimEnv::run(config, move |env| {
            let mut life = Life::new(&env, seed);
            for round in 0..ROUNDS {
                life.look();
                life.step(round);
                if round % 4 == 0 {
                    life.check();
                }
            }
            life.check();
            life.db().stats().compaction.expired_tables
        });
    }
    assert!(expired > 20, "{expired} tables have gone by themselves");
}

// ---- Power cuts and failures ----

/// A store in whose level 1 tables of 50 keys expire at once, and tables of 400 keys little by little; all of it durable.
fn about_to_expire(env: &Arc<SimEnv>) -> (Db, Begun) {
    let second = env.unix_millis() / 1000;
    let mut options = Options { memtable_bytes: 1 << 20, background_threads: Some(1), ..tiny() };
    *options.tree.level1_bytes() = 1 << 20;
    let db = open(env, &options);
    let space = aging(&db);
    (0..50).for_each(|n| space.put(format!("at once {n:03}"), [1; 100]).unwrap());
    for date in 0..4 {
        (0..25).for_each(|n| space.put(format!("slowly {:03}", 4 * n + date), [2; 100]).unwrap());
        env.sleep(Duration::from_secs(10));
    }
    db.compact().unwrap();
    db.sync().unwrap();
    (db, Begun { options, second })
}

/// With what a store was opened, and the second of its first write.
#[derive(Clone)]
struct Begun {
    options: Options,
    second: u64,
}

/// Until tables have gone and others have been compacted alone.
fn let_expire(env: &Arc<SimEnv>) {
    env.sleep(Duration::from_secs(TTL - 15));
}

/// Whether `db` shows what it should by the clock, from first to last key, and is sound.
fn assert_alive(env: &Arc<SimEnv>, db: &Db, begun: &Begun) {
    let space = aging(db);
    let found: Vec<Key> = space.iter().unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
    let now = env.unix_millis() / 1000 - begun.second;
    let mut expected: Vec<Key> = Vec::new();
    if now < TTL {
        expected.extend((0..50).map(|n| format!("at once {n:03}").into_bytes()));
    }
    let slowly = (0..100).filter(|n| now < 10 * (n % 4) + TTL);
    expected.extend(slowly.map(|n| format!("slowly {n:03}").into_bytes()));
    assert!(found == expected, "{} in place of {} at {now}", found.len(), expected.len());
    assert!(db.verify().unwrap().problems.is_empty());
}

/// What is left of `machine` opens, shows what it should, and has all of it expire.
fn assert_recovers(machine: &Arc<SimEnv>, survival: Survival, begun: &Begun) {
    let begun = begun.clone();
    machine.crash(survival).simulate(move |env| {
        let db = open(&env, &begun.options);
        assert_alive(&env, &db, &begun);
        env.sleep(Duration::from_secs(60));
        let shape = aging(&db).shape();
        assert_eq!(shape.levels.iter().map(|level| level.tables).sum::<usize>(), 0);
        db.close().unwrap();
    });
}

#[test]
fn a_power_cut_while_tables_go_by_themselves_brings_nothing_back_and_takes_nothing() {
    let mut cut = 0;
    for after in 0.. {
        let machine = SimEnv::new(SimConfig { device: DeviceModel::instant(), ..SimConfig::default() });
        let (begun, jobs, is_cut) = machine.simulate(move |env| {
            let (db, begun) = about_to_expire(&env);
            let before = env.mutations();
            env.cut_after(after);
            let_expire(&env);
            let jobs = db.stats().compaction;
            (begun, jobs, env.mutations() > before + after)
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(after)] {
            assert_recovers(&machine, survival, &begun);
        }
        if !is_cut {
            assert!(jobs.expired_tables > 0 && jobs.jobs > 1, "{jobs:?}");
            break;
        }
        cut += 1;
    }
    assert!(cut > 8, "{cut} cuts");
}

#[test]
fn whatever_call_fails_while_tables_go_by_themselves_answers_stay() {
    let mut struck = 0;
    for call in 0.. {
        let machine = SimEnv::new(SimConfig { device: DeviceModel::instant(), ..SimConfig::default() });
        let (begun, is_struck) = machine.simulate(move |env| {
            let (db, begun) = about_to_expire(&env);
            let target = FaultTarget::Call(env.calls() + call);
            let error = if call % 2 == 0 { FaultError::Io } else { FaultError::NoSpace };
            env.fault(FaultRule { target, error, sticky: false, partial: call % 4 < 2 });
            let_expire(&env);
            let is_struck = env.faults_fired() > 0;
            env.clear_faults();
            assert_alive(&env, &db, &begun);
            (begun, is_struck)
        });
        for survival in [Survival::Nothing, Survival::Everything] {
            assert_recovers(&machine, survival, &begun);
        }
        if !is_struck {
            break;
        }
        struck += 1;
    }
    assert!(struck > 15, "{struck} calls");
}
