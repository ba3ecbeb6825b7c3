//! Records from files: tab-separated, comma-separated, JSON Lines, and the output of RocksDB's `ldb dump --hex`.
//!
//! A reader yields one record or one bad line at a time, and always knows the line's number. After a bad line it goes
//! on with the next one; the caller decides whether to continue.
//!
//! Text from Windows is read as its writer meant it: a byte-order mark at the beginning is not part of the text
//! (`start`), and CRLF ends a line as LF does (`LineEnds`).

mod comma;
mod jsonl;
mod ldb;
mod lines;
pub mod source;
mod start;
mod surrogate;
pub mod tab;

use std::io::{self, BufRead};
use std::path::Path;

use clap::ValueEnum;

use self::lines::Lines;
use crate::bytes::ByteFormat;

/// Notation of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Key, tab, value; one of them that is \x and hexadecimal digits stands for these bytes
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

    /// The format whose records begin as `start`, the beginning of a file, does; none where it could be either of two.
    ///
    /// What `terrace scan` prints has a tab in every line, so it is never taken for another format.
    pub fn of_start(start: &[u8]) -> Option<Self> {
        let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let object = line.starts_with(b"{");
        let arrow =
            line.starts_with(b"0x") && line.windows(ldb::ARROW.len()).any(|window| window == ldb::ARROW);
        match (object, arrow, line.contains(&b'\t')) {
            (true, _, false) => Some(Self::Jsonl),
            (_, true, false) => Some(Self::LdbHex),
            (false, false, true) => Some(Self::Tsv),
            (false, false, false) if line.contains(&b',') => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Whether the first line of a comma-separated file names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Absent,
    Present,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    /// LF, or CR and LF as on Windows.
    LfOrCrlf,
    /// LF alone; a CR in front of it is part of the line.
    Lf,
}

/// How the records of a file are written.
#[derive(Clone, Copy, Debug)]
pub struct Notation {
    pub format: Format,
    pub header: Header,
    pub line_ends: LineEnds,
    /// How keys and values are written.
    pub bytes: ByteFormat,
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

/// Reads `input`, which is written in `notation`.
pub fn read<'a>(input: impl BufRead + 'a, notation: Notation) -> Box<dyn RecordReader + 'a> {
    let Notation { format, header, line_ends, bytes } = notation;
    match format {
        Format::Tsv => Box::new(tab::TabReader::new(Lines::new(input, line_ends), bytes)),
        Format::Csv => Box::new(comma::CommaReader::new(input, header, line_ends, bytes)),
        Format::Jsonl => Box::new(jsonl::JsonReader::new(Lines::new(input, line_ends), bytes)),
        Format::LdbHex => Box::new(ldb::LdbReader::new(Lines::new(input, line_ends))),
    }
}

#[cfg(test)]
mod tests;
