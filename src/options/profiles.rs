//! Profiles: named options, after stores of the literature, as far as options describe these.

use std::time::Duration;

use super::{
    Bandwidth, Buffer, Burst, Caching, Components, Cutter, Descriptors, Dlc, Drain, Files, Flushes, Gear,
    Geared, Governor, Group, Guarded, KeyspaceOptions, Layout, Leveled, Levels, LoadEstimator, Options,
    Pacer, PackLayout, Peak, Picker, Placer, Prefixed, RatioWindow, Retainer, Silk, SoftSleep, TableSize,
    Tiered, TreeOptions, ValueOrder,
};

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
    "rocksdb-myrocks",
    "silk",
    "silk-star",
    "dlc-full",
    "dlc-part",
    "dlc-burst-full",
    "dlc-burst-part",
    "pebblesdb",
    "wisckey",
    "ptier-split",
    "ptier-move",
    "ptier",
    "l-lsm",
    "t-lsm",
    "ll-lsm",
    "sm",
    "blsm",
    "blsm-warm-up",
    "lsbm",
];

pub(super) fn named(name: &str) -> Option<Options> {
    let (leveldb_2m, hyper) = (|| leveldb(2 << 20), hyperleveldb);
    Some(match name {
        "default" => Options::default(),
        "leveldb-2m" => leveldb_2m(),
        "leveldb-64m" => leveldb(64 << 20),
        "rocksdb-64m" => rocksdb(),
        "hyperleveldb-32m" => hyper(),
        "bolt-ls" => bolt(leveldb_2m(), Picker::Cursor(Group::SINGLE), Descriptors::PerTable),
        "bolt-gc" => bolt(leveldb_2m(), Picker::Cursor(GROUPED), Descriptors::PerTable),
        "bolt-stl" => bolt(leveldb_2m(), Picker::Cursor(SETTLED), Descriptors::PerTable),
        "bolt" => bolt(leveldb_2m(), Picker::Cursor(SETTLED), Descriptors::PerPack),
        "hyperbolt-ls" => bolt(hyper(), window(Group::SINGLE), Descriptors::PerTable),
        "hyperbolt-gc" => bolt(hyper(), window(GROUPED), Descriptors::PerTable),
        "hyperbolt-stl" => bolt(hyper(), window(SETTLED), Descriptors::PerTable),
        "hyperbolt" => bolt(hyper(), window(SETTLED), Descriptors::PerPack),
        "rocksdb-myrocks" => myrocks(Pacer::Governor(MYROCKS_PACE)),
        "silk" => myrocks(Pacer::Silk(silk())),
        "silk-star" => myrocks(Pacer::Silk(Silk {
            estimator: LoadEstimator::Blocks,
            interval: Duration::from_secs(1),
            ..silk()
        })),
        "dlc-full" => myrocks(Pacer::Dlc(dlc())),
        "dlc-part" => myrocks(Pacer::Dlc(Dlc { peak: Peak::DelayPart, ..dlc() })),
        "dlc-burst-full" => myrocks(Pacer::Dlc(Dlc { burst: Burst::Full { runs: 20 }, ..dlc() })),
        "dlc-burst-part" => myrocks(Pacer::Dlc(Dlc { burst: Burst::Part { runs: 20, parts: 4 }, ..dlc() })),
        "pebblesdb" => pebblesdb(),
        "wisckey" => wisckey(),
        "ptier-split" => ptier(Components { moves: false, access_bytes: 0, ..Components::default() }),
        "ptier-move" => ptier(Components { access_bytes: 0, ..Components::default() }),
        "ptier" => ptier(Components::default()),
        "l-lsm" => whole_levels(Tiered::LEVELING),
        "t-lsm" => whole_levels(Tiered::TIERING),
        "ll-lsm" => whole_levels(Tiered::LAZY_LEVELING),
        // LSbM's level 1 is that of its other stores (section VI).
        "sm" => whole_levels(Tiered { level1_bytes: 100 << 20, ..Tiered::STEPPED_MERGE }),
        "blsm" => geared(Retainer::Drop, Caching::Blocks),
        "blsm-warm-up" => geared(Retainer::Drop, Caching::WarmUp),
        // The paper bounds what is kept by trimming alone.
        "lsbm" => {
            geared(Retainer::Buffer(Buffer { share_percent: 100, ..Buffer::default() }), Caching::Blocks)
        }
        _ => return None,
    })
}

