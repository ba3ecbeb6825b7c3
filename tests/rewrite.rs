//! Tests of rewrites, which give packs up by copying their live tables: when, at what cost, and that readers do not
//! notice.
//!
//! The simulated file system says that it does not support holes, unless a test is about many packs of which very
//! little is left.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Access, Env, Priority, Thread};
use terrace::tree::PackLayout;
use terrace::{Db, Error, ErrorKind, EventListener, JobEnd, Options, Stats};
use terrace_torture::TreeParts as _;
use terrace_torture::client::{DIR, open};
use terrace_torture::holders::{Held, KEYS, Model, check, key, verified};
use terrace_torture::large_packs::{VALUE_BYTES, options, put, value};
use terrace_torture::{Replay, Rng, schedules, sealed_packs as packs, seed_or};

/// Longer than the longest pause before a pack that something stood in the way of is tried again.
const LONG: Duration = Duration::from_secs(200);

fn fault(operation: Operation, error: FaultError, skipped: u64) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: ".pack".into(), skipped };
    FaultRule { target, error, sticky: false, partial: false }
}

/// A store on a file system that knows no holes.
fn without_holes(env: &Arc<SimEnv>, options: &Options) -> Db {
    env.fault(FaultRule { sticky: true, ..fault(Operation::Punch, FaultError::Unsupported, 0) });
    open(env, options).unwrap()
}

/// All of [`KEYS`] in one pack, of which `keys` are then written again.
fn half_dead(db: &Db, keys: Range<usize>) -> Model {
    let mut model = Model::new();
    put(db, &mut model, 0..KEYS, 0);
    db.compact().unwrap();
    put(db, &mut model, keys, 1);
    db.compact().unwrap();
    model
}

/// Until the reclaiming thread has asked for a hole in vain, and the rewrites that this makes due are done.
fn settle(db: &Db, env: &Arc<SimEnv>) {
    env.sleep(Duration::from_secs(1));
    db.wait_idle().unwrap();
}

fn spawn(env: &Arc<SimEnv>, body: impl FnOnce() + Send + 'static) -> Thread {
    env.spawn("beside", Priority::Normal, Box::new(body)).unwrap()
}

#[test]
fn a_pack_of_which_most_is_dead_is_rewritten_where_there_are_no_holes() {
    let machine = SimEnv::new(SimConfig::default());
    let model = machine.simulate(|env| {
        let db = without_holes(&env, &options());
        let model = half_dead(&db, 0..136);
        let old = packs(&env)[0].clone();
        settle(&db, &env);
        let Stats { rewrite, written, syncs, space, background_errors, .. } = db.stats();
        assert_eq!((rewrite.jobs, rewrite.packs, background_errors), (1, 1, 0), "{rewrite:?}");
        assert!(!packs(&env).contains(&old));
        // What is left, but for a table that has met what was written, and no more.
        let left = 64 * VALUE_BYTES;
        assert!((left * 3 / 4..left * 5 / 4).contains(&rewrite.bytes), "{rewrite:?}");
        assert!((rewrite.bytes..rewrite.bytes * 5 / 4).contains(&written.rewrite), "{written:?}");
        assert_eq!(syncs.rewrite, 1);
        let background = written.flush + written.compaction + written.rewrite;
        assert_eq!(written.total(), written.wal + written.manifest + background);
        assert!(space.dead_bytes < 120 << 10, "{space:?}");
        check(db.iter().unwrap(), &model, "after a rewrite");
        verified(&db);
        db.sync().unwrap();
        model
    });
    for survival in [Survival::Nothing, Survival::Everything] {
        let model = model.clone();
        machine.crash(survival).simulate(move |env| {
            let db = open(&env, &options()).unwrap();
            check(db.iter().unwrap(), &model, "after a power cut");
            verified(&db);
        });
    }
}

/// To copy more than comes back is not worth it while there is space.
#[test]
fn a_pack_of_which_most_lives_is_left_alone() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = without_holes(&env, &options());
        half_dead(&db, 0..88);
        settle(&db, &env);
        env.sleep(LONG);
        let Stats { rewrite, space, .. } = db.stats();
        assert!(rewrite.jobs == 0 && space.dead_bytes > 88 * VALUE_BYTES, "{space:?}");
    });
}

