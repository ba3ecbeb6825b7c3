//! Tests of the budgets of memory and of space: they hold, and usage above them comes down again.

#![expect(clippy::unwrap_used, reason = "a failure of a test's own calls is a failure of the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Seed, tiny};
use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Operation, SimConfig, SimEnv};
use terrace::env::{Access, Env, Priority, Thread};
use terrace::{Compression, Db, ErrorKind, KeyspaceOptions, Options, WriteBatch};
use terrace_torture::TreeParts as _;

fn open(env: &Arc<SimEnv>, options: Options) -> Db {
    Db::builder("/db").env(env.clone()).options(options).open().unwrap()
}

#[test]
fn memory_stays_within_its_budget_while_the_store_is_filled_and_read() {
    SimEnv::run(SimConfig::default(), |env| {
        let seed = Seed::new(4);
        let mut random = seed.random();
        let budget = 2 << 20;
        let options = Options { memory_bytes: Some(budget), memtable_bytes: 4 << 30, ..tiny() };
        let db = open(&env, options);
        let spaces: Vec<_> = (0..3).map(|n| db.keyspace(&format!("{n}")).unwrap()).collect();
        let (mut most, mut full) = (0, false);
        for round in 0..12_000u64 {
            let space = &spaces[random.below(3) as usize];
            let key = format!("{:06}", random.below(4_000));
            match random.below(6) {
                0 | 1 => _ = space.get(key).unwrap(),
                2 if round % 50 == 0 => assert!(space.iter().unwrap().take(500).all(|entry| entry.is_ok())),
                _ => space.put(key, vec![round as u8; 500 + random.below(500) as usize]).unwrap(),
            }
            let stats = db.stats();
            let used = stats.cache.bytes + stats.memtable_bytes;
            assert!(used <= budget, "{used} bytes in round {round}");
            most = most.max(used);
            full |= stats.cache.bytes > stats.cache.capacity / 10 * 8;
        }
        assert!(most > budget / 5 && full, "the budget was never put to the test: {most}, {full}");
    });
}

/// Memtables keep to their share of the memory budget, or hold a single value that is longer than this share.
#[test]
fn memtables_of_large_values_take_their_part_of_the_budget_or_hold_one_value() {
    SimEnv::run(SimConfig::default(), |env| {
        let mut random = Seed::new(5).random();
        let (memory_bytes, memtable_bytes) = (Some(2 << 20), 128 << 10);
        // Three memtables and a sixteenth of all.
        let part = 3 * memtable_bytes + (2 << 20) / 16;
        let db = open(&env, Options { memory_bytes, memtable_bytes, wal_bytes_max: 64 << 20, ..tiny() });
        let spaces: Vec<_> = (0..3).map(|n| db.keyspace(&format!("{n}")).unwrap()).collect();
        let mut most = 0;
        for n in 0..60_u64 {
            let bytes = if n % 10 == 9 { part + n } else { 40_000 + random.below(400_000) };
            let value = vec![n as u8; usize::try_from(bytes).unwrap()];
            spaces[random.below(3) as usize].put(format!("{n:04}"), &value).unwrap();
            db.put(format!("{n:04}"), "small").unwrap();
            let used = db.stats().memtable_bytes;
            assert!(used <= part.max(bytes) + 4096, "{used} bytes behind value {n} of {bytes}");
            most = most.max(used);
        }
        assert!(most > part, "no value was larger than all memtables may be");
        let found: usize = spaces.iter().map(|space| space.iter().unwrap().count()).sum();
        assert_eq!((found, db.iter().unwrap().count()), (60, 60));
    });
}

/// What comes in the midst of large batches.
#[derive(Clone, Copy, Debug)]
enum End {
    Quietly,
    Closed,
    Poisoned,
    DiskFull,
}

