//! Keys: `user` and a decimal number, as YCSB's `buildKeyName`.
//!
//! In hashed order the number is the FNV hash of the record number, up to 19 digits. A fixed key size below the 23 bytes
//! that this takes would make hashes collide; there the number is a bijective scrambling of the record number within
//! the digits there are, so that every record keeps a key of its own.

use crate::Result;
use crate::generator::ycsb_hash;

const PREFIX: &[u8] = b"user";

/// Digits of the largest FNV hash.
const HASH_DIGITS: usize = 19;

/// Order in which the load meets the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// Scattered over the key space.
    Hashed,
    /// By record number.
    Ordered,
}

/// How a record number becomes a key.
#[derive(Clone, Debug)]
pub struct KeyFormat {
    number: Number,
    digits_min: usize,
    capacity: u64,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Record,
    Hash,
    /// A bijection of the numbers with this many bits.
    Scrambled(u32),
}

impl KeyFormat {
    /// YCSB's keys: numbers padded with zeros to `zero_padding` digits.
    #[must_use]
    pub fn ycsb(order: InsertOrder, zero_padding: usize) -> Self {
        let number = match order {
            InsertOrder::Hashed => Number::Hash,
            InsertOrder::Ordered => Number::Record,
        };
        Self { number, digits_min: zero_padding, capacity: u64::MAX }
    }

    /// Keys of exactly `bytes` bytes.
    ///
    /// # Errors
    /// Keys too short for the prefix and a digit, or longer than the engine takes.
    pub fn fixed(order: InsertOrder, bytes: usize) -> Result<Self> {
        if bytes <= PREFIX.len() || bytes > terrace::types::KEY_BYTES_MAX {
            let max = terrace::types::KEY_BYTES_MAX;
            return Err(format!("keys of {bytes} bytes: they have {} to {max}", PREFIX.len() + 1).into());
        }
        let digits = bytes - PREFIX.len();
        let numbers = u32::try_from(digits).ok().and_then(|digits| 10_u64.checked_pow(digits));
        let numbers = numbers.unwrap_or(u64::MAX);
        let (number, capacity) = match order {
            InsertOrder::Ordered => (Number::Record, numbers),
            InsertOrder::Hashed if digits >= HASH_DIGITS => (Number::Hash, u64::MAX),
            InsertOrder::Hashed => (Number::Scrambled(numbers.ilog2()), 1 << numbers.ilog2()),
        };
        Ok(Self { number, digits_min: digits, capacity })
    }

    /// Record numbers below this have keys of their own.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Replaces `key` by the key of `record`.
    pub fn build(&self, record: u64, key: &mut Vec<u8>) {
        let mut number = match self.number {
            Number::Record => record,
            Number::Hash => ycsb_hash(record),
            Number::Scrambled(bits) => scramble(record, bits),
        };
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        while number > 0 || first == digits.len() {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        let digits = &digits[first..];
        key.clear();
        key.extend_from_slice(PREFIX);
        key.resize(PREFIX.len() + self.digits_min.saturating_sub(digits.len()), b'0');
        key.extend_from_slice(digits);
    }
}

/// A bijection of the numbers below 2^`bits`: odd multiplications and shifted exclusive ors, both invertible.
fn scramble(number: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits.max(1));
    let half = bits.div_ceil(2);
    let mut scrambled = number & mask;
    for odd in [0x9E37_79B9_7F4A_7C15_u64, 0xD6E8_FEB8_6659_FD93] {
        scrambled = scrambled.wrapping_mul(odd) & mask;
        scrambled ^= scrambled >> half;
    }
    scrambled
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(format: &KeyFormat, record: u64) -> String {
        let mut key = Vec::new();
        format.build(record, &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(key(&KeyFormat::ycsb(InsertOrder::Hashed, 1), 0), "user6284781860667377211");
        assert_eq!(key(&KeyFormat::ycsb(InsertOrder::Ordered, 1), 0), "user0");
        assert_eq!(key(&KeyFormat::ycsb(InsertOrder::Ordered, 8), 1234), "user00001234");
    }

    #[test]
    fn fixed_keys_have_their_size_and_are_distinct() {
        for (order, bytes) in [
            (InsertOrder::Hashed, 8),
            (InsertOrder::Hashed, 16),
            (InsertOrder::Hashed, 23),
            (InsertOrder::Hashed, 40),
            (InsertOrder::Ordered, 9),
        ] {
            let format = KeyFormat::fixed(order, bytes).unwrap();
            let records = format.capacity().min(20_000);
            let keys: BTreeSet<String> = (0..records).map(|record| key(&format, record)).collect();
            assert_eq!(keys.len() as u64, records, "{order:?}, {bytes} bytes");
            assert!(keys.iter().all(|key| key.len() == bytes));
        }
    }

    #[test]
    fn hashed_keys_arrive_out_of_order() {
        let format = KeyFormat::fixed(InsertOrder::Hashed, 16).unwrap();
        let ascents = (0..1000).filter(|&record| key(&format, record) < key(&format, record + 1)).count();
        assert!((300..700).contains(&ascents), "{ascents} of 1000 neighbours ascend");
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(KeyFormat::fixed(InsertOrder::Hashed, 4).is_err());
        assert!(KeyFormat::fixed(InsertOrder::Hashed, 1 << 20).is_err());
    }
}
