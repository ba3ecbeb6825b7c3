//! Names of the files in a store's directories.
//!
//! ```text
//! 000012.pack       pack 12               CURRENT, CURRENT.new      which manifest holds
//! 000003.wal        segment 3             IDENTITY, IDENTITY.new    which store and device this is
//! MANIFEST-000001   manifest 1            LOCK                      held while the store is open
//! 000001.recycled      a dead file, to be written over
//! RESERVE           zeros, for a full disk
//! ```
//!
//! Numbers are decimal, padded with zeros to 6 digits, and longer if need be, up to 18. Every file has exactly one
//! name: a name that does not print back to the same text is not one of the store. `.new` files are being written,
//! and will be renamed over the file without that ending.

use crate::types::{PackId, SegmentId};
use std::fmt;

/// What a file of a store is, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileName {
    /// A pack of tables.
    Pack(PackId),
    /// A segment of the write-ahead log.
    Wal(SegmentId),
    /// A log of catalog edits.
    Manifest(u64),
    /// A dead file that waits to be overwritten.
    Recycled(u64),
    /// Names the manifest in force.
    Current,
    /// The next [`Current`](Self::Current), not in force yet.
    CurrentTemp,
    /// Names the store and the device.
    Identity,
    /// The next [`Identity`](Self::Identity), not in force yet.
    IdentityTemp,
    /// Names the directories besides this one.
    Devices,
    /// The next [`Devices`](Self::Devices), not in force yet.
    DevicesTemp,
    /// Carries the lock on the directory.
    Lock,
    /// Occupies space that is freed when the disk is full.
    Reserve,
}

impl FileName {
    /// What the file called `name` is; `None` if it is not a file of a store.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "CURRENT" => Some(Self::Current),
            "CURRENT.new" => Some(Self::CurrentTemp),
            "IDENTITY" => Some(Self::Identity),
            "IDENTITY.new" => Some(Self::IdentityTemp),
            "DEVICES" => Some(Self::Devices),
            "DEVICES.new" => Some(Self::DevicesTemp),
            "LOCK" => Some(Self::Lock),
            "RESERVE" => Some(Self::Reserve),
            _ => Self::parse_numbered(name),
        }
    }

    fn parse_numbered(name: &str) -> Option<Self> {
        if let Some(digits) = name.strip_prefix("MANIFEST-") {
            return parse_number(digits).map(Self::Manifest);
        }
        let (digits, extension) = name.split_once('.')?;
        let number = parse_number(digits)?;
        match extension {
            "pack" => Some(Self::Pack(PackId(number))),
            "wal" => Some(Self::Wal(SegmentId(number))),
            "recycled" => Some(Self::Recycled(number)),
            _ => None,
        }
    }
}

/// Log id of manifest `number`, to which its checksums are bound. The log id of a segment is the segment's own
/// number, which never gets so high.
#[must_use]
pub fn log_id_of_manifest(number: u64) -> u64 {
    1 << 63 | number
}

/// Longest number in a name.
const DIGITS_MAX: usize = 18;

fn parse_number(digits: &str) -> Option<u64> {
    let canonical = digits.len() == 6 || digits.len() > 6 && !digits.starts_with('0');
    let decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    // Numbers come from counters that never get this far. A stray file must not push a counter over its end.
    let plausible = digits.len() <= DIGITS_MAX;
    if canonical && decimal && plausible { digits.parse().ok() } else { None }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pack(pack) => write!(f, "{:06}.pack", pack.0),
            Self::Wal(segment) => write!(f, "{:06}.wal", segment.0),
            Self::Manifest(number) => write!(f, "MANIFEST-{number:06}"),
            Self::Recycled(number) => write!(f, "{number:06}.recycled"),
            Self::Current => f.write_str("CURRENT"),
            Self::CurrentTemp => f.write_str("CURRENT.new"),
            Self::Identity => f.write_str("IDENTITY"),
            Self::IdentityTemp => f.write_str("IDENTITY.new"),
            Self::Devices => f.write_str("DEVICES"),
            Self::DevicesTemp => f.write_str("DEVICES.new"),
            Self::Lock => f.write_str("LOCK"),
            Self::Reserve => f.write_str("RESERVE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let names = [
            (FileName::Pack(PackId(12)), "000012.pack"),
            (FileName::Wal(SegmentId(3)), "000003.wal"),
            (FileName::Manifest(1), "MANIFEST-000001"),
            (FileName::Recycled(7), "000007.recycled"),
            (FileName::Manifest(999_999_999_999_999_999), "MANIFEST-999999999999999999"),
            (FileName::Pack(PackId(1_000_000)), "1000000.pack"),
            (FileName::Current, "CURRENT"),
            (FileName::CurrentTemp, "CURRENT.new"),
            (FileName::Identity, "IDENTITY"),
            (FileName::IdentityTemp, "IDENTITY.new"),
            (FileName::Devices, "DEVICES"),
            (FileName::DevicesTemp, "DEVICES.new"),
            (FileName::Lock, "LOCK"),
            (FileName::Reserve, "RESERVE"),
        ];
        for (name, text) in names {
            assert_eq!(name.to_string(), text);
            assert_eq!(FileName::parse(text), Some(name));
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        let names = "|.|12.pack|0000012.pack|+00012.pack|000012.PACK|000012.pack |000012.pack.new|000012|.pack|current|\
                     MANIFEST-|MANIFEST-1|MANIFEST-0000001|MANIFEST-99999999999999999999|00001\u{663}.wal|../CURRENT|LOCK.new";
        for name in names.split('|') {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
