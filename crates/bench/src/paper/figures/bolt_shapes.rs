//! The stores that BoLT's authors compare: profiles of Terrace at the scale of a run.

use terrace::tree::{Cutter, Group, Layout, OneDevice, Pacer, PackLayout, Picker, Placer};
use terrace::{Options, TreeOptions};

use super::{LEVEL1_BYTES_MIN, MEMTABLE_BYTES_MIN, memory_for};
use crate::paper::experiment::Setting;

/// The paper's machine and memtables.
pub(super) const MEMORY_BYTES: u64 = 8_000_000_000;
const MEMTABLE_BYTES: u64 = 64 << 20;

/// The least table and pack that the store takes.
const TABLE_BYTES_MIN: u64 = 1 << 10;
const PACK_BYTES_MIN: u64 = 1 << 20;

/// A profile, all of its sizes divided by the scale but for that of a block.
pub(super) fn profile(setting: &Setting, name: &str) -> Options {
    let mut options = Options::profile(name).unwrap_or_default();
    options.memtable_bytes = setting.scaled(MEMTABLE_BYTES).max(MEMTABLE_BYTES_MIN);
    options.memory_bytes = Some(memory_for(setting.scaled(MEMORY_BYTES), options.memtable_bytes));
    scale(setting, &mut options.tree);
    options
}

/// Divides the sizes of `tree` by the scale.
pub(super) fn scale(setting: &Setting, tree: &mut TreeOptions) {
    let level_bytes = |bytes: u64| setting.scaled(bytes).max(LEVEL1_BYTES_MIN);
    match &mut tree.layout {
        Layout::Adaptive(adaptive) => adaptive.l0_bytes = level_bytes(adaptive.l0_bytes),
        Layout::Leveled(leveled) => leveled.level1_bytes = level_bytes(leveled.level1_bytes),
        _ => {}
    }
    if let Some(group) = group(tree)
        && group.bytes > 0
    {
        group.bytes = setting.scaled(group.bytes);
    }
    if let Cutter::Size(size) = &mut tree.cutter {
        size.table_bytes = setting.scaled(size.table_bytes).max(TABLE_BYTES_MIN);
    }
    if let Pacer::Governor(governor) = &mut tree.pacer {
        for bytes in [&mut governor.debt_slow_bytes, &mut governor.debt_stop_bytes] {
            // What is next to no limit stays so.
            if *bytes < u64::MAX / 2 {
                *bytes = setting.scaled(*bytes);
            }
        }
    }
    if let Placer::OneDevice(OneDevice { packs: PackLayout::Many { bytes_max }, .. }) = &mut tree.placer {
        *bytes_max = setting.scaled(*bytes_max).max(PACK_BYTES_MIN);
    }
}

fn group(tree: &mut TreeOptions) -> Option<&mut Group> {
    match &mut tree.picker {
        Picker::Cursor(group) | Picker::LeastOverlap(group) => Some(group),
        _ => None,
    }
}

/// Tables of another size.
pub(super) fn set_table_bytes(options: &mut Options, table_bytes: u64) {
    if let Cutter::Size(size) = &mut options.tree.cutter {
        size.table_bytes = table_bytes;
    }
}

/// Tables of at least the size that is compared with RocksDB's shape.
fn with_large_tables(mut options: Options) -> Options {
    if let Cutter::Size(size) = &mut options.tree.cutter {
        size.table_bytes = size.table_bytes.max(LARGE_TABLE_BYTES_MIN);
    }
    options
}

/// LevelDB with tables of that size at the paper's scale.
pub(super) fn leveldb(setting: &Setting, table_mib: u64) -> Options {
    let mut options = profile(setting, "leveldb-2m");
    set_table_bytes(&mut options, setting.scaled(table_mib << 20).max(TABLE_BYTES_MIN));
    options
}

/// BoLT's +GC with groups of that size at the paper's scale.
pub(super) fn grouped(setting: &Setting, group_mib: u64) -> Options {
    let mut options = profile(setting, "bolt-gc");
    if let Some(group) = group(&mut options.tree) {
        group.bytes = setting.scaled(group_mib << 20);
    }
    options
}

/// One kind of store: its name in the paper, and its options.
pub(super) type Shape = (&'static str, fn(&Setting) -> Options);

/// The store as it is, with more than BoLT in it.
pub(super) const DEFAULT: Shape = ("Terrace", |setting| profile(setting, "default"));
pub(super) const LEVELDB: Shape = ("LevelDB", |setting| profile(setting, "leveldb-2m"));
pub(super) const LVL64MB: Shape = ("LVL64MB", |setting| profile(setting, "leveldb-64m"));
pub(super) const ROCKSDB: Shape = ("RocksDB's shape", |setting| profile(setting, "rocksdb-64m"));
pub(super) const LOGICAL: Shape = ("+LS", |setting| profile(setting, "bolt-ls"));
pub(super) const GROUPED: Shape = ("+GC", |setting| profile(setting, "bolt-gc"));
pub(super) const SETTLED: Shape = ("+STL", |setting| profile(setting, "bolt-stl"));
pub(super) const SHARED: Shape = ("+FC", BOLT.1);
pub(super) const BOLT: Shape = ("BoLT", |setting| profile(setting, "bolt"));
pub(super) const HYPERLEVELDB: Shape = ("HyperLevelDB", |setting| profile(setting, "hyperleveldb-32m"));
pub(super) const HYPERBOLT: Shape = ("HyperBoLT", |setting| profile(setting, "hyperbolt"));
pub(super) const HYPER_LOGICAL: Shape = ("+LS", |setting| profile(setting, "hyperbolt-ls"));
pub(super) const HYPER_GROUPED: Shape = ("+GC", |setting| profile(setting, "hyperbolt-gc"));
pub(super) const HYPER_SETTLED: Shape = ("+STL", |setting| profile(setting, "hyperbolt-stl"));
pub(super) const HYPER_SHARED: Shape = ("+FC", HYPERBOLT.1);

/// The least table of the stores that are compared with RocksDB's shape on 100 GB. The paper's table of 1 MB holds 256 blocks and is
/// opened by one read more; one of 16 KiB holds four, and a scan opens several in each level. Padding to whole pages, too, is an
/// eighth of that.
const LARGE_TABLE_BYTES_MIN: u64 = 128 << 10;

/// BoLT with RocksDB's level 1 and limits of level 0, as the paper has set it for its 100 GB (section 4.3.3).
pub(super) const BOLT_FOR_LARGE: Shape = ("BoLT", |setting| {
    let (bolt, rocksdb) = (profile(setting, "bolt"), profile(setting, "rocksdb-64m"));
    let mut pacer = bolt.tree.pacer;
    if let (Pacer::Governor(governor), Pacer::Governor(limits)) = (&mut pacer, rocksdb.tree.pacer) {
        (governor.l0_slow, governor.l0_stop) = (limits.l0_slow, limits.l0_stop);
    }
    let tree = TreeOptions { layout: rocksdb.tree.layout, pacer, ..bolt.tree };
    with_large_tables(Options { tree, ..bolt })
});

/// The default beside them.
pub(super) const DEFAULT_FOR_LARGE: Shape =
    ("Terrace", |setting| with_large_tables(profile(setting, "default")));
