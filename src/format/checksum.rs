//! Checksums that are bound to the place of the bytes.
//!
//! XXH3-64 seeded by a mix of id and offset, folded to 32 bits, 0 replaced by 1. Bytes that are right but lie in the
//! wrong place therefore fail, and so does a hole: zeros under a checksum of zero.

use xxhash_rust::xxh3::xxh3_64_with_seed;

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
        let seed = if planted!("checksum-not-bound-to-its-place") { 0 } else { self.seed() };
        let hash = xxh3_64_with_seed(bytes, seed);
        ((hash ^ hash >> 32) as u32).max(1)
    }

    /// Distinct for distinct offsets of one id and for distinct ids at one offset: odd factors and xor-shifts are
    /// bijections of 64-bit words. (Constants: the golden ratio and the first of splitmix64's finaliser.)
    fn seed(self) -> u64 {
        let mixed =
            (self.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.offset).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    }
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
