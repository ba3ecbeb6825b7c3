//! Tests of repair: everything undamaged is in the new store, everything else is listed, and the old store stays as
//! it is.
//!
//! Every key of the store has one value for ever, so an entry in the new store is right or it is made up.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, SimConfig, SimEnv, Survival};
use terrace::{Compression, Db, Durability, Error, ErrorKind, KeyspaceOptions, RepairReport, WriteBatch};
use terrace_torture::client::{DIR, open};
use terrace_torture::{Replay, is_long, schedules, sealed_packs as packs, tiny};

const TARGET: &str = "/repaired";
const KEYS: usize = 420;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: usize) -> Vec<u8> {
    format!("{:04}", n * 37 % KEYS).into_bytes()
}

fn value(n: usize) -> Vec<u8> {
    format!("value {n} ").into_bytes().repeat(12)
}

fn complete() -> Entries {
    (0..KEYS).map(|n| (key(n), value(n))).collect()
}

/// A store with several packs and levels, entries that came from outside, and a log; left as by the death of its process.
fn damaged_by(damage: impl FnOnce(&Arc<SimEnv>)) -> Arc<SimEnv> {
    let machine = SimEnv::new(SimConfig { preemption_percent: 0, ..SimConfig::default() });
    let image = machine.simulate(|env| {
        let db = open(&env, &tiny()).unwrap();
        let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
        let other = db.keyspace_with("other", lz4).unwrap();
        let mut ingest = other.ingest().unwrap();
        complete().iter().take(80).for_each(|(key, value)| ingest.push(key, value).unwrap());
        ingest.finish().unwrap();
        let in_ingest: Entries = complete().into_iter().take(80).collect();
        for n in 0..KEYS {
            let mut batch = WriteBatch::new();
            batch.put(key(n), value(n));
            if !in_ingest.contains_key(&key(n)) {
                batch.put_in(&other, key(n), value(n));
            }
            db.write_with(batch, if n % 16 == 0 { Durability::Synced } else { Durability::Buffered })
                .unwrap();
            if n == KEYS * 3 / 4 {
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
        }
        env.crash(Survival::Everything)
    });
    damage(&image);
    image
}

fn files(env: &SimEnv, part: &str) -> Vec<PathBuf> {
    let paths = env.files().into_iter().map(|(path, _)| path);
    paths.filter(|path| path.starts_with(DIR) && path.to_string_lossy().contains(part)).collect()
}

fn contents(env: &SimEnv) -> Vec<(PathBuf, Vec<u8>)> {
    files(env, "").into_iter().map(|path| (path.clone(), env.read_file(&path).unwrap())).collect()
}

/// Turns the bits of a byte over.
fn flip(env: &SimEnv, path: &Path, at: u64) {
    let byte = env.read_file(path).unwrap()[at as usize];
    env.overwrite(path, at, &[!byte]).unwrap();
}

fn open_target(env: &Arc<SimEnv>) -> terrace::Result<Db> {
    Db::builder(TARGET).env(env.clone()).options(tiny()).must_exist().open()
}

/// How many entries are missing from each keyspace of a new store, by name. None is made up.
fn missing_from(db: &Db) -> BTreeMap<String, usize> {
    assert!(db.verify().unwrap().problems.is_empty());
    let complete = complete();
    let missing = db.keyspaces().into_iter().map(|name| {
        let keyspace = db.existing_keyspace(&name).unwrap().unwrap();
        let found: Entries = keyspace
            .iter()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|(k, v)| (k.to_vec(), v.to_vec()))
            .collect();
        assert!(found.iter().all(|(key, value)| complete.get(key) == Some(value)), "made up in {name}");
        (name, complete.len() - found.len())
    });
    missing.collect()
}

/// Repairs, and tells the report and how many entries are missing from each keyspace of the new store, by name.
fn repair(env: &Arc<SimEnv>) -> (RepairReport, BTreeMap<String, usize>) {
    let before = contents(env);
    let (report, missing) = env.simulate(|env| {
        let report = Db::builder(DIR).env(env.clone()).options(tiny()).repair(TARGET).unwrap();
        let missing = missing_from(&open_target(&env).unwrap());
        assert_eq!(report.entries as usize, missing.values().map(|missing| KEYS - missing).sum::<usize>());
        (report, missing)
    });
    for error in &report.lost {
        let placed = error.file().is_some_and(|file| file.starts_with(DIR)) && error.offset().is_some();
        assert!(error.kind() == ErrorKind::Corruption && placed, "{error:?}");
    }
    assert!(contents(env) == before, "the old store has changed");
    (report, missing)
}

