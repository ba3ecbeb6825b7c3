//! What one more run of level 0 takes of a scan whose blocks are cached, in bytes of compaction: the price by which readers run up a
//! debt (`Costs::seek_cached`), measured.
//!
//! `cargo bench --bench seeks`. Three stores of 3,000,000 records of 116 bytes, of which 340,000 lie in no run of level 0, in one, or
//! in four. Scans of each take turns, in batches; figures are medians of the processor time of a scan. Then one store is compacted.
//! What the figures were is in docs/benchmarks/choices.md.
#![allow(missing_docs, reason = "a program, not a library")]

use std::hint::black_box;
use std::ops::Range;

use terrace::tree::{Layout, Leveled};
use terrace::{Db, Options, Result};

const ROWS: u64 = 3_000_000;
const FRESH: u64 = 340_000;
const RUNS: [u64; 3] = [0, 1, 4];
const LENGTHS: [usize; 3] = [10, 50, 100];

/// Batches of a store and a length, and scans in each.
const BATCHES: u64 = 12;
const SCANS: u64 = 5000;

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    // Level 0 is not due, and idle time compacts nothing in it.
    let mut options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
    options.tree.layout =
        Layout::Leveled(Leveled { level1_bytes: 1 << 40, l0_trigger: 20, ..Leveled::default() });
    let mut stores = Vec::new();
    for runs in RUNS {
        let db = Db::builder(dir.path().join(runs.to_string())).options(options.clone()).open()?;
        ingest(&db, 0..ROWS)?;
        for run in 0..runs {
            let part = FRESH / runs;
            ingest(&db, ROWS + run * part..ROWS + (run + 1) * part)?;
        }
        assert_eq!(db.keyspace("default")?.shape().levels[0].runs as u64, runs);
        black_box(db.iter()?.count());
        stores.push(db);
    }
    let compacted = compacted_byte(&stores[1])?;
    ingest(&stores[1], ROWS + FRESH..ROWS + 2 * FRESH)?;
    println!("a byte of compaction takes {compacted:.2} ns");
    for length in LENGTHS {
        let mut nanos = RUNS.map(|_| Vec::new());
        for batch in 0..BATCHES {
            for (db, nanos) in stores.iter().zip(&mut nanos) {
                nanos.push(scan(db, batch * SCANS..(batch + 1) * SCANS, length)?);
            }
        }
        let [none, one, four] = nanos.map(median);
        let bytes = |nanos: f64| nanos / compacted;
        println!(
            "scans of {length} rows: {none:.0} ns without a run, {one:.0} with one ({:.0} bytes), {four:.0} with four ({:.0} bytes each)",
            bytes(one - none),
            bytes((four - none) / 4.0),
        );
    }
    Ok(())
}

/// Time of a compaction of all of `db` for each byte of its inputs.
fn compacted_byte(db: &Db) -> Result<f64> {
    let (before, started) = (db.stats().compaction.bytes_in, processor_nanos());
    db.compact()?;
    Ok((processor_nanos() - started) / (db.stats().compaction.bytes_in - before) as f64)
}

/// Time of a scan.
fn scan(db: &Db, numbers: Range<u64>, length: usize) -> Result<f64> {
    let started = processor_nanos();
    let scans = (numbers.end - numbers.start) as f64;
    for number in numbers {
        for entry in db.range(key(mixed(number) % ROWS)..)?.take(length) {
            black_box(entry?.1.len());
        }
    }
    Ok((processor_nanos() - started) / scans)
}

/// A run of its own.
fn ingest(db: &Db, numbers: Range<u64>) -> Result<()> {
    let mut keys: Vec<(String, u64)> = numbers.map(|number| (key(number), number)).collect();
    keys.sort_unstable();
    let mut ingest = db.ingest()?;
    keys.into_iter().try_for_each(|(key, number)| ingest.push(key, format!("{number:0100}")))?;
    ingest.finish()
}

fn key(number: u64) -> String {
    format!("{:016x}", mixed(number))
}

/// SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What this thread has had of the processor.
fn processor_nanos() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.expect("the first number is the time on a processor")
}

fn median(mut nanos: Vec<f64>) -> f64 {
    nanos.sort_unstable_by(f64::total_cmp);
    nanos[nanos.len() / 2]
}
