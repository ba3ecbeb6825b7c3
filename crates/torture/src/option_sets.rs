//! Sets of options under which the same operations take different paths.

use crate::tree_parts::TreeParts as _;
use std::time::Duration;

use terrace::tree::{
    Adaptive, Bandwidth, Buffer, Burst, Components, Cutter, Descriptors, Dlc, Drain, Files, Flushes, Gear,
    Geared, Governor, Group, Guarded, Layout, Leveled, Levels, LoadEstimator, Pacer, PackLayout, Peak,
    Picker, Placer, Prefixed, RatioWindow, Retainer, Silk, SoftSleep, Steady, TableSize, Tiered, Unit,
};
use terrace::{Compression, KeyspaceOptions, Options, Prefix, TreeOptions};

use crate::options::tiny;
use crate::seed::Rng;

/// A standard set of options.
pub struct Shape {
    pub name: &'static str,
    pub options: fn() -> Options,
}

/// The `n`-th set of options and its name: the standard ones in turn.
#[must_use]
pub fn standard(n: u64) -> (String, Options) {
    let shape = &SHAPES[n as usize % SHAPES.len()];
    (shape.name.into(), (shape.options)())
}

/// A random set of options, and its name.
#[must_use]
pub fn random(seed: u64) -> (String, Options) {
    let rng = &mut Rng::new(seed);
    let filter_bits_per_key = *rng.pick(&[0, 3, 10, 20]);
    let compression = *rng.pick(&[Compression::None, Compression::Lz4]);
    let prefix = *rng.pick(&[
        None,
        Some(Prefix::Fixed(1)),
        Some(Prefix::Fixed(3)),
        Some(Prefix::Delimited { delimiter: b'b', count: 1 }),
    ]);
    let l0_due = *rng.pick(&[1, 2, 4]);
    let l0_slow = l0_due + rng.below(4);
    let debt_slow_bytes = *rng.pick(&[64 << 10, 1 << 20, 64 << 20]);
    let table_bytes = *rng.pick(&[1 << 10, 2 << 10, 5 << 10, 16 << 10, 64 << 10]);
    let many = |bytes_max| PackLayout::Many { bytes_max };
    let packs = *rng.pick(&[PackLayout::OneTable, many(1 << 20), many(4 << 20)]);
    let (bytes, parts) = (*rng.pick(&[0, 4 << 10, 12 << 10, 64 << 10]), *rng.pick(&[1, 2, 10]));
    let group = Group { bytes, parts, settle: rng.percent(70) };
    let picker = picker(rng, group);
    let descriptors = *rng.pick(&[Descriptors::PerPack, Descriptors::PerTable]);
    let flushes = if rng.percent(30) { Flushes::Whole } else { Flushes::Cut };
    let block_bytes = *rng.pick(&[256, 512, 4 << 10]);
    let level_bytes = *rng.pick(&[4 << 10, 16 << 10, 64 << 10, 256 << 10]);
    let (layout, picker) = match *rng.pick(&[None, Some(2), Some(4), Some(10)]) {
        None => (adaptive(rng, (level_bytes, l0_due)), picker),
        Some(ratio) if rng.percent(60) => {
            (Layout::Leveled(Leveled { level1_bytes: level_bytes, ratio, l0_trigger: l0_due }), picker)
        }
        Some(ratio) => tiered(rng, ratio, (level_bytes, l0_due)),
    };
    let governor = Governor {
        l0_slow,
        l0_stop: l0_slow + 1 + rng.below(4),
        debt_slow_bytes,
        debt_stop_bytes: debt_slow_bytes * 4,
    };
    let size = TableSize { table_bytes, flushes };
    let cutter = if rng.percent(30) { Cutter::Prefix(size) } else { Cutter::Size(size) };
    let (layout, picker) =
        if rng.percent(25) { prefixed(rng, (level_bytes, l0_due)) } else { (layout, picker) };
    let tree = TreeOptions {
        layout,
        picker,
        cutter,
        retainer: Retainer::Drop,
        pacer: pacer(rng, governor),
        files: Files { packs, descriptors },
        placer: placer(rng),
        block_bytes,
        ..TreeOptions::default()
    };
    let mut options = Options {
        memory_bytes: Some(*rng.pick(&[1 << 20, 2 << 20, 8 << 20])),
        memtable_bytes: *rng.pick(&[4 << 10, 6 << 10, 16 << 10, 48 << 10]),
        wal_bytes_max: *rng.pick(&[64 << 10, 128 << 10, 1 << 20]),
        reserve_bytes: *rng.pick(&[0, 32 << 10]),
        background_threads: Some(*rng.pick(&[1, 2, 3])),
        keyspace: KeyspaceOptions { compression, filter_bits_per_key, prefix, ..KeyspaceOptions::default() },
        tree,
        ..Options::default()
    };
    // Last, so that what a seed draws besides does not depend on it.
    change_levels(rng, &mut options.tree, (level_bytes, l0_due));
    options.keyspace.separate_from = *rng.pick(&[None, None, Some(1), Some(20), Some(200)]);
    (format!("random by {seed}"), options)
}