/// Stretches of keys are written again and again: what is dead stays below what lives, and what is copied below what was
/// compacted and flushed.
#[test]
fn space_and_writing_are_bounded_without_holes() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = without_holes(&env, &options());
        let (mut model, mut rng) = (Model::new(), Rng::new(5));
        put(&db, &mut model, 0..KEYS, 0);
        for round in 1..40 {
            let from = rng.below(KEYS - 30);
            put(&db, &mut model, from..from + 5 + rng.below(25), round);
            db.compact().unwrap();
            settle(&db, &env);
            let space = db.stats().space;
            assert!(space.dead_bytes < space.live_bytes * 5 / 4, "{space:?}");
            // Files take what is known of them, and no more.
            verified(&db);
        }
        let Stats { rewrite, written, .. } = db.stats();
        assert!(rewrite.packs >= 5, "{rewrite:?}");
        assert!(written.rewrite < (written.flush + written.compaction) / 6, "{written:?}");
        check(db.iter().unwrap(), &model, "at the end");
        verified(&db);
    });
}

/// Rewrites go on beside those who hold on to what was there before, a keyspace that is dropped, and writers.
fn torture(env: &Arc<SimEnv>, seed: u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    // Small levels in half of the runs, so that packs have tables in several; and little memory, so that open tables are
    // found by their ids.
    let (level1_bytes, level_ratio) =
        if seed.is_multiple_of(2) { (128 << 10, Some(10)) } else { (64 << 20, None) };
    let memory_bytes = Some(if seed % 4 < 2 { 16 << 20 } else { 1 << 20 });
    // Jobs of all that there is, or sections of it.
    let group_bytes = if seed.is_multiple_of(2) { options().tree.group().bytes } else { 16 << 20 };
    let tree = options().tree.with(|tree| {
        tree.set_ratio(level_ratio);
        *tree.level1_bytes() = level1_bytes;
        tree.group().bytes = group_bytes;
    });
    let memtable_bytes = if seed % 4 < 2 { 2 << 20 } else { 128 << 10 };
    let db = without_holes(env, &Options { tree, memory_bytes, memtable_bytes, ..options() });
    let (mut model, mut held) = (Model::new(), Vec::new());
    put(&db, &mut model, 0..KEYS, 0);
    db.compact().unwrap();
    for round in 1..24 {
        let from = rng.below(KEYS - 60);
        put(&db, &mut model, from..from + 30 + rng.below(30), round);
        if rng.below(4) == 0 {
            let end = from + rng.below(20);
            db.delete_range(key(from)..key(end)).unwrap();
            model.retain(|name, _| *name < key(from) || *name >= key(end));
        }
        let doomed = db.keyspace("doomed").unwrap();
        (from..KEYS).for_each(|n| doomed.put(key(n), value(n, round)).unwrap());
        if rng.below(3) > 0 {
            db.compact().unwrap()
        } else {
            db.flush().unwrap()
        }
        if rng.below(3) > 0 {
            held.push(Held::take(&db, env, &model, &mut rng, round));
        }
        held.iter_mut().for_each(|holder| holder.read_on(&mut rng));
        env.sleep(Duration::from_millis(rng.below(300) as u64));
        if rng.below(4) == 0 {
            db.drop_keyspace("doomed").unwrap();
        }
        held.iter_mut().for_each(|holder| holder.read_on(&mut rng));
        if held.len() > 5 {
            held.swap_remove(rng.below(5)).read_all(env);
        }
        if round % 8 == 0 {
            assert!(db.verify().unwrap().problems.is_empty());
        }
    }
    let _ = db.drop_keyspace("doomed");
    check(db.iter().unwrap(), &model, "at the end");
    held.into_iter().for_each(|holder| holder.read_all(env));
    env.sleep(LONG);
    db.wait_idle().unwrap();
    check(db.iter().unwrap(), &model, "after the last holder");
    verified(&db);
    let Stats { rewrite, background_errors, .. } = db.stats();
    (rewrite.jobs, background_errors)
}

#[test]
fn i8_whoever_holds_on_to_a_table_reads_it_whatever_is_rewritten() {
    let first = seed_or(0);
    for seed in first..first + schedules(3, 8) {
        let _replay = Replay(format!("TERRACE_SEED={seed}"));
        let config = SimConfig { seed, preemption_percent: 50, ..SimConfig::default() };
        let (jobs, errors) = SimEnv::run(config, move |env| torture(&env, seed));
        println!("seed {seed}: {jobs} rewrites");
        assert!(jobs >= 2 && errors == 0, "{jobs} rewrites, {errors} errors");
    }
}

