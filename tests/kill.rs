//! Kills: a process that is shot at any moment loses nothing that it had acknowledged.
//!
//! The test runs itself as a child, which writes numbered records and tells each one's number once the store has taken
//! it. The parent kills it after a seeded number of acknowledgements or a seeded while, opens the store, and compares
//! all of it with the state after the record that the store says is its last: that one was acknowledged, or is the one
//! that was under way. Then the next child goes on in the same directory.
//!
//! `TERRACE_KILLS=1000` kills more often than the default.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]
#![expect(clippy::disallowed_methods, reason = "the parent of a process that it kills lives in real time")]

mod rot;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rot::{Random, Seed, number, tiny};
use terrace::{Compression, Db, Durability, ErrorKind, KeyspaceOptions, WriteBatch};

/// Set in a child: the directory of its store.
const CHILD_DIR: &str = "TERRACE_KILL_CHILD_DIR";
/// Set in a child: the seed of the history.
const CHILD_SEED: &str = "TERRACE_KILL_CHILD_SEED";

/// Key whose value is the number of the last record, in the default keyspace.
const MARKER: &str = "~record";
/// The keyspace that comes and goes.
const PASSING: &str = "passing";
const KEYSPACES: [&str; 3] = ["default", "packed", PASSING];

/// What a record does.
enum Record {
    /// A batch over the keyspaces: (keyspace, key, value or removal).
    Batch(Vec<(usize, String, Option<Vec<u8>>)>, Durability),
    /// Drops the passing keyspace and creates it anew.
    Renew,
}

/// Record `n` of the history: the same for parent and child.
fn record(seed: u64, n: u64) -> Record {
    let mut random = Random(seed ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d));
    if n % 150 == 75 {
        return Record::Renew;
    }
    let mut ops = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (keyspace, key) = (random.below(3) as usize, format!("key{:04}", random.below(700)));
        let value =
            (random.below(4) > 0).then(|| format!("{n}:").into_bytes().repeat(1 + random.below(40) as usize));
        ops.push((keyspace, key, value));
    }
    let durability = if random.below(20) == 0 { Durability::Synced } else { Durability::Buffered };
    Record::Batch(ops, durability)
}

type State = [BTreeMap<String, Vec<u8>>; 3];

fn apply(state: &mut State, record: Record) {
    match record {
        Record::Renew => state[2].clear(),
        Record::Batch(ops, _) => {
            for (keyspace, key, value) in ops {
                match value {
                    Some(value) => drop(state[keyspace].insert(key, value)),
                    None => drop(state[keyspace].remove(&key)),
                }
            }
        }
    }
}

fn open(dir: &Path) -> Db {
    Db::builder(dir).options(tiny()).open().unwrap()
}

