//! Tests of limits: the smallest and the largest of everything, the first value beyond, and handles that outlive
//! their store.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Random, scheduled, tiny};
use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::tree::{
    Bandwidth, Burst, Components, Cutter, Descriptors, Dlc, Flushes, Gear, Governor, Group, Guarded, Layout,
    Leveled, Levels, LoadEstimator, OneDevice, Pacer, PackLayout, Picker, Placer, Prefixed, RatioWindow,
    Retainer, Silk, SoftSleep, TableSize, Tiered,
};
use terrace::{
    Compression, Db, Durability, Error, ErrorKind, KeyspaceOptions, Options, Prefix, TreeOptions, WriteBatch,
};
use terrace_torture::TreeParts as _;

fn machine() -> Arc<SimEnv> {
    SimEnv::new(SimConfig::default())
}

fn open(env: &Arc<SimEnv>) -> Db {
    Db::builder("/db").env(env.clone()).options(tiny()).open().unwrap()
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("should have failed"),
        Err(error) => error.kind(),
    }
}

/// Noise, so that no compression makes it small.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

#[test]
fn keys_and_values_of_every_allowed_length_come_back() {
    let env = machine();
    let db = open(&env);
    let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
    let packed = db.keyspace_with("packed", lz4).unwrap();
    // Around every length at which a field or a unit of the formats changes.
    let keys = [0usize, 1, 2, 127, 128, 255, 256, 4095, 4096, 16_383, 16_384, 65_534, 65_535];
    let values = [0usize, 1, 127, 128, 4091, 4096, 65_535, 65_536, 1 << 20, (3 << 20) + 5];
    let mut expected = std::collections::BTreeMap::new();
    for (n, &len) in keys.iter().enumerate() {
        // Keys of equal beginnings, and of none.
        for key in [vec![b'k'; len], noise(len, n as u64)] {
            expected.insert(key, noise(values[n % values.len()], n as u64));
        }
    }
    for (n, &len) in values.iter().enumerate() {
        expected.insert(format!("value{n}").into_bytes(), noise(len, 100 + n as u64));
    }
    for (key, value) in &expected {
        db.put(key, value).unwrap();
        packed.put(key, value).unwrap();
    }
    drop(packed);
    let check = |db: &Db| {
        for name in ["default", "packed"] {
            let keyspace = db.existing_keyspace(name).unwrap().unwrap();
            for (key, value) in &expected {
                assert_eq!(keyspace.get(key).unwrap().unwrap(), value.as_slice(), "{} bytes", key.len());
            }
            let forward: Vec<_> = keyspace.iter().unwrap().map(|entry| entry.unwrap()).collect();
            assert!(
                forward.iter().zip(&expected).all(|(a, b)| a.0 == b.0.as_slice() && a.1 == b.1.as_slice())
            );
            let mut backward: Vec<_> = keyspace.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
            backward.reverse();
            assert!(forward == backward && forward.len() == expected.len());
        }
        assert!(db.verify().unwrap().problems.is_empty());
    };
    check(&db);
    db.close().unwrap();
    let db = open(&env);
    check(&db);
    db.compact().unwrap();
    check(&db);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn what_is_too_long_is_refused_and_changes_nothing() {
    let env = machine();
    let db = open(&env);
    db.put("key", "value").unwrap();
    assert_eq!(kind(db.put(vec![0; 65_536], "value")), ErrorKind::InvalidInput);
    assert_eq!(kind(db.delete(vec![0; 65_536])), ErrorKind::InvalidInput);
    let huge = vec![0; (1 << 30) + 1];
    let error = db.put("key", &huge).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1073741825"), "{error}");
    // A batch with one such operation is refused whole, whatever its place.
    let mut batch = WriteBatch::new();
    batch.put("before", "1").put(vec![0; 65_536], "2").put("after", "3");
    assert_eq!(kind(db.write(batch)), ErrorKind::InvalidInput);
    // No key can be as long as these, so nothing is found; asking is no mistake.
    assert!(db.get(vec![0; 65_536]).unwrap().is_none());
    assert_eq!(db.range(vec![0; 70_000]..).unwrap().count(), 1);
    assert_eq!(db.prefix(vec![0xff; 70_000]).unwrap().count(), 0);
    assert_eq!(db.stats().last_seq, 1);
    db.close().unwrap();
    assert_eq!(open(&env).iter().unwrap().count(), 1);
}

#[test]
fn a_batch_holds_nothing_or_very_much() {
    let env = machine();
    let db = open(&env);
    let other = db.keyspace("other").unwrap();
    db.write(WriteBatch::new()).unwrap();
    db.write_with(WriteBatch::new(), Durability::Synced).unwrap();
    assert_eq!(db.stats().last_seq, 0);
    let mut batch = WriteBatch::new();
    for n in 0..100_000u32 {
        batch.put(format!("{n:06}"), n.to_le_bytes()).put_in(&other, format!("{:06}", n / 2), "");
    }
    assert_eq!(batch.len(), 200_000);
    // Far more than a memtable, a segment of the log, or a group of writers holds.
    assert!(batch.bytes() > 2 << 20);
    db.write(batch.clone()).unwrap();
    batch.clear();
    assert!(batch.is_empty() && batch.bytes() == 0);
    batch.put("~", "after");
    db.write(batch).unwrap();
    let check = |db: &Db| {
        assert_eq!(db.iter().unwrap().count(), 100_001);
        assert_eq!(db.existing_keyspace("other").unwrap().unwrap().iter().unwrap().count(), 50_000);
        assert_eq!(db.get("099999").unwrap().unwrap(), 99_999u32.to_le_bytes());
    };
    check(&db);
    // As a killed process leaves it, and after a regular end.
    check(&open(&env.crash(Survival::Everything)));
    drop(other);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn an_empty_batch_that_is_synced_syncs_what_was_before() {
    let env = machine();
    let db = open(&env);
    db.put("key", "value").unwrap();
    assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_none());
    db.write_with(WriteBatch::new(), Durability::Synced).unwrap();
    assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_some());
}

