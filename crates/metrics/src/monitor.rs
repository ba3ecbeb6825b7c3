//! The monitor: a listener that notices what the statistics do not have.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use terrace::env::sync::Mutex;
use terrace::{Error, EventListener, JobEnd, Stall};

use crate::histogram::{CALL_BOUNDS, Histogram, JOB_BOUNDS};
use crate::picture::{Reading, Series};

/// Notices how long calls and jobs take, stalls as they happen, and errors. The store does not time its calls, so that
/// nobody pays who does not want it; the program that uses the store does, with [`Monitor::time`].
///
/// It is an [`EventListener`]: give it to [`terrace::Builder::listener`], together with others by
/// [`Listeners`](crate::Listeners). A timed call costs two looks at the clock and two additions.
///
/// ```
/// use std::sync::Arc;
/// use terrace_metrics::{Monitor, Operation};
/// # let dir = tempfile::tempdir().unwrap();
/// let monitor = Arc::new(Monitor::default());
/// let db = terrace::Db::builder(dir.path()).listener(monitor.clone()).open()?;
/// let name = monitor.time(Operation::Get, || db.get("ada"))?;
/// assert!(name.is_none());
/// # Ok::<(), terrace::Error>(())
/// ```
pub struct Monitor {
    operations: [Histogram; Operation::ALL.len()],
    jobs: [Histogram; Job::ALL.len()],
    stalls: Mutex<Stalls>,
    /// By origin and kind.
    errors: Mutex<BTreeMap<(&'static str, String), Errors>>,
    is_poisoned: AtomicBool,
    lost: AtomicU64,
}

/// A call of the store that [`Monitor::time`] times.
///
/// ```
/// use terrace_metrics::Operation;
/// assert_eq!(Operation::MultiGet.name(), "multi_get");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// A lookup of one key.
    Get,
    /// A lookup of many keys in one call.
    MultiGet,
    /// A scan, from its first seek to the last entry that is wanted.
    Scan,
    /// A put, a delete or a batch, waits for durability included.
    Write,
    /// The commit of a transaction.
    Commit,
    /// A sync, or a wait for a ticket.
    Sync,
}

#[derive(Clone, Copy)]
enum Job {
    Flush,
    Compaction,
    Rewrite,
}

/// Stalls, by what the listener has heard.
#[derive(Default)]
struct Stalls {
    /// How long they were, of each reason and state that there was.
    episodes: BTreeMap<(String, &'static str), Histogram>,
    /// Reason and state of the one that goes on.
    now: Option<(String, &'static str)>,
}

/// Errors of one origin and kind.
#[derive(Clone, Copy, Default)]
struct Errors {
    count: u64,
    /// Seconds since 1970.
    last: f64,
}

/// Where an error was met: the label `origin`.
const OF_CALL: &str = "call";
const OF_BACKGROUND: &str = "background";
const OF_POISON: &str = "poison";

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Get, Self::MultiGet, Self::Scan, Self::Write, Self::Commit, Self::Sync];

    /// Its name in the label `operation`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::MultiGet => "multi_get",
            Self::Scan => "scan",
            Self::Write => "write",
            Self::Commit => "commit",
            Self::Sync => "sync",
        }
    }
}

impl Job {
    const ALL: [Self; 3] = [Self::Flush, Self::Compaction, Self::Rewrite];

    fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Compaction => "compaction",
            Self::Rewrite => "rewrite",
        }
    }
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            operations: Operation::ALL.map(|_| Histogram::new(CALL_BOUNDS)),
            jobs: Job::ALL.map(|_| Histogram::new(JOB_BOUNDS)),
            stalls: Mutex::default(),
            errors: Mutex::default(),
            is_poisoned: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

impl Monitor {
    /// Calls `call` and notes how long that took, and its error if it failed.
    ///
    /// ```
    /// use terrace_metrics::{Monitor, Operation};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrace::Db::open(dir.path())?;
    /// let monitor = Monitor::default();
    /// // All of a scan, which may fail anywhere.
    /// let users = monitor.time(Operation::Scan, || db.prefix("user/")?.collect::<terrace::Result<Vec<_>>>())?;
    /// # assert!(users.is_empty());
    /// # Ok::<(), terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of `call`.
    #[expect(clippy::disallowed_methods, reason = "the program that calls lives in real time")]
    pub fn time<T>(
        &self,
        operation: Operation,
        call: impl FnOnce() -> terrace::Result<T>,
    ) -> terrace::Result<T> {
        let start = Instant::now();
        let outcome = call();
        self.add(operation, start.elapsed());
        if let Err(error) = &outcome {
            self.add_error(error);
        }
        outcome
    }