/// Whatever moment the store is closed at, and a keyspace dropped.
#[test]
fn a_rewrite_ends_with_its_keyspace_and_with_the_store() {
    for seed in 0..schedules(8, 24) {
        let _replay = Replay(format!("seed {seed}"));
        let machine = SimEnv::new(SimConfig { seed, preemption_percent: 50, ..SimConfig::default() });
        let model = machine.simulate(move |env| {
            let db = without_holes(&env, &options());
            let doomed = db.keyspace("doomed").unwrap();
            let mut model = Model::new();
            put(&db, &mut model, 0..KEYS, 0);
            (0..KEYS).for_each(|n| doomed.put(key(n), value(n, 0)).unwrap());
            db.compact().unwrap();
            let iters = (db.iter().unwrap(), doomed.iter().unwrap());
            put(&db, &mut model, 0..150, 1);
            (0..150).for_each(|n| doomed.put(key(n), value(n, 1)).unwrap());
            db.compact().unwrap();
            // Now much dies at once.
            drop(iters);
            let dropping = db.clone();
            let beside = spawn(&env, move || dropping.drop_keyspace("doomed").unwrap());
            env.sleep(Duration::from_micros(seed * seed * 100));
            db.sync().unwrap();
            beside.join();
            db.close().unwrap();
            model
        });
        machine.crash(Survival::Nothing).simulate(move |env| {
            let db = open(&env, &options()).unwrap();
            check(db.iter().unwrap(), &model, "after closing in the midst of it");
            verified(&db);
        });
    }
}

#[test]
fn a_rewrite_that_finds_the_disk_full_leaves_nothing_and_is_done_later() {
    let mut struck = 0;
    for (operation, skipped) in [(Operation::Create, 0), (Operation::WriteAt, 0), (Operation::Sync, 0)] {
        let config = SimConfig { preemption_percent: 0, ..SimConfig::default() };
        struck += SimEnv::run(config, move |env| {
            let db = without_holes(&env, &options());
            let mut model = Model::new();
            put(&db, &mut model, 0..KEYS, 0);
            db.compact().unwrap();
            put(&db, &mut model, 0..136, 1);
            let iter = db.iter().unwrap();
            db.compact().unwrap();
            db.wait_idle().unwrap();
            let before = packs(&env);
            env.fault(FaultRule { partial: true, ..fault(operation, FaultError::NoSpace, skipped) });
            drop(iter);
            env.sleep(Duration::from_millis(500));
            let Stats { rewrite, background_errors, space, .. } = db.stats();
            if background_errors == 1 {
                assert_eq!(rewrite.jobs, 0);
                assert!(space.kept_bytes >= 136 * VALUE_BYTES, "{space:?}");
                assert_eq!(packs(&env), before, "{operation:?}");
            }
            let failed = background_errors;
            check(db.iter().unwrap(), &model, "after a rewrite that failed");
            env.sleep(LONG);
            db.wait_idle().unwrap();
            let Stats { rewrite, background_errors, space, .. } = db.stats();
            assert_eq!((rewrite.packs, background_errors, space.kept_bytes), (1, failed, 0), "{operation:?}");
            check(db.iter().unwrap(), &model, "after the next one");
            verified(&db);
            failed
        });
    }
    assert!(struck > 0, "no rewrite has failed");
}

/// What a store tells of rewrites and failures.
#[derive(Default)]
struct Heard(Mutex<(Vec<JobEnd>, Vec<Error>)>);

impl EventListener for Heard {
    fn rewrite_end(&self, rewrite: &JobEnd) {
        self.0.lock().0.push(rewrite.clone());
    }

    fn background_error(&self, error: &Error) {
        self.0.lock().1.push(error.clone());
    }
}

