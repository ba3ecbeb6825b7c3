//! The format of a table: sealed blocks, and a footer that locates them.
//!
//! ```text
//! table:   data blocks | filter block, if any | index block | range tombstone block, if any | properties block | footer
//!     or   data blocks | partitions | index block of the partitions | range tombstone block, if any | and so on
//!          offsets are relative to the table, which is thereby free to move
//!
//! partition: filter block, if any | index block
//!
//! sealed block                                   handle
//! OFFSET SIZE FIELD                              OFFSET SIZE FIELD
//!  0     n    payload; with LZ4: raw length u32,  0     8    offset in the table
//!             then the compressed bytes           8     4    length, trailer included
//!  n     1    codec: 1 = raw, 2 = LZ4
//!  n+1   4    checksum of all before it, bound to (table id, block offset)
//!
//! footer, the last 80 bytes
//! OFFSET SIZE FIELD
//!  0     8    magic "TERRTABL"
//!  8     4    format version
//! 12     8    table id
//! 20     8    length of the data blocks together
//! 28    12    handle of the index block; zeros if there is no data block
//! 40    12    handle of the filter block; zeros if there is none
//! 52    12    handle of the range tombstone block; zeros if there is none
//! 64    12    handle of the properties block
//! 76     4    checksum of all before it, bound to the table id
//! ```
//!
//! Index and data blocks are [`block`](super::block)s, the filter block a [`filter`](super::filter), the range tombstone
//! block a list of [`tombstones`](super::tombstones), the properties block [`Properties`]. An index entry's key and stamp are the *separator* of its data block, its value the block's
//! handle, and behind it a byte 1 if the block is *single*:
//!
//! * every entry of the block is at or before (separator, stamp) in entry order;
//! * every entry of the next block is behind it.
//!
//! So the first index entry at or behind (key, stamp) names the only block that can hold the first data entry at or
//! behind (key, stamp). If that block has no such entry, the search falls between two blocks, and the entry is the
//! first one of the next block.
//!
//! **Single blocks.** A block with one entry, of a large value, is single: its separator is the entry's own key and stamp. So
//! a reader knows both without the block, and reads the value only if somebody wants it.
//!
//! **Partitions.** The index and filter of a large table are divided, so that a reader of one key needs a small part of
//! them. A partition has the index entries of consecutive data blocks and the filter of their keys. No user key is in
//! two partitions. The index block of the table has an entry for each partition instead: the key and stamp of the
//! partition's last entry, and as its value the handle of the filter block (zeros if there is none), then that of the
//! index block. By the length of its values a reader knows which of the two it has. The footer names no filter then.
//!
//! A raw block is decoded without a copy. A block is stored as LZ4 only if that saves an eighth of it.

mod properties;
mod separator;

pub use properties::Properties;
pub use separator::separator;

use super::checksum::Place;
use super::coding::{Decoder, put_u32, put_u64};
use super::{FORMAT_VERSION, Malformed};
use crate::types::{Buffer, TableId};
use std::borrow::Cow;

/// Bytes of an encoded [`BlockHandle`].
pub const HANDLE_BYTES: usize = 12;

/// Bytes that sealing adds to a raw block.
pub const TRAILER_BYTES: usize = 5;

/// Bytes of an encoded [`Footer`].
pub const FOOTER_BYTES: usize = 80;

/// First bytes of a footer.
pub const TABLE_MAGIC: [u8; 8] = *b"TERRTABL";

/// Largest payload that can be sealed, in bytes.
pub const BLOCK_BYTES_MAX: usize = u32::MAX as usize - TRAILER_BYTES;

/// LZ4 yields at most this many bytes per compressed byte.
const LZ4_RATIO_MAX: usize = 255;

/// Where a sealed block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHandle {
    /// Offset in the table, in bytes.
    pub offset: u64,
    /// Length in bytes, trailer included.
    pub length: u32,
}

impl BlockHandle {
    /// The stored form.
    #[must_use]
    pub fn encode(self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When `bytes` are not exactly [`HANDLE_BYTES`], or the block is too short or ends beyond 64 bits.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let handle = Self::read(&mut decoder)?;
        decoder.finish()?;
        handle.ok_or(Malformed::new(8, "empty block"))
    }