/// Sometimes changes to guards, to levels in pairs, or to a buffer.
fn change_levels(rng: &mut Rng, tree: &mut TreeOptions, (level_bytes, l0_due): (u64, usize)) {
    if rng.percent(20) {
        set_guarded(rng, tree, l0_due);
    } else if rng.percent(30) {
        tree.cutter = Cutter::Size(*tree.tables());
        (tree.layout, tree.picker) = geared(rng, (level_bytes, l0_due));
    }
    let has_one_run =
        matches!(tree.layout, Layout::Adaptive(_) | Layout::Auto(_) | Layout::Leveled(_) | Layout::Geared(_));
    if has_one_run && rng.percent(60) {
        tree.retainer = buffer(rng);
    }
}

/// Which device gets a table, where there are several.
fn placer(rng: &mut Rng) -> Placer {
    let unit = *rng.pick(&[Unit::Job, Unit::Table]);
    *rng.pick(&[
        Placer::Home,
        Placer::Mod { n: 2, unit },
        Placer::Weighted { slow_percent: 30, unit },
        Placer::Level { upto: 1, adapt: true },
        Placer::Dynamic { unit },
        Placer::Heat { unit },
    ])
}

/// A picker that merges with what lies in the next level.
fn picker(rng: &mut Rng, group: Group) -> Picker {
    match rng.below(3) {
        0 => Picker::Cursor(group),
        1 => Picker::LeastOverlap(group),
        _ => Picker::RatioWindow(RatioWindow {
            group,
            window_tables: *rng.pick(&[2, 4, 16]),
            oldest_runs: *rng.pick(&[1, 3, 32]),
        }),
    }
}

/// Whole levels of several runs, or of one.
fn tiered(rng: &mut Rng, ratio: u32, (level1_bytes, l0_trigger): (u64, usize)) -> (Layout, Picker) {
    let (runs, last_runs) = (*rng.pick(&[1, 2, 3]), *rng.pick(&[1, 2, 1000]));
    let part_bytes = *rng.pick(&[0, 4 << 10, 16 << 10]);
    let tiered = Tiered { level1_bytes, ratio, runs, last_runs, l0_trigger };
    (Layout::Tiered(tiered), Picker::Levels(Levels { part_bytes }))
}

/// Levels in pairs, and their picker.
fn geared(rng: &mut Rng, (level1_bytes, l0_trigger): (u64, usize)) -> (Layout, Picker) {
    let layout = Geared { level1_bytes, ratio: *rng.pick(&[2, 4, 10]), l0_trigger };
    let unit_bytes = *rng.pick(&[0, 4 << 10, 16 << 10]);
    (Layout::Geared(layout), Picker::Drain(Drain { unit_bytes }))
}

