//! A store on several devices: where its tables go, and what is refused.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]
#![expect(clippy::disallowed_methods, reason = "a test moves a directory by hand")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::env::simulated::{
    DeviceModel, FaultError, FaultRule, FaultTarget, Journal, Operation, SimConfig, SimEnv, Survival,
};
use terrace::env::{Env, Priority};
use terrace::tree::{Cutter, Flushes, Placer, TableSize, Unit};
use terrace::{Builder, Db, DeviceStats, ErrorKind, Options, TreeOptions, WriteBatch};
use terrace_torture::is_long;

const HOME: &str = "/home";
const SECOND: &str = "/second";

fn disk(megabytes: u64) -> DeviceModel {
    DeviceModel { write_bandwidth: megabytes * 1_000_000, ..DeviceModel::nvme() }
}

/// A machine with disks of 450 and 100 MB/s.
fn machine(seed: u64) -> Arc<SimEnv> {
    let config = SimConfig { seed, device: disk(450), preemption_percent: 0, ..SimConfig::default() };
    let env = SimEnv::new(config);
    env.add_device(Path::new(SECOND), disk(100), 1 << 40);
    env
}

fn options(placer: Placer) -> Options {
    let cutter = Cutter::Size(TableSize { table_bytes: 256 << 10, flushes: Flushes::Cut });
    Options {
        memtable_bytes: 4 << 20,
        tree: TreeOptions { placer, cutter, ..TreeOptions::default() },
        ..Options::default()
    }
}

fn builder(env: &Arc<SimEnv>, placer: Placer) -> Builder {
    Db::builder(HOME).env(env.clone()).options(options(placer))
}

fn key(n: u64) -> String {
    format!("{:08}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000)
}

fn fill(db: &Db, numbers: std::ops::Range<u64>) {
    for n in numbers {
        db.put(key(n), [n as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
}

fn check(db: &Db, count: u64) {
    for n in (0..count).step_by(7) {
        assert_eq!(db.get(key(n)).unwrap().unwrap()[..], [n as u8; 1000][..], "{n}");
    }
    assert_eq!(db.iter().unwrap().count() as u64, count);
    assert!(db.verify().unwrap().problems.is_empty());
}

/// The part of the tables that the second device has, in percent.
fn second_percent(db: &Db) -> u64 {
    let [home, second] = &db.stats().devices[..] else { panic!("two devices") };
    second.table_bytes * 100 / (home.table_bytes + second.table_bytes)
}

#[test]
fn each_placer_spreads_tables_as_it_says_and_home_alone_finds_them_again() {
    let unit = Unit::Table;
    for (placer, percents) in [
        (Placer::Home, 0..=0),
        (Placer::Mod { n: 2, unit }, 40..=60),
        (Placer::Weighted { slow_percent: 25, unit }, 15..=35),
        (Placer::Level { upto: 0, adapt: false }, 60..=100),
        (Placer::Dynamic { unit }, 0..=35),
    ] {
        let env = machine(1);
        Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, placer).device(SECOND).open().unwrap();
            fill(&db, 0..20_000);
            db.wait_idle().unwrap();
            assert!(percents.contains(&second_percent(&db)), "{placer:?}: {} %", second_percent(&db));
            check(&db, 20_000);
            db.close().unwrap();
            let db = builder(&env, placer).open().unwrap();
            assert_eq!(db.stats().devices[1].dir, Path::new(SECOND));
            check(&db, 20_000);
            db.checkpoint("/copy").unwrap();
            db.delete_range(""..).unwrap();
            db.compact().unwrap();
            assert_eq!(
                db.stats().devices.iter().map(|device: &DeviceStats| device.table_bytes).sum::<u64>(),
                0
            );
            db.close().unwrap();
            let packs = |dir: &str| env.files().iter().filter(|(path, _)| path.starts_with(dir)).count();
            assert!(packs(SECOND) <= 2, "only what says whose it is");
            let copy = Db::builder("/copy").env(env.clone()).options(options(placer)).open().unwrap();
            check(&copy, 20_000);
            copy.close().unwrap();
        });
    }
}

/// SpanDB's: a fast device that is busy gets fewer levels, and more again when it is not.
#[test]
fn the_level_of_the_fast_device_moves_with_its_load_and_its_room() {
    let slowed = |megabytes: u64| DeviceModel { dirty_bytes_max: 1 << 20, ..disk(megabytes) };
    let given = |adapt: bool| {
        let config = SimConfig { device: slowed(9), preemption_percent: 0, ..SimConfig::default() };
        let env = SimEnv::new(config);
        env.add_device(Path::new(SECOND), slowed(2), 1 << 40);
        Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, Placer::Level { upto: 4, adapt }).device(SECOND).open().unwrap();
            let given = |of: usize| db.stats().devices[of].given_bytes;
            fill(&db, 0..40_000);
            db.wait_idle().unwrap();
            let busy = given(1);
            env.sleep(Duration::from_secs(20));
            let before = given(0);
            fill(&db, 40_000..41_000);
            let after_a_rest = [given(0) - before, given(1) - busy];
            env.sleep(Duration::from_secs(2));
            env.set_space(Path::new("/"), env.used_bytes(Path::new("/")) * 14 / 13);
            db.wait_idle().unwrap();
            let before = given(1);
            env.sleep(Duration::from_secs(2));
            fill(&db, 41_000..42_000);
            let when_full = given(1) - before;
            check(&db, 42_000);
            db.close().unwrap();
            (busy, after_a_rest, when_full)
        })
    };
    let (busy, after_a_rest, when_full) = given(true);
    assert!(busy > 4 << 20, "{busy}");
    assert!(after_a_rest[0] > 0 && after_a_rest[1] == 0, "{after_a_rest:?}");
    assert!(when_full > 0);
    assert_eq!(given(false).0, 0);
}

