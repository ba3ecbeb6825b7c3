//! `terrace bench punch`: measures the cost of holes on a file system.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use terrace_bench::punch::{self, PunchOptions};

use super::output::Output;
use crate::command::Answer;

/// Measure what holes in files cost on a file system: each punch by its size, syncs and removals behind them, and what
/// hours of churn do to new files
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace bench punch --dir /var/tmp
  slow-disk --file-system xfs -- terrace bench punch --dir {} --json xfs.json --html xfs.html")]
pub struct Arguments {
    /// Directory on the file system in question; what is made in it is removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Packs of 32 MiB whose tables live at a time; the disk holds them and one more
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    packs: u16,

    /// Megabytes that are written in packs, in all
    #[arg(long, value_name = "N", default_value_t = 16_000)]
    churn_mb: u64,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: Output,
}

pub fn run(arguments: Arguments) -> Result<Answer> {
    let Arguments { dir, packs, churn_mb, seed, output } = arguments;
    let options = PunchOptions { dir, packs: packs.into(), churn_bytes: churn_mb * 1_000_000, seed };
    let run = punch::run(&options).map_err(|error| anyhow!("{error}"))?;
    io::stdout().lock().write_all(punch::text(&run).as_bytes())?;
    output.write("holes", &run)?;
    Ok(Answer::Yes)
}
