//! Regression tests of openings, and of the files that they leave.

use terrace::env::simulated::{FaultError, FaultRule, Operation, SimConfig, SimEnv, Survival};
use terrace::{Db, ErrorKind, Options};
use terrace_torture::TreeParts as _;

use super::{fault, files, open, tiny};

/// A store that is opened read-only has no threads. If recovery finds full memtables in the log, nobody may wait for
/// their flush, which never comes.
#[test]
fn a_store_that_is_read_alone_is_always_idle() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env).unwrap();
        env.fault(FaultRule { sticky: true, ..fault(Operation::Create, ".pack", FaultError::NoSpace) });
        for key in ["a", "b"] {
            db.put(key, [7; 40 << 10]).unwrap();
        }
        drop(db);
        env.clear_faults();
        assert!(files(&env, ".pack").is_empty(), "all of it is in the log");
        let db = Db::builder("/db").env(env.clone()).options(tiny()).read_only().open().unwrap();
        db.wait_idle().unwrap();
        assert!(db.contains("a").unwrap() && db.contains("b").unwrap());
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    });
}

/// Every opening starts a segment of the log. The segments of openings that wrote nothing are removed. Otherwise
/// every later opening reads them all.
#[test]
fn short_openings_do_not_pile_up_log_segments() {
    SimEnv::run(SimConfig::default(), |env| {
        for _ in 0..20 {
            drop(open(&env).unwrap());
            assert_eq!(files(&env, ".wal").len(), 1);
        }
        for n in 0..20 {
            open(&env).unwrap().put(format!("{n}"), "value").unwrap();
            let segments = files(&env, ".wal").len();
            assert!(segments <= 10, "{segments} segments for {n} entries");
        }
        assert_eq!(open(&env).unwrap().iter().unwrap().count(), 20);
    });
}

/// An opening that fails when some of its threads are running ends these threads. Otherwise they hold the engine, and
/// with it the store's lock, until the process ends.
#[test]
fn a_failed_opening_gives_the_store_free() {
    SimEnv::run(SimConfig::default(), |env| {
        open(&env).unwrap().put("key", "value").unwrap();
        for thread in ["terrace-flush", "terrace-preallocate", "terrace-reclaim", "terrace-comp-0"] {
            env.fault(fault(Operation::Spawn, thread, FaultError::TooManyFiles));
            assert_eq!(open(&env).unwrap_err().kind(), ErrorKind::Io, "{thread}");
            let db = open(&env).unwrap_or_else(|e| panic!("after {thread}: {e}"));
            assert!(db.contains("key").unwrap());
        }
    });
}

/// If the manifest is due for a rewrite and the disk is full, the edit that was just made durable succeeds, and the
/// store is not poisoned, since nothing is unknown. Keys are as long as possible, so that few edits make a long
/// manifest.
#[test]
fn a_manifest_that_cannot_be_rewritten_now_goes_on() {
    let steps = [
        (Operation::Create, "MANIFEST-000003", FaultError::NoSpace),
        (Operation::WriteAt, "MANIFEST-000003", FaultError::NoSpace),
        (Operation::Sync, "MANIFEST-000003", FaultError::Io),
        (Operation::Create, "CURRENT.new", FaultError::NoSpace),
        (Operation::WriteAt, "CURRENT.new", FaultError::NoSpace),
        (Operation::Sync, "CURRENT.new", FaultError::Io),
    ];
    for (operation, name, error) in steps {
        SimEnv::run(SimConfig::default(), move |env| {
            let tree = tiny().tree.with(|tree| {
                *tree.l0_trigger() = 100;
                tree.governor().l0_slow = 100;
                tree.governor().l0_stop = 101;
            });
            let options = Options { tree, ..tiny() };
            let open = |env| Db::builder("/db").env(env).options(options.clone()).open().unwrap();
            let db = open(env.clone());
            let manifest = files(&env, "MANIFEST");
            assert!(manifest.len() == 1 && manifest[0].ends_with("MANIFEST-000002"), "{manifest:?}");
            env.fault(FaultRule { partial: true, ..fault(operation, name, error) });
            let mut flushes = 0;
            let mut flush = || {
                let key = [&[b'k'; 60_000][..], &[flushes]].concat();
                flushes += 1;
                assert!(flushes < 20, "no rewrite, {operation:?} {name}");
                db.put(key, "").unwrap();
                db.flush().unwrap();
            };
            while env.faults_fired() == 0 {
                flush();
            }
            assert_eq!(files(&env, "MANIFEST"), manifest, "{operation:?} {name}");
            while files(&env, "MANIFEST") == manifest {
                flush();
            }
            assert_eq!(files(&env, "MANIFEST").len(), 1);
            let db = open(env.crash(Survival::Nothing));
            assert_eq!(db.iter().unwrap().count(), usize::from(flushes), "{operation:?} {name}");
        });
    }
}
