//! Lines of a file, numbered from 1, as bytes without their line ends. Empty lines at the end of the file, which
//! editors leave behind, do not count.

use std::io::{self, BufRead};

use super::LineEnds;

pub struct Lines<R> {
    input: R,
    ends: LineEnds,
    /// Number of the line that was given last.
    number: u64,
    /// Empty lines that are to be given before `next`.
    empty: u64,
    /// The next line that is not empty, with its line end; no bytes if it is still to be read.
    next: Vec<u8>,
    /// The line that was given last.
    given: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R, ends: LineEnds) -> Self {
        Self { input, ends, number: 0, empty: 0, next: Vec::new(), given: Vec::new() }
    }

    /// The next line and its number.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        if self.next.is_empty() && !self.read()? {
            return Ok(None);
        }
        self.number += 1;
        if self.empty > 0 {
            self.empty -= 1;
            return Ok(Some((self.number, &[])));
        }
        std::mem::swap(&mut self.given, &mut self.next);
        self.next.clear();
        Ok(Some((self.number, content(&self.given, self.ends))))
    }

    /// Reads up to the next line that is not empty; whether there is one.
    fn read(&mut self) -> io::Result<bool> {
        loop {
            if self.input.read_until(b'\n', &mut self.next)? == 0 {
                self.empty = 0;
                return Ok(false);
            }
            if !content(&self.next, self.ends).is_empty() {
                return Ok(true);
            }
            self.empty += 1;
            self.next.clear();
        }
    }
}

/// `line` without its line end.
fn content(line: &[u8], ends: LineEnds) -> &[u8] {
    let Some(content) = line.strip_suffix(b"\n") else { return line };
    match ends {
        LineEnds::LfOrCrlf => content.strip_suffix(b"\r").unwrap_or(content),
        LineEnds::Lf => content,
    }
}
