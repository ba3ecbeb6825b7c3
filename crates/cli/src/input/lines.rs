//! Lines of a file, numbered from 1, as bytes and without their line ends.

use std::io::{self, BufRead};

pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The next line and its number.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some((self.number, self.line.strip_suffix(b"\n").unwrap_or(&self.line))))
    }
}
