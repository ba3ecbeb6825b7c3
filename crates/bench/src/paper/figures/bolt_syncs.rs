//! The expected number of syncs of a load, by its jobs: to save syncs is the purpose of a store whose tables share
//! files.
//!
//! A flush syncs its file and the manifest. A compaction syncs its files, all but the last of which are full, and the
//! manifest. A move syncs only the manifest. Names of files are synced besides: one by one, as in LevelDB, or several
//! at once before they are needed. So they are counted apart. Below level 0 the number of jobs is the number of bytes
//! that sink, divided by the size of a group. So syncs are in inverse proportion to the group size, above a floor of
//! flushes and compactions of level 0.

use std::sync::Arc;

use terrace::env::sync::Mutex;
use terrace::tree::{Cutter, PackLayout};
use terrace::{EventListener, JobEnd, Options, Stats};

/// Syncs of files and manifest that jobs should have taken.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Predicted {
    /// By flushes and compactions of level 0, whatever the size of groups.
    pub(super) floor: u64,
    /// By compactions of deeper levels.
    pub(super) deep: u64,
}

/// Adds up what the jobs of a store should take.
#[derive(Debug)]
pub(super) struct Jobs {
    /// Bytes of a full file.
    file_bytes: u64,
    predicted: Mutex<Predicted>,
}

impl Jobs {
    /// For a store with `options`.
    pub(super) fn new(options: &Options) -> Arc<Self> {
        let file_bytes = match (&options.tree.files.packs, &options.tree.cutter) {
            (PackLayout::Many { bytes_max }, _) => *bytes_max,
            (_, Cutter::Size(size) | Cutter::Prefix(size)) => size.table_bytes,
            // None of the stores that are compared is of another shape.
            _ => u64::MAX,
        };
        Arc::new(Self { file_bytes, predicted: Mutex::default() })
    }

    pub(super) fn predicted(&self) -> Predicted {
        *self.predicted.lock()
    }
}

impl EventListener for Jobs {
    fn flush_end(&self, flush: &JobEnd) {
        // One file, however large the memtable.
        self.predicted.lock().floor += u64::from(flush.error.is_none()) * 2;
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        if compaction.error.is_some() {
            return;
        }
        let syncs = compaction.bytes_out.div_ceil(self.file_bytes) + 1;
        let mut predicted = self.predicted.lock();
        if compaction.begin.level == 0 { predicted.floor += syncs } else { predicted.deep += syncs }
    }
}

/// Syncs of files and manifest that a store has taken.
pub(super) fn counted(stats: &Stats) -> u64 {
    stats.syncs.flush + stats.syncs.compaction + stats.syncs.manifest
}