#[test]
fn closing_makes_every_write_durable() {
    for by_name in [true, false] {
        let env = machine();
        let db = open(&env);
        db.put("key", "value").unwrap();
        if by_name {
            db.close().unwrap()
        } else {
            drop(db)
        }
        assert!(open(&env.crash(Survival::Nothing)).get("key").unwrap().is_some(), "{by_name}");
    }
}

#[test]
fn keyspaces_by_the_thousand() {
    let env = machine();
    let db = open(&env);
    for round in 0..3u32 {
        for n in 0..1000 {
            let keyspace = db.keyspace(&format!("{n}")).unwrap();
            keyspace.put("key", format!("{round}")).unwrap();
        }
        assert_eq!(db.keyspaces().len(), 1001);
        db.flush().unwrap();
        for n in 0..1000 {
            if n % 10 != 0 || round < 2 {
                db.drop_keyspace(&format!("{n}")).unwrap();
            }
        }
    }
    let check = |db: &Db| {
        assert_eq!(db.keyspaces().len(), 101);
        for n in (0..1000).step_by(10) {
            let keyspace = db.existing_keyspace(&format!("{n}")).unwrap().unwrap();
            assert_eq!(keyspace.get("key").unwrap().unwrap(), "2");
        }
        assert!(db.existing_keyspace("1").unwrap().is_none());
    };
    check(&db);
    db.wait_idle().unwrap();
    // One small table each is left.
    assert_eq!(db.stats().space.pack_files, 100);
    db.close().unwrap();
    check(&open(&env));
}

