//! The beginning of a text: the byte-order mark that programs on Windows write, and the first line, from which the
//! format is guessed.

use std::io::{self, BufRead, Chain, Cursor, Read};

use anyhow::{Result, anyhow, bail};

/// The byte-order mark in UTF-8.
pub const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The byte-order marks of UTF-16, little and big endian. That of UTF-32 little endian begins like the first.
pub const MARKS_UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Bytes of the first line that are examined; more than the longest key.
const FIRST_LINE_BYTES_MAX: u64 = 256 << 10;

/// A text without a mark in front, whose first line is in memory.
pub struct Text<R> {
    text: Chain<Cursor<Vec<u8>>, R>,
}

impl<R: BufRead> Text<R> {
    /// Reads the beginning of `input`, which messages call `name`.
    pub fn begin(mut input: R, name: &str) -> Result<Self> {
        let mut line = Vec::new();
        // A pipe hands over its bytes in pieces of any length, so one read may end within the mark.
        input
            .by_ref()
            .take(FIRST_LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error: io::Error| anyhow!("cannot read {name}: {error}"))?;
        if let Some(mark) = MARKS_UTF_16.into_iter().find(|mark| line.starts_with(mark)) {
            bail!(
                "{name} is UTF-16: it begins with the byte-order mark {:02X} {:02X}; save it as UTF-8, or convert it: \
                 iconv -f UTF-16 -t UTF-8",
                mark[0],
                mark[1]
            );
        }
        if line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        Ok(Self { text: Cursor::new(line).chain(input) })
    }

    /// The first line, or the beginning of a long one.
    pub fn first_line(&self) -> &[u8] {
        self.text.get_ref().0.get_ref()
    }

    /// The text, from its first byte.
    pub fn into_reader(self) -> impl BufRead {
        self.text
    }
}
