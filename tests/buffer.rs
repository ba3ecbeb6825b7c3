//! Tests of the compaction buffer: what stays readable, until when, and that no answer depends on it.
//!
//! Debug builds compare each lookup that a buffer answers with the level that it stands for (`assert_same`), in these and in all
//! other suites.
#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::SimEnv;
use terrace::tree::{Buffer, Components, Drain, Geared, Layout, Picker, Prefixed, Retainer};
use terrace::{BufferStats, CompactionFilter, Db, Decision, Options};
use terrace_torture::TreeParts as _;

use crate::common::{Random, Seed, scheduled, tiny};

pub const PERIOD: Duration = Duration::from_secs(30);

/// LSbM's levels, at a hundred-thousandth of its sizes. All blocks that are read stay in the cache.
pub fn lsbm() -> Options {
    let mut options = Options { memory_bytes: Some(16 << 20), ..tiny() };
    options.tree.layout = Layout::Geared(Geared { level1_bytes: 16 << 10, ratio: 4, l0_trigger: 1 });
    options.tree.picker = Picker::Drain(Drain { unit_bytes: 4 << 10 });
    options.tree.tables().table_bytes = 2 << 10;
    options.tree.retainer =
        Retainer::Buffer(Buffer { period: PERIOD, share_percent: 1000, ..Buffer::default() });
    options
}

pub fn open(env: &Arc<SimEnv>, options: &Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options.clone()).open().unwrap()
}

pub fn key(n: u64) -> String {
    format!("{n:05}")
}

