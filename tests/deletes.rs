//! Tests of what deletes cost and give back: ranges of dead keys that readers jump over, tables that go unread under a range
//! delete, compactions for what tombstones hide, and large values that are not read to learn that they are hidden.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::{Db, KeyspaceOptions, Options, WriteBatch};
use terrace_torture::client::DIR;
use terrace_torture::{Replay, Rng, tiny};

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    let shared: Arc<dyn Env> = env.clone();
    Db::builder(Path::new(DIR)).env(shared).options(options).open().unwrap()
}

fn with_store(options: Options, test: impl FnOnce(&Arc<SimEnv>, Db) + Send + 'static) {
    SimEnv::run(SimConfig::default(), move |env| test(&env, open(&env, options)));
}

fn key(n: u64) -> String {
    format!("{n:06}")
}

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(key).unwrap().parse().unwrap()
}

fn first(db: &Db) -> Option<u64> {
    db.iter().unwrap().next().map(|entry| number(&entry.unwrap().0))
}

fn last(db: &Db) -> Option<u64> {
    db.iter().unwrap().next_back().map(|entry| number(&entry.unwrap().0))
}

fn verify(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn live_bytes(db: &Db) -> u64 {
    db.stats().space.live_bytes
}

#[test]
fn a_value_put_among_dead_keys_is_seen_however_it_came() {
    with_store(tiny(), |_, db| {
        for n in 0..400 {
            db.put(key(n), "value").unwrap();
        }
        let before = db.snapshot();
        (100..300).for_each(|n| db.delete(key(n)).unwrap());
        let next = |from: u64| db.range(key(from)..).unwrap().next().map(|entry| number(&entry.unwrap().0));
        let previous =
            |to: u64| db.range(..key(to)).unwrap().next_back().map(|entry| number(&entry.unwrap().0));
        let ways: [&dyn Fn(u64); 4] = [
            &|n| db.put(key(n), "again").unwrap(),
            &|n| {
                let mut batch = WriteBatch::new();
                batch.put(key(n), "again").delete(key(if n == 299 { 298 } else { n + 1 }));
                db.write(batch).unwrap();
            },
            &|n| {
                let mut transaction = db.transaction();
                transaction.put(key(n), "again");
                transaction.commit().unwrap();
            },
            &|n| {
                let mut ingest = db.ingest().unwrap();
                ingest.push(key(n), "again").unwrap();
                ingest.finish().unwrap();
            },
        ];
        for (way, put) in ways.iter().enumerate() {
            for n in [100, 150, 299] {
                for _ in 0..3 {
                    assert_eq!((next(100), previous(300)), (Some(300), Some(99)), "{way} {n}");
                }
                put(n);
                for _ in 0..3 {
                    assert_eq!((next(100), previous(300)), (Some(n), Some(n)), "{way} {n}");
                }
                db.delete(key(n)).unwrap();
                if n == 150 {
                    db.flush().unwrap();
                }
            }
        }
        // Who read before sees what was there.
        for _ in 0..3 {
            assert_eq!(before.iter().unwrap().count(), 400);
            assert_eq!(before.range(key(100)..).unwrap().next().map(|e| number(&e.unwrap().0)), Some(100));
        }
        let keys: Vec<u64> = db.iter().unwrap().map(|entry| number(&entry.unwrap().0)).collect();
        assert_eq!(keys, (0..100).chain(300..400).collect::<Vec<_>>());
        verify(&db);
    });
}

#[test]
fn a_snapshot_notes_nothing_that_newer_values_make_wrong() {
    with_store(tiny(), |_, db| {
        (0..100).for_each(|n| db.put(key(n), "value").unwrap());
        (0..90).for_each(|n| db.delete(key(n)).unwrap());
        let emptied = db.snapshot();
        db.put(key(50), "again").unwrap();
        // Where the new value lies: in the memtable, in a sealed one's place, in a table.
        for _ in 0..3 {
            let seen = emptied.iter().unwrap().next().unwrap().unwrap();
            assert_eq!(number(&seen.0), 90);
            assert_eq!((first(&db), last(&db)), (Some(50), Some(99)));
            db.flush().unwrap();
        }
        db.compact().unwrap();
        assert_eq!(emptied.iter().unwrap().count(), 10);
        assert_eq!(first(&db), Some(50));
    });
}

#[test]
fn a_scan_within_bounds_says_nothing_of_what_lies_beyond() {
    let rule = KeyspaceOptions { prefix: Some(terrace::Prefix::Fixed(1)), ..KeyspaceOptions::default() };
    with_store(tiny(), move |_, db| {
        let space = db.keyspace_with("queues", rule).unwrap();
        for queue in ["a", "b", "c"] {
            (0..50).for_each(|n| space.put(format!("{queue}{n:02}"), "value").unwrap());
            // Each queue in tables of its own.
            db.flush().unwrap();
        }
        (0..50).for_each(|n| space.delete(format!("b{n:02}")).unwrap());
        for _ in 0..3 {
            assert_eq!(space.prefix("b").unwrap().count(), 0);
            assert_eq!(space.range("b".to_string()..="b99".to_string()).unwrap().rev().count(), 0);
            let after = std::ops::Bound::Excluded("a49".to_string());
            let behind = space.range((after, std::ops::Bound::Unbounded)).unwrap().next().unwrap().unwrap();
            assert_eq!(&behind.0[..], b"c00");
            let before = space.range(.."c00".to_string()).unwrap().next_back().unwrap().unwrap();
            assert_eq!(&before.0[..], b"a49");
            assert_eq!(space.iter().unwrap().count(), 100);
        }
    });
}

#[test]
fn queues_and_stacks_give_what_a_map_gives() {
    for seed in 0..20 {
        let _replay = Replay(format!("seed {seed}"));
        with_store(tiny(), move |_, db| {
            let mut rng = Rng::new(seed);
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let (mut low, mut high) = (50_000, 50_000);
            let mut snapshots = Vec::new();
            for step in 0..1500u64 {
                match rng.below(12) {
                    0..=2 => {
                        high += 1;
                        db.put(key(high), step.to_string()).unwrap();
                        model.insert(high, step);
                    }
                    3 => {
                        low -= 1;
                        db.put(key(low), step.to_string()).unwrap();
                        model.insert(low, step);
                    }
                    4..=6 => {
                        assert_eq!(first(&db), model.first_key_value().map(|(n, _)| *n), "step {step}");
                        if let Some((n, _)) = model.pop_first() {
                            db.delete(key(n)).unwrap();
                        }
                    }
                    7 => {
                        assert_eq!(last(&db), model.last_key_value().map(|(n, _)| *n), "step {step}");
                        if let Some((n, _)) = model.pop_last() {
                            db.delete(key(n)).unwrap();
                        }
                    }
                    8 => {
                        let n = low + rng.below((high - low + 1) as usize) as u64;
                        db.put(key(n), step.to_string()).unwrap();
                        model.insert(n, step);
                    }
                    9 if step % 7 == 0 => {
                        let (a, b) = (low + rng.below(20) as u64, low + 20 + rng.below(40) as u64);
                        db.delete_range(key(a)..key(b)).unwrap();
                        model.retain(|n, _| !(a..b).contains(n));
                    }
                    10 if step % 5 == 0 => snapshots.push((db.snapshot(), model.clone())),
                    11 if step % 11 == 0 => db.flush().unwrap(),
                    _ => {}
                }
                if step % 50 == 0 {
                    snapshots.retain(|_| rng.below(2) == 0);
                    for (snapshot, model) in &snapshots {
                        let numbers = |entry: terrace::Result<(terrace::Slice, _)>| number(&entry.unwrap().0);
                        assert!(snapshot.iter().unwrap().map(numbers).eq(model.keys().copied()));
                        assert!(snapshot.iter().unwrap().rev().map(numbers).eq(model.keys().rev().copied()));
                    }
                }
            }
            verify(&db);
        });
    }
}

#[test]
fn tables_under_a_range_delete_go_unread_and_not_before_their_last_reader() {
    with_store(tiny(), |_, db| {
        (0..3000).for_each(|n| db.put(key(n), "v".repeat(50)).unwrap());
        db.compact().unwrap();
        let (before, read) = (live_bytes(&db), db.stats().read.compaction);
        let reader = db.snapshot();
        db.delete_range(key(500)..key(2500)).unwrap();
        db.wait_idle().unwrap();
        assert_eq!((db.stats().compaction.deleted_tables, live_bytes(&db)), (0, before));
        assert_eq!(reader.iter().unwrap().count(), 3000);
        drop(reader);
        db.wait_idle().unwrap();
        assert!(db.stats().compaction.deleted_tables > 10);
        assert!(live_bytes(&db) < before / 2, "{} of {before}", live_bytes(&db));
        assert_eq!(db.stats().read.compaction, read);
        assert_eq!(db.iter().unwrap().count(), 1000);
        verify(&db);
    });
}

#[test]
fn what_is_newer_than_a_range_delete_stays() {
    with_store(tiny(), |_, db| {
        (0..1000).for_each(|n| db.put(key(n), "old").unwrap());
        db.flush().unwrap();
        db.delete_range(key(0)..key(2000)).unwrap();
        (0..1000).for_each(|n| db.put(key(n), "new").unwrap());
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.iter().unwrap().filter(|entry| &entry.as_ref().unwrap().1[..] == b"new").count(), 1000);
        verify(&db);
    });
}

