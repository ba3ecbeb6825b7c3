//! Tests of settings that change while the store is open: they are in force at once, and no answer changes.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Seed, scheduled, tiny};
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, SimConfig, SimEnv, Survival};
use terrace::tree::{
    Components, Cutter, Descriptors, Flushes, Layout, Leveled, PackLayout, Picker, Prefixed, RatioWindow,
};
use terrace::{Compression, Db, Durability, ErrorKind, KeyspaceOptions, Options, Prefix};
use terrace_torture::TreeParts as _;
use terrace_torture::sealed_packs;

fn machine() -> Arc<SimEnv> {
    SimEnv::new(SimConfig::default())
}

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options).open().unwrap()
}

#[test]
fn options_tell_what_the_keyspace_has_and_not_what_was_asked_for_later() {
    let env = machine();
    let asked = |compression, filter_bits_per_key| Options {
        keyspace: KeyspaceOptions { compression, filter_bits_per_key, ..KeyspaceOptions::default() },
        ..tiny()
    };
    let first = asked(Compression::Lz4, 7);
    assert_eq!(open(&env, first.clone()).options(), first);
    let db = open(&env, asked(Compression::None, 3));
    assert_eq!(db.options(), first);
    assert_eq!(db.keyspace("default").unwrap().options(), first.keyspace);
    let options = Options { durability: Durability::Synced, ..db.options() };
    db.set_options(|settings| *settings = options.clone()).unwrap();
    assert_eq!(db.options(), options);
}

#[test]
fn a_refused_change_changes_nothing() {
    let db = open(&machine(), tiny());
    type Change = fn(&mut Options);
    let changes: [(Change, &str); 5] = [
        (|options| options.memory_bytes = Some(1), "memory_bytes"),
        (|options| options.background_threads = Some(0), "background_threads"),
        (|options| options.tree.governor().l0_stop = options.tree.governor().l0_slow, "l0_stop"),
        (|options| options.keyspace.compression = Compression::Lz4, "keyspace"),
        (|options| options.tree.files.descriptors = Descriptors::PerTable, "descriptors"),
    ];
    for (change, name) in changes {
        let refused = db.set_options(|options| {
            options.durability = Durability::Synced;
            change(options);
        });
        let error = refused.unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(name), "{error}");
        assert_eq!(db.options(), tiny());
    }
    let other = db.clone();
    db.close().unwrap();
    assert_eq!(other.set_options(|_| {}).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn how_the_tables_of_a_keyspace_are_written_changes_and_stays_so() {
    let env = machine();
    let db = open(&env, tiny());
    let before = KeyspaceOptions { filter_bits_per_key: 0, ..KeyspaceOptions::default() };
    let users = db.keyspace_with("users", before.clone()).unwrap();
    let after = KeyspaceOptions {
        compression: Compression::Lz4,
        filter_bits_per_key: 20,
        ..KeyspaceOptions::default()
    };
    let fill = |db: &Db, users: &terrace::Keyspace| {
        (0..500).for_each(|n| users.put(format!("{n:03}"), vec![1; 400]).unwrap());
        users.compact_range(..).unwrap();
        db.wait_idle().unwrap();
        (0..500).for_each(|n| assert_eq!(users.get(format!("{n:03}")).unwrap().unwrap(), [1; 400]));
        users.shape().levels.iter().map(|level| level.bytes).sum::<u64>()
    };
    // Blocks that are asked for by keys that are in no table.
    let asked = |db: &Db, users: &terrace::Keyspace| {
        let asked = |db: &Db| db.stats().cache.hits + db.stats().cache.misses;
        let before = asked(db);
        (0..500).for_each(|n| assert!(users.get(format!("{n:03}x")).unwrap().is_none()));
        asked(db) - before
    };
    let raw_bytes = fill(&db, &users);
    assert!(raw_bytes > 500 * 400 && asked(&db, &users) >= 490);

    let syncs = || db.stats().syncs.manifest;
    let at_first = syncs();
    users.set_options(&before).unwrap();
    assert_eq!(syncs(), at_first, "nothing is other than before");
    users.set_options(&after).unwrap();
    assert_eq!((syncs(), users.options()), (at_first + 1, after.clone()));
    assert_eq!(db.keyspace("default").unwrap().options(), KeyspaceOptions::default());
    assert!(asked(&db, &users) >= 490, "tables that are there stay as they are");
    let packed_bytes = fill(&db, &users);
    assert!(packed_bytes < raw_bytes / 2 && asked(&db, &users) < 10, "{packed_bytes} of {raw_bytes} bytes");

    // Nothing but what has been synced is left, and it holds for what is written from now on.
    let env = env.crash(Survival::Nothing);
    let db = open(&env, tiny());
    let users = db.keyspace("users").unwrap();
    assert_eq!(users.options(), after);
    let again = fill(&db, &users);
    assert!(again < raw_bytes / 2 && asked(&db, &users) < 10, "{again} of {raw_bytes} bytes");

    let refused = [
        (KeyspaceOptions { ttl: Some(Duration::from_secs(9)), ..after.clone() }, "ttl"),
        (KeyspaceOptions { prefix: Some(Prefix::Fixed(3)), ..after.clone() }, "prefix"),
        (KeyspaceOptions { filter_bits_per_key: 21, ..after.clone() }, "filter_bits_per_key"),
    ];
    for (options, name) in refused {
        let error = users.set_options(&options).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(name), "{error}");
    }
    let reader = Db::builder("/db").env(env.clone()).read_only().open().unwrap();
    let seen = reader.keyspace("users").unwrap();
    assert_eq!(seen.options(), after);
    assert_eq!(seen.set_options(&before).unwrap_err().kind(), ErrorKind::ReadOnly);
    db.drop_keyspace("users").unwrap();
    assert_eq!(users.set_options(&before).unwrap_err().kind(), ErrorKind::NotFound);
    db.close().unwrap();
    assert_eq!(users.set_options(&before).unwrap_err().kind(), ErrorKind::Closed);
}

