//! A batch of writes: the payload of a frame of the write-ahead log.
//!
//! ```text
//! OFFSET SIZE     FIELD
//!  0     8        sequence number of the first operation; the others take the numbers that follow
//!  8     4        count of operations
//! 12     .        operations:
//!        1        kind: 1 = delete, 2 = put, 3 = delete a range
//!        varint   keyspace
//!        varint+  length of the key, key; of a range: of its first key
//!        varint+  put: length of the value, value; range: length of the bound behind its last key, bound (empty: none)
//! ```
//!
//! A batch without sequence numbers is kept as the operations alone, without the header. Its large values then lie
//! beside them, each in memory of its own ([`Large`]).

use super::Malformed;
use super::coding::{Decoder, put_prefixed, put_varint};
use crate::types::{BOUND_BYTES_MAX, Buffer, KEY_BYTES_MAX, KeyspaceId, Seq, VALUE_BYTES_MAX};

/// Bytes before the first operation.
pub const BATCH_HEADER_BYTES: usize = 12;

/// Fewest bytes of an operation: kind, keyspace, length of an empty key.
const OP_BYTES_MIN: usize = 3;

const DELETE: u8 = 1;
const PUT: u8 = 2;
const DELETE_RANGE: u8 = 3;

/// Appends an operation.
pub fn put_op(out: &mut Vec<u8>, op: &Op<'_>) {
    let (kind, key, value) = match op.action {
        Action::Delete { key } => (DELETE, key, None),
        Action::Put { key, value } => (PUT, key, Some(value)),
        Action::DeleteRange { start, end } => (DELETE_RANGE, start, Some(end)),
    };
    out.push(kind);
    put_varint(out, op.keyspace.0.into());
    put_prefixed(out, key);
    value.into_iter().for_each(|value| put_prefixed(out, value));
}

/// Appends a put of `key` without its value: the bytes that come before `value_len` bytes of value.
pub fn put_op_before_value(out: &mut Vec<u8>, keyspace: KeyspaceId, key: &[u8], value_len: usize) {
    out.push(PUT);
    put_varint(out, keyspace.0.into());
    put_prefixed(out, key);
    put_varint(out, value_len as u64);
}

/// A large value that lies beside the operations, and its place among them.
#[derive(Clone, Debug)]
pub struct Large {
    /// Offset in the bytes of the operations at which the value belongs.
    pub at: usize,
    /// The value.
    pub value: Buffer,
}

/// The bytes of `ops` and of the values beside it as they stand in the log, in pieces, in order.
pub fn pieces<'a>(ops: &'a [u8], large: &'a [Large]) -> impl Iterator<Item = &'a [u8]> + Clone {
    let starts = std::iter::once(0).chain(large.iter().map(|large| large.at));
    let ends = large.iter().map(|large| large.at).chain([ops.len()]);
    let values = large.iter().map(|large| &*large.value).map(Some).chain([None]);
    starts.zip(ends).zip(values).flat_map(|((start, end), value)| [Some(&ops[start..end]), value]).flatten()
}

/// The header of a batch of `count` operations that take the sequence numbers from `first` on.
#[must_use]
pub fn encode_header(first: Seq, count: u32) -> [u8; BATCH_HEADER_BYTES] {
    let mut header = [0; BATCH_HEADER_BYTES];
    header[..8].copy_from_slice(&first.0.to_le_bytes());
    header[8..].copy_from_slice(&count.to_le_bytes());
    header
}

/// One write of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op<'a> {
    /// The keyspace that is written.
    pub keyspace: KeyspaceId,
    /// What is written.
    pub action: Action<'a>,
}

/// What an operation does to a keyspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action<'a> {
    /// Removes a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Gives a key a value.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Removes all keys of a range, which is not empty.
    DeleteRange {
        /// The first key of the range.
        start: &'a [u8],
        /// The bound behind the last key, in the stored form of [`UpperBound`](crate::types::UpperBound).
        end: &'a [u8],
    },
}

impl Action<'_> {
    /// Bytes of keys, bounds and value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Delete { key } => key.len(),
            Self::Put { key, value } => key.len() + value.len(),
            Self::DeleteRange { start, end } => start.len() + end.len(),
        }
    }
}

/// The operations of a batch, in order. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    decoder: Decoder<'a>,
    /// Values that lie beside what the decoder reads.
    large: &'a [Large],
    left: u32,
    failed: bool,
}

