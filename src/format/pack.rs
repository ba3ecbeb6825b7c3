//! The directory at the end of a pack, from which a lost manifest can be rebuilt.
//!
//! ```text
//! pack:    tables, each at a multiple of 4096 | directory, at a multiple of 4096
//!
//! directory
//! OFFSET SIZE  FIELD
//!  0     4     format version
//!  4     8     pack id
//! 12     4     count of tables n
//! 16     28*n  tables, in the order of their offsets:
//!        8     table id
//!        4     keyspace
//!        8     offset in the pack
//!        8     length
//!  .     16    trailer, the last bytes of the pack:
//!        4     checksum of all before it, bound to the pack id
//!        4     length of the directory, trailer included
//!        8     magic "TERRPACK"
//! ```
//!
//! The checksum does not cover the trailer's length and magic. These must agree with the bytes that were read.

use super::checksum::Place;
use super::coding::{Decoder, put_u32, put_u64};
use super::{FORMAT_VERSION, Malformed};
use crate::types::{KeyspaceId, PAGE_BYTES, PackId, TableId};

/// The last bytes of a pack.
pub const PACK_MAGIC: [u8; 8] = *b"TERRPACK";

/// Bytes of the trailer, with which a directory ends.
pub const PACK_TRAILER_BYTES: usize = 16;

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 28;

/// The tables of a pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackDirectory {
    /// The pack.
    pub pack: PackId,
    /// Its tables, in the order of their offsets.
    pub tables: Vec<PackEntry>,
}

/// Where a table lies in a pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackEntry {
    /// The table.
    pub table: TableId,
    /// Keyspace that it belongs to.
    pub keyspace: KeyspaceId,
    /// Offset in the pack, a multiple of [`PAGE_BYTES`].
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

impl PackDirectory {
    /// The most that the directory of a pack of `pack_bytes` can take: no table is shorter than a page.
    #[must_use]
    pub fn bytes_max(pack_bytes: u64) -> u64 {
        (HEADER_BYTES + PACK_TRAILER_BYTES) as u64 + pack_bytes / PAGE_BYTES * ENTRY_BYTES as u64
    }

    /// Bytes that [`encode`](Self::encode) yields.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        HEADER_BYTES + self.tables.len() * ENTRY_BYTES + PACK_TRAILER_BYTES
    }

    /// The stored form, to be appended at a multiple of [`PAGE_BYTES`] as the end of the pack.
    ///
    /// # Panics
    /// When there are so many tables that the directory would reach 4 GiB.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let length =
            u32::try_from(self.encoded_bytes()).expect("invariant: a pack directory stays below 4 GiB");
        let mut out = Vec::with_capacity(self.encoded_bytes());
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, self.pack.0);
        put_u32(&mut out, self.tables.len() as u32);
        for entry in &self.tables {
            put_u64(&mut out, entry.table.0);
            put_u32(&mut out, entry.keyspace.0);
            put_u64(&mut out, entry.offset);
            put_u64(&mut out, entry.length);
        }
        let checksum = place(self.pack).checksum(&out);
        put_u32(&mut out, checksum);
        put_u32(&mut out, length);
        out.extend_from_slice(&PACK_MAGIC);
        out
    }

    /// Length of the directory, of which `bytes` are the last [`PACK_TRAILER_BYTES`].
    ///
    /// # Errors
    /// When they are no trailer.
    pub fn decode_trailer(bytes: &[u8]) -> Result<usize, Malformed> {
        let mut decoder = Decoder::new(bytes);
        decoder.u32()?;
        let length = decoder.u32()? as usize;
        if decoder.bytes(8)? != PACK_MAGIC {
            return Err(Malformed::new(8, "not the end of a pack"));
        }
        decoder.finish()?;
        match length.checked_sub(HEADER_BYTES + PACK_TRAILER_BYTES) {
            Some(entries) if entries % ENTRY_BYTES == 0 => Ok(length),
            _ => Err(Malformed::new(4, "impossible length of a pack directory")),
        }
    }

    /// Reads the stored form, trailer included. The caller compares [`pack`](Self::pack) with the pack that it meant.
    ///
    /// # Errors
    /// When the bytes are not a directory of this format version, their checksum does not match, or tables overlap or
    /// are not aligned.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let covered =
            bytes.len().checked_sub(PACK_TRAILER_BYTES).ok_or(Malformed::new(0, "truncated directory"))?;
        let (body, trailer) = bytes.split_at(covered);
        let length = Self::decode_trailer(trailer)
            .map_err(|e| Malformed { offset: e.offset + covered as u64, ..e })?;
        if length != bytes.len() {
            return Err(Malformed::new(covered + 4, "impossible length of a pack directory"));
        }
        let mut decoder = Decoder::new(body);
        if decoder.u32()? != FORMAT_VERSION {
            return Err(Malformed::new(0, "unknown format version of a pack"));
        }
        let pack = PackId(decoder.u64()?);
        if Decoder::new(trailer).u32()? != place(pack).checksum(body) {
            return Err(Malformed::new(covered, "pack directory checksum mismatch"));
        }
        if decoder.u32()? as usize != decoder.remaining() / ENTRY_BYTES {
            return Err(Malformed::new(12, "impossible count of tables"));
        }
        let mut tables = Vec::with_capacity(decoder.remaining() / ENTRY_BYTES);
        let mut end = 0;
        while !decoder.is_empty() {
            let start = decoder.offset();
            let entry = PackEntry {
                table: TableId(decoder.u64()?),
                keyspace: KeyspaceId(decoder.u32()?),
                offset: decoder.u64()?,
                length: decoder.u64()?,
            };
            if entry.offset < end || !entry.offset.is_multiple_of(PAGE_BYTES) || entry.length == 0 {
                return Err(Malformed::new(start, "table out of place in its pack"));
            }
            end = entry
                .offset
                .checked_add(entry.length)
                .ok_or(Malformed::new(start, "table beyond 64 bits"))?;
            tables.push(entry);
        }
        Ok(Self { pack, tables })
    }
}

