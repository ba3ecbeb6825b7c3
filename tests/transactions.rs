//! Tests of transactions: each sees its snapshot overlaid with its own writes, and commits only if no conflicting
//! write was committed first.
//!
//! The histories of many threads run on the operating system's threads and on simulated ones, where the seed decides
//! the order. `TERRACE_SEED` repeats one schedule; `TERRACE_SCHEDULES=1000` tries more of them.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Random, Seed, number, tiny};
use terrace::env::posix::PosixEnv;
use terrace::env::simulated::{DeviceModel, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority, Thread};
use terrace::{
    Db, Durability, Error, ErrorKind, Ingest, Isolation, Keyspace, Transaction, TransactionOptions,
};
use terrace_torture::schedules;

const SERIALIZABLE: TransactionOptions = TransactionOptions { isolation: Isolation::Serializable };
const SNAPSHOT: TransactionOptions = TransactionOptions { isolation: Isolation::Snapshot };

fn open(env: &Arc<dyn Env>, dir: &Path) -> Db {
    Db::builder(dir).env(env.clone()).options(tiny()).open().unwrap()
}

fn fresh() -> Db {
    open(&(SimEnv::new(SimConfig::default()) as Arc<dyn Env>), Path::new("/db"))
}

/// Whether the transaction was the first; any other failure than a conflict fails the test.
fn committed(result: Result<(), Error>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            false
        }
    }
}

#[test]
fn it_sees_its_snapshot_under_its_own_writes() {
    let db = fresh();
    let users = db.keyspace("users").unwrap();
    db.put("a", "1").unwrap();
    users.put("a", "other").unwrap();
    let mut transaction = db.transaction();
    db.put("b", "too late").unwrap();
    db.delete("a").unwrap();
    assert_eq!(transaction.get("a").unwrap().unwrap(), "1");
    assert!(transaction.get("b").unwrap().is_none());
    transaction.put("c", "mine").delete_in(&users, "a");
    assert_eq!(transaction.get("c").unwrap().unwrap(), "mine");
    assert!(!transaction.contains_in(&users, "a").unwrap());
    assert!(db.get("c").unwrap().is_none() && users.contains("a").unwrap());
    transaction.commit().unwrap();
    assert_eq!(db.get("c").unwrap().unwrap(), "mine");
    assert!(!users.contains("a").unwrap());
}

#[test]
fn many_keys_and_updates_are_those_of_single_steps() {
    let seed = Seed::new(9);
    let mut random = seed.random();
    for isolation in [SNAPSHOT, SERIALIZABLE] {
        let db = fresh();
        let users = db.keyspace("users").unwrap();
        for n in 0..30u8 {
            db.put([n], [n]).unwrap();
            users.put([n], [n, n]).unwrap();
        }
        let (mut one, mut other) = (db.transaction_with(isolation), db.transaction_with(isolation));
        for _ in 0..40 {
            let key = [random.below(40) as u8];
            match random.below(5) {
                0 => [&mut one, &mut other].map(|t| t.delete(key).put_in(&users, key, "own")).len(),
                1 => [&mut one, &mut other].map(|t| t.delete_range(key..[key[0].saturating_add(2)])).len(),
                2 => {
                    let new = |old: Option<&[u8]>| old.map(|old| [old, b"+"].concat());
                    let old = other.get(key).unwrap();
                    match new(old.as_deref()) {
                        Some(value) => other.put(key, value),
                        None => other.delete(key),
                    };
                    one.update(key, new).unwrap();
                    0
                }
                3 => {
                    one.update_in(&users, key, |_| Some("new")).unwrap();
                    other.put_in(&users, key, "new");
                    0
                }
                _ => [&mut one, &mut other].map(|t| t.put(key, key)).len(),
            };
            let keys: Vec<[u8; 1]> = (0..10).map(|_| [random.below(45) as u8]).collect();
            let single = |t: &mut Transaction| keys.iter().map(|key| t.get(key).unwrap()).collect::<Vec<_>>();
            assert_eq!(one.multi_get(&keys).unwrap(), single(&mut other));
            let single: Vec<_> = keys.iter().map(|key| other.get_in(&users, key).unwrap()).collect();
            assert_eq!(one.multi_get_in(&users, &keys).unwrap(), single);
        }
        one.commit().unwrap();
        assert!(!committed(other.commit()), "both have written the same keys");
    }
}