/// Threads of a store that is full of large batches, each with what it does when a call is answered.
fn users(
    env: &Arc<SimEnv>,
    db: &Db,
    told: impl Fn(terrace::Result<()>) + Copy + Send + 'static,
) -> Vec<Thread> {
    let spawn = |body: Box<dyn FnOnce(Db) + Send>| {
        let db = db.clone();
        env.spawn("user", Priority::Normal, Box::new(move || body(db))).unwrap()
    };
    let large = |writer: usize| {
        spawn(Box::new(move |db| {
            for n in 0..8 {
                // Some fit beside others, some are longer than all memtables may be.
                let value = vec![n as u8; [20_000, 150_000, 300_000][(writer + n) % 3]];
                told(db.put(format!("large {writer} {n}"), value));
            }
        }))
    };
    let small = || spawn(Box::new(move |db| (0..300).for_each(|n| told(db.put(format!("{n}"), [7; 900])))));
    let ingests = || {
        spawn(Box::new(move |db| {
            for n in 0..4 {
                told(db.ingest().and_then(|mut ingest| {
                    ingest.push(format!("ingested {n}"), [8; 5_000])?;
                    ingest.finish()
                }));
            }
        }))
    };
    let keyspaces = || {
        spawn(Box::new(move |db| {
            for _ in 0..4 {
                told(db.keyspace("passing").and_then(|space| space.put("large", vec![9; 100_000])));
                told(db.drop_keyspace("passing"));
            }
        }))
    };
    vec![large(0), large(1), large(2), small(), ingests(), keyspaces()]
}

/// What the users did is over at the `end` that comes in their midst, and how often somebody has waited.
fn end_amid_large_batches(env: &Arc<SimEnv>, seed: u64, end: End) -> u64 {
    let options =
        Options { memory_bytes: Some(1 << 20), memtable_bytes: 64 << 10, wal_bytes_max: 1 << 20, ..tiny() };
    let db = open(env, options);
    let told = move |result: terrace::Result<()>| {
        assert!(result.is_ok() || !matches!(end, End::Quietly), "seed {seed}: {result:?}");
    };
    let users = users(env, &db, told);
    env.sleep(Duration::from_micros(seed * 300));
    match end {
        End::Quietly => {}
        End::Closed => _ = db.clone().close(),
        End::Poisoned => {
            let (operation, path_suffix) = (Operation::Sync, String::new());
            let target = FaultTarget::Matching { operation, path_suffix, skipped: 0 };
            env.fault(FaultRule { target, error: FaultError::Io, sticky: true, partial: false });
            let _ = db.sync();
        }
        End::DiskFull => env.set_space(Path::new("/db"), 0),
    }
    users.into_iter().for_each(|user| user.join());
    if let End::DiskFull = end {
        env.set_space(Path::new("/db"), 1 << 30);
        db.compact().unwrap();
    }
    if let End::DiskFull | End::Quietly = end {
        // No batch that failed is in the way of this one.
        db.put("last", vec![1; 400_000]).unwrap();
        assert_eq!(db.get("last").unwrap().unwrap().len(), 400_000);
    }
    let stalls = db.stats().stalls.into_iter().map(|stall| stall.count).sum();
    let _ = db.close();
    stalls
}

/// Batches that wait until memtables are flushed, beside all that they wait for and that waits for them: small writes, ingests, which
/// hold writers, keyspaces that go, and an end of the store in the midst of it. The simulation finds a wait for ever as a deadlock.
#[test]
fn large_batches_end_whatever_goes_on_beside_them() {
    let ends = [End::Quietly, End::Closed, End::Poisoned, End::DiskFull];
    let mut stalls = 0;
    for seed in 0..24_u64 {
        let end = ends[seed as usize % ends.len()];
        let (preempt_at_locks, preempt_at_looks) = (seed % 3 == 0, seed % 3 == 1);
        let preemption_percent = 50;
        let config = SimConfig {
            seed,
            preempt_at_locks,
            preempt_at_looks,
            preemption_percent,
            ..SimConfig::default()
        };
        stalls += SimEnv::run(config, move |env| end_amid_large_batches(&env, seed, end));
    }
    assert!(stalls > 0, "nobody has waited");
}