/// WiscKey as PTierDB's authors run it (section IV; HashKV's vLog mode): on LevelDB, values of all sizes apart, in the order of a log.
fn wisckey() -> Options {
    let base = leveldb(2 << 20);
    let keyspace = KeyspaceOptions { separate_from: Some(1), ..base.keyspace };
    Options { keyspace, tree: TreeOptions { value_order: ValueOrder::Log, ..base.tree }, ..base }
}

/// bLSM and LSbM-tree as the latter's authors set them up (section VI-A), on their LevelDB: `C0` of 100 MB, tables of 2 MB in
/// super-files of 20 MB.
fn geared(retainer: Retainer, caching: Caching) -> Options {
    let base = leveldb(2 << 20);
    let packs = PackLayout::Many { bytes_max: 128 << 20 };
    let tree = TreeOptions {
        layout: Layout::Geared(Geared::default()),
        picker: Picker::Drain(Drain::default()),
        cutter: Cutter::Size(TableSize { table_bytes: 2 << 20, flushes: Flushes::Cut }),
        retainer,
        pacer: Pacer::Gear(Gear { limits: LEVELDB_PACE, ..Gear::default() }),
        caching,
        files: Files { packs, descriptors: Descriptors::PerPack },
        ..base.tree
    };
    Options { tree, memtable_bytes: 100 << 20, ..base }
}

/// PTierDB's baselines (sections II and IV), built on LevelDB: whole levels of runs of one table each, memtables of 32 MB. The
/// largest table there is stands for one without a limit.
fn whole_levels(layout: Tiered) -> Options {
    let base = leveldb(1 << 30);
    let tree = TreeOptions {
        layout: Layout::Tiered(layout),
        picker: Picker::Levels(Levels::default()),
        ..base.tree
    };
    Options { tree, memtable_bytes: 32 << 20, ..base }
}

/// MyRocks as DLC's authors set it up (section 6.1): level 1 of 2 GB, and limits of level 0 out of the way of all pacers. Two
/// threads compact.
fn myrocks(pacer: Pacer) -> Options {
    let base = rocksdb();
    let tree = TreeOptions {
        layout: Layout::Leveled(Leveled { level1_bytes: 2 << 30, ratio: 10, l0_trigger: 4 }),
        pacer,
        ..base.tree
    };
    Options { tree, background_threads: Some(2), memtable_bytes: 128 << 20, ..base }
}

/// No writer is slowed before level 0 has 100 runs.
const MYROCKS_PACE: Governor =
    Governor { l0_slow: 100, l0_stop: 101, debt_slow_bytes: 64 << 30, debt_stop_bytes: 256 << 30 };

/// SILK by its authors' benchmark: 200 MB/s, and a peak above 150.
fn silk() -> Silk {
    Silk {
        limits: MYROCKS_PACE,
        bandwidth: Bandwidth::default(),
        estimator: LoadEstimator::Operations,
        interval: Duration::from_millis(10),
        pause_percent: 75,
    }
}

/// DLC by its table 2.
fn dlc() -> Dlc {
    Dlc {
        limits: MYROCKS_PACE,
        bandwidth: Bandwidth::default(),
        estimator: LoadEstimator::Blocks,
        ..Dlc::default()
    }
}

/// LevelDB 1.20 with tables of that size: `db/dbformat.h`, `db/version_set.cc`. One thread compacts.
fn leveldb(table_bytes: u64) -> Options {
    let tree = TreeOptions {
        layout: Layout::Leveled(Leveled { level1_bytes: 10 << 20, ratio: 10, l0_trigger: 4 }),
        picker: Picker::Cursor(Group::SINGLE),
        cutter: Cutter::Size(TableSize { table_bytes, flushes: Flushes::Whole }),
        retainer: Retainer::Drop,
        pacer: Pacer::Governor(LEVELDB_PACE),
        files: Files { packs: PackLayout::OneTable, descriptors: Descriptors::PerTable },
        placer: Placer::Home,
        block_bytes: 4096,
        ..TreeOptions::default()
    };
    let keyspace = KeyspaceOptions { separate_from: None, ..KeyspaceOptions::default() };
    Options { tree, keyspace, background_threads: Some(1), ..Options::default() }
}

/// LevelDB's limits of level 0 (`db/dbformat.h`); it has none on what waits to be compacted.
const LEVELDB_PACE: Governor =
    Governor { l0_slow: 8, l0_stop: 12, debt_slow_bytes: u64::MAX - 1, debt_stop_bytes: u64::MAX };

