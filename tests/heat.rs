//! A store on several devices whose users read some tables more than others: these come near, whatever is cut off.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv, Survival};
use terrace::tree::{Cutter, Flushes, Placer, TableSize, Unit};
use terrace::{Builder, Db, DeviceStats, Options, TreeOptions};
use terrace_torture::is_long;

const HOME: &str = "/home";
const SECOND: &str = "/second";

const TABLE: u64 = 64 << 10;
const VALUE_BYTES: usize = 500;

fn disk(megabytes: u64, read: Duration) -> DeviceModel {
    DeviceModel { write_bandwidth: megabytes * 1_000_000, read_latency: read, ..DeviceModel::nvme() }
}

/// A machine whose home answers reads four times as fast as the second disk.
fn machine(seed: u64) -> Arc<SimEnv> {
    let device = disk(450, Duration::from_micros(60));
    let env = SimEnv::new(SimConfig { seed, device, preemption_percent: 0, ..SimConfig::default() });
    env.add_device(Path::new(SECOND), disk(100, Duration::from_micros(240)), 1 << 40);
    env
}

/// A store with so little memory that most reads go to a device.
fn builder(env: &Arc<SimEnv>, placer: Placer) -> Builder {
    let cutter = Cutter::Size(TableSize { table_bytes: TABLE, flushes: Flushes::Cut });
    let options = Options {
        memtable_bytes: 1 << 20,
        memory_bytes: Some(4 << 20),
        tree: TreeOptions { placer, cutter, ..TreeOptions::default() },
        ..Options::default()
    };
    Db::builder(HOME).env(env.clone()).options(options)
}

fn key(n: u64) -> String {
    format!("{n:08}")
}

/// Writes `numbers` in such an order that their tables overlap, and compacts them.
fn fill(db: &Db, numbers: std::ops::Range<u64>) {
    let width = numbers.end - numbers.start;
    for n in 0..width {
        let n = numbers.start + n * 7919 % width;
        db.put(key(n), [n as u8; VALUE_BYTES]).unwrap();
    }
    db.compact().unwrap();
}

/// Reads `count` of `numbers`, far apart from each other.
fn read(db: &Db, numbers: std::ops::Range<u64>, count: u64) {
    let width = numbers.end - numbers.start;
    for n in 0..count {
        let n = numbers.start + n * 7919 % width;
        assert_eq!(db.get(key(n)).unwrap().unwrap()[..], [n as u8; VALUE_BYTES][..], "{n}");
    }
}

fn devices(db: &Db) -> [DeviceStats; 2] {
    db.stats().devices.try_into().unwrap()
}

const FAR: Placer = Placer::Level { upto: 0, adapt: false };
const HEAT: Placer = Placer::Heat { unit: Unit::Table };

#[test]
fn tables_that_are_read_come_near_and_others_stay() {
    let env = machine(1);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, FAR).device(SECOND).open().unwrap();
        fill(&db, 0..40_000);
        assert_eq!(devices(&db)[0].table_bytes, 0);
        db.set_options(|options| options.tree.placer = HEAT).unwrap();
        let hot = 8_000..12_000;
        for _ in 0..10 {
            read(&db, hot.clone(), 2_000);
            env.sleep(Duration::from_secs(2));
        }
        let after = devices(&db);
        let hot_bytes = 4_000 * VALUE_BYTES as u64;
        assert!(after[0].brought_bytes >= hot_bytes * 9 / 10, "{after:?}");
        assert!(after[0].brought_bytes <= hot_bytes * 2, "{after:?}");
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    });
}

#[test]
fn a_full_device_gives_up_what_is_cold_and_compactions_keep_hot_tables_near() {
    let env = machine(2);
    Arc::clone(&env).simulate(|env| {
        let db = builder(&env, Placer::Home).device(SECOND).open().unwrap();
        // Home holds the first half, and the second one is elsewhere.
        fill(&db, 0..10_000);
        db.set_options(|options| options.tree.placer = FAR).unwrap();
        fill(&db, 10_000..20_000);
        let used = env.used_bytes(Path::new(HOME));
        env.set_space(Path::new(HOME), used + (1 << 20));
        db.set_options(|options| options.tree.placer = HEAT).unwrap();
        for _ in 0..10 {
            read(&db, 14_000..16_000, 2_000);
            env.sleep(Duration::from_secs(2));
        }
        let [home, second] = devices(&db);
        let hot_bytes = 2_000 * VALUE_BYTES as u64;
        assert!((hot_bytes..2 * hot_bytes).contains(&home.brought_bytes), "{home:?}");
        assert!(second.given_bytes >= second.table_bytes + hot_bytes, "what was cold made room: {second:?}");
        // What replaces hot tables is hot.
        for n in 14_000..16_000 {
            db.put(key(n), [n as u8; VALUE_BYTES]).unwrap();
        }
        db.compact().unwrap();
        let more = devices(&db)[0].given_bytes - home.given_bytes;
        assert!(more >= hot_bytes * 9 / 10, "{more}");
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    });
}

#[test]
fn i20_a_power_cut_at_any_call_while_tables_move_loses_nothing() {
    for cut in (0..).step_by(if is_long() { 1 } else { 3 }) {
        let env = machine(cut);
        let done = Arc::clone(&env).simulate(move |env| {
            let db = builder(&env, FAR).device(SECOND).open().unwrap();
            fill(&db, 0..2_000);
            read(&db, 500..1_000, 6_000);
            env.cut_after(cut);
            let _ = db.set_options(|options| options.tree.placer = HEAT);
            env.sleep(Duration::from_secs(3));
            db.put("the end", "").is_ok() && devices(&db)[0].brought_bytes > 0
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            env.crash(survival).simulate(|env| {
                let db = builder(&env, HEAT).open().unwrap();
                read(&db, 0..2_000, 2_000);
                assert!(db.verify().unwrap().problems.is_empty());
                db.close().unwrap();
            });
        }
        if done {
            break;
        }
    }
}

/// Bytes that came near, and which puts were refused for the space budget, where megabytes of it are left.
fn moved_and_refused(placer: Placer, somebody_iterates: bool) -> (u64, Vec<String>) {
    let env = machine(3);
    Arc::clone(&env).simulate(move |env| {
        let db = builder(&env, FAR).device(SECOND).open().unwrap();
        fill(&db, 0..40_000);
        db.wait_idle().unwrap();
        read(&db, 8_000..24_000, 60_000);
        let mut held = somebody_iterates.then(|| db.iter().unwrap());
        assert!(held.as_mut().is_none_or(|held| held.next().is_some()));
        let used = devices(&db).iter().map(|device| device.table_bytes).sum::<u64>();
        let change = |options: &mut Options| {
            options.space_bytes = Some(used + (12 << 20));
            options.tree.placer = placer;
        };
        db.set_options(change).unwrap();
        let put = |n: u64| {
            env.sleep(Duration::from_millis(1));
            db.put(key(n), [n as u8; 10]).err().map(|error| format!("put {n}: {error}"))
        };
        let refused = (0..3_000).filter_map(put).collect();
        let moved = devices(&db)[0].brought_bytes;
        drop(held);
        let _ = db.close();
        (moved, refused)
    })
}

#[test]
fn tables_that_move_leave_writers_their_space_budget() {
    for somebody_iterates in [false, true] {
        let (moved, refused) = moved_and_refused(HEAT, somebody_iterates);
        assert!(moved > 0);
        assert!(
            refused.is_empty(),
            "iterator {somebody_iterates}: {} refused: {}",
            refused.len(),
            refused[0]
        );
    }
}
