//! Values that identify their record: a header, then bytes that follow from it.
//!
//! ```text
//! OFFSET  SIZE  FIELD
//! 0       8     record number, little endian
//! 8       4     version, little endian: 1 at the insert, one more at each update
//! 12      rest  words of a stream seeded by both, so that any wrong byte shows
//! ```
//!
//! A value is made and checked a word at a time, fast enough for both to run inside the measured loop. The bytes do
//! not compress.

use crate::Result;
use crate::generator::mix;

/// Bytes before the stream, and the least a value can have.
pub const HEADER_BYTES: usize = 12;

/// Makes and checks values of one size.
#[derive(Clone, Debug)]
pub struct ValueFormat {
    bytes: usize,
}

impl ValueFormat {
    /// Values of `bytes` bytes.
    ///
    /// # Errors
    /// Values without room for the header, or longer than the engine takes.
    pub fn new(bytes: usize) -> Result<Self> {
        if !(HEADER_BYTES..=terrace::types::VALUE_BYTES_MAX).contains(&bytes) {
            let max = terrace::types::VALUE_BYTES_MAX;
            return Err(format!("values of {bytes} bytes: they have {HEADER_BYTES} to {max}").into());
        }
        Ok(Self { bytes })
    }

    /// Size of a value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces `value` by version `version` of `record`.
    pub fn fill(&self, record: u64, version: u32, value: &mut Vec<u8>) {
        value.resize(self.bytes, 0);
        value[..8].copy_from_slice(&record.to_le_bytes());
        value[8..HEADER_BYTES].copy_from_slice(&version.to_le_bytes());
        let stream = Stream::new(record, version);
        let (words, tail) = value[HEADER_BYTES..].as_chunks_mut();
        for (index, word) in (0..).zip(&mut *words) {
            *word = stream.word(index);
        }
        tail.copy_from_slice(&stream.word(words.len() as u64)[..tail.len()]);
    }

    /// The record and the version that `value` claims to be, if it is whole: of the right size and right in every byte.
    #[must_use]
    pub fn check(&self, value: &[u8]) -> Option<(u64, u32)> {
        if value.len() != self.bytes {
            return None;
        }
        let (record, rest) = value.split_first_chunk()?;
        let (version, body) = rest.split_first_chunk()?;
        let (record, version) = (u64::from_le_bytes(*record), u32::from_le_bytes(*version));
        let stream = Stream::new(record, version);
        let (words, tail) = body.as_chunks();
        let whole = (0..).zip(words).all(|(index, word)| *word == stream.word(index));
        let whole = whole && *tail == stream.word(words.len() as u64)[..tail.len()];
        whole.then_some((record, version))
    }
}

/// The words behind the header: a seed that any change of record or version scrambles, stepped and multiplied.
struct Stream {
    seed: u64,
}

impl Stream {
    fn new(record: u64, version: u32) -> Self {
        Self { seed: mix(record ^ u64::from(version).rotate_left(40)) }
    }

    fn word(&self, index: u64) -> [u8; 8] {
        let step = self.seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (step ^ (step >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_check_as_what_they_are() {
        for bytes in [12, 13, 20, 100, 1000] {
            let format = ValueFormat::new(bytes).unwrap();
            let mut value = Vec::new();
            format.fill(77, 3, &mut value);
            assert_eq!(value.len(), bytes);
            assert_eq!(format.check(&value), Some((77, 3)));
        }
    }

    #[test]
    fn any_flipped_bit_behind_the_header_shows() {
        let format = ValueFormat::new(45).unwrap();
        let mut value = Vec::new();
        format.fill(5, 9, &mut value);
        for bit in HEADER_BYTES * 8..45 * 8 {
            value[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(format.check(&value), None);
            value[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(format.check(&value[..44]), None);
        value[0] ^= 1;
        assert_eq!(format.check(&value), None, "the body follows from the header");
    }

    #[test]
    fn values_without_room_for_the_header_are_refused() {
        assert!(ValueFormat::new(11).is_err());
    }
}
