//! `terrace bench deletes`: measures how deletion behaves.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use terrace_bench::deletes::{self, CASES, Choice, Terrace};

use super::output::Output;
use crate::command::Answer;

/// Measure what deletes cost readers afterwards, and how soon and how fully their space comes back
///
/// Each case is a workload on a store of its own, on the real file system. Without --scale all of them take about ten minutes and
/// at most 6 GB of disk.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench deletes --case queue --case stack
  terrace bench deletes --scale 10 --json deletes.json --html deletes.html
  terrace bench deletes --dir /mnt/nvme --options leveldb-64m --case random")]
pub struct Arguments {
    /// A case; may be given several times [default: all]
    #[arg(long = "case", value_name = "NAME", value_parser = names())]
    cases: Vec<String>,

    /// Divide counts of rows by this, at least 1
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    scale: f64,

    /// Directory on the file system in question; temporary ones are made in it for the stores, and removed
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,

    /// Profile of options to open stores with, and parts of its tree set otherwise: default:settle=off:group_bytes=64M
    #[arg(long, value_name = "NAME[:PART=VALUE]...", default_value = "default")]
    options: String,

    /// Seconds after which a loop that has not come to its end is cut off
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    seconds: f64,

    /// Seconds that a store is watched at rest, at most 60
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    rest_seconds: f64,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: Output,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CASES.iter().map(|case| case.name))
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let Arguments { scale, seconds, rest_seconds, seed, .. } = *arguments;
    if !(scale.is_finite() && scale >= 1.0) {
        bail!("--scale: {scale} is not 1 or more");
    }
    for (name, seconds) in [("--seconds", seconds), ("--rest-seconds", rest_seconds)] {
        if !(0.0..=86_400.0).contains(&seconds) {
            bail!("{name}: {seconds} is not from 0 to a day");
        }
    }
    let plain = |error: terrace_bench::Error| anyhow!("{error}");
    let engine = Terrace::new(&arguments.options).map_err(plain)?;
    std::fs::create_dir_all(&arguments.dir)
        .with_context(|| format!("cannot create {}", arguments.dir.display()))?;
    let choice = Choice {
        cases: arguments.cases.clone(),
        scale,
        dir: arguments.dir.clone(),
        limit_s: seconds,
        rest_s: rest_seconds,
        seed,
    };
    let watched = io::stderr().is_terminal();
    let mut told = |what: &str| {
        if watched {
            eprintln!("{what}");
        }
    };
    let run = deletes::run(&engine, &choice, &mut told).map_err(plain)?;
    io::stdout().lock().write_all(deletes::text(&run).as_bytes())?;
    arguments.output.write("deletes", &run)?;
    Ok(Answer::Yes)
}
