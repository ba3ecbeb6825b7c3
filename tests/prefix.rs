//! Tests of prefix rules: scans within one prefix leave tables unread, and nothing else changes.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::sync::Arc;

use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::types::KeyRange;
use terrace::{Db, Iter, Keyspace, KeyspaceOptions, Prefix, Stats};
use terrace_torture::client::{DIR, open};
use terrace_torture::{Replay, Rng, tiny};

/// Keys are `g07/012`: a group, and a number in it.
const RULE: Prefix = Prefix::Delimited { delimiter: b'/', count: 1 };
const GROUPS: usize = 40;

fn ruled() -> KeyspaceOptions {
    KeyspaceOptions { prefix: Some(RULE), filter_bits_per_key: 20, ..KeyspaceOptions::default() }
}

fn group(group: usize) -> String {
    format!("g{group:02}/")
}

fn key(of: usize, n: usize) -> String {
    format!("{}{n:03}", group(of))
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn entries(iter: Iter) -> Entries {
    iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// What changes while `read` runs: filters asked, of these denying, blocks looked for.
fn cost(db: &Db, read: impl FnOnce()) -> (u64, u64, u64) {
    let figures = |stats: Stats| {
        let (asked, denied) = (stats.prefix_filter.asked, stats.prefix_filter.denied);
        (asked, denied, stats.cache.hits + stats.cache.misses)
    };
    let before = figures(db.stats());
    read();
    let after = figures(db.stats());
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

/// A store with every other group in one level, in one run of tables.
fn every_other_group(env: &Arc<SimEnv>) -> (Db, Keyspace) {
    let db = open(env, &tiny()).unwrap();
    let space = db.keyspace_with("ruled", ruled()).unwrap();
    for of in (0..GROUPS).step_by(2) {
        (0..20).for_each(|n| space.put(key(of, n), "v".repeat(100)).unwrap());
    }
    db.compact().unwrap();
    let levels = space.shape().levels;
    assert!(levels.iter().map(|level| level.runs).sum::<usize>() == 1 && levels.last().unwrap().tables > 5);
    (db, space)
}

#[test]
fn scans_of_absent_prefixes_read_no_block() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, space) = every_other_group(&env);
        let plain = db.keyspace("plain").unwrap();
        let mut ingest = plain.ingest().unwrap();
        entries(space.iter().unwrap()).iter().for_each(|(key, value)| ingest.push(key, value).unwrap());
        ingest.finish().unwrap();

        let absent: Vec<String> = (1..GROUPS - 1).step_by(2).map(group).collect();
        let scan = |space: &Keyspace| {
            for prefix in &absent {
                assert_eq!(space.prefix(prefix).unwrap().count(), 0);
                assert_eq!(space.prefix(prefix.clone() + "01").unwrap().rev().count(), 0);
                assert_eq!(space.range(prefix.clone() + "003"..=prefix.clone() + "017").unwrap().count(), 0);
            }
        };
        let (asked, denied, blocks) = cost(&db, || scan(&space));
        // A group that lies between two tables is in the range of none.
        assert!((absent.len() as u64..=3 * absent.len() as u64).contains(&asked), "{asked}");
        assert_eq!((denied, blocks), (asked, 0));
        let (asked, _, blocks) = cost(&db, || scan(&plain));
        assert_eq!(asked, 0);
        assert!(blocks >= 3 * absent.len() as u64, "{blocks}");
    });
}

#[test]
fn present_prefixes_are_found_and_wider_ranges_ask_nobody() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, space) = every_other_group(&env);
        let (asked, denied, _) = cost(&db, || {
            for of in (0..GROUPS).step_by(2) {
                assert_eq!(space.prefix(group(of)).unwrap().count(), 20);
                assert_eq!(space.prefix(key(of, 7)).unwrap().rev().count(), 1);
                assert_eq!(space.range(key(of, 5)..key(of, 9)).unwrap().count(), 4);
            }
        });
        assert_eq!((asked, denied), (3 * GROUPS as u64 / 2, 0));
        let (asked, ..) = cost(&db, || {
            assert_eq!(space.prefix("g").unwrap().count(), 20 * GROUPS / 2);
            assert_eq!(space.prefix("g03").unwrap().count(), 0);
            assert_eq!(space.range(key(3, 0)..).unwrap().count(), 20 * (GROUPS / 2 - 2));
            assert_eq!(space.range(key(3, 0)..=group(4)).unwrap().count(), 0);
            assert_eq!(space.range(..key(1, 0)).unwrap().count(), 20);
            assert_eq!(space.iter().unwrap().count(), 20 * GROUPS / 2);
        });
        assert_eq!(asked, 0);
        // As far as it goes, the group: not a key behind it.
        assert_eq!(space.range(key(2, 15)..key(3, 0)).unwrap().count(), 5);
        assert_eq!(space.range(key(2, 15)..group(2).replace('/', "0")).unwrap().count(), 5);
    });
}

