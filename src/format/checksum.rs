//! Checksums that are bound to the place of the bytes.
//!
//! XXH3-64, seeded by a mix of id and offset, reduced to 32 bits, 0 replaced by 1. So correct bytes in the wrong
//! place fail, and so does a hole, which reads as zeros under a checksum of zero.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Where bytes belong: the id of a table, pack or log and an offset within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Id of the owner.
    pub id: u64,
    /// Offset within the owner, in bytes.
    pub offset: u64,
}

impl Place {
    /// The checksum of `bytes` at this place; never 0.
    #[must_use]
    pub fn checksum(self, bytes: &[u8]) -> u32 {
        if planted!("zeros-check") && bytes.iter().all(|&byte| byte == 0) {
            return 0;
        }
        folded(xxh3_64_with_seed(bytes, self.planted_seed()))
    }

    /// As [`Place::checksum`], of bytes in several pieces. Slower for a few bytes.
    #[must_use]
    pub fn checksum_of_pieces<'a>(self, pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
        let mut checksum = self.begin();
        pieces.into_iter().for_each(|piece| checksum.update(piece));
        checksum.finish()
    }

    /// The checksum of bytes at this place that come one after the other.
    pub(super) fn begin(self) -> Checksum {
        Checksum(Xxh3::with_seed(self.planted_seed()))
    }

    fn planted_seed(self) -> u64 {
        if planted!("checksum-not-bound-to-its-place") { 0 } else { self.seed() }
    }

    /// Distinct for distinct offsets of one id and for distinct ids at one offset: odd factors and xor-shifts are
    /// bijections of 64-bit words. (Constants: the golden ratio and the first of splitmix64's finaliser.)
    fn seed(self) -> u64 {
        let mixed =
            (self.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.offset).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    }
}

/// A checksum of bytes that have not all come yet.
pub(super) struct Checksum(Xxh3);

impl Checksum {
    pub(super) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(super) fn finish(self) -> u32 {
        folded(self.0.digest())
    }
}

fn folded(hash: u64) -> u32 {
    ((hash ^ hash >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::seeded;
    use proptest::prelude::*;

    #[test]
    fn checksum_never_drifts() {
        assert_eq!(Place { id: 1, offset: 4096 }.checksum(b"terrace"), 734_342_278);
        assert_eq!(Place { id: 0, offset: 0 }.checksum(b""), 366_286_023);
    }

    proptest! {
        #![proptest_config(seeded(100))]

        #[test]
        fn zeros_never_verify(id: u64, offset: u64, length in 0..300usize) {
            prop_assert_ne!(Place { id, offset }.checksum(&vec![0; length]), 0);
        }

        #[test]
        fn pieces_count_as_one(id: u64, offset: u64, pieces: Vec<Vec<u8>>, long in 0..2000usize) {
            let place = Place { id, offset };
            let pieces: Vec<_> = pieces.into_iter().chain([vec![7; long]]).collect();
            let whole = place.checksum(&pieces.concat());
            prop_assert_eq!(place.checksum_of_pieces(pieces.iter().map(|piece| &piece[..])), whole);
        }

        #[test]
        fn place_and_every_bit_count(id in 0..u64::MAX, offset in 0..u64::MAX, bytes in prop::collection::vec(any::<u8>(), 1..64), bit: usize) {
            let place = Place { id, offset };
            let sum = place.checksum(&bytes);
            prop_assert_ne!(sum, Place { id: id + 1, offset }.checksum(&bytes));
            prop_assert_ne!(sum, Place { id, offset: offset + 1 }.checksum(&bytes));
            let mut flipped = bytes.clone();
            let bit = bit % (bytes.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(sum, place.checksum(&flipped));
        }
    }
}
