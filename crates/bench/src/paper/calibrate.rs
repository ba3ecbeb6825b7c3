//! What compactions take of this machine's processor, for [`PROCESSOR`](super::machine::PROCESSOR).
//!
//! Compactions of small and of large records, whose files are in memory, give two equations: a time for each record and one
//! for each KiB. Processor time is counted, not time that passes, and the least of several rounds is taken: what runs beside
//! can only add to it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use terrace::env::simulated::{DeviceModel, ProcessorModel};
use terrace::tree::{Layout, Leveled, Pacer};
use terrace::{Db, Options};

use crate::Result;
use crate::ycsb::keys::{InsertOrder, KeyFormat};
use crate::ycsb::values::ValueFormat;

const KEY_BYTES: usize = 16;

/// Sizes of values.
const VALUES: [usize; 2] = [20, 1000];

/// Keys and values of a round, together, and memtables: eight runs are compacted into one.
const DATA_BYTES: u64 = 64 << 20;
const MEMTABLE_BYTES: u64 = 8 << 20;

const ROUNDS: usize = 5;

/// What compactions took.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Nanoseconds for each record, and its bytes, by size of values.
    measured: [(f64, f64); 2],
    /// What follows from it.
    pub model: ProcessorModel,
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
        )
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
    Ok(Calibration { measured, model: solve(measured) })
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
    fn a_compaction_of_all_runs_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        assert!(round(dir.path(), 1000).unwrap() > 0.0);
    }
}
