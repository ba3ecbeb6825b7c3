//! Windows of half a second: what clients saw in one, and what went on in the background.

use std::time::Duration;

use super::machine::Look;
use super::waits::Waits;
use crate::latency::Latency;
use crate::store::Counters;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_millis(500);

/// Windows of which more was stolen are left out.
pub const STOLEN_SHARE_MAX: f64 = 0.02;

/// Processor time of the background, as a share of the window, from which on there is background work.
const BUSY_SHARE: f64 = 0.05;

/// Bytes written beyond the log's from which on there is background work.
const BUSY_BYTES: u64 = 1 << 20;

/// Bytes that a log takes for one byte of keys and values, at most: its records have heads, and its last page is written
/// again.
const LOG_BYTES_PER_BYTE: f64 = 1.5;

/// Latencies that occurred, in rising order: nanoseconds, and how often. As small as it can be, since there are thousands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<(u64, u64)>);

impl Counts {
    /// What is in `latency`.
    pub fn of(latency: &Latency) -> Self {
        Self(latency.counts().collect())
    }

    /// Adds those of another client.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|one| one.1).sum()
    }

    /// The least that at least this share of them does not exceed, in microseconds; none of none.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let rank = (self.count() as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.0.iter().find(|one| {
            below += one.1;
            below >= rank
        });
        found.map(|one| one.0 as f64 / 1000.0)
    }

    /// Adds all to `latency`.
    pub fn add_to(&self, latency: &mut Latency) {
        self.0.iter().for_each(|&(nanos, count)| latency.record_many(nanos, count));
    }
}

/// One kind of operation in one window.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// From the scheduled arrival to the end.
    pub arrival: Counts,
    /// From the call to its return.
    pub service: Counts,
    /// What slow ones waited for.
    pub waits: Waits,
}

impl Kind {
    pub fn merge(&mut self, other: Self) {
        self.arrival.merge(other.arrival);
        self.service.merge(other.service);
        self.waits.add(&other.waits);
    }
}

/// What an engine tells of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inside {
    /// Bytes that flushes, compactions and rewrites wrote.
    pub background_bytes: u64,
    /// Flushes and compactions that ran in the window, as far as they are known at its end.
    pub jobs: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub stall_ms: f64,
    pub level0_bytes: u64,
    pub debt_bytes: u64,
}

/// Half a second of a course.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Seconds from the start of the course.
    pub start_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Operations that were to arrive.
    pub offered: u64,
    pub reads: Kind,
    pub writes: Kind,
    /// What clients waited for between operations.
    pub between: Waits,
    /// Bytes of keys and values that were put.
    pub user_bytes: u64,
    /// Processor time of threads that are no client's, in seconds.
    pub background_s: f64,
    /// Bytes that the process wrote.
    pub written_bytes: u64,
    /// Bytes that devices read for the process.
    pub read_bytes: u64,
    /// Those of them that were read for clients.
    pub disk_bytes: u64,
    /// Share of the machine's time that went to others.
    pub stolen_share: f64,
    /// Share of the machine's time that other processes and the kernel's threads took.
    pub others_share: f64,
    /// Disk space at the end.
    pub space_bytes: u64,
    /// None where the engine does not tell.
    pub inside: Option<Inside>,
}

impl Window {
    /// Operations that ended.
    pub fn completed(&self) -> u64 {
        self.reads.service.count() + self.writes.service.count()
    }

    /// Whether too much of it was stolen.
    pub fn is_stolen(&self) -> bool {
        self.stolen_share > STOLEN_SHARE_MAX
    }

    /// Bytes written beyond the log's.
    pub fn written_beyond_log(&self) -> u64 {
        self.written_bytes.saturating_sub((self.user_bytes as f64 * LOG_BYTES_PER_BYTE) as u64)
    }

