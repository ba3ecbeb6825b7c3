//! `terrace-compare calm`: whether clients notice the work of the background, of one engine after the other.
//!
//! What is measured and how is [`terrace_bench::calm`]'s; every engine is measured by it alike, in a process and a directory
//! of its own. Whether there is background work is told from outside.

mod subject;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use terrace_bench::calm::{self as bench, CalmRun, EngineReport, Settings, Subject};

use self::subject::Measured;
use crate::apart::{self, Outputs, plain};
use crate::child;
use crate::store::{Durability, Engine, Opening};

/// First argument of this program that asks for this.
pub const CALM: &str = "calm";

/// First argument of a process that measures one engine, given as the second.
pub const CALM_TURN: &str = "--calm-turn";

/// Measures whether clients notice flushes and compactions, of Terrace and its peers
///
/// Each engine finds the rate that it sustains in a closed loop; shares of that are offered in an open loop, and windows of
/// half a second with background work are compared with those without. Clients spin until an operation arrives, as many
/// as leave one processor free. With --capacity all engines are offered the same rates.
#[derive(Parser)]
#[command(name = "terrace-compare calm")]
pub struct Arguments {
    /// Engines, in order; those of `terrace-compare`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "terrace,rocksdb,fjall,solistore",
        value_parser = |name: &str| Engine::try_from(name.to_owned()))]
    engines: Vec<Engine>,

    /// Records
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,

    /// Size of every key in bytes
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    key_bytes: usize,

    /// Size of every value in bytes
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    value_bytes: usize,

    /// Share of the operations that update; the others read
    #[arg(long, default_value_t = 50.0, value_name = "PERCENT")]
    updates: f64,

    /// Which records are asked for
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    distribution: Distribution,

    /// Cache of each store in bytes [default: a quarter of the data]
    #[arg(long, value_name = "BYTES")]
    cache_bytes: Option<usize>,

    /// Size of a full memtable in bytes
    #[arg(long, default_value_t = 64 << 20, value_name = "BYTES")]
    memtable_bytes: usize,

    /// Levels of load, in percent of what the engine sustains
    #[arg(long, value_delimiter = ',', default_values_t = [30.0, 50.0, 70.0, 85.0], value_name = "PERCENTS")]
    levels: Vec<f64>,

    /// Seconds of each level
    #[arg(long, default_value_t = 300.0)]
    seconds: f64,

    /// Seconds before those that do not count
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    warm_up: f64,

    /// Seconds of the empty engine before each level, or 0
    #[arg(long, default_value_t = 60.0)]
    floor_seconds: f64,

    /// Seconds in which the sustained rate is found, at least and at most
    #[arg(long, value_delimiter = ',', num_args = 1, default_values_t = [120.0, 600.0], value_name = "MIN,MAX")]
    capacity_seconds: Vec<f64>,

    /// Take so many operations a second for the sustained rate of every engine
    #[arg(long, value_name = "OPS")]
    capacity: Option<f64>,

    /// Seconds that a store is given to come to rest before each level, at most
    #[arg(long, default_value_t = 120.0)]
    rest_seconds: f64,

    /// Clients [default: one fewer than there are processors, at least one]
    #[arg(long)]
    clients: Option<usize>,

    /// Ask what operations waited for that take so many milliseconds
    #[arg(long, default_value_t = 2.0, value_name = "MS")]
    slow_ms: f64,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Directory for the stores, on the disk to measure [default: that for temporary files]
    #[arg(long)]
    path: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Distribution {
    /// A few very often
    Zipfian,
    /// All alike
    Uniform,
}

/// What a process measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    engine: Engine,
    opening: Opening,
    settings: Settings,
    /// Where its store gets a directory.
    root: PathBuf,
}

/// Measures all engines and says what came out.
///
/// # Errors
/// Settings that make no sense, or an engine that failed or was wrong.
pub fn main(arguments: &Arguments) -> Result<()> {
    let settings = arguments.settings()?;
    settings.check().map_err(plain)?;
    let opening = arguments.opening(&settings)?;
    child::handle_interrupts()?;
    let root = apart::root(arguments.path.as_deref())?;
    let mut calm: Vec<EngineReport> = Vec::new();
    for &engine in &arguments.engines {
        let root = root.path().to_owned();
        let job = Job { engine, opening, settings: settings.clone(), root };
        calm.push(apart::ask(CALM_TURN, &job).with_context(|| engine.name())?);
    }
    let provenance = apart::provenance();
    let wrong: u64 = calm.iter().map(|engine| engine.wrong).sum();
    let run = CalmRun { provenance, seed: settings.seed, settings, calm };
    print!("{}", bench::text(&run));
    arguments.outputs.write(CALM, &run)?;
    ensure!(wrong == 0, "{wrong} wrong answers");
    Ok(())
}

