//! Key, tab, value: what `terrace scan` prints. Everything behind the first tab is the value.

use std::io::{self, BufRead};

use anyhow::{Context, Result};

use super::lines::Lines;
use super::{Item, RecordReader};
use crate::bytes::ByteFormat;

pub struct TabReader<R> {
    lines: Lines<R>,
    bytes: ByteFormat,
}

impl<R: BufRead> TabReader<R> {
    pub fn new(input: R, bytes: ByteFormat) -> Self {
        Self { lines: Lines::new(input), bytes }
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
    Ok((bytes.parse_bytes(&line[..tab])?, bytes.parse_bytes(&line[tab + 1..])?))
}
