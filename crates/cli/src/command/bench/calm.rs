//! `terrace bench calm`: measures whether clients notice the work of the background.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use terrace::Durability;
use terrace_bench::calm::{self, CalmRun, Settings, TerraceSubject};
use terrace_bench::report::Provenance;

use super::output::Output;
use crate::command::Answer;

/// Measure whether clients notice flushes and compactions; exit with 1 if an answer was wrong
///
/// Loads a store, finds the rate that it sustains in a closed loop, then offers shares of that rate in an open loop and
/// compares windows of half a second with background work with those without. Clients spin until an operation arrives, as
/// many of them as leave one processor free. An engine that does nothing runs at each rate before the store does. It takes half an hour
/// by default, on a machine that does nothing else.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench calm --json calm.json --html calm.html
  terrace bench calm --records 4000000 --value-bytes 100 --cache-bytes 1000000000 --distribution zipfian
  terrace bench calm --capacity 57000 --levels 70 --seconds 600 --path /mnt/fast/calm
  terrace bench calm --records 200000 --capacity-seconds 10,20 --seconds 20 --floor-seconds 5 --profile leveldb-64m")]
pub struct Arguments {
    /// Records to load
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    records: u64,

    /// Size of every key in bytes
    #[arg(long, value_name = "N", default_value_t = 16)]
    key_bytes: usize,

    /// Size of every value in bytes, at least 12
    #[arg(long, value_name = "N", default_value_t = 1024)]
    value_bytes: usize,

    /// Share of the operations that update; the others read
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0)]
    updates: f64,

    /// Which records are asked for
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    distribution: Distribution,

    /// Cache of the store in bytes; three memtables come on top [default: a quarter of the data]
    #[arg(long, value_name = "N")]
    cache_bytes: Option<u64>,

    /// Size of a full memtable in bytes [default: the profile's]
    #[arg(long, value_name = "N")]
    memtable_bytes: Option<u64>,

    /// Profile of options to open the store with, and parts of its tree set otherwise: default:yield_disk=off
    #[arg(long, value_name = "NAME[:PART=VALUE]...")]
    profile: Option<String>,

    /// Make every write survive power loss before it returns
    #[arg(long)]
    sync: bool,

    /// Levels of load, in percent of what the store sustains
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_values_t = [30.0, 50.0, 70.0, 85.0])]
    levels: Vec<f64>,

    /// Seconds of each level
    #[arg(long, value_name = "N", default_value_t = 300.0)]
    seconds: f64,

    /// Seconds before those that do not count
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    warm_up: f64,

    /// Seconds of the empty engine before each level, or 0
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    floor_seconds: f64,

    /// Seconds in which the sustained rate is found, at least and at most
    #[arg(long, value_name = "MIN,MAX", value_delimiter = ',', num_args = 1, default_values_t = [120.0, 600.0])]
    capacity_seconds: Vec<f64>,

    /// Take so many operations a second for the sustained rate, and do not look for it
    #[arg(long, value_name = "OPS")]
    capacity: Option<f64>,

    /// Seconds that the store is given to come to rest before each level, at most
    #[arg(long, value_name = "N", default_value_t = 120.0)]
    rest_seconds: f64,

    /// Clients [default: one fewer than there are processors, at least one]
    #[arg(long, value_name = "N")]
    clients: Option<usize>,

    /// Ask what operations waited for that take so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2.0)]
    slow_ms: f64,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Directory of the store, missing or empty; it stays [default: a temporary one, removed afterwards]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Distribution {
    /// A few very often
    Zipfian,
    /// All alike
    Uniform,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let settings = arguments.settings()?;
    // A run takes long; without a terminal nobody watches.
    let watched = io::stderr().is_terminal();
    let mut stage = |what: &str| {
        if watched {
            eprintln!("{what}");
        }
    };
    let engine = arguments.subject().measure(&settings, &mut stage).map_err(|error| anyhow!("{error}"))?;
    let wrong = engine.wrong;
    let run = CalmRun { provenance: Provenance::here(), seed: settings.seed, settings, calm: vec![engine] };
    io::stdout().lock().write_all(calm::text(&run).as_bytes())?;
    arguments.output.write("calm", &run)?;
    Ok(if wrong == 0 { Answer::Yes } else { Answer::No })
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
                Distribution::Zipfian => calm::Distribution::Zipfian,
                Distribution::Uniform => calm::Distribution::Uniform,
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

    fn subject(&self) -> TerraceSubject {
        TerraceSubject {
            path: self.path.clone(),
            profile: self.profile.clone(),
            cache_bytes: self.cache_bytes,
            memtable_bytes: self.memtable_bytes,
            durability: if self.sync { Durability::Synced } else { Durability::Buffered },
        }
    }
}