/// All that changes later with `n`: how tables are written, and for how long values live.
fn options(n: u8) -> KeyspaceOptions {
    let ttl = Some(Duration::from_secs(100 * u64::from(n)));
    KeyspaceOptions { filter_bits_per_key: n, ttl, ..KeyspaceOptions::default() }
}

#[test]
fn a_power_cut_leaves_the_options_of_a_keyspace_as_they_were_or_as_they_are() {
    for survival in [Survival::Nothing, Survival::Everything, Survival::Random(1), Survival::Random(2)] {
        for others in 0.. {
            let env = machine();
            let db = open(&env, tiny());
            let users = db.keyspace_with("users", options(1)).unwrap();
            env.cut_after(others);
            let altered = users.set_options(&options(2));
            let after = open(&env.crash(survival), tiny()).keyspace("users").unwrap().options();
            assert!([options(1), options(2)].contains(&after));
            if altered.is_ok() {
                assert_eq!(after, options(2), "after {others} calls");
                assert!(others > 1, "one call writes, another one syncs");
                break;
            }
        }
    }
}

/// Changes the options of a keyspace while a call fails; whether one has.
fn alter_with_a_fault(env: &Arc<SimEnv>, error: FaultError, partial: bool, call: u64) -> bool {
    let db = open(env, tiny());
    let users = db.keyspace_with("users", options(1)).unwrap();
    users.put("key", "value").unwrap();
    let target = FaultTarget::Call(env.calls() + call);
    env.fault(FaultRule { target, error, sticky: false, partial });
    let altered = users.set_options(&options(2));
    let is_struck = env.faults_fired() > 0;
    env.clear_faults();
    let shown = if altered.is_ok() { options(2) } else { options(1) };
    assert_eq!(users.options(), shown, "{error:?} of call {call}: {altered:?}");
    assert_eq!(users.get("key").unwrap().unwrap(), "value", "reads go on");
    for survival in [Survival::Nothing, Survival::Everything] {
        let after = open(&env.crash(survival), tiny()).keyspace("users").unwrap().options();
        let allowed = if altered.is_ok() { vec![options(2)] } else { vec![options(1), options(2)] };
        assert!(allowed.contains(&after), "{error:?} of call {call}: {altered:?}");
    }
    assert!(is_struck || altered.is_ok() && call > 1, "one call writes, another one syncs");
    is_struck
}

