//! Options at the ends of their ranges, and beyond them.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::time::Duration;

use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::tree::{
    Bandwidth, Buffer, Burst, Caching, Components, Cutter, Descriptors, Dlc, Drain, Files, Flushes, Gear,
    Geared, Governor, Group, Guarded, Layout, Leveled, Levels, LoadEstimator, Pacer, PackLayout, Picker,
    Placer, Prefixed, RatioWindow, Retainer, Silk, SoftSleep, TableSize, Tiered, Unit, ValueOrder,
};
use terrace::{Compression, Db, Durability, ErrorKind, KeyspaceOptions, Options, Prefix, TreeOptions};
use terrace_torture::TreeParts as _;

fn machine() -> Arc<SimEnv> {
    SimEnv::new(SimConfig::default())
}

/// Changes one setting.
type Change = fn(&mut Options);

#[test]
fn each_setting_out_of_its_range_is_named() {
    let wrong: &[(&str, Change)] = &[
        ("memory_bytes", |o| o.memory_bytes = Some(0)),
        ("memory_bytes", |o| o.memory_bytes = Some((1 << 20) - 1)),
        ("space_bytes", |o| o.space_bytes = Some((1 << 20) - 1)),
        ("memtable_bytes", |o| o.memtable_bytes = 4095),
        ("memtable_bytes", |o| o.memtable_bytes = (4 << 30) + 1),
        ("wal_bytes_max", |o| o.wal_bytes_max = 65_535),
        ("background_threads", |o| o.background_threads = Some(0)),
        ("background_threads", |o| o.background_threads = Some(65)),
        ("filter_bits_per_key", |o| o.keyspace.filter_bits_per_key = 21),
        ("prefix bytes", |o| o.keyspace.prefix = Some(Prefix::Fixed(0))),
        ("prefix count", |o| o.keyspace.prefix = Some(Prefix::Delimited { delimiter: b':', count: 0 })),
    ];
    are_named(wrong);
}

