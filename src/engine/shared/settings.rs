//! Settings: the budgets and policies that follow from the options and the machine.

use std::time::Duration;

use crate::env::Env;
use crate::format::edit::KeyspaceRecord;
use std::num::NonZeroU32;

use crate::options::{Compression, KeyspaceOptions, Options};
use crate::policy::PolicyConfig;
use crate::types::{KeyspaceId, Ttl};

/// Default budget: this share of the machine's memory, up to a bound.
const MEMORY_SHARE: u64 = 4;
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Divisor: this part of the memory is left for the writes that fill a memtable beyond its budget.
const OVERFILL_PARTS: u64 = 16;

/// Divisor: batches of up to this part of the memory overfill three memtables by no more than that.
const LARGE_BATCH_PARTS: u64 = 4 * OVERFILL_PARTS;

/// Divisor: this part of the space budget is left for compactions and deletes.
const COMPACTION_PARTS: u64 = 5;

/// Sealed memtables that may wait for their flush.
const SEALED_MAX: u64 = 2;

/// Recycled files hold as much as this many memtables: what a flush and the log need at a time.
const RECYCLED_MEMTABLES: u64 = 2;

/// Threads that compact, unless the options say otherwise: one for each processor up to this number.
const BACKGROUND_THREADS_MAX: usize = 2;

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
        Self { options: options.clone(), limits: Limits::new(options, env), policy: policy_of(options) }
    }
}

/// The policies of a store with `options`.
pub(in crate::engine) fn policy_of(options: &Options) -> PolicyConfig {
    PolicyConfig::new(&options.tree, SEALED_MAX)
}

/// Budgets, in bytes where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// When all active memtables together exceed this, they are sealed, the largest first.
    pub(crate) memtable_bytes: u64,
    /// Sealed memtables that may wait for their flush.
    pub(crate) sealed_max: u64,
    /// All memtables of the store together take at most this. A larger batch waits until it has the memory for itself.
    pub(crate) memtables_bytes: u64,
    /// Longer batches wait until there is room for them.
    pub(crate) large_batch_bytes: u64,
    /// Memory of the cache, for blocks and open tables.
    pub(crate) cache_bytes: u64,
    /// Writes that add anything are refused beyond this; `None` without a space budget.
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

/// A keyspace as the manifest knows it.
pub(crate) fn keyspace_record(id: KeyspaceId, name: &str, options: &KeyspaceOptions) -> KeyspaceRecord {
    KeyspaceRecord {
        id,
        name: name.into(),
        lz4: options.compression == Compression::Lz4,
        filter_bits: options.filter_bits_per_key,
        prefix: options.prefix,
        separate_from: options.separate_from.and_then(NonZeroU32::new),
        ttl: options.ttl.and_then(|ttl| Ttl::new(u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX))),
    }
}

/// The options of a keyspace of the manifest.
pub(crate) fn options_of(record: &KeyspaceRecord) -> KeyspaceOptions {
    KeyspaceOptions {
        compression: if record.lz4 { Compression::Lz4 } else { Compression::None },
        filter_bits_per_key: record.filter_bits,
        prefix: record.prefix,
        separate_from: record.separate_from.map(NonZeroU32::get),
        ttl: record.ttl.map(|ttl| Duration::from_secs(ttl.seconds.get().into())),
    }
}
