//! Tests of range deletes: tombstones over tables, levels and snapshots, met from both directions.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use terrace::env::Env;
use terrace::env::simulated::{SimConfig, SimEnv, Survival};
use terrace::{Db, Durability, Iter, KeyspaceOptions, Options, WriteBatch};
use terrace_torture::TreeParts as _;
use terrace_torture::client::DIR;
use terrace_torture::tiny;

/// The longest key.
const KEY_BYTES_MAX: usize = 65_535;

fn open(env: &Arc<SimEnv>) -> Db {
    let env: Arc<dyn Env> = env.clone();
    Db::builder(Path::new(DIR)).env(env).options(tiny()).open().unwrap()
}

/// Runs `test` on an empty store of a simulated machine.
fn with_store(test: impl FnOnce(&Arc<SimEnv>, Db) + Send + 'static) {
    SimEnv::run(SimConfig::default(), move |env| test(&env, open(&env)));
}

fn key(n: usize) -> String {
    format!("key{n:05}")
}

fn put(db: &Db, keys: std::ops::Range<usize>, value: &str) {
    for n in keys {
        db.put(key(n), format!("{value} {}", "v".repeat(40))).unwrap();
    }
}

/// The numbers of the keys that `iter` shows, which must be the same from both ends.
fn numbers(forward: Iter, backward: Iter) -> Vec<usize> {
    let number = |entry: terrace::Result<(terrace::Slice, terrace::Slice)>| {
        std::str::from_utf8(&entry.unwrap().0[3..]).unwrap().parse().unwrap()
    };
    let found: Vec<usize> = forward.map(number).collect();
    let mut reversed: Vec<usize> = backward.rev().map(number).collect();
    reversed.reverse();
    assert_eq!(found, reversed, "the two directions differ");
    found
}

fn shown(db: &Db) -> Vec<usize> {
    let found = numbers(db.iter().unwrap(), db.iter().unwrap());
    for n in 0..found.last().map_or(0, |last| last + 2) {
        assert_eq!(db.contains(key(n)).unwrap(), found.contains(&n), "{n}: lookup and iterator differ");
    }
    found
}

fn all_but(count: usize, gone: std::ops::Range<usize>) -> Vec<usize> {
    (0..count).filter(|n| !gone.contains(n)).collect()
}

fn range_tombstones(db: &Db) -> u64 {
    let stats = db.stats();
    stats.keyspaces.iter().flat_map(|space| &space.shape.levels).map(|level| level.range_tombstones).sum()
}

fn tables(db: &Db) -> usize {
    db.stats().keyspaces.iter().flat_map(|space| &space.shape.levels).map(|level| level.tables).sum()
}

