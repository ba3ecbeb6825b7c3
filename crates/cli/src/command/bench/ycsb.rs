//! `terrace bench ycsb`: runs YCSB's core workloads.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use terrace::Durability;
use terrace_bench::report::{self, Provenance, Run};
use terrace_bench::store::TerraceConfig;
use terrace_bench::ycsb::{self, Config, Place};

use super::output::Output;
use crate::command::Answer;
use crate::table_io::IoArg;

/// Run YCSB's core workloads and verify every value read; exit with 1 if one was wrong
///
/// The properties of a phase are those of the shipped workload of its name (load, a to f, overwrite; run stands for none), then
/// those of -P files, then those of -p, later ones winning.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench ycsb --records 1000000 --operations 1000000 --threads 2
  terrace bench ycsb --phases load,c --seconds 30 --key-bytes 16 --value-bytes 100
  terrace bench ycsb --phases load,a --target 20000 --sync --json a.json --html a.html
  terrace bench ycsb --db /mnt/nvme/bench --device /mnt/sata/bench --profile default:placer=mod4
  terrace bench ycsb --db /mnt/nvme/bench --stripe /mnt/sata/bench --stripe-weights 5,1 --profile default:placer=home
  terrace bench ycsb -P my-workload -p recordcount=5000 --db /mnt/fast/bench")]
pub struct Arguments {
    /// Phases in order [default: load,a,b,c,f,d,e, or load,run with -P]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    phases: Option<Vec<String>>,

    /// YCSB property file; can be given more than once
    #[arg(short = 'P', value_name = "FILE")]
    property_files: Vec<PathBuf>,

    /// YCSB property; can be given more than once
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,

    /// Records to load [default: recordcount]
    #[arg(long, value_name = "N")]
    records: Option<u64>,

    /// Operations of each phase but the load [default: operationcount, or no limit with --seconds]
    #[arg(long, value_name = "N")]
    operations: Option<u64>,

    /// Load threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// Size of every key in bytes [default: YCSB's keys, of up to 23]
    #[arg(long, value_name = "N")]
    key_bytes: Option<usize>,

    /// Size of every value in bytes, at least 12 [default: fieldcount * fieldlength]
    #[arg(long, value_name = "N")]
    value_bytes: Option<usize>,

    /// Start so many operations a second, late or not, and count latency from the intended start
    #[arg(long, value_name = "OPS")]
    target: Option<f64>,

    /// End each phase but the load after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Directory of the store, missing or empty; it stays [default: a temporary one, removed afterwards]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// Another directory for tables, on another device; can be given more than once. It stays. Which tables go there is a part of
    /// --profile: default:placer=mod4
    #[arg(long = "device", value_name = "DIR", requires = "db")]
    devices: Vec<PathBuf>,

    /// Go on with the store that an earlier run left in --db
    #[arg(long, requires = "db")]
    use_existing: bool,

    /// Profile of options to open the store with, and parts of its tree set otherwise: default:settle=off:group_bytes=64M
    #[arg(long, value_name = "NAME[:PART=VALUE]...")]
    profile: Option<String>,

    /// Memory budget of the store in bytes [default: the profile's]
    #[arg(long, value_name = "N")]
    memory_bytes: Option<u64>,

    /// Make every write survive power loss before it returns
    #[arg(long)]
    sync: bool,

    /// Stripe the packs over --db and this directory; can be given more than once
    #[arg(long, value_name = "DIR", requires = "db")]
    stripe: Vec<PathBuf>,

    /// Chunks for --db and each --stripe in turn, such as 5,1 [default: one for each]
    #[arg(long, value_name = "N,N...", value_delimiter = ',', requires = "stripe")]
    stripe_weights: Option<Vec<u32>>,

    #[command(flatten)]
    io: IoArg,

    #[command(flatten)]
    output: Output,
}

pub fn run(arguments: Arguments) -> Result<Answer> {
    let (place, store, seed) = (arguments.place(), arguments.store(), arguments.seed);
    let (config, output) = arguments.into_config();
    let warn = |warning: &str| eprintln!("terrace: {warning}");
    let outcome = ycsb::run(config, &place, &store, warn).map_err(|error| anyhow!("{error}"))?;
    for wrong in &outcome.wrong {
        eprintln!("terrace: wrong: {wrong}");
    }
    let is_right = outcome.reports.iter().all(|report| report.wrong == 0);
    io::stdout().lock().write_all(report::text(&outcome.reports).as_bytes())?;
    output.write("ycsb", &Run { provenance: Provenance::here(), seed, phases: outcome.reports })?;
    Ok(if is_right { Answer::Yes } else { Answer::No })
}

impl Arguments {
    fn into_config(self) -> (Config, Output) {
        let default = if self.property_files.is_empty() { "load,a,b,c,f,d,e" } else { "load,run" };
        let phases = self.phases.unwrap_or_else(|| default.split(',').map(str::to_owned).collect());
        let config = Config {
            phases,
            property_files: self.property_files,
            properties: self.properties,
            records: self.records,
            operations: self.operations,
            threads: self.threads,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            target: self.target,
            time: self.seconds,
            seed: self.seed,
        };
        (config, self.output)
    }

    fn place(&self) -> Place {
        match self.db.clone() {
            None => Place::Temporary,
            Some(path) if self.use_existing => Place::Existing(path),
            Some(path) => Place::Fresh(path),
        }
    }

    fn store(&self) -> TerraceConfig {
        TerraceConfig {
            profile: self.profile.clone(),
            memory_bytes: self.memory_bytes,
            env: Some(self.io.env()),
            durability: if self.sync { Durability::Synced } else { Durability::Buffered },
            devices: self.devices.clone(),
            stripe: self.stripe.clone(),
            stripe_weights: self.stripe_weights.clone(),
        }
    }
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
    } else {
        Err("must be above 0".to_owned())
    }
}
