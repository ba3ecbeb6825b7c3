//! Tests of dead tables in live packs: when their space is freed, how fast, and that readers do not notice.
//!
//! Every test makes sure that holes were really punched, or really were not. Values are so long, and packs so large,
//! that whole ranges of tables die. The machine is simulated, and so is its time.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrace::env::recording::RecordingEnv;
use terrace::env::simulated::{
    FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::{Access, Env, File};
use terrace::tree::PackLayout;
use terrace::{Db, Options, PunchStats, Stats};
use terrace_torture::TreeParts as _;
use terrace_torture::client::{DIR, open};
use terrace_torture::holders::{Held, KEYS, Model, check, key, verified};
use terrace_torture::large_packs::{options, put, value};
use terrace_torture::{Replay, Rng, schedules, sealed_packs as packs, seed_or};

use crate::common::eventually;

/// Longer than the longest pause before a blocked pack is tried again.
const LONG: Duration = Duration::from_secs(200);

fn machine(seed: u64, journal: Journal) -> Arc<SimEnv> {
    SimEnv::new(SimConfig { seed, journal, ..SimConfig::default() })
}

/// A store of which a fifth dies in one stretch of a pack that lives on. Whether that has been punched is the caller's
/// business.
fn with_a_dead_fifth(db: &Db) -> Model {
    let mut model = Model::new();
    put(db, &mut model, 0..KEYS, 0);
    db.compact().unwrap();
    put(db, &mut model, 60..100, 1);
    db.compact().unwrap();
    db.wait_idle().unwrap();
    model
}

fn fault(operation: Operation, error: FaultError, sticky: bool) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: ".pack".into(), skipped: 0 };
    FaultRule { target, error, sticky, partial: false }
}

#[test]
fn what_is_dead_is_punched_in_one_piece_and_without_a_barrier() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        let model = with_a_dead_fifth(&db);
        env.sleep(Duration::from_secs(1));
        let Stats { punch, space, syncs, .. } = db.stats();
        assert_eq!((punch.punches, punch.failures, syncs.reclaim), (1, 0, 0), "{punch:?}");
        assert!(punch.bytes >= 40 * 4000, "{punch:?}");
        // The padding of tables remains.
        assert!(space.dead_bytes < 120 << 10, "{space:?}");
        assert_eq!((space.data_ranges, space.data_ranges_max), (space.pack_files + 1, 2));
        let report = verified(&db);
        assert_eq!((report.hole_bytes, report.zero_bytes), (punch.bytes, 0));
        check(db.iter().unwrap(), &model, "beside a hole");
    });
}

/// Rewrites stretches of keys while others hold on to what was there before. Punches, moves, and bytes of holes at the end.
fn torture(env: &Arc<SimEnv>, seed: u64) -> (u64, u64, u64) {
    let mut rng = Rng::new(seed);
    // Small levels in half of the runs, so that groups of tables are compacted, and sink, by themselves.
    let tree = options()
        .tree
        .with(|tree| *tree.level1_bytes() = if seed.is_multiple_of(2) { 128 << 10 } else { 64 << 20 });
    let options = Options { tree, ..options() };
    let db = open(env, &options).unwrap();
    let space = db.keyspace("default").unwrap();
    let (mut model, mut held) = (Model::new(), Vec::new());
    put(&db, &mut model, 0..KEYS, 0);
    db.compact().unwrap();
    for round in 1..28 {
        let from = rng.below(KEYS - 45);
        let keys = from..from + 20 + rng.below(25);
        if rng.below(5) == 0 {
            db.delete_range(key(keys.start)..key(keys.end)).unwrap();
            model.retain(|name, _| *name < key(keys.start) || *name >= key(keys.end));
        } else {
            put(&db, &mut model, keys.clone(), round);
        }
        match rng.below(4) {
            0 => db.flush().unwrap(),
            1 => space.compact_range(key(keys.start)..key(keys.end)).unwrap(),
            _ => db.compact().unwrap(),
        }
        if rng.below(3) > 0 {
            held.push(Held::take(&db, env, &model, &mut rng, round));
        }
        held.iter_mut().for_each(|holder| holder.read_on(&mut rng));
        env.sleep(Duration::from_millis(rng.below(300) as u64));
        held.iter_mut().for_each(|holder| holder.read_on(&mut rng));
        if held.len() > 5 {
            held.swap_remove(rng.below(5)).read_all(env);
        }
        if round % 9 == 0 {
            verified(&db);
        }
    }
    check(db.iter().unwrap(), &model, "at the end");
    held.into_iter().for_each(|holder| holder.read_all(env));
    env.sleep(LONG);
    let holes = verified(&db).hole_bytes;
    check(db.iter().unwrap(), &model, "after the last holder");
    let Stats { punch, compaction, syncs, .. } = db.stats();
    assert_eq!((punch.failures, syncs.reclaim), (0, 0));
    (punch.punches, compaction.moves, holes)
}

