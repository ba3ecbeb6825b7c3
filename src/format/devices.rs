//! The file `DEVICES`: which directories a store has besides its home. It lies at home; a store with one device has none.
//!
//! ```text
//! OFFSET SIZE FIELD
//!  0     8    magic "TERRDEVS"
//!  8     4    format version
//! 12     8    store id
//! 20     ..   varint: the next device id
//!             varint: bytes per second that home was measured to write
//!             varint: number of devices, then for each, by ascending id:
//!               varint: device id
//!               varint: bytes per second that it was measured to write
//!               prefixed: its directory, UTF-8
//!  ..    4    checksum of all before it
//! ```

use super::checksum::Place;
use super::coding::{Decoder, put_prefixed, put_u32, put_u64, put_varint};
use super::identity::StoreId;
use super::{FORMAT_VERSION, Malformed};
use crate::types::DeviceId;

/// The first bytes of the file.
pub const DEVICES_MAGIC: [u8; 8] = *b"TERRDEVS";

/// A store has no more devices than this, those that were removed included.
pub const DEVICES_MAX: u64 = 1 << 12;

const PLACE: Place = Place { id: 0, offset: 0 };

/// The directories of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceList {
    /// Whose.
    pub store: StoreId,
    /// The id of the next device that is added. Ids are never used twice.
    pub next: DeviceId,
    /// Bytes per second that home was measured to write.
    pub home_bandwidth: u64,
    /// Those besides home, by ascending id.
    pub devices: Vec<ListedDevice>,
}

/// A device besides home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedDevice {
    /// Which.
    pub id: DeviceId,
    /// Bytes per second that it was measured to write.
    pub bandwidth: u64,
    /// Its directory.
    pub dir: String,
}

impl DeviceList {
    /// The contents of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = DEVICES_MAGIC.to_vec();
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, self.store.0);
        put_varint(&mut out, self.next.0.into());
        put_varint(&mut out, self.home_bandwidth);
        put_varint(&mut out, self.devices.len() as u64);
        for ListedDevice { id, bandwidth, dir } in &self.devices {
            put_varint(&mut out, id.0.into());
            put_varint(&mut out, *bandwidth);
            put_prefixed(&mut out, dir.as_bytes());
        }
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
        if decoder.bytes(8)? != DEVICES_MAGIC {
            return Err(Malformed::new(0, "not the devices of a store"));
        }
        if decoder.u32()? != FORMAT_VERSION {
            return Err(Malformed::new(8, "unknown format version of the devices"));
        }
        let store = StoreId(decoder.u64()?);
        let next = id(&mut decoder)?;
        let home_bandwidth = decoder.varint()?;
        let start = decoder.clone();
        let count = decoder.varint()?;
        if count > DEVICES_MAX {
            return Err(start.malformed("too many devices"));
        }
        let mut devices: Vec<ListedDevice> = Vec::new();
        for _ in 0..count {
            let start = decoder.clone();
            let (id, bandwidth) = (id(&mut decoder)?, decoder.varint()?);
            let last = devices.last().map_or(DeviceId(0), |device| device.id);
            if id <= last || id >= next {
                return Err(start.malformed("device ids are out of order"));
            }
            let start = decoder.clone();
            let dir = std::str::from_utf8(decoder.prefixed()?);
            let dir = dir.map_err(|_| start.malformed("the name of a directory is not UTF-8"))?.to_owned();
            devices.push(ListedDevice { id, bandwidth, dir });
        }
        let covered = decoder.offset();
        if decoder.u32()? != PLACE.checksum(&bytes[..covered]) {
            return Err(Malformed::new(covered, "checksum mismatch of the devices"));
        }
        decoder.finish()?;
        Ok(Self { store, next, home_bandwidth, devices })
    }
}

fn id(decoder: &mut Decoder<'_>) -> Result<DeviceId, Malformed> {
    let start = decoder.clone();
    let id = u16::try_from(decoder.varint()?).map_err(|_| start.malformed("device id out of range"))?;
    Ok(DeviceId(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{refuses_changes, refuses_truncations};

    #[test]
    fn devices_round_trip_and_all_else_is_refused() {
        let listed =
            |id, dir: &str| ListedDevice { id: DeviceId(id), bandwidth: 450_000_000, dir: dir.to_owned() };
        let devices = vec![listed(1, "/mnt/slow/db"), listed(4, "/mnt/\u{fc}ber")];
        let list = DeviceList { store: StoreId(7), next: DeviceId(5), home_bandwidth: 1 << 30, devices };
        let mut bytes = list.encode();
        assert_eq!(DeviceList::decode(&bytes), Ok(list.clone()));
        refuses_truncations(&bytes, DeviceList::decode);
        refuses_changes(&bytes, DeviceList::decode);
        bytes.push(0);
        assert!(DeviceList::decode(&bytes).is_err());
        let refused = |list: &DeviceList| DeviceList::decode(&list.encode()).unwrap_err().what;
        let unsorted = DeviceList { devices: list.devices.iter().rev().cloned().collect(), ..list.clone() };
        assert_eq!(refused(&unsorted), "device ids are out of order");
        assert_eq!(refused(&DeviceList { next: DeviceId(4), ..list.clone() }), "device ids are out of order");
        let home = DeviceList { devices: vec![listed(0, "/")], ..list };
        assert_eq!(refused(&home), "device ids are out of order");
    }
}
