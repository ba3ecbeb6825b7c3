//! How much of a flush replaces something older: a sample for the [overwrite ratio](crate::engine::keyspace::overwrite_ratio) of its keyspace.
//!
//! Each flush asks the filters of open tables about some of its keys. Beside the flush, that costs nothing.

use super::context::JobContext;
use crate::catalog::Version;
use crate::engine::keyspace::overwrite_ratio::{SAMPLES_MAX, Sample};
use crate::format::edit::TableRecord;
use crate::format::filter;
use crate::store::table::TableReader;

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
    use crate::batch::{DEFAULT_KEYSPACE, WriteBatch};
    use crate::engine::{Opening, open};
    use crate::env::simulated::{SimConfig, SimEnv};
    use crate::options::{Cutter, Durability, Flushes, Options, TableSize, TreeOptions};

    #[test]
    fn the_ratio_of_new_records_is_next_to_0_and_of_updates_1() {
        SimEnv::run(SimConfig::default(), |env| {
            let cutter = Cutter::Size(TableSize { table_bytes: 1 << 10, flushes: Flushes::Cut });
            let tree = TreeOptions { cutter, ..TreeOptions::default() };
            let options = Options { tree, ..Options::default() };
            let engine = open(&Opening::of_test(env, options, false)).unwrap();
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
}
