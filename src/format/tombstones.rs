//! The range tombstones of a table: payload of its range tombstone block.
//!
//! ```text
//! SIZE    FIELD
//! varint  number of tombstones, at least 1; each of them:
//! varint+ length of the first key, key
//! varint+ length of the bound behind the last key, bound; empty: none
//! varint  sequence number
//! ```
//!
//! The tombstones are *fragmented*: any two of them have the same range, or no key in common. They are in the order
//! of their ranges; those with the same range come newest first. So a binary search finds the newest one over a key
//! that a reader sees.

use super::Malformed;
use super::coding::{Decoder, put_prefixed, put_varint};
use crate::types::{BOUND_BYTES_MAX, KeyRange, RangeTombstone, Seq, UpperBound};

/// Fewest bytes of a tombstone: two lengths and a sequence number.
const TOMBSTONE_BYTES_MIN: usize = 3;

/// Appends the stored form of fragmented tombstones.
pub fn encode(tombstones: &[RangeTombstone], out: &mut Vec<u8>) {
    put_varint(out, tombstones.len() as u64);
    for RangeTombstone { range, seq } in tombstones {
        put_prefixed(out, &range.start);
        put_prefixed(out, range.end.as_bytes());
        put_varint(out, seq.0);
    }
}

/// Reads the stored form.
///
/// # Errors
/// When the bytes are cut short or go on behind the last tombstone, or the tombstones are not fragmented and in order.
pub fn decode(bytes: &[u8]) -> Result<Vec<RangeTombstone>, Malformed> {
    let mut decoder = Decoder::new(bytes);
    let count = decoder.varint()?;
    if count == 0 || count > (decoder.remaining() / TOMBSTONE_BYTES_MIN) as u64 {
        return Err(Malformed::new(0, "impossible number of range tombstones"));
    }
    let mut tombstones: Vec<RangeTombstone> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let start = decoder.offset();
        let tombstone = read(&mut decoder)?;
        if tombstones.last().is_some_and(|last| !follows(&tombstone, last)) {
            return Err(Malformed::new(start, "range tombstones overlap or are out of order"));
        }
        tombstones.push(tombstone);
    }
    decoder.finish()?;
    Ok(tombstones)
}

fn read(decoder: &mut Decoder<'_>) -> Result<RangeTombstone, Malformed> {
    let start = decoder.offset();
    let (first, end) = (decoder.prefixed()?, decoder.prefixed()?);
    let seq = Seq(decoder.varint()?);
    let range = KeyRange { start: first.into(), end: UpperBound::from_bytes(end) };
    if first.len().max(end.len()) > BOUND_BYTES_MAX || range.is_inverted() || seq > Seq::MAX {
        return Err(Malformed::new(start, "impossible range tombstone"));
    }
    Ok(RangeTombstone { range, seq })
}

fn follows(tombstone: &RangeTombstone, last: &RangeTombstone) -> bool {
    if tombstone.range == last.range {
        tombstone.seq < last.seq
    } else {
        !last.range.end.admits(&tombstone.range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{each_change, refuses_truncations};

    fn tombstone(start: &str, end: &str, seq: u64) -> RangeTombstone {
        let range = KeyRange { start: start.as_bytes().into(), end: UpperBound::from_bytes(end.as_bytes()) };
        RangeTombstone { range, seq: Seq(seq) }
    }

    fn encoded(tombstones: &[RangeTombstone]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(tombstones, &mut out);
        out
    }

    #[test]
    fn tombstones_round_trip() {
        let all =
            [tombstone("", "b", 9), tombstone("b", "c", 300), tombstone("b", "c", 7), tombstone("x", "", 1)];
        #[rustfmt::skip]
        let golden = [
            4,
            0,  1, b'b',  9,
            1, b'b',  1, b'c',  0xac, 2,
            1, b'b',  1, b'c',  7,
            1, b'x',  0,  1,
        ];
        assert_eq!(encoded(&all), golden);
        assert_eq!(decode(&golden), Ok(all.to_vec()));
        refuses_truncations(&golden, decode);
        each_change(&golden, |_, bytes| {
            let _ = decode(bytes);
        });
    }

    #[test]
    fn what_is_not_fragmented_or_not_in_order_is_refused() {
        let refused = |tombstones: &[RangeTombstone]| decode(&encoded(tombstones)).unwrap_err().what;
        let (overlap, impossible) =
            ("range tombstones overlap or are out of order", "impossible range tombstone");
        assert_eq!(refused(&[tombstone("a", "c", 9), tombstone("b", "d", 8)]), overlap);
        assert_eq!(refused(&[tombstone("c", "d", 9), tombstone("a", "b", 8)]), overlap);
        assert_eq!(refused(&[tombstone("a", "b", 8), tombstone("a", "b", 8)]), overlap);
        assert_eq!(refused(&[tombstone("a", "b", 8), tombstone("a", "b", 9)]), overlap);
        assert_eq!(refused(&[tombstone("a", "", 8), tombstone("b", "", 7)]), overlap);
        assert_eq!(refused(&[tombstone("b", "b", 8)]), impossible);
        assert_eq!(refused(&[tombstone("a", "b", u64::MAX)]), impossible);
        assert_eq!(refused(&[tombstone(&"k".repeat(BOUND_BYTES_MAX + 1), "", 1)]), impossible);
        assert_eq!(refused(&[]), "impossible number of range tombstones");
    }
}
