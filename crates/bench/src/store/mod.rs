//! The interface of a store under test: only what a workload needs of an engine.

mod profile;
mod terrace;

use std::collections::BTreeMap;
use std::time::Instant;

pub use self::profile::options;
pub use self::terrace::{TerraceConfig, TerraceStore};
use crate::Result;
use crate::recording::Event;

/// An ordered store under test, shared by all load threads.
pub trait Store: Send + Sync {
    /// Name of the engine, for reports.
    fn engine(&self) -> &str;

    /// Name of the engine's configuration, for reports.
    fn profile(&self) -> &str;

    /// Copies the value of `key` into `value`, replacing what is there; false when there is none.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Stores `value` under `key`, with the durability that the store was opened with.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Appends up to `limit` records from `from` on, in key order, to `records`.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn scan(&self, from: &[u8], limit: usize, records: &mut Records) -> Result<()>;

    /// Waits until no background work is due.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn drain(&self) -> Result<()>;

    /// The counters as they stand, all since the store was opened.
    fn counters(&self) -> Counters;

    /// Background jobs and stalls that have ended since the last call, and those still going on. None by default, for
    /// engines that do not tell.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// Samples of the load since the last call, as text ([`LoadSample`](::terrace::LoadSample)), with their times. None by
    /// default, for engines other than Terrace.
    fn load_samples(&self) -> Vec<(Instant, String)> {
        Vec::new()
    }

    /// Closes the store and says whether that went well.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Amounts by cause, the causes named by the engine.
pub type ByCause = BTreeMap<&'static str, u64>;

/// An engine's counters since it was opened; their differences make a phase's figures.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Bytes of keys and values that users wrote.
    pub user_bytes_written: u64,
    /// Bytes written to devices.
    pub written: ByCause,
    /// Bytes read from files.
    pub read: ByCause,
    /// Barriers.
    pub syncs: ByCause,
    /// Microseconds that writers were held up.
    pub stall_micros: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks read because they were not in the cache.
    pub cache_misses: u64,
    /// Bytes of tables that each device was given, by its id; empty where there is but one.
    pub device_bytes: BTreeMap<u16, u64>,
    /// Bytes of disk in use: a level, not a count.
    pub space_bytes: u64,
    /// Bytes of the tables of each level, from level 0 on; empty where the engine does not tell. No count either.
    pub level_bytes: Vec<u64>,
    /// Flushes and compactions that run: a level, too.
    pub running_jobs: u64,
    /// Bytes that compactions have to write until no level is over its limit: a level, too.
    pub debt_bytes: u64,
}

impl Counters {
    /// What happened since `earlier`; levels, such as `space_bytes`, stay as they are.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let by_cause = |now: &ByCause, then: &ByCause| {
            now.iter().map(|(&cause, &n)| (cause, n - then.get(cause).copied().unwrap_or(0).min(n))).collect()
        };
        let by_device = |id: u16, bytes: u64| {
            (id, bytes - earlier.device_bytes.get(&id).copied().unwrap_or(0).min(bytes))
        };
        Self {
            device_bytes: self.device_bytes.iter().map(|(&id, &bytes)| by_device(id, bytes)).collect(),
            user_bytes_written: self.user_bytes_written.saturating_sub(earlier.user_bytes_written),
            written: by_cause(&self.written, &earlier.written),
            read: by_cause(&self.read, &earlier.read),
            syncs: by_cause(&self.syncs, &earlier.syncs),
            stall_micros: self.stall_micros.saturating_sub(earlier.stall_micros),
            cache_hits: self.cache_hits.saturating_sub(earlier.cache_hits),
            cache_misses: self.cache_misses.saturating_sub(earlier.cache_misses),
            space_bytes: self.space_bytes,
            level_bytes: self.level_bytes.clone(),
            running_jobs: self.running_jobs,
            debt_bytes: self.debt_bytes,
        }
    }

    /// Bytes written to devices per byte that users wrote; none where they wrote nothing.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written: u64 = self.written.values().sum();
        (self.user_bytes_written > 0).then(|| written as f64 / self.user_bytes_written as f64)
    }

    /// Share of block reads that the cache answered; none where there were none.
    #[must_use]
    pub fn cache_hit_ratio(&self) -> Option<f64> {
        let all = self.cache_hits + self.cache_misses;
        (all > 0).then(|| self.cache_hits as f64 / all as f64)
    }
}

/// Keys and values that a scan returned, copied into one buffer that is used again and again.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// End of the key and end of the value of each record in `bytes`.
    ends: Vec<(usize, usize)>,
}

impl Records {
    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a record.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The records in the order of their arrival, as (key, value).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end));
        starts
            .zip(&self.ends)
            .map(|(start, &(key_end, end))| (&self.bytes[start..key_end], &self.bytes[key_end..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_pushed() {
        let mut records = Records::default();
        records.push(b"a", b"");
        records.push(b"bc", b"def");
        let all: Vec<_> = records.iter().collect();
        assert_eq!(all, [(&b"a"[..], &b""[..]), (b"bc", b"def")]);
        records.clear();
        assert!(records.is_empty() && records.iter().next().is_none());
    }

    #[test]
    fn counters_since_are_differences_but_space_is_a_level() {
        let at = |n| Counters { written: ByCause::from([("wal", n)]), space_bytes: n, ..Counters::default() };
        let since = at(10).since(&at(4));
        assert_eq!((since.written["wal"], since.space_bytes), (6, 10));
    }
}