#[test]
fn a_key_that_many_were_asked_for_counts_as_read_and_a_blind_write_conflicts() {
    for (isolation, reads_count) in [(SNAPSHOT, false), (SERIALIZABLE, true)] {
        let db = fresh();
        let mut reader = db.transaction_with(isolation);
        assert_eq!(reader.multi_get(["a", "b"]).unwrap(), [None, None]);
        reader.put("c", "");
        db.put("b", "theirs").unwrap();
        assert_eq!(committed(reader.commit()), !reads_count);
        let mut own = db.transaction_with(isolation);
        own.put("d", "mine");
        own.multi_get(["d"]).unwrap();
        own.delete("d").put("e", "");
        assert!(committed(own.commit()), "nobody else has written what it has");
        let (mut updater, mut blind) = (db.transaction_with(isolation), db.transaction_with(isolation));
        updater.update("b", |_| Some("new")).unwrap();
        blind.put("b", "blind");
        db.put("b", "theirs").unwrap();
        assert!(!committed(updater.commit()) && !committed(blind.commit()));
        assert_eq!(db.get("b").unwrap().unwrap(), "theirs");
    }
}

#[test]
fn iterators_merge_own_writes_from_both_ends_as_a_map_would() {
    let seed = Seed::new(7);
    let mut random = seed.random();
    for _ in 0..300 {
        let db = fresh();
        let mut model = BTreeMap::new();
        for _ in 0..random.below(8) {
            let (key, value) = (vec![b'a' + random.below(10) as u8], random.next().to_le_bytes().to_vec());
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        let mut transaction = db.transaction();
        for _ in 0..random.below(8) {
            let (key, value) = (vec![b'a' + random.below(10) as u8], random.next().to_le_bytes().to_vec());
            if random.below(3) == 0 {
                transaction.delete(&key);
                model.remove(&key);
            } else if random.below(4) == 0 {
                let end = vec![key[0] + random.below(4) as u8];
                transaction.delete_range(key.clone()..end.clone());
                model.retain(|other, _| *other < key || *other >= end);
            } else {
                transaction.put(&key, &value);
                model.insert(key, value);
            }
        }
        let (from, to) = (vec![b'a' + random.below(10) as u8], vec![b'a' + random.below(11) as u8]);
        let mut found = transaction.range(from.clone()..to.clone()).unwrap();
        // Writes that come later do not show.
        transaction.put("f", "later");
        let mut expected: Vec<_> = model.iter().filter(|(key, _)| **key >= from && **key < to).collect();
        loop {
            let back = random.below(2) == 0;
            let one = if back { found.next_back() } else { found.next() };
            let other = match expected.is_empty() {
                true => None,
                false => Some(if back { expected.pop().unwrap() } else { expected.remove(0) }),
            };
            let one = one.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap());
            assert_eq!(one.as_ref().map(|(key, value)| (key, value)), other);
            if other.is_none() {
                assert!(found.next().is_none() && found.next_back().is_none());
                break;
            }
        }
    }
}