    /// `None` for length 0.
    fn read(decoder: &mut Decoder<'_>) -> Result<Option<Self>, Malformed> {
        let start = decoder.offset();
        let handle = Self { offset: decoder.u64()?, length: decoder.u32()? };
        if handle.length == 0 && handle.offset == 0 {
            return Ok(None);
        }
        if (handle.length as usize) <= TRAILER_BYTES
            || handle.offset.checked_add(handle.length.into()).is_none()
        {
            return Err(Malformed::new(start, "impossible block handle"));
        }
        Ok(Some(handle))
    }

    /// Offset of the first byte behind the block, in the table.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.length.into())
    }
}

/// Where a data block lies, as an index has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataHandle {
    /// The place.
    pub block: BlockHandle,
    /// Whether it has one entry, whose key and stamp are the index entry's.
    pub is_single: bool,
}

impl DataHandle {
    /// The stored form.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = self.block.encode().to_vec();
        bytes.extend(self.is_single.then_some(1));
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// As [`BlockHandle::decode`], or when what follows the handle is not a single byte 1.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes.split_at_checked(HANDLE_BYTES) {
            Some((handle, [1])) => Ok(Self { block: BlockHandle::decode(handle)?, is_single: true }),
            _ => Ok(Self { block: BlockHandle::decode(bytes)?, is_single: false }),
        }
    }
}

/// Bytes of an encoded [`PartitionHandle`].
pub const PARTITION_HANDLE_BYTES: usize = 2 * HANDLE_BYTES;

/// Where a partition lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionHandle {
    /// The filter of its keys, if the table has one.
    pub filter: Option<BlockHandle>,
    /// The index of its data blocks, which lies behind the filter.
    pub index: BlockHandle,
}

impl PartitionHandle {
    /// The stored form.
    #[must_use]
    pub fn encode(self) -> [u8; PARTITION_HANDLE_BYTES] {
        let mut bytes = [0; PARTITION_HANDLE_BYTES];
        let filter = self.filter.map_or([0; HANDLE_BYTES], BlockHandle::encode);
        bytes[..HANDLE_BYTES].copy_from_slice(&filter);
        bytes[HANDLE_BYTES..].copy_from_slice(&self.index.encode());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When `bytes` are not exactly [`PARTITION_HANDLE_BYTES`], a block is too short or ends beyond 64 bits, or the filter does
    /// not lie before the index.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let filter = BlockHandle::read(&mut decoder)?;
        let index = BlockHandle::read(&mut decoder)?;
        decoder.finish()?;
        let index = index.ok_or(Malformed::new(HANDLE_BYTES, "partition without an index"))?;
        if filter.is_some_and(|filter| filter.end() > index.offset) {
            return Err(Malformed::new(0, "a partition's filter is not before its index"));
        }
        Ok(Self { filter, index })
    }

    /// Offset of its first byte, in the table.
    #[must_use]
    pub fn start(self) -> u64 {
        self.filter.unwrap_or(self.index).offset
    }
}

/// How the payload of a sealed block is stored. Never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Codec {
    /// As it is.
    Raw = 1,
    /// LZ4 block format behind the raw length.
    Lz4 = 2,
}

/// Appends `payload`, sealed for `place` (table id, offset of the block in the table), to `out`. Returns the stored
/// length.
///
/// With [`Codec::Lz4`] the payload is stored raw all the same unless compression saves an eighth of it.
///
/// # Panics
/// When the payload exceeds [`BLOCK_BYTES_MAX`].
pub fn seal_block(place: Place, codec: Codec, payload: &[u8], out: &mut Vec<u8>) -> u32 {
    assert!(payload.len() <= BLOCK_BYTES_MAX, "invariant: blocks stay below 4 GiB");
    let start = out.len();
    let codec = match codec {
        Codec::Lz4 if compress(payload, out) => Codec::Lz4,
        _ => {
            out.extend_from_slice(payload);
            Codec::Raw
        }
    };
    out.push(codec as u8);
    let checksum = place.checksum(&out[start..]);
    put_u32(out, checksum);
    (out.len() - start) as u32
}