#[test]
fn tables_go_after_an_open_too() {
    for flushed in [false, true] {
        with_store(tiny(), move |env, db| {
            (0..2000).for_each(|n| db.put(key(n), "v".repeat(50)).unwrap());
            db.compact().unwrap();
            let before = live_bytes(&db);
            let reader = db.snapshot();
            db.delete_range(key(500)..).unwrap();
            if flushed {
                db.flush().unwrap();
            }
            drop(reader);
            db.close().unwrap();
            let db = open(env, tiny());
            db.wait_idle().unwrap();
            assert!(db.stats().compaction.deleted_tables > 0, "flushed: {flushed}");
            assert!(live_bytes(&db) < before / 2);
            assert_eq!(db.iter().unwrap().count(), 500);
        });
    }
}

#[test]
fn a_power_cut_at_any_call_leaves_a_deleted_range_whole_or_gone() {
    for cut in 0.. {
        let _replay = Replay(format!("cut {cut}"));
        let env = SimEnv::new(SimConfig { seed: cut, ..SimConfig::default() });
        let is_whole = env.simulate(move |env| {
            let db = open(&env, tiny());
            (0..1200).for_each(|n| db.put(key(n), "v".repeat(50)).unwrap());
            db.compact().unwrap();
            env.cut_after(cut);
            // Neither is synced.
            let written = db.put("mark", "").and_then(|()| db.delete_range(key(100)..key(1100)));
            let idle = written.and_then(|()| db.wait_idle());
            idle.is_ok() && db.stats().compaction.deleted_tables > 0 && db.put("the end", "").is_ok()
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            env.crash(survival).simulate(move |env| {
                let db = open(&env, tiny());
                let rows = db.range(..key(2000)).unwrap().count();
                assert!(rows == 1200 || rows == 200 && db.contains("mark").unwrap(), "{rows} rows");
                db.wait_idle().unwrap();
                assert_eq!(db.range(..key(2000)).unwrap().count(), rows);
                verify(&db);
            });
        }
        if is_whole {
            return;
        }
    }
}

#[test]
fn readers_of_the_moment_of_a_range_delete_see_all_or_nothing() {
    for seed in 0..30 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let db = open(&env, tiny());
            (0..600).for_each(|n| db.put(key(n), "v".repeat(50)).unwrap());
            db.compact().unwrap();
            let reading = db.clone();
            let shared: Arc<dyn Env> = env.clone();
            let reader = shared
                .spawn(
                    "reader",
                    terrace::env::Priority::Normal,
                    Box::new(move || {
                        for _ in 0..20 {
                            let rows = reading.iter().unwrap().count();
                            assert!(rows == 600 || rows == 0, "{rows}");
                        }
                    }),
                )
                .unwrap();
            db.delete_range(..).unwrap();
            db.wait_idle().unwrap();
            reader.join();
            assert_eq!(db.iter().unwrap().count(), 0);
        });
    }
}

