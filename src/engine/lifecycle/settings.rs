//! What the options and the machine come to: budgets and policies.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;

use crate::batch::DEFAULT_KEYSPACE;
use crate::engine::Engine;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::format::edit::KeyspaceRecord;
use crate::options::{Compression, KeyspaceOptions, Options, Victims};
use crate::policy::{
    Cutter, GovernorConfig, Layout, LeveledConfig, Pacer, Picker, PickerConfig, Placer, PolicyConfig,
    Retainer, SizeConfig,
};
use crate::types::{KeyspaceId, Ttl};

/// Default budget: this share of the machine's memory, up to a bound.
const MEMORY_SHARE: u64 = 4;
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Of the memory, one part in so many is left for the writes that fill a memtable beyond its budget.
const OVERFILL_PARTS: u64 = 16;

/// Batches of up to one part in so many of the memory overfill three memtables within that.
const LARGE_BATCH_PARTS: u64 = 4 * OVERFILL_PARTS;

/// Of the space, one part in so many is left for compactions and deletes.
const COMPACTION_PARTS: u64 = 5;

/// Sealed memtables that may wait for their flush.
const SEALED_MAX: u64 = 2;

/// Recycled files hold as much as this many memtables: what a flush and the log take at a time.
const RECYCLED_MEMTABLES: u64 = 2;

/// Threads that compact, unless the options say otherwise: one for each processor up to this number.
const BACKGROUND_THREADS_MAX: usize = 2;

/// LevelDB's limits, as multiples of the table size.
const GRANDPARENT_TABLES_MAX: u64 = 10;
const EXPANSION_TABLES_MAX: u64 = 25;

/// Slowed writers get at least this rate together, in bytes per second.
const FLOOR_BYTES_PER_SECOND: u64 = 1 << 20;

/// What a disk is taken for until it has been measured, in bytes per second.
const UNMEASURED_BYTES_PER_SECOND: u64 = 64 << 20;

/// What the store goes by at the moment.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    pub(in crate::engine) policy: PolicyConfig,
}

impl Settings {
    /// The settings that `options` mean on the machine of `env`.
    pub(in crate::engine) fn new(options: &Options, env: &dyn Env) -> Self {
        Self { options: options.clone(), limits: Limits::new(options, env), policy: policy(options) }
    }
}

/// Budgets, in bytes where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// All active memtables together are sealed, the largest first, beyond this.
    pub(crate) memtable_bytes: u64,
    /// Sealed memtables that may wait for their flush.
    pub(crate) sealed_max: u64,
    /// All memtables of the store together take no more than this, or one batch that is larger has them for itself.
    pub(crate) memtables_bytes: u64,
    /// Longer batches wait until there is room for them.
    pub(crate) large_batch_bytes: u64,
    /// Blocks and open tables.
    pub(crate) cache_bytes: u64,
    /// Writes that add anything are taken up to here.
    pub(crate) space_bytes: Option<u64>,
    /// Log segments end at about this size.
    pub(crate) segment_bytes: u64,
    /// Memory of dropped memtables that is kept for the next ones.
    pub(crate) chunk_bytes: u64,
    /// Dead files that are kept to be written over, at most.
    pub(crate) recycled_bytes: u64,
    /// Threads that compact.
    pub(crate) background_threads: usize,
}

impl Limits {
    /// The budgets of a store with `options` on the machine of `env`.
    pub(crate) fn new(options: &Options, env: &dyn Env) -> Self {
        let default = || (env.memory_bytes() / MEMORY_SHARE).min(MEMORY_BYTES_MAX);
        let memory = options.memory_bytes.unwrap_or_else(default);
        // Active and sealed memtables together take at most three quarters of the budget.
        let memtable_bytes = options.memtable_bytes.min(memory / 4);
        let memtables_bytes = memtable_bytes * (SEALED_MAX + 1) + memory / OVERFILL_PARTS;
        let threads = env.cores().clamp(1, BACKGROUND_THREADS_MAX);
        Self {
            memtable_bytes,
            sealed_max: SEALED_MAX,
            memtables_bytes,
            large_batch_bytes: memory / LARGE_BATCH_PARTS,
            cache_bytes: memory.saturating_sub(memtables_bytes),
            space_bytes: options.space_bytes.map(|bytes| bytes - bytes / COMPACTION_PARTS),
            segment_bytes: memtable_bytes.min(options.wal_bytes_max / 4),
            chunk_bytes: SEALED_MAX * memtable_bytes,
            recycled_bytes: RECYCLED_MEMTABLES * memtable_bytes,
            background_threads: options.background_threads.unwrap_or(threads),
        }
    }
}

impl Engine {
    /// The settings in force.
    pub(crate) fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// The options in force.
    pub(crate) fn options(&self) -> Options {
        let options = self.settings().options.clone();
        match self.trees().get(&DEFAULT_KEYSPACE) {
            Some(tree) => Options { keyspace: options_of(&self.record_of(tree)), ..options },
            None => options,
        }
    }

