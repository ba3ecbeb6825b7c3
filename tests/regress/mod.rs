//! Regression tests. Each states what must hold, and the fault that a bug there had.
//!
//! A test that tries several seeds tries only one if `TERRACE_SEED` names it.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

mod compact;
mod jobs;
mod keyspaces;
mod log;
mod opening;

use std::path::PathBuf;
use std::sync::Arc;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimEnv};
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, Durability, Options, Result, WriteBatch};
use terrace_torture::TreeParts as _;

/// Options under which a memtable is full after a few hundred entries.
fn tiny() -> Options {
    let tree = terrace_torture::tiny().tree.with(|tree| {
        *tree.level1_bytes() = 32 << 10;
        *tree.l0_trigger() = 4;
        tree.governor().l0_slow = 12;
        tree.governor().l0_stop = 24;
    });
    Options { memtable_bytes: 32 << 10, wal_bytes_max: 1 << 20, tree, ..terrace_torture::tiny() }
}

fn open(env: &Arc<SimEnv>) -> Result<Db> {
    Db::builder("/db").env(env.clone()).options(tiny()).open()
}

fn put_synced(db: &Db, key: &str, value: &[u8]) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    db.write_with(batch, Durability::Synced)
}

fn spawn(env: &Arc<SimEnv>, body: impl FnOnce() + Send + 'static) -> Thread {
    env.spawn("test", Priority::Normal, Box::new(body)).unwrap()
}

/// A call of `operation` on a file whose name ends with `path_suffix` fails: the next one, and once; fields change that.
fn fault(operation: Operation, path_suffix: &str, error: FaultError) -> FaultRule {
    let target = FaultTarget::Matching { operation, path_suffix: path_suffix.into(), skipped: 0 };
    FaultRule { target, error, sticky: false, partial: false }
}

/// The seeds to try: the first `count`, or the one that the environment asks for.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("TERRACE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("TERRACE_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..count,
    }
}

/// The files of the store whose names end or start so.
fn files(env: &SimEnv, part: &str) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part));
    env.files().into_iter().map(|(path, _)| path).filter(named).collect()
}