#[test]
fn range_tombstones_count_where_no_entry_has_the_prefix() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, space) = every_other_group(&env);
        let kept = db.snapshot();
        let before = entries(space.prefix(group(10)).unwrap());
        // Flushed with two entries far apart: the table spans group 10, and has nothing of it but the tombstone.
        space.put("a/0", "first").unwrap();
        space.put("z/0", "last").unwrap();
        space.delete_range(group(10)..group(11)).unwrap();
        db.flush().unwrap();
        let (asked, denied, _) = cost(&db, || {
            assert_eq!(space.prefix(group(10)).unwrap().count(), 0);
            assert_eq!(space.prefix(group(10)).unwrap().rev().count(), 0);
            assert_eq!(space.range(key(10, 3)..=key(10, 3)).unwrap().count(), 0);
        });
        assert_eq!((asked, denied), (6, 3), "the newer run is left out, the older one is not");
        assert_eq!(entries(kept.keyspace(&space).prefix(group(10)).unwrap()), before);
        assert_eq!(space.prefix(group(12)).unwrap().count(), 20);

        // A prefix whose entries are all deleted one by one.
        (0..20).for_each(|n| space.delete(key(20, n)).unwrap());
        db.flush().unwrap();
        assert_eq!(space.prefix(group(20)).unwrap().count(), 0);
        assert_eq!(kept.keyspace(&space).prefix(group(20)).unwrap().count(), 20);
        drop(kept);
        db.compact().unwrap();
        for of in [10, 20] {
            let (asked, denied, blocks) = cost(&db, || {
                assert_eq!(space.prefix(group(of)).unwrap().count(), 0);
            });
            assert!(asked == denied && blocks == 0, "{asked} {denied} {blocks}");
        }
    });
}

#[test]
fn a_transaction_sees_its_own_writes_where_tables_have_none() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, space) = every_other_group(&env);
        let mut transaction = db.transaction();
        transaction.put_in(&space, key(3, 1), "own").delete_in(&space, key(4, 1));
        let (_, denied, _) = cost(&db, || {
            assert_eq!(transaction.prefix_in(&space, group(3)).unwrap().count(), 1);
            assert_eq!(transaction.prefix_in(&space, group(4)).unwrap().count(), 19);
        });
        assert_eq!(denied, 1);
        transaction.commit().unwrap();
        // In memory, and then in a run that has the group beside one that has not.
        for _ in 0..2 {
            assert_eq!(space.prefix(group(3)).unwrap().count(), 1);
            assert_eq!(space.prefix(group(4)).unwrap().rev().count(), 19);
            db.flush().unwrap();
        }
    });
}

#[test]
fn a_keyspace_keeps_its_rule() {
    let env = SimEnv::new(SimConfig::default());
    let image = env.simulate(|env| {
        let (db, _) = every_other_group(&env);
        // Those of the opening, or of a later call, are for keyspaces that do not exist yet.
        let other = KeyspaceOptions { prefix: Some(Prefix::Fixed(1)), ..ruled() };
        db.keyspace_with("ruled", other).unwrap();
        db.checkpoint("/copy").unwrap();
        db.close().unwrap();
        env.crash(Survival::Everything)
    });
    let denies = |db: &Db| {
        let space = db.existing_keyspace("ruled").unwrap().unwrap();
        let absent = (1..GROUPS).step_by(2).map(group);
        let (asked, denied, blocks) =
            cost(db, || absent.for_each(|prefix| assert_eq!(space.prefix(prefix).unwrap().count(), 0)));
        assert!(denied > 0 && (denied, blocks) == (asked, 0), "{asked} {denied} {blocks}");
        let present = (0..GROUPS).step_by(2).map(group);
        present.for_each(|prefix| assert_eq!(space.prefix(prefix).unwrap().count(), 20));
    };
    image.simulate(move |env| {
        let builder = |dir: &str| Db::builder(Path::new(dir)).env(env.clone()).options(tiny());
        let reader = builder(DIR).read_only().open().unwrap();
        denies(&reader);
        drop(reader);
        builder(DIR).repair("/repaired").unwrap();
        for dir in [DIR, "/copy", "/repaired"] {
            let db = builder(dir).must_exist().open().unwrap();
            denies(&db);
            assert!(db.verify().unwrap().problems.is_empty());
            db.close().unwrap();
        }
    });
}

#[test]
fn keys_without_a_prefix_are_found_as_any_others() {
    SimEnv::run(SimConfig::default(), |env| {
        let (db, space) = every_other_group(&env);
        ["", "g", "g05", "g06", "zz"].iter().for_each(|key| space.put(key, "short").unwrap());
        db.compact().unwrap();
        for (prefix, count) in [("", 405), ("g", 403), ("g05", 1), ("g06", 21), ("g06/", 20), ("g05/", 0)] {
            assert_eq!(space.prefix(prefix).unwrap().count(), count, "{prefix}");
        }
        assert_eq!(space.range("g05"..="g05").unwrap().count(), 1);
        assert_eq!(space.range("g05".."g06").unwrap().count(), 1);
        assert!(space.get("g05").unwrap().is_some() && space.get("g05/").unwrap().is_none());
    });
}

