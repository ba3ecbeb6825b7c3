//! `terrace bench`: measures a store.

mod calm;
mod db;
mod deletes;
mod device;
mod flags;
mod layouts;
mod output;
mod paper;
mod punch;
mod replay;
mod report;
mod values;
mod ycsb;

use anyhow::Result;
use clap::Subcommand;

use super::Answer;
pub use flags::translate;

/// Measure a store under a standard workload
#[derive(Subcommand)]
pub enum Benchmark {
    Ycsb(ycsb::Arguments),
    Db(db::Arguments),
    Report(report::Arguments),
    Replay(replay::Arguments),
    Paper(paper::Arguments),
    Punch(punch::Arguments),
    Calm(calm::Arguments),
    Layouts(layouts::Arguments),
    Deletes(deletes::Arguments),
    Values(values::Arguments),
}

pub fn run(benchmark: Benchmark) -> Result<Answer> {
    match benchmark {
        Benchmark::Ycsb(arguments) => ycsb::run(arguments),
        Benchmark::Db(arguments) => db::run(arguments),
        Benchmark::Report(arguments) => report::run(arguments),
        Benchmark::Replay(arguments) => replay::run(&arguments),
        Benchmark::Paper(arguments) => paper::run(&arguments),
        Benchmark::Punch(arguments) => punch::run(arguments),
        Benchmark::Calm(arguments) => calm::run(&arguments),
        Benchmark::Layouts(arguments) => layouts::run(&arguments),
        Benchmark::Deletes(arguments) => deletes::run(&arguments),
        Benchmark::Values(arguments) => values::run(&arguments),
    }
}
