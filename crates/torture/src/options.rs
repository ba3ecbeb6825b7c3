//! Options under which little data causes many jobs.

use terrace::{Options, PackLayout, TreeOptions};

/// Options under which a few hundred entries make every kind of job run.
pub fn tiny() -> Options {
    Options {
        memtable_bytes: 16 << 10,
        wal_bytes_max: 128 << 10,
        memory_bytes: Some(4 << 20),
        tree: TreeOptions {
            table_bytes: 4 << 10,
            pack: PackLayout::Many { bytes_max: 1 << 20 },
            group_bytes: 8 << 10,
            block_bytes: 512,
            level1_bytes: 16 << 10,
            level_ratio: Some(4),
            l0_trigger: 2,
            l0_slow: 6,
            l0_stop: 10,
            ..TreeOptions::default()
        },
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
        tree: TreeOptions {
            table_bytes: 5 << 10,
            pack: PackLayout::Many { bytes_max: 1 << 20 },
            group_bytes: 0,
            block_bytes: 512,
            level1_bytes: 8 << 10,
            level_ratio: Some(4),
            ..TreeOptions::default()
        },
        ..Options::default()
    }
}
