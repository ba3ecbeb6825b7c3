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

use super::Malformed;
use super::checksum::Place;
use super::coding::{Decoder, put_u32, put_u64};

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

/// Reads frames from the whole contents of a log.
#[derive(Clone, Debug)]
pub struct FrameReader<'a> {
    log_id: u64,
    bytes: &'a [u8],
    offset: usize,
    prev: u32,
    ended: bool,
}

/// A frame at some offset, whose link to the frame before it is not checked yet.
struct Candidate<'a> {
    checksum: u32,
    prev: u32,
    kind: u8,
    synced: u64,
    /// The bytes that the checksum covers.
    covered: &'a [u8],
}

/// The result of a search for a frame.
enum Search {
    /// There is a frame at this offset.
    Frame(usize),
    /// There is none.
    Nothing,
    /// Too many bytes look like a frame.
    OutOfBudget,
}

impl<'a> FrameReader<'a> {
    /// A reader of the log `log_id`, whose first byte is the first of `bytes`.
    #[must_use]
    pub fn new(log_id: u64, bytes: &'a [u8]) -> Self {
        Self { log_id, bytes, offset: 0, prev: first_prev(log_id), ended: false }
    }

    /// Where the next frame belongs, and the checksum of the one before it.
    #[must_use]
    pub fn state(&self) -> (u64, u32) {
        (self.offset as u64, self.prev)
    }

    /// How the log ends behind the frames that were read. Call it after the last frame.
    #[must_use]
    pub fn tail(&self) -> Tail {
        let offset = self.offset as u64;
        let rest = &self.bytes[self.offset..];
        if rest.iter().all(|&byte| byte == 0) {
            Tail::Clean { offset }
        } else if !planted!("damage-taken-for-a-torn-tail") && self.durable_frame_follows() {
            Tail::Damaged { offset }
        } else {
            Tail::Torn { offset }
        }
    }

    /// Whether a frame behind the current offset records that the bytes there were durable. If the search exceeds its
    /// budget, the answer is yes, since a log in doubt must not be cut.
    fn durable_frame_follows(&self) -> bool {
        let durable = |frame: &Candidate<'_>| frame.synced > self.offset as u64;
        !matches!(self.find_frame(self.offset + 1, durable), Search::Nothing)
    }

    /// Moves to the next frame whose checksum is right, whatever frame it follows; `false` when there is none. For
    /// repair and for dumps of damaged logs: recovery stops where the chain breaks.
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
        let Search::Frame(offset) = self.find_frame(self.offset, |_| true) else { return false };
        let Ok(frame) = self.candidate(offset) else { return false };
        (self.offset, self.prev, self.ended) = (offset, frame.prev, false);
        true
    }

    /// Looks for a frame whose checksum is right and that is `wanted`, from offset `from` on.
    ///
    /// Frames have no alignment, so each byte may begin one. Few bytes look like a header. But bytes that were made
    /// to look like headers could cost the square of their number: hence a budget.
    fn find_frame(&self, from: usize, wanted: impl Fn(&Candidate<'_>) -> bool) -> Search {
        let mut budget = self.bytes.len().saturating_mul(64);
        for offset in from..self.bytes.len() {
            let Ok(candidate) = self.candidate(offset) else { continue };
            let plausible = candidate.kind != 0 && candidate.synced <= offset as u64;
            if !plausible || !wanted(&candidate) {
                continue;
            }
            let Some(left) = budget.checked_sub(candidate.covered.len()) else { return Search::OutOfBudget };
            budget = left;
            if self.verifies(&candidate, offset) {
                return Search::Frame(offset);
            }
        }
        Search::Nothing
    }

    fn candidate(&self, offset: usize) -> Result<Candidate<'a>, Malformed> {
        let mut decoder = Decoder::within(&self.bytes[offset..], offset);
        let checksum = decoder.u32()?;
        let rest = &self.bytes[decoder.offset()..];
        let prev = decoder.u32()?;
        let length = decoder.u32()?;
        let kind = decoder.u8()?;
        let check = decoder.bytes(3)?;
        let synced = decoder.u64()?;
        let place = Place { id: self.log_id, offset: offset as u64 };
        if check != header_check(place, prev, length, kind, synced) {
            return Err(decoder.malformed("no frame"));
        }
        let length = length as usize;
        decoder.bytes(length)?;
        let covered = &rest[..FRAME_HEADER_BYTES - 4 + length];
        Ok(Candidate { checksum, prev, kind, synced, covered })
    }

    fn verifies(&self, candidate: &Candidate<'_>, offset: usize) -> bool {
        candidate.checksum == Place { id: self.log_id, offset: offset as u64 }.checksum(candidate.covered)
    }
}

impl<'a> Iterator for FrameReader<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.ended {
            return None;
        }
        let candidate = self.candidate(self.offset).ok();
        let candidate = candidate.filter(|frame| {
            frame.prev == self.prev && (planted!("torn-record-accepted") || self.verifies(frame, self.offset))
        });
        let Some(candidate) = candidate else {
            self.ended = true;
            return None;
        };
        let payload = &candidate.covered[FRAME_HEADER_BYTES - 4..];
        let frame =
            Frame { kind: candidate.kind, payload, offset: self.offset as u64, synced: candidate.synced };
        self.offset += FRAME_HEADER_BYTES + payload.len();
        self.prev = candidate.checksum;
        Some(frame)
    }
}

#[cfg(test)]
mod tests;
