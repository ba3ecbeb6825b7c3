//! The `terrace` command: look into, fill, check and measure Terrace stores.
//!
//! Each subcommand is a file of `command`; this one only parses, dispatches and turns the outcome into an exit status:
//! 0 for success, 1 for a negative answer (an absent key, problems found, a bad input line), 2 for wrong usage and for
//! errors of the store or the system. A reader that closes the pipe early is no error.
#![expect(
    clippy::disallowed_methods,
    reason = "the tool reads files and real time on its user's behalf, outside `env`"
)]

mod bytes;
mod command;
mod dump;
mod input;
mod place;
mod range;
mod table_io;

use std::process::ExitCode;
use std::{env, io};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command::{Answer, Command};

/// Look into, fill, check and measure Terrace stores.
#[derive(Parser)]
#[command(name = "terrace", version, propagate_version = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  terrace put people.db ada 'Ada Lovelace'
  terrace get people.db ada
  terrace scan people.db --prefix a --limit 10
  terrace dump people.db > people.jsonl
  terrace load copy.db people.jsonl
  terrace verify people.db
  terrace bench ycsb --records 100000 --threads 2

Exit status: 0 success; 1 absent key, problems found or bad input line; 2 wrong usage or an error.";

/// Takes as many descriptors as may be had: an opening for reading keeps one for each pack, and the usual limit of 1,024 would be
/// reached at 32 GB. If there are no more, the store says so.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn main() -> ExitCode {
    raise_descriptor_limit();
    let (arguments, passed_over) = command::bench::translate(env::args_os());
    let arguments = Arguments::parse_from(arguments);
    if !passed_over.is_empty() {
        eprintln!("Passed over, without effect here: --{}", passed_over.join(", --"));
    }
    match arguments.command.run() {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("terrace: {error}");
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
