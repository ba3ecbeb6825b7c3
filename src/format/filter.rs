//! The Bloom filter of a table, blocked by cache lines: one cache line answers for a key, or for a prefix of keys.
//!
//! ```text
//! OFFSET SIZE  FIELD
//!  0     64*m  lines, m at least 1; bit b of a line is bit b % 8 of byte b / 8
//!  64*m  1     probes k per key, 1 to 24
//!  +1    3     rule by which the prefixes of the keys were added as well, see [`prefix`]
//! ```
//!
//! A prefix is added like a key of the same bytes. The absence of a prefix means something only to a reader that asks
//! by the same rule.
//!
//! The upper half of a key's hash chooses the line (multiply and shift, so that m need not be a power of two), the
//! lower half the bits: each probe multiplies it by the golden ratio and takes the 9 highest bits. A blocked filter
//! is less precise than a plain Bloom filter, the more so with more probes. 0.6 probes for each bit per key suit it
//! best: 6 probes at 10 bits per key.

use super::Malformed;
use super::coding::Decoder;
use super::prefix::{self, PREFIX_RULE_BYTES};
use crate::types::{Prefix, prefetch};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

const PROBES_MAX: u8 = 24;

/// Hash of a user key for filters: XXH3-64.
#[must_use]
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A prefix to look for in filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixProbe {
    rule: Prefix,
    hash: u64,
}

impl PrefixProbe {
    /// A probe for `prefix`, which keys have by `rule`.
    #[must_use]
    pub fn new(rule: Prefix, prefix: &[u8]) -> Self {
        Self { rule, hash: hash(prefix) }
    }
}

/// Builds filters one after the other in the same buffer.
#[derive(Debug)]
pub struct FilterBuilder {
    rule: Option<Prefix>,
    /// Prefix of the last key that had one; empty at first.
    last_prefix: Vec<u8>,
    hashes: Vec<u64>,
}

/// A place between two keys of a [`FilterBuilder`], at which a filter may begin.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FilterMark {
    /// Keys and prefixes before it.
    len: usize,
    /// Hash of the last prefix before it. Keys behind may have the same.
    prefix: Option<u64>,
}

impl FilterBuilder {
    /// A builder without keys, which also adds their prefixes by `rule`.
    #[must_use]
    pub fn new(rule: Option<Prefix>) -> Self {
        Self { rule, last_prefix: Vec::new(), hashes: Vec::new() }
    }

    /// Adds a key, and its prefix. A key or prefix equal to the previous one is left out, so keys are best added in
    /// order.
    #[inline]
    pub fn add(&mut self, key: &[u8]) {
        if let Some(rule) = self.rule {
            self.add_prefix(rule, key);
        }
        self.push(hash(key));
    }

    fn add_prefix(&mut self, rule: Prefix, key: &[u8]) {
        // A key that begins with the last prefix has the same prefix.
        let is_known = planted!("prefix-missing-from-the-filter") || key.starts_with(&self.last_prefix);
        if !self.last_prefix.is_empty() && is_known {
            return;
        }
        if let Some(prefix) = rule.of(key) {
            self.push(hash(prefix));
            self.last_prefix.clear();
            self.last_prefix.extend_from_slice(prefix);
        }
    }

