//! What compactions and reads take of this machine's processor, for [`PROCESSOR`](super::machine::PROCESSOR) and
//! [`ReadCosts`].
//!
//! Compactions of small and of large records, whose files are in memory, give two equations: a time for each record and one
//! for each KiB. Reads of one run and of several give the others: lookups of keys that are there search a block, those of
//! absent ones ask filters alone, and scans seek in every run.
//!
//! Processor time is counted, not time that passes, and the least of several rounds is taken: what runs beside can only add to
//! it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use terrace::env::simulated::{DeviceModel, ProcessorModel};
use terrace::tree::{Layout, Leveled, Pacer};
use terrace::{Db, Options};

use super::machine::ReadCosts;
use crate::Result;
use crate::generator::Rng;
use crate::ycsb::keys::{InsertOrder, KeyFormat};
use crate::ycsb::values::ValueFormat;

const KEY_BYTES: usize = 16;

/// Sizes of values.
const VALUES: [usize; 2] = [20, 1000];

/// Keys and values of a round, together, and memtables: eight runs are compacted into one.
const DATA_BYTES: u64 = 64 << 20;
const MEMTABLE_BYTES: u64 = 8 << 20;

const ROUNDS: usize = 5;

/// Reads are of a store with values of this size, all of it cached.
const READ_VALUE_BYTES: usize = 100;
const READ_MEMORY_BYTES: u64 = 1 << 30;
const LOOKUPS: u64 = 400_000;
const SCANS: u64 = 50_000;

/// Rows of short and of long scans.
const ROWS: [u64; 2] = [1, 50];

/// What compactions and reads took.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Nanoseconds for each record, and its bytes, by size of values.
    measured: [(f64, f64); 2],
    /// What follows from it.
    pub model: ProcessorModel,
    /// What follows from reads.
    pub reads: ReadCosts,
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nanos, bytes) in self.measured {
            writeln!(f, "{bytes:.0} B a record: {nanos:.0} ns of processor time")?;
        }
        let ProcessorModel { record_nanos, kibibyte_nanos } = self.model;
        writeln!(
            f,
            "a compaction takes {record_nanos} ns for each record and {kibibyte_nanos} ns for each KiB"
        )?;
        let ReadCosts { lookup, table, block, run, row } = self.reads;
        writeln!(
            f,
            "a lookup takes {lookup:?}, and {table:?} for each table that it asks and {block:?} for each block"
        )?;
        writeln!(f, "a scan takes {run:?} for each run and {row:?} for each row")
    }
}

/// Measures compactions in stores in `dir`, which is best on a file system in memory.
///
/// # Errors
/// Whatever the store reports.
pub fn calibrate(dir: &Path) -> Result<Calibration> {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (best, value_bytes) in best.iter_mut().zip(VALUES) {
            *best = best.min(round(dir, value_bytes)?);
        }
    }
    let bytes = VALUES.map(|value| (KEY_BYTES + value) as f64);
    let measured = [(best[0], bytes[0]), (best[1], bytes[1])];
    let mut reads = read_round(dir, DATA_BYTES)?;
    for _ in 1..ROUNDS {
        reads = reads.least(read_round(dir, DATA_BYTES)?);
    }
    Ok(Calibration { measured, model: solve(measured), reads: reads.solve() })
}

/// The model that gives both times.
fn solve([(small, small_bytes), (large, large_bytes)]: [(f64, f64); 2]) -> ProcessorModel {
    let byte = (large - small) / (large_bytes - small_bytes);
    let record = small - byte * small_bytes;
    ProcessorModel {
        record_nanos: record.max(0.0).round() as u64,
        kibibyte_nanos: (byte * 1024.0).max(0.0).round() as u64,
    }
}

/// Nanoseconds of processor time for each record that a compaction of values of that size reads. The copy of its output into
/// the page cache, which devices charge, is left out.
fn round(dir: &Path, value_bytes: usize) -> Result<f64> {
    let (keys, values) = (KeyFormat::fixed(InsertOrder::Hashed, KEY_BYTES)?, ValueFormat::new(value_bytes)?);
    let dir = tempfile::Builder::new().prefix("terrace-calibrate-").tempdir_in(dir)?;
    let db = Db::builder(dir.path().join("store")).options(options()).open()?;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for record in 0..DATA_BYTES / (KEY_BYTES + value_bytes) as u64 {
        keys.build(record, &mut key);
        values.fill(record, 0, &mut value);
        db.put(&key, &value)?;
    }
    db.flush()?;
    let (before, start) = (db.stats().compaction, processor_time());
    db.compact()?;
    let (after, time) = (db.stats().compaction, processor_time() - start);
    db.close()?;
    let copied = (after.bytes_out - before.bytes_out) as f64;
    let copy_seconds = copied / DeviceModel::laptop_sata_ssd().cache_bandwidth as f64;
    let records = (after.records_in - before.records_in).max(1) as f64;
    Ok((time.as_secs_f64() - copy_seconds) * 1e9 / records)
}

/// Nanoseconds of processor time of reads whose blocks are cached, in several runs and in one.
#[derive(Clone, Copy, Debug)]
struct Reads {
    /// Number of the several runs.
    runs: f64,
    /// Lookups of absent keys.
    absent: [f64; 2],
    /// Lookups of keys that are there, in one run.
    present: f64,
    /// Scans of one row.
    scan: [f64; 2],
    /// Scans of more, in one run.
    long_scan: f64,
}