fn last_record(db: &Db) -> u64 {
    db.get(MARKER).unwrap().map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// What the child runs. In the parent's own run of the tests it does nothing.
#[test]
fn child() {
    let (Ok(dir), Some(seed)) = (std::env::var(CHILD_DIR), number(CHILD_SEED)) else { return };
    let db = open(Path::new(&dir));
    let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    let packed = db.keyspace_with(KEYSPACES[1], lz4).unwrap();
    let mut passing = db.keyspace(PASSING).unwrap();
    let mut out = std::io::stdout();
    for n in last_record(&db) + 1.. {
        let mut batch = WriteBatch::new();
        let mut asked = Durability::Buffered;
        match record(seed, n) {
            Record::Renew => {
                db.drop_keyspace(PASSING).unwrap();
                passing = db.keyspace(PASSING).unwrap();
            }
            Record::Batch(ops, durability) => {
                asked = durability;
                for (keyspace, key, value) in ops {
                    let keyspace = [None, Some(&packed), Some(&passing)][keyspace];
                    match (keyspace, value) {
                        (None, Some(value)) => batch.put(key, value),
                        (None, None) => batch.delete(key),
                        (Some(keyspace), Some(value)) => batch.put_in(keyspace, key, value),
                        (Some(keyspace), None) => batch.delete_in(keyspace, key),
                    };
                }
            }
        }
        batch.put(MARKER, n.to_string());
        db.write_with(batch, asked).unwrap();
        // The parent is gone when nobody reads.
        if out.write_all(format!("ack {n}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn start_child(dir: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD_DIR, dir)
        .env(CHILD_SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a child until it has acknowledged so many records or the time is over, kills it, and returns the number of the
/// last record that it acknowledged, if any.
fn run_and_kill(dir: &Path, seed: u64, when: Kill) -> Option<u64> {
    let mut child = start_child(dir, seed);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = None;
    let mut next = |lines: &mut dyn Iterator<Item = std::io::Result<String>>| {
        let line = lines.next()?.unwrap();
        // The test harness says something, too, and does not end its line.
        if let Some((_, n)) = line.split_once("ack ") {
            acknowledged = Some(n.parse().unwrap());
        }
        Some(())
    };
    match when {
        Kill::AfterAcks(acks) => {
            // Two lines come from the test harness.
            for _ in 0..acks + 2 {
                next(&mut lines).expect("the child goes on until it is killed");
            }
        }
        Kill::AfterTime(time) => std::thread::sleep(time),
    }
    child.kill().unwrap();
    // What the pipe still holds was acknowledged, too, but for a line cut short: kills come between system calls.
    while next(&mut lines).is_some() {}
    let status = child.wait().unwrap();
    assert!(!status.success() && status.code().is_none(), "the child ended by itself: {status}");
    acknowledged
}

#[derive(Debug)]
enum Kill {
    AfterAcks(u64),
    AfterTime(Duration),
}

#[test]
fn every_acknowledged_write_survives_kills() {
    let seed = Seed::new(1);
    let mut random = seed.random();
    let kills = number("TERRACE_KILLS").unwrap_or(40);
    let dir = tempfile::tempdir().unwrap();
    let (mut state, mut at) = (State::default(), 0);
    let (mut flushes, mut records) = (0, 0);
    for round in 0..kills {
        let when = match random.below(4) {
            // Often in the middle of opening.
            0 => Kill::AfterTime(Duration::from_micros(random.below(20_000))),
            _ => Kill::AfterAcks(random.below(900)),
        };
        let context = format!("round {round}, {when:?}");
        let acknowledged = run_and_kill(dir.path(), seed.0, when).unwrap_or(at);
        assert!(acknowledged >= at, "{context}: record {acknowledged} again, after {at}");
        if random.below(4) == 0 && acknowledged > 0 {
            let reader = Db::builder(dir.path()).options(tiny()).read_only().open().unwrap();
            check_last(last_record(&reader), acknowledged, &context);
        }
        let db = open(dir.path());
        let last = last_record(&db);
        check_last(last, acknowledged, &context);
        records += last - at;
        while at < last {
            at += 1;
            apply(&mut state, record(seed.0, at));
        }
        check_state(&db, &state, matches!(record(seed.0, at + 1), Record::Renew), &context);
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{context}: {report:?}");
        flushes += u64::from(report.packs > 0);
        if random.below(3) == 0 {
            // Otherwise the parent's handle goes without a word, too.
            db.close().unwrap();
        }
    }
    println!("{kills} kills, {records} records");
    assert!(kills < 10 || flushes > kills / 2 && records > kills * 100, "{records} records, {flushes}");
}

fn check_last(last: u64, acknowledged: u64, context: &str) {
    let right = last == acknowledged || last == acknowledged + 1;
    assert!(right, "{context}: the last record is {last}, {acknowledged} was acknowledged");
}

/// Compares the whole store with `state`. While a renewal is under way, the passing keyspace may be missing, or still
/// full, or empty already.
fn check_state(db: &Db, state: &State, renewing: bool, context: &str) {
    for (name, expected) in KEYSPACES.iter().zip(state) {
        let found: BTreeMap<String, Vec<u8>> = match db.existing_keyspace(name).unwrap() {
            Some(keyspace) => keyspace
                .iter()
                .unwrap()
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.to_vec()))
                .filter(|(key, _)| key != MARKER)
                .collect(),
            None => BTreeMap::new(),
        };
        if renewing && *name == PASSING && found.is_empty() {
            continue;
        }
        assert!(found == *expected, "{context}: {name} is not as it was after the last record");
    }
}

#[test]
fn a_killed_process_leaves_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start_child(dir.path(), 7);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("ack ") {}
    assert_eq!(Db::open(dir.path()).unwrap_err().kind(), ErrorKind::Busy);
    child.kill().unwrap();
    child.wait().unwrap();
    Db::open(dir.path()).unwrap();
}
