//! Frames of a log: segments of the write-ahead log and manifests.
//!
//! ```text
//! OFFSET SIZE FIELD
//!  0     4    checksum of all that follows, bound to (log id, offset of the frame); never 0
//!  4     4    checksum of the previous frame; for the first frame a hash of the log's id
//!  8     4    length n of the payload
//! 12     1    kind, a number of the log's user
//! 13     3    check of the header alone: low bits of the checksum of the other fields, bound to (log id, offset)
//! 16     8    synced: length of the log's prefix that was durable when this frame was written
//! 24     n    payload
//! ```
//!
//! A log is frames end to end, then zeros (preallocated space) or the end of the file. The reader stops at the first
//! bytes that are no frame or do not continue the chain. It distinguishes three ends:
//!
//! * *clean*: nothing but zeros follows;
//! * *torn*: a frame that a crash cut short, with whatever else was not durable;
//! * *damaged*: a later frame records that these bytes were durable. To drop them would lose acknowledged data.
//!
//! The search for such a later frame looks at every offset, also at bytes that users wrote. The check of the header
//! keeps it cheap: bytes that are no frame of this log at this place are skipped without a look at a payload.
//!
//! The log's user decides what kinds and payloads mean, and which logs may be torn. The user also chooses the ids of
//! logs. Two logs of one store must have different ids, so that frames of one never pass the checks of the other.

mod pieces;

use std::convert::Infallible;
use std::ops::Range;

use super::checksum::Place;
use super::coding::{put_u32, put_u64};

pub use pieces::Pieces;

/// Bytes of a frame before its payload.
pub const FRAME_HEADER_BYTES: usize = 24;

/// Longest payload of a frame, in bytes.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = u32::MAX as usize;

/// The three bytes by which a header at `place` is recognised.
fn header_check(place: Place, prev: u32, length: u32, kind: u8, synced: u64) -> [u8; 3] {
    let mut fields = [0; 17];
    fields[..4].copy_from_slice(&prev.to_le_bytes());
    fields[4..8].copy_from_slice(&length.to_le_bytes());
    fields[8] = kind;
    fields[9..].copy_from_slice(&synced.to_le_bytes());
    let [a, b, c, _] = place.checksum(&fields).to_le_bytes();
    [a, b, c]
}

/// The checksum that the first frame of a log names as that of its predecessor.
#[must_use]
pub fn first_prev(log_id: u64) -> u32 {
    Place { id: log_id, offset: u64::MAX }.checksum(&[])
}

/// Builds frames; the caller writes them to the log's file.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    log_id: u64,
    offset: u64,
    prev: u32,
}

impl FrameWriter {
    /// A writer that goes on at `offset` behind the frame with checksum `prev`: 0 and [`first_prev`] for a new log,
    /// [`FrameReader::state`] for one that was read.
    #[must_use]
    pub fn new(log_id: u64, offset: u64, prev: u32) -> Self {
        Self { log_id, offset, prev }
    }

    /// Offset of the next frame in the log, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends a frame to `out`. The payload is given in parts; `synced` is the length of the log's prefix that is known
    /// to be durable.
    ///
    /// # Panics
    /// When the payload is longer than [`FRAME_PAYLOAD_BYTES_MAX`].
    pub fn append(&mut self, kind: u8, payload: &[&[u8]], synced: u64, out: &mut Vec<u8>) {
        let length = payload.iter().map(|part| part.len()).sum();
        let start = out.len();
        let place = self.put_header(kind, length, synced, out);
        payload.iter().for_each(|part| out.extend_from_slice(part));
        let checksum = place.checksum(&out[start + 4..]);
        self.put_checksum(checksum, length, &mut out[start..]);
    }