/// One history in keyspaces of every rule: whatever is asked of one, all answer alike.
#[test]
fn every_rule_gives_the_same_answers() {
    const RULES: [Option<Prefix>; 4] =
        [None, Some(RULE), Some(Prefix::Fixed(3)), Some(Prefix::Delimited { delimiter: b'1', count: 2 })];
    for seed in 0..6 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let mut rng = Rng::new(seed);
            let opened = || {
                let db = open(&env, &tiny()).unwrap();
                let spaces = RULES.map(|prefix| {
                    db.keyspace_with(&format!("{prefix:?}"), KeyspaceOptions { prefix, ..ruled() }).unwrap()
                });
                let snapshot = db.snapshot();
                (db, spaces, snapshot)
            };
            let (mut db, mut spaces, mut snapshot) = opened();
            let mut denied = 0;
            for _ in 0..60 {
                change(&db, &spaces, &mut rng);
                for _ in 0..8 {
                    let mut ends = [some_key(&mut rng), some_key(&mut rng)];
                    ends.sort();
                    let prefix = &ends[0][..rng.below(ends[0].len() + 1)];
                    let range = || ends[0].as_str()..ends[1].as_str();
                    let all = spaces.each_ref().map(|space| {
                        let then = snapshot.keyspace(space);
                        let scans = [
                            space.prefix(prefix),
                            space.range(range()),
                            then.prefix(prefix),
                            then.range(range()),
                        ];
                        let scans = scans.map(|iter| entries(iter.unwrap()));
                        let backward = space.prefix(prefix).unwrap().rev();
                        let backward: Vec<_> = backward.map(|entry| entry.unwrap().0.to_vec()).collect();
                        assert!(backward.iter().eq(scans[0].iter().rev().map(|(key, _)| key)));
                        scans
                    });
                    assert!(all.iter().all(|scans| *scans == all[0]), "{prefix:?} {ends:?}");
                }
                if rng.percent(10) {
                    denied += db.stats().prefix_filter.denied;
                    drop((spaces, snapshot));
                    db.close().unwrap();
                    (db, spaces, snapshot) = opened();
                } else if rng.percent(20) {
                    snapshot = db.snapshot();
                }
            }
            denied += db.stats().prefix_filter.denied;
            assert!(denied > 100, "hardly a table was passed over: {denied}");
            assert!(db.verify().unwrap().problems.is_empty());
        });
    }
}

fn some_key(rng: &mut Rng) -> String {
    let key = key(rng.below(GROUPS), rng.below(120));
    key[..key.len() - *rng.pick(&[0, 0, 0, 1, 3, 4, 5])].to_owned()
}

/// The same change in every keyspace.
fn change(db: &Db, spaces: &[Keyspace], rng: &mut Rng) {
    let (from, count) = (some_key(rng), rng.below(30));
    match rng.below(10) {
        0 => {
            let to = some_key(rng);
            spaces.iter().for_each(|space| space.delete_range(from.as_str()..to.as_str()).unwrap());
        }
        1 => {
            let of = rng.below(GROUPS);
            for space in spaces {
                let mut ingest = space.ingest().unwrap();
                (0..count).for_each(|n| ingest.push(key(of, n), from.as_bytes()).unwrap());
                ingest.finish().unwrap();
            }
        }
        2 => db.flush().unwrap(),
        3 => spaces.iter().for_each(|space| space.compact_range(..).unwrap()),
        kind => {
            // Few groups at a time, so that runs lack most of them.
            let of = rng.below(GROUPS);
            for n in (0..count).map(|n| (n * 7 + from.len()) % 120) {
                for space in spaces {
                    if kind == 4 {
                        space.delete(key(of, n)).unwrap();
                    } else {
                        space.put(key(of, n), format!("{from}{n}").repeat(8)).unwrap();
                    }
                }
            }
        }
    }
}

/// The rule of a range is that of its keys: held against all keys of a store, for ranges between any of them.
#[test]
fn a_range_has_the_prefix_that_all_its_keys_have() {
    let mut rng = Rng::new(1);
    let mut keys: Vec<String> = (0..300).map(|_| some_key(&mut rng)).collect();
    keys.sort();
    for rule in [RULE, Prefix::Fixed(3), Prefix::Fixed(7)] {
        let mut within_one = 0;
        for (at, start) in keys.iter().enumerate() {
            for end in &keys[at..] {
                let range = KeyRange::new(start.as_bytes(), end.as_bytes());
                if let Some(prefix) = rule.of_all(&range) {
                    within_one += 1;
                    let mut inside = keys.iter().filter(|key| range.contains(key.as_bytes()));
                    assert!(inside.all(|key| rule.of(key.as_bytes()) == Some(prefix)), "{rule} of {range}");
                } else {
                    let ends = [start, end].map(|key| rule.of(key.as_bytes()));
                    assert!(ends[0].is_none() || ends[0] != ends[1], "{rule} of {range}");
                }
            }
        }
        assert!(within_one >= 100, "{rule}: {within_one}");
    }
}
