//! The filter of a memtable: says of most absent keys that they are absent, for a cache line or two instead of a
//! search.
//!
//! It is a Bloom filter in layers that appear as the memtable grows, each four times as large as the one before.
//! Entry number n goes into the first layer that is not full before it. So the filter takes a small part of the
//! memory of the entries, whatever their number. The last layer takes all further entries and becomes less precise
//! with them. Within a layer all bits of a key lie in one word: to add a key is one atomic `or`, to ask for it is one
//! load.
//!
//! Invariant: there is no false negative for a reader that may see the key. The key's bits are set before its batch
//! is published, and every reader has synchronised with the publication.
//!
//! The filter does not cover range tombstones.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::format::filter::line_of;

const LAYERS: usize = 7;

/// Entries of the first layer. Each further layer has four times as many, the last one half a million.
const FIRST_ENTRIES: u64 = 128;

/// Bits of memory for each entry.
const BITS_PER_ENTRY: u64 = 16;

/// Bits that a key sets in its word. A full layer has 4 keys a word on average; by calculation 4 bits then let 1 of
/// 190 absent keys through, 3 bits 1 of 130, 6 bits 1 of 260.
const PROBES: u32 = 4;

const fn words(layer: usize) -> usize {
    (FIRST_ENTRIES * BITS_PER_ENTRY / 64) as usize * 4_usize.pow(layer as u32)
}

/// The layers of one memtable's filter.
#[derive(Debug)]
pub(super) struct MemtableFilter {
    first: [AtomicU64; words(0)],
    /// Layers 1 and up. The words of a layer are allocated for its first entry.
    others: [OnceLock<Box<[AtomicU64]>>; LAYERS - 1],
}

impl Default for MemtableFilter {
    fn default() -> Self {
        Self { first: [const { AtomicU64::new(0) }; words(0)], others: Default::default() }
    }
}

impl MemtableFilter {
    /// Adds the key of this [hash](crate::format::filter::hash), that of entry number `entry`, counted from 0.
    pub(super) fn add(&self, hash: u64, entry: u64) {
        let words = self.layer_for(entry);
        let word = &words[line_of(hash, words.len())];
        let bits = bits(hash);
        // A key that is written often finds its bits set, and the cache line stays shared.
        if word.load(Relaxed) & bits != bits {
            word.fetch_or(bits, Relaxed);
        }
    }

    fn layer_for(&self, entry: u64) -> &[AtomicU64] {
        // Layers 0 to n - 1 take (4^n - 1) / 3 times as many as the first.
        let layer = ((3 * (entry / FIRST_ENTRIES) + 1).ilog2() / 2) as usize;
        match layer.min(LAYERS - 1).checked_sub(1) {
            None => &self.first,
            Some(other) => self.others[other].get_or_init(|| zeros(words(other + 1))),
        }
    }

    /// Whether a key of this hash may have been added; if not, no visible batch added it.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let bits = bits(hash);
        let has = |words: &[AtomicU64]| words[line_of(hash, words.len())].load(Relaxed) & bits == bits;
        // The last layer first: it has most of the keys.
        self.others.iter().rev().filter_map(OnceLock::get).any(|words| has(words)) || has(&self.first)
    }
}

fn zeros(words: usize) -> Box<[AtomicU64]> {
    std::iter::repeat_with(AtomicU64::default).take(words).collect()
}

/// The bits of a key in its word, by the lower half of its hash.
fn bits(hash: u64) -> u64 {
    (0..PROBES).fold(0, |bits, probe| bits | 1 << (hash >> (6 * probe) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::filter::hash;

    fn filter(entries: u64) -> MemtableFilter {
        let filter = MemtableFilter::default();
        (0..entries).for_each(|entry| filter.add(hash(&entry.to_le_bytes()), entry));
        filter
    }

    #[test]
    fn every_added_key_is_found_and_few_others() {
        for entries in [0, 1, 127, 128, 129, 639, 640, 641, 10_000, 100_000] {
            let filter = filter(entries);
            let found = |key: &u64| filter.may_contain(hash(&key.to_le_bytes()));
            assert!((0..entries).all(|key| found(&key)), "{entries} entries");
            let others = (entries..entries + 10_000).filter(found).count();
            assert!(others < 10_000 / 20, "{others} of 10,000 wrongly found among {entries} entries");
        }
    }

    #[test]
    fn it_grows_with_its_entries() {
        for entries in [1, 127, 128, 129, 640, 641, 10_000, 100_000, 700_000] {
            let others = filter(entries).others;
            let bytes: usize =
                others.iter().filter_map(OnceLock::get).map(|words| size_of_val(&**words)).sum();
            assert!(bytes as u64 <= entries * 8, "{bytes} bytes for {entries} entries");
            let kept = others.iter().take_while(|layer| layer.get().is_some()).count();
            assert!(others[kept..].iter().all(|layer| layer.get().is_none()), "a gap at {entries} entries");
        }
    }

    #[test]
    fn more_entries_than_it_is_made_for_are_all_found() {
        let filter = filter(100);
        (0..1000).for_each(|key: u64| filter.add(hash(&key.to_le_bytes()), u64::MAX / 4));
        assert!((0..1000_u64).all(|key| filter.may_contain(hash(&key.to_le_bytes()))));
    }
}
