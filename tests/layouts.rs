//! What a store can do besides, in layouts that keep several runs in a level: PTierDB's and PebblesDB's. Each test is of
//! one subject, and runs in both.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{SimEnv, Survival};
use terrace::tree::{Components, Cutter, Flushes, Guarded, Layout, Picker, TableSize};
use terrace::{Db, Keyspace, KeyspaceOptions, Options, Prefix, RepairReport};
use terrace_torture::{Replay, sealed_packs};

use crate::common::{Random, Seed, scheduled, tiny};
use crate::expiry::{TTL, jump};
use crate::prefixed::{check, open, prefixed, settle};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 1200;

/// Guards at a thousandth of PebblesDB's sizes: one key in 256 is one of level 1, and one in 128, 64, .. of the next ones.
fn guarded() -> Options {
    let mut options = Options { background_threads: Some(2), ..tiny() };
    options.tree.layout = Layout::Guarded(Guarded {
        l0_trigger: 2,
        top_bits: 9,
        bits_step: 1,
        runs_max: 2,
        guard_bytes: 8 << 10,
    });
    options.tree.picker = Picker::Guards;
    options.tree.cutter = Cutter::Guards(TableSize { table_bytes: 4 << 10, flushes: Flushes::Whole });
    options
}

/// Runs `test` on a new machine with each layout, with random numbers from `seed`. Lookups have nothing merged.
fn in_each_layout(seed: u64, test: impl Fn(&Arc<SimEnv>, &Options, Random) + Clone + Send + 'static) {
    let seed = Seed::new(seed);
    for options in [prefixed(Components { access_bytes: 0, ..Components::default() }), guarded()] {
        let _replay = Replay(format!("{:?}", options.tree.layout));
        let (test, random) = (test.clone(), seed.random());
        scheduled(move |env| test(&env, &options, random));
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("{n:04}").into_bytes()
}

/// A value that tells its key.
fn value(key: &[u8], random: &mut Random) -> Vec<u8> {
    [key, &[random.next() as u8; 40], &vec![b'.'; random.below(40) as usize]].concat()
}

/// Overwrites keys in no order, and deletes one in `deletes` of them, in rounds that each become a run.
fn write(db: &Db, model: &mut Model, random: &mut Random, (rounds, deletes): (u64, u64)) {
    for _ in 0..rounds {
        for _ in 0..60 {
            let key = key(random.below(KEYS));
            if random.below(deletes) == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = value(&key, random);
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        settle(db);
    }
}

/// Runs of each level.
fn runs(keyspace: &Keyspace) -> Vec<usize> {
    keyspace.shape().levels.iter().map(|level| level.runs).collect()
}

/// Whether a level below level 0 has several runs.
fn has_levels_of_runs(keyspace: &Keyspace) -> bool {
    runs(keyspace)[1..].iter().any(|runs| *runs > 1)
}

fn default(db: &Db) -> Keyspace {
    db.keyspace("default").unwrap()
}

/// A store in which a level has several runs, and what is in it.
fn stacked(env: &Arc<SimEnv>, options: &Options, random: &mut Random, deletes: u64) -> (Db, Model) {
    let (db, mut model) = (open(env, options.clone()), Model::new());
    write(&db, &mut model, random, (31, deletes));
    assert!(has_levels_of_runs(&default(&db)), "{:?}", runs(&default(&db)));
    (db, model)
}

#[test]
fn what_is_ingested_is_newer_than_all_runs_and_older_than_what_comes() {
    in_each_layout(1, |env, options, mut random| {
        let (db, mut model) = stacked(env, options, &mut random, 10);
        for round in 0..6 {
            let (snapshot, was) = (db.snapshot(), model.clone());
            let from = random.below(KEYS - 200);
            let mut ingest = db.ingest().unwrap();
            for n in (from..from + 200).step_by(1 + round) {
                let key = key(n);
                if n % 7 == 0 {
                    ingest.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = value(&key, &mut random);
                    ingest.push(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            ingest.finish().unwrap();
            check(&db, &model);
            write(&db, &mut model, &mut random, (3, 10));
            check(&db, &model);
            let seen: Model =
                snapshot.iter().unwrap().map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert!(seen == was, "round {round}: the snapshot sees something else");
        }
        // What overlaps nothing needs no job: it lies below level 0, however much is there.
        let level0 = runs(&default(&db))[0];
        let mut ingest = db.ingest().unwrap();
        for n in 0..200 {
            let key = format!("x{n:03}").into_bytes();
            let value = value(&key, &mut random);
            ingest.push(&key, &value).unwrap();
            model.insert(key, value);
        }
        ingest.finish().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(runs(&default(&db))[0], level0);
        check(&db, &model);
    });
}

#[test]
fn what_expires_in_any_run_uncovers_nothing_and_goes() {
    in_each_layout(2, |env, options, mut random| {
        let db = open(env, options.clone());
        let (ttl, prefix) = (Some(Duration::from_secs(TTL)), Some(Prefix::Fixed(2)));
        let aging =
            db.keyspace_with("aging", KeyspaceOptions { ttl, prefix, ..KeyspaceOptions::default() }).unwrap();
        // The value of each key, and the second of its write.
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
        let check = |model: &BTreeMap<Vec<u8>, (Vec<u8>, u64)>, now: u64| {
            let alive = model.iter().filter(|(_, (_, written))| now < written + TTL);
            let alive: Model = alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
            let entries = aging.iter().unwrap().map(Result::unwrap);
            assert!(entries.map(|(k, v)| (k.to_vec(), v.to_vec())).eq(alive.clone()), "in second {now}");
            for key in model.keys() {
                let found = aging.get(key).unwrap();
                assert_eq!(found.as_deref(), alive.get(key).map(Vec::as_slice), "{key:?} in second {now}");
            }
        };
        let (mut now, mut stacked) = (0, 0);
        for round in 0..60 {
            for _ in 0..60 {
                let key = key(random.below(KEYS));
                if random.below(20) == 0 {
                    aging.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = value(&key, &mut random);
                    aging.put(&key, &value).unwrap();
                    model.insert(key, (value, now));
                }
            }
            settle(&db);
            stacked += u32::from(has_levels_of_runs(&aging));
            if round % 5 == 4 {
                check(&model, now);
            }
            jump(env, 5);
            now += 5;
        }
        assert!(stacked > 10, "{stacked} rounds with several runs in a level");
        assert!(model.values().any(|(_, written)| now >= written + TTL), "nothing has expired");
        check(&model, now);
        let copy = Path::new("/copy");
        db.checkpoint(copy).unwrap();
        jump(env, TTL as i64);
        check(&model, now + TTL);
        db.compact().unwrap();
        let tables =
            |keyspace: &Keyspace| keyspace.shape().levels.iter().map(|level| level.tables).sum::<usize>();
        assert_eq!(tables(&aging), 0, "{:?}", aging.shape());
        let copied = Db::builder(copy).env(env.clone()).options(options.clone()).open().unwrap();
        assert!(copied.keyspace("aging").unwrap().is_empty().unwrap());
        assert!(copied.verify().unwrap().problems.is_empty());
    });
}

/// The files of the store whose names begin with `part`.
fn files(env: &SimEnv, part: &str) -> Vec<PathBuf> {
    let names = env.list(Path::new("/db")).unwrap().into_iter();
    names.filter(|name| name.starts_with(part)).map(|name| Path::new("/db").join(name)).collect()
}

/// Repairs the store into another directory, and opens that.
fn repaired(env: &Arc<SimEnv>, options: &Options) -> (RepairReport, Db) {
    let builder = |path: &str| Db::builder(path).env(env.clone()).options(options.clone());
    let report = builder("/db").repair("/repaired").unwrap();
    (report, builder("/repaired").must_exist().open().unwrap())
}

#[test]
fn a_repair_finds_the_newest_version_whatever_run_it_lies_in() {
    let damages: [fn(&SimEnv); 2] = [
        |_| {},
        |env| {
            let names = [files(env, "CURRENT"), files(env, "MANIFEST")].concat();
            names.iter().for_each(|path| env.remove(path).unwrap());
        },
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let _replay = Replay(format!("damage {at}"));
        in_each_layout(3, move |env, options, mut random| {
            // Without a manifest deleted keys may be back.
            let (db, mut model) = stacked(env, options, &mut random, u64::MAX);
            db.close().unwrap();
            damage(env);
            let (report, db) = repaired(env, options);
            assert_eq!((report.entries, report.whole_catalog), (model.len() as u64, at == 0), "{report:?}");
            check(&db, &model);
            // And it is a store of this layout.
            write(&db, &mut model, &mut random, (12, 10));
            check(&db, &model);
        });
    }
}

#[test]
fn a_repair_loses_what_is_damaged_and_makes_nothing_up() {
    in_each_layout(4, |env, options, mut random| {
        let (db, model) = stacked(env, options, &mut random, u64::MAX);
        db.close().unwrap();
        let (mut harmed, packs) = (0, sealed_packs(env).len());
        for at in 0..packs {
            let image = env.crash(Survival::Everything);
            let pack = &sealed_packs(&image)[at];
            let byte = image.read_file(pack).unwrap()[100];
            image.overwrite(pack, 100, &[!byte]).unwrap();
            let (report, db) = repaired(&image, options);
            let found: Model =
                db.iter().unwrap().map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert!(found.iter().all(|(key, value)| value.starts_with(key)), "made up");
            assert!(found.keys().all(|key| model.contains_key(key)), "made up");
            assert!(found == model || !report.lost.is_empty(), "{report:?}");
            assert!(found.len() + 100 > model.len(), "{} of {}: more than a table", found.len(), model.len());
            assert!(db.verify().unwrap().problems.is_empty());
            harmed += u32::from(found != model);
        }
        assert!(harmed > 2, "{harmed} of {packs}");
    });
}

#[test]
fn a_checkpoint_has_the_runs_of_its_moment_and_goes_on_by_itself() {
    in_each_layout(5, |env, options, mut random| {
        let (db, mut model) = stacked(env, options, &mut random, 10);
        // What is in memory alone is copied, too.
        let late = key(3);
        db.put(&late, &late).unwrap();
        model.insert(late.clone(), late);
        let (was, shape) = (model.clone(), runs(&default(&db)));
        db.checkpoint("/copy").unwrap();
        write(&db, &mut model, &mut random, (10, 10));
        check(&db, &model);
        let builder = || Db::builder("/copy").env(env.clone()).options(options.clone()).must_exist();
        let reader = builder().read_only().open().unwrap();
        assert_eq!(runs(&default(&reader)), shape);
        check(&reader, &was);
        drop(reader);
        let (copy, mut copied) = (builder().open().unwrap(), was);
        check(&copy, &copied);
        write(&copy, &mut copied, &mut random, (10, 5));
        check(&copy, &copied);
        copy.compact().unwrap();
        check(&copy, &copied);
        assert!(runs(&default(&copy)).iter().sum::<usize>() == 1, "{:?}", runs(&default(&copy)));
        check(&db, &model);
    });
}