#[test]
fn idle_time_gives_back_what_tombstones_hide() {
    with_store(Options::default(), |env, db| {
        let count = 40_000;
        for n in 0..count {
            db.put(key(n), "v".repeat(300)).unwrap();
        }
        db.compact().unwrap();
        let before = live_bytes(&db);
        (0..count).filter(|n| n % 10 != 3).for_each(|n| db.delete(key(n)).unwrap());
        let reader = db.snapshot();
        env.sleep(Duration::from_secs(5));
        assert!(live_bytes(&db) < before / 8, "{} of {before}", live_bytes(&db));
        assert_eq!(reader.iter().unwrap().count() as u64, count / 10);
        let tombstones: u64 =
            db.keyspace("default").unwrap().shape().levels.iter().map(|level| level.tombstones).sum();
        assert_eq!(tombstones, 0);
        drop(reader);
        verify(&db);
    });
}

#[test]
fn idle_time_gives_back_values_that_lie_apart() {
    with_store(Options::default(), |env, db| {
        let keyspace = db.keyspace("default").unwrap();
        keyspace.set_options(&KeyspaceOptions { separate_from: Some(4096), ..keyspace.options() }).unwrap();
        let count = 2000;
        for n in 0..count {
            db.put(key(n), "v".repeat(5000)).unwrap();
        }
        db.compact().unwrap();
        let before = db.stats().space;
        assert!(before.value_bytes > before.live_bytes / 10 * 9, "{before:?}");
        (0..count).filter(|n| n % 5 == 3).for_each(|n| db.delete(key(n)).unwrap());
        env.sleep(Duration::from_secs(5));
        let after = db.stats().space;
        assert!(after.value_bytes < before.value_bytes / 100 * 81, "{after:?}");
        assert!(after.dead_bytes < after.live_bytes / 8, "{after:?}");
        verify(&db);
    });
}

