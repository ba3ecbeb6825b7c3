//! Tests of values that expire, whatever the clock does.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Random, Seed, scheduled, tiny};
use terrace::env::simulated::{DeviceModel, FaultError, FaultRule, FaultTarget, SimConfig, SimEnv, Survival};
use terrace::env::sync::Mutex;
use terrace::env::{Env, Priority};
use terrace::tree::{Layout, Leveled};
use terrace::{Db, ErrorKind, Keyspace, KeyspaceOptions, Options};

pub const TTL: u64 = 100;

/// A machine with real threads, on which no time passes but what a thread sleeps.
pub fn machine() -> Arc<SimEnv> {
    SimEnv::new(SimConfig { device: DeviceModel::instant(), ..SimConfig::default() })
}

pub fn open(env: &Arc<SimEnv>) -> Db {
    Db::builder("/db").env(env.clone()).options(tiny()).open().unwrap()
}

pub fn aging(db: &Db) -> Keyspace {
    let ttl = Some(Duration::from_secs(TTL));
    db.keyspace_with("aging", KeyspaceOptions { ttl, ..KeyspaceOptions::default() }).unwrap()
}

fn lose_manifest(env: &SimEnv) {
    for name in env.list(Path::new("/db")).unwrap() {
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            env.remove(&Path::new("/db").join(name)).unwrap();
        }
    }
}

pub fn jump(env: &SimEnv, seconds: i64) {
    env.jump_clock(seconds * 1000);
}

#[test]
fn what_comes_from_outside_lives_its_time_too_and_repair_keeps_the_date() {
    let env = machine();
    let db = open(&env);
    let aging = aging(&db);
    let mut ingest = aging.ingest().unwrap();
    ingest.push("a", "first").unwrap();
    jump(&env, 50);
    ingest.push("b", "second").unwrap();
    ingest.finish().unwrap();
    aging.put("c", "third").unwrap();
    aging.delete_range("c".."d").unwrap();
    assert_eq!(aging.get("a").unwrap().unwrap(), "first");
    let copy = Path::new("/copy");
    db.checkpoint(copy).unwrap();
    drop((aging, db));
    let builder = |path: &Path| Db::builder(path).env(env.clone()).options(tiny());
    assert_eq!(builder(Path::new("/db")).repair("/repaired").unwrap().entries, 2);
    for path in [copy, Path::new("/repaired")] {
        let aging = builder(path).open().unwrap().keyspace("aging").unwrap();
        assert_eq!(aging.get("a").unwrap().unwrap(), "first");
    }
    jump(&env, 50);
    for path in [Path::new("/db"), copy, Path::new("/repaired")] {
        let aging = builder(path).open().unwrap().keyspace("aging").unwrap();
        let found: Vec<_> = aging.iter().unwrap().map(|entry| entry.unwrap()).collect();
        assert!(found.len() == 1 && found[0].0 == "b" && found[0].1 == "second", "{found:?}");
    }
}