#[test]
fn a_load_that_one_disk_cannot_take_goes_to_both_as_fast_as_they_write() {
    let env = machine(5);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, Placer::default()).device(SECOND).open().unwrap();
        let mut ingest = db.ingest().unwrap();
        (0..60_000_u64).for_each(|n| ingest.push(format!("{n:08}"), [n as u8; 1000]).unwrap());
        ingest.finish().unwrap();
        assert!((10..=40).contains(&second_percent(&db)), "100 of 550 MB/s: {} %", second_percent(&db));
        db.close().unwrap();
    });
}

#[test]
fn a_device_without_room_is_passed_over() {
    let env = machine(2);
    Arc::clone(&env).simulate(|env| {
        let placer = Placer::Mod { n: 2, unit: Unit::Table };
        let db = builder(&env, placer).device(SECOND).open().unwrap();
        env.set_space(Path::new(SECOND), 3 << 20);
        fill(&db, 0..20_000);
        db.wait_idle().unwrap();
        check(&db, 20_000);
        assert!(env.used_bytes(Path::new(SECOND)) <= 3 << 20);
        db.close().unwrap();
    });
}

#[test]
fn i20_a_power_cut_takes_nothing_that_was_synced_on_either_device() {
    for seed in 0..8 {
        let env = machine(seed);
        let image = Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, Placer::default()).device(SECOND).open().unwrap();
            for from in (0..4000).step_by(500) {
                let mut batch = WriteBatch::new();
                for n in from..from + 500 {
                    batch.put(key(n), [n as u8; 1000]);
                }
                db.write(batch).unwrap();
                db.flush().unwrap();
            }
            db.sync().unwrap();
            fill(&db, 4000..5000 + seed * 100);
            env.crash(Survival::Random(seed))
        });
        image.simulate(|env| {
            let db = builder(&env, Placer::default()).open().unwrap();
            for n in 0..4000 {
                assert!(db.get(key(n)).unwrap().is_some(), "{n}");
            }
            assert!(db.verify().unwrap().problems.is_empty());
            db.close().unwrap();
        });
    }
}

