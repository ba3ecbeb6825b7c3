//! The block reader: finds entries in an encoded block without decoding the others.

use super::{BLOCK_HEADER_BYTES, KEY_ENDS, KEY_ENDS_WIDE, OWN_KINDS, VALUE_ENDS, VALUE_ENDS_WIDE};
use crate::format::Malformed;
use crate::format::coding::Decoder;
use crate::types::{Buffer, KEY_BYTES_MAX, Kind, Seq, Stamp};
use std::cmp::Ordering;
use std::ops::Range;

/// A checked block, in a buffer that it may share with others. Entries are numbered from 0.
///
/// # Panics
/// Methods that take the number of an entry may panic, or return nonsense, if it is not below [`Block::len`].
#[derive(Clone, Debug)]
pub struct Block {
    buffer: Buffer,
    /// Where the block lies in the buffer.
    start: u32,
    end: u32,
    count: u32,
    prefix_end: u32,
    keys: Section,
    values: Section,
    deltas: Deltas,
    kinds: Kinds,
    /// Lowest sequence number, from which the deltas count.
    low: u64,
}

impl Block {
    /// Takes the bytes of one block.
    ///
    /// # Errors
    /// When the lengths of sections do not add up, an end lies before the one before it, or a stamp is invalid. The
    /// order of the entries is not checked: see [`check_order`](Self::check_order).
    pub fn decode(bytes: impl Into<Buffer>) -> Result<Self, Malformed> {
        let buffer = bytes.into();
        let range = 0..buffer.len();
        Self::decode_part(buffer, range)
    }

    /// Takes the block that lies in `range` of `buffer`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and when the range is not one of the buffer, or ends beyond 4 GiB.
    pub fn decode_part(buffer: Buffer, range: Range<usize>) -> Result<Self, Malformed> {
        let (Some(bytes), Ok(end)) = (buffer.get(range.clone()), u32::try_from(range.end)) else {
            return Err(Malformed::new(0, "block outside its buffer"));
        };
        let header = Header::decode(bytes)?;
        let Header { count, flags, width, prefix, keys: suffix_bytes, values, base } = header;
        let mut layout = Layout { bytes, at: BLOCK_HEADER_BYTES };
        layout.skip(prefix, 1)?;
        let prefix_end = layout.at as u32;
        let suffix_max = KEY_BYTES_MAX - prefix;
        let keys = layout.section(count, suffix_bytes, Ends::from_flags(flags, KEY_ENDS, KEY_ENDS_WIDE))?;
        if suffix_bytes > suffix_max && keys.longest(bytes, count) > suffix_max {
            return Err(Malformed::new(8, "key too long"));
        }
        let mask = !u64::MAX.checked_shl(8 * width as u32).unwrap_or(0);
        let deltas = Deltas { start: layout.at as u32, width: width as u8, mask };
        layout.skip(count, width)?;
        let kinds = if flags & OWN_KINDS == 0 {
            Kinds::All((base & 0xff) as u8)
        } else {
            Kinds::Own(layout.at as u32)
        };
        layout.skip(count, usize::from(flags & OWN_KINDS != 0))?;
        let values = layout.section(count, values, Ends::from_flags(flags, VALUE_ENDS, VALUE_ENDS_WIDE))?;
        if layout.at != bytes.len() {
            return Err(Malformed::new(layout.at, "trailing bytes"));
        }
        // Every offset and count is below the length of the block, which fits 32 bits as the end does.
        let (start, count) = (range.start as u32, count as u32);
        let block =
            Self { start, end, count, prefix_end, keys, values, deltas, kinds, low: base >> 8, buffer };
        block.check_stamps()?;
        Ok(block)
    }

