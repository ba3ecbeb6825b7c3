//! All engines give the same answers to the same calls.

use std::ops::ControlFlow;

use ::terrace::{Compression, Options};
use clap::ValueEnum;

use super::{Direction, Durability, Engine, Opening, Store};

fn opening(durability: Durability) -> Opening {
    Opening { cache_bytes: 8 << 20, memtable_bytes: 1 << 20, durability }
}

fn engines() -> impl Iterator<Item = Engine> {
    let named = Engine::value_variants().iter().copied().filter(|engine| engine.is_store());
    named.chain(Options::profiles().iter().map(|profile| Engine::Shaped(profile)))
}

fn found(store: &dyn Store, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    let there = store.get(key, &mut |seen| value = Some(seen.to_vec())).unwrap();
    assert_eq!(there, value.is_some());
    value
}

/// Keys of up to `limit` rows.
fn scanned(store: &dyn Store, from: &[u8], direction: Direction, limit: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut see = |key: &[u8], value: &[u8]| {
        assert_eq!(value, [b"value of ", key].concat());
        keys.push(key.to_vec());
        if keys.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.scan(from, direction, &mut see).unwrap();
    keys
}

fn fill(store: &dyn Store) {
    let value = |key: &str| format!("value of {key}");
    for key in ["a", "c"] {
        store.put(key.as_bytes(), b"overwritten").unwrap();
        store.put(key.as_bytes(), value(key).as_bytes()).unwrap();
    }
    let (e, g) = (value("e"), value("g"));
    store.put_batch(&[(b"e", e.as_bytes()), (b"g", g.as_bytes())]).unwrap();
}

fn check(store: &dyn Store) {
    assert_eq!(found(store, b"c").unwrap(), b"value of c");
    assert_eq!(found(store, b"d"), None);
    let mut values = Vec::new();
    let count = store.multi_get(&[b"g", b"none", b"a"], &mut |value| values.push(value.to_vec())).unwrap();
    values.sort();
    assert_eq!((count, values), (2, vec![b"value of a".to_vec(), b"value of g".to_vec()]));
    for (from, direction, limit, expected) in [
        ("0", Direction::Forward, 9, vec!["a", "c", "e", "g"]),
        ("c", Direction::Forward, 2, vec!["c", "e"]),
        ("d", Direction::Forward, 1, vec!["e"]),
        ("h", Direction::Forward, 9, vec![]),
        ("c", Direction::Backward, 9, vec!["c", "a"]),
        ("d", Direction::Backward, 1, vec!["c"]),
        ("z", Direction::Backward, 2, vec!["g", "e"]),
        ("0", Direction::Backward, 9, vec![]),
    ] {
        let expected: Vec<Vec<u8>> = expected.into_iter().map(|key| key.as_bytes().to_vec()).collect();
        assert_eq!(scanned(store, from.as_bytes(), direction, limit), expected, "{from} {direction:?}");
    }
}

#[test]
fn engines_agree_and_keep_what_they_were_given() {
    for engine in engines() {
        for durability in [Durability::Kill, Durability::Power] {
            let directory = tempfile::tempdir().unwrap();
            let store = engine.open(directory.path(), &opening(durability)).unwrap();
            fill(&*store);
            check(&*store);
            store.close().unwrap();
            let store = engine.open(directory.path(), &opening(durability)).unwrap();
            check(&*store);
            store.close().unwrap();
        }
    }
}

#[test]
fn a_sorted_array_answers_as_engines_do() {
    let store = Engine::Sorted.open(std::path::Path::new(""), &opening(Durability::Kill)).unwrap();
    let keys: Vec<String> = (0..1000).rev().map(|number| format!("user{:012}", number / 7 * 1_000_000 + number)).collect();
    for key in &keys {
        store.put(key.as_bytes(), format!("value of {key}").as_bytes()).unwrap();
    }
    for (at, key) in keys.iter().rev().enumerate() {
        assert_eq!(found(&*store, key.as_bytes()).unwrap(), format!("value of {key}").as_bytes());
        assert_eq!(found(&*store, format!("{key}x").as_bytes()), None);
        let rows = |direction| scanned(&*store, key.as_bytes(), direction, 1000).len();
        assert_eq!((rows(Direction::Forward), rows(Direction::Backward)), (1000 - at, at + 1));
    }
    assert!(store.put(b"late", b"value").is_err());
}

#[test]
fn engines_delete() {
    for engine in engines() {
        let directory = tempfile::tempdir().unwrap();
        let store = engine.open(directory.path(), &opening(Durability::Kill)).unwrap();
        fill(&*store);
        store.delete(b"c").unwrap();
        store.delete(b"none").unwrap();
        assert_eq!((found(&*store, b"c"), found(&*store, b"a").is_some()), (None, true));
        if !store.delete_range(b"a", b"g").unwrap() {
            ["a", "e"].iter().for_each(|key| store.delete(key.as_bytes()).unwrap());
        }
        for _ in 0..2 {
            assert_eq!(scanned(&*store, b"0", Direction::Forward, 9), [b"g"], "{}", engine.name());
            store.flush().unwrap();
            store.compact().unwrap();
        }
        store.close().unwrap();
    }
}

#[test]
fn engines_tell_their_versions() {
    for engine in engines() {
        let directory = tempfile::tempdir().unwrap();
        engine.open(directory.path(), &opening(Durability::Kill)).unwrap().close().unwrap();
        let version = engine.version(directory.path()).unwrap();
        assert!(version.contains('.') && version.contains(|c: char| c.is_ascii_digit()), "{version}");
    }
}

#[test]
fn classes_are_what_was_asked_for_or_less() {
    for engine in engines() {
        assert_eq!(engine.durability(Durability::Power), Durability::Power);
        assert!(engine.durability(Durability::Kill) <= Durability::Kill);
    }
    assert_eq!(Engine::Redb.durability(Durability::Kill), Durability::Unsafe);
}

#[test]
fn engines_are_known_by_their_names() {
    for engine in engines().chain([Engine::Empty, Engine::Shaped("default:settle=off")]) {
        let name = serde_json::to_value(engine).unwrap();
        assert_eq!(name, engine.name());
        assert_eq!(serde_json::from_value::<Engine>(name).unwrap(), engine);
    }
}

#[test]
fn shapes_differ_in_nothing_that_is_set_alike_for_all() {
    let opening = opening(Durability::Power);
    let default = super::terrace_options(&opening);
    let shape = super::shape("leveldb-64m:group_bytes=3M").unwrap();
    let options = super::terrace::options(&opening, shape.clone(), false);
    assert_eq!((&options.tree, options.background_threads), (&shape.tree, shape.background_threads));
    let alike = Options { tree: default.tree.clone(), background_threads: None, ..options };
    assert_eq!(alike, default);
    assert_eq!(alike.keyspace.compression, Compression::None);
}