fn nothing_missing() -> BTreeMap<String, usize> {
    BTreeMap::from([("default".into(), 0), ("other".into(), 0)])
}

#[test]
fn an_undamaged_store_is_copied_whole() {
    let env = damaged_by(|_| {});
    assert!(packs(&env).len() > 2 && files(&env, ".wal").len() > 1);
    let (report, missing) = repair(&env);
    assert_eq!(
        (missing, report.lost.len(), report.whole_catalog),
        (nothing_missing(), 0, true),
        "{report:?}"
    );
    assert!(report.tables > 10 && report.keyspaces == 2, "{report:?}");
    let error = env.simulate(|env| Db::builder(DIR).env(env).repair(TARGET).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "there is a store by now");
}

#[test]
fn damage_anywhere_in_a_pack_costs_no_more_than_a_table() {
    let (mut listed, mut cases) = (0, 0);
    for at in 0..packs(&damaged_by(|_| {})).len() {
        for part in (0..12).step_by(if is_long() { 1 } else { 3 }) {
            let env = damaged_by(|_| {});
            let path = packs(&env)[at].clone();
            let length = env.read_file(&path).unwrap().len() as u64;
            let offset = length * part / 12 + part * 7 % (length / 12);
            let _replay = Replay(format!("{} at {offset}", path.display()));
            flip(&env, &path, offset);
            let (report, missing) = repair(&env);
            let lost: usize = missing.values().sum();
            assert!(report.whole_catalog && report.lost.len() <= 1, "{report:?}");
            assert!(lost == 0 || !report.lost.is_empty(), "{lost} entries are gone without a word");
            // A compressed table of values that are all alike holds some 150.
            assert!(lost < 200, "{lost} entries are gone for one byte");
            listed += report.lost.len();
            cases += 1;
        }
    }
    assert!(listed > cases / 4, "{listed} of {cases}");
}

#[test]
fn a_missing_pack_takes_only_its_own_tables_along() {
    for at in 0..packs(&damaged_by(|_| {})).len() {
        let env = damaged_by(|env| env.remove(&packs(env)[at]).unwrap());
        let (report, missing) = repair(&env);
        assert!(!report.lost.is_empty() && missing.values().any(|&missing| missing < KEYS), "{report:?}");
    }
}

#[test]
fn without_a_manifest_every_table_is_found() {
    let damages: [fn(&SimEnv); 4] = [
        |env| env.remove(&files(env, "CURRENT")[0]).unwrap(),
        |env| flip(env, &files(env, "MANIFEST-")[0], 30),
        |env| env.remove(&files(env, "MANIFEST-")[0]).unwrap(),
        |env| {
            env.remove(&files(env, "MANIFEST-")[0]).unwrap();
            // Nor directories of packs.
            for pack in packs(env) {
                let length = env.read_file(&pack).unwrap().len() as u64;
                flip(env, &pack, length - 1);
            }
        },
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let _replay = Replay(format!("damage {at}"));
        let env = damaged_by(|env| damage(env));
        assert!(env.simulate(|env| open(&env, &tiny()).is_err()));
        let (report, missing) = repair(&env);
        assert!(!report.whole_catalog && !report.lost.is_empty(), "{report:?}");
        assert_eq!(missing, nothing_missing());
        // Preallocated files are no loss.
        assert!(files(&env, ".pack").len() > packs(&env).len() || at == 3);
        let of_pack =
            |error: &Error| error.file().is_some_and(|file| file.extension().is_some_and(|is| is == "pack"));
        assert!(at == 3 || !report.lost.iter().any(of_pack), "{report:?}");
    }
}