/// A buffer that is trimmed often, sometimes of all that is in no cache.
fn buffer(rng: &mut Rng) -> Retainer {
    Retainer::Buffer(Buffer {
        cached_percent: *rng.pick(&[1, 30, 100]),
        period: Duration::from_millis(*rng.pick(&[1, 20, 30_000])),
        share_percent: *rng.pick(&[5, 50, 1000]),
    })
}

/// Changes to guards: so many of them that a few hundred keys have some in every level.
fn set_guarded(rng: &mut Rng, tree: &mut TreeOptions, l0_trigger: usize) {
    tree.picker = Picker::Guards;
    tree.cutter = Cutter::Guards(*tree.tables());
    tree.layout = Layout::Guarded(Guarded {
        l0_trigger,
        top_bits: *rng.pick(&[8, 10, 16]),
        bits_step: *rng.pick(&[1, 1, 2]),
        runs_max: *rng.pick(&[1, 2, 4]),
        guard_bytes: *rng.pick(&[4 << 10, 16 << 10, 1 << 20]),
    });
    if let Layout::Guarded(guarded) = &mut tree.layout {
        guarded.top_bits = guarded.top_bits.max(7 * guarded.bits_step + 1);
    }
}

/// A layout whose limits follow the tree.
fn adaptive(rng: &mut Rng, (l0_bytes, l0_runs): (u64, usize)) -> Layout {
    let limits = Adaptive { l0_bytes, l0_runs };
    if rng.percent(50) { Layout::Auto(limits) } else { Layout::Adaptive(limits) }
}

/// A layout of several runs in a level, and its picker.
fn prefixed(rng: &mut Rng, (level1_bytes, l0_trigger): (u64, usize)) -> (Layout, Picker) {
    let layout = Prefixed { level1_bytes, ratio: *rng.pick(&[2, 4, 10]), l0_trigger };
    let mut picker = Components {
        moves: rng.percent(70),
        access_bytes: *rng.pick(&[0, 1 << 10, 16 << 10]),
        job_bytes: *rng.pick(&[4 << 10, 64 << 10, 256 << 20]),
        ..Components::default()
    };
    // The tables are small, so that few of their keys are looked up a hundred times.
    if picker.access_bytes == 1 << 10 {
        picker.accesses_min = 1;
    }
    (Layout::Prefixed(layout), Picker::Components(picker))
}

/// One of the pacers, with `limits` where it has some. Bandwidths are so small that jobs wait for them, and intervals so short
/// that the class of the load changes often.
fn pacer(rng: &mut Rng, limits: Governor) -> Pacer {
    let bandwidth = Bandwidth {
        device: *rng.pick(&[None, Some(1 << 20), Some(16 << 20), Some(1 << 30)]),
        floor_percent: *rng.pick(&[1, 5, 100]),
    };
    let estimator = *rng.pick(&[
        LoadEstimator::Operations,
        LoadEstimator::Weights { get_bytes: 16_000, scan_bytes: 64_000 },
        LoadEstimator::Blocks,
        LoadEstimator::Composite,
    ]);
    let interval = Duration::from_millis(*rng.pick(&[1, 10, 1000]));
    let runs = 2 + rng.below(limits.l0_slow.saturating_sub(1).max(1));
    let bursts = [Burst::Never, Burst::Full { runs }, Burst::Part { runs, parts: 1 + rng.below(3) }];
    // What has fewer runs than this before it slows writers down knows no burst.
    let burst = if limits.l0_slow < 2 { Burst::Never } else { *rng.pick(&bursts) };
    match rng.below(7) {
        6 => Pacer::Gear(Gear {
            limits,
            spring_percent: *rng.pick(&[1, 50, 95]),
            spring: Duration::from_millis(*rng.pick(&[1, 5000])),
        }),
        0 => Pacer::Governor(limits),
        1 | 5 => {
            Pacer::Steady(Steady { limits, yield_disk: rng.percent(50), yield_processor: rng.percent(50) })
        }
        2 => Pacer::SoftSleep(SoftSleep {
            l0_free: limits.l0_slow,
            nanos_per_run: *rng.pick(&[1, 1000, 1_000_000]),
        }),
        3 => Pacer::Silk(Silk {
            limits,
            bandwidth,
            estimator,
            interval,
            pause_percent: *rng.pick(&[1, 75, 100]),
        }),
        _ => Pacer::Dlc(Dlc {
            limits,
            bandwidth,
            estimator,
            interval,
            high_percent: *rng.pick(&[1, 50, 86]),
            low_percent: 0,
            softness: *rng.pick(&[1, 3]),
            high_softness: *rng.pick(&[1, 2]),
            peak: *rng.pick(&[Peak::DelayFull, Peak::DelayPart]),
            burst,
        }),
    }
}

