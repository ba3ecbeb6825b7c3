//! The subcommands, one file each.

pub mod bench;
mod checkpoint;
mod compact;
mod completions;
mod count;
mod delete;
mod delete_range;
mod devices;
mod dump;
mod files;
mod get;
mod ingest;
mod keyspace;
mod load;
mod man;
mod manifest_dump;
mod multi_get;
mod properties;
mod put;
mod repair;
mod scan;
mod shape;
mod stats;
mod table_dump;
mod verify;
mod wal_dump;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};

/// The outcome of a command, for the exit status.
pub enum Answer {
    Yes,
    No,
}

/// A subcommand and its arguments.
#[derive(Subcommand)]
pub enum Command {
    Put(put::Arguments),
    Get(get::Arguments),
    MultiGet(multi_get::Arguments),
    Delete(delete::Arguments),
    DeleteRange(delete_range::Arguments),
    Scan(scan::Arguments),
    Count(count::Arguments),
    Dump(dump::Arguments),
    Load(load::Arguments),
    Ingest(ingest::Arguments),
    Checkpoint(checkpoint::Arguments),
    Stats(stats::Arguments),
    Properties(properties::Arguments),
    Shape(shape::Arguments),
    Verify(verify::Arguments),
    Repair(repair::Arguments),
    Compact(compact::Arguments),
    Devices(devices::Arguments),
    Keyspace(keyspace::Arguments),
    ManifestDump(manifest_dump::Arguments),
    WalDump(wal_dump::Arguments),
    TableDump(table_dump::Arguments),
    #[command(subcommand)]
    Bench(bench::Benchmark),
    Man(man::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    pub fn run(self) -> Result<Answer> {
        match self {
            Self::Put(arguments) => put::run(&arguments),
            Self::Get(arguments) => get::run(&arguments),
            Self::MultiGet(arguments) => multi_get::run(&arguments),
            Self::DeleteRange(arguments) => delete_range::run(&arguments),
            Self::Delete(arguments) => delete::run(&arguments),
            Self::Scan(arguments) => scan::run(&arguments),
            Self::Count(arguments) => count::run(&arguments),
            Self::Dump(arguments) => dump::run(&arguments),
            Self::Load(arguments) => load::run(&arguments),
            Self::Ingest(arguments) => ingest::run(&arguments),
            Self::Checkpoint(arguments) => checkpoint::run(&arguments),
            Self::Stats(arguments) => stats::run(&arguments),
            Self::Properties(arguments) => properties::run(&arguments),
            Self::Shape(arguments) => shape::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Repair(arguments) => repair::run(&arguments),
            Self::Compact(arguments) => compact::run(&arguments),
            Self::Devices(arguments) => devices::run(&arguments),
            Self::Keyspace(arguments) => keyspace::run(&arguments),
            Self::ManifestDump(arguments) => manifest_dump::run(&arguments),
            Self::WalDump(arguments) => wal_dump::run(&arguments),
            Self::TableDump(arguments) => table_dump::run(&arguments),
            Self::Bench(benchmark) => bench::run(benchmark),
            Self::Man(arguments) => man::run(&arguments, crate::Arguments::command()),
            Self::Completions(arguments) => completions::run(&arguments, crate::Arguments::command()),
        }
    }
}