impl Arguments {
    fn settings(&self) -> Result<Settings> {
        let [capacity_min_s, capacity_max_s] = self.capacity_seconds[..] else {
            bail!("--capacity-seconds takes two numbers");
        };
        Ok(Settings {
            records: self.records,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            update_percent: self.updates,
            distribution: match self.distribution {
                Distribution::Zipfian => bench::Distribution::Zipfian,
                Distribution::Uniform => bench::Distribution::Uniform,
            },
            levels: self.levels.clone(),
            level_s: self.seconds,
            warm_up_s: self.warm_up,
            floor_s: self.floor_seconds,
            capacity: self.capacity,
            capacity_min_s,
            capacity_max_s,
            rest_s: self.rest_seconds,
            clients: self.clients,
            slow_ms: self.slow_ms,
            seed: self.seed,
        })
    }

    fn opening(&self, settings: &Settings) -> Result<Opening> {
        let quarter = usize::try_from(settings.data_bytes() / 4)?;
        let memtable_bytes = self.memtable_bytes;
        let cache_bytes = self.cache_bytes.unwrap_or(quarter);
        Ok(Opening { cache_bytes, memtable_bytes, durability: Durability::Kill })
    }
}

impl Job {
    /// Measures in this process.
    fn run(&self) -> Result<EngineReport> {
        let name = self.engine.name();
        let directory = tempfile::tempdir_in(&self.root)?;
        let store =
            Measured { name: name.clone(), store: self.engine.open(directory.path(), &self.opening)? };
        let version = self.engine.version(directory.path())?;
        let subject = Subject { store: &store, directory: directory.path(), version };
        let mut stage = |what: &str| eprintln!("{name}: {what}");
        let report = bench::run(&subject, &self.settings, &mut stage).map_err(plain)?;
        store.store.close()?;
        Ok(report)
    }
}

/// What the process does that is to measure one engine.
///
/// # Errors
/// The one that runs it is gone or asked for something else; or whatever the engine reports.
pub fn turn(job: &str) -> Result<()> {
    apart::answer(job, Job::run)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn job(engine: Engine, root: &std::path::Path) -> Job {
        let settings = Settings {
            records: 2000,
            value_bytes: 100,
            levels: vec![30.0],
            level_s: 1.0,
            warm_up_s: 0.5,
            floor_s: 0.5,
            capacity_min_s: 1.0,
            capacity_max_s: 1.0,
            rest_s: 0.1,
            ..Settings::default()
        };
        let opening = Opening { cache_bytes: 8 << 20, memtable_bytes: 1 << 20, durability: Durability::Kill };
        Job { engine, opening, settings, root: root.to_owned() }
    }

    #[test]
    fn every_peer_is_measured_alike() {
        let root = tempfile::tempdir().unwrap();
        for engine in [Engine::Terrace, Engine::Rocksdb, Engine::Leveldb, Engine::Fjall, Engine::Solistore] {
            let report = job(engine, root.path()).run().unwrap();
            assert_eq!((report.engine, report.wrong), (engine.name(), 0));
            assert!(report.capacity.ops_per_s > 0.0 && !report.version.is_empty());
            let level = &report.levels[0];
            assert_eq!((level.course.len(), level.floor.is_empty()), (3, false));
            assert!(level.all.operations > 0 || level.windows.kept == 0, "{level:?}");
            // Only Terrace tells of itself.
            let told = if engine == Engine::Terrace { 2 } else { 1 };
            assert_eq!(level.splits.len(), told, "{}", engine.name());
        }
    }

    #[test]
    fn command_line_is_sound_and_the_cache_is_a_quarter_of_the_data() {
        Arguments::command().debug_assert();
        let arguments = Arguments::try_parse_from(["calm", "--records", "1000"]).unwrap();
        let settings = arguments.settings().unwrap();
        assert_eq!(arguments.opening(&settings).unwrap().cache_bytes, 260_000);
        let engines: Vec<String> = arguments.engines.iter().map(|engine| engine.name()).collect();
        assert_eq!(engines.join(","), "terrace,rocksdb,fjall,solistore");
        let short = Arguments::try_parse_from(["calm", "--capacity-seconds", "5"]).unwrap();
        assert!(short.settings().is_err());
    }
}