#[test]
fn values_of_megabytes_are_the_same_from_memtable_log_and_tables() {
    SimEnv::run(SimConfig::default(), |env| {
        let mut random = Seed::new(6).random();
        let values: Vec<Vec<u8>> = (0..4_u64)
            .map(|n| {
                // The last ones cannot be compressed.
                let word = |at: u64| if n < 2 { at / 100 } else { random.below(u64::MAX) };
                let mut bytes: Vec<u8> = (0..270_000).map(word).flat_map(u64::to_le_bytes).collect();
                bytes.extend(std::iter::repeat_n(n as u8, n as usize));
                bytes
            })
            .collect();
        let lz4 = KeyspaceOptions { compression: Compression::Lz4, ..KeyspaceOptions::default() };
        let check = |db: &Db| {
            for name in ["raw", "lz4"] {
                let space = db.keyspace(name).unwrap();
                for (n, value) in values.iter().enumerate() {
                    assert!(space.get(format!("{n}")).unwrap().unwrap() == value[..], "value {n} of {name}");
                }
                let keys = space.iter().unwrap().map(|entry| entry.unwrap().0.to_vec());
                assert_eq!(keys.collect::<Vec<_>>(), [b"0", b"1", b"2", b"3", b"s"]);
            }
        };
        let options = || Options { memory_bytes: Some(64 << 20), ..Options::default() };
        let db = open(&env, options());
        let mut batch = WriteBatch::new();
        for space in [db.keyspace("raw").unwrap(), db.keyspace_with("lz4", lz4).unwrap()] {
            batch.put_in(&space, "s", "small");
            for (n, value) in values.iter().enumerate() {
                batch.put_in(&space, format!("{n}"), value);
            }
        }
        assert!(batch.bytes() > 8 * 270_000 * 8 && batch.len() == 10);
        db.write(batch).unwrap();
        check(&db);
        drop(db);
        let db = open(&env, options());
        check(&db);
        db.flush().unwrap();
        check(&db);
        db.compact().unwrap();
        check(&db);
        assert!(db.verify().unwrap().problems.is_empty());
    });
}

#[test]
fn files_stay_within_their_budget_and_deletes_bring_space_back() {
    // Simulated threads: how much is dead at any moment depends on when each runs.
    SimEnv::run(SimConfig::default(), |env| {
        let budget = 2 << 20;
        let db = open(&env, Options { space_bytes: Some(budget), ..tiny() });
        // Dead tables leave holes, pages of zeros.
        let pages = |path: &Path, length: u64| {
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            env.open(path, Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
            bytes.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0)).count() as u64
        };
        let used = || -> u64 {
            let ours = |path: &Path| {
                path.extension()
                    .is_some_and(|ending| ending == "pack" || ending == "wal" || ending == "recycled")
            };
            let files = env.files().into_iter().filter(|(path, _)| ours(path));
            files.map(|(path, length)| 4096 * pages(&path, length)).sum()
        };
        // In no order, so that nothing sinks without being compacted.
        let key = |n: u64| format!("{:08x}", (n as u32).wrapping_mul(0x9e37_79b1));
        // Up to what compactions make room for; the number of the first record that does not fit.
        let fill = |from: u64| {
            for n in from.. {
                let put = || db.put(key(n), vec![n as u8; 400]);
                let refused = put().or_else(|_| {
                    db.compact()?;
                    put()
                });
                if n % 100 == 0 {
                    db.wait_idle().unwrap();
                    assert!(used() <= budget, "{} bytes after {n}", used());
                }
                if let Err(error) = refused {
                    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
                    assert!(error.to_string().contains("space_bytes"), "{error}");
                    return n;
                }
            }
            from
        };
        let full = fill(0);
        // Small tables waste much of their pages.
        assert!(full * 400 > budget / 5 * 2, "only {full} records fit");
        assert_eq!(db.iter().unwrap().count() as u64, full);
        let mut mixed = WriteBatch::new();
        mixed.delete(key(0)).put("more", vec![0; 4000]);
        assert_eq!(db.write(mixed).unwrap_err().kind(), ErrorKind::OverBudget);
        assert!(db.contains(key(0)).unwrap());
        for n in 0..full / 2 {
            db.delete(key(n)).unwrap();
        }
        db.compact().unwrap();
        assert!(used() < budget / 3 * 2, "{} bytes after deleting half", used());
        let again = fill(full);
        assert!(again > full + full / 4);
        // A budget that is raised holds at once.
        db.set_options(|options| options.space_bytes = Some(2 * budget)).unwrap();
        db.put("more", vec![0; 4000]).unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
    });
}

