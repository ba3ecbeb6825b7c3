//! `terrace load`: stores the records of a file in batches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::Args;
use indicatif::ProgressBar;
use terrace::{Db, Keyspace, WriteBatch};

use super::Answer;
use crate::input::source::{self, SourceArgs};
use crate::input::{Item, RecordReader};
use crate::place::{Place, SyncArg};
use crate::table_io::IoArg;

/// Number of skipped bad lines that are named.
const NAMED_MAX: u64 = 5;

/// Store the records of a file; the store and the keyspace are created if they are missing
///
/// Records that name a keyspace, as those of `terrace dump` do, go there. A bad line stops the load with exit status 1 after all records before it are stored; --skip-bad goes on without it.
///
/// Text is UTF-8, or any bytes where the format has room for them. A byte-order mark in front is no part of it. A line ends with LF or, as on Windows, with CRLF; --keep-cr is for values that end in CR. A CR elsewhere, what is quoted in CSV and what is escaped stay as they are, empty lines at the end are passed over, and UTF-16 is refused.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace load people.db people.csv --header
  terrace dump old.db | terrace load new.db
  ldb --db=rocks dump --hex | terrace load rocks-copy.db --format ldb-hex")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    source: SourceArgs,

    /// Records per atomic batch
    #[arg(long, value_name = "N", default_value = "1000")]
    batch: NonZeroUsize,

    /// Skip bad lines, count them and name the first few
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    sync: SyncArg,

    #[command(flatten)]
    io: IoArg,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let name = arguments.source.name();
    let bar = source::progress_bar();
    let mut records = arguments.source.open(&bar)?;
    let (db, keyspace) = arguments.place.open_to_load(&arguments.io)?;
    let mut load = Load::new(arguments, &db, &keyspace);
    let started = Instant::now();
    let result = load.run(&name, &mut *records, &bar);
    // Even if the load stops with an error, the records before it are stored.
    let result = load.commit().and(result);
    bar.finish_and_clear();
    load.report(started.elapsed());
    let answer = result?;
    db.close()?;
    Ok(answer)
}

/// A running load.
struct Load<'a> {
    arguments: &'a Arguments,
    db: &'a Db,
    keyspace: &'a Keyspace,
    /// Those that records have named.
    named: HashMap<String, Keyspace>,
    batch: WriteBatch,
    /// Bytes of keys and values in `batch`.
    batch_bytes: u64,
    records: u64,
    bytes: u64,
    skipped: u64,
}

impl<'a> Load<'a> {
    fn new(arguments: &'a Arguments, db: &'a Db, keyspace: &'a Keyspace) -> Self {
        let (named, batch) = (HashMap::new(), WriteBatch::new());
        Self { arguments, db, keyspace, named, batch, batch_bytes: 0, records: 0, bytes: 0, skipped: 0 }
    }

    fn run(&mut self, name: &str, records: &mut dyn RecordReader, bar: &ProgressBar) -> Result<Answer> {
        while let Some(item) = records.next_item().map_err(|error| anyhow!("cannot read {name}: {error}"))? {
            match item {
                Item::Record { keyspace, key, value, .. } => self.add(keyspace, &key, &value)?,
                Item::Bad { line, reason } => {
                    self.skipped += 1;
                    if !self.arguments.skip_bad || self.skipped <= NAMED_MAX {
                        bar.suspend(|| eprintln!("terrace: {name}:{line}: {reason}"));
                    }
                    if !self.arguments.skip_bad {
                        return Ok(Answer::No);
                    }
                }
            }
        }
        Ok(Answer::Yes)
    }

    fn add(&mut self, keyspace: Option<String>, key: &[u8], value: &[u8]) -> Result<()> {
        let keyspace = match keyspace {
            None => self.keyspace,
            Some(name) => match self.named.entry(name) {
                Entry::Occupied(known) => &*known.into_mut(),
                Entry::Vacant(new) => {
                    let keyspace = self.db.keyspace(new.key())?;
                    &*new.insert(keyspace)
                }
            },
        };
        self.batch.put_in(keyspace, key, value);
        self.batch_bytes += (key.len() + value.len()) as u64;
        if self.batch.len() >= self.arguments.batch.get() { self.commit() } else { Ok(()) }
    }

    /// Stores the records gathered so far.
    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let (records, bytes) = (batch.len() as u64, std::mem::take(&mut self.batch_bytes));
        if records > 0 {
            self.db.write_with(batch, self.arguments.sync.durability())?;
            self.records += records;
            self.bytes += bytes;
        }
        Ok(())
    }

    fn report(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let (records, bytes, rate) = (self.records, self.bytes, self.records as f64 / seconds);
        eprintln!("{records} records are in: {bytes} bytes in {seconds:.2} s, {rate:.0} records/s");
        if self.arguments.skip_bad && self.skipped > 0 {
            eprintln!("{} bad lines skipped", self.skipped);
        }
    }
}
