//! Terrace beside LevelDB, RocksDB and fjall: the same workload, the same memory, the same load generator.
//!
//! Every engine has its turn in a process and a directory of its own; rounds alternate the order of the turns, so that
//! what drifts on the machine hits all alike. See `README.md` for how to run it and what its figures mean.

mod job;
mod process;
mod store;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::job::{CHILD, Job, Measurement, Phase};
use crate::store::{Engine, Sync};

/// Name of a phase of synced puts, without its number of threads.
const PUT_SYNC: &str = "put-sync-";

/// Measures Terrace beside other stores, in interleaved rounds.
#[derive(Parser)]
#[command(name = "terrace-compare")]
struct Arguments {
    /// Engines, in the order of the first round
    #[arg(long, value_enum, value_delimiter = ',', default_value = "terrace,leveldb,rocksdb,fjall")]
    engines: Vec<Engine>,

    /// Phases of `terrace bench ycsb` on one store, and put-sync-N: N threads that put, each time synced, into a store of
    /// their own
    #[arg(long, value_delimiter = ',', default_value = "load,a,b,c,f,d,e,overwrite,put-sync-1,put-sync-4")]
    phases: Vec<String>,

    /// Records to load
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,

    /// Operations of each phase but load and put-sync [default: half as many as records]
    #[arg(long)]
    operations: Option<u64>,

    /// Puts of a put-sync phase
    #[arg(long, default_value_t = 20_000)]
    synced_puts: u64,

    /// Load threads
    #[arg(long, default_value_t = 2)]
    threads: usize,

    /// Size of a key in bytes
    #[arg(long, default_value_t = 16)]
    key_bytes: usize,

    /// Size of a value in bytes
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,

    /// Rounds; each one gives every engine a turn, in the opposite order of the one before
    #[arg(long, default_value_t = 2)]
    rounds: usize,

    /// Sync the log at every write in all phases
    #[arg(long)]
    sync: bool,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Directory for the stores, on the disk to measure; each is removed after its turn [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Also write all measurements to this file, one object per round, engine and phase
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(CHILD) {
        let job: Job = serde_json::from_str(&words.next().context("no job")?)?;
        println!("{}", serde_json::to_string(&job.run()?)?);
        return Ok(());
    }
    compare(&Arguments::parse())
}

fn compare(arguments: &Arguments) -> Result<()> {
    let root = match &arguments.dir {
        None => tempfile::Builder::new().prefix("terrace-compare-").tempdir()?,
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            tempfile::Builder::new().prefix("terrace-compare-").tempdir_in(dir)?
        }
    };
    let mut rounds: Vec<Vec<Measurement>> = Vec::new();
    for round in 0..arguments.rounds {
        let mut engines = arguments.engines.clone();
        if round % 2 == 1 {
            engines.reverse();
        }
        let mut measurements = Vec::new();
        for engine in engines {
            for job in jobs(arguments, engine, &root.path().join(engine.name()))? {
                let measured = job.run_in_child()?;
                measured.iter().for_each(|one| eprintln!("round {}: {}", round + 1, summary::line(one)));
                measurements.extend(measured);
            }
        }
        rounds.push(measurements);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&rounds)? + "\n")?;
    }
    print!("{}", summary::text(&rounds));
    Ok(())
}

/// The turn of `engine`: one job for the phases that share a store, and one for each that has its own.
fn jobs(arguments: &Arguments, engine: Engine, directory: &Path) -> Result<Vec<Job>> {
    let sync = if arguments.sync { Sync::EveryPut } else { Sync::Never };
    let shared = Job {
        engine,
        directory: directory.to_owned(),
        phases: Vec::new(),
        records: arguments.records,
        operations: arguments.operations.unwrap_or(arguments.records / 2),
        threads: arguments.threads,
        key_bytes: arguments.key_bytes,
        value_bytes: arguments.value_bytes,
        seed: arguments.seed,
        sync,
    };
    let (own, together): (Vec<_>, Vec<_>) =
        arguments.phases.iter().cloned().partition(|phase| phase.starts_with(PUT_SYNC));
    let mut jobs = Vec::new();
    if !together.is_empty() {
        jobs.push(Job { phases: together.into_iter().map(Phase::of_name).collect(), ..shared.clone() });
    }
    for name in own {
        let Ok(threads) = name[PUT_SYNC.len()..].parse() else { bail!("{name}: expected {PUT_SYNC}THREADS") };
        let phases = vec![Phase { name, workload: "load".to_owned() }];
        jobs.push(Job {
            phases,
            threads,
            records: arguments.synced_puts,
            sync: Sync::EveryPut,
            ..shared.clone()
        });
    }
    Ok(jobs)
}