#[test]
fn a_value_lives_its_time_and_not_a_second_longer_wherever_it_lies() {
    type Step = fn(&Db);
    let places: [Step; 3] = [|_| {}, |db| db.flush().unwrap(), |db| db.compact().unwrap()];
    for place in places {
        let env = machine();
        let db = open(&env);
        let aging = aging(&db);
        db.put("a", "for ever").unwrap();
        aging.put("a", "first").unwrap();
        jump(&env, 50);
        aging.put("b", "second").unwrap();
        aging.put("c", "").unwrap();
        let snapshot = db.snapshot();
        place(&db);
        let seen = || {
            let forward: Vec<_> = aging.iter().unwrap().map(|entry| entry.unwrap()).collect();
            let mut backward: Vec<_> = aging.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
            backward.reverse();
            assert_eq!(forward, backward);
            let then: Vec<_> =
                snapshot.keyspace(&aging).iter().unwrap().map(|entry| entry.unwrap()).collect();
            assert_eq!(forward, then);
            let mut lent = aging.iter().unwrap();
            for (key, value) in &forward {
                assert_eq!(aging.get(key).unwrap().unwrap(), *value);
                assert_eq!(lent.advance().unwrap(), Some((&key[..], &value[..])));
            }
            assert!(lent.advance().unwrap().is_none());
            let many = aging.multi_get(["a", "b", "c"]).unwrap();
            assert_eq!(many.iter().flatten().count(), forward.len());
            forward.iter().map(|(_, value)| String::from_utf8(value.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(seen(), ["first", "second", ""]);
        jump(&env, 49);
        assert_eq!(seen(), ["first", "second", ""]);
        jump(&env, 1);
        assert_eq!(seen(), ["second", ""]);
        jump(&env, 50);
        assert!(seen().is_empty());
        // A clock that is set back brings nothing back.
        jump(&env, -1000);
        assert!(seen().is_empty());
        assert_eq!(db.get("a").unwrap().unwrap(), "for ever");
    }
}

#[test]
fn flushes_and_compactions_remove_what_has_expired() {
    let env = machine();
    // No flush or compaction but those that are asked for: what a compaction puts into the deepest level before it expires stays.
    let options = Options { memtable_bytes: 1 << 20, ..tiny() };
    let db = Db::builder("/db").env(env.clone()).options(options).open().unwrap();
    let aging = aging(&db);
    (0..200).for_each(|n| aging.put(format!("{n}"), vec![1; 100]).unwrap());
    db.flush().unwrap();
    (0..200).for_each(|n| aging.put(format!("{n}"), vec![2; 100]).unwrap());
    jump(&env, TTL as i64);
    db.compact().unwrap();
    let tables: usize = aging.shape().levels.iter().map(|level| level.tables).sum();
    assert_eq!(tables, 0);
}

/// A store with nothing but what `fill` puts into level 1 of `aging`, and no jobs but those that are asked for or that expiry brings.
fn at_the_bottom(env: &Arc<SimEnv>, fill: impl Fn(&Keyspace)) -> (Db, Keyspace) {
    let mut options = Options { memtable_bytes: 1 << 20, ..tiny() };
    options.tree.layout = Layout::Leveled(Leveled { level1_bytes: 1 << 20, ratio: 4, l0_trigger: 3 });
    let db = Db::builder("/db").env(env.clone()).options(options).open().unwrap();
    let aging = aging(&db);
    fill(&aging);
    db.compact().unwrap();
    assert!(aging.shape().levels[1].tables > 2 && aging.shape().levels[1].tables == tables(&aging));
    (db, aging)
}

/// Tables of values of `byte`, all of this second.
fn put_all(keyspace: &Keyspace, byte: u8) {
    (0..300).for_each(|n| keyspace.put(format!("{n:04}"), vec![byte; 100]).unwrap());
}

fn tables(keyspace: &Keyspace) -> usize {
    keyspace.shape().levels.iter().map(|level| level.tables).sum()
}

pub fn sleep(env: &SimEnv, seconds: u64) {
    env.sleep(Duration::from_secs(seconds));
}

#[test]
fn a_table_goes_by_itself_once_all_of_it_has_expired_and_none_before() {
    scheduled(|env| {
        let (db, aging) = at_the_bottom(&env, |aging| {
            for n in 0..300 {
                aging.put(format!("{n:04}"), vec![1; 100]).unwrap();
            }
            sleep(&env, 50);
            for n in 300..600 {
                aging.put(format!("{n:04}"), vec![2; 100]).unwrap();
            }
        });
        let (before, compactions) = (tables(&aging), db.stats().compaction.jobs);
        sleep(&env, 49);
        assert_eq!((tables(&aging), db.stats().compaction.expired_tables), (before, 0));
        sleep(&env, 12);
        let left = tables(&aging);
        assert!(left < before && left > 0, "{left} of {before} tables are left");
        assert_eq!(aging.iter().unwrap().count(), 300);
        assert_eq!(db.stats().compaction.expired_tables as usize, before - left);
        sleep(&env, 50);
        assert_eq!(tables(&aging), 0);
        assert!(
            db.stats().compaction.jobs <= compactions + 1,
            "none was read but the one with values of both dates"
        );
        assert_eq!(db.stats().space.live_bytes, 0);
        drop(aging);
        db.close().unwrap();
        let db = open(&env);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    });
}

#[test]
fn what_has_expired_above_goes_after_what_it_hides() {
    scheduled(|env| {
        let (db, aging) = at_the_bottom(&env, |aging| put_all(aging, 1));
        sleep(&env, 50);
        put_all(&aging, 2);
        db.flush().unwrap();
        let above = aging.shape().levels[0].tables;
        sleep(&env, 61);
        assert!(above > 0 && tables(&aging) == above, "what is older has expired");
        assert_eq!(aging.iter().unwrap().count(), 300);
        sleep(&env, 50);
        assert_eq!(tables(&aging), 0);
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn what_came_from_outside_and_has_expired_hides_what_is_older_and_has_not() {
    scheduled(|env| {
        let keys = || (0..300).map(|n| format!("{n:04}"));
        let ingest = Mutex::new(None);
        let (db, aging) = at_the_bottom(&env, |aging| {
            let mut outside = aging.ingest().unwrap();
            keys().for_each(|key| outside.push(key, vec![2; 100]).unwrap());
            *ingest.lock() = Some(outside);
            sleep(&env, 50);
            keys().for_each(|key| aging.put(key, vec![1; 100]).unwrap());
        });
        // It is numbered now, and timestamped when it came.
        ingest.lock().take().unwrap().finish().unwrap();
        assert_eq!(aging.get("0007").unwrap().unwrap(), [2; 100]);
        let all = tables(&aging);
        sleep(&env, 62);
        assert_eq!((aging.iter().unwrap().count(), tables(&aging)), (0, all));
        sleep(&env, 50);
        assert_eq!((aging.iter().unwrap().count(), tables(&aging)), (0, 0));
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn a_table_of_which_much_has_expired_is_compacted_by_itself() {
    scheduled(|env| {
        // Each table holds values of all times.
        let (db, aging) = at_the_bottom(&env, |aging| {
            for date in 0..4 {
                (0..100).for_each(|n| aging.put(format!("{:04}", 4 * n + date), vec![1; 100]).unwrap());
                sleep(&env, 10);
            }
        });
        let stats = || {
            let stats = db.stats();
            (stats.space.live_bytes, stats.compaction.jobs, stats.compaction.expired_tables)
        };
        let (live, compactions, _) = stats();
        // A quarter has expired, but less than half of the time between the oldest and the newest has passed.
        sleep(&env, TTL - 40 + 12);
        assert_eq!(stats(), (live, compactions, 0));
        sleep(&env, 12);
        let (left, compacted, _) = stats();
        assert!(compacted > compactions && left < live * 6 / 10, "{left} of {live} bytes are left");
        assert!(aging.iter().unwrap().count() > 0);
        // The rest does not last long enough for another compaction.
        sleep(&env, 30);
        let (left, compactions, tables) = stats();
        assert!(left == 0 && compactions == compacted && tables > 0);
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn a_compaction_removes_what_has_expired_in_the_deepest_level() {
    let env = machine();
    let (db, aging) = at_the_bottom(&env, |aging| {
        for date in 0..10 {
            (0..40).for_each(|n| aging.put(format!("{:04}", 10 * n + date), vec![1; 100]).unwrap());
            jump(&env, 10);
        }
    });
    jump(&env, 10);
    // What a thread still holds of an older version counts as live.
    let live = || {
        db.wait_idle().unwrap();
        db.stats().space.live_bytes
    };
    let (before, all) = (live(), aging.iter().unwrap().count());
    aging.compact_range(..).unwrap();
    assert_eq!(aging.iter().unwrap().count(), all);
    let left = live();
    assert!(left < before - before / 10, "{left} of {before} bytes are left");
}

#[test]
fn to_compact_what_is_compact_writes_nothing() {
    let env = machine();
    let (db, _aging) = at_the_bottom(&env, |aging| put_all(aging, 1));
    let jobs = db.stats().compaction.jobs;
    db.compact().unwrap();
    assert_eq!(db.stats().compaction.jobs, jobs);
}

#[test]
fn a_transaction_hears_of_what_came_and_expired_while_it_ran() {
    scheduled(|env| {
        let (db, aging) = at_the_bottom(&env, |aging| put_all(aging, 1));
        let mut transaction = db.transaction();
        assert!(transaction.get_in(&aging, "k").unwrap().is_none());
        aging.put("k", "theirs").unwrap();
        db.flush().unwrap();
        sleep(&env, TTL + 15);
        assert_eq!(tables(&aging), 1, "the table that is newer than the transaction");
        transaction.put_in(&aging, "k", "mine");
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        sleep(&env, 15);
        assert_eq!(tables(&aging), 0);
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn waiting_for_idleness_does_not_wait_for_the_next_look_at_the_clock() {
    scheduled(|env| {
        let (db, aging) = at_the_bottom(&env, |aging| put_all(aging, 1));
        // Who looks now does so each ten seconds from here on, and all expires between two looks.
        sleep(&env, 5);
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        sleep(&env, TTL - 9);
        while tables(&aging) > 0 {
            let start = env.now();
            db.wait_idle().unwrap();
            assert!(env.now() - start < Duration::from_secs(1), "{:?}", env.now() - start);
            env.sleep(Duration::from_millis(200));
        }
        drop(aging);
        db.close().unwrap();
    });
}

#[test]
fn repair_knows_without_a_manifest_that_values_expire() {
    let env = machine();
    let db = open(&env);
    let space = aging(&db);
    space.put("a", "first").unwrap();
    jump(&env, 50);
    space.put("b", "second").unwrap();
    db.flush().unwrap();
    drop(space);
    db.close().unwrap();
    lose_manifest(&env);
    let builder = |path: &Path| Db::builder(path).env(env.clone()).options(tiny());
    let report = builder(Path::new("/db")).repair("/repaired").unwrap();
    assert!(!report.whole_catalog && report.entries == 2);
    let db = builder(Path::new("/repaired")).open().unwrap();
    let name = db.keyspaces().into_iter().find(|name| name != "default").unwrap();
    let space = db.keyspace(&name).unwrap();
    assert_eq!(space.options().ttl, Some(Duration::from_secs(TTL)));
    assert_eq!(space.get("a").unwrap().unwrap(), "first");
    jump(&env, 50);
    assert!(space.get("a").unwrap().is_none());
    assert_eq!(space.get("b").unwrap().unwrap(), "second");
}

fn give(keyspace: &Keyspace, seconds: u64) {
    let ttl = Some(Duration::from_secs(seconds));
    keyspace.set_options(&KeyspaceOptions { ttl, ..keyspace.options() }).unwrap();
}

fn keys(keyspace: &Keyspace) -> String {
    let keys = keyspace.iter().unwrap().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap());
    keys.collect::<Vec<_>>().concat()
}

#[test]
fn values_that_are_given_more_time_live_on_and_those_that_have_expired_do_not_come_back() {
    type Step = fn(&Db);
    let places: [Step; 3] = [|_| {}, |db| db.flush().unwrap(), |db| db.compact().unwrap()];
    for place in places {
        let env = machine();
        let db = open(&env);
        let space = aging(&db);
        space.put("a", "1").unwrap();
        jump(&env, 1);
        space.put("b", "1").unwrap();
        place(&db);
        let snapshot = db.snapshot();
        jump(&env, TTL as i64 - 1);
        assert_eq!(keys(&space), "b");
        give(&space, 10 * TTL);
        assert_eq!((keys(&space), space.get("a").unwrap()), ("b".into(), None));
        jump(&env, TTL as i64);
        space.put("c", "1").unwrap();
        assert_eq!(keys(&space), "bc");
        assert!(snapshot.keyspace(&space).get("a").unwrap().is_none());
        place(&db);
        drop((snapshot, space));
        // All of it is in the log and the manifest; what is not in either has not been asked for.
        db.sync().unwrap();
        let env = env.crash(Survival::Nothing);
        for _ in 0..2 {
            let db = open(&env);
            let space = db.keyspace("aging").unwrap();
            assert_eq!(
                (keys(&space).as_str(), space.options().ttl),
                ("bc", Some(Duration::from_secs(10 * TTL)))
            );
            let reader = Db::builder("/db").env(env.clone()).read_only().open().unwrap();
            assert_eq!(keys(&reader.keyspace("aging").unwrap()), "bc");
            place(&db);
        }
        let db = open(&env);
        let space = db.keyspace("aging").unwrap();
        jump(&env, 8 * TTL as i64);
        assert_eq!(keys(&space), "bc");
        jump(&env, 1);
        assert_eq!(keys(&space), "c");
        give(&space, TTL);
        assert_eq!(keys(&space), "");
        give(&space, 10 * TTL);
        assert_eq!(keys(&space), "");
    }
}

#[test]
fn copies_and_repairs_keep_how_long_values_live_and_which_have_expired() {
    let env = machine();
    let db = open(&env);
    let space = aging(&db);
    space.put("a", "1").unwrap();
    jump(&env, 50);
    space.put("b", "1").unwrap();
    // In two tables: nothing of the first one is removed.
    db.flush().unwrap();
    jump(&env, 50);
    give(&space, 10 * TTL);
    space.put("c", "1").unwrap();
    db.flush().unwrap();
    db.checkpoint("/copy").unwrap();
    drop(space);
    db.close().unwrap();
    let builder = |path: &str| Db::builder(path).env(env.clone()).options(tiny());
    assert!(builder("/db").repair("/repaired").unwrap().whole_catalog);
    lose_manifest(&env);
    assert!(!builder("/db").repair("/from-tables").unwrap().whole_catalog);
    for path in ["/copy", "/repaired", "/from-tables"] {
        let db = builder(path).open().unwrap();
        let space = db.keyspace("aging").unwrap();
        assert_eq!(
            (keys(&space).as_str(), space.options().ttl),
            ("bc", Some(Duration::from_secs(10 * TTL))),
            "{path}"
        );
    }
}

#[test]
fn what_is_written_into_a_repaired_store_lives_though_the_clock_was_ahead() {
    let env = machine();
    let db = open(&env);
    let space = aging(&db);
    jump(&env, 1_000_000);
    give(&space, 10 * TTL);
    space.put("a", "1").unwrap();
    db.flush().unwrap();
    drop(space);
    db.close().unwrap();
    jump(&env, -1_000_000);
    let builder = |path: &str| Db::builder(path).env(env.clone()).options(tiny());
    builder("/db").repair("/repaired").unwrap();
    for _ in 0..2 {
        let db = builder("/repaired").open().unwrap();
        let space = db.keyspace("aging").unwrap();
        space.put("b", "1").unwrap();
        assert_eq!(keys(&space), "ab");
    }
}

#[test]
fn a_power_cut_that_keeps_a_shorter_life_keeps_the_copies_that_were_made_before() {
    let env = machine();
    let db = open(&env);
    let space = aging(&db);
    space.put("a", "1").unwrap();
    db.sync().unwrap();
    jump(&env, 10);
    db.put("copy of a", "1").unwrap();
    give(&space, 1);
    let db = open(&env.crash(Survival::Nothing));
    assert!(db.keyspace("aging").unwrap().get("a").unwrap().is_none());
    assert_eq!(db.get("copy of a").unwrap().unwrap(), "1");
}

/// How the change of a time to live went of which a call fails, whether one has failed, and what is there in this opening and
/// in the next one.
fn alter_with_a_fault(env: &Arc<SimEnv>, call: u64) -> (terrace::Result<()>, bool, [String; 2]) {
    let db = open(env);
    let space = aging(&db);
    space.put("a", "1").unwrap();
    jump(env, TTL as i64 - 1);
    let target = FaultTarget::Call(env.calls() + call);
    env.fault(FaultRule { target, error: FaultError::Io, sticky: false, partial: false });
    let ttl = Some(Duration::from_secs(10 * TTL));
    let altered = space.set_options(&KeyspaceOptions { ttl, ..space.options() });
    let is_struck = env.faults_fired() > 0;
    env.clear_faults();
    jump(env, 1);
    let here = keys(&space);
    let next = keys(&open(&env.crash(Survival::Everything)).keyspace("aging").unwrap());
    (altered, is_struck, [here, next])
}

#[test]
fn what_a_store_hides_whose_change_has_failed_is_hidden_in_the_next_opening() {
    let (mut failed, mut shown) = (0, 0);
    for call in 0.. {
        // Between the count of calls and the fault comes no other thread's call.
        let run = move |env| alter_with_a_fault(&env, call);
        let (altered, is_struck, [here, next]) = SimEnv::run(SimConfig::default(), run);
        assert!(here == next || here == "a", "call {call}: {here:?}, and then {next:?}");
        failed += u32::from(altered.is_err());
        shown += u32::from(altered.is_err() && next == "a");
        if !is_struck {
            break;
        }
    }
    assert!(failed > 1 && shown > 0, "{failed} calls failed, {shown} of which the edit outlived");
}

#[test]
fn no_job_removes_what_is_being_given_more_time() {
    // A sync takes half a minute, so that there is time to look for what has expired while that of the manifest goes on.
    let device = DeviceModel { flush_latency: Duration::from_secs(30), ..DeviceModel::instant() };
    SimEnv::run(SimConfig { device, ..SimConfig::default() }, |env| {
        let db = open(&env);
        let space = aging(&db);
        give(&space, 1000);
        let second = || env.unix_millis() / 1000;
        let written = second();
        space.put("key", "value").unwrap();
        db.compact().unwrap();
        db.sync().unwrap();
        env.sleep(Duration::from_secs(written + 998 - second()));
        let altered = {
            let space = space.clone();
            let body = Box::new(move || give(&space, 10_000));
            env.spawn("alter", Priority::Normal, body).unwrap()
        };
        env.sleep(Duration::from_secs(20));
        assert_eq!(keys(&space), "key", "it is neither here nor there, so it lives");
        altered.join();
        assert!(second() > written + 1020, "it took long");
        env.sleep(Duration::from_secs(100));
        db.wait_idle().unwrap();
        assert_eq!(keys(&space), "key");
    });
}

#[test]
fn what_has_expired_stays_so_in_the_next_opening() {
    let env = machine();
    let db = open(&env);
    aging(&db).put("old", "value").unwrap();
    jump(&env, TTL as i64);
    assert!(!aging(&db).contains("old").unwrap());
    // The flush of another keyspace writes the time down.
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    jump(&env, -1000);
    let db = open(&env);
    assert!(!aging(&db).contains("old").unwrap());
    aging(&db).put("new", "value").unwrap();
    // Time stands still until the clock has caught up.
    jump(&env, 1000 + TTL as i64 - 1);
    assert!(aging(&db).contains("new").unwrap());
    jump(&env, 1);
    assert!(!aging(&db).contains("new").unwrap());
}

#[test]
fn behind_the_last_date_values_live_on() {
    let env = machine();
    let db = open(&env);
    let before = aging(&db);
    before.put("old", "1").unwrap();
    env.jump_clock(200 * 365 * 24 * 3600 * 1000);
    assert_eq!(before.get("old").unwrap(), None);
    before.put("new", "2").unwrap();
    drop((before, db));
    for _ in 0..2 {
        jump(&env, 2 * TTL as i64);
        let db = open(&env);
        let aging = aging(&db);
        assert_eq!(aging.get("new").unwrap().unwrap(), "2");
        aging.put("later", "3").unwrap();
        db.compact().unwrap();
        assert_eq!(aging.iter().unwrap().count(), 2);
    }
}

#[test]
fn times_to_live_have_limits_and_are_kept_with_the_keyspace() {
    let env = machine();
    let refused = [Duration::ZERO, Duration::from_millis(1500), Duration::from_secs(1 << 32)];
    for ttl in refused {
        let keyspace = KeyspaceOptions { ttl: Some(ttl), ..KeyspaceOptions::default() };
        assert_eq!(open(&env).keyspace_with("x", keyspace).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let keyspace = KeyspaceOptions { ttl: Some(Duration::from_secs(1)), ..KeyspaceOptions::default() };
    let db = Db::builder("/other").env(env.clone()).options(Options { keyspace, ..tiny() }).open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let db = Db::builder("/other").env(env.clone()).options(tiny()).open().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    jump(&env, 1);
    assert!(db.get("key").unwrap().is_none());
}

/// The second in which the last of these writes came. A writer who is slowed down may come in a later second than he began in:
/// he writes again.
fn put_in_a_second(env: &SimEnv, put: impl Fn()) -> u64 {
    let second = || env.unix_millis() / 1000;
    loop {
        let begun = second();
        put();
        if second() == begun {
            return begun;
        }
    }
}

#[test]
fn answers_are_those_of_a_map_with_a_clock_that_jumps() {
    let seed = Seed::new(11);
    let random = seed.random();
    scheduled(move |env| answers_are_those_of_a_map(&env, random));
}

fn answers_are_those_of_a_map(env: &Arc<SimEnv>, mut random: Random) {
    let mut db = open(env);
    let (mut model, mut seen) = (BTreeMap::<Vec<u8>, (Vec<u8>, u64)>::new(), 0);
    for round in 0..3000u64 {
        let space = aging(&db);
        let key = format!("{:02}", random.below(80)).into_bytes();
        match random.below(8) {
            0 => {
                space.delete(&key).unwrap();
                model.remove(&key);
            }
            1 => jump(env, random.below(61) as i64 - 30),
            2 => jump(env, random.below(4) as i64),
            _ => {
                let value = vec![round as u8; random.below(100) as usize];
                seen = seen.max(put_in_a_second(env, || space.put(&key, &value).unwrap()));
                model.insert(key.clone(), (value, seen));
            }
        }
        // A reader looks at the clock, so that the store has seen what the map has.
        let found = space.contains(&key).unwrap();
        seen = seen.max(env.unix_millis() / 1000);
        let alive = |(_, written): &(Vec<u8>, u64)| seen < written + TTL;
        assert_eq!(found, model.get(&key).is_some_and(alive), "in round {round}");
        if round % 20 == 0 {
            let found: BTreeMap<_, _> = space
                .iter()
                .unwrap()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
                .collect();
            let alive = model.iter().filter(|(_, dated)| alive(dated));
            let expected = alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
            assert!(found == expected, "other answers in round {round}");
        }
        match round % 400 {
            150 => db.compact().unwrap(),
            399 => {
                // An edit of the manifest, which holds the time.
                seen = seen.max(put_in_a_second(env, || space.put("00", "").unwrap()));
                model.insert(b"00".to_vec(), (Vec::new(), seen));
                db.flush().unwrap();
                drop(space);
                db.close().unwrap();
                db = open(env);
            }
            _ => {}
        }
    }
}
