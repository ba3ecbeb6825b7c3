//! Keys and values of the records, the same for every engine, and where each record's number lies.
//!
//! Numbers below the size of the data set are loaded; those that a phase inserts have a range for each phase; those of
//! keys that are never there lie above all of them. A value is as long as all others: its first half tells whose it is
//! (see [`terrace_bench::ycsb::values`]) and does not compress, its second half repeats the first, so that LZ4 finds
//! about half of it.

use std::ops::RangeInclusive;

use anyhow::{Result, anyhow};
use terrace_bench::ycsb::keys::{InsertOrder, KeyFormat};
use terrace_bench::ycsb::values::{HEADER_BYTES, ValueFormat};

/// Size of a key.
pub const KEY_BYTES: usize = 16;

/// Sizes that a value can have: each half must have room for what tells whose it is.
pub const VALUE_BYTES: RangeInclusive<usize> = 2 * HEADER_BYTES..=64 << 10;

/// Bits of a record's number: what the keys have room for.
const NUMBER_BITS: u32 = 39;

/// Numbers that each phase may insert.
const INSERTS: u64 = 1 << 34;

/// Number of the first key that is never there.
pub const ABSENT: u64 = 1 << (NUMBER_BITS - 1);

/// Number of the first record that phase `index` of a turn inserts.
pub fn first_insert(index: usize) -> u64 {
    INSERTS * (index as u64 + 1)
}

/// Makes keys and values of one size.
#[derive(Clone, Debug)]
pub struct Format {
    keys: KeyFormat,
    values: ValueFormat,
    value_bytes: usize,
}

impl Format {
    /// Records whose keys follow the order of their numbers, or none.
    ///
    /// # Errors
    /// Values too short to tell whose they are.
    pub fn new(order: InsertOrder, value_bytes: usize) -> Result<Self> {
        let plain = |error: terrace_bench::Error| anyhow!("{error}");
        let keys = KeyFormat::fixed(order, KEY_BYTES).map_err(plain)?;
        let values = ValueFormat::new(value_bytes.div_ceil(2)).map_err(plain)?;
        Ok(Self { keys, values, value_bytes })
    }

    /// Bytes of key and value of a record.
    pub fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.value_bytes) as u64
    }

    /// Size of a value.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Replaces `key` by that of record `number`.
    pub fn key(&self, number: u64, key: &mut Vec<u8>) {
        self.keys.build(number, key);
    }

    /// Replaces `value` by version `version` of the value of record `number`.
    pub fn value(&self, number: u64, version: u32, value: &mut Vec<u8>) {
        self.values.fill(number, version, value);
        value.extend_from_within(..self.value_bytes - value.len());
    }

    /// Whose value this is, if every byte of it is right.
    pub fn check(&self, value: &[u8]) -> Option<u64> {
        let (first, second) = value.split_at_checked(self.values.bytes())?;
        let (number, _) = self.values.check(first)?;
        (value.len() == self.value_bytes && first.starts_with(second)).then_some(number)
    }
}

/// Reads a byte of each cache line of `value`: what every engine's results are put through.
pub fn consume(value: &[u8]) -> u64 {
    value.iter().step_by(64).fold(0, |sum, &byte| sum.wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_whose_they_are_and_any_wrong_byte_shows() {
        for bytes in [*VALUE_BYTES.start(), 25, 100, 1024, *VALUE_BYTES.end()] {
            let format = Format::new(InsertOrder::Hashed, bytes).unwrap();
            let mut value = Vec::new();
            format.value(77, 3, &mut value);
            assert_eq!(value.len(), bytes);
            assert_eq!(format.check(&value), Some(77));
            for at in [0, bytes / 2, bytes - 1] {
                value[at] ^= 1;
                assert_eq!(format.check(&value), None, "byte {at} of {bytes}");
                value[at] ^= 1;
            }
            assert_eq!(format.check(&value[1..]), None);
        }
    }

    #[test]
    fn numbers_of_inserts_and_of_absent_keys_do_not_meet() {
        let format = KeyFormat::fixed(InsertOrder::Hashed, KEY_BYTES).unwrap();
        assert_eq!(format.capacity(), 1 << NUMBER_BITS);
        assert!(first_insert(14) + INSERTS <= ABSENT);
    }

    #[test]
    fn consuming_reaches_every_cache_line() {
        let mut value = vec![0; 200];
        value[128] = 1;
        assert_eq!(consume(&value), 1);
    }
}
