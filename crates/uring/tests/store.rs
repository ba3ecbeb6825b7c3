//! The engine on the environment with direct I/O, on the file system of temporary files.

use std::path::Path;
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::posix::PosixEnv;
use terrace::{Db, Options, WriteBatch};
use terrace_uring::UringEnv;

const KEYS: u64 = 60_000;

/// The environment, or none with a word about it where the kernel has no io_uring.
fn uring() -> Option<Arc<UringEnv>> {
    let refused = |refused: &std::io::Error| println!("not tested, for there is no io_uring: {refused}");
    UringEnv::new(PosixEnv::shared()).inspect_err(refused).ok()
}

fn open(dir: &Path, env: Arc<dyn Env>, devices: &[&Path]) -> Db {
    let options = Options { memtable_bytes: 2 << 20, memory_bytes: Some(32 << 20), ..Options::default() };
    let builder = Db::builder(dir).env(env).options(options);
    devices.iter().fold(builder, |builder, device| builder.device(device)).open().unwrap()
}

/// Keys in no order; each round has other values.
fn load(db: &Db, round: u64) {
    let mut batch = WriteBatch::new();
    for n in 0..KEYS {
        let key = n * 48_271 % KEYS;
        batch.put(name(key), value(key, round));
        if batch.len() == 500 {
            db.write(std::mem::take(&mut batch)).unwrap();
        }
    }
    db.write(batch).unwrap();
}

fn value(key: u64, round: u64) -> Vec<u8> {
    // A large one here and there, which is written from where it lies.
    let length = if key % 9_973 == 1 { 3_000_000 } else { 200 };
    (key * 31 + round).to_le_bytes().repeat(length / 8)
}

fn check(db: &Db, round: u64) {
    let mut expected = 0;
    for entry in db.iter().unwrap() {
        let (key, found) = entry.unwrap();
        assert_eq!(key[..], *name(expected).as_bytes());
        assert!(found[..] == value(expected, round)[..], "value of {expected}");
        expected += 1;
    }
    assert_eq!(expected, KEYS);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(report.packs > 0);
}

fn name(key: u64) -> String {
    format!("{key:08}")
}

/// Loads, reopens with either environment, and compares all.
fn load_reopen_verify(dir: &Path, devices: &[&Path]) {
    let Some(env) = uring() else { return };
    let db = open(dir, env.clone(), devices);
    for round in 0..2 {
        load(&db, round);
    }
    check(&db, 1);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    check(&db, 1);
    let stats = db.stats();
    let written = env.written();
    println!("{written:?}");
    let packs = stats.written.flush + stats.written.compaction + stats.written.rewrite;
    let all = written.direct_bytes + written.buffered_bytes;
    assert!(all > 0 && all <= packs, "{written:?} of {packs}");
    db.close().unwrap();
    let db = open(dir, PosixEnv::shared(), &[]);
    check(&db, 1);
    load(&db, 2);
    db.close().unwrap();
    // Files that were written through the page cache are recycled and written past it.
    let db = open(dir, env, &[]);
    check(&db, 2);
    load(&db, 3);
    db.compact().unwrap();
    check(&db, 3);
    db.close().unwrap();
}

#[test]
fn a_store_is_loaded_reopened_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    load_reopen_verify(&dir.path().join("db"), &[]);
}

#[test]
fn a_store_over_two_devices_is_loaded_reopened_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    load_reopen_verify(&dir.path().join("db"), &[&dir.path().join("second")]);
}

#[test]
fn a_checkpoint_is_whole() {
    let Some(env) = uring() else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), env.clone(), &[]);
    load(&db, 5);
    db.checkpoint(dir.path().join("copy")).unwrap();
    load(&db, 6);
    let copy = open(&dir.path().join("copy"), env, &[]);
    check(&copy, 5);
}