/// The trailer of a sealed block whose payload lies in `pieces`, stored by `codec`. The caller writes the payload
/// before it.
#[must_use]
pub fn trailer_of_pieces(place: Place, codec: Codec, pieces: [&[u8]; 2]) -> [u8; TRAILER_BYTES] {
    let [head, rest] = pieces;
    let checksum = place.checksum_of_pieces([head, rest, &[codec as u8]]);
    let [a, b, c, d] = checksum.to_le_bytes();
    [codec as u8, a, b, c, d]
}

/// A large payload in `pieces`, compressed: a buffer, and the length of the stored form in it. `None` if compression
/// saves too little.
#[must_use]
pub fn compress_pieces([head, rest]: [&[u8]; 2]) -> Option<(Buffer, usize)> {
    let length = head.len() + rest.len();
    let mut payload = Buffer::alone(length);
    let bytes = payload.get_mut()?;
    bytes[..head.len()].copy_from_slice(head);
    bytes[head.len()..].copy_from_slice(rest);
    let mut out = Buffer::alone(size_of::<u32>() + lz4_flex::block::get_maximum_output_size(length));
    let (raw_length, body) = out.get_mut()?.split_first_chunk_mut()?;
    *raw_length = (length as u32).to_le_bytes();
    let stored = size_of::<u32>() + lz4_flex::block::compress_into(&payload, body).ok()?;
    is_worthwhile(stored, length).then_some((out, stored))
}

/// Whether compression of `length` bytes to `stored` saves enough to pay for the decompression at each read.
fn is_worthwhile(stored: usize, length: usize) -> bool {
    stored <= length - length / 8
}

/// Appends the raw length and compressed bytes; appends nothing and returns false if that saves too little.
fn compress(payload: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    put_u32(out, payload.len() as u32);
    let body = out.len();
    out.resize(body + lz4_flex::block::get_maximum_output_size(payload.len()), 0);
    let length = lz4_flex::block::compress_into(payload, &mut out[body..]).unwrap_or(payload.len());
    out.truncate(body + length);
    let worthwhile = is_worthwhile(out.len() - start, payload.len());
    if !worthwhile {
        out.truncate(start);
    }
    worthwhile
}

/// The payload of the sealed block `stored`, which was read from `place`. A raw payload is the start of `stored`.
///
/// # Errors
/// When the checksum does not match the bytes and the place, or the compressed bytes do not have the raw length that
/// they state.
pub fn open_block(place: Place, stored: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let covered = check_block(place, stored)?;
    let (&codec, payload) = covered.split_last().ok_or(Malformed::new(0, "truncated block"))?;
    match codec {
        codec if codec == Codec::Raw as u8 => Ok(Cow::Borrowed(payload)),
        codec if codec == Codec::Lz4 as u8 => decompress(payload).map(Cow::Owned),
        _ => Err(Malformed::new(payload.len(), "unknown block codec")),
    }
}

/// What the checksum of the sealed block `stored` covers: payload and codec, not decompressed.
///
/// # Errors
/// When the checksum does not match the bytes and the place that they were read from.
pub fn check_block(place: Place, stored: &[u8]) -> Result<&[u8], Malformed> {
    let (covered, checksum) = stored.split_last_chunk().ok_or(Malformed::new(0, "truncated block"))?;
    if !planted!("block-checksum-skipped") && u32::from_le_bytes(*checksum) != place.checksum(covered) {
        return Err(Malformed::new(covered.len(), "block checksum mismatch"));
    }
    Ok(covered)
}

/// The payload of a checked block.
#[derive(Debug)]
pub enum Opened<'a> {
    /// Its payload, as it was stored.
    Raw(&'a [u8]),
    /// Its payload, decompressed.
    Decompressed(Buffer),
}

/// As [`open_block`], but a compressed payload is decompressed into a buffer that `take` gives for its number of
/// bytes.
///
/// # Errors
/// As that.
pub fn open_block_in<'a>(
    place: Place,
    stored: &'a [u8],
    take: impl FnOnce(usize) -> Buffer,
) -> Result<Opened<'a>, Malformed> {
    let covered = check_block(place, stored)?;
    let (&codec, payload) = covered.split_last().ok_or(Malformed::new(0, "truncated block"))?;
    match codec {
        codec if codec == Codec::Raw as u8 => Ok(Opened::Raw(payload)),
        codec if codec == Codec::Lz4 as u8 => Ok(Opened::Decompressed(decompress_in(payload, take)?)),
        _ => Err(Malformed::new(payload.len(), "unknown block codec")),
    }
}