#[test]
fn i8_whoever_holds_on_to_a_table_reads_it_whatever_is_punched() {
    let first = seed_or(0);
    let (mut all_moves, mut all_holes) = (0, 0);
    for seed in first..first + schedules(3, 8) {
        let _replay = Replay(format!("TERRACE_SEED={seed}"));
        let config = SimConfig { seed, preemption_percent: 50, ..SimConfig::default() };
        let (punches, moves, holes) = SimEnv::run(config, move |env| torture(&env, seed));
        assert!(punches >= 3, "only {punches} holes were punched");
        (all_moves, all_holes) = (all_moves + moves, all_holes + holes);
    }
    assert!(all_moves > 0 && all_holes > 0, "{all_moves} moves, {all_holes} bytes of holes");
}

#[test]
fn a_power_cut_takes_holes_back_or_not_and_changes_nothing_else() {
    for journal in [Journal::None, Journal::Ext4Like] {
        let machine = machine(1, journal);
        let (model, holes) = machine.simulate(|env| {
            let db = open(&env, &options()).unwrap();
            let model = with_a_dead_fifth(&db);
            db.sync().unwrap();
            env.sleep(Duration::from_secs(1));
            let stats = db.stats();
            assert!(stats.punch.punches > 0 && stats.syncs.reclaim == 0);
            (model, verified(&db).hole_bytes)
        });
        let mut found = Vec::new();
        let survivals = [Survival::Nothing, Survival::Everything].into_iter();
        for survival in survivals.chain((0..8).map(Survival::Random)) {
            let model = model.clone();
            found.push(machine.crash(survival).simulate(move |env| {
                let db = open(&env, &options()).unwrap();
                let left = verified(&db).hole_bytes;
                check(db.iter().unwrap(), &model, "after a power cut");
                env.sleep(Duration::from_secs(1));
                let again = db.stats().punch;
                // What has come back is found and punched, and nothing else.
                assert_eq!(again.bytes, if left == 0 { holes } else { 0 }, "{again:?}");
                assert_eq!(verified(&db).hole_bytes, holes);
                check(db.iter().unwrap(), &model, "after punching again");
                left
            }));
        }
        if journal == Journal::None {
            assert_eq!(found[..2], [0, holes], "nothing survives, everything does");
        }
        assert!(found.iter().all(|left| [0, holes].contains(left)), "{found:?}");
    }
}

#[test]
fn what_is_a_hole_already_is_neither_counted_nor_punched_when_the_store_is_opened_again() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        let model = with_a_dead_fifth(&db);
        env.sleep(Duration::from_secs(1));
        let before = db.stats();
        assert!(before.punch.punches > 0);
        db.close().unwrap();
        env.fault(fault(Operation::Punch, FaultError::Io, true));
        for _ in 0..3 {
            let db = open(&env, &options()).unwrap();
            env.sleep(LONG);
            let stats = db.stats();
            let packs =
                |stats: &Stats| (stats.space.live_bytes, stats.space.dead_bytes, stats.space.data_ranges);
            assert_eq!(packs(&stats), packs(&before));
            assert_eq!((env.faults_fired(), stats.punch.punches, stats.syncs.reclaim), (0, 0, 0));
            check(db.iter().unwrap(), &model, "after opening again");
            db.close().unwrap();
        }
    });
}