pub const SHAPES: &[Shape] = &[
    Shape { name: "tiny", options: tiny },
    Shape { name: "smallest, prefixes", options: smallest },
    Shape { name: "one table a file, two compaction threads", options: one_table },
    Shape { name: "compressed, no filter", options: compressed },
    Shape { name: "large tables, small blocks", options: large_tables },
    Shape { name: "values apart", options: separated },
    Shape { name: "eager compactions, small cache", options: eager },
    Shape { name: "scattered victims", options: scattered },
    Shape { name: "leveldb", options: leveldb },
    Shape { name: "default trees", options: default_trees },
    Shape { name: "HyperLevelDB's pace and windows", options: hyperleveldb },
    Shape { name: "SILK's pace", options: silk },
    Shape { name: "DLC's pace, in parts", options: dlc },
    Shape { name: "bLSM's pace", options: gear },
    Shape { name: "PebblesDB's guards", options: guarded },
    Shape { name: "leveling, whole levels", options: leveling },
    Shape { name: "tiering", options: tiering },
    Shape { name: "lazy leveling, in parts", options: lazy_leveling },
    Shape { name: "stepped merge", options: stepped_merge },
    Shape { name: "PTierDB", options: ptier },
    Shape { name: "PTierDB, any prefixes, in small jobs", options: ptier_in_parts },
    Shape { name: "level 0 as wide as the mix asks for", options: auto },
    Shape { name: "bLSM", options: blsm },
    Shape { name: "LSbM", options: lsbm },
    Shape { name: "a compaction buffer over leveled levels", options: buffered },
    Shape { name: "tables dealt out to two devices", options: two_devices },
    Shape { name: "jobs dealt out to three devices, a file a table", options: three_devices },
];

fn smallest() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.set_ratio(Some(2));
        tree.tables().table_bytes = 1 << 10;
        tree.block_bytes = 256;
        *tree.level1_bytes() = 4 << 10;
    });
    let keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(2)), ..KeyspaceOptions::default() };
    Options { memtable_bytes: 4 << 10, wal_bytes_max: 64 << 10, keyspace, tree, ..tiny() }
}

fn one_table() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.files.packs = PackLayout::OneTable;
        tree.group().bytes = 0;
        tree.tables().table_bytes = 2 << 10;
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

pub(crate) fn two_devices() -> Options {
    let placer = Placer::Weighted { slow_percent: 40, unit: Unit::Table };
    Options { background_threads: Some(2), tree: TreeOptions { placer, ..tiny().tree }, ..tiny() }
}

pub(crate) fn three_devices() -> Options {
    let placer = Placer::Mod { n: 2, unit: Unit::Job };
    Options { tree: TreeOptions { placer, ..one_table().tree }, ..tiny() }
}

/// Nearly all values lie apart.
fn separated() -> Options {
    let keyspace = KeyspaceOptions { separate_from: Some(2), ..KeyspaceOptions::default() };
    Options { keyspace, background_threads: Some(2), ..tiny() }
}