#[test]
fn a_call_that_fails_leaves_the_options_of_a_keyspace_as_they_were_or_as_they_are() {
    let errors = [(FaultError::Io, false), (FaultError::Io, true), (FaultError::NoSpace, true)];
    for (error, partial) in errors {
        for call in 0.. {
            // Between the count of calls and the fault comes no other thread's call.
            let run = move |env| alter_with_a_fault(&env, error, partial, call);
            if !SimEnv::run(SimConfig::default(), run) {
                break;
            }
        }
    }
}

/// A store with six runs in level 0, far from its trigger.
fn six_runs(env: &Arc<SimEnv>) -> Db {
    let tree = tiny().tree.with(|tree| {
        *tree.l0_trigger() = 100;
        tree.governor().l0_slow = 200;
        tree.governor().l0_stop = 300;
    });
    let db = open(env, Options { tree, ..tiny() });
    for n in 0..6 {
        db.put("key", [n]).unwrap();
        db.flush().unwrap();
    }
    db
}

/// Lookups ask so many tables at a time: none is left out where one such lot ends, and none is asked before a newer one.
#[test]
fn a_lookup_goes_through_any_number_of_runs_in_their_order() {
    let tree = tiny().tree.with(|tree| {
        *tree.l0_trigger() = 100;
        tree.governor().l0_slow = 200;
        tree.governor().l0_stop = 300;
    });
    for large in [1, 1000] {
        let db = open(&machine(), Options { tree: tree.clone(), ..tiny() });
        for run in 0..20_u8 {
            // The newest version of key n is in run n, behind 19 - n newer runs.
            for key in (run..20).chain([100]) {
                db.put([0, key], vec![run; large]).unwrap();
            }
            // Each run reaches over all keys.
            [0, 255].iter().for_each(|&end| db.put([end], [run]).unwrap());
            db.flush().unwrap();
            for key in 0..20 {
                let newest = key.min(run);
                assert_eq!(db.get([0, key]).unwrap().unwrap(), vec![newest; large], "{key} after {run}");
            }
            assert_eq!(db.get([0, 100]).unwrap().unwrap(), vec![run; large]);
            assert!(db.get([0, 99]).unwrap().is_none());
        }
        assert!(db.property("terrace.num-files-at-level0").unwrap().parse::<u32>().unwrap() >= 20);
    }
}

/// Without a write, and without being asked: scans seek in every run.
#[test]
fn level_0_compaction_is_triggered_by_scans() {
    scheduled(|env| {
        let db = six_runs(&env);
        let runs = || db.property("terrace.num-files-at-level0").unwrap();
        assert!((0..9).all(|_| db.iter().unwrap().count() == 1));
        db.wait_idle().unwrap();
        assert_eq!(runs(), "6");
        for scans in 10..8192 {
            assert_eq!(db.iter().unwrap().count(), 1);
            if scans % 50 == 0 {
                // Ends whether or not a compaction is due.
                db.wait_idle().unwrap();
            }
        }
        db.wait_idle().unwrap();
        assert_eq!(runs(), "0");
    });
}

/// Where much lies below, they pay for less: one run instead of six, and level 1 as it was.
#[test]
fn intra_l0_compaction_is_triggered_by_scans() {
    intra_l0_for(4096, |db| assert!(db.iter().unwrap().next().is_some()));
}

