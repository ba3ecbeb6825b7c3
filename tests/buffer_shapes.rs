//! Tests of the compaction buffer in a store whose shape changes: options change while it is open and from one opening to the
//! next, and some have several runs in a level.
//!
//! `TERRACE_SEED` repeats one schedule; `TERRACE_SCHEDULES=1000` tries more of them.
#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv};
use terrace::env::{Env, Priority};
use terrace::tree::{Buffer, Drain, Geared, Layout, Levels, Picker, Retainer, Tiered};
use terrace::{Db, Keyspace, KeyspaceOptions, Options, Prefix, Slice, Snapshot};
use terrace_torture::{TreeParts as _, schedules};

use crate::buffer::{PERIOD, check_range, key, lsbm, open, prefixed, text};
use crate::common::{Random, Seed, number, tiny};

/// Options with several runs in a level.
fn stacked(random: &mut Random) -> Options {
    let mut options = prefixed();
    if random.below(2) == 0 {
        let (level1_bytes, ratio) = (8 << 10, 4);
        let tiered = Tiered { level1_bytes, ratio, runs: 4, last_runs: 3, l0_trigger: 1 };
        (options.tree.layout, options.tree.picker) =
            (Layout::Tiered(tiered), Picker::Levels(Levels { part_bytes: 0 }));
    }
    options
}

/// Options with a buffer.
fn buffered(random: &mut Random) -> Options {
    let mut options = lsbm();
    if random.below(3) == 0 {
        options.tree = tiny().tree;
        options.tree.tables().table_bytes = 2 << 10;
    } else {
        let l0_trigger = 1 + random.below(3) as usize;
        let (level1_bytes, ratio) = (8 << 10 << random.below(3), 2 + random.below(3) as u32);
        options.tree.layout = Layout::Geared(Geared { level1_bytes, ratio, l0_trigger });
        options.tree.picker = Picker::Drain(Drain { unit_bytes: random.below(3) * (4 << 10) });
    }
    let cached_percent = [1, 30, 80][random.below(3) as usize];
    let period = [Duration::from_secs(1), PERIOD][random.below(2) as usize];
    let share_percent = [20, 100, 1000][random.below(3) as usize];
    options.tree.retainer = Retainer::Buffer(Buffer { cached_percent, period, share_percent });
    options.keyspace.filter_bits_per_key = [0, 1, 10][random.below(3) as usize];
    options.memory_bytes = Some([1 << 20, 16 << 20][random.below(2) as usize]);
    options.background_threads = Some(1 + random.below(4) as usize);
    options
}

/// Seconds that values of the second keyspace live, at first.
const LIVES: u64 = 100;

/// What a store is to answer.
struct World {
    env: Arc<SimEnv>,
    map: BTreeMap<String, String>,
    /// With the second of the write.
    mortal: BTreeMap<String, (String, u64)>,
    lives: u64,
}

impl World {
    fn now(&self) -> u64 {
        self.env.unix_millis() / 1000
    }

    /// Forgets what has expired.
    fn bury(&mut self) {
        let (now, lives) = (self.now(), self.lives);
        self.mortal.retain(|_, (_, written)| now - *written <= lives + 3);
    }

    /// Deletes what nobody knows to be alive.
    fn settle(&mut self, mortal: &Keyspace) {
        let unknown: Vec<String> = self.mortal.keys().filter(|key| self.is_unknown(key)).cloned().collect();
        for key in unknown {
            mortal.delete(&key).unwrap();
            self.mortal.remove(&key);
        }
    }

    /// Whether nobody knows whether it is alive.
    fn is_unknown(&self, key: &str) -> bool {
        let now = self.now();
        self.mortal.get(key).is_some_and(|(_, written)| (now - *written).abs_diff(self.lives) <= 3)
    }
}

#[test]
fn i6_no_answer_depends_on_a_buffer_while_shapes_change() {
    let schedules = number("TERRACE_SCHEDULES").unwrap_or(schedules(4, 40));
    for seed in number("TERRACE_SEED").map_or(100..100 + schedules, |seed| seed..seed + 1) {
        let _told = Seed(seed);
        let config = SimConfig {
            seed,
            preemption_percent: [0, 20, 50][seed as usize % 3],
            preempt_at_locks: seed % 4 < 2,
            preempt_at_looks: seed % 5 < 2,
            device: if seed % 2 == 0 { DeviceModel::instant() } else { DeviceModel::nvme() },
            ..SimConfig::default()
        };
        SimEnv::run(config, move |env| lives(&env, &mut Random(seed)));
    }
}

