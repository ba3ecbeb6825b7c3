//! Two comma-separated columns, quoted as RFC 4180 says; a quoted value may span lines.

use std::io::{self, BufRead};

use anyhow::{Result, bail};
use csv::{ByteRecord, Reader, ReaderBuilder};

use super::{Header, Item, RecordReader};
use crate::bytes::ByteFormat;

pub struct CommaReader<R> {
    reader: Reader<R>,
    record: ByteRecord,
    bytes: ByteFormat,
}

impl<R: BufRead> CommaReader<R> {
    pub fn new(input: R, header: Header, bytes: ByteFormat) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(header == Header::Present).flexible(true);
        Self { reader: builder.from_reader(input), record: ByteRecord::new(), bytes }
    }
}

impl<R: BufRead> RecordReader for CommaReader<R> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        if !self.reader.read_byte_record(&mut self.record).map_err(io::Error::from)? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        Ok(Some(Item::new(line, parse(&self.record, self.bytes))))
    }
}

fn parse(record: &ByteRecord, bytes: ByteFormat) -> Result<(Vec<u8>, Vec<u8>)> {
    let columns: Vec<&[u8]> = record.iter().collect();
    let [key, value] = columns[..] else { bail!("expected 2 columns, found {}", columns.len()) };
    Ok((bytes.parse_bytes(key)?, bytes.parse_bytes(value)?))
}
