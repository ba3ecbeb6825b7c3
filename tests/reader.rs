//! Tests of reading beside a writer: the reader changes nothing, and sees one moment.
//!
//! The writer counts (see `terrace_torture::counter`), so that each moment shows everything that must be there.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::env::{Env, Priority, Thread};
use terrace::{Db, ErrorKind, KeyspaceOptions, Snapshot, WriteBatch};
use terrace_torture::client::{DIR, open};
use terrace_torture::counter::{moment, write_batch};
use terrace_torture::{Replay, schedules, tiny};

/// Set in a child: the directory to write.
const CHILD_DIR: &str = "TERRACE_READER_CHILD_DIR";

fn read_on(env: &Arc<SimEnv>) -> terrace::Result<Db> {
    Db::builder(DIR).env(env.clone()).options(tiny()).read_only().open()
}

/// Threads take turns often.
fn interleaved(seed: u64) -> SimConfig {
    SimConfig { seed, preemption_percent: 60, ..SimConfig::default() }
}

/// A thread that writes batches from 2 on.
struct Writing {
    acknowledged: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Thread,
}

impl Writing {
    fn start(env: &Arc<SimEnv>, db: &Db) -> Self {
        write_batch(db, 1).unwrap();
        let (acknowledged, over) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
        let (writer, told, stop) = (db.clone(), acknowledged.clone(), over.clone());
        let body = move || {
            for n in 2.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                write_batch(&writer, n).unwrap();
                told.store(n, Ordering::Relaxed);
            }
        };
        let thread = env.spawn("writer", Priority::Normal, Box::new(body)).unwrap();
        Self { acknowledged, over, thread }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join();
    }
}

#[test]
fn a_reader_beside_a_writer_sees_a_prefix_with_all_that_was_acknowledged() {
    for seed in 0..schedules(2, 6) {
        let _replay = Replay(format!("seed {seed}"));
        let (refreshed, compactions) = SimEnv::run(interleaved(seed), |env| {
            let db = open(&env, &tiny()).unwrap();
            let writing = Writing::start(&env, &db);
            let mut reader = read_on(&env).unwrap();
            let mut older: Vec<(Db, Snapshot, u64)> = Vec::new();
            let mut last = 0;
            for _ in 0..20 {
                env.sleep(Duration::from_millis(5));
                let before = writing.acknowledged();
                reader.refresh().unwrap();
                let snapshot = reader.snapshot();
                let found = moment(&reader, &snapshot);
                assert!(found >= before && found >= last, "{found} after {before} and {last}");
                last = found;
                older.push((reader.clone(), snapshot, found));
            }
            writing.end();
            db.compact().unwrap();
            // What the writer has removed since is still there for those that hold on to it.
            for (reader, snapshot, found) in &older {
                assert_eq!(moment(reader, snapshot), *found);
            }
            (last, db.stats().compaction.jobs)
        });
        assert!(refreshed > 100 && compactions > 3, "{refreshed} batches, {compactions} compactions");
    }
}

/// Dead files are recycled, but not those that a reader holds, even if it has not read a block of them yet.
#[test]
fn a_reader_finds_later_what_its_writer_would_have_written_over() {
    for seed in 0..schedules(2, 4) {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(interleaved(seed), |env| {
            let db = open(&env, &tiny()).unwrap();
            let writing = Writing::start(&env, &db);
            let (mut readers, mut kept) = (Vec::new(), 0);
            for n in 0..24 {
                env.sleep(Duration::from_millis(5));
                let before = writing.acknowledged();
                let reader = read_on(&env).unwrap();
                // Most readers let go at once, so that there are files to recycle.
                if n % 4 == 0 {
                    readers.push((reader, before..=writing.acknowledged() + 1));
                }
                let files = env.files();
                kept += files
                    .iter()
                    .filter(|(path, _)| path.extension().is_some_and(|is| is == "recycled"))
                    .count();
            }
            writing.end();
            db.compact().unwrap();
            for (reader, possible) in &readers {
                let found = moment(reader, &reader.snapshot());
                assert!(possible.contains(&found), "{found} is not in {possible:?}");
                assert!(reader.verify().unwrap().problems.is_empty());
            }
            assert!(kept > 0, "{kept} recycled files were seen");
        });
    }
}

/// Ingests and keyspaces are in the manifest, what is put in the log: a reader looks at one after the other.
#[test]
fn a_reader_that_sees_a_write_sees_what_was_ingested_dropped_and_set_before_it() {
    for seed in 0..schedules(4, 12) {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(interleaved(seed), move |env| {
            let db = open(&env, &tiny()).unwrap();
            let writer = db.clone();
            let space = |n: usize| format!("space {n}");
            (0..60).for_each(|n| drop(db.keyspace(&space(n)).unwrap()));
            let living = |n: usize| KeyspaceOptions {
                ttl: Some(Duration::from_secs(100 + n as u64)),
                ..KeyspaceOptions::default()
            };
            let aging = db.keyspace_with("aging", living(0)).unwrap();
            let is_altered = seed % 2 == 0;
            let write = move || {
                for n in 0..60 {
                    let mut ingest = writer.ingest().unwrap();
                    ingest.push(format!("ingested {n:04}"), "").unwrap();
                    ingest.finish().unwrap();
                    writer.put("ingests", n.to_string()).unwrap();
                    // The manifest tells the keys, and is soon written anew.
                    let mut ingest = writer.keyspace(&space(n)).unwrap().ingest().unwrap();
                    ingest.push("k".repeat(60_000), "").unwrap();
                    ingest.finish().unwrap();
                    writer.drop_keyspace(&space(n)).unwrap();
                    writer.put("drops", n.to_string()).unwrap();
                    // Where there was none, a manifest that is written anew tells of none.
                    if is_altered {
                        aging.set_options(&living(n + 1)).unwrap();
                        writer.put("times", n.to_string()).unwrap();
                    }
                }
            };
            let writing = env.spawn("writer", Priority::Normal, Box::new(write)).unwrap();
            for _ in 0..60 {
                // Too quick a writer may keep readers out.
                let Ok(reader) = read_on(&env) else { continue };
                let Some(told) = reader.get("ingests").unwrap() else { continue };
                let told: usize = std::str::from_utf8(&told).unwrap().parse().unwrap();
                let found = reader.prefix("ingested ").unwrap().count();
                assert!(
                    found > told,
                    "{found} ingests, of which number {told} came before a write that is seen"
                );
                let Some(told) = reader.get("drops").unwrap() else { continue };
                let told: usize = std::str::from_utf8(&told).unwrap().parse().unwrap();
                let found = reader.existing_keyspace(&space(told)).unwrap();
                assert!(found.is_none(), "keyspace {told} was dropped before a write that is seen");
                let Some(told) = reader.get("times").unwrap() else { continue };
                let told: usize = std::str::from_utf8(&told).unwrap().parse().unwrap();
                let found = reader.existing_keyspace("aging").unwrap().unwrap().options().ttl;
                assert!(
                    found > living(told).ttl,
                    "{found:?}, though {told} changes came before a write that is seen"
                );
            }
            writing.join();
        });
    }
}