#[test]
fn a_file_system_that_does_not_tell_holes_costs_a_punch_at_open_and_no_alarm() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        with_a_dead_fifth(&db);
        env.sleep(Duration::from_secs(1));
        let holes = db.stats().punch.bytes;
        db.close().unwrap();
        env.fault(fault(Operation::NextData, FaultError::Unsupported, true));
        let db = open(&env, &options()).unwrap();
        env.sleep(Duration::from_secs(1));
        assert_eq!(db.stats().punch.bytes, holes);
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!((report.hole_unknown_packs, report.hole_bytes), (report.packs, 0));
    });
}

/// What a backup by hard links holds is the store's own file.
#[test]
fn a_pack_with_another_name_is_neither_punched_nor_written_over() {
    SimEnv::run(SimConfig::default(), |env| {
        env.create_dir(Path::new("/backup")).unwrap();
        let db = open(&env, &options()).unwrap();
        let mut model = Model::new();
        // So few that several dead packs of them may be kept.
        put(&db, &mut model, 0..100, 0);
        db.compact().unwrap();
        let backup = |path: &Path| Path::new("/backup").join(path.file_name().unwrap());
        let linked: Vec<_> = packs(&env).into_iter().map(|pack| (backup(&pack), pack)).collect();
        linked.iter().for_each(|(copy, pack)| env.link(pack, copy).unwrap());
        let contents: Vec<_> = linked.iter().map(|(copy, _)| env.read_file(copy).unwrap()).collect();
        put(&db, &mut model, 40..70, 1);
        db.compact().unwrap();
        env.sleep(LONG);
        let stats = db.stats();
        assert_eq!((stats.punch.punches, stats.punch.failures), (0, 0));
        assert!(stats.space.kept_bytes >= 30 * 4000, "{:?}", stats.space);
        // The packs die as a whole, so that they would become recycled files.
        db.delete_range(key(0)..key(KEYS)).unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        put(&db, &mut model, 0..100, 2);
        db.compact().unwrap();
        assert!(linked.iter().all(|(_, pack)| !packs(&env).contains(pack)));
        for ((copy, _), contents) in linked.iter().zip(&contents) {
            assert!(env.read_file(copy).unwrap() == *contents, "the backup has changed");
        }
        check(db.iter().unwrap(), &model, "beside a backup");
    });
}

#[test]
fn a_pack_is_punched_once_its_other_name_is_gone() {
    SimEnv::run(SimConfig::default(), |env| {
        env.create_dir(Path::new("/backup")).unwrap();
        let db = open(&env, &options()).unwrap();
        let mut model = Model::new();
        put(&db, &mut model, 0..KEYS, 0);
        db.compact().unwrap();
        let copy = Path::new("/backup/copy");
        packs(&env).iter().for_each(|pack| env.link(pack, copy).unwrap());
        put(&db, &mut model, 60..100, 1);
        db.compact().unwrap();
        env.sleep(Duration::from_secs(1));
        assert_eq!(db.stats().punch.punches, 0);
        env.remove(copy).unwrap();
        env.sleep(LONG);
        let stats = db.stats();
        assert!(stats.punch.punches > 0 && stats.space.kept_bytes == 0, "{stats:?}");
        check(db.iter().unwrap(), &model, "after the hole");
        verified(&db);
    });
}

#[test]
fn a_file_system_without_holes_is_asked_once() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        env.fault(fault(Operation::Punch, FaultError::Unsupported, true));
        let mut model = with_a_dead_fifth(&db);
        env.sleep(LONG);
        for round in 2..5 {
            put(&db, &mut model, 20 * round..20 * round + 40, round);
            db.compact().unwrap();
            env.sleep(Duration::from_secs(1));
        }
        let stats = db.stats();
        assert!(stats.punch.unsupported && stats.space.dead_bytes >= 40 * 4000, "{stats:?}");
        assert_eq!((env.faults_fired(), stats.punch.punches, stats.punch.failures), (1, 0, 0));
        // Who needs space hears so at once.
        env.set_space(Path::new(DIR), env.used_bytes(Path::new(DIR)));
        let refused = (0..2000).find_map(|n| db.put(format!("more {n}"), value(n, 0)).err());
        assert_eq!(refused.unwrap().kind(), terrace::ErrorKind::DiskFull);
        assert_eq!(env.faults_fired(), 1);
    });
}

