//! The format of separated values: value tables, and the pointers to the values in them.
//!
//! A value of at least `separate_from` bytes lies apart from its key (WiscKey, FAST 2016, section 3.2). The entry in the
//! tree, of kind [`Separated`](crate::types::Kind::Separated), has a pointer in its place. Where values expire, the second
//! of the write follows the pointer, as it follows a value ([`timestamped`](super::timestamped)); the value that lies apart has
//! it, too.
//!
//! ```text
//! value table: values | footer                    below 4 GiB; at a multiple of 4096 of a pack, like any table
//!
//! pointer (numbers are varints)                   footer, the last bytes
//! value table                                     OFFSET SIZE FIELD
//! offset in the value table                        0     8    magic "TERRVALS"
//! codec: 1 = raw, 2 = LZ4 (1 byte)                 8     4    format version
//! length of the value                             12     8    id of the value table
//! stored length, with LZ4 alone                   20     4    keyspace
//! checksum of the stored bytes and the codec,     24     8    length of all before the footer
//!   bound to (value table, offset): u32           32     4    checksum of all before it, bound to the id
//! ```
//!
//! A value's stored form is its bytes, or with LZ4 what a [block](super::table) of that codec stores. It has neither header nor
//! trailer, so that a value of whole pages takes whole pages.
//!
//! **Footprint.** A stored value that begins at a page, and fills whole pages but for a sixteenth of padding, takes all of
//! its pages: they can be punched once it is dead. Any other one takes its bytes alone, and shares pages with its
//! neighbours. Bytes between two footprints belong to no value: they are dead from the beginning.

use std::ops::Range;

use super::checksum::Place;
use super::coding::{Decoder, put_u32, put_u64, put_varint};
use super::table::{self, Codec};
use super::{FORMAT_VERSION, Malformed};
use crate::types::{Buffer, KeyspaceId, PAGE_BYTES, TableId, VALUE_BYTES_MAX};

/// Bytes of an encoded [`ValueFooter`].
pub const VALUE_FOOTER_BYTES: usize = 36;

/// First bytes of a footer.
pub const VALUE_MAGIC: [u8; 8] = *b"TERRVALS";

/// Divisor: padding of at most this part of a value makes it one of whole pages.
const PADDING_PARTS: u64 = 16;

/// Most bytes that a stored value takes: LZ4 never makes one longer, for it is stored raw then.
const STORED_MAX: u64 = VALUE_BYTES_MAX as u64 + 8;

/// Where a separated value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValuePointer {
    /// The value table.
    pub table: TableId,
    /// Offset there, in bytes.
    pub offset: u32,
    /// How it is stored.
    pub codec: Codec,
    /// Length of the value, in bytes.
    pub length: u32,
    /// Length of its stored form, in bytes.
    pub stored: u32,
    /// Checksum of its stored form.
    pub checksum: u32,
}

/// Whether a stored value of `length` bytes takes whole pages where it begins at one.
#[must_use]
pub fn takes_pages(length: u64) -> bool {
    length.next_multiple_of(PAGE_BYTES) - length <= length / PADDING_PARTS
}

/// Bytes of the value table that a stored value of `length` bytes takes at `offset`.
#[must_use]
pub fn footprint(offset: u64, length: u64) -> u64 {
    let is_at_page = offset.is_multiple_of(PAGE_BYTES);
    if is_at_page && takes_pages(length) { length.next_multiple_of(PAGE_BYTES) } else { length }
}

impl ValuePointer {
    /// The pointer to the value whose stored form lies in `pieces` and begins at `offset` of `table`.
    #[must_use]
    pub fn to(table: TableId, offset: u32, codec: Codec, length: u32, stored: &[u8]) -> Self {
        let checksum = checksum(table, offset, codec, stored);
        Self { table, offset, codec, length, stored: stored.len() as u32, checksum }
    }

    /// What the value takes of its table.
    #[must_use]
    pub fn footprint(&self) -> Range<u32> {
        let bytes = footprint(self.offset.into(), self.stored.into());
        self.offset..u32::try_from(u64::from(self.offset) + bytes).unwrap_or(u32::MAX)
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.table.0);
        put_varint(out, self.offset.into());
        out.push(self.codec as u8);
        put_varint(out, self.length.into());
        if self.codec == Codec::Lz4 {
            put_varint(out, self.stored.into());
        }
        put_u32(out, self.checksum);
    }

    /// Reads the stored form at the start of `bytes`. Also returns what follows it.
    ///
    /// # Errors
    /// When it is cut off, or not one that a writer makes.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut decoder = Decoder::new(bytes);
        let table = TableId(decoder.varint()?);
        let offset = small(&mut decoder)?;
        let start = decoder.clone();
        let codec = match decoder.u8()? {
            codec if codec == Codec::Raw as u8 => Codec::Raw,
            codec if codec == Codec::Lz4 as u8 => Codec::Lz4,
            _ => return Err(start.malformed("unknown codec of a value")),
        };
        let length = small(&mut decoder)?;
        let stored = if codec == Codec::Lz4 { small(&mut decoder)? } else { length };
        let checksum = decoder.u32()?;
        let pointer = Self { table, offset, codec, length, stored, checksum };
        let end = u64::from(offset) + footprint(offset.into(), stored.into());
        if u64::from(stored) > STORED_MAX || stored == 0 || end > u32::MAX.into() || table.0 == u64::MAX {
            return Err(start.malformed("impossible pointer to a value"));
        }
        Ok((pointer, decoder.bytes(decoder.remaining())?))
    }

    /// The value, of the `stored` bytes that were read where it points to. A compressed one is decompressed into a buffer
    /// that `take` gives for its number of bytes; `None` stands for `stored` itself.
    ///
    /// # Errors
    /// When the checksum does not match, or the compressed bytes do not yield the length.
    pub fn open(
        &self,
        stored: &[u8],
        take: impl FnOnce(usize) -> Buffer,
    ) -> Result<Option<Buffer>, Malformed> {
        let is_same = checksum(self.table, self.offset, self.codec, stored) == self.checksum;
        if !is_same && !planted!("value-checksum-skipped") {
            return Err(Malformed::new(0, "checksum of a value does not match"));
        }
        match self.codec {
            Codec::Raw => Ok(None),
            Codec::Lz4 => {
                let value = table::decompress_in(stored, take)?;
                if value.len() == self.length as usize {
                    Ok(Some(value))
                } else {
                    Err(Malformed::new(0, "a compressed value has another length than its pointer says"))
                }
            }
        }
    }
}

