//! A stream: bytes that are appended to a file through buffers, several of which are being written at any time.
//!
//! 1. [`Stream::append`] takes storage for the bytes ([`Kernel::reserve`]): a full disk is found out here, where the caller
//!    can make room and try again, and writes within the length of a file go on at the same time.
//! 2. It copies the bytes to a buffer. A full one is queued; one call of the system hands over all that it has queued.
//! 3. A completion frees the buffer. What was written short is continued. Where direct writes are refused after all, the
//!    rest goes through the page cache.
//! 4. [`Stream::settle`] writes what is left: whole blocks as before, the part of a block at the end through the page
//!    cache. Then nothing is in flight.
//!
//! A buffer is read from ([`Stream::read`]) until it is filled again, so nobody waits for bytes that are on their way.
//!
//! REQUIRES: the caller calls nothing more after an error, but for one of [`Stream::reserve`].

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use terrace::env::File as BufferedFile;

use crate::kernel::{Completion, Kernel, PIECE_BYTES};

/// Storage is taken in steps of as much as the stream has, within these bounds, in bytes: a step waits for all writes in flight.
const RESERVED_MIN: u64 = 4 << 20;
const RESERVED_MAX: u64 = 32 << 20;

/// So often in a row a write may be sent back without a reason that lasts.
const TRIES_MAX: u32 = 100;

/// One file, in two ways.
pub(crate) struct Target<'a> {
    /// For writes past the page cache.
    pub(crate) direct: &'a Arc<File>,
    /// For all others.
    pub(crate) buffered: &'a dyn BufferedFile,
    /// Offsets and lengths of direct writes are multiples of it. A page or more, so that no page is written in both ways.
    pub(crate) align: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Filling,
    InFlight,
    /// It has been written, and can still be read from.
    Written,
}

/// A part of the stream in a buffer.
#[derive(Clone, Debug)]
struct Piece {
    state: State,
    offset: u64,
    length: usize,
    /// The part that is being written.
    part: Range<usize>,
    tries: u32,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// The bytes of a file that are on their way.
pub(crate) struct Stream {
    kernel: Box<dyn Kernel>,
    pieces: Vec<Piece>,
    filling: Option<usize>,
    start: u64,
    end: u64,
    /// Of the file as its user sees it, in bytes.
    length: u64,
    /// Up to here the file has storage.
    reserved: u64,
    /// Whether the file system has refused direct writes.
    is_refused: bool,
    /// Bytes that went past the page cache.
    direct_bytes: u64,
}

impl Stream {
    /// A stream that begins at `start`, a multiple of the alignment, in a file of `length` bytes.
    pub(crate) fn new(kernel: Box<dyn Kernel>, start: u64, length: u64) -> Self {
        let free = Piece { state: State::Free, offset: 0, length: 0, part: 0..0, tries: 0 };
        let pieces = vec![free; kernel.pieces()];
        let (end, reserved, is_refused, direct_bytes) = (start, start, false, 0);
        Self { kernel, pieces, filling: None, start, end, length, reserved, is_refused, direct_bytes }
    }

    /// Where the next byte belongs.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Length of the file as its user sees it, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file system has refused direct writes.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Bytes that went past the page cache.
    pub(crate) fn direct_bytes(&self) -> u64 {
        self.direct_bytes
    }

    /// Takes storage for the stream up to `end`. After an error of it, the stream is as it was.
    pub(crate) fn reserve(&mut self, target: &Target<'_>, end: u64) -> io::Result<()> {
        if end <= self.reserved {
            return Ok(());
        }
        let step = (self.end - self.start).clamp(RESERVED_MIN, RESERVED_MAX);
        let (start, ample) = (self.reserved, end.max(self.reserved.saturating_add(step)));
        let reserved = match self.kernel.reserve(target.direct, start..ample) {
            Err(error) if is_full(&error) => self.kernel.reserve(target.direct, start..end).map(|()| end),
            reserved => reserved.map(|()| ample),
        };
        self.reserved = match reserved {
            Ok(reserved) => reserved,
            Err(error) if is_unsupported(&error) => u64::MAX,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Appends bytes for which there is storage.
    pub(crate) fn append(&mut self, target: &Target<'_>, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(done) = self.kernel.take(false)? {
            self.complete(target, done)?;
        }
        let mut is_queued = false;
        while !bytes.is_empty() {
            let at = match self.filling {
                Some(at) => at,
                None => self.begin_piece(target)?,
            };
            let piece = &mut self.pieces[at];
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - piece.length));
            self.kernel.buffer_mut(at)[piece.length..][..now.len()].copy_from_slice(now);
            piece.length += now.len();
            self.end += now.len() as u64;
            if piece.length == PIECE_BYTES {
                self.filling = None;
                self.write(target, at, 0..PIECE_BYTES)?;
                is_queued = true;
            }
            bytes = rest;
        }
        self.length = self.length.max(self.end);
        if is_queued { self.kernel.submit() } else { Ok(()) }
    }