#[test]
fn each_setting_of_a_tree_out_of_its_range_is_named() {
    let wrong: &[(&str, Change)] = &[
        ("tree.cutter.table_bytes", |o| o.tree.tables().table_bytes = 1023),
        ("tree.cutter.table_bytes", |o| o.tree.tables().table_bytes = (1 << 30) + 1),
        ("tree.files.packs", |o| o.tree.files.packs = PackLayout::Many { bytes_max: (1 << 20) - 1 }),
        ("tree.files.packs", |o| o.tree.files.packs = PackLayout::Many { bytes_max: (4 << 30) + 1 }),
        ("tree.placer n", |o| o.tree.placer = Placer::Mod { n: 1, unit: Unit::Table }),
        ("tree.placer slow_percent", |o| {
            o.tree.placer = Placer::Weighted { slow_percent: 101, unit: Unit::Job }
        }),
        ("tree.placer upto", |o| o.tree.placer = Placer::Level { upto: 8, adapt: false }),
        ("tree.picker.bytes", |o| o.tree.group().bytes = (4 << 30) + 1),
        ("tree.picker.parts", |o| o.tree.group().parts = 0),
        ("tree.picker.parts", |o| o.tree.group().parts = 1001),
        ("tree.picker.window_tables", |o| o.tree.picker = window(1, 32)),
        ("tree.picker.window_tables", |o| o.tree.picker = window(1001, 32)),
        ("tree.picker.oldest_runs", |o| o.tree.picker = window(16, 0)),
        ("tree.picker.oldest_runs", |o| o.tree.picker = window(16, 10_001)),
        ("tree.picker.part_bytes", |o| o.tree.picker = Picker::Levels(Levels { part_bytes: (4 << 30) + 1 })),
        ("tree.picker is Levels", |o| o.tree.picker = Picker::Levels(Levels::default())),
        ("tree.layout is Tiered", |o| o.tree.layout = Layout::Tiered(Tiered::default())),
        ("tree.layout.level1_bytes", |o| o.tree.layout = tiered(|tiered| tiered.level1_bytes = 4095)),
        ("tree.layout.ratio", |o| o.tree.layout = tiered(|tiered| tiered.ratio = 101)),
        ("tree.layout.runs", |o| o.tree.layout = tiered(|tiered| tiered.runs = 0)),
        ("tree.layout.last_runs", |o| o.tree.layout = tiered(|tiered| tiered.last_runs = 1001)),
        ("tree.layout.l0_trigger", |o| o.tree.layout = tiered(|tiered| tiered.l0_trigger = 0)),
        ("tree.layout is Geared", |o| o.tree.layout = Layout::Geared(Geared::default())),
        ("tree.picker is Drain", |o| o.tree.picker = Picker::Drain(Drain::default())),
        ("tree.picker.unit_bytes", |o| o.tree.picker = Picker::Drain(Drain { unit_bytes: (4 << 30) + 1 })),
        ("tree.layout.level1_bytes", |o| o.tree.layout = geared(|geared| geared.level1_bytes = 4095)),
        ("tree.layout.ratio", |o| o.tree.layout = geared(|geared| geared.ratio = 1)),
        ("tree.layout.l0_trigger", |o| o.tree.layout = geared(|geared| geared.l0_trigger = 0)),
        ("tree.retainer.cached_percent", |o| o.tree.retainer = buffer(|buffer| buffer.cached_percent = 0)),
        ("tree.retainer.cached_percent", |o| o.tree.retainer = buffer(|buffer| buffer.cached_percent = 101)),
        ("tree.retainer.period", |o| o.tree.retainer = buffer(|buffer| buffer.period = Duration::ZERO)),
        ("tree.retainer.share_percent", |o| o.tree.retainer = buffer(|buffer| buffer.share_percent = 0)),
        ("tree.retainer.share_percent", |o| o.tree.retainer = buffer(|buffer| buffer.share_percent = 1001)),
        ("tree.block_bytes", |o| o.tree.block_bytes = 255),
        ("tree.block_bytes", |o| o.tree.block_bytes = (1 << 20) + 1),
        ("tree.layout.l0_bytes", |o| *o.tree.level1_bytes() = 4095),
        ("tree.layout.l0_bytes", |o| *o.tree.level1_bytes() = u64::MAX),
        ("tree.layout.l0_runs", |o| *o.tree.l0_trigger() = 0),
        ("tree.layout.l0_runs", |o| *o.tree.l0_trigger() = 1001),
        ("tree.layout.level1_bytes", |o| o.tree.layout = leveled(4095, 10, 4)),
        ("tree.layout.level1_bytes", |o| o.tree.layout = leveled(u64::MAX, 10, 4)),
        ("tree.layout.ratio", |o| o.tree.layout = leveled(1 << 20, 1, 4)),
        ("tree.layout.ratio", |o| o.tree.layout = leveled(1 << 20, 101, 4)),
        ("tree.layout.l0_trigger", |o| o.tree.layout = leveled(1 << 20, 10, 0)),
        ("tree.layout.l0_trigger", |o| o.tree.layout = leveled(1 << 20, 10, 1001)),
        ("tree.layout.l0_trigger", |o| o.tree.layout = guarded(|guarded| guarded.l0_trigger = 0)),
        ("tree.layout.bits_step", |o| o.tree.layout = guarded(|guarded| guarded.bits_step = 0)),
        ("tree.layout.bits_step", |o| o.tree.layout = guarded(|guarded| guarded.bits_step = 9)),
        ("tree.layout.top_bits", |o| o.tree.layout = guarded(|guarded| guarded.top_bits = 14)),
        ("tree.layout.top_bits", |o| o.tree.layout = guarded(|guarded| guarded.top_bits = 64)),
        ("tree.layout.runs_max", |o| o.tree.layout = guarded(|guarded| guarded.runs_max = 0)),
        ("tree.layout.runs_max", |o| o.tree.layout = guarded(|guarded| guarded.runs_max = 101)),
        ("tree.layout.guard_bytes", |o| o.tree.layout = guarded(|guarded| guarded.guard_bytes = 4095)),
        ("tree.pacer.l0_slow", |o| o.tree.governor().l0_slow = *o.tree.l0_trigger() - 1),
        ("tree.pacer.l0_slow", |o| o.tree.governor().l0_slow = 0),
        ("tree.pacer.l0_slow", |o| o.tree.governor().l0_slow = usize::MAX),
        ("tree.pacer.l0_stop", |o| o.tree.governor().l0_stop = o.tree.governor().l0_slow),
        ("tree.pacer.l0_stop", |o| o.tree.governor().l0_stop = usize::MAX),
        ("tree.pacer.debt_stop_bytes", |o| {
            o.tree.governor().debt_stop_bytes = o.tree.governor().debt_slow_bytes
        }),
        ("tree.pacer.debt_stop_bytes", |o| o.tree.governor().debt_slow_bytes = u64::MAX),
    ];
    are_named(wrong);
}