    fn push(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Number of keys and prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no key yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The place behind the last key.
    #[must_use]
    pub fn mark(&self) -> FilterMark {
        let prefix = (!self.last_prefix.is_empty()).then(|| hash(&self.last_prefix));
        FilterMark { len: self.hashes.len(), prefix }
    }

    /// Appends a filter of about `bits_per_key` bits (at least 1) for each key and prefix to `out`, and starts the next
    /// one.
    pub fn finish(&mut self, bits_per_key: u8, out: &mut Vec<u8>) {
        self.finish_part([FilterMark::default(), self.mark()], bits_per_key, out);
        self.last_prefix.clear();
        self.hashes.clear();
    }

    /// Appends a filter of the keys between two marks to `out`, and their prefixes.
    pub fn finish_part(&self, [from, to]: [FilterMark; 2], bits_per_key: u8, out: &mut Vec<u8>) {
        let part = self.hashes.get(from.len..to.len).unwrap_or_default();
        let hashes = || from.prefix.iter().chain(part);
        let bits_per_key = bits_per_key.max(1);
        let probes = ((u16::from(bits_per_key) * 6 + 5) / 10).clamp(1, PROBES_MAX.into()) as u8;
        let bits = hashes().count() * usize::from(bits_per_key);
        let lines = bits.div_ceil(8 * LINE_BYTES).max(1);
        let start = out.len();
        out.resize(start + lines * LINE_BYTES, 0);
        for &hash in hashes() {
            let line = start + line_of(hash, lines) * LINE_BYTES;
            let line = &mut out[line..line + LINE_BYTES];
            for bit in Probes::new(hash).take(probes.into()) {
                line[bit / 8] |= 1 << (bit % 8);
            }
        }
        out.push(probes);
        out.extend(prefix::encode(self.rule));
    }
}

/// A checked filter in memory, its lines aligned to cache lines.
#[derive(Clone, Debug)]
pub struct Filter {
    lines: Box<[Line]>,
    probes: u8,
    rule: Option<Prefix>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE_BYTES / 8]);

impl Filter {
    /// Takes the bytes of one filter.
    ///
    /// # Errors
    /// When they are not whole lines, a valid number of probes and a valid prefix rule.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let lines_end = bytes.len().checked_sub(1 + PREFIX_RULE_BYTES);
        let (lines, end) = bytes.split_at(lines_end.ok_or(Malformed::new(0, "filter without an end"))?);
        let mut end = Decoder::within(end, lines.len());
        let probes = end.u8()?;
        let rule = prefix::read(&mut end)?;
        if !(1..=PROBES_MAX).contains(&probes) {
            return Err(Malformed::new(lines.len(), "impossible count of filter probes"));
        }
        match lines.as_chunks::<LINE_BYTES>() {
            ([], _) => Err(Malformed::new(0, "filter without lines")),
            (lines, []) => Ok(Self { lines: lines.iter().map(Line::decode).collect(), probes, rule }),
            (lines, _) => Err(Malformed::new(lines.len() * LINE_BYTES, "filter ends within a line")),
        }
    }

    /// Whether a key of this [`hash`] may have been added; if not, it certainly was not.
    #[must_use]
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let Line(words) = &self.lines[line_of(hash, self.lines.len())];
        // No branch on a single bit: which probe fails first cannot be predicted.
        let bits = Probes::new(hash).take(self.probes.into());
        bits.fold(1, |all, bit| all & words[bit / 64] >> (bit % 64)) == 1
    }

    /// Prefetches the line that [`Filter::may_contain`] reads.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[line_of(hash, self.lines.len())]);
    }

    /// Whether a key with the prefix of `probe` may have been added; if not, it certainly was not.
    #[must_use]
    pub fn may_contain_prefix(&self, probe: &PrefixProbe) -> bool {
        self.rule != Some(probe.rule) || self.may_contain(probe.hash)
    }

    /// The rule by which the prefixes of keys were added; `None` if they were not.
    #[must_use]
    pub fn prefix(&self) -> Option<Prefix> {
        self.rule
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

impl Line {
    fn decode(bytes: &[u8; LINE_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self(std::array::from_fn(|index| u64::from_le_bytes(words[index])))
    }
}

/// Index of the line of a [`hash`] among `lines` lines, by the hash's upper half.
#[must_use]
#[inline]
pub fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash >> 32) * lines as u128) >> 32) as usize
}

/// The bits of a line that belong to a hash, as an endless sequence.
struct Probes(u32);

impl Probes {
    #[inline]
    fn new(hash: u64) -> Self {
        Self(hash as u32)
    }
}

