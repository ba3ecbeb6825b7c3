//! Tests of cursors: they seek and turn round like a position in a map, whatever lies where.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::simulated::{SimConfig, SimEnv};
use terrace::{Cursor, KeyspaceOptions, Prefix};
use terrace_torture::client::open;
use terrace_torture::{Replay, Rng, tiny};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Longer than a run takes, shorter than a wait.
const TTL: Duration = Duration::from_secs(100_000);
const LONGER_MILLIS: i64 = 300_000_000;

fn key(n: usize) -> Vec<u8> {
    format!("{}/{:03}", ["a", "b", "bb", "c"][n % 4], n / 4).into_bytes()
}

/// A key that may be there, or just beside.
fn near(rng: &mut Rng) -> Vec<u8> {
    let mut key = key(rng.below(200));
    match rng.below(6) {
        0 => key.push(0),
        1 => _ = key.pop(),
        2 => key = vec![[0, b'b', 255][rng.below(3)]],
        _ => {}
    }
    key
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(3) {
        0 => Bound::Included(near(rng)),
        1 => Bound::Excluded(near(rng)),
        _ => Bound::Unbounded,
    }
}

/// Walks at random, and compares every place with that in a list.
fn walk(mut cursor: Cursor, entries: &[(&Vec<u8>, &Vec<u8>)], rng: &mut Rng) {
    // One more than its place; 0 is before the first.
    let mut place = 0;
    assert!(cursor.current().is_none());
    let mut trace = Vec::new();
    let mut run = 0;
    for _ in 0..60 {
        // Steps come in a row.
        let movement = if run > 0 { 4 + run % 2 } else { rng.below(6) };
        run = match run {
            0 if rng.below(8) == 0 => 4 + rng.below(10),
            0 | 1 => 0,
            more => more - 2,
        };
        let sought = near(rng);
        let found = match movement {
            0 => cursor.seek(&sought),
            1 => cursor.seek_for_prev(&sought),
            2 => cursor.seek_to_first(),
            3 => cursor.seek_to_last(),
            4 => cursor.next(),
            _ => cursor.prev(),
        };
        let found = found.unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
        trace.push((movement, String::from_utf8_lossy(&sought).into_owned()));
        place = match movement {
            0 => 1 + entries.partition_point(|(key, _)| **key < sought),
            1 => entries.partition_point(|(key, _)| **key <= sought),
            2 => 1,
            3 => entries.len(),
            4 => (place + 1).min(entries.len() + 1),
            _ => place.saturating_sub(1),
        };
        let expected = place.checked_sub(1).and_then(|at| entries.get(at));
        assert_eq!(found.as_ref().map(|(key, value)| (key, value)), expected.copied(), "{trace:?}");
        let kept = cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(kept, found);
        assert_eq!(cursor.current().map(|(key, value)| (key.to_vec(), value.to_vec())), found);
    }
}

