//! The subcommands, one file each.

mod bench;
mod compact;
mod count;
mod delete;
mod get;
mod load;
mod put;
mod scan;
mod shape;
mod stats;
mod verify;

use anyhow::Result;
use clap::Subcommand;

/// What a command found out, for the exit status.
pub enum Answer {
    Yes,
    No,
}

/// A subcommand and its arguments.
#[derive(Subcommand)]
pub enum Command {
    Put(put::Arguments),
    Get(get::Arguments),
    Delete(delete::Arguments),
    Scan(scan::Arguments),
    Count(count::Arguments),
    Load(load::Arguments),
    Stats(stats::Arguments),
    Shape(shape::Arguments),
    Verify(verify::Arguments),
    Compact(compact::Arguments),
    #[command(subcommand)]
    Bench(bench::Benchmark),
}

impl Command {
    pub fn run(self) -> Result<Answer> {
        match self {
            Self::Put(arguments) => put::run(&arguments),
            Self::Get(arguments) => get::run(&arguments),
            Self::Delete(arguments) => delete::run(&arguments),
            Self::Scan(arguments) => scan::run(&arguments),
            Self::Count(arguments) => count::run(&arguments),
            Self::Load(arguments) => load::run(&arguments),
            Self::Stats(arguments) => stats::run(&arguments),
            Self::Shape(arguments) => shape::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Compact(arguments) => compact::run(&arguments),
            Self::Bench(benchmark) => bench::run(benchmark),
        }
    }
}