fn verify(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_range_goes_from_memory_tables_and_levels_alike() {
    with_store(|env, db| {
        // The deepest levels, level 0, and the memtable all hold a part.
        put(&db, 0..2000, "deep");
        db.compact().unwrap();
        put(&db, 500..1500, "middle");
        db.flush().unwrap();
        put(&db, 900..1100, "late");
        let before = db.snapshot();
        db.delete_range(key(300)..key(1700)).unwrap();
        let expected = all_but(2000, 300..1700);
        assert_eq!(shown(&db), expected);
        assert_eq!(before.iter().unwrap().count(), 2000);

        db.flush().unwrap();
        assert_eq!(shown(&db), expected);
        assert!(range_tombstones(&db) > 0);
        verify(&db);
        db.wait_idle().unwrap();
        assert_eq!(shown(&db), expected);
        assert_eq!(before.iter().unwrap().count(), 2000);
        verify(&db);

        drop(before);
        drop(db);
        let db = open(env);
        assert_eq!(shown(&db), expected);
        db.compact().unwrap();
        db.compact().unwrap();
        assert_eq!(shown(&db), expected);
        assert_eq!(range_tombstones(&db), 0, "nothing is left to hide");
        verify(&db);
    });
}

#[test]
fn what_is_written_behind_a_range_delete_stays() {
    with_store(|env, db| {
        put(&db, 0..600, "old");
        db.delete_range(key(100)..key(500)).unwrap();
        put(&db, 200..210, "new");
        let mut batch = WriteBatch::new();
        batch.put(key(300), "gone").delete_range(key(299)..=key(300)).put(key(299), "stays");
        db.write(batch).unwrap();
        let mut expected = all_but(600, 100..500);
        expected.extend((200..210).chain([299]));
        expected.sort_unstable();
        let check = |db: &Db| {
            assert_eq!(shown(db), expected);
            assert!(db.get(key(205)).unwrap().unwrap().starts_with(b"new"));
            assert_eq!(db.get(key(299)).unwrap().unwrap(), "stays");
        };
        check(&db);
        db.flush().unwrap();
        check(&db);
        db.compact().unwrap();
        check(&db);
        drop(db);
        check(&open(env));
    });
}

#[test]
fn the_log_alone_brings_range_deletes_back() {
    let env = SimEnv::new(SimConfig::default());
    let image = env.simulate(|env| {
        let db = open(&env);
        put(&db, 0..50, "value");
        db.delete_range(key(10)..key(20)).unwrap();
        let mut batch = WriteBatch::new();
        batch.delete_range(key(40)..);
        db.write_with(batch, Durability::Synced).unwrap();
        db.delete_range(key(0)..).unwrap();
        env.crash(Survival::Nothing)
    });
    let found = image.simulate(|env| shown(&open(&env)));
    assert_eq!(found, (0..10).chain(20..40).collect::<Vec<_>>());
}

#[test]
fn each_snapshot_sees_the_ranges_of_its_moment() {
    with_store(|_, db| {
        put(&db, 0..400, "first");
        let mut moments = vec![(db.snapshot(), (0..400).collect::<Vec<_>>())];
        let mut now: Vec<usize> = (0..400).collect();
        // Overlapping, nested, adjacent; each with a snapshot behind it, and tables written in between.
        for (round, gone) in [100..200, 150..250, 120..130, 250..260, 0..50, 90..110].into_iter().enumerate()
        {
            db.delete_range(key(gone.start)..key(gone.end)).unwrap();
            now.retain(|n| !gone.contains(n));
            moments.push((db.snapshot(), now.clone()));
            let back = gone.start + 3;
            db.put(key(back), "again").unwrap();
            now.push(back);
            now.sort_unstable();
            now.dedup();
            if round % 2 == 0 {
                db.flush().unwrap();
            }
        }
        let check = |db: &Db, moments: &[(terrace::Snapshot, Vec<usize>)]| {
            for (snapshot, expected) in moments {
                assert_eq!(numbers(snapshot.iter().unwrap(), snapshot.iter().unwrap()), *expected);
                for n in 0..400 {
                    let found = snapshot.contains(key(n)).unwrap();
                    assert_eq!(found, expected.binary_search(&n).is_ok(), "{n}");
                }
            }
            assert_eq!(shown(db), now);
        };
        check(&db, &moments);
        db.compact().unwrap();
        check(&db, &moments);
        verify(&db);
        // As snapshots go, in any order, compactions drop what they alone could see.
        for gone in [3, 0, 2, 1, 2, 0, 0] {
            moments.remove(gone);
            // A table over all keys takes all others along.
            db.delete("before").unwrap();
            db.delete("z behind").unwrap();
            db.compact().unwrap();
            check(&db, &moments);
        }
        assert_eq!(range_tombstones(&db), 0);
    });
}

#[test]
fn an_open_iterator_keeps_what_a_later_range_delete_takes() {
    with_store(|_, db| {
        put(&db, 0..300, "value");
        let mut iter = db.iter().unwrap();
        assert!(iter.next().unwrap().is_ok() && iter.next_back().unwrap().is_ok());
        db.delete_range(..).unwrap();
        db.compact().unwrap();
        assert_eq!(iter.count(), 298);
        assert_eq!(shown(&db), [0_usize; 0]);
    });
}

#[test]
fn bounds_of_every_kind_delete_what_a_scan_of_them_shows() {
    with_store(|_, db| {
        let keys: [&[u8]; 8] = [b"", b"\0", b"a", b"a\0", b"a\0\0", b"b", b"\xff", b"\xff\xff"];
        let longest = vec![0xff; KEY_BYTES_MAX];
        let keys: Vec<&[u8]> = keys.into_iter().chain([&longest[..]]).collect();
        let kinds = [Bound::Included, Bound::Excluded];
        let bounds: Vec<Bound<Vec<u8>>> = keys
            .iter()
            .flat_map(|key| kinds.map(|kind| kind(key.to_vec())))
            .chain([Bound::Unbounded])
            .collect();
        for (case, (from, to)) in
            bounds.iter().flat_map(|from| bounds.iter().map(move |to| (from, to))).enumerate()
        {
            for key in &keys {
                db.put(key, "value").unwrap();
            }
            let range = (from.clone(), to.clone());
            let inside = db.range(range.clone()).unwrap().count();
            db.delete_range(range.clone()).unwrap();
            assert_eq!(db.iter().unwrap().count(), keys.len() - inside, "{case}");
            assert_eq!(db.iter().unwrap().rev().count(), keys.len() - inside, "{case}");
            assert_eq!(db.range(range).unwrap().count(), 0, "{case}");
            if case % 29 == 0 {
                db.flush().unwrap();
            }
        }
        verify(&db);
    });
}

#[test]
fn empty_and_inverted_ranges_do_nothing() {
    with_store(|_, db| {
        put(&db, 0..10, "value");
        let before = db.stats();
        db.delete_range(key(5)..key(5)).unwrap();
        db.delete_range(key(7)..key(3)).unwrap();
        db.delete_range((Bound::Excluded(key(5)), Bound::Excluded(key(5)))).unwrap();
        db.delete_range(.."").unwrap();
        let mut batch = WriteBatch::new();
        batch.delete_range(key(7)..key(3));
        assert!(batch.is_empty());
        let after = db.stats();
        assert_eq!((before.last_seq, before.written.wal), (after.last_seq, after.written.wal));
        assert_eq!(shown(&db).len(), 10);
        let mut batch = WriteBatch::new();
        batch.delete_range(vec![b'a'; KEY_BYTES_MAX + 2]..);
        assert_eq!(db.write(batch).unwrap_err().kind(), terrace::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_whole_keyspace_goes_and_leaves_nothing_on_the_disk() {
    with_store(|env, db| {
        let other = db.keyspace_with("other", KeyspaceOptions::default()).unwrap();
        other.put("stays", "here").unwrap();
        put(&db, 0..3000, "value");
        db.compact().unwrap();
        assert!(db.stats().keyspaces[0].shape.levels.len() > 2);
        db.delete_range(..).unwrap();
        assert_eq!(shown(&db), [0_usize; 0]);
        db.compact().unwrap();
        assert_eq!(tables(&db), 1, "the other keyspace's");
        put(&db, 5..7, "after");
        assert_eq!(shown(&db), [5, 6]);
        drop(other);
        drop(db);
        let db = open(env);
        assert_eq!(shown(&db), [5, 6]);
        assert_eq!(db.existing_keyspace("other").unwrap().unwrap().iter().unwrap().count(), 1);
        verify(&db);
    });
}

#[test]
fn tombstones_without_entries_make_tables_that_hide_and_sink() {
    with_store(|env, db| {
        put(&db, 0..500, "value");
        db.compact().unwrap();
        db.delete_range(key(100)..key(200)).unwrap();
        db.delete_range(key(300)..).unwrap();
        db.flush().unwrap();
        let level0 = &db.stats().keyspaces[0].shape.levels[0];
        assert_eq!((level0.entries, level0.range_tombstones, level0.tables), (0, 2, 1));
        let expected: Vec<usize> = (0..100).chain(200..300).collect();
        assert_eq!(shown(&db), expected);
        verify(&db);
        drop(db);
        let db = open(env);
        assert_eq!(shown(&db), expected);
        db.wait_idle().unwrap();
        assert_eq!(shown(&db), expected);
        verify(&db);
    });
}

#[test]
fn thousands_of_live_ranges_are_read_from_memory_and_from_tables() {
    with_store(|env, db| {
        let tree = tiny().tree.with(|tree| *tree.l0_trigger() = 4);
        let memory_bytes = Some(256 << 20);
        let options =
            Options { memtable_bytes: 32 << 20, wal_bytes_max: 64 << 20, memory_bytes, tree, ..tiny() };
        drop(db);
        let machine: Arc<dyn Env> = env.clone();
        let db = Db::builder(Path::new(DIR)).env(machine).options(options).open().unwrap();
        put(&db, 0..20_000, "value");
        db.flush().unwrap();
        // Every other key, one range each; then one range that grows a thousand times.
        for n in (0..20_000).step_by(2) {
            db.delete_range(key(n)..key(n + 1)).unwrap();
        }
        for n in 0..1000 {
            db.delete_range(key(0)..key(n)).unwrap();
        }
        let expected: Vec<usize> = (999..20_000).filter(|n| n % 2 == 1).collect();
        assert_eq!(shown(&db), expected);
        db.flush().unwrap();
        assert_eq!(
            range_tombstones(&db) as usize,
            1 + (20_000 - 999) / 2,
            "growing ranges are one in the end"
        );
        assert_eq!(shown(&db), expected);
        verify(&db);
    });
}

#[test]
fn a_range_over_many_output_tables_is_clipped_to_each() {
    with_store(|_, db| {
        put(&db, 0..1500, "value");
        let _holds_everything = db.snapshot();
        // The snapshot keeps entries and tombstone: compactions cut tables under it.
        db.delete_range(key(10)..key(1490)).unwrap();
        db.compact().unwrap();
        assert!(tables(&db) > 10 && range_tombstones(&db) > 10, "{:?}", db.stats().keyspaces);
        assert_eq!(shown(&db), (0..10).chain(1490..1500).collect::<Vec<_>>());
        let from_the_middle = db.range(key(700)..).unwrap();
        assert_eq!(numbers(from_the_middle, db.range(key(700)..).unwrap()), (1490..1500).collect::<Vec<_>>());
        let to_the_middle = db.range(..key(700)).unwrap();
        assert_eq!(numbers(to_the_middle, db.range(..key(700)).unwrap()), (0..10).collect::<Vec<_>>());
        verify(&db);
    });
}

#[test]
fn a_wide_range_sinks_in_pieces() {
    with_store(|env, db| {
        put(&db, 0..900, "value");
        db.compact().unwrap();
        drop(db);
        let tree = tiny().tree.with(|tree| *tree.l0_trigger() = 1);
        let machine: Arc<dyn Env> = env.clone();
        let options = Options { tree, ..tiny() };
        let db = Db::builder(Path::new(DIR)).env(machine).options(options).open().unwrap();
        let levels = db.stats().keyspaces[0].shape.levels.clone();
        assert!(levels.len() == 3 && levels[2].bytes > 48 << 10, "{levels:?}");
        // Otherwise the tables would go unread.
        let _holds_everything = db.snapshot();
        db.delete_range(key(0)..).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        // A single table over everything could go on only with all that is below it.
        assert!(range_tombstones(&db) >= 2, "{:?}", db.stats().keyspaces);
        assert_eq!(shown(&db), [0_usize; 0]);
        verify(&db);
    });
}

#[test]
fn what_a_range_hides_from_everybody_is_freed_unread() {
    with_store(|_, db| {
        put(&db, 0..3000, "value");
        db.compact().unwrap();
        let before = db.stats();
        db.delete_range(key(0)..key(3000)).unwrap();
        db.compact().unwrap();
        let after = db.stats();
        assert!(before.space.live_bytes > 100 << 10);
        assert_eq!((after.space.live_bytes, after.read.compaction), (0, before.read.compaction));
    });
}
