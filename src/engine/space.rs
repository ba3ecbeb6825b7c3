//! The budget of space: which writes are still taken.

use std::sync::atomic::Ordering::Relaxed;

use super::{Engine, Writer};
use crate::batch::WriteBatch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;

impl Engine {
    /// Refuses a batch for which the budget of space has no room, unless it adds nothing: deletes make space in the end.
    pub(super) fn check_space(&self, writer: &Writer, batch: &WriteBatch) -> Result<()> {
        // In the log, and in tables.
        let needed = 2 * batch.bytes() as u64;
        let fits = || self.space_left(writer).is_none_or(|left| left >= needed);
        let adds = || batch.iter().any(|op| matches!(op.action, Action::Put { .. }));
        if fits() || !adds() || matches!(self.spares.free(), Ok(true)) && fits() || self.punch() && fits() {
            return Ok(());
        }
        let left = self.space_left(writer).unwrap_or(0);
        let message = format!("{left} bytes are left of the budget space_bytes, the write needs {needed}");
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Gives back the space of dead tables, if the options set a budget and half of it is used: at the end of each job.
    pub(super) fn keep_space_budget(&self) {
        let used = || self.reclaimer.pack_bytes() + self.spares.bytes();
        if self.settings().limits.space_bytes.is_some_and(|budget| used() > budget / 2) {
            self.punch();
        }
    }

    /// Bytes that may still be put, if the options set a budget. What is in memory counts, for it will be flushed, and
    /// what merges are reading, or the next one may, for they write about as much before it goes.
    fn space_left(&self, writer: &Writer) -> Option<u64> {
        let budget = self.settings().limits.space_bytes?;
        let trees = self.trees.load();
        let in_memory: u64 = trees
            .values()
            .map(|tree| tree.view())
            .map(|view| view.active.bytes() + view.sealed_bytes())
            .sum();
        let merging = self.merging_bytes.load(Relaxed).max(self.pressure.load().l0_bytes);
        let files = self.reclaimer.pack_bytes() + writer.wal.bytes() + self.spares.bytes();
        Some(budget.saturating_sub(files + in_memory + merging))
    }
}
