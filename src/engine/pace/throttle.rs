//! Background throttling: jobs pause as far as the pacer says.
//!
//! A compaction asks between two pieces of its work, some milliseconds each. It pauses in proportion to the time that it
//! has worked, while readers wait for the disk; as long as all jobs together are above their rate; and as long as it is
//! suspended.
//!
//! A job that stays suspended for too long is given up: what it has written goes, its claims are released, and what it was to
//! do is planned again. For a suspended job keeps tables on the disk that have died, and keeps other jobs off its keys. What
//! begins while it would be suspended waits before it reads anything, so giving that up costs nothing.
//!
//! Where peaks are long and the times between them short, each attempt would be given up, and what it had done be lost. So
//! each one that is lost doubles the time for which the next ones may stay suspended, until one that was suspended in its
//! midst has come to its end.
//!
//! Invariant: it holds no lock while it pauses. Its claims keep off only other compactions. No suspension lasts for longer
//! than [`SUSPENDED_MAX`], doubled for each attempt that was lost in a row, and not every attempt is lost (I11).
//!
//! It touches what [`Throttle`] holds: counters, settings and the load.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::limiter::Limiter;
use super::sampler::LoadSampler;
use super::users::Seen;
use crate::env::sync::OrderedMutex;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Budget, JobClass};

/// Users are looked at over this long.
const PERIOD: Duration = Duration::from_millis(20);

/// Shorter pauses are put off.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The longest pause: so late a compaction hears that it is needed, or that the store is being closed.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A job that has been suspended for this long at a stretch is given up, or for a multiple of it after others were lost.
const SUSPENDED_MAX: Duration = Duration::from_secs(60);

/// How often that is doubled at most: up to 17 hours.
const DOUBLINGS_MAX: u32 = 10;

/// What jobs go by when they pause.
#[derive(Debug)]
pub(in crate::engine) struct Throttle {
    /// The load, and what users do.
    pub(in crate::engine) sampler: LoadSampler,
    pub(in crate::engine) limiter: Limiter,
    /// What users did, as it was seen last.
    pub(in crate::engine) seen: OrderedMutex<Seen>,
    /// Jobs that were given up in their midst since one that was suspended there has come to its end.
    pub(in crate::engine) lost: AtomicU32,
}

/// A job that is throttled.
#[derive(Debug)]
pub(in crate::engine) struct ThrottledJob<'a> {
    throttle: &'a Throttle,
    class: JobClass,
    /// Since when it has worked without a pause.
    since: Cell<Duration>,
    /// All pauses together.
    paused: Cell<Duration>,
    /// Whether it has begun to work.
    has_begun: Cell<bool>,
    /// Since when it has been suspended, if it is.
    suspended: Cell<Option<Duration>>,
    /// Whether it has been suspended in its midst.
    was_suspended: Cell<bool>,
    /// Whether it has been suspended for too long.
    is_given_up: Cell<bool>,
    /// Whether the thread has a normal priority.
    is_urgent: Cell<bool>,
}

impl Drop for ThrottledJob<'_> {
    fn drop(&mut self) {
        if self.was_suspended.get() {
            let lost = self.throttle.lost.load(Relaxed);
            let is_lost = self.is_given_up.get() && !planted!("lost-jobs-not-counted");
            self.throttle.lost.store(if is_lost { lost.saturating_add(1) } else { 0 }, Relaxed);
        }
        if self.is_urgent.get() {
            self.throttle.sampler.env.set_urgent(false);
        }
    }
}

impl ThrottledJob<'_> {
    /// Pauses if the job has worked long enough for users to expect it. `check` is asked before each pause; its error ends
    /// the job. An error after which the job [is given up](Self::is_given_up) is nobody's failure.
    pub(in crate::engine) fn throttle(&self, check: impl Fn() -> Result<()>) -> Result<()> {
        check()?;
        while let Some(pause) = self.next_pause() {
            if self.is_given_up.get() {
                return Err(Error::new(ErrorKind::Busy, "the job was suspended for too long".to_owned()));
            }
            let start = self.throttle.sampler.env.now();
            self.throttle.sampler.env.sleep(pause);
            self.since.set(self.throttle.sampler.env.now());
            self.paused.set(self.paused.get() + self.since.get().saturating_sub(start));
            check()?;
        }
        self.has_begun.set(true);
        Ok(())
    }

    fn next_pause(&self) -> Option<Duration> {
        let now = self.throttle.sampler.env.now();
        let budget = self.throttle.budget(now, self.class);
        if budget.is_urgent != self.is_urgent.replace(budget.is_urgent) {
            self.throttle.sampler.env.set_urgent(budget.is_urgent);
        }
        if budget.is_suspended {
            let since = self.suspended.get().unwrap_or(now);
            self.suspended.set(Some(since));
            self.was_suspended.set(self.has_begun.get());
            self.is_given_up.set(now.saturating_sub(since) >= self.throttle.suspended_max());
            return Some(PAUSE_MAX);
        }
        self.suspended.set(None);
        let for_rate = self.throttle.rate_pause(now, &budget);
        if budget.share >= 1.0 {
            self.since.set(now);
            return Some(for_rate.min(PAUSE_MAX)).filter(|pause| *pause >= PAUSE_MIN);
        }
        let for_share = pause(now.saturating_sub(self.since.get()), budget.share);
        for_share.max(Some(for_rate.min(PAUSE_MAX)).filter(|pause| *pause >= PAUSE_MIN))
    }

    /// Whether the job has been suspended for too long, and must end without a result.
    pub(in crate::engine) fn is_given_up(&self) -> bool {
        self.is_given_up.get()
    }

    /// For how long the job has paused.
    pub(in crate::engine) fn paused(&self) -> Duration {
        self.paused.get()
    }
}