/// Damage is reported by file and offset, and the rewrite is tried again after longer and longer pauses; other packs
/// have their turn.
#[test]
fn a_damaged_table_is_not_copied_and_holds_nothing_else_up() {
    SimEnv::run(SimConfig { preemption_percent: 0, ..SimConfig::default() }, |env| {
        env.fault(FaultRule { sticky: true, ..fault(Operation::Punch, FaultError::Unsupported, 0) });
        let heard = Arc::new(Heard::default());
        let builder = Db::builder(DIR).env(env.clone()).options(options()).listener(heard.clone());
        let db = builder.open().unwrap();
        let mut model = Model::new();
        put(&db, &mut model, 0..60, 0);
        db.compact().unwrap();
        let damaged = packs(&env)[0].clone();
        put(&db, &mut model, 1000..1000 + KEYS, 0);
        db.compact().unwrap();
        // In the data of the last table.
        let file = env.open(&damaged, Access::ReadWrite).unwrap();
        let at = 56 * 4100;
        file.write_at(at, &[0x55; 3]).unwrap();
        // One after the other: no table may reach over the damaged one.
        put(&db, &mut model, 0..40, 1);
        db.compact().unwrap();
        put(&db, &mut model, 1000..1180, 1);
        db.compact().unwrap();
        settle(&db, &env);
        let Stats { rewrite, background_errors, .. } = db.stats();
        assert_eq!((rewrite.packs, background_errors), (1, 1), "the other pack, without this one");
        // Little lives but what is damaged, so that it is due again and again.
        db.delete_range(key(1000)..key(2000)).unwrap();
        model.retain(|name, _| *name < key(1000));
        db.compact().unwrap();
        env.sleep(Duration::from_secs(100));
        db.wait_idle().unwrap();
        let background_errors = db.stats().background_errors;
        assert!((4..=9).contains(&background_errors), "{background_errors} in a hundred seconds");
        let (ends, errors) = std::mem::take(&mut *heard.0.lock());
        assert_eq!(errors.len() as u64, background_errors);
        assert_eq!(ends.len(), errors.len() + 1);
        for error in errors {
            assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(&*damaged)), "{error}");
            let found = error.offset().unwrap();
            // The end of the block.
            assert!((at..at + (8 << 10)).contains(&found), "{error}");
        }
        // Everything else goes on.
        put(&db, &mut model, 500..600, 2);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.get(key(0)).unwrap().unwrap(), value(0, 1));
        assert_eq!(db.verify().unwrap().problems.len(), 1);
    });
}

/// The space of a pack that has another name, as in a backup by hard links, would not come back.
#[test]
fn a_pack_with_another_name_is_not_rewritten() {
    SimEnv::run(SimConfig::default(), |env| {
        env.create_dir(Path::new("/backup")).unwrap();
        let db = without_holes(&env, &options());
        let mut model = Model::new();
        put(&db, &mut model, 0..KEYS, 0);
        db.compact().unwrap();
        let (old, copy) = (packs(&env)[0].clone(), Path::new("/backup/copy"));
        env.link(&old, copy).unwrap();
        put(&db, &mut model, 0..136, 1);
        db.compact().unwrap();
        // Asks for a hole in vain where nothing stands in the way.
        put(&db, &mut model, 1000..1060, 0);
        db.compact().unwrap();
        put(&db, &mut model, 1000..1048, 1);
        db.compact().unwrap();
        env.sleep(LONG);
        db.wait_idle().unwrap();
        let Stats { rewrite, space, background_errors, .. } = db.stats();
        assert!(packs(&env).contains(&old) && space.kept_bytes >= 136 * VALUE_BYTES, "{space:?}");
        assert_eq!((rewrite.jobs, background_errors), (0, 0));
        env.remove(copy).unwrap();
        env.sleep(LONG);
        db.wait_idle().unwrap();
        assert!(!packs(&env).contains(&old) && db.stats().rewrite.packs == 2, "{:?}", db.stats().rewrite);
        check(db.iter().unwrap(), &model, "after the rewrite");
        verified(&db);
    });
}

/// Whoever needs space has packs rewritten that would be left alone otherwise.
#[test]
fn a_writer_whose_budget_is_used_up_has_packs_rewritten() {
    SimEnv::run(SimConfig { preemption_percent: 0, ..SimConfig::default() }, |env| {
        let db = without_holes(&env, &options());
        let mut model = half_dead(&db, 0..88);
        settle(&db, &env);
        let Stats { rewrite, space, .. } = db.stats();
        assert_eq!(rewrite.jobs, 0);
        let used = space.total_bytes;
        db.set_options(|options| options.space_bytes = Some(used / 4 * 5)).unwrap();
        // None of these is refused, for there is something to rewrite.
        let needed = (500..600).find(|&n| {
            put(&db, &mut model, n..n + 1, 2);
            db.stats().rewrite.jobs > 0
        });
        let Stats { rewrite, .. } = db.stats();
        assert_eq!((needed.is_some(), rewrite.jobs, rewrite.packs), (true, 1, 1), "{rewrite:?}");
        check(db.iter().unwrap(), &model, "within the budget");
        // There is an end to it.
        let refused = (600..2000).find_map(|n| db.put(key(n), value(n, 0)).err()).unwrap();
        assert_eq!(refused.kind(), ErrorKind::OverBudget);
        verified(&db);
    });
}

