//! The output of RocksDB's `ldb dump --hex`: `0xKEY ==> 0xVALUE` lines and a trailer that counts them.

use std::io::{self, BufRead};

use anyhow::{Context, Result, ensure};

use super::lines::Lines;
use super::{Item, RecordReader};
use crate::bytes::from_hex;

/// Between key and value.
pub const ARROW: &[u8] = b" ==> ";

/// The trailer, in front of its number.
const TRAILER: &[u8] = b"Keys in range: ";

pub struct LdbReader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> LdbReader<R> {
    pub fn new(lines: Lines<R>) -> Self {
        Self { lines }
    }
}

impl<R: BufRead> RecordReader for LdbReader<R> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        while let Some((number, line)) = self.lines.next_line()? {
            let count = line.strip_prefix(TRAILER).map(<[u8]>::trim_ascii);
            if !count.is_some_and(|count| !count.is_empty() && count.iter().all(u8::is_ascii_digit)) {
                return Ok(Some(Item::new(number, parse(line.trim_ascii_end()))));
            }
        }
        Ok(None)
    }
}

fn parse(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let arrow = line.windows(ARROW.len()).position(|window| window == ARROW);
    let arrow = arrow.context("expected 0xKEY ==> 0xVALUE")?;
    let (key, value) = (&line[..arrow], &line[arrow + ARROW.len()..]);
    ensure!(key.starts_with(b"0x") && value.starts_with(b"0x"), "expected 0xKEY ==> 0xVALUE");
    Ok((from_hex(key)?, from_hex(value)?))
}