impl Iterator for Probes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.0 = self.0.wrapping_mul(0x9e37_79b9);
        Some((self.0 >> 23) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::each_change;

    fn filter(keys: u64, bits_per_key: u8) -> Vec<u8> {
        let mut builder = FilterBuilder::new(None);
        (0..keys).for_each(|key| builder.add(&key.to_le_bytes()));
        let mut out = Vec::new();
        builder.finish(bits_per_key, &mut out);
        assert!(builder.is_empty());
        out
    }

    #[test]
    fn every_added_key_is_found() {
        for keys in [0, 1, 2, 51, 52, 1000] {
            for bits_per_key in [0, 1, 5, 10, 20, 255] {
                let bytes = filter(keys, bits_per_key);
                let filter = Filter::decode(&bytes).unwrap();
                assert!((0..keys).all(|key| filter.may_contain(hash(&key.to_le_bytes()))));
            }
        }
    }

    #[test]
    fn false_positives_are_rare() {
        let keys = 50_000;
        for (bits_per_key, permille_max) in [(5, 120), (10, 13), (16, 3)] {
            let bytes = filter(keys, bits_per_key);
            let filter = Filter::decode(&bytes).unwrap();
            let positives =
                (keys..3 * keys).filter(|key| filter.may_contain(hash(&key.to_le_bytes()))).count() as u64;
            assert!(
                positives * 1000 <= permille_max * 2 * keys,
                "{positives} at {bits_per_key} bits per key"
            );
        }
    }

    #[test]
    fn size_follows_bits_per_key() {
        assert_eq!(filter(0, 10).len(), 64 + 4);
        assert_eq!(filter(1024, 10).len(), 20 * 64 + 4);
    }

    #[test]
    fn repeated_key_counts_once() {
        let mut builder = FilterBuilder::new(None);
        [b"a", b"a", b"b"].iter().for_each(|key| builder.add(*key));
        assert_eq!(builder.len(), 2);
    }

    #[test]
    fn each_prefix_is_added_once_and_found_by_its_rule_alone() {
        let rule = Prefix::Delimited { delimiter: b'/', count: 1 };
        let mut builder = FilterBuilder::new(Some(rule));
        let mut out = Vec::new();
        for _ in 0..2 {
            for key in ["a", "a/", "a/1", "a/2", "b", "b/1", "c/1/2", "c/1/3"] {
                builder.add(key.as_bytes());
            }
            // "a/" is a key and a prefix.
            assert_eq!(builder.len(), 8 + 2);
            out.clear();
            builder.finish(20, &mut out);
        }
        let filter = Filter::decode(&out).unwrap();
        assert_eq!(filter.prefix(), Some(rule));
        let may_contain =
            |rule, prefix: &str| filter.may_contain_prefix(&PrefixProbe::new(rule, prefix.as_bytes()));
        assert!(["a/", "b/", "c/"].iter().all(|prefix| may_contain(rule, prefix)));
        let absent = |n: &u32| !may_contain(rule, &format!("d{n}/"));
        assert!((0..100).filter(absent).count() > 95);
        assert!((0..100).all(|n| may_contain(Prefix::Fixed(2), &format!("{n:02}"))));
    }

    #[test]
    fn malformed_filters_are_refused_or_harmless() {
        let good = filter(10, 10);
        for end in 0..good.len() {
            assert!(Filter::decode(&good[..end]).is_err(), "{end}");
        }
        assert!(Filter::decode(&[6, 0, 0, 0]).is_err());
        assert!(Filter::decode(&good[1..]).is_err());
        each_change(&good, |_, bytes| {
            let _ = Filter::decode(bytes).map(|filter| filter.may_contain(u64::MAX));
        });
    }

    #[test]
    fn filter_has_golden_bytes() {
        let mut builder = FilterBuilder::new(Some(Prefix::Fixed(9)));
        builder.add(b"terrace");
        let mut out = Vec::new();
        builder.finish(10, &mut out);
        let bits: Vec<usize> = (0..512).filter(|bit| out[bit / 8] & 1 << (bit % 8) != 0).collect();
        assert_eq!((bits, &out[64..]), (vec![164, 192, 358, 385, 413, 451], &[6, 1, 9, 0][..]));
    }
}