#[test]
fn names_of_keyspaces_have_limits() {
    let env = machine();
    let db = open(&env);
    let longest = "\u{e4}".repeat(127) + "x";
    assert_eq!(longest.len(), 255);
    let names = ["a", " ", "\0", "/", "..", "Default", "\u{1f980}", longest.as_str()];
    for name in names {
        db.keyspace(name).unwrap().put("name", name).unwrap();
    }
    assert_eq!(kind(db.keyspace("")), ErrorKind::InvalidInput);
    assert_eq!(kind(db.keyspace(&(longest.clone() + "x"))), ErrorKind::InvalidInput);
    assert!(db.existing_keyspace("").unwrap().is_none());
    assert_eq!(kind(db.drop_keyspace("")), ErrorKind::NotFound);
    assert_eq!(kind(db.drop_keyspace("b")), ErrorKind::NotFound);
    assert_eq!(kind(db.drop_keyspace("default")), ErrorKind::InvalidInput);
    let bits = |bits| KeyspaceOptions { filter_bits_per_key: bits, ..KeyspaceOptions::default() };
    let error = db.keyspace_with("b", bits(21)).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("filter_bits_per_key"));
    for n in [0, 20] {
        let keyspace = db.keyspace_with(&format!("bits{n}"), bits(n)).unwrap();
        keyspace.put("key", "value").unwrap();
        db.flush().unwrap();
        assert!(keyspace.contains("key").unwrap() && !keyspace.contains("no key").unwrap());
    }
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.keyspaces().len(), names.len() + 3);
    for name in names {
        assert_eq!(db.existing_keyspace(name).unwrap().unwrap().get("name").unwrap().unwrap(), name);
    }
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
        ("tree.cutter.table_bytes", |o| o.tree.tables().table_bytes = 1023),
        ("tree.cutter.table_bytes", |o| o.tree.tables().table_bytes = (1 << 30) + 1),
        ("tree.placer.packs", |o| o.tree.device().packs = PackLayout::Many { bytes_max: (1 << 20) - 1 }),
        ("tree.placer.packs", |o| o.tree.device().packs = PackLayout::Many { bytes_max: (4 << 30) + 1 }),
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
    KeyspaceOptions { compression, filter_bits_per_key, prefix, ttl: None }
}

fn leveled(level1_bytes: u64, ratio: u32, l0_trigger: usize) -> Layout {
    Layout::Leveled(Leveled { level1_bytes, ratio, l0_trigger })
}

fn guarded(change: fn(&mut Guarded)) -> Layout {
    let mut guarded = Guarded::default();
    change(&mut guarded);
    Layout::Guarded(guarded)
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
        retainer: Retainer::Drop,
        pacer: Pacer::Governor(Governor {
            l0_slow: 1,
            l0_stop: 2,
            debt_slow_bytes: 0,
            debt_stop_bytes: 1 << 20,
        }),
        placer: Placer::OneDevice(OneDevice {
            packs: PackLayout::Many { bytes_max: 1 << 20 },
            descriptors: Descriptors::PerTable,
        }),
        block_bytes: 256,
        partitioned_bytes_min: 0,
    }
}

