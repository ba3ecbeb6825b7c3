//! Where a scan reads a level, and where the compaction buffer of the level.
//!
//! LSbM-tree, algorithm 4, takes the buffer for a range as a whole if it has all of it. Here a scan goes by intervals: where
//! the list of a level lacks nothing it reads the list's tables, elsewhere the level's. At the end of an interval it changes
//! over, in either direction, because each source shows nothing outside of its own.

use std::sync::Arc;

use crate::catalog::{BufferList, CompactionBuffer, Run};
use crate::types::{Key, KeyRange, UpperBound};

/// The part of all keys in which a source is read.
#[derive(Clone)]
pub(in crate::engine) struct Region {
    buffer: Arc<CompactionBuffer>,
    level: u8,
    /// The level itself.
    run: Run,
    /// Whether the source is one of the buffer, or else the level.
    is_buffer: bool,
}

impl Region {
    /// Where the buffer is read in place of `run`, the only run of `level`, and where that is.
    pub(super) fn both(buffer: &Arc<CompactionBuffer>, level: u8, run: &Run) -> [Self; 2] {
        [true, false].map(|is_buffer| Self { buffer: buffer.clone(), level, run: run.clone(), is_buffer })
    }

    /// Whether the source is one of the buffer.
    pub(super) fn is_buffer(&self) -> bool {
        self.is_buffer
    }

    /// The list that is read.
    pub(super) fn list(&self) -> &BufferList {
        self.buffer.list(self.level)
    }

    /// A range around `key` in which the source is read everywhere or nowhere, and which of the two.
    pub(super) fn span(&self, key: &[u8]) -> (KeyRange, bool) {
        let (lacks, is_missing) = self.list().lacks().span(key);
        if is_missing && !planted!("buffer-scanned-where-it-lacks-entries") {
            return (lacks, !self.is_buffer);
        }
        if !self.is_buffer {
            return (lacks, false);
        }
        // What went down from the level has left it, and is not forgotten in its list yet.
        let (range, is_there) = around(&self.run, key);
        (range.intersection(&lacks).unwrap_or(range), is_there)
    }
}

/// The table of `run` that has `key` in its range, or the gap in which it lies.
fn around(run: &Run, key: &[u8]) -> (KeyRange, bool) {
    let at = run.lower_bound(key);
    let next = run.get(at);
    if let Some(table) = next.filter(|table| table.range.contains(key)) {
        return (table.range.clone(), true);
    }
    let before = at.checked_sub(1).and_then(|before| run.get(before));
    let start = match before.map(|table| &table.range.end) {
        Some(UpperBound::Excluded(end)) => end.clone(),
        Some(UpperBound::Unbounded) | None => Key::default(),
    };
    let end = next.map_or(UpperBound::Unbounded, |table| UpperBound::Excluded(table.range.start.clone()));
    (KeyRange { start, end }, false)
}