    /// As [`FrameWriter::append`], but appends only the header: the caller writes the payload behind it.
    ///
    /// # Panics
    /// As [`FrameWriter::append`].
    pub fn append_header(&mut self, kind: u8, payload: &[&[u8]], synced: u64, out: &mut Vec<u8>) {
        let length = payload.iter().map(|part| part.len()).sum();
        let start = out.len();
        let place = self.put_header(kind, length, synced, out);
        let checksum =
            place.checksum_of_pieces(std::iter::once(&out[start + 4..]).chain(payload.iter().copied()));
        self.put_checksum(checksum, length, &mut out[start..]);
    }

    /// Appends a header without its checksum.
    fn put_header(&self, kind: u8, length: usize, synced: u64, out: &mut Vec<u8>) -> Place {
        debug_assert!(synced <= self.offset, "a frame is not durable before it is written");
        let length = u32::try_from(length).expect("invariant: the user of a log caps its payloads");
        put_u32(out, 0);
        put_u32(out, self.prev);
        put_u32(out, length);
        out.push(kind);
        let place = Place { id: self.log_id, offset: self.offset };
        out.extend(header_check(place, self.prev, length, kind, synced));
        put_u64(out, synced);
        place
    }

    /// Puts the checksum into a `frame` whose payload has `length` bytes, and moves on behind the frame.
    fn put_checksum(&mut self, checksum: u32, length: usize, frame: &mut [u8]) {
        frame[..4].copy_from_slice(&checksum.to_le_bytes());
        self.prev = checksum;
        self.offset += (FRAME_HEADER_BYTES + length) as u64;
    }
}

/// A frame as read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The number that the writer gave it.
    pub kind: u8,
    /// The payload.
    pub payload: &'a [u8],
    /// Where it begins in the log, in bytes.
    pub offset: u64,
    /// Length of the log's prefix that was durable when the frame was written.
    pub synced: u64,
}

/// How a log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// At the end of the bytes, or with zeros from `offset` on.
    Clean {
        /// Where the next frame belongs.
        offset: u64,
    },
    /// With bytes that a crash left incomplete.
    Torn {
        /// Where the last good frame ends.
        offset: u64,
    },
    /// With bytes that were durable and have changed.
    Damaged {
        /// Where the last good frame before the damage ends.
        offset: u64,
    },
}

/// The bytes of a log, wherever they lie.
pub trait LogBytes {
    /// Why some of them cannot be had.
    type Error;

    /// Length of the log.
    fn length(&self) -> u64;

    /// The bytes of `range`, which lies within the log.
    ///
    /// # Errors
    /// When they cannot be had.
    fn whole(&mut self, range: Range<u64>) -> Result<&[u8], Self::Error>;

    /// The bytes from `offset` on, as many as are at hand: at least one, if `offset` lies within the log.
    ///
    /// # Errors
    /// When they cannot be had.
    fn piece(&mut self, offset: u64) -> Result<&[u8], Self::Error>;
}

impl LogBytes for &[u8] {
    type Error = Infallible;

    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn whole(&mut self, range: Range<u64>) -> Result<&[u8], Infallible> {
        Ok(&self[range.start as usize..range.end as usize])
    }

    fn piece(&mut self, offset: u64) -> Result<&[u8], Infallible> {
        Ok(&self[offset as usize..])
    }
}

/// Reads frames from the contents of a log: all of them in memory, or [piece by piece](Pieces).
#[derive(Clone, Debug)]
pub struct FrameReader<B> {
    log_id: u64,
    bytes: B,
    offset: u64,
    prev: u32,
    ended: bool,
}

/// A header at some offset, whose link to the frame before it and whose checksum are not checked yet. The frame lies
/// within the log.
#[derive(Clone, Copy)]
struct Header {
    offset: u64,
    checksum: u32,
    prev: u32,
    length: u32,
    kind: u8,
    synced: u64,
}

impl Header {
    /// Where the frame ends.
    fn end(&self) -> u64 {
        self.offset + FRAME_HEADER_BYTES as u64 + u64::from(self.length)
    }

    /// Where the bytes lie that the checksum covers.
    fn covered(&self) -> Range<u64> {
        self.offset + 4..self.end()
    }
}