    /// Notes that an operation took `time`, for callers that have timed it themselves.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use terrace_metrics::{Monitor, Operation};
    /// Monitor::default().add(Operation::Scan, Duration::from_millis(3));
    /// ```
    pub fn add(&self, operation: Operation, time: Duration) {
        self.operations[operation as usize].add(time);
    }

    /// Notes an error of a call that the store has returned.
    pub fn add_error(&self, error: &Error) {
        self.note(OF_CALL, error);
    }

    #[expect(clippy::disallowed_methods, reason = "the time of an error is for people")]
    fn note(&self, origin: &'static str, error: &Error) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut errors = self.errors.lock();
        let of_kind = errors.entry((origin, format!("{:?}", error.kind()))).or_default();
        of_kind.count += 1;
        of_kind.last = now;
    }

    fn job_ended(&self, job: Job, end: &JobEnd) {
        self.jobs[job as usize].add(end.time);
    }
}

/// The labels `reason` and `state`.
fn reason_and_state(stall: &Stall) -> (String, &'static str) {
    (stall.reason.clone(), if stall.stopped { "stopped" } else { "slowed" })
}

impl Stalls {
    fn episodes(&mut self, stall: &Stall) -> &Histogram {
        self.episodes.entry(reason_and_state(stall)).or_insert_with(|| Histogram::new(JOB_BOUNDS))
    }
}

impl EventListener for Monitor {
    fn flush_end(&self, flush: &JobEnd) {
        self.job_ended(Job::Flush, flush);
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        self.job_ended(Job::Compaction, compaction);
    }

    fn rewrite_end(&self, rewrite: &JobEnd) {
        self.job_ended(Job::Rewrite, rewrite);
    }

    fn stall_begin(&self, stall: &Stall) {
        let mut stalls = self.stalls.lock();
        // So that it is there, with nothing in it, before the first of its kind ends.
        stalls.episodes(stall);
        stalls.now = Some(reason_and_state(stall));
    }

    fn stall_end(&self, stall: &Stall, time: Duration) {
        let mut stalls = self.stalls.lock();
        stalls.episodes(stall).add(time);
        stalls.now = None;
    }

    fn background_error(&self, error: &Error) {
        self.note(OF_BACKGROUND, error);
    }

    fn poisoned(&self, error: &Error) {
        self.is_poisoned.store(true, Relaxed);
        self.note(OF_POISON, error);
    }

    fn lost(&self, events: u64) {
        self.lost.fetch_add(events, Relaxed);
    }
}

/// What the catalogue asks for. Each adds the series of one metric.
impl Monitor {
    pub(crate) fn operations(&self, series: &mut Vec<Series>) {
        for (operation, times) in Operation::ALL.iter().zip(&self.operations) {
            series.push(Series::new(&[("operation", operation.name())], Reading::Histogram(times.buckets())));
        }
    }

    pub(crate) fn jobs(&self, series: &mut Vec<Series>) {
        for (job, times) in Job::ALL.iter().zip(&self.jobs) {
            series.push(Series::new(&[("kind", job.name())], Reading::Histogram(times.buckets())));
        }
    }

    pub(crate) fn stall_episodes(&self, series: &mut Vec<Series>) {
        for ((reason, state), times) in &self.stalls.lock().episodes {
            series.push(Series::new(
                &[("reason", reason), ("state", state)],
                Reading::Histogram(times.buckets()),
            ));
        }
    }

    pub(crate) fn stalled(&self, series: &mut Vec<Series>) {
        let stalls = self.stalls.lock();
        for kind @ (reason, state) in stalls.episodes.keys() {
            let is_now = stalls.now.as_ref() == Some(kind);
            series.push(Series::new(&[("reason", reason), ("state", state)], Reading::Count(is_now.into())));
        }
    }

    pub(crate) fn errors(&self, series: &mut Vec<Series>) {
        self.each_kind(series, |errors| Reading::Count(errors.count));
    }

    pub(crate) fn last_errors(&self, series: &mut Vec<Series>) {
        self.each_kind(series, |errors| Reading::Real(errors.last));
    }

    fn each_kind(&self, series: &mut Vec<Series>, read: fn(&Errors) -> Reading) {
        for ((origin, kind), errors) in &*self.errors.lock() {
            series.push(Series::new(&[("origin", origin), ("kind", kind)], read(errors)));
        }
    }

    pub(crate) fn poisoned(&self, series: &mut Vec<Series>) {
        series.push(Series::new(&[], Reading::Count(self.is_poisoned.load(Relaxed).into())));
    }

    pub(crate) fn lost(&self, series: &mut Vec<Series>) {
        series.push(Series::new(&[], Reading::Count(self.lost.load(Relaxed))));
    }
}
