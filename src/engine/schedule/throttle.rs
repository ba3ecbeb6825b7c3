//! Background throttling: compactions pause while readers wait for the disk, as far as the pacer says.
//!
//! A compaction asks between two pieces of its work, some milliseconds each, and pauses in proportion to the time
//! that it has worked.
//!
//! Invariant: it holds no lock while it pauses. Its claims keep off only other compactions.
//!
//! It touches what [`Throttle`] holds: counters, settings and the load.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::engine::lifecycle::settings::Settings;
use crate::engine::observe::statistics::Statistics;
use crate::engine::write::pressure::Pressure;
use crate::env::Env;
use crate::env::sync::OrderedMutex;
use crate::policy::UserLoad;
use crate::store::cache::{CacheCounts, TableCache};
use crate::store::files::meter::{Meter, ReadCause};

/// Users are looked at over this long.
const PERIOD: Duration = Duration::from_millis(20);

/// Shorter pauses are put off.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The longest pause: so late a compaction hears that it is needed, or that the store is being closed.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// What users did, as it was seen last.
#[derive(Debug)]
pub(in crate::engine) struct Throttle {
    pub(in crate::engine) env: Arc<dyn Env>,
    pub(in crate::engine) settings: Arc<ArcSwap<Settings>>,
    /// How much there is to do, and whether a writer waits for it.
    pub(in crate::engine) pressure: Arc<Pressure>,
    // What users have asked for.
    pub(in crate::engine) cache: Arc<TableCache>,
    pub(in crate::engine) meter: Arc<Meter>,
    pub(in crate::engine) statistics: Arc<Statistics>,
    pub(in crate::engine) seen: OrderedMutex<Seen>,
}

/// What users did over the last period.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Seen {
    at: Duration,
    counts: Counts,
    load: UserLoad,
}

/// Since the store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Counts {
    /// Blocks that were asked for, and those of 4 KiB that were read.
    asked: u64,
    /// Reads of blocks, and the time that they took.
    reads: (u64, Duration),
    written_bytes: u64,
}

/// A job that is throttled.
#[derive(Debug)]
pub(in crate::engine) struct ThrottledJob<'a> {
    throttle: &'a Throttle,
    /// Since when it has worked without a pause.
    since: Cell<Duration>,
    /// All pauses together.
    paused: Cell<Duration>,
}

impl ThrottledJob<'_> {
    /// Pauses if the job has worked long enough for readers to expect it.
    pub(in crate::engine) fn throttle(&self) {
        let env = &self.throttle.env;
        let now = env.now();
        let share = self.throttle.compaction_share(now);
        if share >= 1.0 {
            self.since.set(now);
        } else if let Some(pause) = pause(now.saturating_sub(self.since.get()), share) {
            env.sleep(pause);
            self.since.set(env.now());
            self.paused.set(self.paused.get() + self.since.get().saturating_sub(now));
        }
    }

    /// For how long the job has paused.
    pub(in crate::engine) fn paused(&self) -> Duration {
        self.paused.get()
    }
}

/// The pause of a job that has worked for this long and may work a `share` of its time; `None` if it is not to pause
/// yet.
fn pause(worked: Duration, share: f64) -> Option<Duration> {
    let pause = worked.mul_f64((1.0 / share - 1.0).max(0.0)).min(PAUSE_MAX);
    (pause >= PAUSE_MIN).then_some(pause)
}

impl Counts {
    pub(in crate::engine) fn of(cache: &TableCache, meter: &Meter, statistics: &Statistics) -> Self {
        let CacheCounts { hits, misses, reads, read_nanos, .. } = cache.counts();
        let reads = (reads, Duration::from_nanos(read_nanos));
        let read_bytes = meter.bytes_read(ReadCause::Get) + meter.bytes_read(ReadCause::Scan);
        let asked = hits + misses + read_bytes / (4 << 10);
        Self { asked, reads, written_bytes: statistics.user_bytes() }
    }
}

impl Seen {
    /// Nobody was there before `now`, nor is anything known of later.
    pub(in crate::engine) fn since(now: Duration) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// What users did over the last period, which ends now if it has lasted for `period_min`.
    pub(in crate::engine) fn look(
        &mut self,
        now: Duration,
        period_min: Duration,
        count: impl FnOnce() -> Counts,
    ) -> UserLoad {
        let period = now.saturating_sub(self.at);
        if period >= period_min {
            let (before, counts) = (self.counts, count());
            let load = UserLoad {
                period,
                asked: counts.asked.saturating_sub(before.asked),
                reads: u32::try_from(counts.reads.0 - before.reads.0).unwrap_or(u32::MAX),
                read_time: counts.reads.1.saturating_sub(before.reads.1),
                written_bytes: counts.written_bytes.saturating_sub(before.written_bytes),
            };
            *self = Self { at: now, counts, load };
        }
        self.load
    }
}

impl Throttle {
    /// For a job that begins.
    pub(in crate::engine) fn begin(&self) -> ThrottledJob<'_> {
        ThrottledJob { throttle: self, since: Cell::new(self.env.now()), paused: Cell::default() }
    }

    /// The share of its time that a compaction may work.
    fn compaction_share(&self, now: Duration) -> f64 {
        // Who is stopped writes nothing by which the pacer could tell that compactions are late.
        if self.pressure.holds_up_a_writer() {
            return 1.0;
        }
        let users =
            self.seen.lock().look(now, PERIOD, || Counts::of(&self.cache, &self.meter, &self.statistics));
        self.settings.load().policy.pacer.compaction_share(&self.pressure.load(), &users)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_are_in_proportion_to_the_work_and_neither_short_nor_long() {
        assert_eq!(pause(2 * MS, 0.25), Some(6 * MS));
        assert_eq!(pause(MS / 4, 0.25), None);
        assert_eq!(pause(100 * MS, 0.25), Some(PAUSE_MAX));
        assert_eq!(pause(100 * MS, 1.0), None);
    }

    #[test]
    fn what_users_do_counts_for_the_period_that_it_was_in() {
        let counts =
            |reads, ms, written_bytes| Counts { asked: 2 * reads, reads: (reads, ms * MS), written_bytes };
        let mut seen = Seen::default();
        let mut look = |ms, counts| seen.look(ms * MS, PERIOD, || counts);
        assert_eq!(look(19, counts(100, 30, 7)), UserLoad::default());
        let first =
            UserLoad { period: 20 * MS, asked: 240, reads: 120, read_time: 36 * MS, written_bytes: 9 };
        assert_eq!(look(20, counts(120, 36, 9)), first);
        assert_eq!(look(39, counts(200, 60, 10)), first);
        let second =
            UserLoad { period: 30 * MS, asked: 200, reads: 100, read_time: 34 * MS, written_bytes: 2 };
        assert_eq!(look(50, counts(220, 70, 11)), second);
    }
}