#[test]
fn a_punch_that_fails_is_done_again_and_poisons_nothing() {
    for (operation, error) in [
        (Operation::Punch, FaultError::Io),
        (Operation::Punch, FaultError::NoSpace),
        (Operation::Links, FaultError::Io),
        (Operation::Open, FaultError::TooManyFiles),
    ] {
        SimEnv::run(SimConfig::default(), move |env| {
            let db = open(&env, &options()).unwrap();
            let mut model = Model::new();
            put(&db, &mut model, 0..KEYS, 0);
            db.compact().unwrap();
            put(&db, &mut model, 60..100, 1);
            // Held, so that nothing is punched before the fault is there.
            let iter = db.iter().unwrap();
            db.compact().unwrap();
            env.fault(fault(operation, error, false));
            drop(iter);
            env.sleep(Duration::from_millis(500));
            let failed = db.stats();
            assert_eq!((failed.punch.punches, failed.punch.failures), (0, 1), "{operation:?}");
            assert!(failed.space.kept_bytes >= 40 * 4000);
            env.sleep(Duration::from_secs(3));
            let stats = db.stats();
            assert_eq!((stats.punch.failures, stats.space.kept_bytes), (1, 0), "{operation:?}");
            assert!(stats.punch.punches > 0);
            put(&db, &mut model, 0..10, 2);
            db.flush().unwrap();
            check(db.iter().unwrap(), &model, "after a failed punch");
            verified(&db);
        });
    }
}

/// Where space is promised at once, holes are synced; and a file of which that fails is never synced again, though it is
/// opened again for each punch.
#[test]
fn a_sync_of_holes_that_fails_is_not_repeated() {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    for fails in [false, true] {
        SimEnv::run(config, move |env| {
            let record = RecordingEnv::new(env.clone());
            let db = Db::builder(DIR).env(record.clone()).options(options()).open().unwrap();
            let mut model = Model::new();
            put(&db, &mut model, 0..KEYS, 0);
            db.compact().unwrap();
            // Single tables die, far from each other.
            for n in [10, 50, 90, 130, 170] {
                put(&db, &mut model, n..n + 1, 1);
                db.compact().unwrap();
            }
            db.wait_idle().unwrap();
            env.sleep(Duration::from_secs(1));
            assert_eq!(db.stats().punch.punches, 0, "what is small waits");
            let oldest = packs(&env)[0].file_name().unwrap().to_str().unwrap().to_owned();
            if fails {
                env.fault(fault(Operation::Sync, FaultError::Io, false));
            }
            let _ = record.take();
            let space = db.stats().space;
            let used = space.live_bytes + space.dead_bytes + space.wal_bytes;
            db.set_options(|options| options.space_bytes = Some(used / 4 * 5)).unwrap();
            // At least one of these needs space. All belong to one more table.
            for n in 0..6 {
                let _ = db.put(format!("00030 {n}"), value(n, 0));
            }
            assert_eq!(db.stats().punch.failures, u64::from(fails));
            // The end of a job keeps to the budget, too.
            put(&db, &mut model, 30..31, 2);
            db.compact().unwrap();
            put(&db, &mut model, 30..31, 3);
            db.flush().unwrap();
            db.wait_idle().unwrap();
            let calls = record.take();
            let count = |start: String| calls.lines().filter(|line| line.starts_with(&start)).count();
            assert!(count(format!("punch {oldest} ")) >= 6, "{calls}");
            let syncs = count(format!("sync {oldest}"));
            assert!(if fails { syncs == 1 } else { syncs > 1 }, "{syncs} syncs: {calls}");
            let stats = db.stats();
            assert_eq!(stats.punch.failures, u64::from(fails));
            assert_eq!(stats.syncs.reclaim == 0, fails);
            db.delete("00030 0").unwrap();
            verified(&db);
        });
    }
}

