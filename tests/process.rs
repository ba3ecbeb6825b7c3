//! Tests of what stores leave behind in their process: memory, descriptors, threads.
//!
//! These tests count the resources of the whole process. So they need a process of their own, and take turns in it.
//!
//! `TERRACE_FULL=1` makes the hundred thousand operations on keyspaces a million.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use terrace::Db;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::env::sync::Mutex;
use terrace_torture::client::open;
use terrace_torture::{Rng, switched_on, tiny};

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Creates, drops, puts and gets in small keyspaces, of which some two hundred live at a time.
fn keyspace_operations(db: &Db, count: usize, rng: &mut Rng, model: &mut BTreeMap<String, usize>) {
    for n in 0..count {
        let name = format!("space {}", rng.below(200));
        match rng.below(4) {
            0 if model.contains_key(&name) => {
                db.drop_keyspace(&name).unwrap();
                model.remove(&name);
            }
            0 | 1 => {
                db.keyspace(&name).unwrap().put("last", n.to_string()).unwrap();
                model.insert(name, n);
            }
            _ => {
                let space = db.existing_keyspace(&name).unwrap();
                let found = space.and_then(|space| space.get("last").unwrap());
                let expected = model.get(&name).map(usize::to_string);
                assert_eq!(found.as_deref(), expected.as_deref().map(str::as_bytes));
            }
        }
    }
}

#[test]
fn keyspaces_come_and_go_without_a_trace() {
    let _alone = ALONE.lock();
    let count = if switched_on("TERRACE_FULL") { 1_000_000 } else { 100_000 };
    let env = SimEnv::new(SimConfig::default());
    let db = open(&env, &tiny()).unwrap();
    let (mut rng, mut model) = (Rng::new(1), BTreeMap::new());
    let mut part = || {
        let calls = env.calls();
        keyspace_operations(&db, count / 4, &mut rng, &mut model);
        db.wait_idle().unwrap();
        (env.calls() - calls, env.used_bytes(Path::new("/")), resident_bytes())
    };
    let parts: Vec<(u64, u64, u64)> = (0..4).map(|_| part()).collect();
    let (first, last) = (parts[0], parts[3]);
    assert!(last.0 < first.0 * 2, "calls grow: {parts:?}");
    assert!(last.1 < 2 * first.1 + (4 << 20), "files grow: {parts:?}");
    // A keyspace takes 64 KiB while it lives; tens of thousands have come and gone.
    assert!(last.2 < first.2 + (128 << 20), "memory grows: {parts:?}");
    db.close().unwrap();
    let db = open(&env, &tiny()).unwrap();
    assert_eq!(db.keyspaces().len(), model.len() + 1);
    for (name, n) in &model {
        let space = db.existing_keyspace(name).unwrap().unwrap();
        assert_eq!(space.get("last").unwrap().unwrap(), n.to_string().as_str());
    }
}

#[test]
fn keyspaces_that_are_gone_hold_no_descriptors() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let db = Db::builder(dir.path()).options(tiny()).open().unwrap();
    let mut rng = Rng::new(2);
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut model = BTreeMap::new();
        keyspace_operations(&db, 1500, &mut rng, &mut model);
        db.flush().unwrap();
        model.into_keys().for_each(|name| db.drop_keyspace(&name).unwrap());
        db.wait_idle().unwrap();
        held.push(descriptors());
    }
    assert!(held[4] <= held[0] + 8, "{held:?}");
}

#[test]
fn compaction_threads_come_and_go() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let compaction_threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| ["terrace-comp-3\n", "terrace-comp-4\n"].contains(&name.as_str())).count()
    };
    let until = |count: usize| {
        let is_so = common::eventually(|| compaction_threads() == count);
        assert!(is_so, "{} threads instead of {count}", compaction_threads());
    };
    let db = Db::builder(dir.path()).options(common::tiny()).open().unwrap();
    for _ in 0..2 {
        db.set_options(|options| options.background_threads = Some(5)).unwrap();
        until(2);
        db.set_options(|options| options.background_threads = Some(1)).unwrap();
        until(0);
    }
    (0..500).for_each(|n| db.put(format!("{n}"), vec![1; 200]).unwrap());
    db.compact().unwrap();
    db.close().unwrap();
}

