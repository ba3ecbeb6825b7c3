//! Regression tests of what manual compactions promise while jobs run beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{CompactionFilter, Db, Decision, LevelShape, Options};
use terrace_torture::TreeParts as _;

use super::{seeds, spawn};
use crate::common::{Random, tiny};

const KEYS: u64 = 700;

/// The first byte of a value that the filter has seen.
const MARK: u8 = 1;

/// Level 1 takes all keys and a little more. A job takes a fraction of it.
fn options() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.tables().table_bytes = 1 << 10;
        *tree.level1_bytes() = 110 << 10;
    });
    Options { memtable_bytes: 256 << 10, tree, ..tiny() }
}

fn put(db: &Db, keys: impl Iterator<Item = u64>) {
    let mut random = Random(1);
    keys.for_each(|n| {
        let mut value: Vec<u8> = (0..12).flat_map(|_| random.next().to_le_bytes()).collect();
        value[0] = 0;
        db.put(format!("{n:06}"), value).unwrap();
    });
}

/// A part of a sum over the levels that have tables.
fn levels(db: &Db, part: fn(&LevelShape) -> u64) -> Vec<(usize, u64)> {
    let shape = db.stats().keyspaces[0].shape.clone();
    shape.levels.iter().filter(|level| level.bytes > 0).map(|level| (level.level, part(level))).collect()
}

/// Fills level 0, so that a manual compaction makes level 1 due. Jobs will move tables of it while it is compacted
/// into itself.
fn make_level_1_due(db: &Db) {
    assert!(matches!(levels(db, |level| level.bytes)[..], [(1, _)]), "{:?}", db.stats().keyspaces);
    put(db, KEYS..2 * KEYS);
    db.flush().unwrap();
    assert!(matches!(levels(db, |level| level.bytes)[..], [(0, _), (1, _)]), "{:?}", db.stats().keyspaces);
}

/// Tables that jobs have moved into the next level.
fn moved(db: &Db) -> u64 {
    db.stats().compaction.moves
}

/// A compaction gives up what tables hold for readers that have gone, wherever the tables are. It looked at the level
/// that was deepest at that moment. When a job had just moved the first table into the next one, all that was left
/// above kept what nobody sees.
#[test]
fn a_compaction_passes_nothing_over_when_a_job_makes_the_tree_deeper() {
    for seed in seeds(4) {
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let db = Db::builder("/db").env(env.clone()).options(options()).open().unwrap();
            put(&db, 0..KEYS);
            db.compact().unwrap();
            let snapshot = db.snapshot();
            // Too little of each table for a job of its own.
            put(&db, (0..KEYS).step_by(10));
            db.compact().unwrap();
            drop(snapshot);
            db.wait_idle().unwrap();
            let released = |db: &Db| levels(db, |level| level.released_bytes);
            assert!(released(&db).iter().any(|(_, bytes)| *bytes > 0), "seed {seed}");
            make_level_1_due(&db);
            let before = moved(&db);
            db.compact().unwrap();
            assert!(moved(&db) > before, "seed {seed}: this tries something else");
            assert!(released(&db).iter().all(|(_, bytes)| *bytes == 0), "seed {seed}: {:?}", released(&db));
            db.close().unwrap();
        });
    }
}

/// Marks the values of the first keys once it is switched on.
#[derive(Default)]
struct Marker(AtomicBool);

impl CompactionFilter for Marker {
    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        if key >= format!("{KEYS:06}").as_bytes() || !self.0.load(Ordering::Relaxed) {
            return Decision::Keep;
        }
        let mut marked = value.to_vec();
        marked[0] = MARK;
        Decision::Change(marked)
    }
}