#[test]
fn each_setting_of_a_pacer_out_of_its_range_is_named() {
    are_named(&[
        ("tree.pacer.l0_free", |o| o.tree.pacer = soft_sleep(0, 1)),
        ("tree.pacer.l0_free", |o| o.tree.pacer = soft_sleep(10_001, 1)),
        ("tree.pacer.nanos_per_run", |o| o.tree.pacer = soft_sleep(8, 0)),
        ("tree.pacer.nanos_per_run", |o| o.tree.pacer = soft_sleep(8, 1_000_001)),
        ("tree.pacer.pause_percent", |o| o.tree.pacer = silk(|silk| silk.pause_percent = 0)),
        ("tree.pacer.pause_percent", |o| o.tree.pacer = silk(|silk| silk.pause_percent = 101)),
        ("tree.pacer.interval", |o| o.tree.pacer = silk(|silk| silk.interval = Duration::from_micros(999))),
        ("tree.pacer.interval", |o| o.tree.pacer = dlc(|dlc| dlc.interval = Duration::from_secs(61))),
        ("tree.pacer.spring_percent", |o| o.tree.pacer = gear(|gear| gear.spring_percent = 0)),
        ("tree.pacer.spring_percent", |o| o.tree.pacer = gear(|gear| gear.spring_percent = 100)),
        ("tree.pacer.spring,", |o| o.tree.pacer = gear(|gear| gear.spring = Duration::from_micros(999))),
        ("tree.pacer.spring,", |o| o.tree.pacer = gear(|gear| gear.spring = Duration::from_secs(61))),
        ("tree.pacer.l0_stop", |o| o.tree.pacer = gear(|gear| gear.limits.l0_stop = 0)),
        ("tree.pacer.l0_stop", |o| o.tree.pacer = silk(|silk| silk.limits.l0_stop = 0)),
        ("tree.pacer.l0_stop", |o| o.tree.pacer = dlc(|dlc| dlc.limits.l0_stop = 0)),
        ("tree.pacer.bandwidth.device", |o| {
            o.tree.pacer = silk(|silk| silk.bandwidth.device = Some((1 << 20) - 1))
        }),
        ("tree.pacer.bandwidth.floor_percent", |o| o.tree.pacer = dlc(|dlc| dlc.bandwidth.floor_percent = 0)),
        ("tree.pacer.bandwidth.floor_percent", |o| {
            o.tree.pacer = dlc(|dlc| dlc.bandwidth.floor_percent = 101)
        }),
        ("tree.pacer.estimator.get_bytes", |o| {
            o.tree.pacer = dlc(|dlc| dlc.estimator = weights((1 << 30) + 1, 0))
        }),
        ("tree.pacer.estimator.scan_bytes", |o| {
            o.tree.pacer = dlc(|dlc| dlc.estimator = weights(0, (1 << 30) + 1))
        }),
        ("tree.pacer.high_percent", |o| o.tree.pacer = dlc(|dlc| dlc.high_percent = 0)),
        ("tree.pacer.high_percent", |o| o.tree.pacer = dlc(|dlc| dlc.high_percent = 101)),
        ("tree.pacer.low_percent", |o| o.tree.pacer = dlc(|dlc| dlc.low_percent = dlc.high_percent)),
        ("tree.pacer.softness", |o| o.tree.pacer = dlc(|dlc| dlc.softness = 0)),
        ("tree.pacer.softness", |o| o.tree.pacer = dlc(|dlc| dlc.softness = 1001)),
        ("tree.pacer.high_softness", |o| o.tree.pacer = dlc(|dlc| dlc.high_softness = 0)),
        ("tree.pacer.burst.runs", |o| o.tree.pacer = dlc(|dlc| dlc.burst = Burst::Full { runs: 1 })),
        ("tree.pacer.burst.runs", |o| {
            o.tree.pacer = dlc(|dlc| dlc.burst = Burst::Part { runs: dlc.limits.l0_slow + 1, parts: 1 })
        }),
        ("tree.pacer.burst.parts", |o| {
            o.tree.pacer = dlc(|dlc| dlc.burst = Burst::Part { runs: 2, parts: 0 })
        }),
    ]);
}

