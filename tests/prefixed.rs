//! PTierDB's layout: levels of tables that overlap, through everything that a store can do.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{Random, Seed, scheduled, tiny};
use terrace::env::Env;
use terrace::env::simulated::SimEnv;
use terrace::tree::{Components, Cutter, Flushes, Layout, Leveled, Picker, Prefixed, TableSize};
use terrace::{Db, EventListener, JobBegin, KeyspaceOptions, Options, Prefix};

/// The layout at a thousandth of the paper's sizes.
pub fn prefixed(components: Components) -> Options {
    let mut options = Options { background_threads: Some(2), ..tiny() };
    options.tree.layout = Layout::Prefixed(Prefixed { level1_bytes: 16 << 10, ratio: 10, l0_trigger: 2 });
    options.tree.picker = Picker::Components(components);
    options.tree.cutter = Cutter::Prefix(TableSize { table_bytes: 4 << 10, flushes: Flushes::Whole });
    options.keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(2)), ..KeyspaceOptions::default() };
    options
}

pub fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options).open().unwrap()
}

/// Runs of the level with most bytes.
fn runs(db: &Db) -> usize {
    let levels = db.keyspace("default").unwrap().shape().levels;
    let deeper = levels.iter().filter(|level| level.level > 0);
    deeper.max_by_key(|level| level.bytes).map_or(0, |level| level.runs)
}

/// Flushes, and waits until nothing is left to do.
pub fn settle(db: &Db) {
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

/// Overwrites keys in no order until several runs lie in the largest level.
fn load(db: &Db, mut random: Random) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut model = BTreeMap::new();
    for round in 0..6000u64 {
        let key = format!("{:04}", random.below(3000)).into_bytes();
        let value = vec![round as u8; 40 + random.below(60) as usize];
        db.put(&key, &value).unwrap();
        model.insert(key, value);
        if round % 80 == 79 {
            settle(db);
        }
    }
    settle(db);
    model
}

pub fn check(db: &Db, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let found: BTreeMap<Vec<u8>, Vec<u8>> =
        db.iter().unwrap().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    assert!(found == *model, "{} of {} entries", found.len(), model.len());
    for (key, value) in model {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]), "{}", key.escape_ascii());
    }
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn lookups_have_tables_of_the_largest_level_merged_until_few_overlap() {
    let seed = Seed::new(1);
    let random = seed.random();
    scheduled(move |env| {
        let db = open(&env, prefixed(Components::default()));
        let model = load(&db, random);
        let (before, jobs) = (runs(&db), db.stats().compaction.jobs);
        assert!(before > 1, "{before} runs");
        for _ in 0..100 {
            for key in model.keys() {
                db.get(key).unwrap();
            }
            db.multi_get(model.keys().take(100).collect::<Vec<_>>()).unwrap();
            db.wait_idle().unwrap();
            if runs(&db) < before {
                break;
            }
        }
        let (after, done) = (runs(&db), db.stats().compaction.jobs);
        assert!(after < before && done > jobs, "{after} runs of {before} after {} jobs", done - jobs);
        check(&db, &model);
    });
}

#[test]
fn scans_have_tables_merged_as_lookups_have() {
    let seed = Seed::new(1);
    let random = seed.random();
    scheduled(move |env| {
        let db = open(&env, prefixed(Components::default()));
        let model = load(&db, random);
        let before = runs(&db);
        assert!(before > 1, "{before} runs");
        for _ in 0..100 {
            for key in model.keys() {
                assert!(db.range(key.as_slice()..).unwrap().next().is_some());
            }
            db.wait_idle().unwrap();
            if runs(&db) < before {
                break;
            }
        }
        let after = runs(&db);
        assert!(after < before, "{after} runs of {before}");
        check(&db, &model);
    });
}

#[test]
fn without_an_access_limit_lookups_change_nothing() {
    let seed = Seed::new(1);
    let random = seed.random();
    scheduled(move |env| {
        let components = Components { access_bytes: 0, ..Components::default() };
        let db = open(&env, prefixed(components));
        let model = load(&db, random);
        let jobs = db.stats().compaction.jobs;
        for key in model.keys().cycle().take(5 * model.len()) {
            db.get(key).unwrap();
        }
        db.wait_idle().unwrap();
        assert_eq!(db.stats().compaction.jobs, jobs);
    });
}

#[test]
fn tables_of_tombstones_are_merged_with_what_they_hide() {
    let seed = Seed::new(2);
    let random = seed.random();
    scheduled(move |env| {
        let db = open(&env, prefixed(Components::default()));
        let mut model = load(&db, random);
        let bytes = |db: &Db| {
            db.keyspace("default").unwrap().shape().levels.iter().map(|level| level.bytes).sum::<u64>()
        };
        let full = bytes(&db);
        model.retain(|key, _| {
            let stays = key.ends_with(b"7");
            if !stays {
                db.delete(key).unwrap();
            }
            stays
        });
        settle(&db);
        // What comes later pushes the tombstones down.
        for n in 0..3000 {
            let (key, value) = (format!("9{n:04}").into_bytes(), vec![7; 60]);
            db.put(&key, &value).unwrap();
            model.insert(key, value);
            if n % 80 == 79 {
                settle(&db);
            }
        }
        settle(&db);
        assert!(bytes(&db) < full, "{} of {full} bytes", bytes(&db));
        // What came later in key order moved, the rest was merged.
        let compaction = db.stats().compaction;
        let moved = compaction.passed.iter().map(|passed| passed.moved).sum::<u64>();
        let merged = compaction.passed.iter().map(|passed| passed.merged).sum::<u64>();
        assert!(moved > 0 && moved == compaction.moved_bytes, "{compaction:?}");
        assert!(merged > 0 && merged <= compaction.bytes_in, "{compaction:?}");
        check(&db, &model);
    });
}

