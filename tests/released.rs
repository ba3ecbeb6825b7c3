//! Tests of released entries: what tables keep for a snapshot or a transaction is dropped after it has gone, without
//! a call, by writing the rest of the table once.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Seed, scheduled, tiny};
use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{Db, Keyspace, KeyspaceOptions, LevelShape, Options};
use terrace_torture::TreeParts as _;

const KEYS: u64 = 400;
const VALUE_BYTES: usize = 100;

/// Several tables go into a job, as by default, and into one pack.
fn options() -> Options {
    let tiny = tiny();
    Options { tree: tiny.tree.with(|tree| tree.group().bytes = 40 << 10), ..tiny }
}

fn open(env: &Arc<SimEnv>) -> Db {
    Db::builder("/db").env(env.clone()).options(options()).open().unwrap()
}

fn key(n: u64) -> String {
    format!("{n:06}")
}

fn value(generation: u8) -> Vec<u8> {
    vec![generation; VALUE_BYTES]
}

fn put_all(db: &Db, generation: u8) {
    (0..KEYS).for_each(|n| db.put(key(n), value(generation)).unwrap());
}

fn holds_all(db: &Db, generation: u8) {
    let found = db.iter().unwrap().map(|entry| entry.unwrap().1);
    assert_eq!(found.filter(|found| *found == value(generation)).count() as u64, KEYS);
    assert!(db.verify().unwrap().problems.is_empty());
}

fn sum(db: &Db, of: fn(&LevelShape) -> u64) -> u64 {
    db.stats().keyspaces.iter().flat_map(|keyspace| &keyspace.shape.levels).map(of).sum()
}

fn live(db: &Db) -> u64 {
    db.stats().space.live_bytes
}

fn held(db: &Db) -> (u64, u64) {
    (sum(db, |level| level.held_bytes), sum(db, |level| level.released_bytes))
}

/// Records written by compactions, and compactions that gave up what readers had held.
fn compactions(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    (stats.compaction.records_out, stats.compaction.releases)
}

/// All keys of the first generation, in the deepest level; their bytes.
fn first_generation(db: &Db) -> u64 {
    put_all(db, 1);
    db.compact().unwrap();
    live(db)
}

/// What is live is at most a part in 20 more than `alone`.
fn is_near(db: &Db, alone: u64) {
    let live = live(db);
    assert!(live <= alone + alone / 20, "{live} bytes are live, and {alone} were of the same data");
}

#[test]
fn what_a_snapshot_held_comes_back_when_it_goes() {
    scheduled(|env| {
        let db = open(&env);
        let alone = first_generation(&db);
        let snapshot = db.snapshot();
        put_all(&db, 2);
        db.compact().unwrap();
        let (with_it, before) = (live(&db), compactions(&db));
        assert!(with_it > alone + alone * 9 / 10, "it sees {alone} bytes that are live");
        assert!(held(&db).0 > alone * 8 / 10 && held(&db).1 == 0, "{:?}", held(&db));
        db.wait_idle().unwrap();
        assert_eq!(compactions(&db), before, "nothing can be given up yet");
        drop(snapshot);
        db.wait_idle().unwrap();
        is_near(&db, alone);
        assert_eq!(held(&db), (0, 0));
        let (written, releases) = (compactions(&db).0 - before.0, compactions(&db).1);
        assert!(releases > 0 && written == KEYS, "{written} records were written so that {KEYS} go");
        holds_all(&db, 2);
        db.close().unwrap();
    });
}

#[test]
fn background_work_needs_no_one_who_asks() {
    scheduled(|env| {
        let db = open(&env);
        let alone = first_generation(&db);
        let snapshot = db.snapshot();
        put_all(&db, 2);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        // Until the threads have seen that nothing is left to do, and sleep.
        env.sleep(Duration::from_secs(5));
        drop(snapshot);
        // Nobody calls anything.
        env.sleep(Duration::from_secs(1));
        is_near(&db, alone);
        db.close().unwrap();
    });
}

#[test]
fn a_transaction_and_a_snapshot_of_an_iterator_let_go_as_well() {
    scheduled(|env| {
        let db = open(&env);
        let alone = first_generation(&db);
        let transaction = db.transaction();
        put_all(&db, 2);
        db.compact().unwrap();
        assert!(live(&db) > alone * 19 / 10);
        drop(transaction);
        db.wait_idle().unwrap();
        is_near(&db, alone);
        let snapshot = db.snapshot();
        let mut rows = snapshot.iter().unwrap();
        drop(snapshot);
        put_all(&db, 3);
        db.compact().unwrap();
        assert_eq!(rows.next().unwrap().unwrap().1, value(2));
        drop(rows);
        db.wait_idle().unwrap();
        is_near(&db, alone);
        // An iterator without a snapshot keeps tables, not versions.
        let mut rows = db.iter().unwrap();
        assert_eq!(rows.next().unwrap().unwrap().1, value(3));
        put_all(&db, 4);
        db.compact().unwrap();
        drop(rows);
        db.wait_idle().unwrap();
        is_near(&db, alone);
        holds_all(&db, 4);
        db.close().unwrap();
    });
}