#[test]
fn every_write_of_a_reader_is_refused_and_nothing_is_changed() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        write_batch(&db, 1).unwrap();
        db.wait_idle().unwrap();
        let calls = env.mutations();
        let mut reader = read_on(&env).unwrap();
        let other = reader.existing_keyspace("other").unwrap().unwrap();
        for refused in [
            reader.put("key", "value"),
            reader.delete("key"),
            reader.write(WriteBatch::new()),
            reader.sync(),
            reader.flush(),
            reader.compact(),
            reader.keyspace("new").map(drop),
            reader.drop_keyspace("other"),
            other.put("key", "value"),
            other.compact_range(..),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        assert!(reader.verify().unwrap().problems.is_empty());
        reader.wait_idle().unwrap();
        reader.refresh().unwrap();
        reader.close().unwrap();
        assert_eq!(env.mutations(), calls);
    });
}

#[test]
fn a_directory_that_cannot_be_written_is_named_and_can_be_read() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        (1..200).for_each(|n| write_batch(&db, n).unwrap());
        db.close().unwrap();
        use Operation::{Create, CreateDir, Remove, Rename, SetLen, SyncDir, WriteAt};
        for operation in [Create, CreateDir, Remove, Rename, SetLen, SyncDir, WriteAt] {
            let target = FaultTarget::Matching { operation, path_suffix: String::new(), skipped: 0 };
            env.fault(FaultRule { target, error: FaultError::ReadOnly, sticky: true, partial: false });
        }
        let error = open(&env, &tiny()).unwrap_err();
        assert_eq!((error.kind(), error.file().is_some()), (ErrorKind::ReadOnly, true), "{error}");
        let reader = read_on(&env).unwrap();
        assert_eq!(moment(&reader, &reader.snapshot()), 199);
        let none = Db::builder("/elsewhere").env(env.clone()).open().unwrap_err();
        assert_eq!(none.kind(), ErrorKind::ReadOnly);
    });
}

/// Damage is damage, also where nobody but a reader looks.
#[test]
fn a_reader_of_a_damaged_store_is_told() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        (1..200).for_each(|n| write_batch(&db, n).unwrap());
        // What is dead by now is gone then.
        db.wait_idle().unwrap();
        db.close().unwrap();
        let pack =
            env.files().into_iter().find(|(path, _)| path.to_string_lossy().ends_with(".pack")).unwrap().0;
        env.truncate(&pack, 100).unwrap();
        let error = read_on(&env).unwrap_err();
        assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(pack.as_path())));
    });
}

/// What the child process runs: a writer without end. In the run of the tests it does nothing.
#[test]
fn child() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let db = Db::builder(dir).options(tiny()).open().unwrap();
    for n in 1.. {
        write_batch(&db, n).unwrap();
        println!("\nacknowledged {n}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn a_reader_in_another_process_keeps_up_with_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["reader::child", "--exact", "--nocapture"])
        .env(CHILD_DIR, dir.path())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = lines.filter_map(|line| line.unwrap().strip_prefix("acknowledged ").map(str::to_owned));
    let mut acknowledged = move || -> u64 { told.nth(60).unwrap().parse().unwrap() };
    let mut before = acknowledged();
    let mut reader = Db::open_read_only(dir.path()).unwrap();
    let mut moments = BTreeMap::new();
    for _ in 0..15 {
        let found = moment(&reader, &reader.snapshot());
        assert!(found >= before, "{found} after {before}");
        moments.insert(found, (reader.clone(), reader.snapshot()));
        before = acknowledged();
        reader.refresh().unwrap();
    }
    let copies = tempfile::tempdir().unwrap();
    let copy = |found: u64| copies.path().join(found.to_string());
    // While the writer goes on, and the moments are past.
    for (found, (reader, _)) in moments.iter().step_by(5) {
        reader.checkpoint(copy(*found)).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(Db::open(Path::new(dir.path())).unwrap());
    for (at, (found, (reader, snapshot))) in moments.into_iter().enumerate() {
        assert_eq!(moment(&reader, &snapshot), found);
        if at % 5 == 0 {
            let copy = Db::builder(copy(found)).options(tiny()).must_exist().open().unwrap();
            assert_eq!(moment(&copy, &copy.snapshot()), found);
            assert!(copy.verify().unwrap().problems.is_empty());
        }
    }
}