    fn check_stamps(&self) -> Result<(), Malformed> {
        let out_of_range = |delta: u64| self.low.checked_add(delta).is_none_or(|seq| seq > Seq::MAX.0);
        if out_of_range(self.deltas.mask) {
            for index in 0..self.len() {
                if out_of_range(self.deltas.get(self.bytes(), index)) {
                    return Err(Malformed::new(self.deltas.start as usize, "sequence number out of range"));
                }
            }
        }
        let (start, kinds) = match &self.kinds {
            Kinds::All(kind) => (16, std::slice::from_ref(kind)),
            Kinds::Own(start) => (*start as usize, &self.bytes()[*start as usize..][..self.len()]),
        };
        match kinds.iter().position(|&kind| Kind::from_u8(kind).is_none()) {
            Some(index) => Err(Malformed::new(start + index, "unknown kind of entry")),
            None => Ok(()),
        }
    }

    /// Checks that every entry is behind its predecessor: key greater, or equal with a lower stamp.
    ///
    /// # Errors
    /// Names the first entry that is not, by the offset of its suffix.
    pub fn check_order(&self) -> Result<(), Malformed> {
        for index in 1..self.len() {
            let order = self.suffix(index - 1).cmp(self.suffix(index));
            if order.then(self.stamp(index).cmp(&self.stamp(index - 1))) != Ordering::Less {
                return Err(Malformed::new(
                    self.keys.span(self.bytes(), index).start,
                    "entries out of order",
                ));
            }
        }
        Ok(())
    }

    /// The block as it was given to [`decode`](Self::decode).
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    /// Bytes of memory that the block and its buffer occupy.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.buffer.len()
    }

    /// Value of entry `index`, in a form that outlives the block: its buffer, and the value's range in it.
    pub(crate) fn pin_value(&self, index: usize) -> (Buffer, Range<usize>) {
        let (start, span) = (self.start as usize, self.value_span(index));
        (self.buffer.clone(), start + span.start..start + span.end)
    }

    /// What a search reads: all that lies before the values.
    #[inline]
    pub(crate) fn searched(&self) -> &[u8] {
        &self.bytes()[..self.values.start as usize]
    }

    /// The buffer that the block lies in.
    #[inline]
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Number of entries, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// The prefix that all keys share.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.bytes()[BLOCK_HEADER_BYTES..self.prefix_end as usize]
    }

    /// Length of the prefix, in bytes.
    #[inline]
    pub(crate) fn prefix_len(&self) -> usize {
        self.prefix_end as usize - BLOCK_HEADER_BYTES
    }

    /// Key of entry `index` behind the prefix.
    #[must_use]
    #[inline]
    pub fn suffix(&self, index: usize) -> &[u8] {
        let bytes = self.bytes();
        &bytes[self.keys.span(bytes, index)]
    }

    /// Replaces the contents of `key` with the key of entry `index`.
    #[inline]
    pub fn key_into(&self, index: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.suffix(index));
    }

    /// Entry `index`: its key behind the prefix, its stamp, and where in the buffer its value lies.
    #[inline(always)]
    pub(crate) fn entry(&self, index: usize) -> (&[u8], Stamp, Range<usize>) {
        let (start, value) = (self.start as usize, self.value_span(index));
        (self.suffix(index), self.stamp(index), start + value.start..start + value.end)
    }

    /// Stamp of entry `index`.
    #[must_use]
    #[inline(always)]
    pub fn stamp(&self, index: usize) -> Stamp {
        let seq = Seq(self.low + self.deltas.get(self.bytes(), index));
        let kind = match self.kinds {
            Kinds::All(kind) => kind,
            Kinds::Own(start) => self.bytes()[start as usize + index],
        };
        Stamp::new(seq, Kind::from_u8(kind).expect("invariant: decode checked the kinds"))
    }

    /// Value of entry `index`.
    #[must_use]
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        &self.bytes()[self.value_span(index)]
    }

    /// Where the value of entry `index` lies in [`bytes`](Self::bytes).
    #[must_use]
    #[inline]
    pub fn value_span(&self, index: usize) -> Range<usize> {
        self.values.span(self.bytes(), index)
    }

    /// Compares entry `index` with (`key`, `stamp`) in entry order.
    #[must_use]
    pub fn compare(&self, index: usize, key: &[u8], stamp: Stamp) -> Ordering {
        match self.below_prefix(key) {
            Ok(suffix) => self.suffix(index).cmp(suffix).then_with(|| stamp.cmp(&self.stamp(index))),
            Err(order) => order.reverse(),
        }
    }

    /// The first entry at or behind (`key`, `stamp`) in entry order; [`len`](Self::len) if there is none.
    #[must_use]
    pub fn seek(&self, key: &[u8], stamp: Stamp) -> usize {
        let suffix = match self.below_prefix(key) {
            Ok(suffix) => suffix,
            Err(Ordering::Less) => return 0,
            Err(_) => return self.len(),
        };
        let head = head_of(suffix, 0, suffix.len());
        let bytes = self.bytes();
        let (mut low, mut size) = (0, self.len());
        while size > 0 {
            let half = size / 2;
            let middle = low + half;
            let span = self.keys.span(bytes, middle);
            let middle_head = head_of(bytes, span.start, span.len());
            let before = if middle_head == head {
                (&bytes[span], stamp) < (suffix, self.stamp(middle))
            } else {
                middle_head < head
            };
            // Conditional moves, not branches: the processor cannot predict which half it is.
            low = if before { middle + 1 } else { low };
            size = if before { size - half - 1 } else { half };
        }
        low
    }

    /// The rest of `key` behind the prefix, or else how `key` compares with every key that has the prefix.
    #[inline]
    fn below_prefix<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        let prefix = self.prefix();
        key.strip_prefix(prefix).ok_or_else(|| key.cmp(prefix))
    }
}