#[test]
fn tombstones_that_hide_nothing_go_with_who_they_were_kept_for() {
    type Delete = fn(&Db);
    let ways: [Delete; 2] = [
        |db| (0..KEYS).for_each(|n| db.delete(key(n)).unwrap()),
        |db| (0..KEYS).for_each(|n| db.delete_range(key(n)..key(n + 1)).unwrap()),
    ];
    for delete in ways {
        scheduled(move |env| {
            let db = open(&env);
            put_all(&db, 1);
            db.compact().unwrap();
            // What it sees goes, what hid it stays: the older snapshot lies below.
            let (oldest, older) = (db.snapshot(), db.snapshot());
            delete(&db);
            db.compact().unwrap();
            drop((oldest, older));
            db.wait_idle().unwrap();
            assert_eq!(live(&db), 0, "{:?}", db.stats().keyspaces[0].shape);
            // Of keys that never were: nothing lies below, and yet they stay.
            let snapshot = db.snapshot();
            delete(&db);
            db.compact().unwrap();
            let records = |level: &LevelShape| level.tombstones + level.range_tombstones;
            assert!(sum(&db, records) > 0);
            db.wait_idle().unwrap();
            assert!(sum(&db, records) > 0);
            drop(snapshot);
            db.wait_idle().unwrap();
            assert_eq!((live(&db), sum(&db, records)), (0, 0));
            db.close().unwrap();
        });
    }
}