/// The raw length, and the compressed bytes.
fn split_compressed(stored: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    let mut decoder = Decoder::new(stored);
    let raw_length = decoder.u32()? as usize;
    let compressed = decoder.bytes(decoder.remaining())?;
    if raw_length / LZ4_RATIO_MAX > compressed.len() {
        return Err(Malformed::new(0, "raw length beyond what LZ4 can yield"));
    }
    Ok((raw_length, compressed))
}

/// What the compressed bytes `stored` yield, with their raw length before them, in a buffer that `take` gives for its number
/// of bytes.
pub(super) fn decompress_in(stored: &[u8], take: impl FnOnce(usize) -> Buffer) -> Result<Buffer, Malformed> {
    let (length, compressed) = split_compressed(stored)?;
    let mut buffer = take(length);
    decompress_to(compressed, buffer.get_mut().unwrap_or_default())?;
    Ok(buffer)
}

fn decompress(stored: &[u8]) -> Result<Vec<u8>, Malformed> {
    let (raw_length, compressed) = split_compressed(stored)?;
    let mut payload = vec![0; raw_length];
    decompress_to(compressed, &mut payload)?;
    Ok(payload)
}

/// Fills `payload`.
fn decompress_to(compressed: &[u8], payload: &mut [u8]) -> Result<(), Malformed> {
    match lz4_flex::block::decompress_into(compressed, payload) {
        Ok(length) if length == payload.len() => Ok(()),
        _ => Err(Malformed::new(4, "LZ4 bytes do not yield the raw length")),
    }
}

/// The end of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Footer {
    /// Id of the table.
    pub table: TableId,
    /// Length of the data blocks together, in bytes; they begin at offset 0.
    pub data_bytes: u64,
    /// The index block; a table of range tombstones alone has none.
    pub index: Option<BlockHandle>,
    /// The filter block, if the table has one.
    pub filter: Option<BlockHandle>,
    /// The range tombstone block, if the table has one.
    pub tombstones: Option<BlockHandle>,
    /// The properties block.
    pub properties: BlockHandle,
}

impl Footer {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&TABLE_MAGIC);
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, self.table.0);
        put_u64(&mut out, self.data_bytes);
        for optional in [self.index, self.filter, self.tombstones] {
            out.extend_from_slice(&optional.map_or([0; HANDLE_BYTES], BlockHandle::encode));
        }
        out.extend_from_slice(&self.properties.encode());
        let checksum = self.place().checksum(&out);
        put_u32(&mut out, checksum);
        out.try_into().expect("invariant: the fields add up to FOOTER_BYTES")
    }

    /// Reads the stored form. The caller compares [`table`](Self::table) with the table that it meant to open, and
    /// the handles with the table's length.
    ///
    /// # Errors
    /// When the bytes are not a footer of this format version, or their checksum does not match.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        if decoder.bytes(8)? != TABLE_MAGIC {
            return Err(Malformed::new(0, "not the footer of a table"));
        }
        if decoder.u32()? != FORMAT_VERSION {
            return Err(Malformed::new(8, "unknown format version of a table"));
        }
        let table = TableId(decoder.u64()?);
        let data_bytes = decoder.u64()?;
        let index = BlockHandle::read(&mut decoder)?;
        let filter = BlockHandle::read(&mut decoder)?;
        let tombstones = BlockHandle::read(&mut decoder)?;
        let properties = BlockHandle::read(&mut decoder)?;
        let covered = decoder.offset();
        let checksum = decoder.u32()?;
        decoder.finish()?;
        if index.is_none() && data_bytes > 0 {
            return Err(Malformed::new(28, "table without an index"));
        }
        let properties = properties.ok_or(Malformed::new(64, "table without properties"))?;
        let footer = Self { table, data_bytes, index, filter, tombstones, properties };
        if checksum != footer.place().checksum(&bytes[..covered]) {
            return Err(Malformed::new(covered, "footer checksum mismatch"));
        }
        Ok(footer)
    }

    /// No block lies at this offset.
    fn place(&self) -> Place {
        Place { id: self.table.0, offset: u64::MAX }
    }
}

#[cfg(test)]
mod tests;
