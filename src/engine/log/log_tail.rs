//! The tail of the log: what a flush may ask of the log.
//!
//! A flush asks from which segment the log is still needed, and releases the segments before it. [`LogTail`] takes
//! the writer's lock for a moment, and never holds it through a sync.
//!
//! Invariant: a segment is released only after the edit that holds its entries is durable. So [`LogTail::release`]
//! comes after the install of the edit.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::writer::{Writer, writable};
use crate::engine::keyspace::Trees;
use crate::engine::keyspace::tree::Tree;
use crate::engine::shared::alarm::Alarm;
use crate::engine::shared::visibility::Visibility;
use crate::engine::space::preallocator::Preallocator;
use crate::env::sync::OrderedMutex;
use crate::error::Result;
use crate::format::names::FileName;
use crate::store::files::recycled::RecycledFiles;
use crate::store::memtable::Memtable;
use crate::types::{KeyspaceId, SegmentId, Seq};

/// The end of the log that flushes cut off.
#[derive(Debug)]
pub(in crate::engine) struct LogTail {
    /// `None` in a store that was opened for reading alone.
    pub(in crate::engine) writer: Option<Arc<OrderedMutex<Writer>>>,
    pub(in crate::engine) visibility: Arc<Visibility>,
    /// Tells which entries are in memory alone.
    pub(in crate::engine) trees: Arc<ArcSwap<Trees>>,
    pub(in crate::engine) alarm: Arc<Alarm>,
    /// Where segments go.
    pub(in crate::engine) recycled: Arc<RecycledFiles>,
    pub(in crate::engine) preallocator: Arc<Preallocator>,
}

impl LogTail {
    /// The writer's lock. Fails in a store that was opened for reading alone.
    pub(in crate::engine) fn writer(&self) -> Result<&OrderedMutex<Writer>> {
        writable(self.writer.as_deref())
    }

    /// The oldest log segment that is still needed once the memtables of `flushed`, one of each keyspace and sealed at
    /// `upto` or before, are in tables. Syncs the log where a crash could otherwise lose entries as old as those that
    /// the flush keeps, or a part of their batch.
    pub(in crate::engine) fn prepare(
        &self,
        flushed: &BTreeMap<KeyspaceId, Arc<Memtable>>,
        upto: Seq,
    ) -> Result<SegmentId> {
        let (floor, log) = {
            let writer = self.writer()?.lock();
            self.visibility.wait_for(writer.last_seq).map_err(|_| self.alarm.health.gave_up())?;
            let trees = self.trees.load();
            let unflushed = |tree: &Arc<Tree>| tree.first_unflushed(flushed.get(&tree.id()));
            let first = trees.values().filter_map(unflushed).min();
            let log = first.is_some_and(|first| first <= upto).then(|| writer.wal.durable().clone());
            let first = first.filter(|_| !planted!("log-released-though-another-keyspace-needs-it"));
            (writer.wal.floor(first.unwrap_or(writer.last_seq.plus(1))), log)
        };
        // Without the writer's lock: what is appended meanwhile is newer, and needs no older segment.
        if let Some(log) = log
            && !planted!("flush-before-the-log-is-synced")
        {
            self.alarm.health.check_writable()?;
            log.sync().map_err(|error| self.alarm.poison(error))?;
        }
        Ok(floor)
    }

    /// Makes durable what is in the log.
    pub(in crate::engine) fn sync(&self) -> Result<()> {
        let log = self.writer()?.lock().wal.durable().clone();
        self.alarm.health.check_writable()?;
        log.sync().map_err(|error| self.alarm.poison(error))
    }

    /// Releases the log before `floor`, which the manifest does not need any more.
    pub(in crate::engine) fn release(&self, floor: SegmentId) -> Result<()> {
        let (released, log) = {
            let mut writer = self.writer()?.lock();
            (writer.wal.release(floor), writer.wal.durable().clone())
        };
        for (segment, length) in released {
            // Needs no barrier, nor to succeed: a segment below the floor is removed at the next open.
            let _ = self.recycled.give(FileName::Wal(segment), length);
        }
        if log.has_waiters() {
            // It makes what is left of older segments durable.
            self.preallocator.ask();
        }
        Ok(())
    }
}
