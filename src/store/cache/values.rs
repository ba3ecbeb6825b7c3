//! Separated values in the cache: each is an entry of its own, keyed by its value table and its place there.
//!
//! A compaction moves pointers and no values. So what is warm stays warm. Values are admitted as other large records are.

use std::sync::atomic::Ordering::Relaxed;

use super::{Entry, TableCache};
use crate::error::Result;
use crate::format::value_table::ValuePointer;
use crate::store::cache::row_cache::Pinned;
use crate::store::files::meter::ReadCause;
use crate::types::{Buffer, DeviceId, TableId};

/// A value that takes more than one part in this many of what an entry may take is not kept: as many others would go for it.
const KEPT_PART: u64 = 4;

/// The cache key of a value.
fn key_of(pointer: &ValuePointer) -> (TableId, u64) {
    (pointer.table, pointer.offset.into())
}

impl TableCache {
    /// The value, if it is in memory.
    pub(in crate::store) fn cached_value(&self, pointer: &ValuePointer) -> Option<Pinned> {
        let counts = self.counts.mine();
        if let Some(Entry::Value(value)) = self.entry(&key_of(pointer)) {
            counts.hits.fetch_add(1, Relaxed);
            let range = 0..value.len();
            return Some((value, range));
        }
        counts.misses.fetch_add(1, Relaxed);
        None
    }

    /// Whether the value is in memory. That is no use of it.
    pub(in crate::store) fn has_value(&self, pointer: &ValuePointer) -> bool {
        self.entries.contains_key(&key_of(pointer))
    }

    /// Keeps a value that was read for users, if it is admitted.
    pub(in crate::store) fn keep_value(&self, pointer: &ValuePointer, value: &Buffer, cause: ReadCause) {
        let (table, place) = (pointer.table, pointer.offset.into());
        if value.len() as u64 > self.entry_bytes_max.load(Relaxed) / KEPT_PART {
            return;
        }
        let is_wanted = match cause {
            ReadCause::Scan => self.admits_unit(table, place),
            _ => self.admits_row(table, place),
        };
        if is_wanted {
            self.keep(key_of(pointer), Entry::Value(value.clone()), None);
        }
    }

    /// Counts a read of a value, and how long it takes.
    pub(in crate::store) fn timed_value(
        &self,
        device: DeviceId,
        pointer: &ValuePointer,
        cause: ReadCause,
        read: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let devices = self.packs.devices();
        let started = devices.now();
        read()?;
        let ended = devices.now();
        if cause.is_users() {
            devices.note_read(device, pointer.stored.into(), (started, ended));
            let counts = self.counts.mine();
            counts.reads.fetch_add(1, Relaxed);
            let nanos = ended.saturating_sub(started).as_nanos();
            counts.read_nanos.fetch_add(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
        }
        Ok(())
    }
}
