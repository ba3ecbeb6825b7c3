//! The file `CURRENT`: names the manifest in force.
//!
//! One line of text, so that a person can read it:
//!
//! ```text
//! MANIFEST-000001 0a1b2c3d\n        name of the manifest, space, checksum of the name in 8 hex digits
//! ```

use super::Malformed;
use super::checksum::Place;
use super::names::FileName;

const PLACE: Place = Place { id: 0, offset: 0 };

/// The contents of the file while manifest `number` is in force.
#[must_use]
pub fn encode(number: u64) -> Vec<u8> {
    let name = FileName::Manifest(number).to_string();
    let checksum = PLACE.checksum(name.as_bytes());
    format!("{name} {checksum:08x}\n").into_bytes()
}

/// Number of the manifest that the file names.
///
/// # Errors
/// When `bytes` are not exactly what [`encode`] writes.
pub fn decode(bytes: &[u8]) -> Result<u64, Malformed> {
    let name = bytes.split(|&byte| byte == b' ').next().and_then(|name| std::str::from_utf8(name).ok());
    let Some(FileName::Manifest(number)) = name.and_then(FileName::parse) else {
        return Err(Malformed::new(0, "no name of a manifest"));
    };
    if bytes != encode(number) {
        return Err(Malformed::new(0, "checksum mismatch of the name of the manifest"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{refuses_changes, refuses_truncations};

    #[test]
    fn current_round_trips_and_refuses_all_else() {
        for number in [1, 999_999, 999_999_999_999_999_999] {
            let bytes = encode(number);
            assert_eq!(decode(&bytes), Ok(number));
            refuses_truncations(&bytes, decode);
            refuses_changes(&bytes, decode);
        }
    }
}
