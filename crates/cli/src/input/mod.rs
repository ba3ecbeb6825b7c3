//! Records from files: tab-separated, comma-separated, JSON Lines, and what RocksDB's `ldb dump --hex` prints.
//!
//! A reader yields one record or one bad line at a time and always knows the line's number; after a bad line it goes on
//! with the next, and whether that is wanted is the caller's to say.

mod comma;
mod jsonl;
mod ldb;
mod lines;
pub mod source;
mod tab;

use std::io::{self, BufRead};
use std::path::Path;

use clap::ValueEnum;

use crate::bytes::ByteFormat;

/// Notation of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Key, tab, value
    Tsv,
    /// Two columns, quoted where needed
    Csv,
    /// {"key": ..., "value": ...} or {"key_hex": ..., "value_hex": ...} per line, with "keyspace" if it is another one
    Jsonl,
    /// 0xKEY ==> 0xVALUE, as ldb dump --hex prints
    LdbHex,
}

impl Format {
    /// The format that a file of this name has.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "ldb" => Some(Self::LdbHex),
            _ => None,
        }
    }

    /// The format whose records begin as `start`, the beginning of a file, does.
    pub fn of_start(start: &[u8]) -> Option<Self> {
        let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if line.starts_with(b"{") {
            Some(Self::Jsonl)
        } else if line.starts_with(b"0x") && line.windows(5).any(|window| window == ldb::ARROW) {
            Some(Self::LdbHex)
        } else if line.contains(&b'\t') {
            Some(Self::Tsv)
        } else if line.contains(&b',') {
            Some(Self::Csv)
        } else {
            None
        }
    }
}

/// Whether the first line of a comma-separated file names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Absent,
    Present,
}

/// One step through a file.
#[derive(Debug, PartialEq)]
pub enum Item {
    /// A record, and its keyspace where it names one.
    Record { line: u64, keyspace: Option<String>, key: Vec<u8>, value: Vec<u8> },
    /// A line (from 1) that is no record, and why.
    Bad { line: u64, reason: String },
}

impl Item {
    /// The item that came of parsing `line`.
    fn new(line: u64, parsed: anyhow::Result<(Vec<u8>, Vec<u8>)>) -> Self {
        match parsed {
            Ok((key, value)) => Self::Record { line, keyspace: None, key, value },
            Err(error) => Self::Bad { line, reason: error.to_string() },
        }
    }
}

/// The records of a file, in its order.
pub trait RecordReader {
    /// The next record or bad line; none at the end of the file.
    fn next_item(&mut self) -> io::Result<Option<Item>>;
}

/// Reads `input`, which is in `format`, with keys and values written as `bytes` says.
pub fn read<'a>(
    input: impl BufRead + 'a,
    format: Format,
    header: Header,
    bytes: ByteFormat,
) -> Box<dyn RecordReader + 'a> {
    match format {
        Format::Tsv => Box::new(tab::TabReader::new(input, bytes)),
        Format::Csv => Box::new(comma::CommaReader::new(input, header, bytes)),
        Format::Jsonl => Box::new(jsonl::JsonReader::new(input, bytes)),
        Format::LdbHex => Box::new(ldb::LdbReader::new(input)),
    }
}

#[cfg(test)]
mod tests;