#[test]
fn what_is_no_device_of_the_store_is_refused_with_what_to_do() {
    let env = machine(3);
    Arc::clone(&env).simulate(|env| {
        let open = |devices: &[&str]| {
            let builder = builder(&env, Placer::default());
            devices.iter().fold(builder, |builder, dir| builder.device(dir)).open()
        };
        let refused = |devices: &[&str]| {
            let error = open(devices).map(|_| ()).unwrap_err();
            (error.kind(), error.to_string())
        };
        let other = Db::builder("/other").env(env.clone()).device("/others").open().unwrap();
        assert_eq!(refused(&["/others"]).0, ErrorKind::Busy);
        other.close().unwrap();
        assert!(refused(&["/others"]).1.contains("of store"), "{:?}", refused(&["/others"]));
        assert!(refused(&["/other"]).1.contains("of store"));
        assert!(refused(&[HOME]).1.contains("the store itself"));
        assert!(refused(&[SECOND, "/second/../second"]).1.contains("twice"));
        open(&[SECOND]).unwrap().close().unwrap();
        let reader = |dir: &str| {
            let reader = builder(&env, Placer::default()).read_only();
            (if dir.is_empty() { reader } else { reader.device(dir) })
                .open()
                .map(|db| db.stats().devices.len())
        };
        assert_eq!(reader("").unwrap(), 2);
        assert_eq!(reader(SECOND).unwrap(), 2);
        assert_eq!(reader("/third").unwrap_err().kind(), ErrorKind::Io, "it makes none");
        env.overwrite(Path::new("/second/IDENTITY"), 0, b"x").unwrap();
        assert_eq!(refused(&[]).0, ErrorKind::Corruption);
        Env::remove(&*env, Path::new("/second/IDENTITY")).unwrap();
        let (kind, message) = refused(&[]);
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(message.contains("/second") && message.contains("Mount it"), "{message}");
    });
}

#[test]
fn devices_come_and_go_while_the_store_is_written() {
    for seed in 0..4 {
        let env = machine(seed);
        Arc::clone(&env).simulate(move |env| {
            let placer = Placer::Mod { n: 2, unit: Unit::Table };
            let db = builder(&env, placer).open().unwrap();
            fill(&db, 0..6000);
            db.add_device(SECOND).unwrap();
            assert_eq!(db.add_device(SECOND).unwrap_err().kind(), ErrorKind::InvalidInput);
            let writer = {
                let db = db.clone();
                let body = Box::new(move || fill(&db, 6000..14_000));
                Env::spawn(&*env, "writer", Priority::Normal, body).unwrap()
            };
            fill(&db, 14_000..18_000);
            assert!(second_percent(&db) > 0);
            let held = db.iter().unwrap();
            db.drain_device(SECOND).unwrap();
            writer.join();
            db.wait_idle().unwrap();
            assert_eq!(second_percent(&db), 0);
            let error = db.remove_device(SECOND).unwrap_err();
            assert!(error.kind() == ErrorKind::Busy && error.to_string().contains("iterators"), "{error}");
            drop(held);
            db.wait_idle().unwrap();
            db.remove_device(SECOND).unwrap();
            assert_eq!(db.remove_device(HOME).unwrap_err().kind(), ErrorKind::InvalidInput);
            check(&db, 18_000);
            db.close().unwrap();
            assert_eq!(env.files().iter().filter(|(path, _)| path.starts_with(SECOND)).count(), 0);
            let db = builder(&env, placer).device(SECOND).open().unwrap();
            assert_eq!(db.stats().devices[1].id, 2, "an id is never used twice");
            check(&db, 18_000);
            db.close().unwrap();
        });
    }
}

#[test]
fn a_device_may_move() {
    let dir = tempfile::tempdir().unwrap();
    let [home, before, after] = ["home", "before", "after"].map(|name| dir.path().join(name));
    let placer = Placer::Mod { n: 2, unit: Unit::Table };
    let db = Db::builder(&home).options(options(placer)).device(&before).open().unwrap();
    fill(&db, 0..3000);
    assert!(second_percent(&db) > 0);
    db.close().unwrap();
    std::fs::rename(&before, &after).unwrap();
    assert_eq!(Db::open(&home).map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound);
    Db::builder(&home).device(&after).open().unwrap().close().unwrap();
    let db = Db::open(&home).unwrap();
    check(&db, 3000);
    db.close().unwrap();
}