    /// Share of one processor that the background took.
    pub fn background_share(&self) -> f64 {
        self.background_s / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Whether there was background work, told from outside.
    pub fn is_busy_outside(&self) -> bool {
        self.background_share() > BUSY_SHARE || self.written_beyond_log() > BUSY_BYTES
    }

    /// Whether there was background work, told by the engine.
    pub fn is_busy_inside(&self) -> Option<bool> {
        self.inside.as_ref().map(|inside| inside.background_bytes > 0 || inside.jobs > 0)
    }

    /// Notes what is between two looks.
    pub fn looked(&mut self, earlier: &Look, later: &Look) {
        self.seconds = (later.at - earlier.at).as_secs_f64();
        self.background_s = later.background_s(earlier);
        self.written_bytes = later.written_bytes.saturating_sub(earlier.written_bytes);
        self.read_bytes = later.read_bytes.saturating_sub(earlier.read_bytes);
        self.stolen_share = later.stolen_share(earlier);
        self.others_share = later.others_share(earlier);
    }
}

impl Inside {
    /// Between two looks at the engine; none where it does not tell.
    pub fn between(earlier: &Counters, later: &Counters) -> Option<Self> {
        if later.level_bytes.is_empty() {
            return None;
        }
        let since = later.since(earlier);
        let written = |cause| since.written.get(cause).copied().unwrap_or(0);
        Some(Self {
            background_bytes: ["flush", "compaction", "rewrite"].into_iter().map(written).sum(),
            jobs: since.running_jobs,
            cache_hits: since.cache_hits,
            cache_misses: since.cache_misses,
            stall_ms: since.stall_micros as f64 / 1000.0,
            level0_bytes: since.level_bytes[0],
            debt_bytes: since.debt_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ByCause;

    fn counts(latencies: &[(u64, u64)]) -> Counts {
        let mut latency = Latency::coarse();
        latencies.iter().for_each(|&(nanos, count)| latency.record_many(nanos, count));
        Counts::of(&latency)
    }

    #[test]
    fn quantiles_are_those_of_the_latencies_to_one_percent() {
        let mut all = counts(&[(1000, 98), (5_000_000, 1)]);
        all.merge(counts(&[(1000, 1)]));
        assert_eq!(all.count(), 100);
        for (quantile, us) in [(0.5, 1.0), (0.99, 1.0), (1.0, 5000.0)] {
            let told = all.quantile_us(quantile).unwrap();
            assert!((told / us - 1.0).abs() < 0.01, "{told} at {quantile}");
        }
        assert_eq!(Counts::default().quantile_us(0.99), None);
    }

    #[test]
    fn background_is_told_by_time_or_by_bytes_beyond_the_log() {
        let quiet = Window {
            seconds: 0.5,
            background_s: 0.02,
            user_bytes: 10 << 20,
            written_bytes: 14 << 20,
            ..Window::default()
        };
        assert!(!quiet.is_busy_outside(), "the log takes one and a half times the bytes at most");
        assert!(Window { background_s: 0.1, ..quiet.clone() }.is_busy_outside());
        assert!(Window { written_bytes: 17 << 20, ..quiet.clone() }.is_busy_outside());
        assert_eq!(quiet.is_busy_inside(), None);
    }

    #[test]
    fn an_engine_that_tells_is_busy_when_jobs_write_or_run() {
        let at = |flushed, running_jobs| Counters {
            written: ByCause::from([("flush", flushed), ("wal", flushed * 3)]),
            level_bytes: vec![7, 100],
            running_jobs,
            ..Counters::default()
        };
        let busy = |earlier, later| {
            let window = Window { inside: Inside::between(&earlier, &later), ..Window::default() };
            window.is_busy_inside()
        };
        assert_eq!(busy(at(5, 0), at(5, 0)), Some(false));
        assert_eq!(busy(at(5, 0), at(6, 0)), Some(true));
        assert_eq!(busy(at(5, 1), at(5, 1)), Some(true));
        assert_eq!(busy(Counters::default(), Counters::default()), None);
    }
}