/// A store of two thousand entries in one large pack.
fn in_one_pack(env: &Arc<SimEnv>) -> (Db, Model) {
    let tree = options().tree.with(|tree| tree.files.packs = PackLayout::Many { bytes_max: 32 << 20 });
    // All of them in one flush.
    let (memtable_bytes, memory_bytes) = (16 << 20, Some(128 << 20));
    let db = open(env, &Options { tree, memtable_bytes, memory_bytes, ..options() }).unwrap();
    let mut model = Model::new();
    put(&db, &mut model, 0..2000, 0);
    db.compact().unwrap();
    assert_eq!(db.stats().space.pack_files, 1);
    (db, model)
}

/// The writer holds its lock meanwhile.
#[test]
fn a_writer_that_needs_space_waits_for_as_much_as_it_needs() {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    SimEnv::run(config, |env| {
        let (db, mut model) = in_one_pack(&env);
        // Single tables die, two megabytes of them.
        for n in (10..2000).step_by(40) {
            put(&db, &mut model, n..n + 1, 1);
            db.compact().unwrap();
        }
        let Stats { space, punch, .. } = db.stats();
        assert!(space.dead_bytes > 2 << 20 && punch.punches == 0, "{space:?}, {punch:?}");
        let used = space.live_bytes + space.dead_bytes + space.wal_bytes;
        db.set_options(|options| options.space_bytes = Some(used / 4 * 5)).unwrap();
        put(&db, &mut model, 0..1, 2);
        let Stats { punch, syncs, .. } = db.stats();
        assert!(((1 << 20)..(1 << 20) + (64 << 10)).contains(&punch.bytes), "{punch:?}");
        assert_eq!(syncs.reclaim, 1);
        check(db.iter().unwrap(), &model, "within the budget");
        verified(&db);
    });
}

/// A hole that no sync has followed is not yet space that is promised.
#[test]
fn holes_punched_at_leisure_are_synced_before_a_write_is_refused() {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    SimEnv::run(config, |env| {
        let db = open(&env, &options()).unwrap();
        with_a_dead_fifth(&db);
        env.sleep(Duration::from_secs(1));
        let Stats { punch, syncs, .. } = db.stats();
        assert_eq!((punch.punches, syncs.reclaim), (1, 0), "{punch:?}");
        db.set_options(|options| options.space_bytes = Some(1 << 20)).unwrap();
        for n in 0..3 {
            let refused = db.put(format!("more {n}"), vec![7; 400_000]).unwrap_err();
            assert_eq!(refused.kind(), terrace::ErrorKind::OverBudget);
        }
        let Stats { punch: again, syncs, .. } = db.stats();
        // What is dead beside the hole, if anything, is in other packs.
        assert!((1..=1 + again.punches - punch.punches).contains(&syncs.reclaim), "{syncs:?}, {again:?}");
        verified(&db);
    });
}

/// Much dies at once: whole packs go first, the rest is punched in turns, with a pause between, and only until no more than
/// a 32nd part is dead.
#[test]
fn a_burst_of_death_is_punched_in_turns() {
    let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
    SimEnv::run(config, |env| {
        let (db, mut model) = in_one_pack(&env);
        let iter = db.iter().unwrap();
        for from in (0..2000).step_by(50) {
            put(&db, &mut model, from..from + 24, 1);
            db.compact().unwrap();
        }
        // One of the packs that took the place dies as a whole.
        let second = db.iter().unwrap();
        put(&db, &mut model, 0..24, 2);
        db.compact().unwrap();
        assert_eq!(db.stats().punch.punches, 0, "iterators hold all of it");
        let before = packs(&env).len();
        drop((iter, second));
        env.sleep(Duration::from_millis(5));
        assert!(packs(&env).len() < before && db.stats().punch.punches == 0, "whole packs go first");
        env.sleep(Duration::from_millis(30));
        let first = db.stats().punch.punches;
        assert!((1..=4).contains(&first), "{first} in the first turn");
        env.sleep(Duration::from_secs(10));
        let stats = db.stats();
        assert!(stats.punch.punches > first, "{first} in all");
        // Beside the padding of tables, which may come to as much again.
        let (dead, live) = (stats.space.dead_bytes, stats.space.live_bytes);
        assert!(dead > live / 12 && dead < live / 4, "no more than needed: {:?}", stats.space);
        check(db.iter().unwrap(), &model, "between holes");
        verified(&db);
    });
}

