//! Merging of sorted sources: pure, generic over where the entries come from.

mod cursor;

pub use cursor::Cursor;
