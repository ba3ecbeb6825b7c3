//! `terrace load`: stores the records of a file in batches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use terrace::types::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use terrace::{Db, Keyspace, WriteBatch};

use super::Answer;
use crate::bytes::ByteFormat;
use crate::input::{self, Format, Header, Item, RecordReader};
use crate::place::{Place, SyncArg};

/// Bad lines that are named when they are skipped.
const NAMED_MAX: u64 = 5;

/// Store the records of a file; the store and the keyspace are created if they are missing
///
/// Records that name a keyspace, as those of `terrace dump` do, go there. A bad line stops the load with exit status 1 after all records before it are stored; --skip-bad goes on without it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace load people.db people.csv --header
  terrace dump old.db | terrace load new.db
  ldb --db=rocks dump --hex | terrace load rocks-copy.db --format ldb-hex")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,

    /// File; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,

    /// Notation of the file; guessed from its name or its first line if not given
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The first line of a CSV file names the columns
    #[arg(long)]
    header: bool,

    #[command(flatten)]
    bytes: ByteFormat,

    /// Records per atomic batch
    #[arg(long, value_name = "N", default_value = "1000")]
    batch: NonZeroUsize,

    /// Skip bad lines, count them and name the first few
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    sync: SyncArg,
}

pub fn run(arguments: &Arguments) -> Result<Answer> {
    let name =
        if arguments.file == Path::new("-") { "stdin".into() } else { arguments.file.display().to_string() };
    let bar = progress_bar();
    let mut input = open(&arguments.file, &name, &bar)?;
    let format = format(arguments, &mut input, &name)?;
    let header = if arguments.header { Header::Present } else { Header::Absent };
    let mut records = input::read(input, format, header, arguments.bytes);
    let (db, keyspace) = arguments.place.open_to_add()?;
    let mut load = Load::new(arguments, &db, &keyspace);
    let started = Instant::now();
    let result = load.run(&name, &mut *records, &bar);
    // Whatever stopped the load, the records before it are stored.
    let result = load.commit().and(result);
    bar.finish_and_clear();
    load.report(started.elapsed());
    let answer = result?;
    db.close()?;
    Ok(answer)
}

/// A load on its way.
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
            match check_sizes(item) {
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

/// A record that no store takes is a bad line.
fn check_sizes(item: Item) -> Item {
    let Item::Record { line, key, value, .. } = &item else { return item };
    let sizes = [("key", key.len(), KEY_BYTES_MAX), ("value", value.len(), VALUE_BYTES_MAX)];
    match sizes.into_iter().find(|(_, bytes, max)| bytes > max) {
        None => item,
        Some((what, bytes, max)) => {
            Item::Bad { line: *line, reason: format!("{what} of {bytes} bytes, at most {max} are possible") }
        }
    }
}

/// The bar over the bytes of the input; hidden unless standard error is a terminal.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(style).expect("invariant: the template is well formed");
    ProgressBar::no_length().with_style(style)
}

fn open<'a>(path: &Path, name: &str, bar: &'a ProgressBar) -> Result<Box<dyn BufRead + 'a>> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let wrong = |error: io::Error| anyhow!("cannot read {name}: {error}");
        let file = File::open(path).map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        if metadata.is_dir() {
            bail!("cannot read {name}: it is a directory");
        }
        if metadata.is_file() {
            bar.set_length(metadata.len());
        }
        Box::new(file)
    };
    Ok(Box::new(BufReader::with_capacity(256 << 10, bar.wrap_read(input))))
}

/// The format asked for, or the one that the name or the beginning of the file shows.
fn format(arguments: &Arguments, input: &mut dyn BufRead, name: &str) -> Result<Format> {
    if let Some(format) = arguments.format.or_else(|| Format::of_name(&arguments.file)) {
        return Ok(format);
    }
    let start = input.fill_buf().map_err(|error| anyhow!("cannot read {name}: {error}"))?;
    match Format::of_start(start) {
        Some(format) => Ok(format),
        None if start.is_empty() => Ok(Format::Tsv),
        None => bail!("cannot tell the format of {name} from its first line: use --format"),
    }
}