#[test]
fn intra_l0_compaction_is_triggered_by_lookups() {
    // Keys that no run has, and no range tombstone covers. They are spread over all runs, since idle-time compaction
    // may have joined a part of these.
    let next = Cell::new(0);
    intra_l0_for(1 << 20, move |db| {
        let n = next.replace((next.get() + 37) % 2400);
        assert!(db.get(format!("{:04}~", 600 + n)).unwrap().is_none());
    });
}

#[test]
fn lookups_trigger_nothing_with_a_given_ratio() {
    scheduled(|env| {
        let db = six_runs(&env);
        (0..100_000).for_each(|_| assert!(db.get("kez").unwrap().is_none()));
        db.wait_idle().unwrap();
        assert_eq!(db.property("terrace.num-files-at-level0").unwrap(), "6");
        assert_eq!(db.stats().compaction.intra_l0, 0);
    });
}

/// Six runs become one after at most so many reads.
fn intra_l0_for(reads_max: u32, read: impl Fn(&Db) + Send + 'static) {
    scheduled(move |env| six_runs_become_one(&env, reads_max, read));
}

fn six_runs_become_one(env: &Arc<SimEnv>, reads_max: u32, read: impl Fn(&Db)) {
    let trigger = tiny().tree.with(|tree| {
        *tree.l0_trigger() = 100;
        tree.governor().l0_slow = 200;
        tree.governor().l0_stop = 300;
    });
    let tree = trigger.with(|tree| {
        tree.set_ratio(None);
        tree.group().bytes = 64 << 10;
        *tree.level1_bytes() = 64 << 20;
    });
    let db = open(env, Options { tree, memory_bytes: Some(64 << 20), memtable_bytes: 1 << 20, ..tiny() });
    let key = |n: u32| format!("{n:04}");
    (0..3000).for_each(|n| db.put(key(n), [n as u8; 1000]).unwrap());
    db.compact().unwrap();
    let files = |level| db.property(&format!("terrace.num-files-at-level{level}")).unwrap();
    let below: Vec<_> = (1..7).map(files).collect();
    let pinned = db.snapshot();
    for run in 0..6 {
        (0..3000).filter(|n| n % 6 >= run).for_each(|n| db.put(key(n), [run as u8]).unwrap());
        db.delete_range(key(100 * run)..key(100 * run + 10)).unwrap();
        db.flush().unwrap();
    }
    let runs = || {
        let levels = db.property("terrace.levelstats").unwrap();
        levels.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()
    };
    assert!(runs() >= 6);
    for reads in 1.. {
        assert!(reads < reads_max);
        read(&db);
        if reads % (reads_max / 64) == 0 {
            db.wait_idle().unwrap();
            if runs() == 1 {
                break;
            }
        }
    }
    assert_eq!((1..7).map(files).collect::<Vec<_>>(), below);
    let expected = |n: u32| {
        let last_deleted = (0..6).filter(|run| (100 * run..100 * run + 10).contains(&n)).max();
        Some((n % 6) as u8).filter(|&written| last_deleted.is_none_or(|run| u32::from(written) > run))
    };
    for n in 0..3000 {
        assert_eq!(
            db.get(key(n)).unwrap().map(|value| value.to_vec()),
            expected(n).map(|run| vec![run]),
            "{n}"
        );
        assert_eq!(pinned.get(key(n)).unwrap().unwrap(), [n as u8; 1000]);
    }
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn a_lower_trigger_starts_compactions_by_itself() {
    scheduled(|env| {
        let db = six_runs(&env);
        db.wait_idle().unwrap();
        assert_eq!(db.property("terrace.num-files-at-level0").unwrap(), "6");
        db.set_options(|options| *options.tree.l0_trigger() = 2).unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.property("terrace.num-files-at-level0").unwrap(), "0");
        assert_eq!(db.get("key").unwrap().unwrap(), [5]);
    });
}