/// The first 8 bytes of the string of `length` bytes at `start`, padded with zeros, as a number that orders as they do.
///
/// Strings with different heads order as their heads; equal heads say nothing.
#[inline]
fn head_of(bytes: &[u8], start: usize, length: usize) -> u64 {
    let word = match bytes.get(start..start + 8) {
        Some(word) => word.try_into().map_or(0, u64::from_le_bytes),
        None => bytes[start..].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    let masked = if length >= 8 { word } else { word & ((1 << (8 * length)) - 1) };
    masked.swap_bytes()
}

struct Header {
    count: usize,
    flags: u8,
    width: usize,
    prefix: usize,
    /// Stride or total of the suffixes.
    keys: usize,
    /// Stride or total of the values.
    values: usize,
    base: u64,
}

impl Header {
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let count = decoder.u32()? as usize;
        // Two entries differ in suffix or sequence number, so all but one take a byte at least.
        if count == 0 || count > bytes.len() {
            return Err(Malformed::new(0, "impossible count of entries"));
        }
        let flags = decoder.u8()?;
        let narrow_without_ends = |ends, wide| flags & wide != 0 && flags & ends == 0;
        if flags >= 32
            || narrow_without_ends(KEY_ENDS, KEY_ENDS_WIDE)
            || narrow_without_ends(VALUE_ENDS, VALUE_ENDS_WIDE)
        {
            return Err(Malformed::new(4, "unknown block flags"));
        }
        let width = usize::from(decoder.u8()?);
        if !matches!(width, 0 | 1 | 2 | 4 | 8) {
            return Err(Malformed::new(5, "impossible width of sequence deltas"));
        }
        let prefix = usize::from(decoder.u16()?);
        let keys = decoder.u32()? as usize;
        let values = decoder.u32()? as usize;
        let base = decoder.u64()?;
        if flags & OWN_KINDS != 0 && base & 0xff != 0 {
            return Err(Malformed::new(16, "two kinds for one entry"));
        }
        Ok(Self { count, flags, width, prefix, keys, values, base })
    }
}

#[derive(Clone, Copy)]
enum Ends {
    None,
    Narrow,
    Wide,
}

impl Ends {
    fn from_flags(flags: u8, ends: u8, wide: u8) -> Self {
        match (flags & ends != 0, flags & wide != 0) {
            (false, _) => Self::None,
            (true, false) => Self::Narrow,
            (true, true) => Self::Wide,
        }
    }
}

