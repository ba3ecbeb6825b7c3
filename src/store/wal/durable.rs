//! How much of the log is durable, and the sync that makes more of it durable.
//!
//! Nothing here needs the lock on the log, so writers append while others sync.
//!
//! # Invariants
//!
//! * A segment is synced only after all older segments.
//! * `synced` of a segment counts only bytes whose segment, up to there, and all older segments are durable.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::env::sync::OrderedMutex;
use crate::error::Result;
use crate::store::files::file::StoreFile;
use crate::store::files::meter::WriteCause;
use crate::types::{SegmentId, Seq};

/// A segment that is being written, or that is complete and not known to be durable.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) id: SegmentId,
    pub(super) file: StoreFile,
    /// Bytes that the operating system has accepted.
    appended: AtomicU64,
    /// Length of the prefix that is durable, all older segments included.
    synced: AtomicU64,
}

impl OpenSegment {
    /// A segment that holds `appended` bytes.
    pub(super) fn new(id: SegmentId, file: StoreFile, appended: u64) -> Self {
        Self { id, file, appended: appended.into(), synced: AtomicU64::new(0) }
    }

    pub(super) fn appended_to(&self, offset: u64) {
        self.appended.store(offset, Release);
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Acquire)
    }

    fn is_durable(&self) -> bool {
        self.synced() == self.appended.load(Acquire)
    }

    /// Makes durable what has been appended by now. Call it only once all older segments are durable.
    fn sync(&self) -> Result<()> {
        let upto = self.appended.load(Acquire);
        if self.synced() < upto {
            self.file.sync(WriteCause::Wal)?;
            self.synced.fetch_max(upto, Release);
        }
        Ok(())
    }
}

/// The segments that are not durable, and how far the log goes.
#[derive(Debug)]
pub(crate) struct Durable {
    /// Oldest first. The last one is the current one, durable or not.
    segments: OrderedMutex<Vec<Arc<OpenSegment>>>,
    /// Sequence number of the newest operation that the operating system has accepted.
    appended: AtomicU64,
    /// Whether somebody waits for syncs.
    has_waiters: AtomicBool,
}

impl Durable {
    pub(super) fn new(current: Arc<OpenSegment>, appended: Seq) -> Self {
        Self {
            segments: OrderedMutex::leaf(vec![current]),
            appended: appended.0.into(),
            has_waiters: AtomicBool::new(false),
        }
    }

    /// Sequence number of the newest operation in the log.
    pub(crate) fn appended(&self) -> Seq {
        Seq(self.appended.load(Acquire))
    }

    /// Makes everything up to [`Durable::appended`], as it is now, durable. After a failure the outcome is unknown.
    pub(crate) fn sync(&self) -> Result<()> {
        self.sync_segments(0)
    }

    /// Makes all segments but the current one durable, so that a synced write has only that one to wait for.
    pub(crate) fn sync_old(&self) -> Result<()> {
        self.sync_segments(1)
    }

    fn sync_segments(&self, except_last: usize) -> Result<()> {
        let segments = self.segments.lock().clone();
        let from = if planted!("older-log-not-synced") { segments.len() - 1 } else { 0 };
        segments[from..segments.len() - except_last].iter().try_for_each(|segment| segment.sync())?;
        let mut segments = self.segments.lock();
        let current = segments.len() - 1;
        let mut at = 0..;
        segments.retain(|segment| at.next() == Some(current) || !segment.is_durable());
        Ok(())
    }

    /// Notes that somebody waits for syncs, so that work to make them quick is worth it.
    pub(crate) fn await_syncs(&self) {
        self.has_waiters.store(true, Relaxed);
    }

    /// Whether anybody has ever waited for a sync.
    pub(crate) fn has_waiters(&self) -> bool {
        self.has_waiters.load(Relaxed)
    }

    /// Whether everything in the log is durable.
    pub(super) fn all(&self) -> bool {
        self.segments.lock().iter().all(|segment| segment.is_durable())
    }

    pub(super) fn appended_to(&self, seq: Seq) {
        self.appended.store(seq.0, Release);
    }

    pub(super) fn rolled_to(&self, current: Arc<OpenSegment>) {
        self.segments.lock().push(current);
    }

    /// Forgets the segments before `floor`: nothing in them is needed.
    pub(super) fn released(&self, floor: SegmentId) {
        self.segments.lock().retain(|segment| segment.id >= floor);
    }
}