#[test]
fn what_somebody_still_reads_is_not_compacted_in_vain() {
    with_store(Options::default(), |env, db| {
        let count = 40_000;
        for n in 0..count {
            db.put(key(n), "v".repeat(300)).unwrap();
        }
        db.compact().unwrap();
        let reader = db.snapshot();
        let before = live_bytes(&db);
        (0..count).filter(|n| n % 10 != 3).for_each(|n| db.delete(key(n)).unwrap());
        env.sleep(Duration::from_secs(5));
        let jobs = db.stats().compaction.jobs;
        env.sleep(Duration::from_secs(20));
        assert_eq!(db.stats().compaction.jobs, jobs);
        assert_eq!(reader.iter().unwrap().count() as u64, count);
        drop(reader);
        env.sleep(Duration::from_secs(5));
        assert!(live_bytes(&db) < before / 8, "{} of {before}", live_bytes(&db));
        verify(&db);
    });
}

/// Value `n`, which does not compress.
fn large(n: u64) -> Vec<u8> {
    let mut state = n + 1;
    let word = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.to_le_bytes()
    };
    (0..(2 << 20) / 8 + n as usize).flat_map(word).collect()
}

#[test]
fn a_large_value_is_read_only_if_its_entry_is_shown() {
    for backward in [false, true] {
        with_store(Options::default(), move |env, db| {
            (0..12).for_each(|n| db.put(key(n), large(n)).unwrap());
            db.flush().unwrap();
            let all = db.snapshot();
            db.put(key(5), large(50)).unwrap();
            (2..10).filter(|n| *n != 5).for_each(|n| db.delete(key(n)).unwrap());
            for flush in [false, true] {
                if flush {
                    db.flush().unwrap();
                }
                let read = db.stats().read.scan;
                let mut iter = db.range(key(2)..key(10)).unwrap();
                let found = if backward { iter.next_back() } else { iter.next() }.unwrap().unwrap();
                assert_eq!((number(&found.0), &found.1[..]), (5, &large(50)[..]));
                let bytes = db.stats().read.scan - read;
                assert!(bytes < 5 << 20, "{bytes} for a value of two MiB");
            }
            let values = |db: &Db| -> Vec<(u64, Vec<u8>)> {
                db.iter().unwrap().map(|e| e.unwrap()).map(|(k, v)| (number(&k), v.to_vec())).collect()
            };
            let expected = [(0, 0), (1, 1), (5, 50), (10, 10), (11, 11)].map(|(n, v)| (n, large(v)));
            assert_eq!(values(&db), expected);
            let mut cursor = db.cursor(..).unwrap();
            assert_eq!(cursor.seek_to_last().unwrap().map(|(_, value)| value.to_vec()), Some(large(11)));
            assert_eq!(cursor.prev().unwrap().map(|(_, value)| value.to_vec()), Some(large(10)));
            assert_eq!(cursor.prev().unwrap().map(|(_, value)| value.to_vec()), Some(large(50)));
            assert_eq!(cursor.next().unwrap().map(|(_, value)| value.to_vec()), Some(large(10)));
            assert!(all.iter().unwrap().map(|e| e.unwrap().1.to_vec()).eq((0..12).map(large)));
            assert!(all.iter().unwrap().rev().map(|e| e.unwrap().1.to_vec()).eq((0..12).rev().map(large)));
            drop(cursor);
            drop(all);
            db.close().unwrap();
            let db = open(env, Options::default());
            assert_eq!(values(&db), expected);
            verify(&db);
        });
    }
}

