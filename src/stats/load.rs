//! The load, as the pacer sees it.

use std::time::Duration;

/// A sample of the load: what users did over an interval, what waits to be done, and what the pacer makes of it. See
/// [`Stats::load`](crate::Stats::load) and [`EventListener::load`](crate::EventListener::load). Rates are in bytes per second.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrace::Db::open(dir.path())?;
/// let load = db.stats().load;
/// assert!(!load.is_high && load.waiting_writers == 0);
/// # Ok::<(), terrace::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadStats {
    /// How long the interval was.
    pub interval: Duration,
    /// Keys that users looked up in it.
    pub lookups: u64,
    /// Seeks of iterators.
    pub seeks: u64,
    /// Bytes of keys and values that lookups and iterators returned.
    pub returned_bytes: u64,
    /// Bytes of keys and values that users wrote.
    pub written_bytes: u64,
    /// Bytes that users' lookups and iterators read from files.
    pub read_bytes: u64,
    /// How many times they read.
    pub reads: u64,
    /// What these reads took together. Over the interval, it is the mean number of users' reads in flight.
    pub read_time: Duration,
    /// Bytes of the blocks that were not in the block cache when they were asked for.
    pub missed_bytes: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Bytes read and written for whatever cause, background work included.
    pub file_bytes: u64,
    /// Whether writers were slowed or stopped.
    pub held_up: bool,
    /// Writers that wait now until there is less to do.
    pub waiting_writers: u64,
    /// Bytes in the memtables that take writes.
    pub active_bytes: u64,
    /// Sealed memtables that wait for their flush; small ones that are flushed together count as one.
    pub sealed_memtables: u64,
    /// What level 0 counts for, in runs; of the keyspace where that is most.
    pub level0_runs: u64,
    /// Bytes in level 0; of the keyspace where that is most.
    pub level0_bytes: u64,
    /// Bytes to compact until no level is over its limit.
    pub debt_bytes: u64,
    /// What flushes write while they run; 0 before the first.
    pub flush_rate: u64,
    /// What compactions read while they run; 0 before the first.
    pub compaction_rate: u64,
    /// Compactions and rewrites that are running.
    pub running_jobs: u64,
    /// Whether the pacer takes the load for high.
    pub is_high: bool,
    /// What users take of the device, as the pacer estimates it.
    pub client_rate: u64,
    /// What compactions and rewrites may read and write together; `None` if nothing limits them.
    pub background_rate: Option<u64>,
    /// The most that was read and written together lately.
    pub device_rate: u64,
}