/// Cursors with all kinds of bounds over what `model` has.
fn check(
    model: &Model,
    ranged: impl Fn((Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Cursor,
    prefixed: impl Fn(&[u8]) -> Cursor,
    rng: &mut Rng,
) {
    for _ in 0..4 {
        let (from, to) = (bound(rng), bound(rng));
        let inside = |key: &Vec<u8>| {
            let behind_from = match &from {
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
                Bound::Unbounded => true,
            };
            let before_to = match &to {
                Bound::Included(to) => key <= to,
                Bound::Excluded(to) => key < to,
                Bound::Unbounded => true,
            };
            behind_from && before_to
        };
        let entries: Vec<_> = model.iter().filter(|(key, _)| inside(key)).collect();
        walk(ranged((from.clone(), to.clone())), &entries, rng);
        let prefix = [&b"a/"[..], b"b", b"bb/", b"c/0", b"", b"d"][rng.below(6)];
        let entries: Vec<_> = model.iter().filter(|(key, _)| key.starts_with(prefix)).collect();
        walk(prefixed(prefix), &entries, rng);
    }
}

fn run(env: &Arc<SimEnv>, seed: u64) {
    let mut rng = Rng::new(seed);
    let db = open(env, &tiny()).unwrap();
    let dated = KeyspaceOptions { ttl: Some(TTL), ..KeyspaceOptions::default() };
    let filtered = KeyspaceOptions {
        prefix: Some(Prefix::Delimited { delimiter: b'/', count: 1 }),
        ..KeyspaceOptions::default()
    };
    let spaces = [
        db.keyspace("default").unwrap(),
        db.keyspace_with("dated", dated).unwrap(),
        db.keyspace_with("filtered", filtered).unwrap(),
    ];
    let mut models = [const { Model::new() }; 3];
    let mut moments = Vec::new();
    for round in 0..400 {
        let at = rng.below(3);
        let (space, model) = (&spaces[at], &mut models[at]);
        match rng.below(24) {
            0..5 => {
                let key = key(rng.below(200));
                space.delete(&key).unwrap();
                model.remove(&key);
            }
            5 => {
                let (from, to) = (near(&mut rng), near(&mut rng));
                space.delete_range(&from..&to).unwrap();
                model.retain(|key, _| *key < from || *key >= to);
            }
            6 if rng.below(4) == 0 => {
                env.jump_clock(LONGER_MILLIS);
                // Of no moment: what has expired is gone from snapshots as well.
                models[1].clear();
                moments.clear();
            }
            7 if rng.below(3) == 0 => db.compact().unwrap(),
            7 => db.flush().unwrap(),
            8 if round > 50 => moments.push((db.snapshot(), models.clone())),
            _ => {
                let (key, value) = (key(rng.below(200)), vec![round as u8; rng.below(150)]);
                space.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
    }
    for (space, model) in spaces.iter().zip(&models) {
        check(
            model,
            |range| space.cursor(range).unwrap(),
            |prefix| space.prefix_cursor(prefix).unwrap(),
            &mut rng,
        );
        for (snapshot, models) in moments.iter().rev().take(2) {
            let at = spaces.iter().position(|other| other.id() == space.id()).unwrap();
            let then = snapshot.keyspace(space);
            check(
                &models[at],
                |range| then.cursor(range).unwrap(),
                |prefix| then.prefix_cursor(prefix).unwrap(),
                &mut rng,
            );
        }
    }
}

#[test]
fn a_cursor_stands_where_a_position_in_a_map_would() {
    for seed in 0..12 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| run(&env, seed));
    }
}

#[test]
fn a_cursor_keeps_its_moment_and_counts_what_it_does() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        (0..40).for_each(|n| db.put(key(n), "old").unwrap());
        let mut cursor = db.cursor(..).unwrap();
        db.clear().unwrap();
        db.compact().unwrap();
        assert!(db.is_empty().unwrap() && db.first().unwrap().is_none() && db.last().unwrap().is_none());
        let mut seen = 0;
        while cursor.next().unwrap().is_some() {
            seen += 1;
        }
        while cursor.prev().unwrap().is_some() {
            seen += 1;
        }
        cursor.seek("b/").unwrap().unwrap();
        cursor.prev().unwrap().unwrap();
        assert_eq!(seen, 80);
        let before = db.stats().user_reads;
        drop(cursor);
        let after = db.stats().user_reads;
        // From either end, where it sought, and where it turned round.
        assert_eq!((after.seeks - before.seeks, after.steps - before.steps), (4, 82));
        db.compact().unwrap();
        assert_eq!(db.stats().space.live_bytes, 0);
    });
}

#[test]
fn an_approximate_len_is_within_its_bounds_and_exact_once_all_is_compacted() {
    for seed in 0..6 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let mut rng = Rng::new(seed);
            let db = open(&env, &tiny()).unwrap();
            let mut model = Model::new();
            for round in 0..600 {
                let key = key(rng.below(150));
                match rng.below(30) {
                    0..9 => {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    }
                    9 => {
                        let to = near(&mut rng);
                        db.delete_range(&key..&to).unwrap();
                        model.retain(|other, _| *other < key || *other >= to);
                    }
                    10 => db.flush().unwrap(),
                    _ => {
                        db.put(&key, [round as u8; 40]).unwrap();
                        model.insert(key, vec![round as u8; 40]);
                    }
                }
                if rng.below(20) == 0 {
                    // Nothing moves while it is looked at.
                    db.wait_idle().unwrap();
                    let space = &db.stats().keyspaces[0];
                    let stored: u64 = space.shape.levels.iter().map(|level| level.entries).sum();
                    let tombstones: u64 = space.shape.levels.iter().map(|level| level.tombstones).sum();
                    let (about, exact) = (db.approximate_len(), model.len() as u64);
                    let hidden = stored + space.memtable_entries - exact;
                    assert!(exact <= about + tombstones && about <= exact + hidden, "{about} for {exact}");
                }
            }
            db.compact().unwrap();
            assert_eq!(db.approximate_len(), model.len() as u64);
        });
    }
}
