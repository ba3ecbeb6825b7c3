//! The stored form of a prefix rule: which part of a key is its prefix, or that keys have none.
//!
//! ```text
//! OFFSET SIZE FIELD
//!  0     1    kind: 0 = none, 1 = fixed, 2 = delimited
//!  1     2    fixed: length in bytes, at least 1; delimited: the delimiter (1 byte), how many of them (1 byte, at
//!             least 1); none: zeros
//! ```

use super::Malformed;
use super::coding::Decoder;
use crate::types::Prefix;

/// Bytes of a stored rule.
pub const PREFIX_RULE_BYTES: usize = 3;

const NONE: u8 = 0;
const FIXED: u8 = 1;
const DELIMITED: u8 = 2;

/// The stored form.
#[must_use]
pub fn encode(rule: Option<Prefix>) -> [u8; PREFIX_RULE_BYTES] {
    match rule {
        None => [NONE, 0, 0],
        Some(Prefix::Fixed(bytes)) => {
            let [low, high] = bytes.to_le_bytes();
            [FIXED, low, high]
        }
        Some(Prefix::Delimited { delimiter, count }) => [DELIMITED, delimiter, count],
    }
}

/// Reads the stored form.
///
/// # Errors
/// When it is cut off, or no rule that this version knows.
pub fn read(decoder: &mut Decoder<'_>) -> Result<Option<Prefix>, Malformed> {
    let start = decoder.clone();
    match (decoder.u8()?, decoder.u8()?, decoder.u8()?) {
        (NONE, 0, 0) => Ok(None),
        (FIXED, low, high) if (low, high) != (0, 0) => {
            Ok(Some(Prefix::Fixed(u16::from_le_bytes([low, high]))))
        }
        (DELIMITED, delimiter, count) if count > 0 => Ok(Some(Prefix::Delimited { delimiter, count })),
        _ => Err(start.malformed("unknown rule of prefixes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_bytes_and_no_others_are_one() {
        let delimited = |delimiter, count| Some(Prefix::Delimited { delimiter, count });
        let rules = [
            (None, [0, 0, 0]),
            (Some(Prefix::Fixed(1)), [1, 1, 0]),
            (Some(Prefix::Fixed(0x1234)), [1, 0x34, 0x12]),
            (delimited(b':', 2), [2, 0x3a, 2]),
            (delimited(0, 255), [2, 0, 255]),
        ];
        for (rule, bytes) in rules {
            assert_eq!(encode(rule), bytes);
            assert_eq!(read(&mut Decoder::new(&bytes)), Ok(rule));
        }
        for bytes in [&[0, 1, 0][..], &[0, 0, 1], &[1, 0, 0], &[2, 5, 0], &[3, 0, 0], &[1, 1], &[]] {
            assert!(read(&mut Decoder::new(bytes)).is_err(), "{bytes:?}");
        }
    }
}
