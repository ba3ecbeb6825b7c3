//! Tests of values that lie apart from their keys: they are read, kept for whoever reads, and given back when they are dead.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use terrace::tree::ValueOrder;
use terrace::{Compression, Db, ErrorKind, KeyspaceOptions, Options};
use terrace_torture::client::DIR;
use terrace_torture::{Replay, Rng, tiny};

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let shared: Arc<dyn Env> = env.clone();
    Db::builder(Path::new(DIR)).env(shared).options(options).open().unwrap()
}

fn with_store(options: Options, test: impl FnOnce(&Arc<SimEnv>, Db) + Send + 'static) {
    SimEnv::run(SimConfig::default(), move |env| test(&env, open(&env, options)));
}

fn separating(from: u32) -> Options {
    let keyspace = KeyspaceOptions { separate_from: Some(from), ..KeyspaceOptions::default() };
    Options { keyspace, ..tiny() }
}

fn key(n: u64) -> String {
    format!("{n:06}")
}

/// Bytes that do not compress, or do.
fn value(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let unit: Vec<u8> = (0..16).map(|_| rng.below(256) as u8).collect();
    unit.iter().copied().cycle().take(bytes).collect()
}

fn check(db: &Db, model: &BTreeMap<String, Vec<u8>>) {
    let shown: Vec<_> = db.iter().unwrap().map(Result::unwrap).collect();
    assert!(shown.iter().map(|(k, v)| (&**k, &**v)).eq(model.iter().map(|(k, v)| (k.as_bytes(), &**v))));
    let mut back: Vec<_> = db.iter().unwrap().rev().map(Result::unwrap).collect();
    back.reverse();
    assert_eq!(back, shown);
    let all: Vec<_> = db.iter().unwrap().keys().map(Result::unwrap).collect();
    assert!(all.iter().map(|k| &**k).eq(model.keys().map(|k| k.as_bytes())));
    let all: Vec<_> = db.iter().unwrap().keys().rev().map(Result::unwrap).collect();
    assert!(all.iter().map(|k| &**k).eq(model.keys().rev().map(|k| k.as_bytes())));
    let keys: Vec<_> = model.keys().collect();
    let found = db.multi_get(&keys).unwrap();
    assert!(found.iter().map(|v| v.as_deref()).eq(model.values().map(|v| Some(&**v))));
    for (key, value) in model {
        assert_eq!(db.get(key).unwrap().unwrap(), value[..]);
        assert!(db.contains(key).unwrap());
    }
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_store_with_values_apart_answers_as_one_without() {
    for (seed, compression, order) in [
        (1, Compression::None, ValueOrder::Key),
        (2, Compression::Lz4, ValueOrder::Key),
        (3, Compression::None, ValueOrder::Log),
    ] {
        let mut options = separating(100);
        options.keyspace.compression = compression;
        options.tree.value_order = order;
        with_store(options.clone(), move |env, db| {
            let mut rng = Rng::new(seed);
            let mut model = BTreeMap::new();
            let mut db = db;
            for round in 0..6 {
                for _ in 0..300 {
                    let key = key(rng.below(200) as u64);
                    if rng.percent(20) {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    } else {
                        let bytes = *rng.pick(&[0, 10, 99, 100, 500, 4096, 5000, 70_000]);
                        let part = if rng.percent(90) { 1 } else { 2 };
                        let value = value(&mut rng, bytes / part);
                        db.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                if round % 2 == 0 {
                    db.flush().unwrap();
                }
                check(&db, &model);
                if round == 3 {
                    db.compact().unwrap();
                    check(&db, &model);
                }
                if round == 4 {
                    db.close().unwrap();
                    db = open(env, options.clone());
                }
            }
            assert!(db.verify().unwrap().values > 0);
            db.close().unwrap();
        });
    }
}

fn filled(db: &Db, range: std::ops::Range<u64>, bytes: usize, seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut rng = Rng::new(seed);
    let mut model = BTreeMap::new();
    for n in range {
        let value = value(&mut rng, bytes);
        db.put(key(n), &value).unwrap();
        model.insert(key(n), value);
    }
    model
}

/// Bytes that tables and values take, those that somebody still reads included.
fn taken(db: &Db) -> u64 {
    let space = db.stats().space;
    space.live_bytes + space.dead_bytes
}

#[test]
fn who_reads_keeps_the_values_that_die_meanwhile() {
    with_store(separating(100), |env, db| {
        let old = filled(&db, 0..300, 3000, 1);
        db.compact().unwrap();
        let snapshot = db.snapshot();
        let mut iter = db.iter().unwrap();
        let mut cursor = db.cursor(..).unwrap();
        assert_eq!(iter.next().unwrap().unwrap().1, old[&key(0)][..]);
        drop(snapshot);
        for round in 2..5 {
            filled(&db, 0..300, 3000, round);
            db.compact().unwrap();
            db.wait_idle().unwrap();
        }
        let new = filled(&db, 0..300, 3000, 9);
        db.compact().unwrap();
        env.sleep(Duration::from_secs(2));
        let rest: Vec<_> = iter.by_ref().map(|entry| entry.unwrap().1.to_vec()).collect();
        assert!(rest.iter().eq(old.values().skip(1)), "the iterator reads what was there when it was made");
        assert_eq!(cursor.seek(key(7)).unwrap().unwrap().1, &old[&key(7)][..]);
        assert_eq!(cursor.next().unwrap().unwrap().1, &old[&key(8)][..]);
        assert_eq!(cursor.prev().unwrap().unwrap().1, &old[&key(7)][..]);
        assert!(taken(&db) > 1_500_000, "what the iterator reads is kept: {}", taken(&db));
        drop((iter, cursor));
        env.sleep(Duration::from_secs(5));
        db.wait_idle().unwrap();
        check(&db, &new);
        assert!(taken(&db) < 1_200_000, "{}", taken(&db));
        db.close().unwrap();
    });
}

#[test]
fn a_snapshot_and_a_transaction_see_old_values_wherever_these_are_written_anew() {
    with_store(separating(50), |_, db| {
        let old = filled(&db, 0..200, 400, 1);
        let snapshot = db.snapshot();
        let mut transaction = db.transaction();
        for round in 2..6 {
            filled(&db, 0..200, 400, round);
            db.flush().unwrap();
            db.compact().unwrap();
            db.wait_idle().unwrap();
        }
        let seen: Vec<_> = snapshot.iter().unwrap().map(|entry| entry.unwrap().1.to_vec()).collect();
        assert!(seen.iter().eq(old.values()));
        for (key, value) in &old {
            assert_eq!(transaction.get(key).unwrap().unwrap(), value[..]);
        }
        assert!(db.verify().unwrap().problems.is_empty());
        drop((snapshot, transaction));
        db.compact().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        assert_eq!(db.stats().space.values, 200);
        db.close().unwrap();
    });
}

/// Values of a few hundred bytes share pages, so nothing but copies gives their space back.
#[test]
fn the_space_of_dead_values_comes_back_by_itself() {
    for bytes in [300, 4096, 5000, 20_000] {
        with_store(separating(100), move |env, db| {
            let mut rng = Rng::new(bytes as u64);
            let count = 2_000_000 / bytes as u64;
            let mut model = filled(&db, 0..count, bytes, 1);
            for _ in 0..3 * count {
                let key = key(rng.below(count as usize) as u64);
                let value = value(&mut rng, bytes);
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            for _ in 0..20 {
                env.sleep(Duration::from_millis(500));
                db.wait_idle().unwrap();
            }
            let live = (count * bytes as u64) as f64;
            let stats = db.stats().space;
            // Each of the small packs that debug builds write has a page that is not full, and a directory.
            let packs = stats.pack_files * 8192;
            assert!(taken(&db).saturating_sub(packs) as f64 / live < 1.25, "{bytes}: {stats:?}");
            check(&db, &model);
            db.close().unwrap();
        });
    }
}

#[test]
fn a_power_cut_at_any_call_while_values_die_and_are_written_anew_loses_nothing() {
    for cut in (0..).step_by(if cfg!(debug_assertions) { 5 } else { 3 }) {
        let _replay = Replay(format!("cut {cut}"));
        let env = SimEnv::new(SimConfig { seed: cut, ..SimConfig::default() });
        let is_whole = env.simulate(move |env| {
            let db = open(&env, separating(100));
            filled(&db, 0..60, 700, 1);
            db.compact().unwrap();
            db.sync().unwrap();
            env.cut_after(cut);
            let mut rng = Rng::new(2);
            for n in (0..60).filter(|n| n % 3 > 0) {
                let bytes = if n % 2 == 0 { 700 } else { 9000 };
                if db.put(key(n), value(&mut rng, bytes)).is_err() {
                    return false;
                }
            }
            let done = db.flush().and_then(|()| db.compact()).and_then(|()| db.wait_idle());
            env.sleep(Duration::from_secs(3));
            done.is_ok() && db.put("the end", "").is_ok()
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            env.crash(survival).simulate(move |env| {
                let db = open(&env, separating(100));
                let first: BTreeMap<_, _> = {
                    let mut rng = Rng::new(1);
                    (0..60).map(|n| (key(n), value(&mut rng, 700))).collect()
                };
                let mut rng = Rng::new(2);
                let mut has_ended = false;
                for n in 0..60 {
                    let found = db.get(key(n)).unwrap().unwrap();
                    if n % 3 == 0 {
                        assert_eq!(found, first[&key(n)][..]);
                        continue;
                    }
                    let new = value(&mut rng, if n % 2 == 0 { 700 } else { 9000 });
                    let is_new = found == new[..];
                    assert!(is_new || found == first[&key(n)][..], "key {n}");
                    assert!(!(is_new && has_ended), "what is left is no prefix");
                    has_ended |= !is_new;
                }
                db.wait_idle().unwrap();
                assert!(db.verify().unwrap().problems.is_empty(), "{:?}", db.verify().unwrap().problems);
                db.compact().unwrap();
                assert!(db.verify().unwrap().problems.is_empty());
            });
        }
        if is_whole {
            return;
        }
    }
}

#[test]
fn a_damaged_value_is_told_by_file_and_offset_and_never_shown() {
    with_store(separating(100), |env, db| {
        let model = filled(&db, 0..40, 5000, 1);
        db.flush().unwrap();
        db.close().unwrap();
        let needle = &model[&key(17)][..64];
        let packs = env.files().into_iter().map(|(path, _)| path);
        let packs = packs.filter(|path| path.to_string_lossy().ends_with(".pack"));
        let mut damaged = 0;
        for path in packs {
            let bytes = env.read_file(&path).unwrap();
            if let Some(at) = bytes.windows(64).position(|window| window == needle) {
                env.overwrite(&path, at as u64 + 33, &[!bytes[at + 33]]).unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1);
        let db = open(env, separating(100));
        let error = db.get(key(17)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains(".pack"), "{error}");
        assert!(db.contains(key(17)).unwrap(), "the key is sound");
        assert_eq!(db.iter().unwrap().filter(Result::is_err).count(), 1);
        assert_eq!(db.iter().unwrap().keys().count(), 40);
        assert!(!db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    });
}

#[test]
fn from_which_size_on_values_lie_apart_can_be_changed_at_any_time() {
    with_store(separating(100), |_, db| {
        let mut model = filled(&db, 0..100, 500, 1);
        db.compact().unwrap();
        assert_eq!(db.stats().space.values, 100);
        let default = db.existing_keyspace("default").unwrap().unwrap();
        default.set_options(&KeyspaceOptions { separate_from: None, ..default.options() }).unwrap();
        model.extend(filled(&db, 50..150, 500, 2));
        db.compact().unwrap();
        assert_eq!(db.stats().space.values, 50);
        check(&db, &model);
        default.set_options(&KeyspaceOptions { separate_from: Some(400), ..default.options() }).unwrap();
        model.extend(filled(&db, 120..200, 300, 3));
        db.compact().unwrap();
        check(&db, &model);
        db.close().unwrap();
    });
}

#[test]
fn a_keyspace_that_is_dropped_gives_its_values_back_and_its_readers_keep_them() {
    with_store(separating(100), |env, db| {
        let options = KeyspaceOptions { separate_from: Some(100), ..KeyspaceOptions::default() };
        let space = db.keyspace_with("gone", options).unwrap();
        (0..100).for_each(|n| space.put(key(n), vec![n as u8; 4000]).unwrap());
        db.flush().unwrap();
        let mut iter = space.iter().unwrap();
        iter.next().unwrap().unwrap();
        db.drop_keyspace("gone").unwrap();
        filled(&db, 0..200, 4000, 7);
        db.flush().unwrap();
        let rest: Vec<_> = iter.by_ref().map(|entry| entry.unwrap().1[0]).collect();
        assert!(rest.into_iter().eq(1..100));
        drop(iter);
        drop(space);
        env.sleep(Duration::from_secs(2));
        let space = db.stats().space;
        assert_eq!(space.values, 200);
        assert!(space.live_bytes < 200 * 4200, "{space:?}");
        db.close().unwrap();
    });
}

#[test]
fn values_leave_a_device_that_is_drained() {
    with_store(separating(100), |_, db| {
        db.add_device("/second").unwrap();
        let model = filled(&db, 0..400, 2000, 1);
        db.compact().unwrap();
        db.drain_device("/second").unwrap();
        let devices = db.stats().devices;
        assert_eq!(devices.iter().filter(|device| device.id > 0 && device.table_bytes > 0).count(), 0);
        check(&db, &model);
        db.close().unwrap();
    });
}

#[test]
fn a_buffer_leads_to_no_value_that_has_moved() {
    let mut options = crate::buffer::lsbm();
    options.keyspace.separate_from = Some(40);
    with_store(options, |_, db| {
        let mut rng = Rng::new(3);
        let mut model = BTreeMap::new();
        for round in 0..12 {
            // 7919 is a prime, so that every key comes once.
            for n in (0..300).map(|n| n * 7919 % 300).filter(|n| round == 0 || n % 3 != round % 3) {
                let value = value(&mut rng, 300);
                db.put(key(n), &value).unwrap();
                model.insert(key(n), value);
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            check(&db, &model);
        }
        assert!(db.stats().space.collected_bytes > 0, "nothing has moved");
        db.close().unwrap();
    });
}

#[test]
fn values_that_lie_apart_expire() {
    for seed in 1..4 {
        let mut options = separating(*Rng::new(seed).pick(&[1, 20, 100, 4096]));
        options.keyspace.ttl = Some(Duration::from_secs(1000));
        with_store(options.clone(), move |env, db| {
            let mut rng = Rng::new(seed);
            let mut db = db;
            let mut model: BTreeMap<String, (u64, Vec<u8>)> = BTreeMap::new();
            let mut now = 0;
            for _ in 0..8 {
                for _ in 0..200 {
                    let key = key(rng.below(200) as u64);
                    if rng.percent(20) {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    } else {
                        let bytes = *rng.pick(&[0, 1, 4, 19, 20, 99, 100, 500, 4092, 4096, 5000]);
                        let value = value(&mut rng, bytes);
                        db.put(&key, &value).unwrap();
                        model.insert(key, (now, value));
                    }
                }
                env.sleep(Duration::from_secs(210));
                now += 210;
                if rng.percent(50) {
                    db.flush().unwrap();
                }
                if rng.percent(30) {
                    db.compact().unwrap();
                }
                if rng.percent(30) {
                    db.close().unwrap();
                    db = open(env, options.clone());
                }
                model.retain(|_, (at, _)| *at + 1000 > now);
                let shown = model.iter().map(|(key, (_, value))| (key.clone(), value.clone())).collect();
                check(&db, &shown);
            }
            env.sleep(Duration::from_secs(5000));
            db.compact().unwrap();
            db.wait_idle().unwrap();
            assert_eq!(db.stats().space.values, 0);
            db.close().unwrap();
        });
    }
}

/// Its pointer stays where it is, and nothing else waits for it.
#[test]
fn a_damaged_value_stops_no_compaction() {
    with_store(separating(100), |env, db| {
        let model = filled(&db, 0..200, 500, 1);
        db.compact().unwrap();
        db.close().unwrap();
        let needle = &model[&key(17)][..64];
        let packs = env.files().into_iter().map(|(path, _)| path);
        for path in packs.filter(|path| path.to_string_lossy().ends_with(".pack")) {
            let bytes = env.read_file(&path).unwrap();
            if let Some(at) = bytes.windows(64).position(|window| window == needle) {
                env.overwrite(&path, at as u64 + 33, &[!bytes[at + 33]]).unwrap();
            }
        }
        let db = open(env, separating(100));
        let mut rng = Rng::new(2);
        for round in 0..10 {
            for n in (0..200).filter(|n| *n != 17 && n % 2 == round % 2) {
                db.put(key(n), value(&mut rng, 500)).unwrap();
            }
            db.flush().unwrap();
            env.sleep(Duration::from_secs(20));
            db.wait_idle().unwrap();
        }
        db.compact().unwrap();
        assert_eq!(db.stats().background_errors, 0);
        assert_eq!(db.get(key(17)).unwrap_err().kind(), ErrorKind::Corruption);
        assert!(db.stats().space.collected_bytes > 0);
        db.close().unwrap();
    });
}

/// A little of a large keyspace lies apart: the rest is not written over and over for it.
#[test]
fn few_values_apart_do_not_rewrite_a_large_tree() {
    let [without, with] = [None, Some(1000)].map(|separate_from| {
        let (sender, written) = std::sync::mpsc::channel();
        let mut options = separating(100);
        options.keyspace.separate_from = None;
        with_store(options, move |env, db| {
            filled(&db, 0..20_000, 90, 1);
            db.compact().unwrap();
            let default = db.existing_keyspace("default").unwrap().unwrap();
            default.set_options(&KeyspaceOptions { separate_from, ..default.options() }).unwrap();
            let before = db.stats().compaction.bytes_out;
            let mut rng = Rng::new(2);
            for n in 0..600 {
                let key = key(rng.below(20_000) as u64);
                let bytes = if n % 4 == 0 { 1200 } else { 90 };
                db.put(key, value(&mut rng, bytes)).unwrap();
            }
            db.flush().unwrap();
            env.sleep(Duration::from_secs(5));
            db.wait_idle().unwrap();
            sender.send(db.stats().compaction.bytes_out - before).unwrap();
            db.close().unwrap();
        });
        written.recv().unwrap()
    });
    assert!(with < without + 4_000_000, "{with} bytes with values apart, {without} without");
}

#[test]
fn nothing_lies_apart_once_the_file_system_has_refused_a_hole() {
    with_store(Options { memtable_bytes: 1 << 20, ..separating(100) }, |env, db| {
        let target =
            FaultTarget::Matching { operation: Operation::Punch, path_suffix: ".pack".into(), skipped: 0 };
        env.fault(FaultRule { target, error: FaultError::Unsupported, sticky: true, partial: false });
        let mut rng = Rng::new(1);
        let mut model = BTreeMap::new();
        let mut put = |keys: std::ops::Range<u64>, step: usize| {
            for n in keys.step_by(step) {
                let value = value(&mut rng, 20_000);
                db.put(key(n), &value).unwrap();
                model.insert(key(n), value);
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            check(&db, &model);
        };
        put(0..60, 1);
        let values = db.stats().space.values;
        assert_eq!(values, 60, "nobody has asked for a hole yet");
        for _ in 0..4 {
            put(0..60, 3);
        }
        env.sleep(Duration::from_secs(20));
        assert!(db.stats().punch.unsupported);
        put(100..160, 1);
        assert!(db.stats().space.values <= 60, "{:?}", db.stats().space);
    });
}