#[test]
fn what_has_expired_is_passed_by_and_what_is_alive_is_not() {
    let ttl = Duration::from_secs(100);
    for seed in 0..20 {
        let _replay = Replay(format!("seed {seed}"));
        with_store(tiny(), move |env, db| {
            let mut rng = Rng::new(seed);
            let options = KeyspaceOptions { ttl: Some(ttl), ..KeyspaceOptions::default() };
            let space = db.keyspace_with("space", options.clone()).unwrap();
            let mut written: BTreeMap<u64, u64> = BTreeMap::new();
            let (mut now, mut db, mut space) = (0, db, space);
            for round in 0..12 {
                for _ in 0..rng.below(200) {
                    let n = rng.below(600) as u64;
                    match rng.below(8) {
                        0 => {
                            space.delete(key(n)).unwrap();
                            written.remove(&n);
                        }
                        _ => {
                            space.put(key(n), "v".repeat(20)).unwrap();
                            written.insert(n, now);
                        }
                    }
                }
                match rng.below(4) {
                    0 => db.flush().unwrap(),
                    1 => db.compact().unwrap(),
                    2 if round % 3 == 0 => {
                        drop(space);
                        db.close().unwrap();
                        db = open(env, tiny());
                        space = db.keyspace_with("space", options.clone()).unwrap();
                    }
                    _ => {}
                }
                let pause = 10 + rng.below(80) as u64;
                env.sleep(Duration::from_secs(pause));
                now += pause;
                // Not at the second in which something expires.
                if written.values().any(|second| second.abs_diff(now.saturating_sub(100)) <= 1) {
                    env.sleep(Duration::from_secs(3));
                    now += 3;
                }
                written.retain(|_, second| *second + 100 > now);
                let numbers = |entry: terrace::Result<(terrace::Slice, _)>| number(&entry.unwrap().0);
                assert!(space.iter().unwrap().map(numbers).eq(written.keys().copied()), "round {round}");
                assert!(space.iter().unwrap().rev().map(numbers).eq(written.keys().rev().copied()));
                let from = rng.below(600) as u64;
                let next = space.range(key(from)..).unwrap().next().map(numbers);
                assert_eq!(next, written.range(from..).next().map(|(n, _)| *n));
                let previous = space.range(..key(from)).unwrap().next_back().map(numbers);
                assert_eq!(previous, written.range(..from).next_back().map(|(n, _)| *n));
            }
            verify(&db);
        });
    }
}

#[test]
fn an_open_iterator_keeps_what_a_dropped_table_had() {
    with_store(Options::default(), |_, db| {
        (0..200).for_each(|n| db.put(key(n), "value").unwrap());
        // It keeps the tombstones of the rest in the tables.
        let oldest = db.snapshot();
        (10..190).filter(|n| n % 2 == 0).for_each(|n| db.delete(key(n)).unwrap());
        (11..190).filter(|n| n % 2 == 1).for_each(|n| db.delete(key(n)).unwrap());
        db.flush().unwrap();
        let older = db.snapshot();
        (80..100).for_each(|n| db.put(key(n), "again").unwrap());
        db.flush().unwrap();
        let mut open = db.iter().unwrap();
        let expected: Vec<u64> = (0..10).chain(80..100).chain(190..200).collect();
        assert_eq!(number(&open.next().unwrap().unwrap().0), 0);
        db.delete_range(key(50)..key(150)).unwrap();
        db.wait_idle().unwrap();
        assert!(db.stats().compaction.deleted_tables > 0);
        assert_eq!(older.iter().unwrap().count(), 20);
        let rest: Vec<u64> = open.map(|entry| number(&entry.unwrap().0)).collect();
        assert_eq!(rest, expected[1..]);
        drop(oldest);
    });
}