/// The result of a search for a frame.
enum Search {
    /// There is this frame.
    Frame(Header),
    /// There is none.
    Nothing,
    /// Too many bytes look like a frame.
    OutOfBudget,
}

impl<B: LogBytes> FrameReader<B> {
    /// A reader of the log `log_id`.
    #[must_use]
    pub fn over(log_id: u64, bytes: B) -> Self {
        Self { log_id, bytes, offset: 0, prev: first_prev(log_id), ended: false }
    }

    /// Where the next frame belongs, and the checksum of the one before it.
    #[must_use]
    pub fn state(&self) -> (u64, u32) {
        (self.offset, self.prev)
    }

    /// The next frame, if its bytes are right and it continues the chain.
    ///
    /// # Errors
    /// When bytes cannot be had.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, B::Error> {
        let Some(Header { kind, synced, offset, .. }) = self.advance()? else { return Ok(None) };
        let payload = self.bytes.whole(offset + FRAME_HEADER_BYTES as u64..self.offset)?;
        Ok(Some(Frame { kind, payload, offset, synced }))
    }

    /// Moves behind the next frame, which is all in memory then.
    fn advance(&mut self) -> Result<Option<Header>, B::Error> {
        if self.ended {
            return Ok(None);
        }
        let header = self.header(self.offset)?.filter(|header| header.prev == self.prev);
        let next = match header {
            Some(header) if planted!("torn-record-accepted") || self.verifies_whole(&header)? => Some(header),
            _ => None,
        };
        match next {
            Some(header) => (self.offset, self.prev) = (header.end(), header.checksum),
            None => self.ended = true,
        }
        Ok(next)
    }

    /// How the log ends behind the frames that were read. Call it after the last frame.
    ///
    /// # Errors
    /// When bytes cannot be had.
    pub fn read_tail(&mut self) -> Result<Tail, B::Error> {
        let offset = self.offset;
        if self.only_zeros_follow()? {
            Ok(Tail::Clean { offset })
        } else if !planted!("damage-taken-for-a-torn-tail") && self.durable_frame_follows()? {
            Ok(Tail::Damaged { offset })
        } else {
            Ok(Tail::Torn { offset })
        }
    }

    fn only_zeros_follow(&mut self) -> Result<bool, B::Error> {
        let mut at = self.offset;
        while at < self.bytes.length() {
            let piece = self.bytes.piece(at)?;
            if piece.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += piece.len() as u64;
        }
        Ok(true)
    }

    /// Whether a frame behind the current offset records that the bytes there were durable. If the search exceeds its
    /// budget, the answer is yes, since a log in doubt must not be cut.
    fn durable_frame_follows(&mut self) -> Result<bool, B::Error> {
        let end = self.offset;
        let found = self.find_frame(end + 1, |header| header.synced > end)?;
        Ok(!matches!(found, Search::Nothing))
    }

    /// Moves to the next frame whose checksum is right, whatever frame it follows; `false` when there is none. For
    /// repair and for dumps of damaged logs: recovery stops where the chain breaks.
    ///
    /// # Errors
    /// When bytes cannot be had.
    pub fn find_next(&mut self) -> Result<bool, B::Error> {
        let Search::Frame(header) = self.find_frame(self.offset, |_| true)? else { return Ok(false) };
        (self.offset, self.prev, self.ended) = (header.offset, header.prev, false);
        Ok(true)
    }

    /// Looks for a frame whose checksum is right and that is `wanted`, from offset `from` on.
    ///
    /// Frames have no alignment, so each byte may begin one. Few bytes look like a header. But bytes that were made
    /// to look like headers could cost the square of their number: hence a budget.
    fn find_frame(&mut self, from: u64, wanted: impl Fn(&Header) -> bool) -> Result<Search, B::Error> {
        let mut budget = self.bytes.length().saturating_mul(64);
        for offset in from..self.bytes.length() {
            let Some(header) = self.header(offset)? else { continue };
            let plausible = header.kind != 0 && header.synced <= offset;
            if !plausible || !wanted(&header) {
                continue;
            }
            let covered = header.covered();
            let Some(left) = budget.checked_sub(covered.end - covered.start) else {
                return Ok(Search::OutOfBudget);
            };
            budget = left;
            if self.verifies(&header)? {
                return Ok(Search::Frame(header));
            }
        }
        Ok(Search::Nothing)
    }

    /// What is recognised as a header at `offset`, if its frame lies within the log.
    fn header(&mut self, offset: u64) -> Result<Option<Header>, B::Error> {
        let end = offset + FRAME_HEADER_BYTES as u64;
        if end > self.bytes.length() {
            return Ok(None);
        }
        let (header, check) = Header::decode(offset, self.bytes.whole(offset..end)?);
        let place = Place { id: self.log_id, offset };
        let Header { prev, length, kind, synced, .. } = header;
        let is_one = check == header_check(place, prev, length, kind, synced);
        Ok(if is_one && header.end() <= self.bytes.length() { Some(header) } else { None })
    }

    /// Whether the checksum is right. The whole frame is in memory then.
    fn verifies_whole(&mut self, header: &Header) -> Result<bool, B::Error> {
        let place = Place { id: self.log_id, offset: header.offset };
        Ok(header.checksum == place.checksum(self.bytes.whole(header.covered())?))
    }

    /// Whether the checksum is right. Nothing more is in memory at a time than a piece.
    fn verifies(&mut self, header: &Header) -> Result<bool, B::Error> {
        let mut checksum = Place { id: self.log_id, offset: header.offset }.begin();
        let Range { start: mut at, end } = header.covered();
        while at < end {
            let piece = self.bytes.piece(at)?;
            let covered = &piece[..piece.len().min((end - at) as usize)];
            checksum.update(covered);
            at += covered.len() as u64;
        }
        Ok(header.checksum == checksum.finish())
    }
}

