//! K-way merges of sorted sources, and what a reader or a job sees of them.
//!
//! Everything here is pure and generic over the sources: it knows no files, and no thresholds of a policy.

mod cursor;
mod direction;
mod fragments;
mod head;
mod masked;
mod newer;
mod outlook;
mod retain;
#[cfg(test)]
mod tests;
mod tree;
mod visible;

pub use cursor::Cursor;
pub use fragments::{Coverage, Span, fragment, newer_over, newest_over, span_at};
pub(crate) use head::key_head;
pub use masked::{Masked, Tombstones};
pub use newer::{has_newer_put, newer_in};
pub use outlook::{Crossed, Outlook};
pub use retain::VersionFilter;
pub use tree::{MergeBackward, MergeForward};
pub use visible::{PinValue, VisibleBackward, VisibleForward};
