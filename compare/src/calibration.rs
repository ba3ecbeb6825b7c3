//! What disk and memory do at the moment, by themselves: measured between the turns of the engines, to tell a change of the
//! machine from a difference between engines.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use terrace_bench::generator::Rng;

use crate::statistics::median;

/// Times that everything is measured; the median counts.
const TRIALS: usize = 5;

/// Bytes written in sequence in a trial.
const FILE_BYTES: usize = 32 << 20;

/// Blocks written over and synced in a trial, by each processor.
const SYNCS: u64 = 25;

/// Processors that sync, at most.
const PROCESSORS_MAX: usize = 4;

/// Size of such a block.
const BLOCK_BYTES: usize = 4096;

/// Bytes copied in a trial, more than caches hold.
const COPY_BYTES: usize = 64 << 20;

/// Times that everything is measured again until it is steady.
const REPEATS_MAX: usize = 5;

/// Difference between two measurements in a row, as a share, up to which they are steady.
const STEADY: f64 = 0.05;

/// Time that a machine is given to become steady.
const PAUSE: Duration = Duration::from_millis(300);

/// Cache lines that point to one another, 64 MiB in all.
const LINES: usize = 1 << 20;

/// Lines visited in a trial.
const VISITS: usize = 200_000;

/// Speeds of disk and memory.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Megabytes per second of a file written in sequence, and synced.
    pub disk_write_mb_per_s: f64,
    /// Microseconds of a sync after 4 KiB were written over, the mean of all processors: one that takes the disk's
    /// interrupts may be faster by half than another, and where the scheduler puts a thread says nothing of the disk.
    pub disk_sync_us: f64,
    /// Gigabytes per second that are copied in memory.
    pub memory_copy_gb_per_s: f64,
    /// Nanoseconds from one dependent cache miss to the next.
    pub memory_miss_ns: f64,
}

impl Calibration {
    /// The largest change of any of the speeds from `self` to `after`, as a share.
    pub fn drift(&self, after: &Self) -> f64 {
        let pairs = [
            (self.disk_write_mb_per_s, after.disk_write_mb_per_s),
            (self.disk_sync_us, after.disk_sync_us),
            (self.memory_copy_gb_per_s, after.memory_copy_gb_per_s),
            (self.memory_miss_ns, after.memory_miss_ns),
        ];
        pairs.iter().map(|(before, after)| before.max(*after) / before.min(*after) - 1.0).fold(0.0, f64::max)
    }
}

