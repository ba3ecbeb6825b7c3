//! Which share of what is written takes the place of something older.
//!
//! A level 0 of new records takes no more space than they need; one of updates is as much again as is obsolete because of it. So
//! writers are slowed sooner for the latter ([`crate::policy::Layout::level0_runs`]). Each flush asks for some of its keys whether a
//! table that is open may have them, which costs nothing beside the flush.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Engine;
use crate::catalog::Version;
use crate::format::edit::TableRecord;
use crate::format::filter;
use crate::store::table::TableReader;

/// Keys of a flush that are asked for, at most: the first ones of tables.
const SAMPLES_MAX: usize = 64;

/// What has been seen counts as so many samples: the share is that of the last four flushes, about, if these are of 64 tables: a
/// level 0 of a gigabyte of data, or the newer part of one.
const SAMPLES_KEPT: f64 = 3.0 * SAMPLES_MAX as f64;

/// Keys of a flush.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sample {
    keys: usize,
    /// Those that something older may have.
    renewed: usize,
}

/// The share of a keyspace, in this opening: all until something is known.
#[derive(Debug)]
pub(super) struct Renewal(AtomicU64);

impl Default for Renewal {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl Renewal {
    /// The share, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Counts a sample. One flush of a keyspace at a time calls this.
    pub(super) fn count(&self, Sample { keys, renewed }: Sample) {
        let share = (self.share() * SAMPLES_KEPT + renewed as f64) / (SAMPLES_KEPT + keys as f64);
        self.0.store(share.clamp(0.0, 1.0).to_bits(), Relaxed);
    }
}

impl Engine {
    /// Looks for keys of the tables of a flush, which everything in `version` is older than. None where only runs count.
    pub(super) fn sample_renewal(&self, version: &Version, tables: &[TableRecord]) -> Sample {
        if !self.settings().policy.layout.has_folds() {
            return Sample::default();
        }
        let step = tables.len().div_ceil(SAMPLES_MAX).max(1);
        let keys = || tables.iter().step_by(step).map(|table| &table.range.start);
        Sample { keys: keys().count(), renewed: keys().filter(|key| may_hold(version, key)).count() }
    }
}

/// Whether a table may have `key`. One that is not open may have anything. (A filter errs for one key in a hundred: of new records
/// above twenty runs a fifth seems to be renewed.)
fn may_hold(version: &Version, key: &[u8]) -> bool {
    let hash = filter::hash(key);
    version
        .runs()
        .filter_map(|(_, run)| run.find(key))
        .any(|table| table.attachment.get::<TableReader>().is_none_or(|reader| reader.may_contain(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{DEFAULT_KEYSPACE, WriteBatch};
    use crate::engine::{Opening, open};
    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::options::{Durability, Options, TreeOptions};

    #[test]
    fn of_new_records_next_to_nothing_is_renewed_and_of_updates_all() {
        SimEnv::run(SimConfig::default(), |env| {
            let tree = TreeOptions { table_bytes: 1 << 10, ..TreeOptions::default() };
            let (options, (listener, filters)) = (Options { tree, ..Options::default() }, Default::default());
            let (dir, read_only, must_exist) = ("/db".into(), false, false);
            let engine =
                open(&Opening { dir, env, options, read_only, must_exist, listener, filters }).unwrap();
            let tree = engine.tree(DEFAULT_KEYSPACE).unwrap();
            let share_after = |keys: &dyn Fn(u32) -> u32| {
                for round in 0..8 {
                    let mut batch = WriteBatch::new();
                    for key in (0..1000).map(|key| keys(round * 1000 + key)) {
                        // In no order.
                        batch.put(format!("{:08x}", key.wrapping_mul(0x9e37_79b1)), [0; 200]);
                    }
                    engine.commit(&batch, Durability::Buffered).unwrap();
                    engine.seal_all().and_then(|()| engine.wait_flushed()).unwrap();
                }
                tree.renewal.share()
            };
            assert_eq!(tree.renewal.share(), 1.0);
            let loading = share_after(&|key| key);
            assert!(loading < 0.25, "{loading}");
            let updating = share_after(&|key| key % 1000);
            assert!(updating > 0.85, "{updating}");
            let half = share_after(&|key| key % 2000 + key % 2 * 100_000 * (1 + key / 1000));
            assert!((0.3..0.7).contains(&half), "{half}");
            engine.close().unwrap();
        });
    }

    #[test]
    fn the_share_is_that_of_the_last_flushes() {
        let renewal = Renewal::default();
        assert_eq!(renewal.share(), 1.0, "nothing is known");
        let count = |renewed, keys| renewal.count(Sample { keys, renewed });
        (0..4).for_each(|_| count(0, 64));
        assert!((0.25..0.4).contains(&renewal.share()), "{}", renewal.share());
        (0..12).for_each(|_| count(32, 64));
        assert!((renewal.share() - 0.5).abs() < 0.02, "{}", renewal.share());
        count(0, 0);
        count(1, 1);
        assert!((renewal.share() - 0.5).abs() < 0.02, "a small flush tells little");
    }
}