#[test]
fn idle_time_gives_back_what_few_tombstones_of_larger_values_hide() {
    with_store(Options::default(), |env, db| {
        (0..400).for_each(|n| db.put(key(n), &large(n)[..20_000]).unwrap());
        db.compact().unwrap();
        let before = live_bytes(&db);
        (0..400).filter(|n| n % 10 != 3).for_each(|n| db.delete(key(n)).unwrap());
        env.sleep(Duration::from_secs(5));
        assert!(live_bytes(&db) < before / 4, "{} of {before}", live_bytes(&db));
    });
}

#[test]
fn a_large_range_delete_counts_behind_many_small_ones() {
    with_store(tiny(), |_, db| {
        (0..3000).for_each(|n| db.put(key(n), "v".repeat(50)).unwrap());
        db.compact().unwrap();
        let before = live_bytes(&db);
        let reader = db.snapshot();
        (0..300).for_each(|n| db.delete_range(key(n)..key(n + 300)).unwrap());
        db.delete_range(key(100)..key(3000)).unwrap();
        drop(reader);
        db.wait_idle().unwrap();
        assert!(live_bytes(&db) < before / 4, "{} of {before}", live_bytes(&db));
    });
}

#[test]
fn deletes_of_small_rows_read_no_large_values() {
    with_store(Options::default(), |env, db| {
        (0..20).for_each(|n| db.put(key(100 * n), large(n)).unwrap());
        (0..2000).filter(|n| n % 100 != 0).for_each(|n| db.put(key(n), "small").unwrap());
        db.compact().unwrap();
        db.wait_idle().unwrap();
        let read = db.stats().read.scan;
        (0..2000).filter(|n| n % 100 != 0).take(1100).for_each(|n| db.delete(key(n)).unwrap());
        env.sleep(Duration::from_secs(5));
        let read = db.stats().read.scan - read;
        assert!(read < 2 << 20, "{read} bytes read though nobody reads");
    });
}

#[test]
fn a_power_cut_while_idle_time_gives_space_back_loses_nothing() {
    for separate_from in [None, KeyspaceOptions::default().separate_from] {
        power_cuts_while_idle_time_gives_space_back(separate_from);
    }
}

fn power_cuts_while_idle_time_gives_space_back(separate_from: Option<u32>) {
    let keyspace = KeyspaceOptions { separate_from, ..KeyspaceOptions::default() };
    let options = Options { keyspace, ..Options::default() };
    for cut in (0..).step_by(3) {
        let _replay = Replay(format!("cut {cut}, apart from {separate_from:?}"));
        let options = options.clone();
        let env = SimEnv::new(SimConfig { seed: cut, ..SimConfig::default() });
        let is_whole = env.simulate(move |env| {
            let db = open(&env, options);
            (0..400).for_each(|n| db.put(key(n), &large(n)[..20_000]).unwrap());
            db.compact().unwrap();
            let before = live_bytes(&db);
            assert_eq!(db.stats().space.values > 0, separate_from.is_some());
            (0..400).filter(|n| n % 10 != 3).for_each(|n| db.delete(key(n)).unwrap());
            db.sync().unwrap();
            env.cut_after(cut);
            env.sleep(Duration::from_secs(5));
            live_bytes(&db) < before / 4 && db.put("the end", "").is_ok()
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            env.crash(survival).simulate(move |env| {
                let db = open(&env, Options::default());
                let rows = db.range(..key(1000)).unwrap().map(|entry| number(&entry.unwrap().0));
                assert!(rows.eq((0..400).filter(|n| n % 10 == 3)));
                verify(&db);
            });
        }
        if is_whole {
            return;
        }
    }
}