/// A manifest of another store would hide tables, or show what was never there.
#[test]
fn a_manifest_of_another_store_counts_for_nothing_and_without_an_identity_the_one_that_is_there_counts() {
    let env = damaged_by(|env| {
        let other = SimEnv::new(SimConfig { seed: 1, ..SimConfig::default() });
        other.simulate(|other| open(&other, &tiny()).unwrap().put("other", "store").unwrap());
        let manifest = &files(&other, "MANIFEST-")[0];
        assert_eq!(&files(env, "MANIFEST-")[0], manifest);
        let bytes = other.read_file(manifest).unwrap();
        env.truncate(manifest, bytes.len() as u64).unwrap();
        env.overwrite(manifest, 0, &bytes).unwrap();
    });
    let (report, missing) = repair(&env);
    assert_eq!(
        (missing, report.lost.len(), report.whole_catalog),
        (nothing_missing(), 1, false),
        "{report:?}"
    );
    assert!(report.lost[0].to_string().contains("IDENTITY"), "{report:?}");

    let env = damaged_by(|env| env.remove(&files(env, "IDENTITY")[0]).unwrap());
    let (report, missing) = repair(&env);
    assert_eq!(
        (missing, report.lost.len(), report.whole_catalog),
        (nothing_missing(), 0, true),
        "{report:?}"
    );
}

/// Tables tell the name of their keyspace; what is in the log alone has none, and no two get the same.
#[test]
fn without_a_manifest_keyspaces_have_the_names_that_their_tables_tell() {
    let machine = SimEnv::new(SimConfig { preemption_percent: 0, ..SimConfig::default() });
    let env = machine.simulate(|env| {
        let db = open(&env, &tiny()).unwrap();
        // What is held is still there when the store is damaged.
        let dropped = db.keyspace("of-two").unwrap();
        dropped.put("key", "of the first").unwrap();
        db.flush().unwrap();
        let held = dropped.iter().unwrap();
        db.drop_keyspace("of-two").unwrap();
        for name in ["of-two", "keyspace-2", "flushed"] {
            db.keyspace(name).unwrap().put("key", name).unwrap();
        }
        db.flush().unwrap();
        db.keyspace("in-the-log").unwrap().put("key", "in the log").unwrap();
        db.sync().unwrap();
        let image = env.crash(Survival::Everything);
        drop(held);
        image
    });
    env.remove(&files(&env, "CURRENT")[0]).unwrap();
    env.remove(&files(&env, "MANIFEST-")[0]).unwrap();
    env.simulate(|env| {
        let report = Db::builder(DIR).env(env.clone()).options(tiny()).repair(TARGET).unwrap();
        assert_eq!(report.entries, 5, "{report:?}");
        let db = open_target(&env).unwrap();
        for (name, value) in [
            ("of-two", "of-two"),
            ("keyspace-2-", "of the first"),
            ("keyspace-2", "keyspace-2"),
            ("flushed", "flushed"),
            ("keyspace-6", "in the log"),
        ] {
            let keyspace = db.existing_keyspace(name).unwrap();
            let keyspace = keyspace.unwrap_or_else(|| panic!("no {name} of {:?}", db.keyspaces()));
            assert_eq!(keyspace.get("key").unwrap().unwrap(), value, "{name}");
        }
    });
}

/// A dead pack stands under the name that it is to be written over by; what it holds was deleted since.
#[test]
fn without_a_manifest_a_pack_that_was_made_ahead_of_a_dead_one_brings_nothing_back() {
    let machine = SimEnv::new(SimConfig { preemption_percent: 0, ..SimConfig::default() });
    let env = machine.simulate(|env| {
        let db = open(&env, &tiny()).unwrap();
        for round in 0.. {
            (0..KEYS).for_each(|n| db.put(key(n), [round; 40]).unwrap());
            (0..KEYS).for_each(|n| db.delete(key(n)).unwrap());
            db.put("last", [round]).unwrap();
            db.compact().unwrap();
            db.wait_idle().unwrap();
            let image = env.crash(Survival::Everything);
            let preallocate = files(&image, ".pack").into_iter().filter(|path| !packs(&image).contains(path));
            if preallocate.into_iter().any(|path| !image.read_file(&path).unwrap().is_empty()) {
                return image;
            }
        }
        unreachable!("no dead pack is made a new one")
    });
    env.remove(&files(&env, "CURRENT")[0]).unwrap();
    env.remove(&files(&env, "MANIFEST-")[0]).unwrap();
    env.simulate(|env| {
        let report = Db::builder(DIR).env(env.clone()).options(tiny()).repair(TARGET).unwrap();
        let db = open_target(&env).unwrap();
        let found: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
        assert_eq!(found, ["last"], "{report:?}");
    });
}