#[test]
fn the_second_writer_of_a_key_loses_whatever_has_become_of_the_first() {
    type Step = fn(&Db);
    let places: [(&str, Step); 4] = [
        ("in memory", |_| {}),
        ("in level 0", |db| db.flush().unwrap()),
        ("in the deepest level", |db| db.compact().unwrap()),
        ("under other writes", |db| {
            (0..400).for_each(|n| db.put(format!("x{n}"), vec![1; 200]).unwrap());
            db.compact().unwrap();
        }),
    ];
    let changes: [(&str, Step); 4] = [
        ("put", |db| db.put("key", "theirs").unwrap()),
        ("delete", |db| db.delete("key").unwrap()),
        ("delete_range", |db| db.delete_range("k".."l").unwrap()),
        ("ingest", |db| {
            let mut ingest = db.ingest().unwrap();
            ingest.push("key", "theirs").unwrap();
            ingest.finish().unwrap();
        }),
    ];
    for (place, move_on) in places {
        for (change, change_key) in changes {
            let db = fresh();
            db.put("key", "old").unwrap();
            db.put("other", "old").unwrap();
            db.compact().unwrap();
            let mut first = db.transaction();
            let mut second = db.transaction();
            change_key(&db);
            move_on(&db);
            match change {
                "put" => _ = first.delete_range("j"..="key"),
                _ => _ = first.put("key", "mine"),
            }
            second.put("other", "mine").put("absent", "mine");
            let error = first.commit().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{change} {place}");
            assert!(error.to_string().contains(r#"key "key" of keyspace "default""#), "{error}");
            second.commit().unwrap_or_else(|error| panic!("{change} {place}: {error}"));
            assert_eq!(db.get("other").unwrap().unwrap(), "mine");
        }
    }
}

#[test]
fn whoever_read_what_an_ingest_has_replaced_loses_and_nobody_else() {
    type Read = fn(&mut Transaction, &Keyspace) -> usize;
    // What is read, how many entries that shows, and whether the ingest changes it.
    let reads: [(&str, Read, usize, bool); 9] = [
        ("a replaced key", |t, _| usize::from(t.contains("b").unwrap()), 1, true),
        ("a deleted key", |t, _| usize::from(t.contains("c").unwrap()), 1, true),
        ("a key that comes", |t, _| usize::from(t.contains("bb").unwrap()), 0, true),
        ("a range", |t, _| t.range("b1".."c1").unwrap().count(), 1, true),
        ("another keyspace", |t, users| usize::from(t.contains_in(users, "b").unwrap()), 0, true),
        ("a key beside", |t, _| usize::from(t.contains("a").unwrap()), 1, false),
        ("nothing between", |t, _| usize::from(t.contains("ba").unwrap()), 0, false),
        ("a range beside", |t, _| t.range("c1".."d").unwrap().count(), 0, false),
        ("a key of the same name", |t, users| usize::from(t.contains_in(users, "c").unwrap()), 0, false),
    ];
    let places: [fn(&Db); 3] = [|_| {}, |db| db.flush().unwrap(), |db| db.compact().unwrap()];
    for (read, look, shown, changed) in reads {
        for (n, move_on) in places.iter().enumerate() {
            for options in [SNAPSHOT, SERIALIZABLE] {
                let db = fresh();
                let users = db.keyspace("users").unwrap();
                ["a", "b", "c"].into_iter().for_each(|key| db.put(key, "old").unwrap());
                let mut transaction = db.transaction_with(options);
                assert_eq!(look(&mut transaction, &users), shown, "{read}");
                transaction.put("decision", "as all was before");
                // Others commit before and after the ingest, which is in no list of the latest writes.
                let beside = |key| committed(db.update(key, |_| Some("1")));
                assert!(beside("y"));
                let (mut here, mut there) = (db.ingest().unwrap(), users.ingest().unwrap());
                here.push("b", "new").unwrap();
                here.push("bb", "new").unwrap();
                here.delete("c").unwrap();
                there.push("b", "new").unwrap();
                Ingest::finish_together([here, there]).unwrap();
                assert!(beside("z"));
                move_on(&db);
                let wins = options.isolation == Isolation::Snapshot || !changed;
                assert_eq!(committed(transaction.commit()), wins, "{read}, place {n}, {options:?}");
                assert_eq!(db.contains("decision").unwrap(), wins);
                // Whoever tries again sees the ingest, and nothing is in the way.
                let mut again = db.transaction_with(options);
                assert_eq!(again.get("b").unwrap().unwrap(), "new");
                assert!(!again.contains("c").unwrap() && again.contains_in(&users, "b").unwrap());
                look(&mut again, &users);
                again.put("b", "mine");
                assert!(committed(again.commit()) && db.get("b").unwrap().unwrap() == "mine");
            }
        }
    }
}

#[test]
fn a_range_delete_meets_whoever_reads_or_writes_under_it() {
    for flushed in [false, true] {
        let db = fresh();
        db.put("a", "1").unwrap();
        let (mut reader, mut writer) = (db.transaction_with(SERIALIZABLE), db.transaction());
        let (mut beside, mut deleter) = (db.transaction_with(SERIALIZABLE), db.transaction());
        // Nothing is there, neither for the reader nor for the range delete.
        assert_eq!(reader.range("c".."e").unwrap().count(), 0);
        reader.put("x", "1");
        writer.put("d", "mine");
        assert!(!beside.contains("b").unwrap() && !beside.contains("e").unwrap());
        beside.put("y", "1");
        deleter.put("d", "lost").delete_range("c".."e").put("c", "kept");
        assert!(deleter.contains("c").unwrap() && !deleter.contains("d").unwrap());
        assert!(committed(deleter.commit()));
        if flushed {
            db.flush().unwrap();
        }
        assert!(!committed(reader.commit()) && !committed(writer.commit()) && committed(beside.commit()));
        let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
        assert_eq!(keys, ["a", "c", "y"]);
    }
}

#[test]
fn an_update_is_not_lost() {
    let db = fresh();
    db.put("count", "1").unwrap();
    let (mut first, mut second) = (db.transaction(), db.transaction());
    for transaction in [&mut first, &mut second] {
        let old = transaction.get("count").unwrap().unwrap();
        transaction.put("count", [&old[..], b"+1"].concat());
    }
    assert!(committed(first.commit()));
    assert!(!committed(second.commit()));
    assert_eq!(db.get("count").unwrap().unwrap(), "1+1");
}

#[test]
fn write_skew_is_for_snapshot_isolation_alone() {
    for (options, skewed) in [(SNAPSHOT, true), (SERIALIZABLE, false)] {
        let db = fresh();
        db.put("ada", "on call").unwrap();
        db.put("bob", "on call").unwrap();
        let (mut ada, mut bob) = (db.transaction_with(options), db.transaction_with(options));
        // Each leaves, because the other one stays.
        assert!(ada.contains("bob").unwrap() && bob.contains("ada").unwrap());
        ada.delete("ada");
        bob.delete("bob");
        assert!(committed(ada.commit()));
        assert_eq!(committed(bob.commit()), skewed, "{options:?}");
    }
}

#[test]
fn a_serialisable_scan_meets_no_phantom() {
    let scans: [fn(&mut Transaction) -> usize; 4] = [
        |transaction| transaction.range("b".."d").unwrap().count(),
        |transaction| transaction.prefix("c").unwrap().count(),
        |transaction| transaction.iter().unwrap().take(0).count(),
        |transaction| usize::from(transaction.contains("c1").unwrap()),
    ];
    for (n, scan) in scans.iter().enumerate() {
        for flushed in [false, true] {
            for (key, options, wins) in
                [("c1", SERIALIZABLE, false), ("c1", SNAPSHOT, true), ("e", SERIALIZABLE, n != 2)]
            {
                let db = fresh();
                let mut transaction = db.transaction_with(options);
                assert_eq!(scan(&mut transaction), 0);
                transaction.put("decision", "there is none");
                db.put(key, "phantom").unwrap();
                if flushed {
                    db.compact().unwrap();
                }
                assert_eq!(committed(transaction.commit()), wins, "scan {n}, {key}, {options:?}");
            }
        }
    }
}

#[test]
fn one_that_only_reads_never_conflicts_and_one_that_is_dropped_leaves_nothing() {
    let db = fresh();
    let mut reader = db.transaction_with(SERIALIZABLE);
    assert_eq!(reader.iter().unwrap().count(), 0);
    let mut dropped = db.transaction();
    dropped.put("key", "value");
    drop(dropped);
    db.put("other", "value").unwrap();
    assert_eq!(reader.iter().unwrap().count(), 0);
    reader.commit_with(Durability::Synced).unwrap();
    assert!(!db.contains("key").unwrap());
}

#[test]
fn limits_and_dropped_keyspaces_are_reported_by_the_commit() {
    let db = fresh();
    let passing = db.keyspace("passing").unwrap();
    let mut long = db.transaction();
    long.put(vec![0; 70_000], "value").put("key", "value");
    assert_eq!(long.commit().unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut writer = db.transaction();
    writer.put_in(&passing, "key", "value").put("key", "value");
    let mut reader = db.transaction_with(SERIALIZABLE);
    assert!(!reader.contains_in(&passing, "key").unwrap());
    reader.put("key", "value");
    db.drop_keyspace("passing").unwrap();
    assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!db.contains("key").unwrap());
}

#[test]
fn a_synced_commit_survives_a_power_cut_and_half_of_one_never_does() {
    let env = SimEnv::new(SimConfig::default());
    let db = open(&(env.clone() as Arc<dyn Env>), Path::new("/db"));
    for (n, durability) in [(1, Durability::Synced), (2, Durability::Buffered)] {
        let mut transaction = db.transaction();
        transaction.put("a", [n]).put("b", [n]);
        transaction.commit_with(durability).unwrap();
    }
    let cut = env.crash(Survival::Nothing);
    let db = open(&(cut as Arc<dyn Env>), Path::new("/db"));
    assert_eq!(db.get("a").unwrap().unwrap(), [1]);
    assert_eq!(db.get("b").unwrap().unwrap(), [1]);
}

// ---- Histories of many threads. ----

const KEYS: u64 = 8;
const THREADS: usize = 4;

/// A committed transaction: the version of each key that it found, and its own number if it wrote the key.
struct Committed {
    number: u64,
    read: BTreeMap<u64, u64>,
    written: BTreeSet<u64>,
}

/// Runs `life` for each of a few seeds on simulated threads, and once on real ones.
fn everywhere(life: fn(Arc<dyn Env>, &Path, u64, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let seed = Seed::new(1);
    life(PosixEnv::shared(), dir.path(), seed.0, 100);
    let schedules = number("TERRACE_SCHEDULES").unwrap_or(schedules(8, 20));
    for seed in number("TERRACE_SEED").map_or(100..100 + schedules, |seed| seed..seed + 1) {
        let _told = Seed(seed);
        let device = if seed.is_multiple_of(2) { DeviceModel::instant() } else { DeviceModel::nvme() };
        let preemption_percent = [0, 20, 50][seed as usize % 3];
        let preempt_at_locks = seed % 4 < 2;
        let config = SimConfig { seed, device, preemption_percent, preempt_at_locks, ..SimConfig::default() };
        SimEnv::run(config, move |env| life(env, Path::new("/db"), seed, 25));
    }
}

fn spawn(env: &Arc<dyn Env>, bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let (count, ended) = (bodies.len() as u64, Arc::new(AtomicU64::new(0)));
    let start = |body: Box<dyn FnOnce() + Send>| {
        let ended = ended.clone();
        let body = move || {
            body();
            ended.fetch_add(1, Ordering::SeqCst);
        };
        env.spawn("client", Priority::Normal, Box::new(body)).unwrap()
    };
    let threads: Vec<Thread> = bodies.into_iter().map(start).collect();
    threads.into_iter().for_each(Thread::join);
    assert_eq!(ended.load(Ordering::SeqCst), count, "a thread has panicked");
}

/// Reads some keys, one by one or by a scan, and writes some of them. A value is the number of its transaction.
fn attempt(db: &Db, number: u64, random: &mut Random, options: TransactionOptions) -> Option<Committed> {
    let mut transaction = db.transaction_with(options);
    let mut read = BTreeMap::new();
    let version = |value: &[u8]| u64::from_le_bytes(value[..8].try_into().unwrap());
    if random.below(3) == 0 {
        let from = random.below(KEYS);
        let to = from + random.below(4);
        for entry in transaction.range([from as u8]..=[to as u8]).unwrap() {
            let (key, value) = entry.unwrap();
            read.insert(u64::from(key[0]), version(&value));
        }
    }
    for _ in 0..1 + random.below(3) {
        let key = random.below(KEYS);
        read.insert(key, version(&transaction.get([key as u8]).unwrap().unwrap()));
    }
    let mut written = BTreeSet::new();
    for &key in read.keys().filter(|_| random.below(2) == 0) {
        // Padded, so that there is something to flush and compact.
        let mut value = number.to_le_bytes().to_vec();
        value.resize(300, 0);
        transaction.put([key as u8], value);
        written.insert(key);
    }
    let durability = if random.below(8) == 0 { Durability::Synced } else { Durability::Buffered };
    committed(transaction.commit_with(durability)).then_some(Committed { number, read, written })
}

fn history(
    env: &Arc<dyn Env>,
    dir: &Path,
    seed: u64,
    rounds: u64,
    options: TransactionOptions,
) -> Vec<Committed> {
    let db = open(env, dir);
    (0..KEYS).for_each(|key| db.put([key as u8], [0; 300]).unwrap());
    let (numbers, history) = (Arc::new(AtomicU64::new(1)), Arc::new(Mutex::new(Vec::new())));
    let client = |client: usize| {
        let (db, numbers, history) = (db.clone(), numbers.clone(), history.clone());
        let mut random = Random(seed.wrapping_mul(31).wrapping_add(client as u64));
        let body = move || {
            for _ in 0..rounds {
                let number = numbers.fetch_add(1, Ordering::SeqCst);
                let done = attempt(&db, number, &mut random, options);
                history.lock().extend(done);
                match random.below(20) {
                    0 => db.flush().unwrap(),
                    1 => db.compact().unwrap(),
                    _ => {}
                }
            }
        };
        Box::new(body) as Box<dyn FnOnce() + Send>
    };
    spawn(env, (0..THREADS).map(client).collect());
    db.close().unwrap();
    std::mem::take(&mut *history.lock())
}

/// Of each key, who replaced which version.
fn successors(history: &[Committed]) -> BTreeMap<(u64, u64), u64> {
    let mut next = BTreeMap::new();
    for Committed { number, read, written } in history {
        for key in written {
            let before = next.insert((*key, read[key]), *number);
            assert_eq!(before, None, "version {} of key {key} was replaced twice", read[key]);
        }
    }
    next
}

/// No transaction comes, by what it read and wrote, before itself.
fn assert_serialisable(history: &[Committed]) {
    let next = successors(history);
    let mut after: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for Committed { number, read, .. } in history {
        for (key, version) in read {
            // Whoever wrote what it read came before, whoever replaced that came later.
            after.entry(*version).or_default().insert(*number);
            after
                .entry(*number)
                .or_default()
                .extend(next.get(&(*key, *version)).filter(|later| *later != number));
        }
    }
    let mut waiting: BTreeMap<u64, usize> = after.keys().map(|number| (*number, 0)).collect();
    after.values().flatten().for_each(|later| *waiting.entry(*later).or_default() += 1);
    let mut free: Vec<u64> = waiting.iter().filter(|(_, n)| **n == 0).map(|(number, _)| *number).collect();
    let mut ordered = 0;
    while let Some(number) = free.pop() {
        ordered += 1;
        for later in after.get(&number).into_iter().flatten() {
            let left = waiting.get_mut(later).unwrap();
            *left -= 1;
            if *left == 0 {
                free.push(*later);
            }
        }
    }
    assert_eq!(ordered, waiting.len(), "some transactions come before each other");
}

#[test]
fn serialisable_histories_have_an_order() {
    everywhere(|env, dir, seed, rounds| {
        let history = history(&env, dir, seed, rounds, SERIALIZABLE);
        assert!(history.len() > THREADS, "hardly anything was committed");
        assert_serialisable(&history);
    });
}

#[test]
fn under_snapshot_isolation_no_version_is_replaced_twice() {
    everywhere(|env, dir, seed, rounds| {
        let history = history(&env, dir, seed, rounds, SNAPSHOT);
        assert!(!successors(&history).is_empty());
    });
}

#[test]
fn counters_and_plain_writers_of_many_threads_lose_nothing() {
    everywhere(|env, dir, seed, rounds| {
        let db = open(&env, dir);
        let client = |client: usize| {
            let (db, mut random) = (db.clone(), Random(seed + client as u64));
            let body = move || {
                for round in 0..rounds {
                    let add = |old: Option<&[u8]>| {
                        let old = old.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                        Some((old + 1).to_le_bytes())
                    };
                    db.update("count", add).unwrap();
                    db.put(format!("{client}/{round}"), vec![1; random.below(300) as usize]).unwrap();
                }
            };
            Box::new(body) as Box<dyn FnOnce() + Send>
        };
        spawn(&env, (0..THREADS).map(client).collect());
        assert_eq!(db.get("count").unwrap().unwrap(), (rounds * THREADS as u64).to_le_bytes());
        db.close().unwrap();
    });
}
