//! An extent: where the bytes of a table lie.

use super::{DeviceId, PackId};

/// A byte range of a pack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// Device that holds the pack.
    pub device: DeviceId,
    /// The pack.
    pub pack: PackId,
    /// Offset in the pack, in bytes; a multiple of [`PAGE_BYTES`](super::PAGE_BYTES).
    pub offset: u64,
    /// Length in bytes; the next table starts at the following multiple of [`PAGE_BYTES`](super::PAGE_BYTES).
    pub length: u64,
}

impl Extent {
    /// The first byte behind the extent.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}
