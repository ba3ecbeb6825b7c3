//! Tests of lookups of many keys at once: the answers of single lookups, with less work.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::sync::Arc;

use crate::common::{Random, Seed, scheduled, tiny};
use terrace::Db;
use terrace::env::simulated::SimEnv;

fn open(env: &Arc<SimEnv>) -> Db {
    Db::builder("/db").env(env.clone()).options(tiny()).open().unwrap()
}

#[test]
fn answers_are_those_of_single_lookups_wherever_the_keys_lie() {
    let seed = Seed::new(3);
    let random = seed.random();
    scheduled(move |env| answers_are_those_of_single_lookups(&open(&env), random));
}

fn answers_are_those_of_single_lookups(db: &Db, mut random: Random) {
    let mut moments = Vec::new();
    for round in 0..1200u64 {
        let key = format!("{:03}", random.below(500));
        match random.below(40) {
            0..10 => db.delete(key).unwrap(),
            10 => db.delete_range(key.clone()..format!("{key}5")).unwrap(),
            11 => db.delete_range(key..format!("{:03}", random.below(500))).unwrap(),
            _ => db.put(key, vec![round as u8; random.below(200) as usize]).unwrap(),
        }
        match round {
            400 => db.compact().unwrap(),
            800 => db.flush().unwrap(),
            _ if round % 400 == 50 => moments.push(db.snapshot()),
            _ => {}
        }
    }
    moments.push(db.snapshot());
    assert!(db.stats().keyspaces[0].shape.levels.len() > 1, "everything lies in one level");
    for _ in 0..100 {
        // In any order, some twice, some that were never there.
        let keys: Vec<_> = (0..random.below(60)).map(|_| format!("{:03}", random.below(600))).collect();
        let single: Vec<_> = keys.iter().map(|key| db.get(key).unwrap()).collect();
        assert_eq!(db.multi_get(&keys).unwrap(), single);
        for moment in &moments {
            let single: Vec<_> = keys.iter().map(|key| moment.get(key).unwrap()).collect();
            assert_eq!(moment.multi_get(&keys).unwrap(), single, "at {}", moment.seq());
        }
    }
}

#[test]
fn neighbours_share_the_fetch_of_their_block() {
    scheduled(|env| {
        let db = open(&env);
        (0..500).for_each(|n| db.put(format!("{n:03}"), [7; 20]).unwrap());
        db.compact().unwrap();
        let fetches = || db.stats().cache.hits + db.stats().cache.misses;
        let keys: Vec<_> = (100..140).map(|n| format!("{n:03}")).collect();
        let before = fetches();
        for key in &keys {
            assert_eq!(db.get(key).unwrap().unwrap(), [7; 20]);
        }
        let single = fetches() - before;
        assert!(db.multi_get(&keys).unwrap().iter().all(Option::is_some));
        let together = fetches() - before - single;
        // Blocks hold 512 bytes, about 20 of these entries.
        assert!(single == 40 && together <= 4, "{together} fetches instead of {single}");
    });
}
