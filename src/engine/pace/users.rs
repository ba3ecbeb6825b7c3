//! What users do: counters of the whole store, and their growth over a while.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::engine::shared::reads::Reads;
use crate::engine::shared::statistics::Statistics;
use crate::policy::UserLoad;
use crate::store::cache::{CacheCounts, TableCache};
use crate::store::files::meter::{Meter, ReadCause, WriteCause};

/// Where users' calls are counted.
#[derive(Debug)]
pub(in crate::engine) struct UserCounters {
    pub(in crate::engine) cache: Arc<TableCache>,
    pub(in crate::engine) meter: Arc<Meter>,
    pub(in crate::engine) statistics: Arc<Statistics>,
    pub(in crate::engine) reads: Arc<Reads>,
    pub(in crate::engine) block_bytes: u64,
}

/// Since the store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Counts {
    /// Blocks that were asked for, and those of 4 KiB that were read.
    asked: u64,
    /// Reads of blocks, and the time that they took.
    reads: (u64, Duration),
    read_bytes: u64,
    written_bytes: u64,
    lookups: u64,
    seeks: u64,
    returned_bytes: u64,
    missed_bytes: u64,
    log_bytes: u64,
    file_bytes: u64,
    held_up: Duration,
}

/// What users did over the last period.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Seen {
    at: Duration,
    counts: Counts,
    load: UserLoad,
}

impl UserCounters {
    pub(in crate::engine) fn counts(&self) -> Counts {
        let CacheCounts { hits, misses, reads, read_nanos, .. } = self.cache.counts();
        let reads = (reads, Duration::from_nanos(read_nanos));
        let read_bytes = self.meter.bytes_read(ReadCause::Get) + self.meter.bytes_read(ReadCause::Scan);
        let users = self.reads.sum();
        Counts {
            asked: hits + misses + read_bytes / (4 << 10),
            reads,
            read_bytes,
            written_bytes: self.statistics.user_bytes(),
            lookups: users.gets + users.multi_get_keys,
            seeks: users.seeks,
            returned_bytes: users.bytes,
            missed_bytes: misses * self.block_bytes,
            log_bytes: self.meter.bytes_written(WriteCause::Wal),
            file_bytes: self.meter.all_bytes(),
            held_up: Duration::from_nanos(self.statistics.stalled_nanos.load(Relaxed)),
        }
    }

    /// Bytes that compactions and rewrites have read and written.
    pub(in crate::engine) fn job_bytes(&self) -> u64 {
        let read = if planted!("limiter-counts-writes-alone") {
            0
        } else {
            self.meter.bytes_read(ReadCause::Compaction)
        };
        read + self.meter.bytes_written(WriteCause::Compaction)
            + self.meter.bytes_written(WriteCause::Rewrite)
    }
}

impl Counts {
    /// The growth since `before`, over `period`.
    fn since(&self, before: &Self, period: Duration) -> UserLoad {
        let grown = |count: fn(&Self) -> u64| count(self).saturating_sub(count(before));
        UserLoad {
            period,
            asked: grown(|counts| counts.asked),
            reads: u32::try_from(grown(|counts| counts.reads.0)).unwrap_or(u32::MAX),
            read_time: self.reads.1.saturating_sub(before.reads.1),
            read_bytes: grown(|counts| counts.read_bytes),
            written_bytes: grown(|counts| counts.written_bytes),
            lookups: grown(|counts| counts.lookups),
            seeks: grown(|counts| counts.seeks),
            returned_bytes: grown(|counts| counts.returned_bytes),
            missed_bytes: grown(|counts| counts.missed_bytes),
            log_bytes: grown(|counts| counts.log_bytes),
            file_bytes: grown(|counts| counts.file_bytes),
            held_up: self.held_up > before.held_up,
        }
    }
}

impl Seen {
    /// Nobody was there before `now`, nor is anything known of later.
    pub(in crate::engine) fn since(now: Duration) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// When the last period ended.
    pub(in crate::engine) fn at(&self) -> Duration {
        self.at
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
            let counts = count();
            let load = counts.since(&self.counts, period);
            *self = Self { at: now, counts, load };
        }
        self.load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_users_do_counts_for_the_period_that_it_was_in() {
        let counts = |reads, ms, written_bytes| Counts {
            asked: 2 * reads,
            reads: (reads, ms * MS),
            written_bytes,
            ..Counts::default()
        };
        let mut seen = Seen::default();
        let mut look = |ms, counts| seen.look(ms * MS, 20 * MS, || counts);
        let load = |ms, asked, reads, read_ms, written_bytes| UserLoad {
            period: ms * MS,
            asked,
            reads,
            read_time: read_ms * MS,
            written_bytes,
            ..UserLoad::default()
        };
        assert_eq!(look(19, counts(100, 30, 7)), UserLoad::default());
        assert_eq!(look(20, counts(120, 36, 9)), load(20, 240, 120, 36, 9));
        assert_eq!(look(39, counts(200, 60, 10)), load(20, 240, 120, 36, 9));
        assert_eq!(look(50, counts(220, 70, 11)), load(30, 200, 100, 34, 2));
    }
}
