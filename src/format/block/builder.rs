//! The block builder: collects entries, then writes them section by section.

use super::{
    BLOCK_HEADER_BYTES, KEY_ENDS, KEY_ENDS_WIDE, OWN_KINDS, VALUE_ENDS, VALUE_ENDS_WIDE, VALUE_STRIDE_AT,
};
use crate::format::coding::{put_u16, put_u32, put_u64};
use crate::types::{KEY_BYTES_MAX, Seq, Stamp};

/// Builds blocks one after the other in the same buffers.
///
/// The caller finishes a block while all its keys together, and all its values together, are below 4 GiB. (One entry
/// of the largest size always fits.)
#[derive(Debug, Default)]
pub struct BlockBuilder {
    keys: Column,
    values: Column,
    stamps: Vec<Stamp>,
    span: StampSpan,
}

impl BlockBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry behind the last one: its key is greater, or equal with a lower stamp.
    ///
    /// # Panics
    /// When the key is longer than [`KEY_BYTES_MAX`] or the block would reach 4 GiB.
    pub fn add(&mut self, key: &[u8], stamp: Stamp, value: &[u8]) {
        assert!(key.len() <= KEY_BYTES_MAX, "invariant: keys are at most KEY_BYTES_MAX long");
        debug_assert!(
            self.is_empty() || (self.last_key(), stamp) < (key, self.last_stamp()),
            "entries come in order"
        );
        self.keys.push(key);
        self.values.push(value);
        self.stamps.push(stamp);
        self.span = self.span.with(stamp);
    }

    /// Whether the block has no entry yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Key of the first entry; empty if there is none.
    #[must_use]
    pub fn first_key(&self) -> &[u8] {
        self.keys.first()
    }

    /// Key of the last entry; empty if there is none.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        self.keys.last()
    }

    /// Stamp of the last entry; [`Stamp::MAX`] if there is none.
    #[must_use]
    pub fn last_stamp(&self) -> Stamp {
        self.stamps.last().copied().unwrap_or(Stamp::MAX)
    }

    /// Upper bound of the encoded bytes if an entry of this key and value length were added, whatever its stamp.
    ///
    /// Counts 9 bytes of stamp for each entry; [`size_with_stamp`](Self::size_with_stamp) is exact.
    #[must_use]
    pub fn size_with(&self, key: &[u8], value_len: usize) -> usize {
        self.size(key, value_len, 8 + 1)
    }

    /// Encoded bytes if this entry were added.
    #[must_use]
    pub fn size_with_stamp(&self, key: &[u8], stamp: Stamp, value_len: usize) -> usize {
        let span = self.span.with(stamp);
        self.size(key, value_len, span.delta_width() + usize::from(span.kind.is_none()))
    }

    fn size(&self, key: &[u8], value_len: usize, stamp_bytes: usize) -> usize {
        let prefix = if self.is_empty() { key.len() } else { common_prefix(self.first_key(), key) };
        let count = self.len() + 1;
        BLOCK_HEADER_BYTES
            + prefix
            + self.keys.size_with(key.len(), prefix)
            + count * stamp_bytes
            + self.values.size_with(value_len, 0)
    }

    /// Appends the block to `out` and starts the next one. Appends nothing if there is no entry.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let prefix = common_prefix(self.keys.first(), self.keys.last());
        let keys = Shape::of(&self.keys, prefix);
        let values = Shape::of(&self.values, 0);
        let width = self.span.delta_width();
        let kinds = if self.span.kind.is_none() { OWN_KINDS } else { 0 };
        let low = self.span.low;

        put_u32(out, self.len() as u32);
        out.push(keys.flags(KEY_ENDS, KEY_ENDS_WIDE) | values.flags(VALUE_ENDS, VALUE_ENDS_WIDE) | kinds);
        out.push(width as u8);
        put_u16(out, prefix as u16);
        put_u32(out, keys.size());
        put_u32(out, values.size());
        put_u64(out, low.0 << 8 | u64::from(self.span.kind.unwrap_or(0)));
        out.extend_from_slice(&self.keys.first()[..prefix]);
        self.keys.write(keys, prefix, out);
        write_deltas(&self.stamps, low, width, out);
        if kinds != 0 {
            out.extend(self.stamps.iter().map(|stamp| stamp.kind() as u8));
        }
        self.values.write(values, 0, out);
        self.clear();
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.stamps.clear();
        self.span = StampSpan::default();
    }
}

