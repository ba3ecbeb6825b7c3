//! Shared by the tests of codecs: seeded property tests, and hostile variants of good bytes.

use super::Malformed;
use proptest::test_runner::{Config, RngSeed};

/// `cases` cases, the same in every run.
pub(super) fn seeded(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(0x7e44_ace0), failure_persistence: None, ..Config::default() }
}

/// Every proper prefix of `good` must be refused.
pub(super) fn refuses_truncations<T>(good: &[u8], decode: impl Fn(&[u8]) -> Result<T, Malformed>) {
    for end in 0..good.len() {
        assert!(decode(&good[..end]).is_err(), "the first {end} of {} bytes decode", good.len());
    }
}

/// Every change of one byte of `good` must be refused.
pub(super) fn refuses_changes<T>(good: &[u8], decode: impl Fn(&[u8]) -> Result<T, Malformed>) {
    each_change(good, |at, bytes| assert!(decode(bytes).is_err(), "a change of byte {at} goes unnoticed"));
}

/// Hands each variant of `good` with one byte changed (each bit flipped, and all of them) to `judge`.
pub(super) fn each_change(good: &[u8], mut judge: impl FnMut(usize, &[u8])) {
    let mut bytes = good.to_vec();
    for at in 0..good.len() {
        for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            bytes[at] = good[at] ^ mask;
            judge(at, &bytes);
        }
        bytes[at] = good[at];
    }
}
