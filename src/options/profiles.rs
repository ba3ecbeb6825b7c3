//! Named configurations: the shapes of stores from the literature, as far as settings describe them.

use super::{Descriptors, Options, PackLayout, TreeOptions, Victims};

/// The names, the default first.
pub(super) const NAMES: &[&str] = &[
    "default",
    "leveldb-2m",
    "leveldb-64m",
    "rocksdb-64m",
    "hyperleveldb-32m",
    "bolt-ls",
    "bolt-gc",
    "bolt-stl",
    "bolt",
    "hyperbolt-ls",
    "hyperbolt-gc",
    "hyperbolt-stl",
    "hyperbolt",
];

/// BoLT's parts; each stands for those before it as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Parts {
    LogicalTables,
    Groups,
    Settling,
    Descriptors,
}

pub(super) fn named(name: &str) -> Option<Options> {
    Some(match name {
        "default" => Options::default(),
        "leveldb-2m" => leveldb(2 << 20),
        "leveldb-64m" => leveldb(64 << 20),
        "rocksdb-64m" => rocksdb(),
        "hyperleveldb-32m" => hyperleveldb(),
        "bolt-ls" => bolt(leveldb(0), Parts::LogicalTables),
        "bolt-gc" => bolt(leveldb(0), Parts::Groups),
        "bolt-stl" => bolt(leveldb(0), Parts::Settling),
        "bolt" => bolt(leveldb(0), Parts::Descriptors),
        "hyperbolt-ls" => bolt(hyperleveldb(), Parts::LogicalTables),
        "hyperbolt-gc" => bolt(hyperleveldb(), Parts::Groups),
        "hyperbolt-stl" => bolt(hyperleveldb(), Parts::Settling),
        "hyperbolt" => bolt(hyperleveldb(), Parts::Descriptors),
        _ => return None,
    })
}

/// LevelDB 1.20: `db/dbformat.h`, `db/version_set.cc`.
fn leveldb(table_bytes: u64) -> Options {
    let tree = TreeOptions {
        table_bytes,
        pack: PackLayout::OneTable,
        group_bytes: 0,
        settle: false,
        descriptors: Descriptors::PerTable,
        flush_single_table: true,
        level1_bytes: 10 << 20,
        level_ratio: Some(10),
        l0_trigger: 4,
        l0_slow: 8,
        l0_stop: 12,
        debt_slow_bytes: u64::MAX - 1,
        debt_stop_bytes: u64::MAX,
        throttle_compactions: false,
        ..TreeOptions::default()
    };
    Options { tree, background_threads: Some(1), ..Options::default() }
}

/// RocksDB 6.7 by its defaults, of which two background jobs leave one thread to compactions.
fn rocksdb() -> Options {
    let base = leveldb(64 << 20);
    let tree = TreeOptions {
        level1_bytes: 256 << 20,
        l0_slow: 20,
        l0_stop: 36,
        debt_slow_bytes: 64 << 30,
        debt_stop_bytes: 256 << 30,
        ..base.tree
    };
    Options { tree, ..base }
}

/// HyperLevelDB: `db/version_set.cc`. Its levels are 64 MB, 128 MB, 512 MB, 4 GB and 32 GB large, its tables between 16 and
/// 64 MB below level 2: one ratio and one size stand for these. It compacts the neighbours that overlap the fewest bytes for each
/// of their own, most often one or two tables.
fn hyperleveldb() -> Options {
    let base = leveldb(32 << 20);
    let tree = TreeOptions {
        level1_bytes: 64 << 20,
        level_ratio: Some(5),
        group_bytes: 64 << 20,
        group_parts: 1,
        victims: Victims::LeastOverlap,
        // It sleeps a microsecond for each run beyond 8, and never stops: next to no limit.
        l0_slow: 10_000,
        l0_stop: 100_000,
        ..base.tree
    };
    Options { tree, ..base }
}

/// BoLT's `parts` on `base`.
fn bolt(base: Options, parts: Parts) -> Options {
    let (grouped, settled) = (parts >= Parts::Groups, parts >= Parts::Settling);
    let tree = TreeOptions {
        table_bytes: 1 << 20,
        pack: PackLayout::Many { bytes_max: 128 << 20 },
        group_bytes: if grouped { 64 << 20 } else { 0 },
        group_parts: 1,
        // The authors' code goes on taking victims as its base does, where section 3.4 has those of least overlap. A group of
        // one table is the cursor's in any case.
        victims: if grouped { base.tree.victims } else { Victims::Cursor },
        settle: settled,
        descriptors: if parts >= Parts::Descriptors { Descriptors::PerPack } else { Descriptors::PerTable },
        flush_single_table: false,
        ..base.tree
    };
    Options { tree, ..base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_valid_shape_of_its_own() {
        for (at, name) in NAMES.iter().enumerate() {
            let options = named(name).unwrap();
            options.validate().unwrap();
            assert_eq!(options.profile_name(), *name);
            let same = |other: &&str| named(other).unwrap().tree == options.tree;
            assert_eq!(NAMES.iter().position(same), Some(at), "{name}");
        }
        assert_eq!(named("bolt-"), None);
    }

    #[test]
    fn each_part_of_bolt_adds_what_it_is_about() {
        for base in ["", "hyper"] {
            let tree = |part: &str| named(&format!("{base}bolt{part}")).unwrap().tree;
            let (logical, grouped, settled) = (tree("-ls"), tree("-gc"), tree("-stl"));
            let victims =
                named(if base.is_empty() { "leveldb-2m" } else { "hyperleveldb-32m" }).unwrap().tree.victims;
            assert_eq!(grouped, TreeOptions { group_bytes: 64 << 20, victims, ..logical });
            assert_eq!(settled, TreeOptions { settle: true, ..grouped });
            assert_eq!(tree(""), TreeOptions { descriptors: Descriptors::PerPack, ..settled });
        }
    }
}
