//! The on-disk format: encoders and decoders for every kind of file, each with a table of its bytes.
//!
//! Numbers are little endian. Decoders use checked arithmetic, bound a length before they allocate, and never panic.
//! They check bytes only: whether a value fits the rest of the store is checked by its user. `docs/format.md` is the
//! index of file kinds and has the rules for changes; `tests/format` has golden bytes of each kind.
//!
//! ```
//! use terrace::format::block::{Block, BlockBuilder};
//! use terrace::types::{Kind, Seq, Stamp};
//! let (mut builder, mut bytes) = (BlockBuilder::new(), Vec::new());
//! builder.add(b"key", Stamp::new(Seq(1), Kind::Put), b"value");
//! builder.finish(&mut bytes);
//! let block = Block::decode(bytes)?;
//! assert_eq!(block.value(block.seek(b"key", Stamp::MAX)), b"value");
//! # Ok::<(), terrace::format::Malformed>(())
//! ```
//!
//! | file | codecs |
//! | --- | --- |
//! | pack | [`block`], [`timestamped`], [`filter`], [`prefix`], [`tombstones`], [`table`], [`pack`] |
//! | write-ahead log | [`log`], [`segment`], [`batch`], [`timestamped`] |
//! | manifest | [`log`], [`edit`], [`prefix`] |
//! | `IDENTITY`, `CURRENT`, `DEVICES` | [`identity`], [`current`], [`devices`] |
//! | all | [`coding`], [`checksum`], [`names`] |

pub mod batch;
pub mod block;
pub mod checksum;
pub mod coding;
pub mod current;
pub mod devices;
pub mod edit;
pub mod filter;
pub mod holds;
pub mod identity;
pub mod log;
pub mod manifest;
pub mod names;
pub mod pack;
pub mod prefix;
pub mod segment;
pub mod table;
pub mod timestamped;
pub mod tombstones;
pub mod value_table;

use std::fmt;

/// Version of every format here, stored wherever a file can be identified by itself.
pub const FORMAT_VERSION: u32 = 1;

/// An error of a decoder: bytes that no encoder of this version writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Where the contradiction shows, in bytes from the start of what was decoded.
    pub offset: u64,
    /// The contradiction.
    pub what: &'static str,
}

impl Malformed {
    pub(crate) fn new(offset: usize, what: &'static str) -> Self {
        Self { offset: offset as u64, what }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.offset)
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod testing;
