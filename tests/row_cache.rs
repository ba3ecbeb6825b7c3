//! Tests of the row cache: lookups of large records are right for every reader, and take less memory than blocks.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;

use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{Db, Options};
use terrace_torture::TreeParts as _;
use terrace_torture::client::open;
use terrace_torture::{Replay, Rng, seed_or, tiny};

const KEYS: usize = 400;
const MANY: usize = 2000;

fn key(n: usize) -> String {
    format!("key{n:04}")
}

type Model = BTreeMap<String, Vec<u8>>;

/// Looks every key up, twice so that the second time finds what the first has kept.
fn check(model: &Model, when: &str, get: impl Fn(&str) -> Option<Vec<u8>>) {
    for _ in 0..2 {
        for n in 0..KEYS {
            assert!(get(&key(n)) == model.get(&key(n)).cloned(), "{} {when}", key(n));
        }
    }
}

#[test]
fn every_reader_finds_its_version_of_a_large_record() {
    let seed = seed_or(1);
    let _replay = Replay(format!("TERRACE_SEED={seed}"));
    SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
        let db = open(&env, &tiny()).unwrap();
        let mut rng = Rng::new(seed);
        let mut model = Model::new();
        let mut snapshots = Vec::new();
        for round in 0..6 {
            for _ in 0..KEYS {
                let key = key(rng.below(KEYS));
                if rng.percent(20) {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = vec![rng.draw() as u8; 600 + rng.below(3000)];
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            if round == 3 {
                db.delete_range(key(100)..key(150)).unwrap();
                model.retain(|k, _| *k < key(100) || *k >= key(150));
            }
            db.flush().unwrap();
            let get = |key: &str| db.get(key).unwrap().map(|value| value.to_vec());
            check(&model, "now", get);
            snapshots.push((db.snapshot(), model.clone()));
            for (at, (snapshot, model)) in snapshots.iter().enumerate() {
                let get = |key: &str| snapshot.get(key).unwrap().map(|value| value.to_vec());
                check(model, &format!("in snapshot {at}, after round {round}"), get);
            }
        }
        assert!(db.verify().unwrap().problems.is_empty());
    });
}

/// Share of lookups of every `step`th key that need no read, the second time.
fn hits_per_lookup(db: &Db, step: usize) -> f64 {
    let look = || (0..MANY).step_by(step).for_each(|n| assert!(db.get(key(n)).unwrap().is_some()));
    look();
    let before = db.stats().cache;
    look();
    let after = db.stats().cache;
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    hits as f64 / (hits + misses) as f64
}

#[test]
fn hot_records_fit_where_their_blocks_would_not() {
    SimEnv::run(SimConfig::default(), |env| {
        // Blocks of eight records, and a cache for less than half of the blocks.
        let options = Options { memory_bytes: Some(1 << 20), ..tiny() };
        let options = Options { tree: options.tree.with(|tree| tree.block_bytes = 8 << 10), ..options };
        let db = open(&env, &options).unwrap();
        (0..MANY).for_each(|n| db.put(key(n), vec![n as u8; 1000]).unwrap());
        db.compact().unwrap();
        assert!(hits_per_lookup(&db, 8) > 0.95, "one record of each block");
        // Neighbours make their block hot.
        let before = db.stats().cache.misses;
        (0..16).for_each(|n| assert!(db.get(key(200 + n)).unwrap().is_some()));
        let missed = db.stats().cache.misses - before;
        assert!(missed <= 8, "{missed} misses for 16 neighbours in two or three blocks");
    });
}

#[test]
fn what_scans_have_brought_into_memory_stays_there_when_it_is_compacted() {
    SimEnv::run(SimConfig::default(), |env| {
        let options = Options { memory_bytes: Some(64 << 20), ..tiny() };
        let db = open(&env, &options).unwrap();
        let value = |n: usize, round: usize| vec![(n + round) as u8; 1000];
        (0..MANY).for_each(|n| db.put(key(n), value(n, 0)).unwrap());
        db.compact().unwrap();
        // What short scans from everywhere read.
        let scan = |round: usize| {
            let before = db.stats().read.scan;
            for n in (0..MANY).step_by(7) {
                for (at, entry) in db.range(key(n)..).unwrap().take(10).enumerate() {
                    let (found, bytes) = entry.unwrap();
                    let round = if (n + at).is_multiple_of(20) { round } else { 0 };
                    assert!(*found == *key(n + at).as_bytes() && *bytes == *value(n + at, round));
                }
            }
            db.stats().read.scan - before
        };
        let data = (MANY * 1000) as u64;
        assert!(scan(0) > data && scan(0) == 0, "the second time, all of it is in memory");
        for round in 1..4 {
            (0..MANY).step_by(20).for_each(|n| db.put(key(n), value(n, round)).unwrap());
            let compacted = db.stats().compaction.bytes_in;
            db.compact().unwrap();
            assert!(
                db.stats().compaction.bytes_in - compacted > data / 2,
                "every table has a record that is new"
            );
            let read = scan(round);
            assert!(read < data / 20, "{read} bytes were read again of {data}");
        }
    });
}
