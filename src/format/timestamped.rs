//! The stored form of a value that expires: the caller's bytes, then the second of its write.
//!
//! ```text
//! OFFSET SIZE FIELD
//!  0     n    the caller's value
//!  n     4    second in which it was written, since 1970
//! ```

/// Bytes at the end of a value that say when it was written.
pub const TIMESTAMP_BYTES: usize = 4;

/// The caller's value and the second of its write; `None` if the bytes are too short to be such a value.
///
/// ```
/// use terrace::format::timestamped::{timestamp, split};
/// assert_eq!(split(&timestamp(b"value", 7)), Some((&b"value"[..], 7)));
/// assert_eq!(split(b"abc"), None);
/// ```
#[must_use]
pub fn split(stored: &[u8]) -> Option<(&[u8], u32)> {
    let (value, second) = stored.split_last_chunk::<TIMESTAMP_BYTES>()?;
    Some((value, u32::from_le_bytes(*second)))
}

/// The second of a stored value's write; 0 if the bytes are too short to be such a value.
#[must_use]
pub fn second(stored: &[u8]) -> u32 {
    split(stored).map_or(0, |(_, second)| second)
}

/// The stored form of `value`, written in `second`.
#[must_use]
pub fn timestamp(value: &[u8], second: u32) -> Vec<u8> {
    [value, &second.to_le_bytes()].concat()
}