#[test]
fn smaller_memory_is_given_back_at_once() {
    let db = open(&machine(), Options { memory_bytes: Some(8 << 20), memtable_bytes: 1 << 20, ..tiny() });
    (0..3000).for_each(|n| db.put(format!("{n}"), vec![1; 500]).unwrap());
    db.compact().unwrap();
    // Lookups, for scans leave few blocks behind.
    (0..3000).for_each(|n| assert_eq!(db.get(format!("{n}")).unwrap().unwrap(), [1; 500]));
    let before = db.stats().cache.bytes;
    assert!(before > 1 << 20);
    db.set_options(|options| options.memory_bytes = Some(1 << 20)).unwrap();
    let cache = db.stats().cache;
    // Indexes and filters stay as long as their tables.
    assert!(cache.bytes < before / 2 && cache.capacity < 1 << 20, "{cache:?}");
    let flushes = db.stats().flush.jobs;
    // A quarter of the new budget is the most that a memtable may take.
    (0..1000).for_each(|n| db.put(format!("{n}"), vec![2; 500]).unwrap());
    db.wait_idle().unwrap();
    assert!(db.stats().flush.jobs > flushes);
}

#[test]
fn another_default_of_durability_holds_for_the_next_write() {
    let env = machine();
    let db = open(&env, tiny());
    db.put("a", "1").unwrap();
    assert!(open(&env.crash(Survival::Nothing), tiny()).get("a").unwrap().is_none());
    db.set_options(|options| options.durability = Durability::Synced).unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(open(&env.crash(Survival::Nothing), tiny()).iter().unwrap().count(), 2);
}

#[test]
fn a_smaller_log_flushes_the_keyspace_that_holds_it_back() {
    let db = open(&machine(), Options { memtable_bytes: 1 << 20, wal_bytes_max: 64 << 20, ..tiny() });
    (0..300).for_each(|n| db.put(format!("{n}"), vec![1; 500]).unwrap());
    assert_eq!(db.stats().flush.jobs, 0);
    db.set_options(|options| options.wal_bytes_max = 64 << 10).unwrap();
    db.put("key", "value").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.stats().flush.jobs, 1);
}

/// Has one run in each level, if there were several.
fn make_leveled(options: &mut Options) {
    if let Layout::Prefixed(_) = options.tree.layout {
        options.tree.layout = Layout::Leveled(Leveled::default());
        options.tree.picker = Picker::default();
    }
}

/// Now and then, PTierDB's layout or cutter.
fn make_prefixed(options: &mut Options, roll: &mut impl FnMut(u64) -> u64) {
    let tree = &mut options.tree;
    if roll(3) == 0 {
        let (level1_bytes, l0_trigger) = (*tree.level1_bytes(), *tree.l0_trigger());
        tree.layout = Layout::Prefixed(Prefixed { level1_bytes, ratio: 2 + roll(9) as u32, l0_trigger });
        let (moves, access_bytes) = (roll(3) > 0, roll(3) << 10);
        tree.picker = Picker::Components(Components {
            moves,
            access_bytes,
            job_bytes: (16 << 10) << roll(6),
            ..Components::default()
        });
    }
    let size = *tree.tables();
    tree.cutter = if roll(2) == 0 { Cutter::Size(size) } else { Cutter::Prefix(size) };
}

