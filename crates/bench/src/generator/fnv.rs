//! The Fowler-Noll-Vo hash, 64 bits, variant 1a, and YCSB's use of it on record numbers.

const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// FNV-1a of `bytes`.
#[must_use]
pub const fn fnv1a_64(bytes: &[u8]) -> u64 {
    let mut hash = OFFSET_BASIS;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(PRIME);
        index += 1;
    }
    hash
}

/// YCSB's `Utils.hash`: FNV-1a over the eight little-endian bytes of `number`, as the absolute value of a signed long.
#[must_use]
pub const fn ycsb_hash(number: u64) -> u64 {
    (fnv1a_64(&number.to_le_bytes()) as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_vectors() {
        assert_eq!(fnv1a_64(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_F739_67E8);
    }

    /// The first keys of any YCSB load: user6284781860667377211, user8517097267634966620, user1820151046732198393.
    #[test]
    fn record_hashes_are_those_of_ycsb() {
        assert_eq!(ycsb_hash(0), 6_284_781_860_667_377_211);
        assert_eq!(ycsb_hash(1), 8_517_097_267_634_966_620);
        assert_eq!(ycsb_hash(2), 1_820_151_046_732_198_393);
    }
}
