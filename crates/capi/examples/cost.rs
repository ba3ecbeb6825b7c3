//! What a put, a get and a step cost in Rust: the same work as `bench/cost.c` does through C.
//!
//! `cost DIR RECORDS LOOKUPS SCANS` prints nanoseconds: "put N", "get N", "step N". `bench/cost.sh` runs both in turns.

use std::path::PathBuf;
use std::time::Instant;

use engine::{Db, Durability, Options, Result};

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;
const MEMTABLE_BYTES: u64 = 64 << 20;

/// The next of a fixed sequence of numbers (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn digits(mut number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for byte in key.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
    key
}

/// Record i has the key i times a number that shares no factor with the count, so keys come in no order, each once.
fn number(record: u64, records: u64) -> u64 {
    record * 7_368_787 % records
}

fn told(what: &str, started: Instant, count: u64) {
    println!("{what} {:.1}", started.elapsed().as_nanos() as f64 / count as f64);
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_default());
    let mut count =
        || arguments.next().and_then(|text| text.parse().ok()).expect("DIR RECORDS LOOKUPS SCANS");
    let (records, lookups, scans): (u64, u64, u64) = (count(), count(), count());
    let memory_bytes = Some((1 << 30) + 2 * MEMTABLE_BYTES);
    let options = Options { memory_bytes, memtable_bytes: MEMTABLE_BYTES, ..Options::default() };
    let db = Db::builder(dir).options(options).open()?;

    let mut value = [0; VALUE_BYTES];
    let started = Instant::now();
    for record in 0..records {
        let key = digits(number(record, records));
        value[..KEY_BYTES].copy_from_slice(&key);
        db.put_with(key, value, Durability::Buffered)?;
    }
    told("put", started, records);

    db.compact()?;
    db.wait_idle()?;
    let (mut state, mut sum, mut expected) = (88_172_645_463_325_252, 0, 0);
    let mut started = Instant::now();
    // The cache is filled before the clock runs.
    for _ in 0..2 {
        started = Instant::now();
        for _ in 0..lookups {
            let key = digits(next(&mut state) % records);
            let found = db.get(key)?.expect("a record");
            expected += u64::from(key[KEY_BYTES - 1]);
            sum += u64::from(found[KEY_BYTES - 1]);
        }
    }
    told("get", started, lookups);
    assert_eq!(sum, expected);

    let mut steps = 0;
    let started = Instant::now();
    for _ in 0..scans {
        let mut cursor = db.cursor(..)?;
        while let Some((_, value)) = cursor.next()? {
            steps += 1;
            sum += u64::from(value[KEY_BYTES - 1]);
        }
    }
    told("step", started, steps);
    assert_eq!(steps, scans * records);
    std::hint::black_box(sum);
    db.close()
}
