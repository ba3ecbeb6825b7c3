//! Space: how much is kept to be written over, and the budget that says which writes are still taken.

use std::sync::atomic::Ordering::Relaxed;

use crate::batch::WriteBatch;
use crate::engine::Writer;
use crate::engine::schedule::background::Background;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;

/// Recycled files are kept as long as what is not live takes no more than one part in so many of what is; of a store too small for
/// that, a few bytes all the same.
const SURPLUS_PARTS: u64 = 8;
const RECYCLED_BYTES_MIN: u64 = 1 << 20;

/// A writer that needs space makes so much at a time, or the next one would need some again.
const FREED_BYTES_MIN: u64 = 1 << 20;

/// Segments that the log takes where writers rest: the one they are in, and the one prepared behind it.
const LOG_SEGMENTS: u64 = 2;

impl Background {
    /// Keeps as many recycled files as the live data and the options allow now, and tells the cache how much there is: at the end of each
    /// job.
    pub(in crate::engine) fn fit_recycled(&self) {
        let (limits, space) = (self.jobs.settings.load().limits, self.jobs.storage.reclaimer.space());
        self.jobs.cache.expect(space.live_bytes);
        let dead = space.total_bytes.saturating_sub(space.live_bytes);
        let surplus =
            (space.live_bytes / SURPLUS_PARTS).saturating_sub(dead + LOG_SEGMENTS * limits.segment_bytes);
        self.jobs.storage.recycled.keep_up_to(surplus.max(RECYCLED_BYTES_MIN).min(limits.recycled_bytes));
    }

    /// Refuses a batch for which the budget of space has no room, unless it adds nothing: deletes make space in the end.
    pub(in crate::engine) fn check_space(&self, writer: &Writer, batch: &WriteBatch) -> Result<()> {
        // In the log, and in tables.
        let needed = 2 * batch.bytes() as u64;
        let adds = || batch.iter().any(|op| matches!(op.action, Action::Put { .. }));
        if self.space_left(writer).is_none_or(|left| left >= needed) || !adds() {
            return Ok(());
        }
        self.find_space(writer, needed)
    }

    /// Refuses to go on with tables from outside where the budget has no room for another one of `last_bytes`.
    pub(in crate::engine) fn check_ingest(&self, last_bytes: u64) -> Result<()> {
        if self.jobs.settings.load().limits.space_bytes.is_none() {
            // Nobody waits for the writer's lock in vain.
            return Ok(());
        }
        self.find_space(&self.jobs.log.writer()?.lock(), last_bytes)
    }

    /// Makes room in the budget for `needed` bytes, if it can be made.
    fn find_space(&self, writer: &Writer, needed: u64) -> Result<()> {
        let fits = || self.space_left(writer).is_none_or(|left| left >= needed);
        if fits() || matches!(self.jobs.storage.recycled.free(), Ok(true)) && fits() {
            return Ok(());
        }
        // Under the writer's lock, so no more than is needed, and a little for the writes that come next.
        let missing = || needed.saturating_sub(self.space_left(writer).unwrap_or(needed));
        loop {
            let freed = self.jobs.storage.free_dead(missing().max(FREED_BYTES_MIN));
            // Also where nothing was freed: what became a hole or a recycled file meanwhile counts for nobody.
            if fits() || matches!(self.jobs.storage.recycled.free(), Ok(true)) && fits() {
                return Ok(());
            }
            // Last, for that costs most.
            if !freed && !self.rewrite_for_space() {
                break;
            }
        }
        let left = self.space_left(writer).unwrap_or(0);
        let message = format!("{left} bytes are left of the budget space_bytes, the write needs {needed}");
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Gives back the space of dead tables, as far as more than half of the budget that the options set is used: at the end
    /// of each job, under no lock.
    pub(in crate::engine) fn keep_space_budget(&self) {
        let Some(budget) = self.jobs.settings.load().limits.space_bytes else { return };
        let used = self.jobs.storage.reclaimer.pack_bytes() + self.jobs.storage.recycled.bytes();
        if used > budget / 2 {
            self.jobs.storage.free_dead(used - budget / 2);
        }
    }

    /// Bytes that may still be put, if the options set a budget. What is in memory counts, for it will be flushed, and
    /// what compactions are reading, or the next one may, for they write about as much before it goes.
    fn space_left(&self, writer: &Writer) -> Option<u64> {
        let budget = self.jobs.settings.load().limits.space_bytes?;
        let trees = self.jobs.trees.load();
        let in_memory: u64 = trees
            .values()
            .map(|tree| tree.view())
            .map(|view| view.active.bytes() + view.sealed_bytes())
            .sum();
        let compacting = self.jobs.compacting_bytes.load(Relaxed).max(self.pressure.load().l0_bytes);
        let files = self.jobs.storage.reclaimer.pack_bytes()
            + writer.wal.bytes()
            + self.jobs.storage.recycled.bytes();
        let ingesting = self.ingesting_bytes.load(Relaxed);
        Some(budget.saturating_sub(files + in_memory + compacting + ingesting))
    }
}