/// Four lives of a store, each with other options.
fn lives(env: &Arc<SimEnv>, random: &mut Random) {
    let keys: u64 = [60, 300, 1000][random.below(3) as usize];
    let mut world = World { env: env.clone(), map: BTreeMap::new(), mortal: BTreeMap::new(), lives: LIVES };
    let mut found = 0;
    for life in 0..4 {
        // The first one may have several runs in its levels, as may those between.
        let options = if life < 3 && random.below(4) == 0 { stacked(random) } else { buffered(random) };
        let db = open(env, &options);
        let prefix = Some(Prefix::Fixed(3));
        let mortal = KeyspaceOptions {
            ttl: Some(Duration::from_secs(world.lives)),
            prefix,
            ..KeyspaceOptions::default()
        };
        let mortal = db.keyspace_with("mortal", mortal).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let db = Arc::new(db);
        let reader = {
            let (db, stop, mut random) = (db.clone(), stop.clone(), Random(random.next()));
            let env2 = env.clone();
            let body = move || {
                for _ in 0..400 {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    compare(&db, &mut random, keys);
                    env2.sleep(Duration::from_millis(1 + random.below(3000)));
                }
            };
            let env: Arc<dyn Env> = env.clone();
            env.spawn("reader", Priority::Normal, Box::new(body)).unwrap()
        };
        let hot = random.below(keys);
        let (snapshots, scan) = (Vec::new(), None);
        Life { db: &db, mortal: &mortal, world: &mut world, random, keys, hot, snapshots, scan }.live();
        stop.store(true, Ordering::SeqCst);
        reader.join();
        found += db.stats().user_reads.found_in_buffer;
        drop(mortal);
        db.wait_idle().unwrap();
        let shape = db.keyspace("default").unwrap().shape();
        let is_geared = matches!(options.tree.layout, Layout::Geared(_));
        assert!(
            !is_geared || shape.levels.iter().all(|level| level.score < 1.0),
            "due, though idle: {shape:?}"
        );
        assert_eq!(db.stats().background_errors, 0);
        assert!(db.verify().unwrap().problems.is_empty());
        Arc::into_inner(db).unwrap().close().unwrap();
    }
    assert!(found > 100, "{found} found in buffers");
}

/// All ways to read a range of a snapshot show the same.
fn compare(db: &Db, random: &mut Random, keys: u64) {
    let snapshot = db.snapshot();
    let n = random.below(keys);
    let to = n + random.below(40);
    let scan = || snapshot.range(key(n)..key(to)).unwrap();
    let forward: Entries = scan().map(entry).collect();
    let mut backward: Entries = scan().rev().map(entry).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    let names: Vec<String> = (n..to).map(key).collect();
    let many = snapshot.multi_get(&names).unwrap();
    let got: Vec<(String, String)> = names
        .iter()
        .zip(&many)
        .filter_map(|(name, value)| Some((name.clone(), text(value.as_ref()?))))
        .collect();
    assert_eq!(forward, got);
    for name in &names {
        let value = snapshot.get(name).unwrap().map(|value| text(&value));
        let there = forward.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        assert_eq!(value, there, "{name}");
    }
}

type Entries = Vec<(String, String)>;

/// A scan that is held open.
type Walk = Box<dyn Iterator<Item = (String, String)>>;

/// The open store, a model of it, and what is held open across operations.
struct Life<'a> {
    db: &'a Db,
    mortal: &'a Keyspace,
    world: &'a mut World,
    random: &'a mut Random,
    keys: u64,
    /// Where many lookups go.
    hot: u64,
    snapshots: Vec<(Snapshot, BTreeMap<String, String>)>,
    scan: Option<(Walk, Entries)>,
}

fn entry(entry: terrace::Result<(Slice, Slice)>) -> (String, String) {
    let (key, value) = entry.unwrap();
    (text(&key), text(&value))
}

