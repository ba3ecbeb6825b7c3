//! The source of records: a file or standard input, in a notation that is given or guessed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use terrace::types::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::start::Text;
use super::{Format, Header, Item, LineEnds, Notation, RecordReader, read};
use crate::bytes::ByteFormat;

/// The file and its notation.
#[derive(Args)]
pub struct SourceArgs {
    /// File; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,

    /// Notation of the file; guessed from its name or its first line if not given
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The first line of a CSV file names the columns
    #[arg(long)]
    header: bool,

    /// Keep a CR in front of a line end as part of the value; otherwise CRLF ends a line as LF does
    #[arg(long)]
    keep_cr: bool,

    #[command(flatten)]
    bytes: ByteFormat,
}

impl SourceArgs {
    /// Name of the file in messages.
    pub fn name(&self) -> String {
        if self.is_stdin() { "stdin".into() } else { self.file.display().to_string() }
    }

    /// Opens the file; `bar` shows how far it has been read. Records that no store takes come as bad lines.
    pub fn open<'a>(&self, bar: &'a ProgressBar) -> Result<Box<dyn RecordReader + 'a>> {
        let text = Text::begin(self.input(bar)?, &self.name())?;
        let format = self.format(text.first_line())?;
        let header = if self.header { Header::Present } else { Header::Absent };
        let line_ends = if self.keep_cr { LineEnds::Lf } else { LineEnds::LfOrCrlf };
        let notation = Notation { format, header, line_ends, bytes: self.bytes };
        Ok(Box::new(Checked { records: read(text.into_reader(), notation) }))
    }

    fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    fn input<'a>(&self, bar: &'a ProgressBar) -> Result<Box<dyn BufRead + 'a>> {
        let input: Box<dyn Read> = if self.is_stdin() {
            Box::new(io::stdin().lock())
        } else {
            let wrong = |error: io::Error| anyhow!("cannot read {}: {error}", self.name());
            let file = File::open(&self.file).map_err(wrong)?;
            let metadata = file.metadata().map_err(wrong)?;
            if metadata.is_dir() {
                bail!("cannot read {}: it is a directory", self.name());
            }
            if metadata.is_file() {
                bar.set_length(metadata.len());
            }
            Box::new(file)
        };
        Ok(Box::new(BufReader::with_capacity(256 << 10, bar.wrap_read(input))))
    }

    /// The format asked for, or the one that the name or the first line of the file shows.
    fn format(&self, first_line: &[u8]) -> Result<Format> {
        if let Some(format) = self.format.or_else(|| Format::of_name(&self.file)) {
            return Ok(format);
        }
        match Format::of_start(first_line) {
            Some(format) => Ok(format),
            None if first_line.is_empty() => Ok(Format::Tsv),
            None => bail!("cannot tell the format of {} from its first line: use --format", self.name()),
        }
    }
}

/// A reader that turns records that a store would refuse into bad lines.
struct Checked<'a> {
    records: Box<dyn RecordReader + 'a>,
}

impl RecordReader for Checked<'_> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        Ok(self.records.next_item()?.map(check_sizes))
    }
}

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
pub fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(style).expect("invariant: the template is well formed");
    ProgressBar::no_length().with_style(style)
}
