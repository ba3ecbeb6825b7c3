//! Where the outputs of a merge are cut.
//!
//! `Size` is LevelDB's `ShouldStopBefore`: at the target size, and earlier when the output has come to overlap so much
//! of the level after the target that merging it later would cost too much. A cut falls between user keys only (I1):
//! the merge asks once per user key, before its first entry.

use std::sync::Arc;

use crate::catalog::{Run, TableMeta};
use crate::types::UpperBound;

/// The cutters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cutter {
    /// By size and by overlap with the level after the target.
    Size(SizeConfig),
}

/// Limits of an output table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeConfig {
    /// Bytes at which an output is complete.
    pub table_bytes: u64,
    /// An output is cut once it spans more than this many bytes of the level after the target.
    pub grandparent_bytes_max: u64,
}

/// What the next cut depends on.
#[derive(Clone, Copy, Debug)]
pub struct CutView<'a> {
    /// Bytes in the current output; 0 while it is empty.
    pub output_bytes: u64,
    /// User key of the next entry, which is not the user key of the last one.
    pub next_key: &'a [u8],
}

/// The cutting of one sorted stream of outputs.
#[derive(Clone, Debug)]
pub struct CutState {
    config: SizeConfig,
    grandparents: Run,
    // Index behind `current`, the first grandparent that is not wholly before the last key.
    next: usize,
    current: Option<Arc<TableMeta>>,
    // Bytes of grandparents that the current output has passed.
    passed_bytes: u64,
}

impl Cutter {
    /// Starts to cut a stream of keys, in order; `grandparents` is the run of the level after the target.
    #[must_use]
    pub fn start(&self, grandparents: Run) -> CutState {
        let Self::Size(config) = *self;
        let current = grandparents.first().cloned();
        CutState { config, grandparents, next: 1, current, passed_bytes: 0 }
    }
}

impl CutState {
    /// Where the next table of the level after the target ends: a place to cut where there are range tombstones alone.
    #[must_use]
    pub fn next_boundary(&self) -> Option<&UpperBound> {
        self.current.as_ref().map(|table| &table.range.end)
    }

    /// Whether the current output ends before the next key.
    pub fn cut(&mut self, view: &CutView<'_>) -> bool {
        while let Some(table) = self.current.take_if(|table| !table.range.end.admits(view.next_key)) {
            if view.output_bytes > 0 {
                self.passed_bytes += table.bytes();
            }
            self.current = self.grandparents.get(self.next).cloned();
            self.next += 1;
        }
        let full = view.output_bytes >= self.config.table_bytes
            || self.passed_bytes > self.config.grandparent_bytes_max;
        let cut = full && view.output_bytes > 0;
        if cut {
            self.passed_bytes = 0;
        }
        cut
    }
}
