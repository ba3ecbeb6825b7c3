//! Tests of values that lie apart from their keys: they are read, kept for whoever reads, and given back when they are dead.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{Compression, Db, KeyspaceOptions, Options};
use terrace_torture::client::DIR;
use terrace_torture::{Rng, tiny};

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let shared: Arc<dyn Env> = env.clone();
    Db::builder(Path::new(DIR)).env(shared).options(options).open().unwrap()
}

fn with_store(options: Options, test: impl FnOnce(&Arc<SimEnv>, Db) + Send + 'static) {
    SimEnv::run(SimConfig::default(), move |env| test(&env, open(&env, options)));
}

fn separating(from: u32) -> Options {
    let keyspace = KeyspaceOptions { separate_from: Some(from), ..KeyspaceOptions::default() };
    Options { keyspace, ..tiny() }
}

fn key(n: u64) -> String {
    format!("{n:06}")
}

/// Bytes that do not compress, or do.
fn value(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let unit: Vec<u8> = (0..16).map(|_| rng.below(256) as u8).collect();
    unit.iter().copied().cycle().take(bytes).collect()
}

fn check(db: &Db, model: &BTreeMap<String, Vec<u8>>) {
    let shown: Vec<_> = db.iter().unwrap().map(Result::unwrap).collect();
    assert!(shown.iter().map(|(k, v)| (&**k, &**v)).eq(model.iter().map(|(k, v)| (k.as_bytes(), &**v))));
    let mut back: Vec<_> = db.iter().unwrap().rev().map(Result::unwrap).collect();
    back.reverse();
    assert_eq!(back, shown);
    let keys: Vec<_> = model.keys().collect();
    let found = db.multi_get(&keys).unwrap();
    assert!(found.iter().map(|v| v.as_deref()).eq(model.values().map(|v| Some(&**v))));
    for (key, value) in model {
        assert_eq!(db.get(key).unwrap().unwrap(), value[..]);
        assert!(db.contains(key).unwrap());
    }
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_store_with_values_apart_answers_as_one_without() {
    for (seed, compression) in [(1, Compression::None), (2, Compression::Lz4), (3, Compression::None)] {
        let mut options = separating(100);
        options.keyspace.compression = compression;
        with_store(options.clone(), move |env, db| {
            let mut rng = Rng::new(seed);
            let mut model = BTreeMap::new();
            let mut db = db;
            for round in 0..6 {
                for _ in 0..300 {
                    let key = key(rng.below(200) as u64);
                    if rng.percent(20) {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    } else {
                        let bytes = *rng.pick(&[0, 10, 99, 100, 500, 4096, 5000, 70_000]);
                        let part = if rng.percent(90) { 1 } else { 2 };
                        let value = value(&mut rng, bytes / part);
                        db.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                if round % 2 == 0 {
                    db.flush().unwrap();
                }
                check(&db, &model);
                if round == 3 {
                    db.compact().unwrap();
                    check(&db, &model);
                }
                if round == 4 {
                    db.close().unwrap();
                    db = open(env, options.clone());
                }
            }
            assert!(db.verify().unwrap().values > 0);
            db.close().unwrap();
        });
    }
}
