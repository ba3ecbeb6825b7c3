//! Merging of sorted sources: pure, generic over where the entries come from.

mod cursor;
mod direction;
mod head;
mod retain;
#[cfg(test)]
mod tests;
mod tree;
mod visible;

pub use cursor::Cursor;
pub(crate) use head::key_head;
pub use retain::{Verdict, VersionFilter};
pub use tree::{MergeBackward, MergeForward};
pub use visible::{PinValue, VisibleBackward, VisibleForward};