fn compressed() -> Options {
    let keyspace = KeyspaceOptions {
        compression: Compression::Lz4,
        filter_bits_per_key: 0,
        prefix: None,
        separate_from: None,
        ttl: None,
    };
    Options { keyspace, background_threads: Some(2), ..tiny() }
}

fn large_tables() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.tables().table_bytes = 64 << 10;
        tree.block_bytes = 256;
        // Some of the tables have more, some less.
        tree.partitioned_bytes_min = 12 << 10;
        *tree.level1_bytes() = 32 << 10;
    });
    Options { memtable_bytes: 8 << 10, tree, ..tiny() }
}

fn eager() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.set_ratio(Some(2));
        *tree.l0_trigger() = 1;
        tree.governor().l0_slow = 2;
        tree.governor().l0_stop = 3;
    });
    Options {
        memory_bytes: Some(1 << 20),
        memtable_bytes: 6 << 10,
        background_threads: Some(2),
        tree,
        ..tiny()
    }
}

fn scattered() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.tables().table_bytes = 1 << 10;
        tree.group().bytes = 12 << 10;
        tree.group().parts = 2;
        tree.picker = Picker::LeastOverlap(*tree.group());
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// LevelDB's settings, at a thousandth of its sizes.
fn leveldb() -> Options {
    let profile = Options::profile("leveldb-2m").expect("a known profile");
    let tree = profile.tree.with(|tree| {
        tree.tables().table_bytes = 2 << 10;
        tree.block_bytes = 512;
        *tree.level1_bytes() = 10 << 10;
    });
    Options { tree, ..tiny() }
}

fn hyperleveldb() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.pacer = Pacer::SoftSleep(SoftSleep { l0_free: 2, nanos_per_run: 100_000 });
        tree.picker = Picker::RatioWindow(RatioWindow { oldest_runs: 3, ..RatioWindow::default() });
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// A device that is slower than the load, so that jobs wait for it and deep ones are suspended.
const SLOW: Bandwidth = Bandwidth { device: Some(4 << 20), floor_percent: 5 };

fn silk() -> Options {
    let limits = *tiny().tree.governor();
    let pacer = Pacer::Silk(Silk { limits, bandwidth: SLOW, ..Silk::default() });
    Options { background_threads: Some(2), tree: tiny().tree.with(|tree| tree.pacer = pacer), ..tiny() }
}

/// Level 0 is compacted in parts, and at a peak that nothing ends before the limits for writers.
fn dlc() -> Options {
    let limits = Governor { l0_slow: 8, l0_stop: 12, ..*tiny().tree.governor() };
    let pacer = Pacer::Dlc(Dlc {
        limits,
        bandwidth: SLOW,
        estimator: LoadEstimator::Operations,
        interval: Duration::from_millis(1),
        high_percent: 1,
        low_percent: 0,
        burst: Burst::Part { runs: 3, parts: 2 },
        ..Dlc::default()
    });
    Options { background_threads: Some(2), tree: tiny().tree.with(|tree| tree.pacer = pacer), ..tiny() }
}

/// Levels over their limits, so that what comes in waits for what leaves.
fn gear() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.set_ratio(Some(2));
        *tree.level1_bytes() = 8 << 10;
        let limits = Governor { l0_slow: 8, l0_stop: 12, ..*tree.governor() };
        tree.pacer = Pacer::Gear(Gear { limits, spring_percent: 50, spring: Duration::from_millis(10) });
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// bLSM's levels, at a thousandth of its sizes.
fn blsm() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.layout = Layout::Geared(Geared { level1_bytes: 10 << 10, ratio: 3, l0_trigger: 2 });
        tree.picker = Picker::Drain(Drain { unit_bytes: 6 << 10 });
        tree.tables().table_bytes = 2 << 10;
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// The same with a buffer from which something is trimmed now and then.
pub(crate) fn lsbm() -> Options {
    let buffer = Buffer { cached_percent: 50, period: Duration::from_millis(50), share_percent: 100 };
    let tree = blsm().tree.with(|tree| tree.retainer = Retainer::Buffer(buffer));
    Options { tree, ..blsm() }
}