/// A store is opened with one layout after the other, and everything of it stays.
#[test]
fn a_store_changes_its_layout_at_any_opening() {
    let seed = Seed::new(3);
    let mut random = seed.random();
    scheduled(move |env| {
        let mut leveled = tiny();
        leveled.tree.layout = Layout::Leveled(Leveled { level1_bytes: 16 << 10, ratio: 4, l0_trigger: 2 });
        let whole =
            Components { moves: false, access_bytes: 0, job_bytes: 16 << 10, ..Components::default() };
        let mut any_prefix = prefixed(Components { job_bytes: 16 << 10, ..Components::default() });
        any_prefix.keyspace = KeyspaceOptions::default();
        let all = [leveled.clone(), prefixed(Components::default()), leveled, prefixed(whole), any_prefix];
        let mut model = BTreeMap::new();
        for (round, options) in all.into_iter().chain([tiny()]).enumerate() {
            let db = open(&env, options);
            check(&db, &model);
            let snapshot = db.snapshot();
            let was = model.clone();
            for n in 0..2000u64 {
                let key = format!("{:04}", random.below(3000)).into_bytes();
                match random.below(20) {
                    0..4 => {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    }
                    4 if n % 3 == 0 => {
                        let end = [&key[..], b"~"].concat();
                        db.delete_range(&key[..]..&end[..]).unwrap();
                        model.retain(|other, _| *other < key || *other >= end);
                    }
                    _ => {
                        let value = vec![round as u8; random.below(90) as usize];
                        db.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
            }
            let seen =
                snapshot.iter().unwrap().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
            assert!(seen.eq(was), "round {round}: the snapshot sees something else");
            drop(snapshot);
            db.wait_idle().unwrap();
            check(&db, &model);
            let copy = format!("/copy{round}");
            db.checkpoint(&copy).unwrap();
            if round == 3 {
                db.compact().unwrap();
                assert!(runs(&db) <= 1, "a manual compaction leaves one run");
            }
            db.close().unwrap();
            let copied = Db::builder(&copy).env(env.clone()).options(tiny()).open().unwrap();
            check(&copied, &model);
        }
    });
}

/// Bytes of the largest compaction within a level.
#[derive(Default)]
struct LargestWithin(AtomicU64);

impl EventListener for LargestWithin {
    fn compaction_begin(&self, compaction: &JobBegin) {
        if compaction.level == compaction.target && compaction.level > 0 {
            self.0.fetch_max(compaction.bytes_in, Relaxed);
        }
    }
}

/// A leveled layout makes one run of what overlaps in a level of PTierDB's, whether anything comes from above or not.
#[test]
fn a_leveled_layout_makes_one_run_of_each_level_that_another_one_left() {
    let seed = Seed::new(1);
    for writes in [0u64, 2000] {
        let random = [seed.random(), seed.random()];
        scheduled(move |env| levels_become_runs(&env, random, writes));
    }
}

fn levels_become_runs(env: &Arc<SimEnv>, [first, mut random]: [Random; 2], writes: u64) {
    let mut leveled = tiny();
    leveled.tree.layout = Layout::Leveled(Leveled { level1_bytes: 16 << 10, ratio: 4, l0_trigger: 2 });
    let db = open(env, prefixed(Components::default()));
    let mut model = load(&db, first);
    assert!(runs(&db) > 1);
    let bytes = |db: &Db| {
        let levels = db.keyspace("default").unwrap().shape().levels;
        levels.iter().map(|level| level.bytes).max().unwrap()
    };
    let largest_level = bytes(&db);
    db.close().unwrap();
    let largest_fold = Arc::new(LargestWithin::default());
    let builder = Db::builder("/db").env(env.clone()).options(leveled.clone());
    let db = builder.listener(largest_fold.clone()).open().unwrap();
    for n in 0..writes {
        let (key, value) = (format!("{:04}", random.below(3000)).into_bytes(), vec![n as u8; 50]);
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    db.wait_idle().unwrap();
    let levels = db.keyspace("default").unwrap().shape().levels;
    assert!(levels.iter().all(|level| level.level == 0 || level.runs <= 1), "{levels:?}");
    // The listener hears of a job a moment later.
    env.sleep(Duration::from_secs(1));
    let folded = largest_fold.0.load(Relaxed);
    assert!((1..largest_level / 4).contains(&folded), "{folded} of {largest_level} bytes in one job");
    check(&db, &model);
    db.close().unwrap();
    check(&open(env, leveled), &model);
}