fn are_named(wrong: &[(&str, Change)]) {
    for (name, change) in wrong {
        let env = machine();
        let mut options = Options::default();
        change(&mut options);
        let error = Db::builder("/db").env(env.clone()).options(options).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert!(error.to_string().contains(&format!("option {name}")), "{name}: {error}");
        // Nothing was touched.
        assert_eq!((env.mutations(), env.files().len()), (0, 0), "{name}");
    }
}

fn soft_sleep(l0_free: usize, nanos_per_run: u32) -> Pacer {
    Pacer::SoftSleep(SoftSleep { l0_free, nanos_per_run })
}

fn window(window_tables: u32, oldest_runs: usize) -> Picker {
    Picker::RatioWindow(RatioWindow { window_tables, oldest_runs, ..RatioWindow::default() })
}

fn silk(change: impl FnOnce(&mut Silk)) -> Pacer {
    let mut silk = Silk::default();
    change(&mut silk);
    Pacer::Silk(silk)
}

fn dlc(change: impl FnOnce(&mut Dlc)) -> Pacer {
    let mut dlc = Dlc::default();
    change(&mut dlc);
    Pacer::Dlc(dlc)
}

fn gear(change: impl FnOnce(&mut Gear)) -> Pacer {
    let mut gear = Gear::default();
    change(&mut gear);
    Pacer::Gear(gear)
}

fn weights(get_bytes: u64, scan_bytes: u64) -> LoadEstimator {
    LoadEstimator::Weights { get_bytes, scan_bytes }
}

fn keyspace(compression: Compression, filter_bits_per_key: u8, prefix_bytes: u16) -> KeyspaceOptions {
    let prefix = Some(Prefix::Fixed(prefix_bytes));
    KeyspaceOptions { compression, filter_bits_per_key, prefix, separate_from: None, ttl: None }
}

fn leveled(level1_bytes: u64, ratio: u32, l0_trigger: usize) -> Layout {
    Layout::Leveled(Leveled { level1_bytes, ratio, l0_trigger })
}

fn guarded(change: fn(&mut Guarded)) -> Layout {
    let mut guarded = Guarded::default();
    change(&mut guarded);
    Layout::Guarded(guarded)
}

fn geared(change: fn(&mut Geared)) -> Layout {
    let mut geared = Geared::default();
    change(&mut geared);
    Layout::Geared(geared)
}

fn buffer(change: fn(&mut Buffer)) -> Retainer {
    let mut buffer = Buffer::default();
    change(&mut buffer);
    Retainer::Buffer(buffer)
}

fn tiered(change: impl FnOnce(&mut Tiered)) -> Layout {
    let mut tiered = Tiered::default();
    change(&mut tiered);
    Layout::Tiered(tiered)
}