/// Measures again and again, with memory that it keeps.
pub struct Calibrator {
    lines: Vec<[u32; 16]>,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Calibrator {
    /// Lays out the memory.
    pub fn new() -> Self {
        // One cycle through all lines, in random order (Sattolo).
        let mut order: Vec<u32> = (0..LINES as u32).collect();
        let mut rng = Rng::new(1);
        for last in (1..LINES).rev() {
            order.swap(last, rng.below(last as u64) as usize);
        }
        let lines = order.into_iter().map(|next| [next; 16]).collect();
        Self { lines, from: vec![1; COPY_BYTES], to: vec![2; COPY_BYTES] }
    }

    /// Measures until two measurements in a row say the same, at most [`REPEATS_MAX`] times more, and gives the last: what a
    /// turn has left behind, such as the blocks of its files that the disk is told to forget, is no change of the machine.
    /// The disk is measured with a file in `directory`; takes from one to five seconds.
    ///
    /// # Errors
    /// Whatever the file system reports.
    pub fn measure(&mut self, directory: &Path) -> Result<Calibration> {
        rustix::fs::syncfs(File::open(directory)?)?;
        let mut last = self.measure_once(directory)?;
        for _ in 0..REPEATS_MAX {
            std::thread::sleep(PAUSE);
            let next = self.measure_once(directory)?;
            let is_steady = last.drift(&next) <= STEADY;
            last = next;
            if is_steady {
                break;
            }
        }
        Ok(last)
    }

    fn measure_once(&mut self, directory: &Path) -> Result<Calibration> {
        let file = tempfile::tempfile_in(directory)?;
        let mut trials: [Vec<f64>; 4] = Default::default();
        for _ in 0..TRIALS {
            trials[0].push(self.disk_write(&file)?);
            trials[1].push(self.disk_sync(&file)?);
            trials[2].push(self.copy());
            trials[3].push(self.visit());
        }
        let [disk_write_mb_per_s, disk_sync_us, memory_copy_gb_per_s, memory_miss_ns] =
            trials.map(|figures| median(&figures));
        Ok(Calibration { disk_write_mb_per_s, disk_sync_us, memory_copy_gb_per_s, memory_miss_ns })
    }

    fn disk_write(&self, file: &File) -> Result<f64> {
        file.set_len(0)?;
        let started = Instant::now();
        file.write_all_at(&self.from[..FILE_BYTES], 0)?;
        file.sync_data()?;
        Ok(FILE_BYTES as f64 / 1e6 / started.elapsed().as_secs_f64())
    }

    fn disk_sync(&self, file: &File) -> Result<f64> {
        let anywhere = sched_getaffinity(None)?;
        let processors = (0..CpuSet::MAX_CPU).filter(|&processor| anywhere.is_set(processor));
        let mut medians = Vec::new();
        for processor in processors.take(PROCESSORS_MAX) {
            let mut here = CpuSet::new();
            here.set(processor);
            sched_setaffinity(None, &here)?;
            let median = self.disk_sync_here(file);
            sched_setaffinity(None, &anywhere)?;
            medians.push(median?);
        }
        Ok(medians.iter().sum::<f64>() / medians.len() as f64)
    }

    fn disk_sync_here(&self, file: &File) -> Result<f64> {
        let mut micros = Vec::new();
        for block in 0..SYNCS {
            file.write_all_at(&self.to[..BLOCK_BYTES], block * BLOCK_BYTES as u64)?;
            let started = Instant::now();
            file.sync_data()?;
            micros.push(started.elapsed().as_secs_f64() * 1e6);
        }
        Ok(median(&micros))
    }

    fn copy(&mut self) -> f64 {
        let started = Instant::now();
        self.to.copy_from_slice(black_box(&self.from));
        black_box(&self.to);
        COPY_BYTES as f64 / 1e9 / started.elapsed().as_secs_f64()
    }

    fn visit(&self) -> f64 {
        let started = Instant::now();
        let mut line = 0;
        for _ in 0..VISITS {
            line = self.lines[line as usize][0];
        }
        black_box(line);
        started.elapsed().as_secs_f64() * 1e9 / VISITS as f64
    }
}

/// Time of all processors since the machine started, and the part that other machines took of it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorTime {
    total: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// As it stands.
    ///
    /// # Errors
    /// There is no `/proc/stat`.
    pub fn now() -> Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string("/proc/stat")?))
    }

    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is counted in user already.
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        Self { total: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// Share of the time since `before` that was stolen.
    pub fn steal_since(&self, before: &Self) -> f64 {
        (self.stolen - before.stolen) as f64 / (self.total - before.total).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        let one = Calibrator::new().measure(directory.path()).unwrap();
        for figure in
            [one.disk_write_mb_per_s, one.disk_sync_us, one.memory_copy_gb_per_s, one.memory_miss_ns]
        {
            assert!(figure.is_finite() && figure > 0.0);
        }
    }

    #[test]
    fn drift_is_that_of_the_worst_in_either_direction() {
        let before = Calibration {
            disk_write_mb_per_s: 500.0,
            disk_sync_us: 50.0,
            memory_copy_gb_per_s: 10.0,
            memory_miss_ns: 100.0,
        };
        let after = Calibration { disk_sync_us: 60.0, memory_copy_gb_per_s: 9.5, ..before };
        assert!((before.drift(&after) - 0.2).abs() < 1e-9);
        assert!((after.drift(&before) - 0.2).abs() < 1e-9);
        assert!(before.drift(&before).abs() < 1e-9);
    }

    #[test]
    fn the_lines_are_one_cycle() {
        let calibrator = Calibrator::new();
        let (mut line, mut steps) = (0, 0);
        loop {
            line = calibrator.lines[line as usize][0];
            steps += 1;
            if line == 0 {
                break;
            }
        }
        assert_eq!(steps, LINES);
    }

    #[test]
    fn steal_is_its_share_of_all_time() {
        let before = ProcessorTime::parse("cpu  100 0 50 800 0 0 0 10 5 0\ncpu0 1 2 3");
        let after = ProcessorTime::parse("cpu  150 0 50 840 0 0 0 20 5 0\n");
        assert!((after.steal_since(&before) - 0.1).abs() < 1e-9);
    }
}