#[test]
fn repair_saves_what_the_other_devices_hold() {
    let env = machine(4);
    Arc::clone(&env).simulate(|env| {
        let placer = Placer::Mod { n: 2, unit: Unit::Table };
        let db = builder(&env, placer).device(SECOND).open().unwrap();
        fill(&db, 0..8000);
        db.wait_idle().unwrap();
        db.close().unwrap();
        let saved = |target: &str| {
            let report = builder(&env, placer).repair(target).unwrap();
            let db = Db::builder(target).env(env.clone()).open().unwrap();
            let count = db.iter().unwrap().count();
            db.close().unwrap();
            (report.lost.len(), count)
        };
        assert_eq!(saved("/whole"), (0, 8000));
        Env::remove(&*env, Path::new("/second/IDENTITY")).unwrap();
        let (lost, count) = saved("/part");
        assert!(lost > 0 && (2000..7000).contains(&count), "{lost} lost, {count} saved");
    });
}

const MOD: Placer = Placer::Mod { n: 2, unit: Unit::Table };

#[test]
fn what_outlives_the_store_is_refused_and_waits_for_no_device() {
    for after in 0..4 {
        let env = machine(6);
        Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, MOD).device(SECOND).open().unwrap();
            fill(&db, 0..8000);
            let mut ingest = db.ingest().unwrap();
            (0..3000_u64).for_each(|n| ingest.push(format!("{n:08}"), [n as u8; 1000]).unwrap());
            let compaction = {
                let db = db.clone();
                let body = Box::new(move || _ = db.compact());
                Env::spawn(&*env, "compaction", Priority::Normal, body).unwrap()
            };
            env.sleep(Duration::from_millis(after * 5));
            db.close().unwrap();
            compaction.join();
            assert_eq!(ingest.finish().unwrap_err().kind(), ErrorKind::Closed);
        });
    }
}

#[test]
fn a_compaction_reads_both_disks_at_the_same_time() {
    const BANDWIDTH: u64 = 20_000_000;
    // Nothing but reads takes time.
    let disk = DeviceModel { read_bandwidth: BANDWIDTH, ..DeviceModel::instant() };
    let env = SimEnv::new(SimConfig { device: disk, preemption_percent: 0, ..SimConfig::default() });
    env.add_device(Path::new(SECOND), disk, 1 << 40);
    Arc::clone(&env).simulate(move |env| {
        let one_job = Options { background_threads: Some(1), ..options(MOD) };
        let db = builder(&env, MOD).options(one_job).device(SECOND).open().unwrap();
        fill(&db, 0..8000);
        db.wait_idle().unwrap();
        let (before, bytes_before) = (env.now(), db.stats().compaction.bytes_in);
        fill(&db, 0..8000);
        db.wait_idle().unwrap();
        let bytes = db.stats().compaction.bytes_in - bytes_before;
        assert!(bytes > 8_000_000, "{bytes}");
        let of_one = Duration::from_secs_f64(bytes as f64 / BANDWIDTH as f64);
        let time = env.now() - before;
        assert!(time < of_one * 3 / 4, "{time:?}, where one disk after the other would take {of_one:?}");
        check(&db, 8000);
        db.close().unwrap();
    });
}

#[test]
fn a_disk_that_refuses_to_read_ahead_changes_nothing() {
    let env = machine(8);
    Arc::clone(&env).simulate(|env| {
        let path_suffix = ".pack".to_owned();
        let target = FaultTarget::Matching { operation: Operation::ReadAhead, path_suffix, skipped: 0 };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
        let db = builder(&env, MOD).device(SECOND).open().unwrap();
        fill(&db, 0..8000);
        db.compact().unwrap();
        let by_compactions = env.faults_fired();
        assert!(by_compactions > 0);
        db.drain_device(SECOND).unwrap();
        assert!(env.faults_fired() > by_compactions, "a drain reads ahead, too");
        check(&db, 8000);
        db.close().unwrap();
    });
}

