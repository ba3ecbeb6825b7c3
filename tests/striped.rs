//! A store whose packs are striped over several directories (`terrace::env::striped`).

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{DeviceModel, Journal, SimConfig, SimEnv, Survival};
use terrace::env::striped::{Stripe, StripedEnv};
use terrace::env::{Access, Env};
use terrace::tree::{Cutter, Flushes, Placer, TableSize};
use terrace::{Db, Options, TreeOptions, WriteBatch};
use terrace_torture::is_long;

const HOME: &str = "/home";
const SECOND: &str = "/second";

fn machine(seed: u64, device: DeviceModel) -> Arc<SimEnv> {
    let journal = if seed.is_multiple_of(2) { Journal::Ext4Like } else { Journal::None };
    let env = SimEnv::new(SimConfig { seed, device, journal, preemption_percent: 0, ..SimConfig::default() });
    env.add_device(Path::new(SECOND), device, 1 << 40);
    env
}

fn stripe() -> Stripe {
    Stripe { chunk_bytes: 64 << 10, weights: vec![2, 1], ..Stripe::default() }
}

fn striped(inner: Arc<dyn Env>, home: &Path, second: &Path) -> Arc<StripedEnv> {
    StripedEnv::new(inner, home, &[second], stripe()).unwrap()
}

fn open(env: &Arc<SimEnv>) -> terrace::Result<Db> {
    let env = striped(env.clone(), Path::new(HOME), Path::new(SECOND));
    Db::builder(HOME).env(env).options(options()).open()
}

fn options() -> Options {
    let cutter = Cutter::Size(TableSize { table_bytes: 128 << 10, flushes: Flushes::Cut });
    let tree = TreeOptions { cutter, placer: Placer::Home, ..TreeOptions::default() };
    Options { memtable_bytes: 256 << 10, tree, ..Options::default() }
}

fn key(n: u64) -> String {
    format!("{:08}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000)
}

fn fill(db: &Db, numbers: std::ops::Range<u64>) -> terrace::Result<()> {
    for from in numbers.clone().step_by(50) {
        let mut batch = WriteBatch::new();
        (from..(from + 50).min(numbers.end)).for_each(|n| _ = batch.put(key(n), [n as u8; 1000]));
        db.write(batch)?;
    }
    db.flush()
}

fn check(db: &Db, count: u64) {
    for n in 0..count {
        assert_eq!(db.get(key(n)).unwrap().unwrap()[..], [n as u8; 1000][..], "{n}");
    }
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// The names of packs in a directory.
fn packs(env: &dyn Env, dir: &Path) -> BTreeSet<String> {
    env.list(dir).unwrap().into_iter().filter(|name| name.ends_with(".pack")).collect()
}

#[test]
fn a_store_lives_on_a_stripe_of_real_directories_and_its_checkpoint_in_one() {
    let dir = tempfile::tempdir().unwrap();
    let [home, second, copy] = ["home", "second", "copy"].map(|name| dir.path().join(name));
    let open = || {
        let env = striped(PosixEnv::shared(), &home, &second);
        Db::builder(&home).env(env).options(options()).open().unwrap()
    };
    let db = open();
    fill(&db, 0..6000).unwrap();
    db.compact().unwrap();
    fill(&db, 0..2000).unwrap();
    db.checkpoint(&copy).unwrap();
    check(&db, 6000);
    db.close().unwrap();
    let db = open();
    check(&db, 6000);
    let real = PosixEnv::shared();
    assert!(packs(&*real, &second).len() > 1);
    assert_eq!(packs(&*real, &second), packs(&*real, &home));
    db.close().unwrap();
    let copied = Db::builder(&copy).options(options()).open().unwrap();
    check(&copied, 6000);
    copied.close().unwrap();
}

#[test]
fn a_power_cut_leaves_what_was_synced_and_no_pack_on_one_member_alone() {
    let (cuts, step) = if is_long() { (0..1400, 5) } else { (0..1400, 41) };
    for (seed, cut) in cuts.step_by(step).enumerate() {
        let seed = seed as u64;
        let env = machine(seed, DeviceModel::instant());
        let (image, synced) = Arc::clone(&env).simulate(move |env| {
            let db = open(&env).unwrap();
            env.cut_after(cut);
            let mut synced = 0;
            for from in (0..4000).step_by(250) {
                let done = fill(&db, from..from + 250)
                    .and_then(|()| if from % 1000 == 0 { db.compact() } else { Ok(()) })
                    .and_then(|()| db.sync());
                match done {
                    Ok(()) => synced = from + 250,
                    Err(_) => break,
                }
            }
            let _ = db.close();
            (env.crash(Survival::Random(seed)), synced)
        });
        image.simulate(move |env| {
            let db = open(&env).unwrap();
            check(&db, synced);
            // Nothing but what counts, and what is made ahead.
            let [home, second] = [HOME, SECOND].map(|dir| packs(&*env, Path::new(dir)));
            assert_eq!(home, second, "after cut {cut}");
            db.close().unwrap();
        });
    }
}

#[test]
fn a_pack_without_its_other_half_is_damage_and_nothing_is_removed() {
    let env = machine(0, DeviceModel::instant());
    Arc::clone(&env).simulate(|env| {
        let db = open(&env).unwrap();
        fill(&db, 0..1000).unwrap();
        db.close().unwrap();
        let before = packs(&*env, Path::new(HOME));
        let lost = Path::new(SECOND).join(before.first().unwrap());
        Env::remove(&*env, &lost).unwrap();
        let found = open(&env).map(|db| {
            let problems = db.verify().map_or(1, |report| report.problems.len());
            db.close().unwrap();
            problems
        });
        assert!(!matches!(found, Ok(0)), "a half is not taken for a whole");
        assert!(Env::open(&*env, &Path::new(HOME).join(before.first().unwrap()), Access::Read).is_ok());
    });
}

/// Both members write at the same time, as much as they can.
#[test]
fn a_stripe_writes_as_fast_as_its_members_together() {
    let disk = |megabytes: u64| DeviceModel {
        write_bandwidth: megabytes * 1_000_000,
        cache_bandwidth: u64::MAX,
        dirty_bytes_max: 1 << 20,
        ..DeviceModel::nvme()
    };
    let seconds = |weights: Option<Vec<u32>>| {
        let env = SimEnv::new(SimConfig { device: disk(10), preemption_percent: 0, ..SimConfig::default() });
        env.add_device(Path::new(SECOND), disk(10), 1 << 40);
        Arc::clone(&env).simulate(move |env| {
            let inner: Arc<dyn Env> = env.clone();
            let used: Arc<dyn Env> = match weights {
                Some(weights) => {
                    let stripe = Stripe { weights, ..Stripe::default() };
                    StripedEnv::new(inner, Path::new(HOME), &[Path::new(SECOND)], stripe).unwrap()
                }
                None => inner,
            };
            let db = Db::builder(HOME).env(used).options(Options::default()).open().unwrap();
            let before = env.now();
            let mut ingest = db.ingest().unwrap();
            (0..20_000_u64).for_each(|n| ingest.push(format!("{n:08}"), [n as u8; 1000]).unwrap());
            ingest.finish().unwrap();
            let time = (env.now() - before).as_secs_f64();
            db.close().unwrap();
            time
        })
    };
    let alone = seconds(None);
    let (even, uneven) = (alone / seconds(Some(vec![1, 1])), alone / seconds(Some(vec![3, 1])));
    assert!((1.7..=2.05).contains(&even), "{even}");
    assert!((1.2..=1.4).contains(&uneven), "three quarters of it are on one: {uneven}");
}
