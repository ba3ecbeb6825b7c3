//! CSV: two comma-separated columns, quoted as in RFC 4180.
//!
//! A quoted value may span lines, and keeps its line ends. Empty lines are skipped. A CR that is not quoted also ends
//! a line, as in old Macintosh files, unless only LF does.
//!
//! This is built on the core of the `csv` crate. The crate itself takes the LF of a CRLF for the beginning of the
//! next record, and so reports the line before it.

use std::io::{self, BufRead};

use anyhow::{Result, bail};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{Header, Item, LineEnds, RecordReader};
use crate::bytes::ByteFormat;

pub struct CommaReader<R> {
    input: R,
    core: Reader,
    line_ends: LineEnds,
    /// Whether the next line names the columns.
    header: bool,
    bytes: ByteFormat,
    /// The columns of a record, one behind the other, and room.
    text: Vec<u8>,
    /// Where they end, and room.
    ends: Vec<usize>,
}

impl<R: BufRead> CommaReader<R> {
    pub fn new(input: R, header: Header, line_ends: LineEnds, bytes: ByteFormat) -> Self {
        let terminator = match line_ends {
            LineEnds::LfOrCrlf => Terminator::CRLF,
            LineEnds::Lf => Terminator::Any(b'\n'),
        };
        let core = ReaderBuilder::new().terminator(terminator).build();
        let (text, ends) = (vec![0; 1 << 10], vec![0; 8]);
        Self { input, core, line_ends, header: header == Header::Present, bytes, text, ends }
    }

    /// Reads a record into `text` and `ends`: its line and its number of columns.
    fn read_record(&mut self) -> io::Result<Option<(u64, usize)>> {
        self.pass_line_ends()?;
        let line = self.core.line();
        let (mut bytes, mut columns) = (0, 0);
        loop {
            let input = self.input.fill_buf()?;
            let (result, read, written, ended) =
                self.core.read_record(input, &mut self.text[bytes..], &mut self.ends[columns..]);
            self.input.consume(read);
            (bytes, columns) = (bytes + written, columns + ended);
            match result {
                // At the end of the input, an empty piece ends the record.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => return Ok(Some((line, columns))),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// Passes over the rest of a CRLF and empty lines.
    fn pass_line_ends(&mut self) -> io::Result<()> {
        loop {
            let input = self.input.fill_buf()?;
            let is_end =
                |byte: &&u8| **byte == b'\n' || (**byte == b'\r' && self.line_ends == LineEnds::LfOrCrlf);
            let ends = input.iter().take_while(is_end).count();
            let lines = input[..ends].iter().filter(|byte| **byte == b'\n').count();
            let all = ends == input.len();
            self.core.set_line(self.core.line() + lines as u64);
            self.input.consume(ends);
            if !all || ends == 0 {
                return Ok(());
            }
        }
    }

    fn parse(&self, columns: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let [key, value] = self.ends[..columns] else { bail!("expected 2 columns, found {columns}") };
        Ok((self.bytes.parse_bytes(&self.text[..key])?, self.bytes.parse_bytes(&self.text[key..value])?))
    }
}

impl<R: BufRead> RecordReader for CommaReader<R> {
    fn next_item(&mut self) -> io::Result<Option<Item>> {
        if std::mem::take(&mut self.header) {
            self.read_record()?;
        }
        let Some((line, columns)) = self.read_record()? else { return Ok(None) };
        Ok(Some(Item::new(line, self.parse(columns))))
    }
}
