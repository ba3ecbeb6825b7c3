//! The overwrite ratio: the share of what is written that replaces something older.
//!
//! A level 0 of new records takes no more space than its records need. A level 0 of updates takes, besides, the space
//! of what it makes obsolete. So writers are slowed earlier for updates ([`crate::policy::Layout::level0_runs`]).
//!
//! Each flush asks the filters of open tables about some of its keys. Beside the flush, that costs nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::catalog::Version;
use crate::engine::jobs::context::JobContext;
use crate::format::edit::TableRecord;
use crate::format::filter;
use crate::store::table::TableReader;

/// Keys of a flush that are asked for, at most: the first ones of tables.
const SAMPLES_MAX: usize = 64;

/// What has been seen counts as this many samples. So the share is about that of the last four flushes, if these have
/// 64 tables each: a level 0 of a gigabyte of data, or the newer part of one.
const SAMPLES_KEPT: f64 = 3.0 * SAMPLES_MAX as f64;

/// Keys of a flush.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::engine) struct Sample {
    keys: usize,
    /// Those that something older may have.
    overwrites: usize,
}

/// The share of a keyspace, in this opening: all until something is known.
#[derive(Debug)]
pub(in crate::engine) struct OverwriteRatio(AtomicU64);

impl Default for OverwriteRatio {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl OverwriteRatio {
    /// The share, 0 to 1.
    pub(in crate::engine) fn share(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Counts a sample. One flush of a keyspace at a time calls this.
    pub(in crate::engine) fn count(&self, Sample { keys, overwrites }: Sample) {
        let share = (self.share() * SAMPLES_KEPT + overwrites as f64) / (SAMPLES_KEPT + keys as f64);
        self.0.store(share.clamp(0.0, 1.0).to_bits(), Relaxed);
    }
}

impl JobContext {
    /// Looks for keys of a flush's tables in `version`, all of which is older. Takes no sample where only runs count.
    pub(in crate::engine) fn sample_overwrites(&self, version: &Version, tables: &[TableRecord]) -> Sample {
        if !self.settings.load().policy.layout.has_intra_l0() {
            return Sample::default();
        }
        let step = tables.len().div_ceil(SAMPLES_MAX).max(1);
        let keys = || tables.iter().step_by(step).map(|table| &table.range.start);
        Sample { keys: keys().count(), overwrites: keys().filter(|key| may_hold(version, key)).count() }
    }
}

/// Whether a table may have `key`. One that is not open may have anything. (A filter errs for one key in a hundred. So
/// with twenty runs below, a fifth of new records seems to overwrite something.)
fn may_hold(version: &Version, key: &[u8]) -> bool {
    let hash = filter::hash(key);
    version.runs().filter_map(|(_, run)| run.find(key)).any(|table| {
        let open = table.attachment.get::<TableReader>().and_then(|reader| reader.open_for(key));
        open.is_none_or(|reader| reader.may_contain(hash))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{DEFAULT_KEYSPACE, WriteBatch};
    use crate::engine::{Opening, open};
    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::options::{Cutter, Durability, Flushes, Options, TableSize, TreeOptions};

    #[test]
    fn the_ratio_of_new_records_is_next_to_0_and_of_updates_1() {
        SimEnv::run(SimConfig::default(), |env| {
            let cutter = Cutter::Size(TableSize { table_bytes: 1 << 10, flushes: Flushes::Cut });
            let tree = TreeOptions { cutter, ..TreeOptions::default() };
            let (options, (listener, filters)) = (Options { tree, ..Options::default() }, Default::default());
            let (dir, read_only, must_exist) = ("/db".into(), false, false);
            let engine =
                open(&Opening { dir, env, options, read_only, must_exist, listener, filters }).unwrap();
            let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
            let share_after = |keys: &dyn Fn(u32) -> u32| {
                for round in 0..8 {
                    let mut batch = WriteBatch::new();
                    for key in (0..1000).map(|key| keys(round * 1000 + key)) {
                        // In no order.
                        batch.put(format!("{:08x}", key.wrapping_mul(0x9e37_79b1)), [0; 200]);
                    }
                    engine.write.commit(&batch, Durability::Buffered).unwrap();
                    engine.write.seal_all().and_then(|()| engine.background.wait_flushed()).unwrap();
                }
                tree.overwrite_ratio.share()
            };
            assert_eq!(tree.overwrite_ratio.share(), 1.0);
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
        let overwrite_ratio = OverwriteRatio::default();
        assert_eq!(overwrite_ratio.share(), 1.0, "nothing is known");
        let count = |overwrites, keys| overwrite_ratio.count(Sample { keys, overwrites });
        (0..4).for_each(|_| count(0, 64));
        assert!((0.25..0.4).contains(&overwrite_ratio.share()), "{}", overwrite_ratio.share());
        (0..12).for_each(|_| count(32, 64));
        assert!((overwrite_ratio.share() - 0.5).abs() < 0.02, "{}", overwrite_ratio.share());
        count(0, 0);
        count(1, 1);
        assert!((overwrite_ratio.share() - 0.5).abs() < 0.02, "a small flush tells little");
    }
}