impl Header {
    /// The fields of the header at `offset`, and its check. `bytes` are [`FRAME_HEADER_BYTES`].
    fn decode(offset: u64, bytes: &[u8]) -> (Self, [u8; 3]) {
        let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let synced = u64::from(four(16)) | u64::from(four(20)) << 32;
        let header =
            Self { offset, checksum: four(0), prev: four(4), length: four(8), kind: bytes[12], synced };
        (header, [bytes[13], bytes[14], bytes[15]])
    }
}

/// Of a log in memory all bytes can be had.
impl<'a> FrameReader<&'a [u8]> {
    /// A reader of the log `log_id`, whose first byte is the first of `bytes`.
    #[must_use]
    pub fn new(log_id: u64, bytes: &'a [u8]) -> Self {
        Self::over(log_id, bytes)
    }

    /// As [`FrameReader::read_tail`].
    #[must_use]
    pub fn tail(&self) -> Tail {
        let Ok(tail) = self.clone().read_tail();
        tail
    }

    /// As [`FrameReader::find_next`].
    ///
    /// ```
    /// use terrace::format::log::{FrameReader, FrameWriter, first_prev};
    /// let mut log = Vec::new();
    /// let mut writer = FrameWriter::new(7, 0, first_prev(7));
    /// writer.append(1, &[b"lost"], 0, &mut log);
    /// writer.append(1, &[b"found"], 0, &mut log);
    /// log[25] ^= 1;
    /// let mut frames = FrameReader::new(7, &log);
    /// assert!(frames.next().is_none() && frames.skip_damage());
    /// assert_eq!(frames.next().unwrap().payload, b"found");
    /// assert!(frames.next().is_none() && !frames.skip_damage());
    /// ```
    pub fn skip_damage(&mut self) -> bool {
        let Ok(found) = self.find_next();
        found
    }
}

impl<'a> Iterator for FrameReader<&'a [u8]> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let Ok(next) = self.advance();
        let Header { kind, synced, offset, .. } = next?;
        let payload = &self.bytes[offset as usize + FRAME_HEADER_BYTES..self.offset as usize];
        Some(Frame { kind, payload, offset, synced })
    }
}

#[cfg(test)]
mod tests;