/// The same of a compaction filter, which a compaction shows every value.
#[test]
fn a_compaction_shows_a_filter_everything_when_a_job_makes_the_tree_deeper() {
    for seed in seeds(4) {
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let filter = Arc::new(Marker::default());
            let builder = Db::builder("/db").env(env.clone()).options(options());
            let db = builder.compaction_filter("default", filter.clone()).open().unwrap();
            put(&db, 0..KEYS);
            db.compact().unwrap();
            make_level_1_due(&db);
            let before = moved(&db);
            filter.0.store(true, Ordering::Relaxed);
            db.compact().unwrap();
            assert!(moved(&db) > before, "seed {seed}: this tries something else");
            let marked = db.iter().unwrap().filter(|entry| entry.as_ref().unwrap().1[0] == MARK);
            assert_eq!(marked.count() as u64, KEYS, "seed {seed}: of those that it was to see");
            db.close().unwrap();
        });
    }
}

/// Rows of the next test, of which every tenth stays.
const ROWS: u64 = 4000;

/// Dead tables of a row of neighbours are large enough for a hole.
fn packed() -> Options {
    let options = terrace_torture::large_packs::options();
    Options { memtable_bytes: 128 << 10, wal_bytes_max: 1 << 20, ..options }
}

/// Rows of half a kilobyte.
fn put_rows(db: &Db, rows: impl Iterator<Item = u64>) {
    rows.for_each(|n| db.put(format!("{n:06}"), format!("{n:0500}")).unwrap());
}

/// Bytes of live and of dead tables, and of padding, once the reclaimer has had its time.
fn settled(db: &Db, env: &SimEnv) -> u64 {
    db.wait_idle().unwrap();
    env.sleep(Duration::from_secs(1));
    let space = db.stats().space;
    space.live_bytes + space.dead_bytes
}

/// Fewer dead bytes in a row are not worth a hole.
const HOLE_BYTES_MIN: u64 = 64 << 10;

/// A compaction gives up what was deleted before it began, whatever the writer and other compactions do meanwhile. It left
/// a twentieth more than what lives after nine rows of ten were deleted.
#[test]
fn a_compaction_in_another_thread_than_the_writers_leaves_a_few_per_cent_of_dead_bytes() {
    let stays = |n: u64| n.is_multiple_of(10);
    let fresh = ROWS..ROWS + ROWS / 20;
    let alone = SimEnv::run(SimConfig::default(), move |env| {
        let db = Db::builder("/db").env(env.clone()).options(packed()).open().unwrap();
        put_rows(&db, (0..ROWS + ROWS / 20).filter(|n| stays(*n) || *n >= ROWS));
        db.compact().unwrap();
        settled(&db, &env)
    });
    for seed in seeds(8) {
        let fresh = fresh.clone();
        let config = SimConfig { seed, preemption_percent: 60, ..SimConfig::default() };
        SimEnv::run(config, move |env| {
            let db = Db::builder("/db").env(env.clone()).options(packed()).open().unwrap();
            let is_deleted = Arc::new(AtomicBool::new(false));
            let writer = spawn(&env, {
                let (db, is_deleted) = (db.clone(), is_deleted.clone());
                move || {
                    put_rows(&db, 0..ROWS);
                    (0..ROWS).filter(|n| !stays(*n)).for_each(|n| db.delete(format!("{n:06}")).unwrap());
                    is_deleted.store(true, Ordering::Release);
                    put_rows(&db, fresh);
                }
            });
            let compactor = spawn(&env, {
                let (env, db) = (env.clone(), db.clone());
                move || {
                    while !is_deleted.load(Ordering::Acquire) {
                        db.compact().unwrap();
                        env.sleep(Duration::from_millis(1));
                    }
                    // The only one that begins behind the last delete.
                    db.compact().unwrap();
                }
            });
            writer.join();
            compactor.join();
            let tombstones: u64 = levels(&db, |level| level.tombstones).iter().map(|(_, count)| count).sum();
            let all = settled(&db, &env);
            assert!(
                all <= alone + alone / 25 + HOLE_BYTES_MIN,
                "seed {seed}: {all} bytes, and {alone} of the same data"
            );
            assert_eq!(tombstones, 0, "seed {seed}: they hide nothing");
            assert_eq!(db.iter().unwrap().count() as u64, ROWS / 10 + ROWS / 20, "seed {seed}");
            db.close().unwrap();
        });
    }
}
