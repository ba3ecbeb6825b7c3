//! Options under which little data causes many jobs.

use crate::tree_parts::TreeParts as _;
use terrace::tree::PackLayout;
use terrace::{KeyspaceOptions, Options, TreeOptions};

/// Options under which a few hundred entries make every kind of job run.
pub fn tiny() -> Options {
    Options {
        memtable_bytes: 16 << 10,
        wal_bytes_max: 128 << 10,
        memory_bytes: Some(4 << 20),
        // Schedules go by the sizes of tables. Those with values apart say so.
        keyspace: KeyspaceOptions { separate_from: None, ..KeyspaceOptions::default() },
        tree: TreeOptions::default().with(|tree| {
            tree.set_ratio(Some(4));
            tree.tables().table_bytes = 4 << 10;
            tree.files.packs = PackLayout::Many { bytes_max: 1 << 20 };
            tree.group().bytes = 8 << 10;
            tree.block_bytes = 512;
            *tree.level1_bytes() = 16 << 10;
            *tree.l0_trigger() = 2;
            tree.governor().l0_slow = 6;
            tree.governor().l0_stop = 10;
        }),
        ..Options::default()
    }
}

/// Options under which a few hundred records fill several levels.
pub fn small_levels() -> Options {
    Options {
        memtable_bytes: 8 << 10,
        wal_bytes_max: 64 << 10,
        memory_bytes: Some(1 << 20),
        background_threads: Some(1),
        tree: TreeOptions::default().with(|tree| {
            tree.set_ratio(Some(4));
            tree.tables().table_bytes = 5 << 10;
            tree.files.packs = PackLayout::Many { bytes_max: 1 << 20 };
            tree.group().bytes = 0;
            tree.block_bytes = 512;
            *tree.level1_bytes() = 8 << 10;
        }),
        ..Options::default()
    }
}
