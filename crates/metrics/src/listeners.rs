//! Several listeners as one: a store takes only one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use terrace::{Error, EventListener, JobBegin, JobEnd, LoadStats, Stall};

/// Tells every event to each of several listeners, in their order. One that panics keeps those behind it from that event.
///
/// ```
/// use std::sync::Arc;
/// use terrace::EventListener;
/// use terrace_metrics::{Listeners, Monitor};
///
/// struct Alarm;
///
/// impl EventListener for Alarm {
///     fn poisoned(&self, error: &terrace::Error) {
///         eprintln!("wake somebody: {error}");
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let listeners = Listeners::of([Arc::new(Monitor::default()) as Arc<dyn EventListener>, Arc::new(Alarm)]);
/// let db = terrace::Db::builder(dir.path()).listener(Arc::new(listeners)).open()?;
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Listeners(Vec<Arc<dyn EventListener>>);

impl Listeners {
    /// These listeners.
    pub fn of(listeners: impl IntoIterator<Item = Arc<dyn EventListener>>) -> Self {
        Self(listeners.into_iter().collect())
    }

    fn each(&self, tell: impl Fn(&dyn EventListener)) {
        self.0.iter().for_each(|listener| tell(&**listener));
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listeners").field(&self.0.len()).finish()
    }
}

impl EventListener for Listeners {
    fn flush_begin(&self, flush: &JobBegin) {
        self.each(|listener| listener.flush_begin(flush));
    }

    fn flush_end(&self, flush: &JobEnd) {
        self.each(|listener| listener.flush_end(flush));
    }

    fn compaction_begin(&self, compaction: &JobBegin) {
        self.each(|listener| listener.compaction_begin(compaction));
    }

    fn compaction_end(&self, compaction: &JobEnd) {
        self.each(|listener| listener.compaction_end(compaction));
    }

    fn rewrite_begin(&self, rewrite: &JobBegin) {
        self.each(|listener| listener.rewrite_begin(rewrite));
    }

    fn rewrite_end(&self, rewrite: &JobEnd) {
        self.each(|listener| listener.rewrite_end(rewrite));
    }

    fn stall_begin(&self, stall: &Stall) {
        self.each(|listener| listener.stall_begin(stall));
    }

    fn stall_end(&self, stall: &Stall, time: Duration) {
        self.each(|listener| listener.stall_end(stall, time));
    }

    fn load(&self, load: &LoadStats) {
        self.each(|listener| listener.load(load));
    }

    fn load_sample(&self, sample: &str) {
        self.each(|listener| listener.load_sample(sample));
    }

    fn background_error(&self, error: &Error) {
        self.each(|listener| listener.background_error(error));
    }

    fn poisoned(&self, error: &Error) {
        self.each(|listener| listener.poisoned(error));
    }

    fn lost(&self, events: u64) {
        self.each(|listener| listener.lost(events));
    }
}