    /// Goes on by other options; all that was decided by the old ones is looked at again.
    pub(crate) fn change_options(self: &Arc<Self>, change: impl FnOnce(&mut Options)) -> Result<()> {
        let _changing = self.closing.lock();
        self.health.check_open()?;
        let before = self.options();
        let mut options = before.clone();
        change(&mut options);
        options.validate()?;
        if options.keyspace != before.keyspace {
            let message = "options of a keyspace are changed by Keyspace::set_options";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if options.reserve_bytes != before.reserve_bytes {
            let message = "reserve_bytes is fixed while the store is open";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if options.tree.descriptors != before.tree.descriptors {
            let message = "tree.descriptors is fixed while the store is open";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let settings = Settings::new(&options, &*self.env);
        self.cache.set_capacity(settings.limits.cache_bytes);
        self.settings.store(Arc::new(settings));
        if self.writer.is_some() {
            self.background.start_compaction_threads()?;
        }
        self.background.sample_load();
        self.background.fit_recycled();
        self.scheduler.wake_all();
        self.background.wake_writers();
        Ok(())
    }
}

/// A keyspace as the manifest knows it.
pub(crate) fn keyspace_record(id: KeyspaceId, name: &str, options: &KeyspaceOptions) -> KeyspaceRecord {
    KeyspaceRecord {
        id,
        name: name.into(),
        lz4: options.compression == Compression::Lz4,
        filter_bits: options.filter_bits_per_key,
        prefix: options.prefix,
        ttl: options.ttl.and_then(|ttl| Ttl::new(u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX))),
    }
}

/// The options of a keyspace of the manifest.
pub(crate) fn options_of(record: &KeyspaceRecord) -> KeyspaceOptions {
    KeyspaceOptions {
        compression: if record.lz4 { Compression::Lz4 } else { Compression::None },
        filter_bits_per_key: record.filter_bits,
        prefix: record.prefix,
        ttl: record.ttl.map(|ttl| Duration::from_secs(ttl.seconds.get().into())),
    }
}

/// Where limits follow the tree, level 0 is due at up to so many times what the runs of the option hold when they are full.
const LEVEL0_GROWTH: u64 = 6;

/// Where limits follow the tree, full runs of level 0 count for up to so many of the options' each, where they hold writers up. Compactions
/// that go through level 0 by sections leave half of a run, on average; so there are twice as many runs as full ones would be, and were they
/// counted as half, writers would be slowed for their number, though compactions keep up and level 0 shrinks.
const RUNS_PER_FULL: u64 = 3;

/// The policies that the options describe.
fn policy(options: &Options) -> PolicyConfig {
    let tree = &options.tree;
    let grandparent_bytes_max = tree.table_bytes.saturating_mul(GRANDPARENT_TABLES_MAX);
    let picker = PickerConfig {
        group_bytes: tree.group_bytes,
        group_parts: tree.group_parts.into(),
        settle: tree.settle,
        expansion_bytes_max: (tree.table_bytes.saturating_mul(EXPANSION_TABLES_MAX))
            .saturating_add(tree.group_bytes),
        grandparent_bytes_max,
    };
    PolicyConfig {
        layout: Layout::Leveled(LeveledConfig {
            level1_bytes: tree.level1_bytes,
            ratio: tree.level_ratio.map(u64::from),
            l0_trigger: tree.l0_trigger as u64,
            l0_full_max: LEVEL0_GROWTH * tree.l0_trigger as u64,
            // Compactions that keep up leave writers alone.
            l0_runs_max: (tree.l0_slow as u64 * 6 / 10).max(tree.l0_trigger as u64),
            // Due a tenth before it holds writers up, or nothing would relieve it (I11).
            l0_runs_due: (tree.l0_slow as u64 * 9 / 10)
                .min(RUNS_PER_FULL * LEVEL0_GROWTH * tree.l0_trigger as u64),
        }),
        picker: match tree.victims {
            Victims::Cursor => Picker::Cursor(picker),
            Victims::LeastOverlap => Picker::LeastOverlap(picker),
        },
        cutter: Cutter::Size(SizeConfig { table_bytes: tree.table_bytes, grandparent_bytes_max }),
        retainer: Retainer::Drop,
        pacer: Pacer::Governor(GovernorConfig {
            l0_slow: tree.l0_slow as u64,
            l0_stop: tree.l0_stop as u64,
            debt_slow_bytes: tree.debt_slow_bytes,
            debt_stop_bytes: tree.debt_stop_bytes,
            sealed_memtables_max: SEALED_MAX,
            floor_bytes_per_second: FLOOR_BYTES_PER_SECOND,
            unmeasured_bytes_per_second: UNMEASURED_BYTES_PER_SECOND,
            throttle_compactions: tree.throttle_compactions,
        }),
        placer: Placer::Single,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Version;
    use crate::options::TreeOptions;

    #[test]
    fn i11_level_0_is_due_before_it_holds_writers_up() {
        let limits = [(1, 1), (1, 2), (4, 4), (4, 40), (3, 60), (100, 100), (1000, 1000), (1, 10_000)];
        for (l0_trigger, l0_slow) in limits {
            for level1_bytes in [4 << 10, 192 << 20, 1 << 50] {
                let (l0_stop, tree) = (l0_slow + 1, TreeOptions::default());
                let tree = TreeOptions { l0_trigger, l0_slow, l0_stop, level1_bytes, ..tree };
                let policy = policy(&Options { tree, ..Options::default() });
                let Layout::Leveled(layout) = policy.layout;
                assert!(layout.l0_runs_max <= l0_slow as u64, "{layout:?}");
                for overwrite_ratio in [0.0, 0.3, 1.0, f64::NAN] {
                    // An empty tree is due at what level 1 may hold.
                    let run_bytes =
                        policy.layout.level0_run_bytes(&Version::empty(), overwrite_ratio).unwrap();
                    assert!(run_bytes * l0_slow as u64 >= level1_bytes, "{layout:?}");
                }
            }
        }
    }
}
