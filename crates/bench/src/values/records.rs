//! Records: their keys, and values that no compression makes shorter and that tell whose they are.

use super::size::{BYTES_MIN, Size};
use crate::Result;
use crate::generator::{Rng, mix};

/// Size of a key.
pub(super) const KEY_BYTES: usize = 16;

/// Random bytes beside those of the largest value: values begin anywhere among them.
const SPARE_BYTES: usize = 8 << 20;

/// Bytes at the beginning of a value that hold its record and its version.
const STAMP_BYTES: usize = 12;
const _: () = assert!(STAMP_BYTES as u64 <= BYTES_MIN);

/// Of a value that is read, a byte of each cache line is looked at.
const CACHE_LINE_BYTES: usize = 64;

/// Records `0..count` and what the store should have of them.
pub(super) struct Records {
    size: Size,
    /// How often each was put; 0 where it is not there.
    versions: Vec<u32>,
    /// Versions are never given twice, so that a deleted value is not taken for a new one.
    puts: u32,
    live_bytes: u64,
    pool: Vec<u8>,
}

impl Records {
    pub(super) fn new(size: Size, count: u64, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 0);
        let bytes = size.bytes_max() + SPARE_BYTES;
        let mut pool = Vec::with_capacity(bytes + size_of::<u64>());
        while pool.len() < bytes {
            pool.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        Self { size, versions: vec![0; count as usize], puts: 0, live_bytes: 0, pool }
    }

    pub(super) fn count(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Bytes of keys and values that the store should have.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// A new value for `record`, which the store has from now on.
    pub(super) fn next_value(&mut self, record: u64) -> &[u8] {
        self.forget(record);
        self.puts += 1;
        self.versions[record as usize] = self.puts;
        let (bytes, stamp) = (self.bytes(record), self.stamp(record));
        self.live_bytes += (KEY_BYTES + bytes) as u64;
        let from = (mix(draw(record, self.puts)) % (self.pool.len() - bytes + 1) as u64) as usize;
        let value = &mut self.pool[from..from + bytes];
        value[..STAMP_BYTES].copy_from_slice(&stamp);
        value
    }

    /// The store has no value of `record` from now on.
    pub(super) fn forget(&mut self, record: u64) {
        if self.versions[record as usize] > 0 {
            self.live_bytes -= (KEY_BYTES + self.bytes(record)) as u64;
            self.versions[record as usize] = 0;
        }
    }

    /// Whether the store should have a value of `record`.
    pub(super) fn is_there(&self, record: u64) -> bool {
        self.versions[record as usize] > 0
    }

    /// Size of the value of `record`.
    fn bytes(&self, record: u64) -> usize {
        self.size.bytes(draw(record, self.versions[record as usize]))
    }

    fn stamp(&self, record: u64) -> [u8; STAMP_BYTES] {
        let mut stamp = [0; STAMP_BYTES];
        stamp[..8].copy_from_slice(&record.to_le_bytes());
        stamp[8..].copy_from_slice(&self.versions[record as usize].to_le_bytes());
        stamp
    }

    /// Looks at `value`; an error if it is not the newest one of `record`.
    pub(super) fn check(&self, record: u64, value: &[u8]) -> Result<()> {
        let seen = value.iter().step_by(CACHE_LINE_BYTES).fold(0_u8, |sum, byte| sum ^ byte);
        std::hint::black_box(seen);
        if value.len() == self.bytes(record) && value.starts_with(&self.stamp(record)) {
            return Ok(());
        }
        Err(format!("record {record} has a wrong value of {} bytes", value.len()).into())
    }
}

/// What decides the size of a version of a record.
const fn draw(record: u64, version: u32) -> u64 {
    mix(record) ^ version as u64
}

/// The key of `record`: digits, so that keys have the order of their numbers.
pub(super) fn key(record: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    let mut rest = record;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_value_is_right() {
        let mut records = Records::new(Size::Mix, 10, 1);
        let old = records.next_value(3).to_vec();
        records.check(3, &old).unwrap();
        let new = records.next_value(3).to_vec();
        records.check(3, &new).unwrap();
        assert!(records.check(3, &old).is_err() && records.check(4, &new).is_err());
        assert!(records.check(3, &new[..new.len() - 1]).is_err());
        assert_eq!(records.live_bytes(), (KEY_BYTES + new.len()) as u64);
        records.forget(3);
        records.forget(3);
        assert!(records.live_bytes() == 0 && !records.is_there(3));
    }

    #[test]
    fn keys_have_the_order_of_their_numbers() {
        assert_eq!(&key(120), b"0000000000000120");
        assert!(key(99) < key(100));
    }
}
