//! Searches: how often lookups have searched a table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often lookups have searched a table that overlaps others, since the table was written. It is shared by all metadata of
/// the table: a move does not begin it anew. Nothing stores it, so an opening does.
#[derive(Clone, Default, Debug)]
pub struct Searches(Arc<AtomicU64>);

impl Searches {
    /// Counts one. Returns how many there are.
    pub fn count(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }

    /// How many there are.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