/// A flush looks this often, in records, for its place. A memtable may have a few alone.
const RECORDS_PER_LOOK: u64 = 1024;

/// A flush. It never pauses.
#[derive(Debug)]
pub(in crate::engine) struct ThrottledFlush<'a> {
    throttle: &'a Throttle,
    is_urgent: Cell<bool>,
    /// Records since it looked for its place; `None` before it did.
    records: Cell<Option<u64>>,
}

impl ThrottledFlush<'_> {
    /// It has written so many records: now and then it takes the processors that the pacer allows it.
    pub(in crate::engine) fn wrote(&self, records: u64) {
        let since = self.records.get().map(|since| since + records);
        let is_time = since.is_none_or(|since| since >= RECORDS_PER_LOOK);
        self.records.set(Some(since.filter(|_| !is_time).unwrap_or(0)));
        if is_time {
            self.take_place();
        }
    }

    fn take_place(&self) {
        let sampler = &self.throttle.sampler;
        let is_urgent = sampler.settings.load().policy.pacer.flush_is_urgent(&sampler.load());
        if is_urgent != self.is_urgent.replace(is_urgent) {
            sampler.env.set_urgent(is_urgent);
        }
    }
}

impl Drop for ThrottledFlush<'_> {
    fn drop(&mut self) {
        self.throttle.sampler.running.end_flush();
        if self.is_urgent.get() {
            self.throttle.sampler.env.set_urgent(false);
        }
    }
}

/// The pause of a job that has worked for this long and may work a `share` of its time; `None` if it is not to pause
/// yet.
fn pause(worked: Duration, share: f64) -> Option<Duration> {
    let pause = worked.mul_f64((1.0 / share - 1.0).max(0.0)).min(PAUSE_MAX);
    (pause >= PAUSE_MIN).then_some(pause)
}

impl Throttle {
    /// For a job that begins.
    pub(in crate::engine) fn begin(&self, class: JobClass) -> ThrottledJob<'_> {
        let since = Cell::new(self.sampler.env.now());
        let (paused, has_begun, suspended, was_suspended) = Default::default();
        let (is_given_up, is_urgent) = Default::default();
        ThrottledJob {
            throttle: self,
            class,
            since,
            paused,
            has_begun,
            suspended,
            was_suspended,
            is_given_up,
            is_urgent,
        }
    }

    /// For how long a job may stay suspended.
    fn suspended_max(&self) -> Duration {
        SUSPENDED_MAX * 2_u32.pow(self.lost.load(Relaxed).min(DOUBLINGS_MAX))
    }

    /// For a flush that begins.
    pub(in crate::engine) fn begin_flush(&self) -> ThrottledFlush<'_> {
        self.sampler.running.begin_flush();
        ThrottledFlush { throttle: self, is_urgent: Cell::new(false), records: Cell::new(None) }
    }

    /// How fast a job may go on.
    fn budget(&self, now: Duration, class: JobClass) -> Budget {
        self.sampler.look();
        let users = self.seen.lock().look(now, PERIOD, || self.sampler.users.counts());
        self.sampler.settings.load().policy.pacer.budget(&self.sampler.load(), &users, class)
    }

    /// The pause until all jobs together are at their rate again.
    fn rate_pause(&self, now: Duration, budget: &Budget) -> Duration {
        let done = self.sampler.users.job_bytes();
        match budget.bytes_per_second {
            Some(rate) => self.limiter.pause(now, done, rate),
            None => {
                self.limiter.free(now, done);
                Duration::ZERO
            }
        }
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
}
