//! `terrace ingest`: ingests sorted records straight into tables.

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use super::Answer;
use crate::input::Item;
use crate::input::source::{self, SourceArgs};
use crate::place::Place;

/// Take the records of a sorted file straight into tables; the store and the keyspace are created if they are missing
///
/// Keys must ascend strictly. All records take effect together, or none: a bad line ends it with exit status 1. Text from Windows is read as `terrace load` reads it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace ingest people.db sorted.tsv
  terrace scan old.db --json | terrace ingest new.db --format jsonl
  LC_ALL=C sort people.tsv | terrace ingest people.db --format tsv")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    source: SourceArgs,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let name = arguments.source.name();
    let bar = source::progress_bar();
    let mut input = arguments.source.open(&bar)?;
    let (db, keyspace) = arguments.place.open_to_add()?;
    let mut ingest = keyspace.ingest()?;
    let (started, mut records) = (Instant::now(), 0_u64);
    while let Some(item) = input.next_item().map_err(|error| anyhow!("cannot read {name}: {error}"))? {
        let (line, reason) = match item {
            Item::Record { line, keyspace: Some(other), .. } if other != keyspace.name() => {
                (line, format!("a record of keyspace {other:?}, while {:?} is filled", keyspace.name()))
            }
            Item::Record { line, key, value, .. } => match ingest.push(key, value) {
                Ok(()) => {
                    records += 1;
                    continue;
                }
                Err(error) if error.kind() == terrace::ErrorKind::InvalidInput => (line, error.to_string()),
                Err(error) => bail!(error),
            },
            Item::Bad { line, reason } => (line, reason),
        };
        bar.suspend(|| eprintln!("terrace: {name}:{line}: {reason}; nothing is taken"));
        return Ok(Answer::No);
    }
    ingest.finish()?;
    db.close()?;
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{records} records are in, in {seconds:.2} s");
    Ok(Answer::Yes)
}
