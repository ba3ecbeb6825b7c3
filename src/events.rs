//! Events: how a store notifies its owner of background work.

use std::time::Duration;

use crate::error::Error;
use crate::stats::LoadStats;

/// Receives events: flushes, compactions, rewrites, stalls and failures. Set it with [`crate::Builder::listener`].
/// Each method does nothing unless it is overridden.
///
/// The calls come from a thread of their own that holds no lock of the store, in the order of the events and shortly
/// after them. So a listener may take its time, call the store, or panic: the store goes on. A listener that is
/// slower than the events misses some, and [`EventListener::lost`] says how many. Closing the store does not wait for
/// the listener, which may receive the last events afterwards.
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

    /// A flush has ended, with success or failure.
    fn flush_end(&self, flush: &JobEnd) {
        let _ = flush;
    }

    /// A compaction begins. The target of an intra-L0 compaction is level 0. Moves, which rewrite nothing, are no
    /// events.
    fn compaction_begin(&self, compaction: &JobBegin) {
        let _ = compaction;
    }

    /// A compaction has ended, with success or failure.
    fn compaction_end(&self, compaction: &JobEnd) {
        let _ = compaction;
    }

    /// A rewrite begins: live tables are copied as they are, so that packs that are mostly dead can be given up.
    fn rewrite_begin(&self, rewrite: &JobBegin) {
        let _ = rewrite;
    }

    /// A rewrite has ended, with success or failure.
    fn rewrite_end(&self, rewrite: &JobEnd) {
        let _ = rewrite;
    }

    /// Writers are slowed down or stopped from here on.
    fn stall_begin(&self, stall: &Stall) {
        let _ = stall;
    }

    /// A stall is over. A write noticed it `time` after the stall began.
    fn stall_end(&self, stall: &Stall, time: Duration) {
        let _ = (stall, time);
    }

    /// The load was sampled. While users do anything it is once in the pacer's interval, or later.
    fn load(&self, load: &LoadStats) {
        let _ = load;
    }

    /// The same sample with all that pacers decide by: the text of a [`LoadSample`](crate::LoadSample), for a
    /// [`replay`](crate::replay).
    fn load_sample(&self, sample: &str) {
        let _ = sample;
    }

    /// A background job has failed and will be tried again; nothing is lost.
    fn background_error(&self, error: &Error) {
        let _ = error;
    }

    /// The store refuses writes from here on, because of `error`, until it is opened again.
    fn poisoned(&self, error: &Error) {
        let _ = error;
    }

    /// This many events were lost since the last call, because the listener was too slow.
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
    /// Level to which the job writes.
    pub target: u8,
    /// Bytes of the memtable or of the tables that the job reads.
    pub bytes_in: u64,
}

/// A flush, compaction or rewrite that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobEnd {
    /// The event of its beginning.
    pub begin: JobBegin,
    /// Bytes of the packs that the job wrote; 0 if it failed, or was given up ([`crate::CompactionStats::given_up`]).
    pub bytes_out: u64,
    /// How long it took.
    pub time: Duration,
    /// Why it failed, if it did.
    pub error: Option<Error>,
}

/// A stall: why writers wait.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The reason, in the words of [`crate::StallStats`].
    pub reason: String,
    /// `true` if writers wait for a job, `false` if they are only slowed down.
    pub stopped: bool,
}
