//! Merges give way to readers who wait for the disk, as far as the pacer says.
//!
//! A merge asks between two pieces of its work, some milliseconds each, and pauses in proportion to what it has worked. It
//! holds no lock then, and what it has claimed keeps other merges off alone.

use std::cell::Cell;
use std::time::Duration;

use super::Engine;
use crate::env::sync::Mutex;
use crate::policy::ReadLoad;

/// Reads are looked at over this long.
const PERIOD: Duration = Duration::from_millis(20);

/// Shorter pauses are put off.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The longest pause: so late a merge hears that it is needed, or that the store is being closed.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// What readers have waited for, as it was seen last.
#[derive(Debug, Default)]
pub(super) struct Courtesy(Mutex<Seen>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: Duration,
    reads: u64,
    time: Duration,
    load: ReadLoad,
}

/// A job that gives way.
#[derive(Debug)]
pub(super) struct Courteous<'a> {
    engine: &'a Engine,
    /// Since when it has worked without a pause.
    since: Cell<Duration>,
}

impl Courteous<'_> {
    /// Pauses if the job has worked long enough for readers to expect it.
    pub(super) fn give_way(&self) {
        let env = &self.engine.env;
        let now = env.now();
        let share = self.engine.merge_share(now);
        if share >= 1.0 {
            self.since.set(now);
        } else if let Some(pause) = pause(now.saturating_sub(self.since.get()), share) {
            env.sleep(pause);
            self.since.set(env.now());
        }
    }
}

/// For how long a job pauses that has worked for so long and may work a `share` of its time, if it is to pause by now.
fn pause(worked: Duration, share: f64) -> Option<Duration> {
    let pause = worked.mul_f64((1.0 / share - 1.0).max(0.0)).min(PAUSE_MAX);
    (pause >= PAUSE_MIN).then_some(pause)
}

impl Seen {
    /// What readers have waited for over the last period, which ends now if it has lasted long enough. `reads` tells the
    /// number of their reads, and the time that these took, since the store was opened.
    fn look(&mut self, now: Duration, reads: impl FnOnce() -> (u64, Duration)) -> ReadLoad {
        let period = now.saturating_sub(self.at);
        if period >= PERIOD {
            let (reads, time) = reads();
            let load = ReadLoad {
                period,
                reads: u32::try_from(reads - self.reads).unwrap_or(u32::MAX),
                time: time.saturating_sub(self.time),
            };
            *self = Self { at: now, reads, time, load };
        }
        self.load
    }
}

impl Engine {
    /// For a job that begins.
    pub(super) fn courteous(&self) -> Courteous<'_> {
        Courteous { engine: self, since: Cell::new(self.env.now()) }
    }

    /// The share of its time that a merge may work.
    fn merge_share(&self, now: Duration) -> f64 {
        let reads = self.courtesy.0.lock().look(now, || self.cache.reads());
        self.settings().policy.pacer.merge_share(&self.pressure.load(), &reads)
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
    fn reads_count_for_the_period_that_they_were_in() {
        let mut seen = Seen::default();
        assert_eq!(seen.look(19 * MS, || (100, 30 * MS)), ReadLoad::default());
        let first = ReadLoad { period: 20 * MS, reads: 120, time: 36 * MS };
        assert_eq!(seen.look(20 * MS, || (120, 36 * MS)), first);
        assert_eq!(seen.look(39 * MS, || (200, 60 * MS)), first);
        let second = ReadLoad { period: 30 * MS, reads: 100, time: 34 * MS };
        assert_eq!(seen.look(50 * MS, || (220, 70 * MS)), second);
    }
}