/// Each key once in a shuffled order: so no level repeats any before the next round.
fn write_round(db: &Db, keys: u64, round: u64) {
    for n in 0..keys {
        // 7919 is a prime, so that every key comes once.
        let n = n * 7919 % keys;
        db.put(key(n), format!("{round}-{n}-{}", "x".repeat(80))).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn read_all(db: &Db, keys: u64, round: u64) {
    for n in 0..keys {
        let value = db.get(key(n)).unwrap().unwrap();
        assert!(value.starts_with(format!("{round}-{n}-").as_bytes()), "{n} of round {round}");
    }
}

fn kept(db: &Db) -> BufferStats {
    db.stats().keyspaces[0].buffer
}

/// A store with a buffer, of which everything is in the cache.
fn filled(env: &Arc<SimEnv>, options: &Options) -> Db {
    let db = open(env, options);
    write_round(&db, 900, 0);
    for _ in 0..3 {
        read_all(&db, 900, 0);
    }
    db
}

#[test]
fn what_has_gone_down_is_read_from_the_buffer_while_it_is_in_the_cache() {
    scheduled(|env| {
        let db = filled(&env, &lsbm());
        let (stats, buffer) = (db.stats(), kept(&db));
        assert!(buffer.tables > 10 && buffer.held_bytes > 0, "{buffer:?}");
        assert!(stats.user_reads.found_in_buffer > 900, "{:?}", stats.user_reads);
        assert!(buffer.cached_bytes * 2 > buffer.bytes, "{buffer:?}");
        let live = stats.space.live_bytes;
        assert!(live > buffer.held_bytes, "what is kept takes space that nobody takes for dead");
        // Scans and lookups of many find the same.
        assert_eq!(db.iter().unwrap().count(), 900);
        let many: Vec<String> = (0..900).map(key).collect();
        assert!(db.multi_get(&many).unwrap().iter().all(Option::is_some));
        db.close().unwrap();
        // Nothing of it outlives the store.
        let db = open(&env, &lsbm());
        assert_eq!(kept(&db), BufferStats::default());
        read_all(&db, 900, 0);
        assert!(db.stats().space.live_bytes <= live - buffer.held_bytes);
    });
}

/// Writes everywhere, with reads of the first keys between them, while time passes.
fn write_beside_reads(env: &Arc<SimEnv>, db: &Db, (keys, hot): (u64, u64), round: u64) {
    for n in 0..keys {
        let n = n * 7919 % keys;
        db.put(key(n), format!("{round}-{n}-{}", "x".repeat(80))).unwrap();
        if n % 50 == 0 {
            env.sleep(PERIOD / 4);
            (0..hot).for_each(|n| assert!(round == 0 || db.get(key(n)).unwrap().is_some()));
        }
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // Long enough for what came last.
    for _ in 0..5 {
        env.sleep(PERIOD);
        (0..hot).for_each(|n| assert!(db.get(key(n)).unwrap().is_some()));
    }
}

#[test]
fn what_nobody_reads_is_trimmed_and_what_many_read_is_not() {
    scheduled(|env| {
        let db = open(&env, &lsbm());
        for round in 0..4 {
            write_beside_reads(&env, &db, (3000, 300), round);
        }
        let buffer = kept(&db);
        assert!(buffer.tables > 3 && buffer.cached_bytes * 5 > buffer.bytes * 2, "{buffer:?}");
        assert!(db.stats().compaction.trimmed_tables > 20, "{:?}", db.stats().compaction);
        assert!(db.stats().user_reads.found_in_buffer > 1000);
    });
}

#[test]
fn a_buffer_that_is_written_only_shrinks_to_nothing_and_one_that_is_read_only_stays_empty() {
    scheduled(|env| {
        let db = open(&env, &lsbm());
        for round in 0..3 {
            write_beside_reads(&env, &db, (3000, 0), round);
        }
        let written = kept(&db);
        assert_eq!((written.tables, written.bytes), (0, 0), "{written:?}");
        db.close().unwrap();
        let db = open(&env, &lsbm());
        read_all(&db, 3000, 2);
        assert_eq!(kept(&db).tables, 0);
    });
}

#[test]
fn keys_that_come_again_and_again_freeze_a_level() {
    scheduled(|env| {
        let db = open(&env, &lsbm());
        let mut random = Random(1);
        for _ in 0..4000 {
            let n = random.below(300);
            db.put(key(n), format!("{n}-{}", "x".repeat(80))).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert!(kept(&db).frozen_levels > 0, "{:?}", kept(&db));
        for n in 0..300 {
            let expected = format!("{n}-");
            assert!(db.get(key(n)).unwrap().is_none_or(|value| value.starts_with(expected.as_bytes())));
        }
    });
}

#[test]
fn a_compaction_by_hand_and_a_full_disk_end_it() {
    scheduled(|env| {
        let db = filled(&env, &lsbm());
        assert!(kept(&db).held_bytes > 0);
        db.compact().unwrap();
        assert_eq!(kept(&db).tables, 0);
        db.close().unwrap();
        let options = Options { space_bytes: None, ..lsbm() };
        let db = open(&env, &options);
        write_round(&db, 900, 1);
        read_all(&db, 900, 1);
        let held = kept(&db).held_bytes;
        assert!(held > 8 << 10, "{:?}", kept(&db));
        // There is room for no more than a little, if the buffer makes none.
        let used = env.space(Path::new("/db")).unwrap();
        env.set_space(Path::new("/db"), used.total - used.free + (4 << 10));
        for round in 2..60 {
            for n in 0..60 {
                db.put(key(n), format!("{round}-{n}-{}", "x".repeat(80))).unwrap();
            }
            db.flush().unwrap();
            if kept(&db).held_bytes == 0 {
                break;
            }
        }
        assert_eq!(kept(&db).held_bytes, 0, "{:?}", kept(&db));
    });
}

/// Removes every value of the first round once it comes by a second time.
#[derive(Debug)]
struct DropFirst;

impl CompactionFilter for DropFirst {
    fn decide(&self, _: &[u8], value: &[u8]) -> Decision {
        if value.starts_with(b"0-") { Decision::Remove } else { Decision::Keep }
    }
}

#[test]
fn nothing_is_kept_that_a_filter_may_have_removed() {
    scheduled(|env| {
        let builder = Db::builder("/db").env(env.clone()).options(lsbm());
        let db = builder.compaction_filter("default", Arc::new(DropFirst)).open().unwrap();
        write_round(&db, 900, 0);
        for n in 0..900 {
            _ = db.get(key(n)).unwrap();
        }
        write_round(&db, 300, 1);
        assert_eq!(kept(&db).tables, 0, "{:?}", kept(&db));
        db.compact().unwrap();
        for n in 300..900 {
            assert_eq!(db.get(key(n)).unwrap(), None, "{n}");
        }
    });
}

/// Any operation on the store and on a map, under any of the shapes that have a buffer.
#[test]
fn i6_no_answer_depends_on_a_buffer() {
    let mut leveled = lsbm();
    leveled.tree = tiny().tree;
    leveled.tree.retainer = lsbm().tree.retainer;
    let mut coarse = lsbm();
    coarse.keyspace.filter_bits_per_key = 1;
    coarse.tree.retainer = Retainer::Buffer(Buffer { period: PERIOD, cached_percent: 40, share_percent: 60 });
    for (at, options) in [lsbm(), leveled, coarse].into_iter().enumerate() {
        scheduled(move |env| {
            let seed = Seed::new(11 + at as u64);
            run_against_a_map(&env, &options, &mut seed.random());
        });
    }
}

fn run_against_a_map(env: &Arc<SimEnv>, options: &Options, random: &mut Random) {
    const KEYS: u64 = 400;
    let db = open(env, options);
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    let mut snapshots = Vec::new();
    let mut found_in_buffer = 0;
    for step in 0..4000_u64 {
        let n = random.below(KEYS);
        match random.below(100) {
            0..55 => {
                let value = format!("{step}-{}", "x".repeat(random.below(120) as usize));
                db.put(key(n), &value).unwrap();
                map.insert(key(n), value);
            }
            55..62 => {
                db.delete(key(n)).unwrap();
                map.remove(&key(n));
            }
            62..63 => {
                let to = key(n + random.below(20));
                db.delete_range(key(n)..to.clone()).unwrap();
                map.retain(|key, _| *key < format!("{n:05}") || *key >= to);
            }
            63 => {
                let mut ingest = db.ingest().unwrap();
                for n in n..n + random.below(10) {
                    let value = format!("{step}-ingested");
                    ingest.push(key(n), &value).unwrap();
                    map.insert(key(n), value);
                }
                ingest.finish().unwrap();
            }
            64 if snapshots.len() < 3 => snapshots.push((db.snapshot(), map.clone())),
            65 => snapshots.clear(),
            66 => env.sleep(PERIOD / 2),
            67 => db.wait_idle().unwrap(),
            68 => check_range(&db, &map, (key(n), key(n + random.below(60)))),
            _ => {
                for n in (n..).take(6) {
                    let found = db.get(key(n)).unwrap().map(|value| text(&value));
                    assert_eq!(found.as_ref(), map.get(&key(n)), "{}", key(n));
                }
                for (snapshot, then) in &snapshots {
                    let found = snapshot.get(key(n)).unwrap().map(|value| text(&value));
                    assert_eq!(found.as_ref(), then.get(&key(n)), "{} then", key(n));
                }
            }
        }
        found_in_buffer = db.stats().user_reads.found_in_buffer;
    }
    assert!(found_in_buffer > 200, "{found_in_buffer}");
    drop(snapshots);
    assert_eq!(db.iter().unwrap().count(), map.len());
    assert!(db.verify().unwrap().problems.is_empty());
}

/// A range has what the map has, in both directions.
pub fn check_range(db: &Db, map: &BTreeMap<String, String>, (from, to): (String, String)) {
    let expected: Vec<_> = map.range(from.clone()..to.clone()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in db.range(from.clone()..to.clone()).unwrap() {
        let (key, value) = entry.unwrap();
        found.push((text(&key), text(&value)));
    }
    assert!(found.iter().map(|(key, value)| (key, value)).eq(expected.iter().copied()), "{from}..{to}");
    let mut back: Vec<String> = Vec::new();
    for entry in db.range(from..to).unwrap().rev() {
        back.push(text(&entry.unwrap().0));
    }
    assert!(back.iter().eq(expected.iter().rev().map(|(key, _)| *key)));
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// LSbM's tables in a tree that keeps several runs in a level.
pub fn prefixed() -> Options {
    let mut options = Options { tree: tiny().tree, ..lsbm() };
    options.tree.layout = Layout::Prefixed(Prefixed { level1_bytes: 8 << 10, ratio: 4, l0_trigger: 1 });
    options.tree.picker = Picker::Components(Components { access_bytes: 0, ..Components::default() });
    options
}

#[test]
fn levels_that_have_several_runs_go_down_in_rounds_too() {
    scheduled(|env| {
        let db = open(&env, &prefixed());
        (0..3).for_each(|round| write_round(&db, 900, round));
        let levels = db.keyspace("default").unwrap().shape().levels;
        assert!(levels.iter().any(|level| level.runs > 1 && level.level % 2 == 1), "{levels:?}");
        db.close().unwrap();
        let db = open(&env, &lsbm());
        for round in 3..6 {
            write_round(&db, 900, round);
            read_all(&db, 900, round);
        }
        let levels = db.keyspace("default").unwrap().shape().levels;
        assert!(levels.iter().all(|level| level.score < 1.0 && level.runs <= 1), "{levels:?}");
    });
}

#[test]
fn a_buffer_that_is_no_longer_wanted_goes_at_once() {
    scheduled(|env| {
        let db = filled(&env, &lsbm());
        let (live, held) = (db.stats().space.live_bytes, kept(&db).held_bytes);
        assert!(held > 0);
        db.set_options(|options| options.tree.retainer = Retainer::Drop).unwrap();
        assert_eq!(kept(&db), BufferStats::default());
        assert!(db.stats().space.live_bytes <= live - held);
        read_all(&db, 900, 0);
    });
}

#[test]
fn a_budget_of_which_more_than_half_is_used_leaves_a_buffer_alone() {
    scheduled(|env| {
        let options = Options { space_bytes: Some(2 << 20), ..lsbm() };
        let db = filled(&env, &options);
        write_round(&db, 900, 1);
        read_all(&db, 900, 1);
        assert!(kept(&db).held_bytes > 8 << 10, "{:?} {:?}", kept(&db), db.stats().space);
    });
}