fn smallest_tree() -> TreeOptions {
    TreeOptions {
        layout: leveled(4 << 10, 2, 1),
        picker: Picker::LeastOverlap(Group { bytes: 0, parts: 1, settle: false }),
        cutter: Cutter::Size(TableSize { table_bytes: 1 << 10, flushes: Flushes::Whole }),
        retainer: Retainer::Buffer(Buffer {
            cached_percent: 1,
            period: Duration::from_millis(1),
            share_percent: 1,
        }),
        pacer: Pacer::Governor(Governor {
            l0_slow: 1,
            l0_stop: 2,
            debt_slow_bytes: 0,
            debt_stop_bytes: 1 << 20,
        }),
        files: Files { packs: PackLayout::Many { bytes_max: 1 << 20 }, descriptors: Descriptors::PerTable },
        placer: Placer::Weighted { slow_percent: 0, unit: Unit::Job },
        caching: Caching::WarmUp,
        value_order: ValueOrder::Key,
        block_bytes: 256,
        partitioned_bytes_min: 0,
    }
}

fn largest_tree() -> TreeOptions {
    TreeOptions {
        layout: leveled(1 << 50, 100, 1000),
        picker: Picker::LeastOverlap(Group { bytes: 4 << 30, parts: 1000, settle: true }),
        cutter: Cutter::Size(TableSize { table_bytes: 1 << 30, flushes: Flushes::Cut }),
        retainer: Retainer::Buffer(Buffer {
            cached_percent: 100,
            period: Duration::from_secs(24 * 60 * 60),
            share_percent: 1000,
        }),
        pacer: Pacer::Governor(Governor {
            l0_slow: 10_000,
            l0_stop: 100_000,
            debt_slow_bytes: u64::MAX - 1,
            debt_stop_bytes: u64::MAX,
        }),
        files: Files { packs: PackLayout::Many { bytes_max: 4 << 30 }, descriptors: Descriptors::PerPack },
        placer: Placer::Level { upto: 7, adapt: true },
        caching: Caching::Blocks,
        value_order: ValueOrder::Key,
        block_bytes: 1 << 20,
        partitioned_bytes_min: u64::MAX,
    }
}

/// Pickers and pacers at the ends of their ranges, beside the others of `smallest` and `largest`.
fn variants_at_the_ends(smallest: &Options, largest: &Options) -> Vec<Options> {
    let with = |options: &Options, pacer| {
        let mut options = options.clone();
        options.tree.pacer = pacer;
        options
    };
    let (first, last) = (*smallest.tree.clone().governor(), *largest.tree.clone().governor());
    let least = Bandwidth { device: Some(1 << 20), floor_percent: 1 };
    let most = Bandwidth { device: Some(u64::MAX), floor_percent: 100 };
    let eager = dlc(|dlc| {
        (dlc.limits, dlc.bandwidth, dlc.interval) = (first, least, Duration::from_millis(1));
        (dlc.high_percent, dlc.low_percent, dlc.estimator) = (1, 0, LoadEstimator::Operations);
    });
    let lazy = dlc(|dlc| {
        (dlc.limits, dlc.bandwidth, dlc.interval) = (last, most, Duration::from_secs(60));
        (dlc.high_percent, dlc.low_percent, dlc.softness, dlc.high_softness) = (100, 99, 1000, 1000);
        dlc.burst = Burst::Part { runs: 10_000, parts: 1000 };
    });
    let picked = |options: &Options, picker| {
        let mut options = options.clone();
        options.tree.picker = picker;
        options
    };
    vec![
        picked(smallest, window(2, 1)),
        picked(largest, window(1000, 10_000)),
        with(smallest, soft_sleep(1, 1_000_000)),
        with(largest, soft_sleep(10_000, 1)),
        with(smallest, silk(|silk| (silk.limits, silk.bandwidth, silk.pause_percent) = (first, least, 1))),
        with(largest, silk(|silk| (silk.limits, silk.bandwidth, silk.pause_percent) = (last, most, 100))),
        with(
            smallest,
            gear(|gear| {
                (gear.limits, gear.spring_percent, gear.spring) = (first, 1, Duration::from_millis(1))
            }),
        ),
        with(largest, gear(|gear| (gear.limits, gear.spring_percent) = (last, 99))),
        with(smallest, eager),
        with(largest, lazy),
    ]
}

