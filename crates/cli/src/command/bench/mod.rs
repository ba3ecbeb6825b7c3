//! `terrace bench`: measures a store.

mod db;
mod ycsb;

use anyhow::Result;
use clap::Subcommand;

use super::Answer;

/// Measure a store under a standard workload
#[derive(Subcommand)]
pub enum Benchmark {
    Ycsb(ycsb::Arguments),
    Db(db::Arguments),
}

pub fn run(benchmark: Benchmark) -> Result<Answer> {
    match benchmark {
        Benchmark::Ycsb(arguments) => ycsb::run(arguments),
        Benchmark::Db(arguments) => db::run(arguments),
    }
}
