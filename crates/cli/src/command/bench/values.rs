//! `terrace bench values`: measures what large values cost.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use terrace_bench::values::{self, Choice, Separation, Size, Terrace};

use super::output::Output;
use crate::command::Answer;

/// Sizes, data and times of a quick look.
const QUICK_SIZES: &[Size] = &[Size::Fixed(1 << 10), Size::Fixed(16 << 10), Size::Mix];
const QUICK_DATA_MB: u64 = 16;
const QUICK_S: f64 = 0.5;

/// Measure what large values cost: rates, bytes written, and space over time
///
/// Values of each size are loaded in random order, updated uniformly and by popularity until the store is at rest, read in several
/// ways, and a fifth of them is deleted. The space of the store is looked at all the while. With the defaults each size takes two to
/// four minutes, and three times the data on disk.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench values --quick
  terrace bench values --sizes 4K,64K --separate-from 1024,never --rounds 3 --json values.json --html values.html
  slow-disk --write-mb 100 --read-mb 200 -- terrace bench values --dir {} --sizes 4K")]
pub struct Arguments {
    /// Sizes of values, in bytes or with K or M: also `mix` (half 100 B, a third 1 KiB, the rest 16 KiB to 1 MiB) and `mail` (150 values of 10 to 34 MB) [default: 256,1K,4K,16K,64K,1M,16M,mix,mail]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sizes: Vec<Size>,

    /// Megabytes (of 2^20 bytes) of keys and values; a store has a quarter of it as memory [default: 1024]
    #[arg(long, value_name = "MB")]
    data_mb: Option<u64>,

    /// Seconds of each phase of updates; phases of reads take a third of it [default: 30]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// Seconds after the last write at which space is told as that at rest [default: 5]
    #[arg(long, value_name = "S")]
    rest_seconds: Option<f64>,

    /// From which size on values are separated from their keys; several are measured in turns. Goals are told of those that separate, some of them beside `never`
    #[arg(long, value_name = "BYTES|never|default", value_delimiter = ',', default_value = "default")]
    separate_from: Vec<Separation>,

    /// Rounds, each of which measures everything once; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Little data and short phases, to see that everything works: the figures say nothing
    #[arg(long)]
    quick: bool,

    /// Directory on the file system in question; temporary ones are made in it for the stores, and removed
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,

    /// Profile of options to open stores with, and parts of its tree set otherwise: default:settle=off:group_bytes=64M
    #[arg(long, value_name = "NAME[:PART=VALUE]...", default_value = "default")]
    options: String,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: Output,
}

impl Arguments {
    fn sizes(&self) -> &[Size] {
        match (&self.sizes[..], self.quick) {
            ([], true) => QUICK_SIZES,
            ([], false) => Size::DEFAULT,
            (sizes, _) => sizes,
        }
    }

    fn choice(&self) -> Result<Choice> {
        let usual = Choice::default();
        let data_mb = self.data_mb.unwrap_or(if self.quick { QUICK_DATA_MB } else { usual.data_bytes >> 20 });
        let seconds = self.seconds.unwrap_or(if self.quick { QUICK_S } else { usual.update_s });
        if !(1..=1 << 20).contains(&data_mb) {
            bail!("--data-mb: {data_mb} is not from 1 to {}", 1 << 20);
        }
        let rest = self.rest_seconds.unwrap_or(if self.quick { QUICK_S } else { usual.rest_s });
        for (name, seconds) in [("--seconds", seconds), ("--rest-seconds", rest)] {
            if !(0.0..=86_400.0).contains(&seconds) {
                bail!("{name}: {seconds} is not from 0 to a day");
            }
        }
        Ok(Choice {
            data_bytes: data_mb << 20,
            update_s: seconds,
            read_s: seconds / 3.0,
            rest_s: rest,
            dir: self.dir.clone(),
            seed: self.seed,
            ..usual
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let plain = |error: terrace_bench::Error| anyhow!("{error}");
    let choice = arguments.choice()?;
    let mut engines = Vec::new();
    for &separation in &arguments.separate_from {
        engines.push(Terrace::new(&arguments.options, separation).map_err(plain)?);
    }
    std::fs::create_dir_all(&arguments.dir)
        .with_context(|| format!("cannot create {}", arguments.dir.display()))?;
    let watched = io::stderr().is_terminal();
    let mut cells = Vec::new();
    for round in 1..=arguments.rounds {
        for &size in arguments.sizes() {
            for turn in 0..engines.len() {
                // Rounds alternate, so that what drifts on the machine hits all alike.
                let place = if round % 2 == 1 { turn } else { engines.len() - 1 - turn };
                let engine: &dyn values::Engine = &engines[place];
                if watched {
                    eprintln!("round {round}: {}, values of {size}", engine.name());
                }
                cells.push(values::measure(engine, size, round, &choice).map_err(plain)?);
            }
        }
    }
    let run = choice.run(cells);
    io::stdout().lock().write_all(values::text(&run).as_bytes())?;
    arguments.output.write("values", &run)?;
    Ok(Answer::Yes)
}
