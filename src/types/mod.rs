//! Basic values that every layer uses: keys, stamps, ids, prefixes, ranges and range tombstones.
//!
//! They are pure values with ordering and arithmetic, and the shared memory of blocks ([`Buffer`]).
//!
//! ```
//! use terrace::types::{KeyRange, Kind, Seq, Stamp, TableId};
//! let (older, newer) = (Stamp::new(Seq(7), Kind::Put), Stamp::new(Seq(8), Kind::Delete));
//! assert!(newer > older && newer.seq() == Seq(7).plus(1) && newer <= Stamp::upto(Seq(8)));
//! let range = KeyRange::new(&b"a"[..], &b"m"[..]);
//! assert!(range.contains(b"k") && range.overlaps(&KeyRange::new(&b"m"[..], &b"z"[..])));
//! assert_eq!(TableId(1).next(), TableId(2));
//! ```

pub(crate) mod buffer;
mod chunk_map;
mod extent;
mod holds;
mod ids;
mod key_ranges;
mod key_sum;
pub(crate) mod pages;
mod prefix;
mod range;
mod spans;
mod stamp;
mod ttl;
mod value_share;

pub use buffer::Buffer;
pub(crate) use buffer::{Chunk, prefetch};
pub use chunk_map::ChunkMap;
pub use extent::Extent;
pub use holds::{HOLDS_MAX, Hold, Holders, Holds, Share};
pub use ids::{DeviceId, EditNo, Epoch, KeyspaceId, PackId, SegmentId, TableId};
pub use key_ranges::KeyRanges;
pub use key_sum::KeySum;
pub use prefix::Prefix;
pub use range::{KeyRange, RangeTombstone, UpperBound, successor};
pub use spans::Spans;
pub use stamp::{Kind, Seq, Stamp};
pub use ttl::{Timestamps, Ttl};
pub use value_share::ValueShare;

/// An owned user key, shared without copying.
pub type Key = std::sync::Arc<[u8]>;

/// Longest key that a write may carry, in bytes.
pub const KEY_BYTES_MAX: usize = 64 * 1024 - 1;

/// Longest start or end of a range of keys, in bytes: a key of the greatest length and a zero byte, which means
/// "right behind it".
pub const BOUND_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// Longest value that a write may carry, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Tables begin in packs at multiples of this many bytes, so that a dead table can be punched whole.
pub const PAGE_BYTES: u64 = 4096;

/// Number of levels of a tree, level 0 included.
pub const LEVELS: usize = 8;
