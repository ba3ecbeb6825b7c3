//! The bytes of a log, read piece by piece.
//!
//! One piece is in memory at a time. Where bytes are asked for that reach over its end, what is there of them moves to
//! the front, and the next ones are read behind it. Bytes that are more than a piece, such as a long frame, get memory
//! for themselves, which goes when the next piece is read.

use std::fmt;
use std::ops::Range;

use super::LogBytes;
use crate::types::Buffer;

/// The bytes of a log. `R` reads those from an offset on, as many as it is given room for.
pub struct Pieces<R> {
    read: R,
    length: u64,
    piece_bytes: u64,
    /// What of the log is in memory: the front of `buffer`.
    held: Range<u64>,
    buffer: Buffer,
}

impl<E, R: FnMut(u64, &mut [u8]) -> Result<(), E>> Pieces<R> {
    /// A log of `length` bytes, in pieces of `piece_bytes`, at least one.
    pub fn new(length: u64, piece_bytes: u64, read: R) -> Self {
        Self { read, length, piece_bytes: piece_bytes.max(1), held: 0..0, buffer: Buffer::alone(0) }
    }

    /// Reads what is missing of `range`, and of what follows as much as makes a piece.
    fn hold(&mut self, range: Range<u64>) -> Result<(), E> {
        let bytes = self.piece_bytes.max(range.end - range.start);
        // What is not in memory yet begins here.
        let missing = if self.held.contains(&range.start) { self.held.end } else { range.start };
        self.keep(range.start..missing, bytes as usize);
        let end = range.start.saturating_add(bytes).min(self.length);
        let room = (missing - range.start) as usize..(end - range.start) as usize;
        (self.read)(missing, &mut own(&mut self.buffer)[room])?;
        self.held.end = end;
        Ok(())
    }

    /// Moves `kept`, which is held, to the front of a buffer of `bytes`, and forgets the rest.
    fn keep(&mut self, kept: Range<u64>, bytes: usize) {
        let length = (kept.end - kept.start) as usize;
        let from = if length > 0 { (kept.start - self.held.start) as usize } else { 0 };
        if self.buffer.len() != bytes {
            let old = std::mem::replace(&mut self.buffer, Buffer::alone(bytes));
            own(&mut self.buffer)[..length].copy_from_slice(&old[from..from + length]);
        } else if !planted!("bytes-before-the-next-piece-lost") {
            own(&mut self.buffer).copy_within(from..from + length, 0);
        }
        self.held = kept;
    }

    /// The bytes of `range`, which are held.
    fn held(&self, range: Range<u64>) -> &[u8] {
        &self.buffer[(range.start - self.held.start) as usize..(range.end - self.held.start) as usize]
    }
}

/// The bytes of a buffer that has one owner.
fn own(buffer: &mut Buffer) -> &mut [u8] {
    buffer.get_mut().expect("invariant: nobody else has the buffer")
}

impl<E, R: FnMut(u64, &mut [u8]) -> Result<(), E>> LogBytes for Pieces<R> {
    type Error = E;

    fn length(&self) -> u64 {
        self.length
    }

    fn whole(&mut self, range: Range<u64>) -> Result<&[u8], E> {
        if range.start < self.held.start || range.end > self.held.end {
            self.hold(range.clone())?;
        }
        Ok(self.held(range))
    }

    fn piece(&mut self, offset: u64) -> Result<&[u8], E> {
        if !self.held.contains(&offset) && offset < self.length {
            self.hold(offset..offset + 1)?;
        }
        let end = self.held.end;
        Ok(self.held(offset.min(end)..end))
    }
}

impl<R> fmt::Debug for Pieces<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length, piece_bytes, held, .. } = self;
        write!(f, "bytes {held:?} of {length}, {piece_bytes} at a time")
    }
}
