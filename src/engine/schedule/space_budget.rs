//! The space budget: how many recycled files are kept, and which writes are refused.

use std::sync::atomic::Ordering::Relaxed;

use crate::batch::WriteBatch;
use crate::engine::log::writer::Writer;
use crate::engine::schedule::background::Background;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Action;

/// Recycled files are kept while dead data takes at most one part in this many of the live data. Even a small store
/// keeps a few bytes of them.
const SURPLUS_PARTS: u64 = 8;
const RECYCLED_BYTES_MIN: u64 = 1 << 20;

/// A writer that needs space frees at least this many bytes at a time, so that the next writer need not do it again.
const FREED_BYTES_MIN: u64 = 1 << 20;

/// Segments of the log while no one writes: the current one, and the prepared next one.
const LOG_SEGMENTS: u64 = 2;

impl Background {
    /// Adapts the limit of recycled files to the live data and the options, and notes the size of the data in the
    /// cache. Called at the end of each job.
    pub(in crate::engine) fn fit_recycled(&self) {
        let (limits, space) = (self.jobs.settings.load().limits, self.jobs.storage.reclaimer.space());
        self.jobs.cache.expect(space.live_bytes);
        let dead = space.total_bytes.saturating_sub(space.live_bytes);
        let surplus =
            (space.live_bytes / SURPLUS_PARTS).saturating_sub(dead + LOG_SEGMENTS * limits.segment_bytes);
        self.jobs
            .storage
            .devices
            .keep_recycled_up_to(surplus.max(RECYCLED_BYTES_MIN).min(limits.recycled_bytes));
    }

    /// Whether the space budget has room for a batch. For one without puts it always has: deletes free space in the end.
    pub(in crate::engine) fn has_space(&self, writer: &Writer, batch: &WriteBatch) -> bool {
        let adds = || batch.iter().any(|op| matches!(op.action, Action::Put { .. }));
        self.space_left(writer).is_none_or(|left| left >= needed_for(batch)) || !adds()
    }

    /// Makes room in the budget for a batch, or refuses it. Another writer may take the room before this one does.
    /// REQUIRES: the writer's lock is not held.
    pub(in crate::engine) fn make_space(&self, batch: &WriteBatch) -> Result<()> {
        self.find_space(needed_for(batch))
    }

    /// Refuses to continue an ingest if the budget has no room for another table of `last_bytes`.
    pub(in crate::engine) fn check_ingest(&self, last_bytes: u64) -> Result<()> {
        if self.jobs.settings.load().limits.space_bytes.is_none() {
            // Without a budget, do not wait for the writer's lock.
            return Ok(());
        }
        self.find_space(last_bytes)
    }

    /// Makes room in the budget for `needed` bytes, if it can be made. Other writers go on meanwhile.
    fn find_space(&self, needed: u64) -> Result<()> {
        let writer = self.jobs.log.writer()?;
        let left = || self.space_left(&writer.lock());
        let fits = || left().is_none_or(|left| left >= needed);
        if fits() || matches!(self.jobs.storage.devices.free_recycled(), Ok(true)) && fits() {
            return Ok(());
        }
        // The caller waits, so this frees no more than is needed, and a little for the next writes.
        let missing = || needed.saturating_sub(left().unwrap_or(needed));
        loop {
            let freed = self.jobs.storage.free_dead(missing().max(FREED_BYTES_MIN));
            // Checked even if nothing was freed here: another thread may have punched or recycled meanwhile, which no
            // caller's count has.
            if fits() || matches!(self.jobs.storage.devices.free_recycled(), Ok(true)) && fits() {
                return Ok(());
            }
            // Rewriting packs comes last, since it costs most.
            if !freed && !self.rewrite_for_space() {
                break;
            }
        }
        let left = left().unwrap_or(0);
        let message = format!("{left} bytes are left of the budget space_bytes, the write needs {needed}");
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Frees dead tables while more than half of the budget is used. Nobody needs their space yet, so compaction buffers keep
    /// theirs. Called at the end of each job, under no lock.
    pub(in crate::engine) fn keep_space_budget(&self) {
        let Some(budget) = self.jobs.settings.load().limits.space_bytes else { return };
        let used = self.jobs.storage.reclaimer.pack_bytes() + self.jobs.storage.devices.recycled_bytes();
        if used > budget / 2 {
            self.jobs.storage.free_what_is_dead(used - budget / 2);
        }
    }

    /// Bytes that may still be written, if the options set a budget. Memtables count as used, since they will be
    /// flushed. The inputs of running compactions, or of the next one, count again, since compactions write about as
    /// much before their inputs can be freed.
    fn space_left(&self, writer: &Writer) -> Option<u64> {
        let budget = self.jobs.settings.load().limits.space_bytes?;
        let in_memory = self.memtable_bytes();
        let compacting = self.jobs.compacting_bytes.load(Relaxed).max(self.pressure.load().l0_bytes);
        let files = self.jobs.storage.reclaimer.pack_bytes()
            + writer.wal.bytes()
            + self.jobs.storage.devices.recycled_bytes();
        let ingesting = self.ingesting_bytes.load(Relaxed);
        Some(budget.saturating_sub(files + in_memory + compacting + ingesting))
    }
}

/// What `batch` takes of the budget: its bytes twice, in the log and in tables.
fn needed_for(batch: &WriteBatch) -> u64 {
    2 * batch.bytes() as u64
}
