//! Counters of ids, which are never given twice.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::edit::Counters;
use crate::types::{Epoch, PackId, SegmentId, TableId};

/// Counters of ids, each the next free one.
#[derive(Debug)]
pub(crate) struct IdCounters {
    table: AtomicU64,
    pack: AtomicU64,
    epoch: AtomicU64,
    segment: AtomicU64,
}

impl IdCounters {
    pub(crate) fn new(next: &Counters) -> Self {
        let Counters { table, pack, epoch, segment, .. } = next;
        Self { table: table.0.into(), pack: pack.0.into(), epoch: epoch.0.into(), segment: segment.0.into() }
    }

    pub(crate) fn table(&self) -> TableId {
        TableId(self.table.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn pack(&self) -> PackId {
        PackId(self.pack.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.fetch_add(1, Ordering::Relaxed))
    }

    /// The log has used up the segment ids before `next`.
    pub(crate) fn segments_used(&self, next: SegmentId) {
        self.segment.store(next.0, Ordering::Relaxed);
    }

    /// Puts the counters into `counters`.
    pub(in crate::engine) fn fill(&self, counters: &mut Counters) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counters.table = TableId(load(&self.table));
        counters.pack = PackId(load(&self.pack));
        counters.epoch = Epoch(load(&self.epoch));
        counters.segment = SegmentId(load(&self.segment));
    }
}
