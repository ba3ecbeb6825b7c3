//! Bugs that were found, each with its story.

use std::path::Path;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv, Survival};
use terrace::{Db, Durability, ErrorKind, Options, WriteBatch};

/// Options under which a memtable is full after a few hundred entries.
fn tiny() -> Options {
    Options {
        memtable_bytes: 32 << 10,
        wal_bytes_max: 1 << 20,
        memory_bytes: Some(4 << 20),
        ..Options::default()
    }
}

/// A flush syncs the log first where other keyspaces have older entries in it, lest a crash keep the flushed ones
/// without them. It used to compare the numbers of single entries: those of one batch, in two keyspaces, are
/// consecutive, so the second keyspace's were "newer", and a power cut left the half of the batch that had been
/// flushed. The operations are small, so that the memtable is full while the log's segment is not: a segment that ends
/// is synced anyway.
#[test]
fn a_flush_keeps_no_half_of_a_batch_over_two_keyspaces() {
    let env = SimEnv::new(SimConfig::default());
    let open = |env| Db::builder(Path::new("/db")).env(env).options(tiny()).open().unwrap();
    let db = open(env.clone());
    let other = db.keyspace("other").unwrap();
    let mut batch = WriteBatch::new();
    for n in 0..1200u16 {
        batch.put(n.to_le_bytes(), "");
    }
    batch.put_in(&other, "last", "");
    db.write(batch).unwrap();
    // Finds the memtable full and gives it up for flushing.
    db.put("next", "").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.stats().flush.jobs, 1, "only one keyspace is flushed");

    let db = open(env.crash(Survival::Nothing));
    let other = db.keyspace("other").unwrap();
    let survivors = (db.contains(0u16.to_le_bytes()).unwrap(), other.contains("last").unwrap());
    assert_eq!(survivors, (true, true));
}

/// Fails the next sync of a file whose name ends so.
fn fail_sync(env: &SimEnv, path_suffix: &str) {
    env.fault(FaultRule {
        target: FaultTarget::Matching {
            operation: Operation::Sync,
            path_suffix: path_suffix.into(),
            skipped: 0,
        },
        error: FaultError::Io,
        sticky: false,
        partial: false,
    });
}

/// After a sync has failed, the bytes are still in the page cache, and a later sync succeeds without writing them.
/// Recovery used to take what it read for what it would find after the next power cut.
#[test]
fn a_log_whose_sync_failed_is_made_durable_when_the_store_is_opened_again() {
    let env = SimEnv::new(SimConfig::default());
    let open = |env| Db::builder(Path::new("/db")).env(env).options(tiny()).open().unwrap();
    let db = open(env.clone());
    db.put("before", "").unwrap();
    fail_sync(&env, ".wal");
    assert!(db.sync().is_err());
    assert_eq!(db.put("refused", "").unwrap_err().kind(), ErrorKind::Poisoned);
    drop(db);
    env.clear_faults();

    let db = open(env.clone());
    assert!(db.contains("before").unwrap());
    let mut batch = WriteBatch::new();
    batch.put("after", "");
    db.write_with(batch, Durability::Synced).unwrap();
    let db = open(env.crash(Survival::Nothing));
    assert!(db.contains("before").unwrap() && db.contains("after").unwrap());
}
