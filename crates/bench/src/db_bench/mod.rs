//! RocksDB's `db_bench` on Terrace: the same benchmarks by the same names, the same keys, and the same output,
//! character by character.
//!
//! Scripts that run `db_bench` and read its lines can run this instead. Differences follow from the engine: settings
//! that Terrace does not have do not exist, and a directory is emptied only if an earlier run has made it.

mod benchmark;
pub mod histogram;
mod report;
mod tally;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use terrace::env::Env;
use terrace::format::names::FileName;
use terrace::{Db, Options};

pub use self::benchmark::Benchmark;
use self::benchmark::{Setting, Thread};
pub use self::report::BenchmarkReport;
use self::tally::{Kind, Tally};
use crate::Result;
use crate::generator::Rng;
use crate::recording::{Probe, Recorder};
use crate::store::{Store, TerraceStore};

/// File that says of a directory that its store may be removed by the next run.
const MARK: &str = "DB_BENCH";

/// What to run; the fields are named as `db_bench`'s flags.
#[derive(Clone, Debug)]
pub struct Config {
    /// One after the other.
    pub benchmarks: Vec<Benchmark>,
    /// Keys to draw from, and operations of each thread.
    pub num: u64,
    /// Reads of each thread, in place of `num`.
    pub reads: Option<u64>,
    /// Size of every value in bytes.
    pub value_size: usize,
    /// Size of every key in bytes: 8 of a number, the rest zeros.
    pub key_size: usize,
    /// Threads.
    pub threads: usize,
    /// Ends each benchmark, in place of the number of operations.
    pub duration: Option<Duration>,
    /// Go on with the store that is there, and skip benchmarks that want a fresh one.
    pub use_existing_db: bool,
    /// Names the streams of random numbers.
    pub seed: u64,
    /// Records to read behind each seek.
    pub seek_nexts: u64,
    /// End what is read behind a seek with the prefix that the options give keys.
    pub prefix_same_as_start: bool,
    /// Print histograms.
    pub histogram: bool,
    /// Record the course of each benchmark, for which the clock is read at every operation, and report it.
    pub record: bool,
    /// Sync every write.
    pub sync: bool,
    /// Directory; a temporary one when `None`.
    pub db: Option<PathBuf>,
    /// What the store runs on.
    pub env: Arc<dyn Env>,
    /// Settings of the store.
    pub options: Options,
}

/// Runs the benchmarks and writes what they report to `out`; `describe` words the store's statistics. The reports are
/// there if the configuration asks for them.
///
/// # Errors
/// A directory that must not be used, or whatever the store or `out` reports.
pub fn run(
    config: &Config,
    out: &mut impl Write,
    describe: impl Fn(&Db) -> String,
) -> Result<Vec<BenchmarkReport>> {
    let temporary;
    let path: &Path = match &config.db {
        Some(path) => path,
        None => {
            temporary = tempfile::Builder::new().prefix("terrace-bench-").tempdir()?;
            temporary.path()
        }
    };
    write_head(config, out)?;
    if !config.use_existing_db {
        remove_store(path)?;
    }
    let mut store = open(config, path)?;
    let mut reports = Vec::new();
    for (index, &benchmark) in config.benchmarks.iter().enumerate() {
        let name = benchmark.name();
        if benchmark.wants_fresh_store() {
            if config.use_existing_db {
                writeln!(out, "{name:<12} : skipped (--use_existing_db is true)")?;
                continue;
            }
            store.close()?;
            remove_store(path)?;
            store = open(config, path)?;
        }
        match benchmark {
            Benchmark::Stats => writeln!(out, "\n{}", describe(store.db()))?,
            Benchmark::LevelStats => write_levels(store.db(), out)?,
            Benchmark::WaitForCompaction => {
                writeln!(out, "{name}({}): started", path.display())?;
                store.drain()?;
                writeln!(out, "{name}({}): finished", path.display())?;
            }
            _ => {
                writeln!(out, "DB path: [{}]", path.display())?;
                let (tally, report) = measure(config, benchmark, index as u64, &store)?;
                reports.extend(report);
                write!(out, "{}", tally.report(name, benchmark.note(config).as_deref()))?;
            }
        }
        out.flush()?;
    }
    store.close()?;
    Ok(reports)
}

