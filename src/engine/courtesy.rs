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
            return;
        }
        let pause = now.saturating_sub(self.since.get()).mul_f64(1.0 / share - 1.0).min(PAUSE_MAX);
        if pause >= PAUSE_MIN {
            env.sleep(pause);
            self.since.set(env.now());
        }
    }
}

impl Engine {
    /// For a job that begins.
    pub(super) fn courteous(&self) -> Courteous<'_> {
        Courteous { engine: self, since: Cell::new(self.env.now()) }
    }

    /// The share of its time that a merge may work.
    fn merge_share(&self, now: Duration) -> f64 {
        let mut seen = self.courtesy.0.lock();
        let period = now.saturating_sub(seen.at);
        if period >= PERIOD {
            let (reads, time) = self.cache.reads();
            let load = ReadLoad {
                period,
                reads: u32::try_from(reads - seen.reads).unwrap_or(u32::MAX),
                time: time.saturating_sub(seen.time),
            };
            *seen = Seen { at: now, reads, time, load };
        }
        let reads = seen.load;
        drop(seen);
        self.settings().policy.pacer.merge_share(&self.pressure.load(), &reads)
    }
}
