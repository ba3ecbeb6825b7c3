//! Tests of idle-time compaction: idle time compacts within level 0, busy time does not.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{Db, Options, TreeOptions};
use terrace_torture::TreeParts as _;

const KEYS: u32 = 2000;

/// A store with so much in level 1 that five runs of [`flush`] are not compacted into it in idle time.
fn open(env: &Arc<SimEnv>, tree: TreeOptions) -> Db {
    let shared: Arc<dyn Env> = env.clone();
    let options = Options { tree, ..Options::default() };
    let db = Db::builder(Path::new("/db")).env(shared).options(options).open().unwrap();
    for key in 0..10 * KEYS {
        db.put(format!("{key:06}"), "v".repeat(500)).unwrap();
    }
    db.compact().unwrap();
    assert_eq!(runs(&db), 0);
    db
}

/// Flushes `runs` runs of each tenth key.
fn flush(db: &Db, runs: u32) {
    for run in 0..runs {
        for key in (0..10 * KEYS).step_by(10) {
            db.put(format!("{key:06}"), format!("{run} {key} {}", "v".repeat(100))).unwrap();
        }
        db.flush().unwrap();
    }
}

fn runs(db: &Db) -> usize {
    db.keyspace("default").unwrap().shape().levels[0].runs
}

#[test]
fn idle_time_compacts_runs_of_a_size_within_level_0_and_leaves_a_large_one_alone() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, TreeOptions::default());
        flush(&db, 2);
        env.sleep(Duration::from_secs(2));
        assert_eq!((runs(&db), db.stats().compaction.intra_l0), (2, 0), "too few");
        flush(&db, 2);
        env.sleep(Duration::from_secs(2));
        let intra_l0 = db.stats().compaction.intra_l0;
        assert!(runs(&db) == 1 && intra_l0 > 0);
        flush(&db, 1);
        env.sleep(Duration::from_secs(2));
        assert_eq!((runs(&db), db.stats().compaction.intra_l0), (2, intra_l0));
        for key in (0..10 * KEYS).step_by(10) {
            let value = db.get(format!("{key:06}")).unwrap().unwrap();
            assert!(value.starts_with(format!("0 {key} ").as_bytes()));
        }
        db.close().unwrap();
    });
}

#[test]
fn users_who_read_or_write_put_it_off() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, TreeOptions::default());
        flush(&db, 5);
        for step in 0..4000 {
            // Some two reads, or some two kilobytes, each millisecond.
            if step < 2000 {
                db.get(format!("{:06}", step % KEYS)).unwrap();
                db.get(format!("{:06}", (step + 7) % KEYS)).unwrap();
            } else {
                db.put("written", "w".repeat(2048)).unwrap();
            }
            env.sleep(Duration::from_millis(1));
        }
        assert_eq!((runs(&db), db.stats().compaction.intra_l0), (5, 0));
        env.sleep(Duration::from_secs(2));
        assert!(runs(&db) <= 1);
        db.close().unwrap();
    });
}

#[test]
fn idle_time_compacts_what_is_dense() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, TreeOptions::default());
        let bytes = |level: usize| db.keyspace("default").unwrap().shape().levels[level].bytes;
        flush(&db, 4);
        let sparse = bytes(0);
        assert!(sparse < bytes(1) / 9, "{sparse} over {}", bytes(1));
        env.sleep(Duration::from_secs(2));
        assert_eq!(runs(&db), 1, "folded");
        flush(&db, 5);
        let (dense, compactions, intra_l0) =
            (bytes(0), db.stats().compaction.jobs, db.stats().compaction.intra_l0);
        assert!(dense > bytes(1) / 8, "{dense} over {}", bytes(1));
        env.sleep(Duration::from_secs(2));
        assert_eq!(runs(&db), 0);
        assert!(db.stats().compaction.jobs > compactions && db.stats().compaction.intra_l0 == intra_l0);
        db.close().unwrap();
    });
}

#[test]
fn with_the_options_of_other_stores_it_does_no_intra_l0_compaction() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(
            &env,
            TreeOptions::default().with(|tree| {
                tree.set_ratio(Some(10));
                *tree.l0_trigger() = 8;
            }),
        );
        flush(&db, 6);
        env.sleep(Duration::from_secs(2));
        assert_eq!((runs(&db), db.stats().compaction.intra_l0), (6, 0));
        db.close().unwrap();
    });
}
