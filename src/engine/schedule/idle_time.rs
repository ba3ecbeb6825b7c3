//! Idle-time compaction: level 0, and what tombstones hide, is compacted while nobody uses the store.
//!
//! Readers pay for an intra-L0 compaction once they have been held up for as long as it takes
//! ([`read_debt`](crate::engine::keyspace::read_debt)). In idle time it holds up nobody, so it is done before
//! they come. It runs part by part, and when users come back the next part waits. What it writes is bounded
//! ([`Layout::idle_intra_l0`]).
//!
//! (Section 3 of "DLC: A New Compaction Scheme for LSM-tree with High Stability and Low Latency" lets compactions of
//! level 0 wait for times of low load. These have no other reason to wait.)
//!
//! [`Layout::idle_intra_l0`]: crate::policy::Layout::idle_intra_l0

use std::time::Duration;

use crate::engine::keyspace::tree::View;
use crate::engine::pace::users::Seen;
use crate::engine::schedule::background::Background;
use crate::engine::shared::wake::BackgroundThreads;
use crate::env::sync::OrderedMutex;
use crate::error::{ErrorKind, Result};

/// The shortest period over which users are watched. While they are there and something waits for idle time, this is
/// also how often they are looked at.
pub(in crate::engine) const IDLE_PERIOD: Duration = Duration::from_millis(100);

/// What users did, as compaction threads without work saw it last.
#[derive(Debug)]
pub(in crate::engine) struct IdleTime(OrderedMutex<Seen>);

impl IdleTime {
    /// For a store that is opened now.
    pub(in crate::engine) fn since(now: Duration) -> Self {
        Self(OrderedMutex::leaf(Seen::since(now)))
    }
}

/// Divisor: memtables are sealed in idle time if their tombstones hide this part of what the tables hold,
const HIDDEN_PARTS: u64 = 8;

/// and at least so many bytes.
const HIDDEN_BYTES_MIN: u64 = 1 << 20;

/// Whether the tombstones of the active memtable hide a good part of what the tables hold and point to, if each hides a record of
/// the mean size.
pub(super) fn holds_tombstones(view: &View) -> bool {
    let tombstones = view.active.tombstones();
    if tombstones == 0 || !view.sealed.is_empty() {
        return false;
    }
    let (bytes, entries) = view.version.runs().fold((0, 0), |(bytes, entries), (_, run)| {
        (bytes + run.bytes() + run.value_bytes(), entries + run.entries())
    });
    let hidden = u128::from(bytes) * u128::from(tombstones.min(entries)) / u128::from(entries.max(1));
    hidden >= HIDDEN_BYTES_MIN.into() && hidden * u128::from(HIDDEN_PARTS) >= bytes.into()
}

impl Background {
    /// Whether there may be something to do in idle time.
    pub(in crate::engine) fn could_use_idle_time(&self) -> bool {
        self.jobs.settings.load().policy.layout.has_intra_l0()
            && !self.jobs.storage.is_short_of_space()
            && self.attention().has_use_for_idle_time()
    }

    /// Seals the memtables whose tombstones hide a good part of their trees, so that the space comes back though nobody
    /// writes any more. Returns whether there was one. The segment of the log ends with them, so that it can be released.
    pub(in crate::engine) fn seal_tombstones(&self) -> Result<bool> {
        let due = self.attention().holding_tombstones();
        if due.is_empty() || self.jobs.storage.is_short_of_space() {
            return Ok(false);
        }
        let mut writer = self.jobs.log.writer()?.lock();
        self.jobs.health.check_writable()?;
        self.jobs.log.visibility.wait_for(writer.last_seq).map_err(|_| self.jobs.health.gave_up())?;
        self.jobs.storage.with_space(|| writer.wal.roll()).map_err(|error| match error.kind() {
            ErrorKind::DiskFull => error,
            _ => self.jobs.alarm.poison(error),
        })?;
        self.jobs.ids.segments_used(writer.wal.next_id());
        self.jobs.preallocator.ask();
        for tree in due {
            tree.seal(writer.last_seq);
        }
        writer.active_bytes = self.active_bytes();
        drop(writer);
        self.sample_load();
        self.scheduler.wake();
        Ok(true)
    }

    /// Whether users leave the machine alone, or almost.
    pub(in crate::engine) fn is_idle(&self) -> bool {
        let costs = self.pressure.load().costs;
        let users = &self.jobs.throttle.sampler.users;
        self.idle_time.0.lock().look(self.jobs.env.now(), IDLE_PERIOD, || users.counts()).is_idle(&costs)
    }
}