/// The walk along the sections of a block.
struct Layout<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Layout<'_> {
    /// Skips `count` items of `size` bytes.
    fn skip(&mut self, count: usize, size: usize) -> Result<(), Malformed> {
        let end = count.checked_mul(size).and_then(|bytes| self.at.checked_add(bytes));
        self.at = end
            .filter(|&end| end <= self.bytes.len())
            .ok_or(Malformed::new(self.at, "section beyond the end of the block"))?;
        Ok(())
    }

    /// Skips `count` strings; `size` is their stride, or with ends their total length.
    fn section(&mut self, count: usize, size: usize, ends: Ends) -> Result<Section, Malformed> {
        let ends_start = self.at;
        let section = match ends {
            Ends::None => {
                self.skip(count, size)?;
                return Ok(Section { start: ends_start as u32, index: Index::Stride(size as u32) });
            }
            Ends::Narrow => {
                self.skip(count, 2)?;
                Section { start: self.at as u32, index: Index::Ends16(ends_start as u32) }
            }
            Ends::Wide => {
                self.skip(count, 4)?;
                Section { start: self.at as u32, index: Index::Ends32(ends_start as u32) }
            }
        };
        self.skip(1, size)?;
        let mut previous = 0;
        for index in 0..count {
            let end = section.end(self.bytes, index);
            if end < previous {
                return Err(Malformed::new(ends_start, "ends run backwards"));
            }
            previous = end;
        }
        if previous != size {
            return Err(Malformed::new(ends_start, "last end is not the end of the section"));
        }
        Ok(section)
    }
}

/// Strings one after the other.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// Offset of the first string in the block.
    start: u32,
    index: Index,
}

#[derive(Clone, Copy, Debug)]
enum Index {
    /// Length of every string.
    Stride(u32),
    /// Offset of the ends in the block, 2 bytes each.
    Ends16(u32),
    /// Offset of the ends in the block, 4 bytes each.
    Ends32(u32),
}

impl Section {
    /// Where string `index` lies in the block.
    #[inline]
    fn span(&self, bytes: &[u8], index: usize) -> Range<usize> {
        let base = self.start as usize;
        if let Index::Stride(stride) = self.index {
            let start = base + index * stride as usize;
            return start..start + stride as usize;
        }
        self.span_between_ends(bytes, index)
    }

    #[inline(never)]
    fn span_between_ends(&self, bytes: &[u8], index: usize) -> Range<usize> {
        let base = self.start as usize;
        let start = if index == 0 { 0 } else { self.end(bytes, index - 1) };
        base + start..base + self.end(bytes, index)
    }

    /// End of string `index`, from the start of the section.
    #[inline]
    fn end(&self, bytes: &[u8], index: usize) -> usize {
        match self.index {
            Index::Stride(stride) => (index + 1) * stride as usize,
            Index::Ends16(ends) => word::<2>(bytes, ends as usize + 2 * index) as usize,
            Index::Ends32(ends) => word::<4>(bytes, ends as usize + 4 * index) as usize,
        }
    }

    fn longest(&self, bytes: &[u8], count: usize) -> usize {
        match self.index {
            Index::Stride(stride) => stride as usize,
            _ => (0..count).map(|index| self.span(bytes, index).len()).max().unwrap_or(0),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kinds {
    All(u8),
    /// Offset in the block of one byte per entry.
    Own(u32),
}

#[derive(Clone, Copy, Debug)]
struct Deltas {
    start: u32,
    width: u8,
    /// Mask of the bits of a word that belong to a delta.
    mask: u64,
}

impl Deltas {
    #[inline]
    fn get(self, bytes: &[u8], index: usize) -> u64 {
        let width = usize::from(self.width);
        let at = self.start as usize + index * width;
        // Bytes behind the delta are masked out. At the end of the block there may be fewer than 8 bytes.
        match bytes.get(at..at + 8) {
            Some(word) => word.try_into().map_or(0, u64::from_le_bytes) & self.mask,
            None => number(&bytes[at..at + width]),
        }
    }
}

/// At most 8 bytes, little endian.
#[cold]
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The `N` bytes at `at`, little endian.
#[inline]
fn word<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(word)
}