/// The place to which a directory's checksum is bound: none of a table's blocks has it, even if the table's id equals
/// the pack's.
fn place(pack: PackId) -> Place {
    Place { id: pack.0, offset: u64::MAX - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{refuses_changes, refuses_truncations, seeded};
    use proptest::prelude::*;

    fn directory() -> PackDirectory {
        let entry = |table, keyspace, offset, length| PackEntry {
            table: TableId(table),
            keyspace: KeyspaceId(keyspace),
            offset,
            length,
        };
        PackDirectory { pack: PackId(12), tables: vec![entry(40, 0, 0, 5000), entry(41, 9, 8192, 1 << 20)] }
    }

    proptest! {
        #![proptest_config(seeded(100))]

        #[test]
        fn directories_round_trip(pack: u64, tables: Vec<(u64, u32, u32, u32)>) {
            let mut end = 0u64;
            let tables = tables.into_iter().map(|(table, keyspace, gap, length)| {
                let offset = (end + u64::from(gap)).next_multiple_of(PAGE_BYTES);
                let length = u64::from(length) + 1;
                end = offset + length;
                PackEntry { table: TableId(table), keyspace: KeyspaceId(keyspace), offset, length }
            });
            let directory = PackDirectory { pack: PackId(pack), tables: tables.collect() };
            let bytes = directory.encode();
            prop_assert_eq!(bytes.len(), directory.encoded_bytes());
            let trailer = &bytes[bytes.len() - PACK_TRAILER_BYTES..];
            prop_assert_eq!(PackDirectory::decode_trailer(trailer), Ok(bytes.len()));
            prop_assert_eq!(PackDirectory::decode(&bytes), Ok(directory));
        }

        #[test]
        fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(PackDirectory::decode(&bytes).is_err());
            prop_assert!(PackDirectory::decode_trailer(&bytes).is_err());
        }
    }

    #[test]
    fn truncations_and_changes_are_refused() {
        refuses_truncations(&directory().encode(), PackDirectory::decode);
        refuses_changes(&directory().encode(), PackDirectory::decode);
    }

    #[test]
    fn misplaced_tables_are_refused() {
        for (offset, length) in [(4096, 5000), (8193, 10), (8192, 0), (1 << 63, u64::MAX)] {
            let mut directory = directory();
            directory.tables[1].offset = offset;
            directory.tables[1].length = length;
            assert!(PackDirectory::decode(&directory.encode()).is_err(), "{offset} {length}");
        }
    }
}
