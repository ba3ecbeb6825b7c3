//! What a store tells its owner about its background work.

use std::time::Duration;

use crate::error::Error;

/// Hears of flushes, compactions, rewrites, stalls and failures. Set with [`crate::Builder::listener`]; each method does nothing unless
/// it is overridden.
///
/// The calls come from one thread of their own that holds no lock of the store, in the order of the events and a moment
/// after them. So a listener may take its time, call the store, or panic: the store goes on. A listener that is slower
/// than the events misses some and is told how many. Closing the store does not wait for the listener, which hears the
/// last events a moment later.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use terrace::{Db, EventListener, JobEnd};
///
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
///
/// impl EventListener for Flushed {
///     fn flush_end(&self, flush: &JobEnd) {
///         self.0.fetch_add(flush.bytes_out, Ordering::Relaxed);
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let flushed = Arc::new(Flushed::default());
/// let db = Db::builder(dir.path()).listener(flushed.clone()).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
pub trait EventListener: Send + Sync + 'static {
    /// A flush begins.
    fn flush_begin(&self, flush: &JobBegin) {
        let _ = flush;
    }

    /// A flush has ended, well or not.
    fn flush_end(&self, flush: &JobEnd) {
        let _ = flush;
    }

    /// A compaction begins, or an intra-L0 compaction, whose target is its level. Moves, which rewrite nothing, are not told.
    fn compaction_begin(&self, compaction: &JobBegin) {
        let _ = compaction;
    }

    /// A compaction has ended, well or not.
    fn compaction_end(&self, compaction: &JobEnd) {
        let _ = compaction;
    }

    /// A rewrite begins: tables are copied as they are, so that packs can be given up of which little lives.
    fn rewrite_begin(&self, rewrite: &JobBegin) {
        let _ = rewrite;
    }

    /// A rewrite has ended, well or not.
    fn rewrite_end(&self, rewrite: &JobEnd) {
        let _ = rewrite;
    }

    /// Writers are slowed down or stopped from here on.
    fn stall_begin(&self, stall: &Stall) {
        let _ = stall;
    }

    /// A write found that a stall is over, which had begun `time` before.
    fn stall_end(&self, stall: &Stall, time: Duration) {
        let _ = (stall, time);
    }

    /// A background job has failed and will be tried again; nothing is lost.
    fn background_error(&self, error: &Error) {
        let _ = error;
    }

    /// The store refuses writes from here on, because of `error`, until it is opened anew.
    fn poisoned(&self, error: &Error) {
        let _ = error;
    }

    /// This many events were lost lately, because the listener was too slow.
    fn lost(&self, events: u64) {
        let _ = events;
    }
}

/// A flush, compaction or rewrite that begins.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct JobBegin {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Level that a compaction takes from; for a flush, the level it writes to; for a rewrite, the level whose tables it copies.
    pub level: u8,
    /// Level that it writes to.
    pub target: u8,
    /// Bytes of the memtable or of the tables that it reads.
    pub bytes_in: u64,
}

/// A flush, compaction or rewrite that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobEnd {
    /// How it began.
    pub begin: JobBegin,
    /// Bytes of the packs that it wrote; 0 if it failed.
    pub bytes_out: u64,
    /// How long it took.
    pub time: Duration,
    /// Why it failed, if it did.
    pub error: Option<Error>,
}

/// What keeps writers waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The reason, in the words of [`crate::StallStats`].
    pub reason: String,
    /// Whether writers wait for a job, or are only slowed down.
    pub stopped: bool,
}