fn largest_tree() -> TreeOptions {
    TreeOptions {
        layout: leveled(1 << 50, 100, 1000),
        picker: Picker::LeastOverlap(Group { bytes: 4 << 30, parts: 1000, settle: true }),
        cutter: Cutter::Size(TableSize { table_bytes: 1 << 30, flushes: Flushes::Cut }),
        retainer: Retainer::Drop,
        pacer: Pacer::Governor(Governor {
            l0_slow: 10_000,
            l0_stop: 100_000,
            debt_slow_bytes: u64::MAX - 1,
            debt_stop_bytes: u64::MAX,
        }),
        placer: Placer::OneDevice(OneDevice {
            packs: PackLayout::Many { bytes_max: 4 << 30 },
            descriptors: Descriptors::PerPack,
        }),
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
    let all = [&smallest, &largest, &smallest].into_iter().chain(&paced).chain(&prefixed);
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

#[test]
fn after_closing_every_call_says_so() {
    let env = machine();
    let db = open(&env);
    let keyspace = db.keyspace("other").unwrap();
    for n in 0..500 {
        db.put(format!("{n:03}"), vec![1; 50]).unwrap();
        keyspace.put(format!("{n:03}"), vec![2; 50]).unwrap();
    }
    let snapshot = db.snapshot();
    let (mut unused, mut begun) = (db.iter().unwrap(), keyspace.iter().unwrap().rev());
    begun.next().unwrap().unwrap();
    let handle = db.clone();
    db.close().unwrap();
    let db = handle;
    let closed = |what: &str, kind: ErrorKind| assert_eq!(kind, ErrorKind::Closed, "{what}");
    closed("put", kind(db.put("key", "value")));
    closed("delete", kind(db.delete("key")));
    closed("write", kind(db.write_with(WriteBatch::new(), Durability::Synced)));
    closed("get", kind(db.get("000")));
    closed("contains", kind(db.contains("000")));
    closed("iter", kind(db.iter()));
    closed("range", kind(db.range("0"..)));
    closed("prefix", kind(db.prefix("0")));
    closed("sync", kind(db.sync()));
    closed("flush", kind(db.flush()));
    closed("compact", kind(db.compact()));
    closed("wait_idle", kind(db.wait_idle()));
    closed("verify", kind(db.verify()));
    closed("keyspace", kind(db.keyspace("other")));
    closed("new keyspace", kind(db.keyspace("another")));
    closed("existing_keyspace", kind(db.existing_keyspace("other")));
    closed("drop_keyspace", kind(db.drop_keyspace("other")));
    closed("keyspace put", kind(keyspace.put("key", "value")));
    closed("keyspace get", kind(keyspace.get("000")));
    closed("keyspace iter", kind(keyspace.iter()));
    closed("compact_range", kind(keyspace.compact_range(..)));
    closed("snapshot get", kind(snapshot.get("000")));
    closed("snapshot iter", kind(snapshot.iter()));
    closed("snapshot of a keyspace", kind(snapshot.keyspace(&keyspace).get("000")));
    // What was begun may end.
    assert_eq!(unused.next().unwrap().unwrap().0, "000");
    assert_eq!((unused.count(), begun.count()), (499, 499));
    // Pictures can still be had.
    assert_eq!((db.keyspaces().len(), db.stats().keyspaces.len()), (2, 2));
    let _ = db.snapshot();
    db.clone().close().unwrap();
}

#[test]
fn iterators_and_snapshots_show_their_moment_for_ever() {
    let env = machine();
    let db = open(&env);
    let doomed = db.keyspace("doomed").unwrap();
    for n in 0..1000 {
        db.put(format!("{n:04}"), "old").unwrap();
        doomed.put(format!("{n:04}"), "old").unwrap();
    }
    let snapshot = db.snapshot();
    let of_doomed = snapshot.keyspace(&doomed);
    let (mut iter, mut begun) = (db.iter().unwrap(), snapshot.iter().unwrap());
    let mut iter_of_doomed = doomed.iter().unwrap();
    assert_eq!(begun.next().unwrap().unwrap().0, "0000");
    for round in 0..5 {
        for n in 0..1000 {
            match (n + round) % 3 {
                0 => db.delete(format!("{n:04}")).unwrap(),
                _ => db.put(format!("{n:04}"), format!("new {round}")).unwrap(),
            }
            doomed.put(format!("{n:04}"), format!("new {round}")).unwrap();
        }
    }
    db.compact().unwrap();
    db.drop_keyspace("doomed").unwrap();
    db.wait_idle().unwrap();
    // A namesake is another keyspace.
    let namesake = db.keyspace("doomed").unwrap();
    namesake.put("0000", "of the namesake").unwrap();
    db.compact().unwrap();

    let all_old = |iter: &mut terrace::Iter| iter.all(|entry| entry.unwrap().1 == "old");
    assert!(all_old(iter.by_ref()) && all_old(&mut begun));
    assert!((0..1000).all(|n| snapshot.get(format!("{n:04}")).unwrap().unwrap() == "old"));
    assert_eq!(snapshot.iter().unwrap().count(), 1000);
    // An open iterator has a view of its own.
    assert_eq!(iter_of_doomed.by_ref().filter(|entry| entry.as_ref().unwrap().1 == "old").count(), 1000);
    // All others get an error, not an empty keyspace.
    assert_eq!(kind(of_doomed.get("0000")), ErrorKind::NotFound);
    assert_eq!(kind(of_doomed.iter()), ErrorKind::NotFound);
    assert_eq!(kind(doomed.get("0000")), ErrorKind::NotFound);
    assert_eq!(kind(doomed.iter()), ErrorKind::NotFound);
    assert_eq!(kind(doomed.put("0000", "")), ErrorKind::NotFound);
    let late = db.snapshot();
    drop((snapshot, of_doomed, iter_of_doomed, begun));
    assert_eq!(kind(late.keyspace(&doomed).get("0000")), ErrorKind::NotFound);
    assert_eq!(namesake.iter().unwrap().count(), 1);
    drop((iter, late));
}

#[test]
fn what_a_snapshot_kept_is_given_back() {
    scheduled(|env| {
        let db = open(&env);
        let doomed = db.keyspace("doomed").unwrap();
        let fill = |round: u64| {
            for n in 0..1000u64 {
                db.put(format!("{n:04}"), noise(100, n + round)).unwrap();
            }
        };
        fill(0);
        for n in 0..1000u64 {
            doomed.put(format!("{n:04}"), noise(100, n)).unwrap();
        }
        db.compact().unwrap();
        let packs = || -> Vec<u64> {
            let files = env.files().into_iter();
            files.filter(|(path, _)| path.to_string_lossy().ends_with(".pack")).map(|(_, len)| len).collect()
        };
        // Once what is dead has been reclaimed.
        let used = || {
            db.wait_idle().unwrap();
            packs().into_iter().sum::<u64>()
        };
        let alone = used();
        let (snapshot, iter, of_doomed) = (db.snapshot(), db.iter().unwrap(), doomed.iter().unwrap());
        (1..4).for_each(fill);
        db.compact().unwrap();
        db.drop_keyspace("doomed").unwrap();
        db.compact().unwrap();
        let held = used();
        assert!(held > alone + 80_000, "{alone} {held}");
        drop((iter, of_doomed));
        drop(snapshot);
        // The next compaction of the same keys finds nobody who needs the old versions.
        fill(4);
        db.compact().unwrap();
        let freed = used();
        // Half of what there was at first was in the dropped keyspace; and the handle to it holds nothing.
        assert!(freed < alone * 3 / 4, "{alone} {held} {freed}");
        let space = db.stats().space;
        assert_eq!(packs().len() as u64, space.pack_files + space.preallocated_files);
        assert_eq!(kind(doomed.get("0000")), ErrorKind::NotFound);
        drop(doomed);
    });
}

#[test]
fn a_dropped_keyspace_takes_no_earlier_write_along() {
    let env = machine();
    let db = open(&env);
    let source = db.keyspace("source").unwrap();
    source.put("key", "value").unwrap();
    db.flush().unwrap();
    // Moved, without asking for a barrier.
    db.put("key", "value").unwrap();
    db.drop_keyspace("source").unwrap();
    let db = open(&env.crash(Survival::Nothing));
    assert!(db.existing_keyspace("source").unwrap().is_none());
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

#[test]
fn reading_backwards_from_both_ends_meets_in_the_middle() {
    let env = machine();
    let db = open(&env);
    for n in 0..3000 {
        db.put(format!("{:04}", n % 1000), format!("{n}")).unwrap();
    }
    let (mut random, mut iter) = (Random(3), db.iter().unwrap());
    let (mut low, mut high) = (0, 1000);
    while low < high {
        if random.below(2) == 0 {
            assert_eq!(iter.next().unwrap().unwrap().0, format!("{low:04}").as_str());
            low += 1;
        } else {
            high -= 1;
            assert_eq!(iter.next_back().unwrap().unwrap().0, format!("{high:04}").as_str());
        }
    }
    assert!(iter.next().is_none() && iter.next_back().is_none() && iter.next().is_none());
}

#[test]
fn a_directory_is_made_with_its_parents() {
    let env = machine();
    let db = Db::builder("/a/b/c").env(env.clone()).options(tiny()).open().unwrap();
    db.put("key", "value").unwrap();
    db.sync().unwrap();
    let env = env.crash(Survival::Nothing);
    assert!(env.list("/a/b".as_ref()).is_ok());
    let db = Db::builder("/a/b/c").env(env).options(tiny()).must_exist().open().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}