fn checksum(table: TableId, offset: u32, codec: Codec, stored: &[u8]) -> u32 {
    let place = Place { id: table.0, offset: offset.into() };
    place.checksum_of_pieces([stored, &[codec as u8]])
}

fn small(decoder: &mut Decoder<'_>) -> Result<u32, Malformed> {
    let start = decoder.clone();
    u32::try_from(decoder.varint()?).map_err(|_| start.malformed("number of a pointer out of range"))
}

/// The end of a value table, by which it is found without a manifest or a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueFooter {
    /// Id of the value table.
    pub table: TableId,
    /// Keyspace of its values.
    pub keyspace: KeyspaceId,
    /// Length of all before the footer, in bytes.
    pub length: u64,
}

impl ValueFooter {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = VALUE_MAGIC.to_vec();
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, self.table.0);
        put_u32(&mut out, self.keyspace.0);
        put_u64(&mut out, self.length);
        let checksum = Place { id: self.table.0, offset: 0 }.checksum(&out);
        put_u32(&mut out, checksum);
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When `bytes` are not exactly a footer.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        if decoder.bytes(VALUE_MAGIC.len())? != VALUE_MAGIC {
            return Err(Malformed::new(0, "not the footer of a value table"));
        }
        if decoder.u32()? != FORMAT_VERSION {
            return Err(Malformed::new(8, "unknown format version of a value table"));
        }
        let table = TableId(decoder.u64()?);
        let footer = Self { table, keyspace: KeyspaceId(decoder.u32()?), length: decoder.u64()? };
        let covered = decoder.offset();
        let checksum = decoder.u32()?;
        decoder.finish()?;
        let place = Place { id: table.0, offset: 0 };
        if place.checksum(&bytes[..covered]) != checksum {
            return Err(Malformed::new(covered, "checksum of a footer does not match"));
        }
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{refuses_changes, refuses_truncations, seeded};
    use proptest::prelude::*;

    fn pointer(stored: &[u8]) -> ValuePointer {
        ValuePointer::to(TableId(7), 8192, Codec::Raw, stored.len() as u32, stored)
    }

    #[test]
    fn values_of_about_whole_pages_take_pages() {
        for (length, takes) in [(1, 1), (3855, 3855), (3856, 4096), (4096, 4096), (4100, 4100), (5000, 5000)]
        {
            assert_eq!(footprint(8192, length), takes, "{length}");
            assert_eq!(footprint(8193, length), length);
        }
        for length in (65_536..100_000).step_by(7) {
            assert!(footprint(0, length).is_multiple_of(PAGE_BYTES), "{length}");
        }
    }

    #[test]
    fn every_bit_of_a_value_and_its_place_count() {
        let value = b"a value".to_vec();
        let pointer = pointer(&value);
        assert!(matches!(pointer.open(&value, Buffer::alone), Ok(None)));
        for bit in 0..value.len() * 8 {
            let mut other = value.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(pointer.open(&other, Buffer::alone).is_err(), "bit {bit}");
        }
        for other in [
            ValuePointer { table: TableId(8), ..pointer },
            ValuePointer { offset: 4096, ..pointer },
            ValuePointer { codec: Codec::Lz4, ..pointer },
        ] {
            assert!(other.open(&value, Buffer::alone).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_footer_is_read_back_and_nothing_else_is() {
        let footer = ValueFooter { table: TableId(9), keyspace: KeyspaceId(3), length: 70_000 };
        let bytes = footer.encode();
        assert_eq!(bytes.len(), VALUE_FOOTER_BYTES);
        assert_eq!(ValueFooter::decode(&bytes), Ok(footer));
        refuses_truncations(&bytes, ValueFooter::decode);
        refuses_changes(&bytes, ValueFooter::decode);
    }

    proptest! {
        #![proptest_config(seeded(200))]

        #[test]
        fn pointers_round_trip(table in 0..1u64 << 40, page in 0..1000u32, length in 1..100_000u32, saved in 0..1000u32, checksum: u32, tail: Vec<u8>) {
            let stored = length.saturating_sub(saved).max(1);
            let codec = if stored < length { Codec::Lz4 } else { Codec::Raw };
            let offset = page * PAGE_BYTES as u32;
            let pointer = ValuePointer { table: TableId(table), offset, codec, length, stored, checksum };
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            let end = bytes.len();
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(ValuePointer::decode(&bytes), Ok((pointer, &tail[..])));
            prop_assert!(ValuePointer::decode(&bytes[..end - 1]).is_err());
        }

        #[test]
        fn noise_never_panics(bytes: Vec<u8>) {
            let _ = ValuePointer::decode(&bytes);
            let _ = ValueFooter::decode(&bytes);
        }
    }
}
