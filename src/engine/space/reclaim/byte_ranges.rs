//! A set of bytes of a file, as disjoint byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::types::PAGE_BYTES;

/// Disjoint byte ranges. Ranges that touch are joined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ByteRanges {
    /// The end of each range, by its start.
    ends: BTreeMap<u64, u64>,
    bytes: u64,
    /// Bytes in ranges of 1, 2, 4, 8, and 16 pages and more.
    classes: [u64; CLASSES],
}

/// Each class of ranges is twice as long as the one before.
const CLASSES: usize = 5;

impl ByteRanges {
    /// A shorter range is not worth a hole, which costs a system call, and one more extent for the file system to
    /// keep. (BoLT's code punches every dead table.) In packs of values, what is worth one is measured.
    pub(super) const LARGE_BYTES: u64 = 64 << 10;

    /// Bytes of all byte ranges.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of those that have at least `least` bytes, a power of two from a page up to [`ByteRanges::LARGE_BYTES`].
    pub(super) fn bytes_from(&self, least: u64) -> u64 {
        self.classes[class_of(least)..].iter().sum()
    }

    /// Number of byte ranges.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The byte ranges, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// Adds the bytes of `added`.
    pub(super) fn insert(&mut self, added: &Range<u64>) {
        if added.is_empty() {
            return;
        }
        let mut joined = added.clone();
        for byte_range in self.meeting(added.start..=added.end) {
            self.take(&byte_range);
            joined = joined.start.min(byte_range.start)..joined.end.max(byte_range.end);
        }
        self.put(joined);
    }

    /// Takes the bytes of `removed` out.
    pub(super) fn remove(&mut self, removed: &Range<u64>) {
        if removed.is_empty() {
            return;
        }
        for byte_range in self.meeting(removed.start..=removed.end) {
            self.take(&byte_range);
            self.put(byte_range.start..byte_range.end.min(removed.start));
            self.put(byte_range.start.max(removed.end)..byte_range.end);
        }
    }

    /// The byte ranges that have a byte of `range` or touch it.
    fn meeting(&self, range: std::ops::RangeInclusive<u64>) -> Vec<Range<u64>> {
        let before = self.ends.range(..=*range.end()).rev();
        before.take_while(|(_, end)| **end >= *range.start()).map(|(&start, &end)| start..end).collect()
    }

    fn take(&mut self, byte_range: &Range<u64>) {
        self.ends.remove(&byte_range.start);
        self.bytes -= byte_range.end - byte_range.start;
        self.classes[class_of(byte_range.end - byte_range.start)] -= byte_range.end - byte_range.start;
    }

    fn put(&mut self, byte_range: Range<u64>) {
        if !byte_range.is_empty() {
            self.ends.insert(byte_range.start, byte_range.end);
            self.bytes += byte_range.end - byte_range.start;
            self.classes[class_of(byte_range.end - byte_range.start)] += byte_range.end - byte_range.start;
        }
    }
}

/// The class of a range of so many bytes.
fn class_of(bytes: u64) -> usize {
    ((bytes / PAGE_BYTES).checked_ilog2().unwrap_or(0) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_a_set_of_bytes() {
        let mut state = 7u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        // Of units of 32 KiB, so that some are large.
        let unit = 32 << 10;
        let (mut set, mut model) = (ByteRanges::default(), [false; 64]);
        for step in 0..4000 {
            let (start, length, adds) = (below(64), below(9), below(2) == 0);
            let end = (start + length).min(64);
            let range = start * unit..end * unit;
            if adds {
                set.insert(&range)
            } else {
                set.remove(&range)
            }
            model[start as usize..end as usize].fill(adds);

            let runs: Vec<&[bool]> = model.chunk_by(|a, b| a == b).filter(|run| run[0]).collect();
            let found: Vec<u64> =
                set.iter().map(|byte_range| (byte_range.end - byte_range.start) / unit).collect();
            assert_eq!(found, runs.iter().map(|run| run.len() as u64).collect::<Vec<_>>(), "step {step}");
            assert!(set.iter().all(|byte_range| model[(byte_range.start / unit) as usize]));
            assert_eq!((set.len(), set.bytes()), (found.len(), found.iter().sum::<u64>() * unit));
            let large = found.iter().filter(|units| **units >= 2).sum::<u64>() * unit;
            assert_eq!(set.bytes_from(ByteRanges::LARGE_BYTES), large);
        }
    }
}