#[test]
fn a_device_is_drained_under_a_reader_beside_the_writer() {
    let env = machine(7);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, MOD).device(SECOND).open().unwrap();
        fill(&db, 0..8000);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert!(second_percent(&db) > 0);
        let reader = builder(&env, MOD).read_only().open().unwrap();
        db.remove_device(SECOND).unwrap();
        for n in 0..8000 {
            assert!(reader.get(key(n)).unwrap().is_some(), "{n}");
        }
        check(&db, 8000);
        db.close().unwrap();
    });
}

#[test]
fn a_drained_device_has_no_table_whatever_was_being_written_there() {
    for seed in 0..8 {
        let env = machine(seed);
        Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, MOD).device(SECOND).open().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let writer = {
                let (db, stop) = (db.clone(), stop.clone());
                let body = move || {
                    for n in (0..).step_by(100).take_while(|_| !stop.load(Ordering::Relaxed)) {
                        fill(&db, n..n + 100);
                    }
                };
                Env::spawn(&*env, "writer", Priority::Normal, Box::new(body)).unwrap()
            };
            for round in 0..12 {
                env.sleep(Duration::from_micros(seed * 300 + round * 1100));
                db.drain_device(SECOND).unwrap();
                assert_eq!(db.stats().devices[1].table_bytes, 0, "seed {seed}, round {round}");
                env.sleep(Duration::from_millis(2));
                assert_eq!(db.stats().devices[1].table_bytes, 0, "seed {seed}, after round {round}");
                while let Err(error) = db.remove_device(SECOND) {
                    assert_eq!(error.kind(), ErrorKind::Busy);
                    env.sleep(Duration::from_millis(1));
                }
                db.add_device(SECOND).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            writer.join();
            db.close().unwrap();
        });
    }
}

#[test]
fn readers_open_while_devices_come_and_go() {
    for seed in 0..4 {
        let env = machine(seed);
        Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, MOD).open().unwrap();
            fill(&db, 0..2000);
            let stop = Arc::new(AtomicBool::new(false));
            let readers = {
                let (machine, stop) = (env.clone(), stop.clone());
                let body = move || {
                    while !stop.load(Ordering::Relaxed) {
                        let reader = builder(&machine, MOD).read_only().open().unwrap();
                        assert!(reader.iter().unwrap().count() >= 2000);
                    }
                };
                Env::spawn(&*env, "readers", Priority::Normal, Box::new(body)).unwrap()
            };
            for round in 1..6_u64 {
                db.add_device(SECOND).unwrap();
                fill(&db, round * 2000..round * 2000 + 1000);
                db.compact().unwrap();
                while let Err(error) = db.remove_device(SECOND) {
                    assert_eq!(error.kind(), ErrorKind::Busy);
                    env.sleep(Duration::from_millis(1));
                }
            }
            stop.store(true, Ordering::Relaxed);
            readers.join();
            db.close().unwrap();
        });
    }
}

#[test]
fn two_directories_are_never_the_same_device() {
    let env = machine(8);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, MOD).device(SECOND).open().unwrap();
        fill(&db, 0..3000);
        let identity = env.read_file(Path::new("/second/IDENTITY")).unwrap();
        Env::create_dir(&*env, Path::new("/copy")).unwrap();
        Env::create(&*env, Path::new("/copy/IDENTITY")).unwrap().write_at(0, &identity).unwrap();
        let refused = |result: terrace::Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("copy of device 1"), "{error}");
        };
        refused(db.add_device("/copy"));
        db.close().unwrap();
        let open = |devices: &[&str]| {
            let builder = builder(&env, MOD);
            devices.iter().fold(builder, |builder, dir| builder.device(dir)).open().map(drop)
        };
        refused(open(&["/copy"]));
        refused(open(&[SECOND, "/copy"]));
        let db = builder(&env, MOD).open().unwrap();
        assert_eq!(db.stats().devices[1].dir, Path::new(SECOND));
        check(&db, 3000);
        db.close().unwrap();
    });
}

