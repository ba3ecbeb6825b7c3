//! Range deletes that may hide whole tables: what the policy drops tables by, unread.
//!
//! A range tombstone lies in a memtable or a table, and hides older entries from there. What hides a table as a whole is noted here
//! besides, when it is written, and after an open for those that lie in memtables and tables. It is forgotten once no older table
//! lies in its range. Then compactions do the rest: they read the tables that reach over an end of the range.
//!
//! Nothing is lost with what is noted here but time: the tombstones themselves are where they were.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::tree::View;
use crate::env::sync::OrderedMutex;
use crate::policy::is_over_tables;
use crate::types::{KeyRange, RangeTombstone, Seq};

/// Range deletes that are noted at a time, at most. The others are looked for when there is room.
const NOTED_MAX: usize = 256;

/// Whether `tombstone` reaches to keys of a sealed memtable, which may be flushed into tables under it.
fn is_over_sealed(view: &View, tombstone: &RangeTombstone) -> bool {
    let meets = |(first, last): (&[u8], &[u8])| tombstone.range.overlaps(&KeyRange::new(first, last));
    view.sealed.iter().any(|sealed| sealed.memtable.ends().is_some_and(meets))
}

/// The range deletes of a keyspace that may hide whole tables.
#[derive(Debug, Default)]
pub(crate) struct RangeDeletes {
    noted: OrderedMutex<Vec<RangeTombstone>>,
    /// Whether `noted` is not empty.
    any: AtomicBool,
    /// Whether memtables or tables may have tombstones that are not noted: after an open, or when there was no room.
    unread: AtomicBool,
}

impl RangeDeletes {
    /// Tables may have tombstones that are not noted.
    pub(in crate::engine) fn mark_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Whether that is so. From now on it is not.
    pub(in crate::engine) fn take_unread(&self) -> bool {
        let has_room = || self.noted.lock().len() <= NOTED_MAX / 2;
        self.unread.load(Relaxed) && has_room() && self.unread.swap(false, Relaxed)
    }

    /// Whether any is noted, or tables have some that are not.
    pub(in crate::engine) fn is_waiting(&self) -> bool {
        self.any.load(Relaxed) || self.unread.load(Relaxed)
    }

    /// Notes `tombstone` if it hides a whole table of `view`, or may hide one that is yet to be flushed. Returns whether it did.
    pub(in crate::engine) fn note(&self, tombstone: RangeTombstone, view: &View) -> bool {
        if !is_over_tables(&view.version, &tombstone) && !is_over_sealed(view, &tombstone) {
            return false;
        }
        let mut noted = self.noted.lock();
        // A wider one that is newer does for them.
        noted.retain(|older| older.seq > tombstone.seq || !tombstone.range.covers(&older.range));
        let has_room = noted.len() < NOTED_MAX;
        if has_room {
            noted.push(tombstone);
            self.any.store(true, Relaxed);
        } else {
            // It is found again when there is room.
            self.mark_unread();
        }
        has_room
    }

    /// Those that readers at `visible` and later see. What hides nothing any more is forgotten; `is_busy`: jobs are running in the
    /// tree that may bring in older tables.
    pub(in crate::engine) fn list(&self, view: &View, visible: Seq, is_busy: bool) -> Vec<RangeTombstone> {
        if !self.any.load(Relaxed) {
            return Vec::new();
        }
        let mut noted = self.noted.lock();
        if view.sealed.is_empty() && !is_busy {
            noted.retain(|tombstone| tombstone.seq > visible || is_over_tables(&view.version, tombstone));
            self.any.store(!noted.is_empty(), Relaxed);
        }
        noted.iter().filter(|tombstone| tombstone.seq <= visible).cloned().collect()
    }
}