/// Most of what is kept goes for its share.
fn buffered() -> Options {
    let buffer = Buffer { cached_percent: 1, period: Duration::from_secs(30), share_percent: 30 };
    let tree = tiny().tree.with(|tree| {
        tree.retainer = Retainer::Buffer(buffer);
        tree.set_ratio(Some(4));
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// One key in 128 is a guard of level 1, and one in 64, 32, .. of the next ones.
pub(crate) fn guarded() -> Options {
    let tree = tiny().tree.with(|tree| {
        (tree.picker, tree.cutter) = (Picker::Guards, Cutter::Guards(*tree.tables()));
        tree.layout = Layout::Guarded(Guarded {
            l0_trigger: 2,
            top_bits: 8,
            bits_step: 1,
            runs_max: 2,
            guard_bytes: 8 << 10,
        });
    });
    Options { memtable_bytes: 6 << 10, background_threads: Some(2), tree, ..tiny() }
}

/// Whole levels, or parts of them, under a level 1 of 8 KiB.
fn tiers(layout: Tiered, part_bytes: u64) -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.layout = Layout::Tiered(Tiered { level1_bytes: 8 << 10, ratio: 3, l0_trigger: 2, ..layout });
        tree.tables().table_bytes = 2 << 10;
        tree.picker = Picker::Levels(Levels { part_bytes });
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// PTierDB's settings, at a thousandth of its sizes.
fn ptier() -> Options {
    let profile = Options::profile("ptier").expect("a known profile");
    let tree = profile.tree.with(|tree| {
        tree.tables().table_bytes = 4 << 10;
        tree.block_bytes = 512;
        *tree.level1_bytes() = 10 << 10;
        tree.set_ratio(Some(4));
    });
    let keyspace = KeyspaceOptions { prefix: Some(Prefix::Fixed(2)), ..KeyspaceOptions::default() };
    Options { keyspace, tree, ..tiny() }
}

/// The same in packs of several tables, with two threads, and with jobs that take a part of what overlaps.
fn ptier_in_parts() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.layout = Layout::Prefixed(Prefixed { level1_bytes: 8 << 10, ratio: 2, l0_trigger: 2 });
        tree.picker = Picker::Components(Components {
            moves: true,
            access_bytes: 1 << 10,
            job_bytes: 16 << 10,
            ..Components::default()
        });
        tree.cutter = Cutter::Prefix(TableSize { table_bytes: 2 << 10, flushes: Flushes::Cut });
    });
    Options { background_threads: Some(2), tree, ..tiny() }
}

/// Level 0 may be as large as the rest, and its runs are many before they are due.
fn auto() -> Options {
    let tree = tiny().tree.with(|tree| {
        tree.layout = Layout::Auto(Adaptive { l0_bytes: 8 << 10, l0_runs: 2 });
        (tree.governor().l0_slow, tree.governor().l0_stop) = (16, 24);
    });
    Options { memtable_bytes: 4 << 10, background_threads: Some(2), tree, ..tiny() }
}

fn leveling() -> Options {
    tiers(Tiered::LEVELING, 0)
}

pub(crate) fn tiering() -> Options {
    tiers(Tiered { runs: 3, last_runs: 3, ..Tiered::TIERING }, 0)
}

pub(crate) fn lazy_leveling() -> Options {
    tiers(Tiered { runs: 3, ..Tiered::LAZY_LEVELING }, 6 << 10)
}

fn stepped_merge() -> Options {
    tiers(Tiered { runs: 2, ..Tiered::STEPPED_MERGE }, 0)
}

fn default_trees() -> Options {
    Options { memtable_bytes: 16 << 10, memory_bytes: Some(8 << 20), ..Options::default() }
}