    /// Waits until what is in flight of `range` has been written.
    pub(crate) fn wait_for(&mut self, target: &Target<'_>, range: &Range<u64>) -> io::Result<()> {
        let overlaps = |piece: &Piece| {
            piece.state == State::InFlight && piece.offset < range.end && piece.end() > range.start
        };
        while self.pieces.iter().any(overlaps) {
            self.wait(target)?;
        }
        Ok(())
    }

    /// Writes all that is left, and waits for all that is in flight.
    pub(crate) fn settle(&mut self, target: &Target<'_>) -> io::Result<()> {
        let mut tail = None;
        if let Some(at) = self.filling.take() {
            let length = self.pieces[at].length;
            let whole = length - length % target.align;
            tail = (whole < length).then_some((at, whole..length));
            self.write(target, at, 0..whole)?;
        }
        self.wait_for(target, &(0..u64::MAX))?;
        if let Some((at, part)) = tail {
            let offset = self.pieces[at].offset + part.start as u64;
            target.buffered.write_at(offset, &self.kernel.buffer(at)[part])?;
        }
        self.pieces.iter_mut().for_each(|piece| piece.state = State::Free);
        Ok(())
    }

    /// Fills `bytes` from `offset`, where all of it was written.
    pub(crate) fn read(&self, target: &Target<'_>, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        let here = || self.pieces.iter().enumerate().filter(|(_, piece)| piece.state != State::Free);
        while !bytes.is_empty() {
            let length = match here().find(|(_, piece)| (piece.offset..piece.end()).contains(&offset)) {
                Some((at, piece)) => {
                    let from = (offset - piece.offset) as usize;
                    let length = bytes.len().min(piece.length - from);
                    bytes[..length].copy_from_slice(&self.kernel.buffer(at)[from..][..length]);
                    length
                }
                None => {
                    let next = here().map(|(_, piece)| piece.offset).filter(|start| *start > offset).min();
                    let gap =
                        next.map_or(usize::MAX, |next| usize::try_from(next - offset).unwrap_or(usize::MAX));
                    let length = bytes.len().min(gap);
                    target.buffered.read_at(offset, &mut bytes[..length])?;
                    length
                }
            };
            offset += length as u64;
            bytes = &mut bytes[length..];
        }
        Ok(())
    }

    /// The buffers, once nothing is in flight.
    pub(crate) fn into_kernel(self) -> Box<dyn Kernel> {
        self.kernel
    }

    /// Takes a buffer to be filled: one that holds nothing, otherwise the one that was written longest ago.
    fn begin_piece(&mut self, target: &Target<'_>) -> io::Result<usize> {
        let at = loop {
            let usable = |(_, piece): &(usize, &Piece)| matches!(piece.state, State::Free | State::Written);
            let oldest = |(_, piece): &(usize, &Piece)| (piece.state == State::Written, piece.offset);
            match self.pieces.iter().enumerate().filter(usable).min_by_key(oldest) {
                Some((at, _)) => break at,
                None => self.wait(target)?,
            }
        };
        self.pieces[at] = Piece { state: State::Filling, offset: self.end, length: 0, part: 0..0, tries: 0 };
        self.filling = Some(at);
        Ok(at)
    }

    /// Queues a part of a piece, in whole blocks.
    fn write(&mut self, target: &Target<'_>, at: usize, part: Range<usize>) -> io::Result<()> {
        let piece = &mut self.pieces[at];
        if part.is_empty() {
            piece.state = State::Written;
            return Ok(());
        }
        let offset = piece.offset + part.start as u64;
        if self.is_refused {
            piece.state = State::Written;
            return target.buffered.write_at(offset, &self.kernel.buffer(at)[part]);
        }
        piece.state = State::InFlight;
        piece.part = part.clone();
        self.kernel.write(at, part, target.direct, offset)
    }

    /// Waits for one write.
    fn wait(&mut self, target: &Target<'_>) -> io::Result<()> {
        match self.kernel.take(true)? {
            Some(done) => self.complete(target, done),
            None => Err(io::Error::other("a write in flight has been lost")),
        }
    }

    fn complete(&mut self, target: &Target<'_>, done: Completion) -> io::Result<()> {
        let piece = &mut self.pieces[done.at];
        let part = piece.part.clone();
        let rest = match done.result {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => {
                piece.tries = 0;
                // A direct write must begin at a block, so what is left of one is written again.
                let written = if bytes < part.len() { bytes - bytes % target.align } else { part.len() };
                self.direct_bytes += written as u64;
                let is_stuck = written == 0;
                self.is_refused |= is_stuck;
                part.start + written..part.end
            }
            Err(error) if is_passing(&error) && piece.tries < TRIES_MAX => {
                piece.tries += 1;
                part
            }
            Err(error) if is_unsupported(&error) => {
                self.is_refused = true;
                part
            }
            Err(error) => return Err(error),
        };
        self.write(target, done.at, rest)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The kernel gave up a request that was not begun: for a signal, for want of memory, or since the thread that made it has ended.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}

fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOSYS, libc::ENODEV, libc::ESPIPE];
    error.raw_os_error().is_some_and(|code| unsupported.contains(&code))
}
