//! What a table has of separated values: how many pointers, and what they point to.

use super::TableId;

/// The pointers of a table to values in value tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ValueShare {
    /// Number of pointers.
    pub count: u64,
    /// Bytes of the value tables that these values take.
    pub bytes: u64,
    /// The lowest id of a value table that it points to; 0 if it has no pointer.
    pub oldest: TableId,
}

impl ValueShare {
    /// Adds a pointer to a value in `table` that takes `bytes`.
    pub fn add(&mut self, table: TableId, bytes: u64) {
        self.oldest = if self.count == 0 { table } else { self.oldest.min(table) };
        self.count += 1;
        self.bytes += bytes;
    }
}