/// The ends of the ranges of PTierDB's layout.
fn prefixed_trees(smallest: &Options, largest: &Options) -> [Options; 3] {
    let tree = |options: &Options, limits: Prefixed, components: Components, table_bytes| {
        let mut options = options.clone();
        options.tree.layout = Layout::Prefixed(limits);
        options.tree.picker = Picker::Components(components);
        options.tree.retainer = Retainer::Drop;
        options.tree.cutter = Cutter::Prefix(TableSize { table_bytes, flushes: Flushes::Whole });
        options
    };
    let least = Prefixed { level1_bytes: 4 << 10, ratio: 2, l0_trigger: 1 };
    let most = Prefixed { level1_bytes: 1 << 50, ratio: 100, l0_trigger: 1000 };
    let hasty = Components { moves: true, access_bytes: 1 << 30, accesses_min: 1, job_bytes: 4 << 10 };
    let patient =
        Components { moves: false, access_bytes: 1 << 10, accesses_min: 1_000_000, job_bytes: 1 << 40 };
    [
        tree(smallest, least, hasty, 1 << 10),
        tree(largest, most, patient, 1 << 30),
        tree(smallest, least, patient, 1 << 10),
    ]
}

/// The ends of the ranges of geared levels.
fn geared_trees(smallest: &Options, largest: &Options) -> [Options; 2] {
    let tree = |options: &Options, layout: Geared, unit_bytes| {
        let mut options = options.clone();
        options.tree.layout = Layout::Geared(layout);
        options.tree.picker = Picker::Drain(Drain { unit_bytes });
        options
    };
    [
        tree(smallest, Geared { level1_bytes: 4 << 10, ratio: 2, l0_trigger: 1 }, 0),
        tree(largest, Geared { level1_bytes: 1 << 50, ratio: 100, l0_trigger: 1000 }, 4 << 30),
    ]
}

#[test]
fn settings_at_the_ends_of_their_ranges_work() {
    let smallest = Options {
        durability: Durability::Synced,
        memory_bytes: Some(1 << 20),
        space_bytes: None,
        memtable_bytes: 4 << 10,
        wal_bytes_max: 64 << 10,
        reserve_bytes: 1,
        background_threads: Some(64),
        keyspace: keyspace(Compression::Lz4, 0, 1),
        tree: smallest_tree(),
    };
    let largest = Options {
        memory_bytes: Some(u64::MAX),
        space_bytes: Some(u64::MAX),
        memtable_bytes: 4 << 30,
        wal_bytes_max: u64::MAX,
        reserve_bytes: 1 << 20,
        background_threads: Some(1),
        keyspace: keyspace(Compression::None, 20, u16::MAX),
        tree: largest_tree(),
        ..Options::default()
    };
    let paced = variants_at_the_ends(&smallest, &largest);
    // Each opens what the other has written.
    let env = machine();
    let prefixed = prefixed_trees(&smallest, &largest);
    let geared = geared_trees(&smallest, &largest);
    let all = [&smallest, &largest, &smallest].into_iter().chain(&paced).chain(&prefixed).chain(&geared);
    for (round, options) in all.enumerate() {
        let db = Db::builder("/db").env(env.clone()).options(options.clone()).open().unwrap();
        for n in 0..500 {
            db.put(format!("{:03}", n % 250), format!("{round}-{n}")).unwrap();
        }
        db.compact().unwrap();
        assert_eq!(db.get("007").unwrap().unwrap(), format!("{round}-257").as_str());
        assert_eq!(db.iter().unwrap().count(), 250);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    }
}
