//! The sorted block: the unit in which tables are read, cached and checked, for entries and for index entries alike.
//!
//! ```text
//! OFFSET SIZE     FIELD
//!  0     4        count of entries n, at least 1
//!  4     1        flags: 1 = keys have ends, 2 = key ends take 4 bytes, 4 = values have ends,
//!                 8 = value ends take 4 bytes, 16 = each entry has its own kind
//!  5     1        width w of a sequence delta: 0, 1, 2, 4 or 8
//!  6     2        length p of the prefix that all keys share
//!  8     4        key stride; with key ends: length of all suffixes together
//! 12     4        value stride; with value ends: length of all values together
//! 16     8        base stamp: lowest sequence number << 8 | kind of all entries (0 if each has its own)
//! 24     p        prefix
//!  .     n*2|4    with key ends: end of each suffix, from the start of the suffixes
//!  .     .        suffixes: keys without the prefix
//!  .     n*w      sequence deltas: sequence number - lowest sequence number
//!  .     n        with kinds of their own: kind of each entry
//!  .     n*2|4    with value ends: end of each value, from the start of the values
//!  .     .        values
//! ```
//!
//! Entries are ordered by key, ascending, then by stamp, descending. Keys of equal length have a fixed stride instead
//! of ends, and so have values. Such a block is checked in constant time, and an entry is found by multiplication.
//! Ends take 2 bytes each where the section is shorter than 64 KiB.
//!
//! [`Block::decode`] checks everything that the accessors rely on but the order of the keys. A wrong order yields
//! wrong answers, never a panic; [`Block::check_order`] finds it. A block knows neither its place nor its checksum:
//! these belong to [`table`](super::table).

mod builder;
mod reader;

pub use builder::{BlockBuilder, put_head_of_single};
pub use reader::Block;

/// Bytes before the prefix.
pub const BLOCK_HEADER_BYTES: usize = 24;

/// Where the values' stride stands.
const VALUE_STRIDE_AT: usize = 12;

const KEY_ENDS: u8 = 1;
const KEY_ENDS_WIDE: u8 = 2;
const VALUE_ENDS: u8 = 4;
const VALUE_ENDS_WIDE: u8 = 8;
const OWN_KINDS: u8 = 16;

#[cfg(test)]
mod tests;