impl<'a> Ops<'a> {
    /// The operations of the batch `payload`, and the sequence number of the first.
    ///
    /// # Errors
    /// When the header is cut short, or counts more operations than there are bytes or sequence numbers for. The
    /// operations themselves are checked one by one, as they are read.
    pub fn decode(payload: &'a [u8]) -> Result<(Seq, Self), Malformed> {
        let mut decoder = Decoder::new(payload);
        let first = decoder.u64()?;
        let count = decoder.u32()?;
        if first.checked_add(count.into()).is_none_or(|end| end > Seq::MAX.0) {
            return Err(Malformed::new(0, "sequence numbers out of range"));
        }
        if count as usize > decoder.remaining() / OP_BYTES_MIN {
            return Err(Malformed::new(8, "more operations than bytes"));
        }
        Ok((Seq(first), Self { decoder, large: &[], left: count, failed: false }))
    }

    /// `count` operations without a header.
    #[must_use]
    pub fn raw(bytes: &'a [u8], count: u32) -> Self {
        Self::raw_beside(bytes, count, &[])
    }

    /// As [`Ops::raw`], with the values of `large` beside `bytes`.
    #[must_use]
    pub fn raw_beside(bytes: &'a [u8], count: u32, large: &'a [Large]) -> Self {
        Self { decoder: Decoder::new(bytes), large, left: count, failed: false }
    }

