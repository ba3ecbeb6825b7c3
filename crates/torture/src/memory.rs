//! What a store takes of a process's memory beside large values, a large batch, a large transaction and a long log.
//!
//! Resident memory is what counts, not what is allocated: a heap may keep what is freed, and mapped memory is in no heap.

use std::fs;
use std::path::Path;
use std::thread;

use terrace::{Db, Options, WriteBatch};

use crate::Rng;

/// What a step took: its name, and the most that was resident meanwhile, in bytes.
pub type Step = (&'static str, u64);

/// Threads that read at the same time.
pub const READERS: u64 = 4;

const KEY_BYTES: usize = 15;
const VALUE_BYTES: usize = 90;

/// Bytes of key and value of a row of [`batch`] and [`transaction`].
pub const ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap() * 1024
}

/// Memory of this process that is resident now, in bytes.
pub fn resident() -> u64 {
    status("VmRSS")
}

/// What `step` returns, and the most that was resident meanwhile.
pub fn peak<R>(step: impl FnOnce() -> R) -> (R, u64) {
    // Sets `VmHWM` to what is resident now.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let result = step();
    (result, status("VmHWM"))
}

/// Bytes of the value of a key: 10 to 34 MB, and the same again.
fn value_bytes(key: u64) -> usize {
    10_000_000 + Rng::new(key).below(24_000_000)
}

/// The longest value of [`values`], in bytes.
pub const LARGEST_VALUE: u64 = 34_000_000;

fn check(key: &[u8], value: &[u8]) {
    let key: u64 = std::str::from_utf8(key).unwrap().parse().unwrap();
    let is_so = |byte: Option<&u8>| byte == Some(&(key as u8));
    assert!(value.len() == value_bytes(key) && is_so(value.first()) && is_so(value.last()), "value {key}");
}

/// Writes `count` values, compacts, and reads them by lookups, by iterators and backwards.
pub fn values(db: &Db, count: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut buffer = vec![0; LARGEST_VALUE as usize];
    let mut step = |name, work: &mut dyn FnMut()| steps.push((name, peak(work).1));
    step("puts", &mut || {
        for key in 0..count {
            let value = &mut buffer[..value_bytes(key)];
            value.fill(key as u8);
            db.put(format!("{key:04}"), value).unwrap();
        }
    });
    drop(std::mem::take(&mut buffer));
    step("flush", &mut || db.flush().unwrap());
    step("compaction", &mut || db.compact().unwrap());
    step("lookups", &mut || {
        read_by_many(|thread| {
            let mut random = Rng::new(thread);
            for _ in 0..count {
                let key = format!("{:04}", random.below(count as usize));
                check(key.as_bytes(), &db.get(&key).unwrap().unwrap());
            }
        });
    });
    step("iterators", &mut || {
        read_by_many(|_| {
            let found = db.iter().unwrap().map(Result::unwrap).inspect(|(key, value)| check(key, value));
            assert_eq!(found.count() as u64, count);
        });
    });
    step("backwards", &mut || {
        let found = db.iter().unwrap().rev().map(Result::unwrap).inspect(|(key, value)| check(key, value));
        assert_eq!(found.count() as u64, count);
    });
    steps
}

fn read_by_many(read: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        (0..READERS).for_each(|thread| {
            _ = scope.spawn({
                let read = &read;
                move || read(thread)
            })
        })
    });
}

/// Bytes of the values of [`opening`].
const LOGGED_VALUE_BYTES: usize = 1000;

/// Opens a store in the empty directory `dir` as its writer's death has left it, with a log of `bytes` that is in no table,
/// in one segment, and flushes it. `budget` is that of the opening; the writer had a larger one.
pub fn opening(dir: &Path, bytes: u64, budget: u64) -> Vec<Step> {
    let killed = dir.join("killed");
    let larger = 8 * bytes;
    let options = Options { memory_bytes: Some(larger), memtable_bytes: larger, ..Options::default() };
    let options = Options { wal_bytes_max: larger, ..options };
    let db = Db::builder(dir.join("store")).options(options).open().unwrap();
    let rows = bytes / (LOGGED_VALUE_BYTES + KEY_BYTES) as u64;
    for n in 0..rows {
        db.put(row(n).0, [n as u8; LOGGED_VALUE_BYTES]).unwrap();
    }
    // What a copy has is what the death of the process leaves.
    db.checkpoint(&killed).unwrap();
    db.close().unwrap();
    let options = Options { memory_bytes: Some(budget), ..Options::default() };
    let (db, opened) = peak(|| Db::builder(&killed).options(options).open().unwrap());
    let ((), flushed) = peak(|| db.flush().unwrap());
    assert_eq!(db.get(row(rows - 1).0).unwrap().unwrap().len(), LOGGED_VALUE_BYTES);
    db.close().unwrap();
    vec![("opening after a kill", opened), ("opening: the flush", flushed)]
}

fn row(n: u64) -> (String, [u8; VALUE_BYTES]) {
    (format!("{n:0KEY_BYTES$}"), [n as u8; VALUE_BYTES])
}

/// Makes a batch of `rows` puts, writes it, and one more.
pub fn batch(db: &Db, rows: u64) -> Vec<Step> {
    let mut batch = WriteBatch::new();
    let ((), made) = peak(|| {
        for n in 0..rows {
            let (key, value) = row(n);
            batch.put(key, value);
        }
    });
    let ((), written) = peak(|| db.write(batch).unwrap());
    let ((), next) = peak(|| db.put("next", "value").unwrap());
    vec![("batch: made by the caller", made), ("batch: written", written), ("batch: the next put", next)]
}

/// Gathers `rows` puts in a transaction, and commits it.
pub fn transaction(db: &Db, rows: u64) -> Vec<Step> {
    let mut transaction = db.transaction();
    let ((), gathered) = peak(|| {
        for n in 0..rows {
            let (key, value) = row(n);
            transaction.put(key, value);
        }
    });
    let ((), committed) = peak(|| transaction.commit().unwrap());
    vec![("transaction: gathered", gathered), ("transaction: committed", committed)]
}
