//! Counters of what users have read.
//!
//! Lookups count in the stripe of their thread. Walks count by themselves and
//! add up when they are dropped, so a step touches no shared memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::stats::{PrefixFilterStats, UserReads};
use crate::store::stripes::Stripes;

/// Counters of lookups and walks.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    stripes: Stripes<Counters>,
    /// Tables that scans have asked for a prefix, and those that have none of it.
    prefix_asked: AtomicU64,
    prefix_denied: AtomicU64,
}

#[derive(Debug, Default)]
struct Counters {
    /// Single lookups. Each counts in one of the two.
    found: AtomicU64,
    missed: AtomicU64,
    /// Tables that single lookups have asked.
    tables: AtomicU64,
    /// Keys that were found in a compaction buffer.
    in_buffer: AtomicU64,
    many: AtomicU64,
    found_of_many: AtomicU64,
    seeks: AtomicU64,
    steps: AtomicU64,
    bytes: AtomicU64,
}

/// What one walk has done.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(in crate::engine) seeks: u64,
    steps: u64,
    bytes: u64,
}

impl Walked {
    /// The walk has shown an entry of this many bytes.
    #[inline(always)]
    pub(in crate::engine) fn step(&mut self, bytes: usize) {
        self.steps += 1;
        self.bytes += bytes as u64;
    }
}

impl Reads {
    /// A lookup has found a value of this many bytes, or none, and asked so many tables.
    #[inline]
    pub(in crate::engine) fn looked(&self, found: Option<usize>, tables: u64) {
        let counters = self.stripes.mine();
        if tables > 0 {
            counters.tables.fetch_add(tables, Relaxed);
        }
        match found {
            Some(bytes) => {
                counters.found.fetch_add(1, Relaxed);
                counters.bytes.fetch_add(bytes as u64, Relaxed);
            }
            None => _ = counters.missed.fetch_add(1, Relaxed),
        }
    }

    /// A key was found in a compaction buffer.
    pub(in crate::engine) fn found_in_buffer(&self) {
        self.stripes.mine().in_buffer.fetch_add(1, Relaxed);
    }

    /// One call has looked for `keys` keys.
    pub(in crate::engine) fn looked_for_many<'a>(&self, keys: usize, found: impl Iterator<Item = &'a [u8]>) {
        let (mut count, mut bytes) = (0, 0);
        for value in found {
            count += 1;
            bytes += value.len() as u64;
        }
        let counters = self.stripes.mine();
        counters.many.fetch_add(keys as u64, Relaxed);
        counters.found_of_many.fetch_add(count, Relaxed);
        counters.bytes.fetch_add(bytes, Relaxed);
    }

    /// A walk has ended.
    pub(in crate::engine) fn walked(&self, walked: &Walked) {
        let counters = self.stripes.mine();
        counters.seeks.fetch_add(walked.seeks, Relaxed);
        counters.steps.fetch_add(walked.steps, Relaxed);
        counters.bytes.fetch_add(walked.bytes, Relaxed);
    }

    /// A table's filter was asked for the prefix of a scan.
    pub(in crate::engine) fn asked_for_prefix(&self, may_contain: bool) {
        self.prefix_asked.fetch_add(1, Relaxed);
        if !may_contain {
            self.prefix_denied.fetch_add(1, Relaxed);
        }
    }

    /// What filters have said of prefixes.
    pub(in crate::engine) fn prefix_filter(&self) -> PrefixFilterStats {
        PrefixFilterStats { asked: self.prefix_asked.load(Relaxed), denied: self.prefix_denied.load(Relaxed) }
    }

    /// A picture of the counters.
    pub(in crate::engine) fn sum(&self) -> UserReads {
        let mut sum = UserReads::default();
        for counters in self.stripes.iter() {
            let load = |counter: &AtomicU64| counter.load(Relaxed);
            let found = load(&counters.found);
            sum.gets += found + load(&counters.missed);
            sum.tables_asked += load(&counters.tables);
            sum.multi_get_keys += load(&counters.many);
            sum.found_in_buffer += load(&counters.in_buffer);
            sum.found += found + load(&counters.found_of_many);
            sum.seeks += load(&counters.seeks);
            sum.steps += load(&counters.steps);
            sum.bytes += load(&counters.bytes);
        }
        sum
    }
}
