//! Keys, stamps, ids and ranges: the words every other layer speaks.
//!
//! Pure values with ordering and arithmetic, nothing else.

mod extent;
mod ids;
mod range;
mod stamp;

pub use extent::Extent;
pub use ids::{DeviceId, EditNo, Epoch, KeyspaceId, PackId, SegmentId, TableId};
pub use range::KeyRange;
pub use stamp::{Kind, Seq, Stamp};

/// An owned user key, shared without copying.
pub type Key = std::sync::Arc<[u8]>;

/// Longest key that a write may carry, in bytes.
pub const KEY_BYTES_MAX: usize = 64 * 1024 - 1;

/// Longest value that a write may carry, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Tables and their packs are laid out in multiples of this many bytes, so that a dead table can be punched whole.
pub const PAGE_BYTES: u64 = 4096;

/// Number of levels of a tree, level 0 included.
pub const LEVELS: usize = 8;
