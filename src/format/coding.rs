//! Integers, varints and length-prefixed bytes: the parts of the other codecs.
//!
//! Varints are LEB128 of at most 10 bytes in their one shortest form, so that equal values have equal bytes.

use super::Malformed;

/// Longest varint, in bytes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value`, 2 bytes little endian.
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value`, 4 bytes little endian.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value`, 8 bytes little endian.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` as a varint of 1 to 10 bytes.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the length of `bytes` as a varint, then `bytes`.
pub fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A decoder: reads one value after the other from bytes.
///
/// Every error has the offset of the value that could not be read. A decoder that failed must not be used further.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::within(bytes, 0)
    }

    /// A decoder for `bytes`, which begin at `offset` of the bytes that errors refer to.
    #[must_use]
    pub fn within(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// Offset of the next byte: in the bytes given, or in the surrounding ones for a part of them.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error `what` at the current offset.
    #[must_use]
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed::new(self.offset, what)
    }

    /// Checks that all bytes have been read.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed("trailing bytes")) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| self.malformed("truncated integer"))?;
        self.rest = rest;
        self.offset += N;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// When none is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, little endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint.
    ///
    /// # Errors
    /// When the bytes end before it does, when it exceeds 64 bits, or when it is longer than its value needs.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index as u32;
            if shift == 63 && bits > 1 {
                return Err(self.malformed("varint above 64 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                if byte == 0 && index > 0 {
                    return Err(self.malformed("varint not in shortest form"));
                }
                self.rest = &self.rest[index + 1..];
                self.offset += index + 1;
                return Ok(value);
            }
        }
        let ended = self.rest.len() < VARINT_BYTES_MAX;
        Err(self.malformed(if ended { "truncated varint" } else { "varint above 64 bits" }))
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or_else(|| self.malformed("truncated bytes"))?;
        self.rest = rest;
        self.offset += n;
        Ok(head)
    }

    /// Bytes behind their varint length.
    ///
    /// # Errors
    /// When the length is not a varint or exceeds what is left.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        Ok(self.section()?.rest)
    }

    /// As [`prefixed`](Self::prefixed), as a decoder of its own, whose errors refer to the surrounding bytes.
    ///
    /// # Errors
    /// As [`prefixed`](Self::prefixed).
    pub fn section(&mut self) -> Result<Decoder<'a>, Malformed> {
        let start = self.offset;
        let length = self.varint()?;
        let length = usize::try_from(length).ok().filter(|&length| length <= self.rest.len());
        let length = length.ok_or(Malformed::new(start, "length beyond the end"))?;
        let offset = self.offset;
        Ok(Self::within(self.bytes(length)?, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::seeded;
    use proptest::prelude::*;

    #[test]
    fn integers_are_little_endian() {
        let mut out = Vec::new();
        put_u16(&mut out, 0x0201);
        put_u32(&mut out, 0x0605_0403);
        put_u64(&mut out, 0x0e0d_0c0b_0a09_0807);
        assert_eq!(out, (1..=14).collect::<Vec<u8>>());
    }

    #[test]
    fn varint_has_one_form() {
        let mut decoder = Decoder::new(&[0x80, 0x00]);
        assert_eq!(decoder.varint(), Err(Malformed::new(0, "varint not in shortest form")));
        let mut out = Vec::new();
        put_varint(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
        put_varint(&mut out, u64::MAX);
        assert_eq!(out.len(), 2 + VARINT_BYTES_MAX);
    }

    #[test]
    fn varint_above_64_bits_is_refused() {
        assert!(Decoder::new(&[0xff; 10]).varint().is_err());
        assert!(Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint().is_err());
        assert!(Decoder::new(&[0x80; 11]).varint().is_err());
    }

    #[test]
    fn huge_length_is_refused() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        out.push(0);
        assert_eq!(Decoder::new(&out).prefixed(), Err(Malformed::new(0, "length beyond the end")));
        assert!(Decoder::new(&out).bytes(usize::MAX).is_err());
    }

    #[test]
    fn section_errors_refer_to_the_whole() {
        let mut decoder = Decoder::new(&[9, 2, 1, 1, 7]);
        decoder.u8().unwrap();
        let mut section = decoder.section().unwrap();
        assert_eq!(section.u32(), Err(Malformed::new(2, "truncated integer")));
        assert_eq!(decoder.finish(), Err(Malformed::new(4, "trailing bytes")));
    }

    proptest! {
        #![proptest_config(seeded(100))]

        #[test]
        fn values_round_trip(a: u8, b: u16, c: u32, d: u64, shift in 0..64u32, bytes: Vec<u8>) {
            let mut out = vec![a];
            put_u16(&mut out, b);
            put_u32(&mut out, c);
            put_u64(&mut out, d);
            put_varint(&mut out, d >> shift);
            put_prefixed(&mut out, &bytes);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decoder.u8(), Ok(a));
            prop_assert_eq!(decoder.u16(), Ok(b));
            prop_assert_eq!(decoder.u32(), Ok(c));
            prop_assert_eq!(decoder.u64(), Ok(d));
            prop_assert_eq!(decoder.varint(), Ok(d >> shift));
            prop_assert_eq!(decoder.prefixed(), Ok(&bytes[..]));
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn every_truncation_fails(value: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_prefixed(&mut out, &bytes);
            for end in 0..out.len() {
                let mut decoder = Decoder::new(&out[..end]);
                prop_assert!(decoder.varint().and_then(|_| decoder.prefixed().map(|_| ())).is_err());
            }
        }
    }
}