/// What a reader holds stays, and its copy comes on top: that is tried once.
#[test]
fn packs_that_a_reader_holds_are_rewritten_for_space_once() {
    SimEnv::run(SimConfig { preemption_percent: 0, ..SimConfig::default() }, |env| {
        let db = without_holes(&env, &options());
        let mut model = Model::new();
        for part in 0..4 {
            put(&db, &mut model, part * 1000..part * 1000 + KEYS, 0);
            db.compact().unwrap();
            put(&db, &mut model, part * 1000..part * 1000 + 60, 1);
            db.compact().unwrap();
        }
        settle(&db, &env);
        assert_eq!(db.stats().rewrite.jobs, 0);
        let (iter, held) = (db.iter().unwrap(), model.clone());
        let used = db.stats().space.total_bytes;
        db.set_options(|options| options.space_bytes = Some(used / 4 * 5)).unwrap();
        let mut fill = |from: usize| {
            let fits = |n: &usize| db.put(key(*n), value(*n, 2)).is_ok();
            let taken: Vec<_> = (from..from + 600).filter(fits).collect();
            taken.iter().for_each(|n| _ = model.insert(key(*n), value(*n, 2)));
            taken.len()
        };
        assert!(fill(5000) < 600);
        let Stats { rewrite, space, .. } = db.stats();
        assert_eq!((rewrite.jobs, rewrite.packs), (1, 4), "{rewrite:?}");
        assert!(space.total_bytes > used, "{space:?}");
        check(iter, &held, "what a reader holds");
        assert!(fill(6000) > 0);
        check(db.iter().unwrap(), &model, "after the reader");
        verified(&db);
    });
}

/// A full disk, as long as there is room for what is copied: in what the reserve has left.
#[test]
fn on_a_full_disk_packs_are_rewritten_before_writes_are_refused() {
    SimEnv::run(SimConfig { preemption_percent: 30, ..SimConfig::default() }, |env| {
        let db = without_holes(&env, &Options { reserve_bytes: 1 << 20, ..options() });
        let mut model = half_dead(&db, 0..88);
        settle(&db, &env);
        assert_eq!(db.stats().rewrite.jobs, 0);
        env.set_space(Path::new(DIR), env.used_bytes(Path::new(DIR)) + (64 << 10));
        let mut refused = 0;
        for n in 500..800 {
            match db.put(key(n), value(n, 2)) {
                Ok(()) => _ = model.insert(key(n), value(n, 2)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
                    refused += 1;
                    // Time for what was begun.
                    db.wait_idle().unwrap();
                }
            }
        }
        let Stats { rewrite, .. } = db.stats();
        assert!(rewrite.packs >= 1 && refused < 300, "{rewrite:?}, {refused} refused");
        check(db.iter().unwrap(), &model, "on a full disk");
        db.sync().unwrap();
        verified(&db);
    });
}

/// With holes: a file is kept for next to nothing, until there are several.
#[test]
fn packs_of_which_very_little_is_left_become_one() {
    SimEnv::run(SimConfig::default(), |env| {
        let tree = options().tree.with(|tree| tree.files.packs = PackLayout::Many { bytes_max: 2 << 20 });
        let db = open(&env, &Options { tree, ..options() }).unwrap();
        let mut model = Model::new();
        let group = |n: usize| n * 1000..n * 1000 + KEYS;
        let write = |model: &mut Model, n: usize| {
            let before = packs(&env);
            put(&db, model, group(n), 0);
            db.compact().unwrap();
            db.wait_idle().unwrap();
            let old = packs(&env).into_iter().find(|pack| !before.contains(pack)).unwrap();
            // All but a table, which holds ten keys, goes to other packs.
            for part in [0..91, 110..KEYS] {
                put(&db, model, group(n).filter(|n| part.contains(&(n % 1000))), 1);
                db.compact().unwrap();
            }
            old
        };
        let mut old: Vec<PathBuf> = (0..7).map(|n| write(&mut model, n)).collect();
        env.sleep(LONG);
        assert_eq!(db.stats().rewrite.jobs, 0, "seven are not too many");
        assert!(old.iter().all(|pack| packs(&env).contains(pack)));
        old.push(write(&mut model, 7));
        settle(&db, &env);
        let Stats { rewrite, punch, .. } = db.stats();
        // Those with tables in one level, which of eight are two at least.
        assert!(rewrite.jobs == 1 && (2..=8).contains(&rewrite.packs), "{rewrite:?}, {punch:?}");
        assert!(rewrite.bytes < rewrite.packs * 11 * VALUE_BYTES, "{rewrite:?}");
        let left = old.iter().filter(|pack| packs(&env).contains(pack)).count();
        assert_eq!(left as u64, 8 - rewrite.packs);
        check(db.iter().unwrap(), &model, "in one pack");
        verified(&db);
    });
}

fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy().contains("MANIFEST-")
}

fn manifest(env: &SimEnv) -> (PathBuf, u64) {
    env.files().into_iter().find(|(path, _)| is_manifest(path)).unwrap()
}

/// Both copies of a table are there as long as somebody holds the old one, and the last edits of the manifest may be lost.
#[test]
fn a_repair_takes_either_copy_of_a_table() {
    repair_without_the_edit(|env| {
        let db = without_holes(env, &options());
        let model = half_dead(&db, 0..136);
        (db, model)
    });
}

/// Their entries have no numbers of their own: the catalog's, of the copy that is gone, says that they are newer than what lies
/// below them.
#[test]
fn a_repair_takes_the_copy_of_an_ingested_table_for_as_new_as_it_is() {
    repair_without_the_edit(|env| {
        let mut model = Model::new();
        let mut small = options();
        small.tree.set_ratio(Some(10));
        *small.tree.level1_bytes() = 128 << 10;
        // Whatever is compacted is one job, and in one pack.
        (small.tree.group().bytes, small.tree.group().parts) = (16 << 20, 1);
        let db = open(env, &small).unwrap();
        put(&db, &mut model, 150..KEYS, 0);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        // What is left of level 1.
        db.compact().unwrap();
        let levels = |db: &Db| {
            let stats = db.stats();
            let levels = stats.keyspaces[0].shape.levels.iter();
            levels.filter(|level| level.tables > 0).map(|level| level.level).collect::<Vec<_>>()
        };
        assert_eq!(levels(&db), [2]);
        db.close().unwrap();
        // So that every flush is compacted with what it meets in level 1, and with nothing else.
        *small.tree.level1_bytes() = *options().tree.level1_bytes();
        *small.tree.l0_trigger() = 1;
        let db = without_holes(env, &small);
        let mut ingest = db.ingest().unwrap();
        for n in 0..KEYS {
            ingest.push(key(n), value(n, 1)).unwrap();
            model.insert(key(n), value(n, 1));
        }
        ingest.finish().unwrap();
        assert_eq!(levels(&db), [1, 2]);
        for part in 0..4 {
            put(&db, &mut model, part * 38..(part + 1) * 38, 2);
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        (db, model)
    });
}

/// The store that `make` leaves rewrites one pack; the edit that says so is damaged.
fn repair_without_the_edit(make: impl FnOnce(&Arc<SimEnv>) -> (Db, Model) + Send + 'static) {
    let machine = SimEnv::new(SimConfig::default());
    let (model, edits) = machine.simulate(move |env| {
        let (db, mut model) = make(&env);
        settle(&db, &env);
        assert_eq!(db.stats().rewrite.packs, 1, "{:?}", db.stats().space);
        let (_, edits) = manifest(&env);
        // Something behind the last edit says that it was not torn.
        put(&db, &mut model, 500..501, 0);
        db.flush().unwrap();
        (model, edits)
    });
    machine.crash(Survival::Everything).simulate(move |env| {
        // The old pack is gone, and the edit that says so is damaged.
        let file = env.open(&manifest(&env).0, Access::ReadWrite).unwrap();
        file.write_at(edits - 9, &[0xee; 3]).unwrap();
        assert_eq!(open(&env, &options()).unwrap_err().kind(), ErrorKind::Corruption);
        let builder = Db::builder(DIR).env(env.clone()).options(options());
        let report = builder.repair("/repaired").unwrap();
        assert!(report.lost.iter().all(|lost| lost.file().is_none_or(is_manifest)), "{:?}", report.lost);
        let db = Db::builder("/repaired").env(env.clone()).options(options()).open().unwrap();
        check(db.iter().unwrap(), &model, "after a repair");
    });
}