/// What `db_bench` prints first.
fn write_head(config: &Config, out: &mut impl Write) -> Result<()> {
    let (num, key, value) = (config.num, config.key_size, config.value_size);
    writeln!(out, "Terrace:    version {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "Keys:       {key} bytes each")?;
    writeln!(out, "Values:     {value} bytes each")?;
    writeln!(out, "Entries:    {num}")?;
    let raw = (num as f64) * (key + value) as f64 / 1_048_576.0;
    writeln!(out, "RawSize:    {raw:.1} MB (estimated)")?;
    writeln!(out, "------------------------------------------------")?;
    Ok(())
}

fn write_levels(db: &Db, out: &mut impl Write) -> Result<()> {
    writeln!(out, "Level Files Size(MB)\n--------------------")?;
    for level in &db.keyspace("default")?.shape().levels {
        let megabytes = level.bytes as f64 / 1_048_576.0;
        writeln!(out, "{:3} {:8} {megabytes:8.0}", level.level, level.tables)?;
    }
    Ok(writeln!(out)?)
}

fn open(config: &Config, path: &Path) -> Result<Box<TerraceStore>> {
    let builder = Db::builder(path).env(config.env.clone());
    if config.use_existing_db {
        return Ok(Box::new(TerraceStore::build(builder.must_exist(), config.options.clone())?));
    }
    let store = Box::new(TerraceStore::build(builder, config.options.clone())?);
    std::fs::write(path.join(MARK), "The store here was made by `terrace bench db`, which may remove it.\n")?;
    Ok(store)
}

/// Removes the store in `path`, if an earlier run has made it.
fn remove_store(path: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
    };
    if !entries.is_empty() && !path.join(MARK).exists() {
        let place = path.display();
        return Err(format!(
            "{place} is not empty, and no benchmark made it; --use_existing_db uses it as it is"
        )
        .into());
    }
    for entry in entries {
        if entry.file_name().to_str().is_some_and(|name| FileName::parse(name).is_some()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Runs benchmark number `index`; what its threads have done and, if that is asked for, its report.
fn measure(
    config: &Config,
    benchmark: Benchmark,
    index: u64,
    store: &TerraceStore,
) -> Result<(Tally, Option<BenchmarkReport>)> {
    let threads = if benchmark == Benchmark::Compact { 1 } else { config.threads };
    let setting =
        Setting { config, benchmark, db: store.db(), value: value(config), stop: AtomicBool::new(false) };
    if !config.record {
        let probes = std::iter::repeat_with(|| None).take(threads).collect();
        return Ok((run_threads(&setting, index, probes)?, None));
    }
    let before = store.counters();
    let mut recorder = Recorder::start(store, Kind::ALL.map(Kind::name));
    let probes = (0..threads).map(|_| Some(recorder.probe())).collect();
    let tally = recorder.sampling(|| run_threads(&setting, index, probes))?;
    let since = store.counters().since(&before);
    let report = BenchmarkReport::new(config, benchmark, store, &tally, &since, recorder.finish());
    Ok((tally, Some(report)))
}

/// Runs a thread for each of `probes`, and adds up what they have done; a writer behind readers does not count.
fn run_threads(setting: &Setting, index: u64, probes: Vec<Option<Probe>>) -> Result<Tally> {
    let (config, benchmark, threads) = (setting.config, setting.benchmark, probes.len());
    let writers = usize::from(benchmark == Benchmark::ReadWhileWriting);
    let start = Barrier::new(threads + writers);
    std::thread::scope(|scope| {
        let spawn = |(number, probe): (usize, Option<Probe>)| {
            let start = &start;
            scope.spawn(move || {
                let rng = Rng::stream(config.seed, index << 16 | number as u64);
                start.wait();
                let thread = Thread::new(setting, rng, probe);
                if number < threads { thread.run() } else { thread.write_until_stopped() }
            })
        };
        let running: Vec<_> = probes.into_iter().enumerate().map(spawn).collect();
        let writing: Vec<_> = (threads..threads + writers).map(|number| spawn((number, None))).collect();
        let mut tallies: Vec<Result<Tally>> =
            running.into_iter().map(|thread| joined(thread.join())).collect();
        setting.stop.store(true, Ordering::Relaxed);
        for thread in writing {
            joined(thread.join())?;
        }
        let mut all = tallies.pop().ok_or("no threads")??;
        for tally in tallies {
            all.merge(tally?);
        }
        Ok(all)
    })
}

fn joined(thread: std::thread::Result<Result<Tally>>) -> Result<Tally> {
    thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Bytes that values are cut from: random ones, a mebibyte and a value.
fn value(config: &Config) -> Vec<u8> {
    let mut rng = Rng::new(config.seed);
    let bytes = (1 << 20) + config.value_size;
    std::iter::repeat_with(|| rng.next_u64().to_le_bytes()).flatten().take(bytes).collect()
}

#[cfg(test)]
mod tests;