#[test]
fn what_has_expired_under_a_snapshot_goes_with_it() {
    scheduled(|env| {
        let db = open(&env);
        let ttl = Some(Duration::from_secs(100));
        let aging = db.keyspace_with("aging", KeyspaceOptions { ttl, ..KeyspaceOptions::default() }).unwrap();
        let put = |aging: &Keyspace, generation| {
            (0..KEYS).for_each(|n| aging.put(key(n), value(generation)).unwrap());
        };
        put(&aging, 1);
        db.compact().unwrap();
        let alone = live(&db);
        let snapshot = db.snapshot();
        put(&aging, 2);
        db.compact().unwrap();
        assert!(live(&db) > alone * 19 / 10);
        env.sleep(Duration::from_secs(130));
        db.compact().unwrap();
        assert_eq!(aging.iter().unwrap().count(), 0);
        drop(snapshot);
        db.wait_idle().unwrap();
        assert_eq!(live(&db), 0, "{:?}", db.stats().keyspaces);
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn snapshots_let_go_in_any_order_of_what_each_held() {
    let seed = Seed::new(1);
    let mut random = seed.random();
    for _ in 0..4 {
        let mut order: Vec<usize> = (0..3).collect();
        (1..3).for_each(|at| order.swap(at, random.below(at as u64 + 1) as usize));
        scheduled(move |env| {
            let db = open(&env);
            let alone = first_generation(&db);
            let mut snapshots: Vec<_> = (2..5)
                .map(|generation| {
                    let snapshot = db.snapshot();
                    put_all(&db, generation);
                    Some(snapshot)
                })
                .collect();
            db.compact().unwrap();
            for (gone, at) in order.into_iter().enumerate() {
                let left = 3 - gone as u64;
                assert!(live(&db) > left * alone, "{left} are left, and {} bytes", live(&db));
                snapshots[at] = None;
                db.wait_idle().unwrap();
                assert_eq!(held(&db).1, 0);
                for (at, snapshot) in snapshots.iter().enumerate() {
                    let Some(snapshot) = snapshot else { continue };
                    let seen = snapshot.iter().unwrap().map(|entry| entry.unwrap().1);
                    assert_eq!(seen.filter(|seen| *seen == value(at as u8 + 1)).count() as u64, KEYS);
                }
                // The last step is the first generation alone; in between each holds one.
                let near = alone * left;
                assert!(live(&db) <= near + near / 20, "{} bytes for {near}", live(&db));
            }
            holds_all(&db, 4);
            db.close().unwrap();
        });
    }
}

#[test]
fn a_store_that_is_opened_again_has_no_snapshots() {
    for moved in [false, true] {
        scheduled(move |env| {
            let db = open(&env);
            let alone = first_generation(&db);
            let snapshot = db.snapshot();
            put_all(&db, 2);
            db.compact().unwrap();
            let copy = Path::new("/copy");
            db.checkpoint(copy).unwrap();
            assert!(live(&db) > alone * 19 / 10);
            drop(snapshot);
            let at = if moved { copy } else { Path::new("/db") };
            if !moved {
                // As if the power had gone: nothing was given up before.
                env.sleep(Duration::ZERO);
            }
            db.close().unwrap();
            let db = Db::builder(at).env(env.clone()).options(options()).open().unwrap();
            db.wait_idle().unwrap();
            is_near(&db, alone);
            assert_eq!(held(&db), (0, 0));
            holds_all(&db, 2);
            db.close().unwrap();
        });
    }
}

#[test]
fn level_0_gives_up_what_it_held() {
    scheduled(|env| {
        let db = open(&env);
        // Of one memtable: no compaction is due.
        let put = |generation| (0..10).for_each(|n| db.put(key(n), value(generation)).unwrap());
        put(0);
        db.flush().unwrap();
        let alone = sum(&db, |level| level.entries);
        let mut snapshots = Vec::new();
        (1..5).for_each(|generation| {
            snapshots.push(db.snapshot());
            put(generation);
        });
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(sum(&db, |level| level.entries), 5 * alone);
        snapshots.clear();
        db.wait_idle().unwrap();
        assert_eq!(sum(&db, |level| level.entries), 2 * alone, "{:?}", db.stats().keyspaces[0].shape);
        assert_eq!(db.get(key(3)).unwrap().unwrap(), value(4));
        db.close().unwrap();
    });
}

#[test]
fn a_reader_that_goes_while_a_job_runs_is_not_forgotten() {
    // The thread that drops meets the job at another place each time.
    for pause in 0..30 {
        SimEnv::run(SimConfig::default(), move |env| {
            let db = open(&env);
            let alone = first_generation(&db);
            let snapshot = db.snapshot();
            put_all(&db, 2);
            let env_of_thread = env.clone();
            let dropping = env.spawn(
                "dropping",
                terrace::env::Priority::Normal,
                Box::new(move || {
                    env_of_thread.sleep(Duration::from_micros(300 * pause));
                    drop(snapshot);
                }),
            );
            db.compact().unwrap();
            dropping.unwrap().join();
            db.wait_idle().unwrap();
            is_near(&db, alone);
            assert_eq!(held(&db).1, 0);
            db.close().unwrap();
        });
    }
}

#[test]
fn a_compaction_leaves_nothing_that_nobody_holds_however_little() {
    scheduled(|env| {
        let db = open(&env);
        first_generation(&db);
        let (first, snapshot) = (db.snapshot(), db.snapshot());
        drop(first);
        // A tenth of each table: not worth a job.
        (0..KEYS).step_by(10).for_each(|n| db.put(key(n), value(2)).unwrap());
        db.compact().unwrap();
        let (held_bytes, _) = held(&db);
        assert!(held_bytes > 0);
        let before = compactions(&db);
        db.compact().unwrap();
        assert_eq!(
            (compactions(&db), held(&db)),
            (before, (held_bytes, 0)),
            "what is held stays, and is not written again"
        );
        drop(snapshot);
        db.wait_idle().unwrap();
        assert_eq!((compactions(&db), held(&db)), (before, (held_bytes, held_bytes)), "too little for a job");
        db.compact().unwrap();
        assert_eq!(held(&db), (0, 0));
        assert_eq!(sum(&db, |level| level.entries), KEYS);
        db.close().unwrap();
    });
}

#[test]
fn snapshots_that_come_and_go_cost_next_to_nothing() {
    let written = |with_snapshots: bool| {
        let (told, heard) = std::sync::mpsc::channel();
        scheduled(move |env| {
            let db = open(&env);
            first_generation(&db);
            let mut random = Seed::new(3).random();
            let mut snapshot = None;
            for at in 0..20_000u64 {
                if with_snapshots && at % 50 == 0 {
                    snapshot = Some(db.snapshot());
                }
                db.put(key(random.below(KEYS)), value(2)).unwrap();
            }
            drop(snapshot);
            db.wait_idle().unwrap();
            told.send(db.stats().compaction.bytes_out + db.stats().flush.bytes).unwrap();
            db.close().unwrap();
        });
        heard.recv().unwrap()
    };
    let (without, with) = (written(false), written(true));
    assert!(with <= without + without / 5, "{with} bytes with snapshots, {without} without");
}
