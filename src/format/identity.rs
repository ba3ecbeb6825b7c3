//! The file `IDENTITY`: which store, and which of its devices, a directory is.
//!
//! ```text
//! OFFSET SIZE FIELD
//!  0     8    magic "TERRACE\0"
//!  8     4    format version
//! 12     8    store id, a random number
//! 20     2    device id
//! 22     4    checksum of all before it
//! ```

use std::fmt;

use super::checksum::Place;
use super::coding::{Decoder, put_u16, put_u32, put_u64};
use super::{FORMAT_VERSION, Malformed};
use crate::types::DeviceId;

/// The first bytes of the file.
pub const IDENTITY_MAGIC: [u8; 8] = *b"TERRACE\0";

/// Bytes of the file.
pub const IDENTITY_BYTES: usize = 26;

const PLACE: Place = Place { id: 0, offset: 0 };

/// Which store: a random number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreId(pub u64);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which store, and which of its devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The store, the same on all its devices.
    pub store: StoreId,
    /// The device.
    pub device: DeviceId,
}

impl Identity {
    /// The contents of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(IDENTITY_BYTES);
        out.extend_from_slice(&IDENTITY_MAGIC);
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, self.store.0);
        put_u16(&mut out, self.device.0);
        let checksum = PLACE.checksum(&out);
        put_u32(&mut out, checksum);
        out
    }

    /// Reads the contents of the file.
    ///
    /// # Errors
    /// When they are not of this format version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        if decoder.bytes(8)? != IDENTITY_MAGIC {
            return Err(Malformed::new(0, "not the identity of a store"));
        }
        if decoder.u32()? != FORMAT_VERSION {
            return Err(Malformed::new(8, "unknown format version of a store"));
        }
        let identity = Self { store: StoreId(decoder.u64()?), device: DeviceId(decoder.u16()?) };
        let covered = decoder.offset();
        if decoder.u32()? != PLACE.checksum(&bytes[..covered]) {
            return Err(Malformed::new(covered, "identity checksum mismatch"));
        }
        decoder.finish()?;
        Ok(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{refuses_changes, refuses_truncations};

    #[test]
    fn identity_round_trips_and_refuses_all_else() {
        let identity = Identity { store: StoreId(0x0102_0304_0506_0708), device: DeviceId(2) };
        let mut bytes = identity.encode();
        assert_eq!(bytes.len(), IDENTITY_BYTES);
        assert_eq!(Identity::decode(&bytes), Ok(identity));
        refuses_truncations(&bytes, Identity::decode);
        refuses_changes(&bytes, Identity::decode);
        bytes.push(0);
        assert!(Identity::decode(&bytes).is_err());
    }
}