impl Reads {
    /// The lesser of each.
    fn least(self, other: Self) -> Self {
        let least = |one: [f64; 2], other: [f64; 2]| [one[0].min(other[0]), one[1].min(other[1])];
        Self {
            runs: self.runs,
            absent: least(self.absent, other.absent),
            present: self.present.min(other.present),
            scan: least(self.scan, other.scan),
            long_scan: self.long_scan.min(other.long_scan),
        }
    }

    fn solve(self) -> ReadCosts {
        let nanos = |nanos: f64| Duration::from_nanos(nanos.max(0.0).round() as u64);
        let more_runs = self.runs - 1.0;
        let table = (self.absent[0] - self.absent[1]) / more_runs;
        ReadCosts {
            lookup: nanos(self.absent[1] - table),
            table: nanos(table),
            block: nanos(self.present - self.absent[1]),
            run: nanos((self.scan[0] - self.scan[1]) / more_runs),
            row: nanos((self.long_scan - self.scan[1]) / (ROWS[1] - ROWS[0]) as f64),
        }
    }
}

/// Reads of a store with `data_bytes` of keys and values. A filter is wrong about one absent key in a hundred; that is left in.
fn read_round(dir: &Path, data_bytes: u64) -> Result<Reads> {
    let dir = tempfile::Builder::new().prefix("terrace-calibrate-").tempdir_in(dir)?;
    let options = Options { memory_bytes: Some(READ_MEMORY_BYTES), ..options() };
    let db = Db::builder(dir.path().join("store")).options(options).open()?;
    let keys = KeyFormat::fixed(InsertOrder::Hashed, KEY_BYTES)?;
    let values = ValueFormat::new(READ_VALUE_BYTES)?;
    let records = data_bytes / (KEY_BYTES + READ_VALUE_BYTES) as u64;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for record in 0..records {
        keys.build(record, &mut key);
        values.fill(record, 0, &mut value);
        db.put(&key, &value)?;
    }
    db.flush()?;
    let runs = db.stats().keyspaces[0].shape.levels[0].runs as f64;
    let mut lookups = |from: u64| -> Result<f64> {
        let mut rng = Rng::new(1);
        // The first half warms the caches.
        let mut start = processor_time();
        for at in 0..2 * LOOKUPS {
            if at == LOOKUPS {
                start = processor_time();
            }
            keys.build(from + rng.below(records), &mut key);
            db.get(&key)?;
        }
        Ok((processor_time() - start).as_nanos() as f64 / LOOKUPS as f64)
    };
    let (several_absent, several_scan) = (lookups(records)?, scans(&db, &keys, records, ROWS[0])?);
    db.compact()?;
    db.wait_idle()?;
    let measured = Reads {
        runs,
        absent: [several_absent, lookups(records)?],
        present: lookups(0)?,
        scan: [several_scan, scans(&db, &keys, records, ROWS[0])?],
        long_scan: scans(&db, &keys, records, ROWS[1])?,
    };
    db.close()?;
    Ok(measured)
}

/// Nanoseconds of a scan of `rows` rows.
fn scans(db: &Db, keys: &KeyFormat, records: u64, rows: u64) -> Result<f64> {
    let (mut rng, mut key) = (Rng::new(2), Vec::new());
    let mut start = processor_time();
    for at in 0..2 * SCANS {
        if at == SCANS {
            start = processor_time();
        }
        keys.build(rng.below(records), &mut key);
        let mut iter = db.range(key.as_slice()..)?;
        for _ in 0..rows {
            iter.advance()?;
        }
    }
    Ok((processor_time() - start).as_nanos() as f64 / SCANS as f64)
}

/// A store that compacts when it is told to.
fn options() -> Options {
    let mut options = Options::profile("leveldb-64m").unwrap_or_default();
    options.memtable_bytes = MEMTABLE_BYTES;
    options.tree.layout = Layout::Leveled(Leveled { l0_trigger: 1000, ..Leveled::default() });
    if let Pacer::Governor(governor) = &mut options.tree.pacer {
        (governor.l0_slow, governor.l0_stop) = (1000, 1001);
    }
    options
}

/// Processor time of the whole process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_follow_from_the_model() {
        let model = ProcessorModel { record_nanos: 250, kibibyte_nanos: 700 };
        let measured = [36.0, 1016.0].map(|bytes| (250.0 + 700.0 * bytes / 1024.0, bytes));
        assert_eq!(solve(measured), model);
    }

    #[test]
    fn what_reads_take_follows_from_the_model() {
        let costs = ReadCosts {
            lookup: Duration::from_nanos(300),
            table: Duration::from_nanos(50),
            block: Duration::from_nanos(700),
            run: Duration::from_nanos(900),
            row: Duration::from_nanos(100),
        };
        let reads = Reads {
            runs: 8.0,
            absent: [700.0, 350.0],
            present: 1050.0,
            scan: [8.0 * 900.0 + 100.0, 1000.0],
            long_scan: 900.0 + 5000.0,
        };
        assert_eq!(reads.solve(), costs);
    }

    #[test]
    fn a_compaction_of_all_runs_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        assert!(round(dir.path(), 1000).unwrap() > 0.0);
    }
}