    /// Number of operations that have not been read yet.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.left
    }

    /// The value of a put.
    fn value(decoder: &mut Decoder<'a>, large: &mut &'a [Large]) -> Result<&'a [u8], Malformed> {
        if let [next, others @ ..] = large {
            let mut behind = decoder.clone();
            behind.varint()?;
            if behind.offset() == next.at {
                (*decoder, *large) = (behind, others);
                return Ok(&next.value);
            }
        }
        decoder.prefixed()
    }

    fn read(decoder: &mut Decoder<'a>, large: &mut &'a [Large]) -> Result<Op<'a>, Malformed> {
        let start = decoder.offset();
        let kind = decoder.u8()?;
        let keyspace = decoder.varint()?;
        let keyspace = u32::try_from(keyspace).map_err(|_| Malformed::new(start, "keyspace out of range"))?;
        let key = decoder.prefixed()?;
        let (action, fits) = match kind {
            DELETE => (Action::Delete { key }, key.len() <= KEY_BYTES_MAX),
            PUT => {
                let value = Self::value(decoder, large)?;
                (Action::Put { key, value }, key.len() <= KEY_BYTES_MAX && value.len() <= VALUE_BYTES_MAX)
            }
            DELETE_RANGE => {
                let end = decoder.prefixed()?;
                if !end.is_empty() && key >= end {
                    return Err(Malformed::new(start, "inverted range"));
                }
                (Action::DeleteRange { start: key, end }, key.len().max(end.len()) <= BOUND_BYTES_MAX)
            }
            _ => return Err(Malformed::new(start, "unknown kind of operation")),
        };
        if fits {
            Ok(Op { keyspace: KeyspaceId(keyspace), action })
        } else {
            Err(Malformed::new(start, "key or value too long"))
        }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = if self.left > 0 {
            self.left -= 1;
            Some(Self::read(&mut self.decoder, &mut self.large))
        } else {
            self.decoder.clone().finish().err().map(Err)
        };
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{each_change, seeded};
    use proptest::prelude::*;

    fn read(payload: &[u8]) -> Result<(Seq, Vec<Op<'_>>), Malformed> {
        let (first, ops) = Ops::decode(payload)?;
        Ok((first, ops.collect::<Result<_, _>>()?))
    }

    fn sample() -> Vec<u8> {
        let mut payload = encode_header(Seq(500), 4).to_vec();
        for (keyspace, action) in [
            (0, Action::Put { key: b"key", value: b"value" }),
            (300, Action::Delete { key: b"gone" }),
            (0, Action::DeleteRange { start: b"a", end: b"b" }),
            (0, Action::DeleteRange { start: b"", end: b"" }),
        ] {
            put_op(&mut payload, &Op { keyspace: KeyspaceId(keyspace), action });
        }
        payload
    }

    proptest! {
        #![proptest_config(seeded(100))]

        #[test]
        fn batches_round_trip(
            first in 0..1u64 << 50,
            writes: Vec<(u32, u8, Vec<u8>, Vec<u8>)>,
        ) {
            let mut payload = encode_header(Seq(first), writes.len() as u32).to_vec();
            let mut expected = Vec::new();
            for (keyspace, kind, key, value) in &writes {
                let action = match kind % 3 {
                    0 => Action::Delete { key },
                    1 => Action::Put { key, value },
                    _ if key < value => Action::DeleteRange { start: key, end: value },
                    _ => Action::DeleteRange { start: key, end: b"" },
                };
                let op = Op { keyspace: KeyspaceId(*keyspace), action };
                put_op(&mut payload, &op);
                expected.push(op);
            }
            let raw = Ops::raw(&payload[BATCH_HEADER_BYTES..], writes.len() as u32);
            prop_assert_eq!(raw.collect::<Result<Vec<_>, _>>(), Ok(expected.clone()));
            prop_assert_eq!(read(&payload), Ok((Seq(first), expected)));
        }

        #[test]
        fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100), count: u32) {
            let _ = read(&bytes);
            prop_assert!(Ops::raw(&bytes, count).count() <= bytes.len() + 1);
        }
    }

    #[test]
    fn values_beside_the_operations_read_as_if_they_stood_among_them() {
        let values: Vec<Vec<u8>> = [5, 0, 300, 7].map(|len| vec![len as u8; len]).into();
        let puts = values.iter().map(|value| Action::Put { key: b"key", value });
        let actions: Vec<_> = puts.chain([Action::Delete { key: b"gone" }]).collect();
        for beside in 0..16_u32 {
            let (mut ops, mut whole, mut large) = (Vec::new(), Vec::new(), Vec::new());
            for (at, &action) in actions.iter().enumerate() {
                let op = Op { keyspace: KeyspaceId(9), action };
                put_op(&mut whole, &op);
                match action {
                    Action::Put { key, value } if beside & 1 << at != 0 => {
                        put_op_before_value(&mut ops, op.keyspace, key, value.len());
                        large.push(Large { at: ops.len(), value: value.into() });
                    }
                    _ => put_op(&mut ops, &op),
                }
            }
            assert_eq!(pieces(&ops, &large).collect::<Vec<_>>().concat(), whole);
            let read = Ops::raw_beside(&ops, actions.len() as u32, &large).map(|op| op.map(|op| op.action));
            assert_eq!(read.collect::<Result<Vec<_>, _>>(), Ok(actions.clone()), "{beside:b}");
        }
    }

    #[test]
    fn batch_has_golden_bytes() {
        #[rustfmt::skip]
        let golden = [
            0xf4, 1, 0, 0, 0, 0, 0, 0,  4, 0, 0, 0,
            2,  0,  3, b'k', b'e', b'y',  5, b'v', b'a', b'l', b'u', b'e',
            1,  0xac, 2,  4, b'g', b'o', b'n', b'e',
            3,  0,  1, b'a',  1, b'b',
            3,  0,  0,  0,
        ];
        assert_eq!(sample(), golden);
    }

    #[test]
    fn truncations_are_refused() {
        let payload = sample();
        assert!((0..payload.len()).all(|end| read(&payload[..end]).is_err()));
        each_change(&payload, |_, bytes| {
            let _ = read(bytes);
        });
    }

    #[test]
    fn trailing_bytes_are_refused_once() {
        let mut payload = sample();
        payload.push(0);
        let ops: Vec<_> = Ops::decode(&payload).unwrap().1.collect();
        assert_eq!(ops.len(), 5);
        assert_eq!(ops[4], Err(Malformed::new(payload.len() - 1, "trailing bytes")));
    }

    #[test]
    fn inverted_ranges_and_unknown_kinds_are_refused() {
        let refused = |op: &[u8]| Ops::raw(op, 1).next().unwrap().unwrap_err().what;
        assert_eq!(refused(&[3, 0, 1, b'b', 1, b'b']), "inverted range");
        assert_eq!(refused(&[4, 0, 1, b'b', 1, b'b']), "unknown kind of operation");
    }

    #[test]
    fn impossible_headers_are_refused() {
        assert!(Ops::decode(&encode_header(Seq(1), u32::MAX)).is_err());
        assert!(Ops::decode(&encode_header(Seq(u64::MAX), 0)).is_err());
        assert!(Ops::decode(&encode_header(Seq::MAX, 0)).is_ok());
    }
}