#[test]
fn an_ingest_that_exceeds_the_budget_of_space_is_refused_and_leaves_nothing() {
    SimEnv::run(SimConfig::default(), |env| {
        let budget = 2 << 20;
        let db = open(&env, Options { space_bytes: Some(budget), ..tiny() });
        db.put("old", "1").unwrap();
        let mut ingest = db.ingest().unwrap();
        let refused = (0..10_000)
            .find_map(|n| ingest.push(format!("{n:08}"), vec![n as u8; 400]).err().map(|e| (n, e)));
        let (n, error) = refused.unwrap();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
        assert!((budget / 2..budget).contains(&(n * 400)), "{n} records fit");
        // What it has written counts until it is given up.
        assert_eq!(db.put("more", vec![0; 300_000]).unwrap_err().kind(), ErrorKind::OverBudget);
        assert_eq!(ingest.finish().unwrap_err().kind(), ErrorKind::OverBudget);
        db.put("more", vec![0; 300_000]).unwrap();
        assert_eq!(db.iter().unwrap().count(), 2);
        // One that fits is taken.
        let mut ingest = db.ingest().unwrap();
        (0..n / 4).for_each(|n| ingest.push(format!("{n:08}"), vec![n as u8; 400]).unwrap());
        ingest.finish().unwrap();
        assert_eq!(db.iter().unwrap().count() as u64, 2 + n / 4);
        // Many that are shorter than a table do not go past it either.
        db.set_options(|options| options.tree.tables().table_bytes = 1 << 20).unwrap();
        let refused = (0..100).find_map(|n| {
            let mut ingest = db.ingest().unwrap();
            (0..300).for_each(|k| ingest.push(format!("{n:02}{k:08}"), vec![k as u8; 400]).unwrap());
            ingest.finish().err()
        });
        assert_eq!(refused.unwrap().kind(), ErrorKind::OverBudget);
        let packs = db.stats().space.total_bytes;
        assert!(packs <= budget, "{packs} bytes");
        assert!(db.verify().unwrap().problems.is_empty());
    });
}

#[test]
fn a_repair_saves_more_than_the_budget_would_take() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, tiny());
        (0..6000).for_each(|n| db.put(format!("{n:08}"), vec![n as u8; 400]).unwrap());
        db.close().unwrap();
        let options = Options { space_bytes: Some(2 << 20), ..tiny() };
        let builder = Db::builder("/db").env(env.clone()).options(options);
        assert_eq!(builder.repair("/repaired").unwrap().entries, 6000);
    });
}

/// A store keeps recycled files in proportion to its live data, not to its memtables.
#[test]
fn dead_files_are_kept_in_proportion_to_live_ones() {
    SimEnv::run(SimConfig::default(), |env| {
        let (memory_bytes, memtable_bytes) = (Some(64 << 20), 4 << 20);
        let db = open(&env, Options { memory_bytes, memtable_bytes, wal_bytes_max: 64 << 20, ..tiny() });
        for round in 0..6 {
            for n in 0..1500 {
                db.put(format!("{n:04}"), vec![round; 1000]).unwrap();
            }
            db.compact().unwrap();
            db.wait_idle().unwrap();
            let space = db.stats().space;
            let kept = space.total_bytes - space.live_bytes - space.dead_bytes - space.wal_bytes;
            assert!(kept <= 1 << 20, "{kept} bytes beside {} live ones", space.live_bytes);
        }
        assert!(db.verify().unwrap().problems.is_empty());
    });
}