#[test]
fn holes_in_files_of_the_operating_system_are_punched_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Db::builder(dir.path()).options(options()).open().unwrap();
    let db = open();
    let model = with_a_dead_fifth(&db);
    let is_decided = |punch: PunchStats| punch != PunchStats::default();
    assert!(eventually(|| is_decided(db.stats().punch)), "{:?}", db.stats());
    let punch = db.stats().punch;
    if punch.unsupported {
        eprintln!("SKIPPED: the file system of {} knows no holes", dir.path().display());
        return;
    }
    // In one piece, unless the thread came between two jobs of which each has let some of it die.
    assert!(punch.punches > 0 && punch.failures == 0, "{punch:?}");
    check(db.iter().unwrap(), &model, "beside a hole");
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let left = db.stats().space.dead_bytes;
    db.close().unwrap();
    if report.hole_unknown_packs == 0 {
        assert!(report.hole_bytes >= punch.bytes, "{report:?}");
        let db = open();
        // What was a hole is neither dead nor punched again.
        let is_found = |stats: Stats| stats.space.dead_bytes + stats.punch.bytes <= left + (16 << 10);
        assert!(eventually(|| is_found(db.stats())), "{left} bytes were left: {:?}", db.stats());
        check(db.iter().unwrap(), &model, "after opening again");
    }
}

fn first_pack(env: &SimEnv) -> (PathBuf, Arc<dyn File>) {
    let path = packs(env).remove(0);
    let file = env.open(&path, Access::ReadWrite).unwrap();
    (path, file)
}

#[test]
fn a_hole_in_a_live_table_is_found_and_named() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        put(&db, &mut Model::new(), 0..KEYS, 0);
        db.compact().unwrap();
        verified(&db);
        let (path, file) = first_pack(&env);
        file.punch(12 << 10, 8 << 10).unwrap();
        let report = db.verify().unwrap();
        let hole = report.problems.iter().find(|problem| problem.to_string().contains("a hole")).unwrap();
        assert_eq!((hole.file(), hole.offset()), (Some(&*path), Some(12 << 10)), "{hole}");
        assert!(hole.to_string().starts_with("8192 bytes of table "), "{hole}");
        assert_eq!((report.hole_bytes, report.zero_bytes), (8 << 10, 0));
    });
}

/// Some ways to copy a store, and some file systems, leave out zeros.
#[test]
fn zeros_that_are_not_stored_are_no_damage() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        db.put("zeros", vec![0; 100_000]).unwrap();
        db.compact().unwrap();
        let (path, file) = first_pack(&env);
        let bytes = env.read_file(&path).unwrap();
        let zeros = |page: &[u8]| page.iter().all(|byte| *byte == 0);
        let sparse = bytes.chunks(4096).position(zeros).unwrap() as u64;
        file.punch(sparse * 4096, 4096).unwrap();
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!((report.hole_bytes, report.zero_bytes), (4096, 4096));
        assert_eq!(db.get("zeros").unwrap().unwrap(), vec![0; 100_000]);
    });
}

/// Storage that nothing accounts for is reported, and is no damage.
#[test]
fn storage_beyond_the_accounting_is_reported() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &options()).unwrap();
        with_a_dead_fifth(&db);
        env.sleep(Duration::from_secs(1));
        let holes = verified(&db).hole_bytes;
        let (_, file) = first_pack(&env);
        let hole = (0..).find_map(|page| match file.next_data(page * 4096).unwrap() {
            Some(data) if data.start > page * 4096 => Some(page * 4096..data.start),
            _ => None,
        });
        let hole = hole.unwrap();
        file.write_at(hole.start, &vec![9; (hole.end - hole.start) as usize]).unwrap();
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let least = holes - (64 << 10);
        assert!((least..least + 4096).contains(&report.unexplained_bytes), "{report:?}");
    });
}
