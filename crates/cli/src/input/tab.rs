//! Key, tab, value: the output of `terrace scan`.
//!
//! Everything behind the first tab is the value. A key or value that a line cannot hold as it is stands as `\x` and
//! hexadecimal digits, as PostgreSQL writes binary data.

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};

use super::lines::Lines;
use super::start::{MARK, MARKS_UTF_16};
use super::{Item, RecordReader};
use crate::bytes::{ByteFormat, from_hex, to_hex};

/// In front of the hexadecimal digits of a key or value.
const ESCAPE: &[u8] = b"\\x";

pub struct TabReader<R> {
    lines: Lines<R>,
    bytes: ByteFormat,
}

impl<R: BufRead> TabReader<R> {
    pub fn new(lines: Lines<R>, bytes: ByteFormat) -> Self {
        Self { lines, bytes }
    }
}

impl<R: BufRead> RecordReader for TabReader<R> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        let Some((number, line)) = self.lines.next_line()? else { return Ok(None) };
        Ok(Some(Item::new(number, parse(line, self.bytes))))
    }
}

fn parse(line: &[u8], bytes: ByteFormat) -> Result<(Vec<u8>, Vec<u8>)> {
    let tab = line.iter().position(|&byte| byte == b'\t').context("expected a tab between key and value")?;
    let column = |text| match unescaped(text) {
        Some(column) if !bytes.hex => Ok(column),
        _ => bytes.parse_bytes(text),
    };
    Ok((column(&line[..tab])?, column(&line[tab + 1..])?))
}

/// The bytes of `text`: decoded, if all of it is an escape, otherwise as it is.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(ESCAPE)?;
    let hexadecimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    if hexadecimal { from_hex(digits).ok() } else { None }
}

/// Writes the line of a record, or of a key alone. Reading it gives the same bytes.
pub fn write(record: (&[u8], Option<&[u8]>), bytes: ByteFormat, out: &mut impl Write) -> io::Result<()> {
    let (key, value) = record;
    // A line may become the first of a file, where a mark is no part of the key.
    let marked = [MARK].iter().chain(&MARKS_UTF_16).any(|mark| key.starts_with(mark));
    write_column(key, marked || key.contains(&b'\t'), bytes, out)?;
    if let Some(value) = value {
        out.write_all(b"\t")?;
        write_column(value, false, bytes, out)?;
    }
    out.write_all(b"\n")
}

/// Writes a key or value, as an escape if it is `unfit` for a line or contains or resembles what is not text of one.
fn write_column(column: &[u8], unfit: bool, bytes: ByteFormat, out: &mut impl Write) -> io::Result<()> {
    // A CR at the end of a value would become part of the line end.
    let unfit = unfit || column.contains(&b'\n') || column.ends_with(b"\r") || unescaped(column).is_some();
    if unfit && !bytes.hex {
        out.write_all(ESCAPE)?;
        out.write_all(to_hex(column).as_bytes())
    } else {
        bytes.write(column, out)
    }
}
