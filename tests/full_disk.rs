//! Tests of a full disk: reported clearly, survived without reopening, and recovered from by deletes.
//!
//! A sample of the suite `disk-full` of `crates/torture`, whose header describes it, tries every size of a device.
//! Here are also the ways out of a full disk, one by one.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::sync::Arc;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use terrace::env::{Access, Env};
use terrace::{Db, ErrorKind, Options, RepairReport, Stats};
use terrace_torture::TreeParts as _;
use terrace_torture::client::{DIR, open};
use terrace_torture::full_disk::{
    FullDisk, KEYS, PAGE_BYTES, PLENTY_BYTES, check_contents, check_full, key, limit, value, with_reserve,
};
use terrace_torture::runner::pass_sample;
use terrace_torture::volume::{Kind, Volume};
use terrace_torture::{sealed_packs, tiny};

#[test]
fn a_disk_that_fills_up_at_any_write_refuses_and_goes_on_with_space() {
    static SIMULATED: FullDisk = FullDisk { volumes: false };
    pass_sample(&SIMULATED, 0);
}

/// One of its packs is written, the next one finds no room: both go, and the compaction is done again where there is some.
#[test]
fn a_compaction_that_fills_the_disk_in_its_midst_is_done_again_with_space() {
    let options = || {
        let mut options = Options { memtable_bytes: 8 << 20, wal_bytes_max: 64 << 20, ..tiny() };
        (options.memory_bytes, *options.tree.l0_trigger()) = (Some(64 << 20), 4);
        options
    };
    let there: Vec<usize> = (0..10_000).collect();
    let machine = SimEnv::new(SimConfig { preemption_percent: 0, ..SimConfig::default() });
    let expected = there.clone();
    machine.simulate(move |env| {
        let db = open(&env, &options()).unwrap();
        for half in [0, 1] {
            there.iter().skip(half).step_by(2).for_each(|&n| db.put(key(n), value(n)).unwrap());
            db.flush().unwrap();
        }
        db.wait_idle().unwrap();
        let packs = sealed_packs(&env);
        limit(&env, (1 << 20) + (1 << 19));
        check_full(&db.compact().unwrap_err());
        let Stats { compaction, written, .. } = db.stats();
        assert!(compaction.jobs == 0 && written.compaction >= 1 << 20, "{compaction:?}, {written:?}");
        assert_eq!(sealed_packs(&env), packs, "its outputs are gone, its inputs are not");
        check_contents(&db, &there, "after a compaction that failed");
        db.put(key(there.len()), value(there.len())).unwrap();
        db.delete(key(there.len())).unwrap();
        env.set_space(Path::new(DIR), PLENTY_BYTES);
        db.compact().unwrap();
        assert!(db.stats().compaction.jobs > 0);
        check_contents(&db, &there, "with space again");
        assert!(db.verify().unwrap().problems.is_empty());
        db.sync().unwrap();
    });
    machine.crash(Survival::Nothing).simulate(move |env| {
        check_contents(&open(&env, &options()).unwrap(), &expected, "after a power cut");
    });
}

/// The outcome of an edit that found the disk full is known: it is cut off.
#[test]
fn a_manifest_that_finds_the_disk_full_refuses_and_goes_on() {
    for (partial, survival) in
        [(false, Survival::Nothing), (true, Survival::Nothing), (true, Survival::Everything)]
    {
        let machine = SimEnv::new(SimConfig::default());
        machine.simulate(move |env| {
            let db = open(&env, &tiny()).unwrap();
            db.put("key", "value").unwrap();
            let files = env.files();
            let manifest =
                files.iter().find(|(path, _)| path.to_string_lossy().contains("MANIFEST-")).unwrap();
            let path_suffix = manifest.0.file_name().unwrap().to_str().unwrap().to_owned();
            let target = FaultTarget::Matching { operation: Operation::WriteAt, path_suffix, skipped: 0 };
            env.fault(FaultRule { target, error: FaultError::NoSpace, sticky: false, partial });
            check_full(&db.keyspace("refused").unwrap_err());
            assert_eq!(env.faults_fired(), 1);
            let reopened = open(&env.crash(survival), &tiny()).unwrap();
            assert_eq!(reopened.keyspaces(), ["default"]);
            drop(reopened);

            db.keyspace("other").unwrap();
            db.flush().unwrap();
            let reopened = open(&env.crash(survival), &tiny()).unwrap();
            assert_eq!(reopened.keyspaces(), ["default", "other"]);
            assert_eq!(reopened.get("key").unwrap().unwrap(), "value");
        });
    }
}