/// RocksDB 6.7 by its defaults, of which two background jobs leave one thread to compactions.
fn rocksdb() -> Options {
    let base = leveldb(64 << 20);
    let pace = Governor { l0_slow: 20, l0_stop: 36, debt_slow_bytes: 64 << 30, debt_stop_bytes: 256 << 30 };
    let tree = TreeOptions {
        layout: Layout::Leveled(Leveled { level1_bytes: 256 << 20, ratio: 10, l0_trigger: 4 }),
        pacer: Pacer::Governor(pace),
        ..base.tree
    };
    Options { tree, ..base }
}

/// HyperLevelDB (`db/version_set.cc`). Its levels have 64 MB, 128 MB, 512 MB, 4 GB and 32 GB, its tables between 16
/// and 64 MB below level 2; here one ratio and one size stand for these.
fn hyperleveldb() -> Options {
    let base = leveldb(32 << 20);
    let tree = TreeOptions {
        layout: Layout::Leveled(Leveled { level1_bytes: 64 << 20, ratio: 5, l0_trigger: 4 }),
        picker: window(Group::SINGLE),
        pacer: Pacer::SoftSleep(SoftSleep { l0_free: 8, nanos_per_run: 1000 }),
        ..base.tree
    };
    Options { tree, ..base }
}

/// HyperLevelDB's choice of levels and victims, with groups.
fn window(group: Group) -> Picker {
    Picker::RatioWindow(RatioWindow { group, ..RatioWindow::default() })
}

/// PebblesDB, a fork of HyperLevelDB, whose pace it has. Its tables have 64 to 512 MB by level; here one size stands for these.
fn pebblesdb() -> Options {
    let base = hyperleveldb();
    let tree = TreeOptions {
        layout: Layout::Guarded(Guarded::default()),
        picker: Picker::Guards,
        cutter: Cutter::Guards(TableSize { table_bytes: 64 << 20, flushes: Flushes::Whole }),
        ..base.tree
    };
    Options { tree, ..base }
}

/// PTierDB, on LevelDB 1.22 as its authors set it up (section IV-A): tables of 4 MB (T_s), memtables of 32 MB.
fn ptier(components: Components) -> Options {
    let base = leveldb(4 << 20);
    let tree = TreeOptions {
        layout: Layout::Prefixed(Prefixed::default()),
        picker: Picker::Components(components),
        cutter: Cutter::Prefix(TableSize { table_bytes: 4 << 20, flushes: Flushes::Whole }),
        ..base.tree
    };
    Options { tree, memtable_bytes: 32 << 20, ..base }
}

/// BoLT's +GC: groups of 64 MB; in a smaller level, the whole level.
const GROUPED: Group = Group { bytes: 64 << 20, parts: 1, settle: false };

/// +STL on top.
const SETTLED: Group = Group { settle: true, ..GROUPED };

/// BoLT on `base`: +LS, logical tables of 1 MB in packs of up to 128 MB. Its other parts are in `picker` (+GC, +STL)
/// and `descriptors` (+FC). Section 3.4 takes victims of least overlap; the authors' code takes victims as its base
/// does.
fn bolt(base: Options, picker: Picker, descriptors: Descriptors) -> Options {
    let packs = PackLayout::Many { bytes_max: 128 << 20 };
    let tree = TreeOptions {
        picker,
        cutter: Cutter::Size(TableSize { table_bytes: 1 << 20, flushes: Flushes::Cut }),
        files: Files { packs, descriptors },
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
        for (base, by) in [("", Picker::Cursor as fn(Group) -> Picker), ("hyper", window)] {
            let tree = |part: &str| named(&format!("{base}bolt{part}")).unwrap().tree;
            let (logical, grouped, settled) = (tree("-ls"), tree("-gc"), tree("-stl"));
            let group = Group { bytes: 64 << 20, parts: 1, settle: false };
            assert_eq!(logical.picker, by(Group { bytes: 0, ..group }));
            assert_eq!(grouped, TreeOptions { picker: by(group), ..logical });
            assert_eq!(settled, TreeOptions { picker: by(Group { settle: true, ..group }), ..grouped });
            let files = |descriptors| Files { packs: PackLayout::Many { bytes_max: 128 << 20 }, descriptors };
            assert_eq!(settled.files, files(Descriptors::PerTable));
            assert_eq!(tree(""), TreeOptions { files: files(Descriptors::PerPack), ..settled });
        }
    }
}
