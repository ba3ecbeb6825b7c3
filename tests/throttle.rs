//! Tests of background throttling: compactions leave the disk to waiting readers, but never at the cost of writers
//! that wait for compactions.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv};
use terrace::env::{Env, Priority};
use terrace::tree::{Pacer, PackLayout, Steady};
use terrace::{Db, Options, TreeOptions, WriteBatch};
use terrace_torture::TreeParts as _;

/// Keys that are written and looked up.
const KEYS: u64 = 1_000_000;

/// The next of a row of random keys.
fn key(state: &mut u64) -> String {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    format!("{:08}", (*state >> 33) % KEYS)
}

fn options(yield_disk: bool) -> Options {
    let tree = TreeOptions::default().with(|tree| {
        tree.tables().table_bytes = 256 << 10;
        tree.group().bytes = 1 << 20;
        *tree.level1_bytes() = 8 << 20;
        tree.files.packs = PackLayout::Many { bytes_max: 8 << 20 };
        tree.governor().l0_slow = 5;
        tree.governor().l0_stop = 6;
        let limits = *tree.governor();
        tree.pacer = Pacer::Steady(Steady { limits, yield_disk, yield_processor: false });
    });
    Options { memory_bytes: Some(12 << 20), memtable_bytes: 2 << 20, tree, ..Options::default() }
}

/// How long a load takes on a disk that compactions alone fill, beside threads that look up what is not in memory, and how much
/// these look up.
fn load_beside_lookups(yield_disk: bool) -> (Duration, u64) {
    let device = DeviceModel {
        write_bandwidth: 40_000_000,
        read_bandwidth: 200_000_000,
        dirty_bytes_max: 4 << 20,
        ..DeviceModel::laptop_sata_ssd()
    };
    SimEnv::run(SimConfig { device, ..SimConfig::default() }, move |env| {
        let shared: Arc<dyn Env> = env.clone();
        let db = Db::builder(Path::new("/db")).env(shared).options(options(yield_disk)).open().unwrap();
        let (done, lookups): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
        let readers: Vec<_> = (0..4)
            .map(|reader| {
                let (db, env, done, lookups) = (db.clone(), env.clone(), done.clone(), lookups.clone());
                let body = move |mut state| {
                    while !done.load(Relaxed) {
                        db.get(key(&mut state)).unwrap();
                        lookups.fetch_add(1, Relaxed);
                        env.sleep(Duration::from_micros(20));
                    }
                };
                (reader, body)
            })
            .map(|(reader, body)| {
                env.spawn("reader", Priority::Normal, Box::new(move || body(reader))).unwrap()
            })
            .collect();
        let (start, mut state) = (env.now(), 1);
        for _ in 0..200 {
            let mut batch = WriteBatch::new();
            for _ in 0..4000 {
                batch.put(key(&mut state), [7; 100]);
            }
            db.write(batch).unwrap();
        }
        let time = env.now() - start;
        done.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join());
        db.close().unwrap();
        (time, lookups.load(Relaxed))
    })
}

#[test]
fn compactions_do_not_pause_while_writers_wait_for_them() {
    let (without, _) = load_beside_lookups(false);
    let (with, lookups) = load_beside_lookups(true);
    // Virtual time: a stopped writer writes nothing, and compactions took that for leisure; the load took 1.9 times as long.
    assert!(with < without.mul_f64(1.25), "{with:?}, {without:?} without pauses");
    assert!(lookups > 1000, "{lookups}");
}