#[test]
fn i20_a_list_of_devices_whose_sync_has_failed_is_made_durable_by_the_next_opening() {
    let config = SimConfig { seed: 9, journal: Journal::None, ..SimConfig::default() };
    let env = SimEnv::new(config);
    env.add_device(Path::new(SECOND), disk(100), 1 << 40);
    let image = Arc::clone(&env).simulate(|env| {
        let db = builder(&env, MOD).open().unwrap();
        fill(&db, 0..1000);
        db.wait_idle().unwrap();
        let target =
            FaultTarget::Matching { operation: Operation::SyncDir, path_suffix: HOME.into(), skipped: 0 };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
        db.add_device(SECOND).unwrap_err();
        let _ = db.close();
        env.clear_faults();
        let db = builder(&env, MOD).open().unwrap();
        fill(&db, 1000..4000);
        assert!(second_percent(&db) > 0);
        env.crash(Survival::Nothing)
    });
    image.simulate(|env| {
        let db = builder(&env, MOD).open().unwrap();
        check(&db, 4000);
        db.close().unwrap();
    });
}

#[test]
fn what_waits_for_a_device_is_counted_through_large_values_and_failures() {
    let env = machine(10);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, MOD).device(SECOND).open().unwrap();
        let pending = || db.stats().devices.iter().map(|device| device.pending_bytes).max().unwrap();
        let mut ingest = db.ingest().unwrap();
        for n in 0..20_u64 {
            ingest.push(format!("{n:08}"), vec![n as u8; 5 << 20]).unwrap();
            for _ in 0..20 {
                assert!(pending() < 64 << 20, "{}", pending());
                env.sleep(Duration::from_millis(1));
            }
        }
        ingest.finish().unwrap();
        assert_eq!(pending(), 0);
        let target =
            FaultTarget::Matching { operation: Operation::WriteAt, path_suffix: ".pack".into(), skipped: 2 };
        env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
        for _ in 0..3 {
            let mut ingest = db.ingest().unwrap();
            let pushed = (0..40_u64).try_for_each(|n| ingest.push(format!("{n:08}"), vec![n as u8; 3 << 20]));
            pushed.and_then(|()| ingest.finish()).unwrap_err();
        }
        env.clear_faults();
        env.sleep(Duration::from_secs(1));
        assert_eq!(pending(), 0);
        db.close().unwrap();
    });
}

#[test]
fn i20_a_power_cut_at_any_call_while_a_device_comes_and_goes_leaves_the_store_whole() {
    for cut in (0..).step_by(if is_long() { 1 } else { 11 }) {
        let env = machine(cut);
        let done = Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, MOD).open().unwrap();
            fill(&db, 0..600);
            env.cut_after(cut);
            let change = || {
                db.add_device(SECOND)?;
                for n in 600..1200 {
                    db.put(key(n), [n as u8; 1000])?;
                }
                db.flush()?;
                db.compact()?;
                db.drain_device(SECOND)?;
                db.remove_device(SECOND)
            };
            change().is_ok()
        });
        for survival in
            [Survival::Nothing, Survival::Everything, Survival::Random(cut), Survival::Random(!cut)]
        {
            env.crash(survival).simulate(move |env| {
                for given in [false, true, false] {
                    let builder = builder(&env, MOD);
                    let db = match if given { builder.device(SECOND) } else { builder }.open() {
                        Ok(db) => db,
                        Err(error) => {
                            assert!(given, "cut at {cut}, {survival:?}: {error}");
                            assert_eq!(error.kind(), ErrorKind::InvalidInput);
                            continue;
                        }
                    };
                    for n in 0..600 {
                        assert!(db.get(key(n)).unwrap().is_some(), "{n}, cut at {cut}, {survival:?}");
                    }
                    fill(&db, 1200..1300);
                    assert!(db.verify().unwrap().problems.is_empty());
                    db.close().unwrap();
                }
            });
        }
        if done {
            break;
        }
    }
}