/// A store that has filled its device, but for its reserve, and what it holds.
fn filled(env: &Arc<SimEnv>, options: &Options) -> (Db, Vec<usize>) {
    let db = open(env, options).unwrap();
    limit(env, 3 << 20);
    let mut there = Vec::new();
    for n in 0.. {
        match db.put(key(n), value(n)) {
            Ok(()) => there.push(n),
            Err(error) => {
                check_full(&error);
                return (db, there);
            }
        }
    }
    unreachable!("the device never fills up")
}

/// Recycled files are no reason to refuse a write.
#[test]
fn a_disk_is_full_only_when_no_recycled_file_is_left() {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    SimEnv::run(config, |env| {
        let bytes = |env: &SimEnv, kinds: &[&str]| -> u64 {
            let is_meant =
                |path: &Path| path.extension().is_some_and(|is| kinds.iter().any(|kind| is == *kind));
            env.files().iter().filter(|(path, _)| is_meant(path)).map(|(_, length)| length).sum()
        };
        let recycled = |env: &SimEnv| bytes(env, &["recycled"]);
        let options = Options { memtable_bytes: 256 << 10, wal_bytes_max: 4 << 20, ..tiny() };
        let db = open(&env, &options).unwrap();
        let mut there: Vec<usize> = Vec::new();
        for n in 0.. {
            if n % 100 == 0 {
                db.wait_idle().unwrap();
                if recycled(&env) > 300_000 {
                    break;
                }
            }
            db.put(key(n), value(n)).unwrap();
            there.push(n);
        }
        let space = db.stats().space;
        assert_eq!(space.data_ranges, space.pack_files, "nothing is punched, so lengths tell");
        assert_eq!(space.total_bytes, space.wal_bytes + bytes(&env, &["pack", "recycled"]));
        assert!(db.verify().unwrap().problems.is_empty());
        limit(&env, 0);
        let error = (there.len()..).find_map(|n| db.put(key(n), value(n)).map(|()| there.push(n)).err());
        check_full(&error.unwrap());
        assert_eq!(recycled(&env), 0);
        let space = db.stats().space;
        assert_eq!(space.total_bytes, space.live_bytes + space.dead_bytes + space.wal_bytes, "no pack ahead");
        check_contents(&db, &there, "on a full disk");
    });
}

/// Whether a page of a pack is all zeros: nothing else than a hole is.
fn has_holes(env: &SimEnv) -> bool {
    env.files().iter().filter(|(path, _)| path.extension().is_some_and(|is| is == "pack")).any(
        |(path, length)| {
            let mut bytes = vec![0; usize::try_from(*length).unwrap()];
            env.open(path, Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
            bytes.chunks_exact(PAGE_BYTES as usize).any(|page| page.iter().all(|byte| *byte == 0))
        },
    )
}

fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy().contains("MANIFEST-")
}

fn repair(env: &Arc<SimEnv>) -> RepairReport {
    Db::builder(DIR).env(env.clone()).options(tiny()).repair("/repaired").unwrap()
}

/// Packs live on for one table among many; the others' space is not lost.
#[test]
fn a_full_disk_gets_the_space_of_dead_tables_in_living_packs() {
    for read_beside in [false, true] {
        let machine = SimEnv::new(SimConfig { preemption_percent: 0, ..SimConfig::default() });
        let there = machine.simulate(move |env| {
            let db = open(&env, &tiny()).unwrap();
            // Each round rewrites the packs of the rounds before in part.
            let mut there: Vec<usize> = (0..4 * KEYS).collect();
            for round in 0..4 {
                there.iter().skip(round).step_by(round + 1).for_each(|&n| db.put(key(n), value(n)).unwrap());
                db.wait_idle().unwrap();
            }
            let reader = read_beside
                .then(|| Db::builder(DIR).env(env.clone()).options(tiny()).read_only().open().unwrap());
            let before = there.clone();
            assert!(db.stats().space.dead_bytes > 0);
            limit(&env, 0);
            let error = (there.len()..).find_map(|n| db.put(key(n), value(n)).map(|()| there.push(n)).err());
            check_full(&error.unwrap());
            // Nothing is punched that the reader may read.
            assert!(if read_beside { db.stats().space.kept_bytes > 0 } else { has_holes(&env) });
            if let Some(reader) = reader {
                check_contents(&reader, &before, "in a reader beside the full store");
            }
            check_contents(&db, &there, "on a full disk");
            db.sync().unwrap();
            assert!(db.verify().unwrap().problems.is_empty());
            there
        });
        for survival in [Survival::Nothing, Survival::Everything] {
            let there = there.clone();
            machine.crash(survival).simulate(move |env| {
                env.set_space(Path::new(DIR), PLENTY_BYTES);
                check_contents(&open(&env, &tiny()).unwrap(), &there, "after a power cut");
                // Without its manifest, a repair tells the holes from damage.
                let files = env.files();
                let manifests = files.iter().map(|(path, _)| path).filter(|path| is_manifest(path));
                manifests.for_each(|manifest| env.remove(manifest).unwrap());
                let report = repair(&env);
                assert!(report.zeroed_tables > 0 || read_beside);
                assert!(report.lost.iter().all(|lost| lost.file().is_none_or(is_manifest)), "{report:?}");
            });
        }
    }
}