impl Life<'_> {
    /// Any operations on the store and on its model, in a keyspace whose values expire and in one whose values do not.
    fn live(mut self) {
        // Shuffled keys come once in a round, so that no level freezes.
        let is_shuffled = self.random.below(2) == 0;
        let mut next = self.random.below(self.keys);
        for step in 0..1500 {
            next = if is_shuffled { (next + 7919) % self.keys } else { self.random.below(self.keys) };
            self.step(step, next);
        }
        check_range(self.db, &self.world.map, (key(0), key(99999)));
    }

    fn step(&mut self, step: u64, n: u64) {
        let Self { db, mortal, world, random, .. } = self;
        let value = format!("{step}-{}", "x".repeat(random.below(150) as usize));
        match random.below(100) {
            0..38 => {
                db.put(key(n), &value).unwrap();
                world.map.insert(key(n), value);
            }
            38..44 => {
                mortal.put(key(n), &value).unwrap();
                let now = world.now();
                world.mortal.insert(key(n), (value, now));
            }
            44..48 => {
                db.delete(key(n)).unwrap();
                world.map.remove(&key(n));
            }
            48 => self.delete_ranges(n),
            49 => self.ingest(n, &format!("{step}-ingested")),
            50 if self.snapshots.len() < 3 => self.snapshots.push((db.snapshot(), world.map.clone())),
            51 => self.snapshots.clear(),
            52 => world.env.sleep(Duration::from_secs(1 + random.below(20))),
            53 => match random.below(3) {
                0 => db.wait_idle().unwrap(),
                1 => db.flush().unwrap(),
                _ => {
                    let from = random.below(self.keys);
                    let default = db.keyspace("default").unwrap();
                    default.compact_range(key(from)..key(from + random.below(60))).unwrap();
                }
            },
            54 if random.below(4) == 0 => self.change_tree(),
            55 if random.below(4) == 0 => self.change_lives(),
            56..60 => check_range(db, &world.map, (key(n), key(n + random.below(60)))),
            60 => self.begin_or_end_scan(n),
            61 => self.check_snapshots(n),
            62..66 => self.check_prefix(&key(n)[..3]),
            _ => self.check_keys(n),
        }
    }

    fn delete_ranges(&mut self, n: u64) {
        let reach = if self.random.below(5) == 0 { self.keys } else { 20 };
        let to = key(n + self.random.below(reach));
        self.db.delete_range(key(n)..to.clone()).unwrap();
        self.world.map.retain(|other, _| *other < key(n) || *other >= to);
        let from = self.random.below(self.keys);
        let to = key(from + self.random.below(20));
        self.mortal.delete_range(key(from)..to.clone()).unwrap();
        self.world.mortal.retain(|other, _| *other < key(from) || *other >= to);
    }

    fn ingest(&mut self, n: u64, value: &str) {
        let Self { world, random, .. } = self;
        let (mut ingest, mut mortal) = (self.db.ingest().unwrap(), self.mortal.ingest().unwrap());
        let step = 1 + random.below(3) as usize;
        for n in (n..n + random.below(30)).step_by(step) {
            if random.below(4) == 0 {
                ingest.delete(key(n)).unwrap();
                mortal.delete(key(n)).unwrap();
                world.map.remove(&key(n));
                world.mortal.remove(&key(n));
            } else {
                ingest.push(key(n), value).unwrap();
                mortal.push(key(n), value).unwrap();
                let now = world.now();
                world.map.insert(key(n), value.to_owned());
                world.mortal.insert(key(n), (value.to_owned(), now));
            }
        }
        ingest.finish().unwrap();
        mortal.finish().unwrap();
    }

    fn change_tree(&mut self) {
        let random = &mut self.random;
        let Options { tree, .. } = if random.below(6) == 0 { stacked(random) } else { buffered(random) };
        self.db.set_options(|options| options.tree = tree).unwrap();
    }

    fn change_lives(&mut self) {
        let Self { mortal, world, random, .. } = self;
        world.bury();
        world.settle(mortal);
        world.lives = [20, 100, 1000][random.below(3) as usize];
        let ttl = Some(Duration::from_secs(world.lives));
        mortal.set_options(&KeyspaceOptions { ttl, ..mortal.options() }).unwrap();
        world.settle(mortal);
        world.bury();
    }

    /// A scan goes on with what there was when it began.
    fn begin_or_end_scan(&mut self, n: u64) {
        if let Some((scan, expected)) = self.scan.take() {
            assert!(scan.eq(expected));
        } else {
            let expected = self.world.map.range(key(n)..);
            let expected = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
            self.scan = Some((Box::new(self.db.range(key(n)..).unwrap().map(entry)), expected));
        }
    }

    fn check_snapshots(&mut self, n: u64) {
        let range = key(n)..key(n + self.random.below(60));
        for (snapshot, then) in &self.snapshots {
            let scan = || snapshot.range(range.clone()).unwrap();
            let expected = || then.range(range.clone()).map(|(key, value)| (key.clone(), value.clone()));
            assert!(scan().map(entry).eq(expected()));
            assert!(scan().rev().map(entry).eq(expected().rev()));
        }
    }

    fn check_prefix(&mut self, prefix: &str) {
        let Self { world, .. } = self;
        let mut found: Entries = self.mortal.prefix(prefix).unwrap().map(entry).collect();
        world.bury();
        let expected = world.mortal.iter().filter(|(key, _)| key.starts_with(prefix));
        let mut expected: Entries = expected.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
        expected.retain(|(key, _)| !world.is_unknown(key));
        found.retain(|(key, _)| !world.is_unknown(key));
        assert_eq!(found, expected, "prefix {prefix}");
    }

    fn check_keys(&mut self, n: u64) {
        let Self { db, mortal, world, random, keys, hot, .. } = self;
        let n = if random.below(2) == 0 { (*hot + random.below(*keys / 5)) % *keys } else { n };
        let names: Vec<String> = (n..).take(6).map(key).collect();
        let many = db.multi_get(&names).unwrap();
        for (name, many) in names.iter().zip(many) {
            let found = db.get(name).unwrap().map(|value| text(&value));
            assert_eq!(found, world.map.get(name).cloned(), "{name}");
            assert_eq!(many.map(|value| text(&value)), found, "{name}");
            for (snapshot, then) in &self.snapshots {
                let found = snapshot.get(name).unwrap().map(|value| text(&value));
                assert_eq!(found, then.get(name).cloned(), "{name} then");
            }
            let found = mortal.get(name).unwrap().map(|value| text(&value));
            world.bury();
            let expected = world.mortal.get(name).map(|(value, _)| value.clone());
            assert!(found == expected || world.is_unknown(name), "{name}, mortal: {found:?} {expected:?}");
        }
    }
}
