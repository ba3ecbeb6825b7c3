//! The budget of space: which writes are still taken.

use std::sync::atomic::Ordering::Relaxed;

use super::{Engine, Writer};
use crate::batch::WriteBatch;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Kind;

impl Engine {
    /// Bytes that may still be put, if the options set a budget. What is in memory counts, for it will be flushed, and
    /// what merges are reading, or the next one may, for they write about as much before it goes.
    pub(super) fn space_left(&self, writer: &Writer) -> Option<u64> {
        let budget = self.settings().limits.space_bytes?;
        let trees = self.trees.load();
        let in_memory: u64 = trees
            .values()
            .map(|tree| tree.view())
            .map(|view| view.active.bytes() + view.sealed_bytes())
            .sum();
        let merging = self.merging_bytes.load(Relaxed).max(self.pressure.load().l0_bytes);
        let files = self.reclaimer.pack_bytes() + writer.wal.bytes();
        Some(budget.saturating_sub(files + in_memory + merging))
    }
}

/// Takes what `batch` needs, in the log and in tables, out of `left`, unless it adds nothing: deletes make space in the
/// end.
pub(super) fn take_space(batch: &WriteBatch, left: &mut u64) -> Result<()> {
    if !batch.iter().any(|op| op.kind == Kind::Put) {
        return Ok(());
    }
    let needed = 2 * batch.bytes() as u64;
    match left.checked_sub(needed) {
        Some(rest) => *left = rest,
        None => {
            let message =
                format!("{left} bytes are left of the budget space_bytes, the write needs {needed}");
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
    }
    Ok(())
}
