//! Options under which the same operations take different ways.

use terrace::{Compression, KeyspaceOptions, Options, PackLayout, Prefix, TreeOptions, Victims};

use terrace_torture::tiny;

pub struct Shape {
    pub name: &'static str,
    pub options: fn() -> Options,
}

pub const SHAPES: &[Shape] = &[
    Shape { name: "tiny", options: tiny },
    Shape { name: "smallest, prefixes", options: smallest },
    Shape { name: "one table a file, two mergers", options: one_table },
    Shape { name: "compressed, no filter", options: compressed },
    Shape { name: "large tables, small blocks", options: large_tables },
    Shape { name: "eager merges, small cache", options: eager },
    Shape { name: "scattered victims", options: scattered },
    Shape { name: "leveldb", options: leveldb },
    Shape { name: "default trees", options: default_trees },
];

fn smallest() -> Options {
    let tree = TreeOptions {
        table_bytes: 1 << 10,
        block_bytes: 256,
        level1_bytes: 4 << 10,
        level_ratio: Some(2),
        ..tiny().tree
    };
    let keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(2)), ..KeyspaceOptions::default() };
    Options { memtable_bytes: 4 << 10, wal_bytes_max: 64 << 10, keyspace, tree, ..tiny() }
}

fn one_table() -> Options {
    let tree =
        TreeOptions { pack: PackLayout::OneTable, group_bytes: 0, table_bytes: 2 << 10, ..tiny().tree };
    Options { background_threads: Some(2), tree, ..tiny() }
}

fn compressed() -> Options {
    let keyspace =
        KeyspaceOptions { compression: Compression::Lz4, filter_bits_per_key: 0, prefix: None, ttl: None };
    Options { keyspace, background_threads: Some(2), ..tiny() }
}

fn large_tables() -> Options {
    let tree = TreeOptions { table_bytes: 64 << 10, block_bytes: 256, level1_bytes: 32 << 10, ..tiny().tree };
    Options { memtable_bytes: 8 << 10, tree, ..tiny() }
}

fn eager() -> Options {
    let tree = TreeOptions { l0_trigger: 1, l0_slow: 2, l0_stop: 3, level_ratio: Some(2), ..tiny().tree };
    Options {
        memory_bytes: Some(1 << 20),
        memtable_bytes: 6 << 10,
        background_threads: Some(2),
        tree,
        ..tiny()
    }
}

fn scattered() -> Options {
    let tree = TreeOptions {
        table_bytes: 1 << 10,
        group_bytes: 12 << 10,
        group_parts: 2,
        victims: Victims::LeastOverlap,
        ..tiny().tree
    };
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// LevelDB's way, at a thousandth of its sizes.
fn leveldb() -> Options {
    let profile = Options::profile("leveldb-2m").expect("a known profile");
    let tree = TreeOptions { table_bytes: 2 << 10, block_bytes: 512, level1_bytes: 10 << 10, ..profile.tree };
    Options { tree, ..tiny() }
}

fn default_trees() -> Options {
    Options { memtable_bytes: 16 << 10, memory_bytes: Some(8 << 20), ..Options::default() }
}
