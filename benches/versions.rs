//! What a key with many versions costs: a counter that was written 10 to 1,000,000 times and lies between two other keys,
//! all of its versions in the memtable, or in one table; read as it is now, and through the oldest snapshot.
//!
//! `cargo bench --bench versions`; `cargo bench --bench versions -- 1000` for as many versions alone, `-- counters` for
//! eight threads that each update a counter of their own beside one that puts something else. Every version has a snapshot, so that
//! flushes keep it. A figure is the median of up to a thousand rounds. What the figures were is in docs/benchmarks/versions.md.
#![allow(missing_docs, reason = "a program, not a library")]

use std::hint::black_box;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use terrace::env::posix::PosixEnv;
use terrace::{Db, Isolation, Options, Result, Snapshot, TransactionOptions};

const VERSIONS: [u64; 4] = [10, 1000, 100_000, 1_000_000];
const VALUE: [u8; 16] = [7; 16];

/// Rounds of a measurement, and how long they take together at most.
const ROUNDS_MAX: usize = 1000;
const TIME_MAX: Duration = Duration::from_millis(500);

const THREADS: usize = 8;
const COUNTED: Duration = Duration::from_secs(4);
/// Versions that each counter has at first.
const COUNTED_VERSIONS: u64 = 25_000;

fn main() -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    for versions in VERSIONS.into_iter().filter(|versions| is_asked(&versions.to_string())) {
        for flushed in [false, true] {
            let hot = Hot::new(versions, flushed)?;
            hot.measure_reads(None)?;
            hot.measure_reads(Some(&hot.oldest))?;
            hot.measure_writes()?;
        }
    }
    if is_asked("counters") { counters() } else { Ok(()) }
}

/// A store with one hot key.
struct Hot {
    _dir: TempDir,
    db: Db,
    oldest: Snapshot,
    _others: Vec<Snapshot>,
    what: String,
}

impl Hot {
    fn new(versions: u64, flushed: bool) -> Result<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options { memtable_bytes: 1 << 30, memory_bytes: Some(4 << 30), ..Options::default() };
        let db = Db::builder(dir.path()).options(options).open()?;
        db.put("a", VALUE)?;
        db.put("z", VALUE)?;
        db.put("hot", VALUE)?;
        let oldest = db.snapshot();
        let mut others = Vec::new();
        for _ in 1..versions {
            db.put("hot", VALUE)?;
            others.push(db.snapshot());
        }
        let place = if flushed { "table" } else { "memtable" };
        if flushed {
            let clock = PosixEnv::shared();
            let start = clock.now();
            db.flush()?;
            tell(&format!("{versions} versions, to a table"), "flush", clock.now() - start);
        }
        Ok(Self { _dir: dir, db, oldest, _others: others, what: format!("{versions} versions, {place}") })
    }

    fn measure_reads(&self, snapshot: Option<&Snapshot>) -> Result<()> {
        let newest = self.db.snapshot();
        let at = snapshot.unwrap_or(&newest);
        let what = match snapshot {
            None => self.what.clone(),
            Some(_) => format!("{}, oldest snapshot", self.what),
        };
        let found = |entry: Option<Result<_>>| entry.transpose().map(|entry| assert!(entry.is_some()));
        let behind = (Bound::Excluded("hot"), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Excluded("hot"));
        measure(&what, "get", || at.get("hot").map(|value| assert!(value.is_some())))?;
        measure(&what, "multi_get", || at.multi_get(["a", "hot", "z"]).map(|found| drop(black_box(found))))?;
        measure(&what, "next", || found(at.range("b"..)?.next()))?;
        measure(&what, "next_back", || found(at.range(.."y")?.next_back()))?;
        measure(&what, "next past it", || found(at.range(behind)?.next()))?;
        measure(&what, "next_back past it", || found(at.range(before)?.next_back()))?;
        measure(&what, "all three forward", || {
            assert!(at.iter()?.count() == 3);
            Ok(())
        })?;
        measure(&what, "all three backward", || {
            assert!(at.iter()?.rev().count() == 3);
            Ok(())
        })
    }

    fn measure_writes(&self) -> Result<()> {
        let db = &self.db;
        // The one behind a flush reads the versions in the table, until its own lies before them.
        measure(&self.what, "commit over a range", || {
            let mut transaction =
                db.transaction_with(TransactionOptions { isolation: Isolation::Serializable });
            assert!(transaction.range("b".."y")?.next().is_some());
            transaction.put("other", VALUE);
            transaction.commit()
        })?;
        measure(&self.what, "update", || db.update("hot", |_| Some(VALUE)))
    }
}

/// Runs `round` again and again, and tells what one takes.
fn measure(what: &str, name: &str, mut round: impl FnMut() -> Result<()>) -> Result<()> {
    let clock = PosixEnv::shared();
    let begin = clock.now();
    let mut times = Vec::new();
    while times.len() < 3 || times.len() < ROUNDS_MAX && clock.now() - begin < TIME_MAX {
        let start = clock.now();
        round()?;
        times.push(clock.now() - start);
    }
    times.sort_unstable();
    tell(what, name, times[times.len() / 2]);
    Ok(())
}

fn tell(what: &str, name: &str, time: Duration) {
    println!("{what:<42} {name:<20} {:>12.1} us", time.as_secs_f64() * 1e6);
}

/// Threads that each update a counter of their own, and one that puts into another keyspace.
fn counters() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path())?;
    let other = db.keyspace("other")?;
    let key = |thread: usize| [b'k', thread as u8];
    for thread in 0..THREADS {
        (0..COUNTED_VERSIONS).try_for_each(|_| db.put(key(thread), VALUE))?;
    }
    let (done, updates) = (AtomicBool::new(false), AtomicU64::new(0));
    let clock = PosixEnv::shared();
    let mut waits = Vec::new();
    thread::scope(|scope| -> Result<()> {
        for thread in 0..THREADS {
            let (db, done, updates) = (&db, &done, &updates);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    db.update(key(thread), |_| Some(VALUE)).expect("an update");
                    updates.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begin = clock.now();
        let mut result = Ok(());
        while clock.now() - begin < COUNTED && result.is_ok() {
            let start = clock.now();
            result = other.put("key", VALUE);
            waits.push(clock.now() - start);
        }
        done.store(true, Ordering::Relaxed);
        result
    })?;
    let rate = updates.into_inner() as f64 / COUNTED.as_secs_f64();
    println!("{THREADS} threads, {COUNTED_VERSIONS} versions each at first: {rate:.0} updates/s");
    waits.sort_unstable();
    for (name, place) in
        [("median", waits.len() / 2), ("p99", waits.len() * 99 / 100), ("most", waits.len() - 1)]
    {
        tell("a put into another keyspace beside them", name, waits[place]);
    }
    let long: Duration = waits.iter().filter(|wait| **wait > Duration::from_millis(1)).sum();
    println!(
        "{} puts, {:.1} % of the time in waits above 1 ms",
        waits.len(),
        100.0 * long.as_secs_f64() / COUNTED.as_secs_f64()
    );
    Ok(())
}