#[test]
fn on_a_full_disk_deletes_free_the_space_that_puts_need() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, there) = filled(&env, &with_reserve());
        check_full(&db.put("more", value(0)).unwrap_err());
        let (deleted, kept) = there.split_at(there.len() * 3 / 4);
        for &n in deleted {
            db.delete(key(n)).unwrap();
        }
        db.compact().unwrap();
        check_contents(&db, kept, "after deleting");
        for &n in &deleted[..100] {
            db.put(key(n), value(n)).unwrap();
        }
        let reserve = Path::new(DIR).join("RESERVE");
        assert!(env.files().contains(&(reserve, 1 << 20)), "the reserve is back");
        db.close().unwrap();
    });
}

/// What deletes cannot free yet must not take what the compactions need that free it later.
#[test]
fn deletes_leave_jobs_their_part_of_the_reserve() {
    let config = SimConfig { preemption_percent: 30, ..SimConfig::default() };
    SimEnv::run(config, |env| {
        let mut options = Options { memtable_bytes: 128 << 10, wal_bytes_max: 2 << 20, ..with_reserve() };
        options.tree.tables().table_bytes = 32 << 10;
        let db = open(&env, &options).unwrap();
        limit(&env, 3 << 20);
        let long = |n: usize| format!("{n:0300}");
        let count = (0..).find(|&n| db.put(long(n), "value").is_err()).unwrap();
        let snapshot = db.snapshot();
        // The next one may find what a job has freed meanwhile.
        let refused = (0..count).find_map(|n| Some((n, db.delete(long(n)).err()?)));
        let (deleted, error) = refused.expect("what is kept takes no space");
        check_full(&error);
        assert!(deleted > 1000, "{deleted}");
        drop(snapshot);
        db.compact().unwrap();
        (deleted..count).for_each(|n| db.delete(long(n)).unwrap());
        db.compact().unwrap();
        assert_eq!(db.iter().unwrap().count(), 0);
        db.put(key(0), value(0)).unwrap();
    });
}

#[test]
fn a_full_disk_opens_by_its_reserve() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &with_reserve()).unwrap();
        let there: Vec<usize> = (0..KEYS).collect();
        there.iter().for_each(|&n| db.put(key(n), value(n)).unwrap());
        db.close().unwrap();
        limit(&env, 0);
        let db = open(&env, &with_reserve()).unwrap();
        check_contents(&db, &there, "after opening on a full disk");
        check_full(&db.put("more", value(0)).unwrap_err());
        env.set_space(Path::new(DIR), PLENTY_BYTES);
        db.put("more", value(0)).unwrap();
    });
}

#[test]
fn what_keeps_the_reserve_from_being_made_again_is_told() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, there) = filled(&env, &with_reserve());
        check_full(&db.put("more", value(0)).unwrap_err());
        env.set_space(Path::new(DIR), PLENTY_BYTES);
        let target = FaultTarget::Matching {
            operation: Operation::WriteAt,
            path_suffix: "RESERVE".to_owned(),
            skipped: 0,
        };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
        let error = db.put("more", value(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("RESERVE"), "{error}");
        db.put("more", value(0)).unwrap();
        db.delete("more").unwrap();
        check_contents(&db, &there, "with space again");
    });
}

#[test]
fn a_volume_of_the_operating_system_fills_up_and_recovers() {
    let Some(volume) = Volume::mount(Kind::Tmpfs, 4 << 20) else {
        eprintln!("SKIPPED: only root can mount the small volume that this test fills");
        return;
    };
    volume.fill_up_and_recover(0, &with_reserve());
}
