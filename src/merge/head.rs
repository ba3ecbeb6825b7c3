//! The head of a key: its first bytes as a number.

/// The first eight bytes of `key`, zero-padded, as a number that orders as they do: `key_head(a) < key_head(b)` implies
/// `a < b`, and `a < b` implies `key_head(a) <= key_head(b)`.
#[inline]
pub(crate) fn key_head(key: &[u8]) -> u64 {
    let bytes = key.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..key.len()].copy_from_slice(key);
        padded
    });
    // Never stored: the byte order is that of keys, not of a format.
    u64::from_le_bytes(bytes).swap_bytes()
}
