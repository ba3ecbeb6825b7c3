//! The events of a store as spans and events of `tracing`.

use std::fmt;
use std::time::Duration;

use terrace::env::sync::Mutex;
use terrace::{Error, EventListener, JobBegin, JobEnd, LoadStats, Stall};
use tracing::Span;
use tracing::field::{Empty, display};

/// Tells the events of a store to `tracing`, with the target `terrace`:
///
/// | what | as | level |
/// | --- | --- | --- |
/// | a flush, compaction or rewrite | a span `flush`, `compaction` or `rewrite` from begin to end, and an event in it at the end | debug |
/// | writers are slowed, or stopped | a span `slowed` or `stopped`, and an event in it at the end | info, warn |
/// | a job that failed and will be tried again | an event | warn |
/// | the store refuses writes from here on | an event | error |
/// | events were lost | an event | warn |
/// | a sample of the load | an event | trace |
///
/// ```
/// use std::sync::Arc;
/// # let dir = tempfile::tempdir().unwrap();
/// let spans = Arc::new(terrace_metrics::Spans::default());
/// let db = terrace::Db::builder(dir.path()).listener(spans).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Default)]
pub struct Spans {
    /// The spans of jobs that run.
    jobs: Mutex<Vec<(&'static str, JobBegin, Span)>>,
    /// The span of the stall that goes on.
    stall: Mutex<Option<Span>>,
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").finish_non_exhaustive()
    }
}

/// A span of a job that begins. A macro, for each of its uses is a place of its own to `tracing`, with its own name.
macro_rules! job_span {
    ($name:literal, $begin:ident) => {
        tracing::debug_span!(
            target: "terrace",
            $name,
            keyspace = $begin.keyspace,
            level = $begin.level,
            target_level = $begin.target,
            bytes_in = $begin.bytes_in,
            bytes_out = Empty,
            error = Empty,
        )
    };
}

impl Spans {
    fn begin(&self, job: &'static str, begin: &JobBegin, span: Span) {
        self.jobs.lock().push((job, begin.clone(), span));
    }

    /// Closes the span of a job. Of two that are alike, whichever began first.
    fn end(&self, job: &'static str, end: &JobEnd) {
        let span = {
            let mut jobs = self.jobs.lock();
            let found = jobs.iter().position(|(name, begin, _)| *name == job && *begin == end.begin);
            // Without a beginning, it was among the events that were lost.
            found.map_or_else(Span::none, |at| jobs.remove(at).2)
        };
        span.record("bytes_out", end.bytes_out);
        let seconds = end.time.as_secs_f64();
        match &end.error {
            None => {
                tracing::debug!(target: "terrace", parent: &span, job, bytes_out = end.bytes_out, seconds, "job ended");
            }
            Some(error) => {
                span.record("error", display(error));
                tracing::debug!(target: "terrace", parent: &span, job, %error, seconds, "job failed");
            }
        }
    }
}

impl EventListener for Spans {
    fn flush_begin(&self, flush: &JobBegin) {
        self.begin("flush", flush, job_span!("flush", flush));
    }

    fn flush_end(&self, flush: &JobEnd) {
        self.end("flush", flush);
    }

    fn compaction_begin(&self, compaction: &JobBegin) {
        self.begin("compaction", compaction, job_span!("compaction", compaction));
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        self.end("compaction", compaction);
    }

    fn rewrite_begin(&self, rewrite: &JobBegin) {
        self.begin("rewrite", rewrite, job_span!("rewrite", rewrite));
    }

    fn rewrite_end(&self, rewrite: &JobEnd) {
        self.end("rewrite", rewrite);
    }

    fn stall_begin(&self, stall: &Stall) {
        let reason = stall.reason.as_str();
        let span = if stall.stopped {
            tracing::warn_span!(target: "terrace", "stopped", reason)
        } else {
            tracing::info_span!(target: "terrace", "slowed", reason)
        };
        *self.stall.lock() = Some(span);
    }

    fn stall_end(&self, stall: &Stall, time: Duration) {
        let span = self.stall.lock().take().unwrap_or_else(Span::none);
        let (reason, seconds) = (stall.reason.as_str(), time.as_secs_f64());
        if stall.stopped {
            tracing::warn!(target: "terrace", parent: &span, reason, seconds, "writers were stopped");
        } else {
            tracing::info!(target: "terrace", parent: &span, reason, seconds, "writers were slowed");
        }
    }

    fn load(&self, load: &LoadStats) {
        tracing::trace!(
            target: "terrace",
            is_high = load.is_high,
            client_rate = load.client_rate,
            level0_runs = load.level0_runs,
            debt_bytes = load.debt_bytes,
            waiting_writers = load.waiting_writers,
            "load"
        );
    }

    fn background_error(&self, error: &Error) {
        tracing::warn!(target: "terrace", %error, kind = ?error.kind(), "a background job failed and will be tried again");
    }

    fn poisoned(&self, error: &Error) {
        tracing::error!(target: "terrace", %error, kind = ?error.kind(), "the store refuses writes until it is reopened");
    }

    fn lost(&self, events: u64) {
        // Ends may be among them: their spans would stay open for ever.
        self.jobs.lock().clear();
        tracing::warn!(target: "terrace", events, "events were lost: the listener was too slow");
    }
}
