//! What the frames of the write-ahead log hold.
//!
//! ```text
//! KIND
//!  1   start of a segment, its first frame:
//!      OFFSET SIZE FIELD
//!       0     8    id of the segment before, 0 for none
//!       8     8    its length
//!      16     1    1 if it, and every older one, was durable by then, else 0
//!  2   a batch of writes (`batch`)
//! ```

use super::Malformed;
use super::coding::{Decoder, put_u64};
use super::log::Frame;
use crate::types::SegmentId;

/// Kind of the frame that starts a segment.
pub const START_FRAME: u8 = 1;

/// Kind of a frame that holds a batch.
pub const BATCH_FRAME: u8 = 2;

const START_BYTES: usize = 17;

/// How a segment follows the one before.
///
/// ```
/// use terrace::format::segment::SegmentStart;
/// use terrace::types::SegmentId;
///
/// let start = SegmentStart { previous: SegmentId(6), length: 4711, durable: false };
/// assert_eq!(SegmentStart::decode(&start.encode()), Ok(start));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentStart {
    /// The segment before, 0 for none.
    pub previous: SegmentId,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it, and every older one, was durable by then.
    pub durable: bool,
}

impl SegmentStart {
    /// The payload of the frame.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(START_BYTES);
        put_u64(&mut payload, self.previous.0);
        put_u64(&mut payload, self.length);
        payload.push(self.durable.into());
        payload
    }

    /// Reads the payload of the frame.
    ///
    /// # Errors
    /// When it is none of a start.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Decoder::new(payload);
        let (previous, length, durable) = (SegmentId(fields.u64()?), fields.u64()?, fields.u8()?);
        fields.finish()?;
        if durable > 1 {
            return Err(Malformed::new(START_BYTES - 1, "neither durable nor not"));
        }
        Ok(Self { previous, length, durable: durable == 1 })
    }

    /// What `frame` says, if it starts a segment.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        if frame.kind == START_FRAME { Self::decode(frame.payload).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_decodes_to_itself_and_from_nothing_else() {
        for durable in [false, true] {
            let start = SegmentStart { previous: SegmentId(7), length: u64::MAX, durable };
            let bytes = start.encode();
            assert_eq!(SegmentStart::decode(&bytes), Ok(start));
            assert!((0..START_BYTES).all(|length| SegmentStart::decode(&bytes[..length]).is_err()));
            assert!(SegmentStart::decode(&[&bytes[..], &[0]].concat()).is_err());
            assert!(SegmentStart::decode(&[&bytes[..START_BYTES - 1], &[2]].concat()).is_err());
        }
    }

    #[test]
    fn only_a_frame_of_its_kind_starts_a_segment() {
        let payload = SegmentStart { previous: SegmentId(1), length: 2, durable: true }.encode();
        let frame = |kind| Frame { offset: 0, kind, synced: 0, payload: &payload };
        assert!(SegmentStart::of(&frame(START_FRAME)).is_some());
        assert!(SegmentStart::of(&frame(BATCH_FRAME)).is_none());
    }
}