#[test]
fn answers_stay_whatever_changes() {
    let seed = Seed::new(5);
    let mut random = seed.random();
    let env = machine();
    let (mut db, mut model) = (open(&env, tiny()), BTreeMap::new());
    for round in 0..4000u64 {
        let key = format!("{}", random.below(700)).into_bytes();
        if random.below(5) == 0 {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = vec![round as u8; random.below(200) as usize];
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        if round % 50 == 0 {
            let mut roll = |end| random.below(end);
            db.set_options(|options| {
                make_leveled(options);
                options.memtable_bytes = (4 << 10) << roll(4);
                options.background_threads = Some(1 + roll(3) as usize);
                options.memory_bytes = Some((1 + roll(4)) << 20);
                options.tree.tables().table_bytes = (2 << 10) << roll(4);
                options.tree.block_bytes = 256 << roll(4);
                *options.tree.level1_bytes() = (8 << 10) << roll(4);
                options.tree.set_ratio(Some(2 + roll(9) as u32).filter(|ratio| *ratio < 10));
                *options.tree.l0_trigger() = 1 + roll(6) as usize;
                options.tree.group().bytes = roll(4) << 13;
                options.tree.group().parts = 1 + roll(3) as u32;
                options.tree.group().settle = roll(3) > 0;
                options.tree.tables().flushes = if roll(4) == 0 { Flushes::Whole } else { Flushes::Cut };
                let group = *options.tree.group();
                options.tree.picker = match roll(3) {
                    0 => Picker::Cursor(group),
                    1 => Picker::LeastOverlap(group),
                    _ => Picker::RatioWindow(RatioWindow { group, ..RatioWindow::default() }),
                };
                make_prefixed(options, &mut roll);
                options.tree.files.packs =
                    if roll(2) == 0 { PackLayout::OneTable } else { PackLayout::Many { bytes_max: 1 << 20 } };
            })
            .unwrap();
            let keyspace = db.keyspace("default").unwrap();
            let compression = if roll(2) == 0 { Compression::None } else { Compression::Lz4 };
            let filter_bits_per_key = roll(21) as u8;
            let altered = KeyspaceOptions { compression, filter_bits_per_key, ..keyspace.options() };
            keyspace.set_options(&altered).unwrap();
            assert_eq!(db.options().keyspace, altered);
        }
        if round % 1000 == 999 {
            db.close().unwrap();
            db = open(&env, tiny());
        }
        if round % 500 == 499 {
            let found: BTreeMap<_, _> = db
                .iter()
                .unwrap()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
                .collect();
            assert!(found == model, "other answers in round {round}");
            assert!(db.verify().unwrap().problems.is_empty());
        }
    }
}

/// What the tables of one pack cost in descriptors, and that none of them keeps what is dead from going.
#[test]
fn a_pack_is_opened_once_or_for_each_of_its_tables() {
    for (descriptors, per_table) in [(Descriptors::PerPack, false), (Descriptors::PerTable, true)] {
        let env = machine();
        let tree = tiny().tree.with(|tree| tree.files.descriptors = descriptors);
        let options = Options { tree, ..tiny() };
        let db = open(&env, options.clone());
        let fill = |db: &Db, version: u8| {
            (0..400_u32).for_each(|n| db.put(format!("{n:03}"), [version; 100]).unwrap());
            db.compact().unwrap();
            // Until no thread holds an older version, whose packs count.
            db.wait_idle().unwrap();
        };
        fill(&db, 1);
        let tables: usize = db.stats().keyspaces[0].shape.levels.iter().map(|level| level.tables).sum();
        let packs = usize::try_from(db.stats().space.pack_files).unwrap();
        assert!(packs < tables, "{packs} packs of {tables} tables");
        // The compactions have opened some already, and how many is up to the threads.
        db.close().unwrap();
        let db = open(&env, options.clone());
        let before = db.stats().packs_opened;
        for n in 0..400_u32 {
            assert_eq!(db.get(format!("{n:03}")).unwrap().unwrap(), [1; 100]);
        }
        let opened = usize::try_from(db.stats().packs_opened - before).unwrap();
        assert_eq!(opened, if per_table { tables } else { packs }, "{descriptors:?}");
        let before = sealed_packs(&env);
        fill(&db, 2);
        let after = sealed_packs(&env);
        assert!(
            before.iter().all(|dead| !after.contains(dead)),
            "{descriptors:?}: {before:?}, then {after:?}"
        );
    }
}