/// A directory that stands in the wrong pack would tell of tables that are not there.
#[test]
fn a_pack_with_the_directory_of_another_is_told_of_and_searched() {
    let env = damaged_by(|env| {
        env.remove(&files(env, "CURRENT")[0]).unwrap();
        let packs = packs(env);
        let ends = [&packs[0], &packs[1]].map(|path| env.read_file(path).unwrap());
        let directory = |bytes: &[u8]| {
            let length = u32::from_le_bytes(bytes[bytes.len() - 12..][..4].try_into().unwrap());
            bytes[bytes.len() - length as usize..].to_vec()
        };
        let length = env.read_file(&packs[1]).unwrap().len() as u64 - directory(&ends[1]).len() as u64;
        env.truncate(&packs[1], length).unwrap();
        env.overwrite(&packs[1], length, &directory(&ends[0])).unwrap();
    });
    let (report, missing) = repair(&env);
    assert_eq!(missing, nothing_missing());
    let told = report.lost.iter().any(|error| error.to_string().contains("directory is that of pack"));
    assert!(told, "{report:?}");
}

#[test]
fn damage_in_the_log_costs_the_batches_that_it_touches() {
    let whole = damaged_by(|_| {});
    for segment in files(&whole, ".wal") {
        let length = whole.read_file(&segment).unwrap().len() as u64;
        for part in 1..8 {
            let offset = length * part / 8;
            let env = damaged_by(|env| flip(env, &segment, offset));
            let _replay = Replay(format!("{} at {offset}", segment.display()));
            let (report, missing) = repair(&env);
            let lost: usize = missing.values().sum();
            assert!(lost <= 2, "{lost} entries of one batch, {report:?}");
            assert!(lost == 0 || report.lost.len() == 1, "{report:?}");
        }
    }
}

/// Repairs `env` with whatever is to go wrong. What there is of a new store is right, and the old store is as it was.
fn repair_with_trouble(env: &Arc<SimEnv>) -> terrace::Result<RepairReport> {
    let before = contents(env);
    let result = env.simulate(|env| Db::builder(DIR).env(env.clone()).options(tiny()).repair(TARGET));
    env.clear_faults();
    let after = env.crash(if result.is_ok() { Survival::Nothing } else { Survival::Everything });
    let whole = result.as_ref().is_ok_and(|report| report.lost.is_empty());
    after.simulate(move |env| match open_target(&env) {
        Ok(db) => {
            let missing = missing_from(&db);
            assert!(!whole || missing == nothing_missing(), "{missing:?}");
        }
        Err(error) => assert!(!whole, "{error:?}"),
    });
    assert!(contents(&after) == before, "the old store has changed");
    result
}

#[test]
fn a_repair_that_fails_or_is_cut_off_at_any_call_makes_nothing_up() {
    let cases = schedules(20, 60);
    let whole = damaged_by(|_| {});
    repair_with_trouble(&whole).unwrap();
    let (calls, mutations) = (whole.calls(), whole.mutations());
    let mut failed = 0;
    for case in 0..cases {
        let (error, sticky) =
            (if case % 2 == 0 { FaultError::Io } else { FaultError::NoSpace }, case % 3 == 0);
        let target = FaultTarget::Call(case * calls / cases);
        let rule = FaultRule { target, error, sticky, partial: case % 4 < 2 };
        let _replay = Replay(format!("{rule:?}"));
        let env = damaged_by(|env| env.fault(rule.clone()));
        match repair_with_trouble(&env) {
            Ok(report) => assert!(report.lost.iter().all(|error| error.file().is_some()), "{report:?}"),
            Err(error) => {
                let expected =
                    matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::Poisoned);
                assert!(expected && error.file().is_some(), "{error:?}");
                failed += 1;
            }
        }
    }
    assert!(failed > cases / 3, "{failed} of {cases}");
    for case in 0..cases {
        let cut = case * mutations / cases;
        let _replay = Replay(format!("cut at {cut}"));
        let env = damaged_by(|env| env.cut_after(cut));
        assert!(repair_with_trouble(&env).is_err());
    }
}

#[test]
fn what_is_no_store_or_in_use_is_refused() {
    SimEnv::run(SimConfig::default(), |env| {
        env.create_dir(Path::new("/empty")).unwrap();
        for none in ["/empty", "/nowhere"] {
            let error = Db::builder(none).env(env.clone()).repair(TARGET).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        let db = open(&env, &tiny()).unwrap();
        let repair = || Db::builder(DIR).env(env.clone()).repair(TARGET).map(drop);
        assert_eq!(repair().unwrap_err().kind(), ErrorKind::Busy);
        db.close().unwrap();
        repair().unwrap();
    });
}