#[test]
fn many_opened_in_a_row_end_their_threads() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let threads = || {
        std::fs::read_dir("/proc/self/task").map_or(0, |tasks| {
            tasks
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
                .filter(|name| name.starts_with("terrace-") && name.contains("reclaim"))
                .count()
        })
    };
    let before = threads();
    for round in 0..30 {
        let db = Db::builder(dir.path()).options(common::tiny()).open().unwrap();
        for n in 0..100 {
            db.put(format!("{n}"), vec![round; 200]).unwrap();
        }
        // Busy with a flush or a compaction, or with nothing.
        if round % 3 == 0 {
            db.flush().unwrap();
        }
        drop(db);
    }
    // A thread that has been joined may still be on its way out.
    let is_so = common::eventually(|| threads() <= before);
    assert!(is_so, "{} threads after {before}", threads());
}

/// Beside a store with a budget of `mib`, what `work` returns; and what was resident before.
#[cfg(target_os = "linux")]
fn beside_budget(
    mib: u64,
    work: impl FnOnce(&Db) -> Vec<terrace_torture::memory::Step>,
) -> (u64, Vec<(&'static str, u64)>) {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let options = terrace::Options {
        memory_bytes: Some(mib << 20),
        background_threads: Some(1),
        ..terrace::Options::default()
    };
    let db = Db::builder(dir.path()).options(options).open().unwrap();
    let before = terrace_torture::memory::resident();
    let steps = work(&db);
    db.close().unwrap();
    (before, steps)
}

/// What is resident besides what anybody counts: stacks, tables of pages, a heap's own.
#[cfg(target_os = "linux")]
const SLACK_BYTES: u64 = 12 << 20;

/// What `Options::memory_bytes` promises: the budget, and on top of it what callers hold and what jobs read.
#[cfg(target_os = "linux")]
#[test]
fn values_of_tens_of_megabytes_stay_within_what_is_promised() {
    use terrace_torture::memory::{LARGEST_VALUE, READERS, values};
    let (before, steps) = beside_budget(64, |db| values(db, 12));
    for (step, most) in &steps {
        let on_top = match *step {
            // The caller's buffer, the batch of its put, and a job that reads a block of each of four tables.
            "puts" => 6 * LARGEST_VALUE,
            "flush" | "compaction" => 4 * LARGEST_VALUE,
            // Each holds a value; an iterator has a block besides.
            "lookups" => READERS * LARGEST_VALUE,
            _ => 2 * READERS * LARGEST_VALUE,
        };
        let promised = before + (64 << 20) + on_top + SLACK_BYTES;
        assert!(*most <= promised, "{step}: {most} bytes of {promised}; {steps:?}");
    }
}

/// Recovery makes memtables of the log, which it reads piece by piece.
#[cfg(target_os = "linux")]
#[test]
fn an_opening_with_a_long_log_takes_no_more_than_the_budget() {
    use terrace_torture::memory::opening;
    const BUDGET: u64 = 64 << 20;
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let before = terrace_torture::memory::resident();
    let steps = opening(dir.path(), BUDGET * 3 / 4, BUDGET);
    for (step, most) in &steps {
        let promised = before + BUDGET + SLACK_BYTES;
        assert!(*most <= promised, "{step}: {most} bytes of {promised}; {steps:?}");
    }
}

/// A batch that is larger than memtables may be has one memtable for itself, and nothing is a copy of it besides.
#[cfg(target_os = "linux")]
#[test]
fn a_batch_of_many_rows_is_in_memory_twice() {
    use terrace_torture::memory::{ROW_BYTES, batch};
    const ROWS: u64 = 400_000;
    let (before, steps) = beside_budget(16, |db| batch(db, ROWS));
    let (made, written, next) = (steps[0].1, steps[1].1, steps[2].1);
    let memtable = ROWS * (ROW_BYTES + 60);
    let promised = made + (16 << 20) + memtable - (13 << 20) + SLACK_BYTES;
    assert!(written <= promised, "{written} bytes of {promised}, {before} before; {steps:?}");
    assert!(next <= before + (16 << 20) + memtable + SLACK_BYTES, "{next} bytes, {before} before; {steps:?}");
}

/// What a transaction has gathered becomes its batch: nothing is there twice but in the memtable.
#[cfg(target_os = "linux")]
#[test]
fn a_transaction_of_many_rows_is_no_copy_of_itself() {
    use terrace_torture::memory::{ROW_BYTES, transaction};
    const ROWS: u64 = 300_000;
    let (before, steps) = beside_budget(16, |db| transaction(db, ROWS));
    let (gathered, committed) = (steps[0].1, steps[1].1);
    let promised = gathered + (16 << 20) + ROWS * (ROW_BYTES + 60) - (13 << 20) + SLACK_BYTES;
    assert!(committed <= promised, "{committed} bytes of {promised}, {before} before; {steps:?}");
}