/// Appends a block of one entry without its value; the caller appends the value, of `value_len` bytes.
///
/// # Panics
/// As [`BlockBuilder::add`].
pub fn put_head_of_single(out: &mut Vec<u8>, key: &[u8], stamp: Stamp, value_len: usize) {
    let mut block = BlockBuilder::new();
    block.add(key, stamp, &[]);
    let start = out.len();
    block.finish(out);
    let stride = u32::try_from(value_len).expect("invariant: a block stays below 4 GiB");
    out[start + VALUE_STRIDE_AT..][..4].copy_from_slice(&stride.to_le_bytes());
}

fn write_deltas(stamps: &[Stamp], low: Seq, width: usize, out: &mut Vec<u8>) {
    let deltas = stamps.iter().map(|stamp| stamp.seq().0 - low.0);
    match width {
        0 => {}
        1 => out.extend(deltas.map(|delta| delta as u8)),
        2 => deltas.for_each(|delta| put_u16(out, delta as u16)),
        4 => deltas.for_each(|delta| put_u32(out, delta as u32)),
        _ => deltas.for_each(|delta| put_u64(out, delta)),
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let start = 8 * words.take_while(|(a, b)| a == b).count();
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}

/// The lowest and highest sequence number of a block's stamps, and their common kind.
#[derive(Clone, Copy, Debug)]
struct StampSpan {
    low: Seq,
    high: Seq,
    /// Kind of all entries, `None` if they differ; 0 while there is no entry.
    kind: Option<u8>,
}

impl Default for StampSpan {
    fn default() -> Self {
        Self { low: Seq::MAX, high: Seq::ZERO, kind: Some(0) }
    }
}

impl StampSpan {
    fn with(self, stamp: Stamp) -> Self {
        let own = Some(stamp.kind() as u8);
        let kind = if self.kind == Some(0) || self.kind == own { own } else { None };
        Self { low: self.low.min(stamp.seq()), high: self.high.max(stamp.seq()), kind }
    }

    fn delta_width(self) -> usize {
        match self.high.0 - self.low.0 {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        }
    }
}

/// Byte strings of one section, one after the other.
#[derive(Debug, Default)]
struct Column {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Whether all strings have the length of the first.
    uneven: bool,
}

impl Column {
    fn push(&mut self, item: &[u8]) {
        self.uneven |= !self.ends.is_empty() && item.len() != self.first().len();
        self.bytes.extend_from_slice(item);
        self.ends.push(u32::try_from(self.bytes.len()).expect("invariant: a block stays below 4 GiB"));
    }

    fn first(&self) -> &[u8] {
        self.ends.first().map_or(&[], |&end| &self.bytes[..end as usize])
    }

    fn last(&self) -> &[u8] {
        let start = self.ends.len().checked_sub(2).map_or(0, |index| self.ends[index] as usize);
        &self.bytes[start..]
    }

    /// Bytes of the section, ends included, with one more string and without the first `prefix` bytes of each.
    fn size_with(&self, length: usize, prefix: usize) -> usize {
        let count = self.ends.len() + 1;
        let bytes = self.bytes.len() + length - count * prefix;
        let even = !self.uneven && (count == 1 || length == self.first().len());
        bytes + if even { 0 } else { count * end_width(bytes) }
    }

    /// Appends the section without the first `prefix` bytes of each string.
    fn write(&self, shape: Shape, prefix: usize, out: &mut Vec<u8>) {
        if let Shape::Ends { width, .. } = shape {
            for (index, &end) in self.ends.iter().enumerate() {
                let end = end - ((index + 1) * prefix) as u32;
                out.extend_from_slice(&end.to_le_bytes()[..width]);
            }
        }
        if prefix == 0 {
            out.extend_from_slice(&self.bytes);
            return;
        }
        let mut start = 0;
        for &end in &self.ends {
            out.extend_from_slice(&self.bytes[start + prefix..end as usize]);
            start = end as usize;
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.uneven = false;
    }
}

fn end_width(section_bytes: usize) -> usize {
    if section_bytes <= usize::from(u16::MAX) { 2 } else { 4 }
}

/// How the strings of a section are located: by a stride, or by ends.
#[derive(Clone, Copy)]
enum Shape {
    Stride(u32),
    Ends { bytes: u32, width: usize },
}

impl Shape {
    fn of(column: &Column, prefix: usize) -> Self {
        if !column.uneven {
            return Self::Stride((column.first().len() - prefix) as u32);
        }
        let bytes = column.bytes.len() - column.ends.len() * prefix;
        Self::Ends { bytes: bytes as u32, width: end_width(bytes) }
    }

    fn size(self) -> u32 {
        match self {
            Self::Stride(bytes) | Self::Ends { bytes, .. } => bytes,
        }
    }

    fn flags(self, ends: u8, wide: u8) -> u8 {
        match self {
            Self::Stride(_) => 0,
            Self::Ends { width: 2, .. } => ends,
            Self::Ends { .. } => ends | wide,
        }
    }
}
