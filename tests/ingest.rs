//! Tests of ingests: newest of all, all at once, durable, and nothing at all if they fail.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use terrace::env::simulated::{FaultError, FaultRule, FaultTarget, Journal, SimConfig, SimEnv, Survival};
use terrace::env::{Env, Priority};
use terrace::{Db, ErrorKind, Ingest, Iter, Keyspace, KeyspaceOptions, Options};
use terrace_torture::TreeParts as _;
use terrace_torture::client::open;
use terrace_torture::{Replay, Rng, tiny};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: usize) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

/// Pushes every `step`th key of a range, with values that tell the round.
fn push(ingest: &mut Ingest, keys: std::ops::Range<usize>, step: usize, round: usize) -> terrace::Result<()> {
    keys.step_by(step).try_for_each(|n| ingest.push(key(n), value(n, round)))
}

fn value(n: usize, round: usize) -> Vec<u8> {
    format!("{round}/{n}/").into_bytes().repeat(8)
}

fn entries(iter: Iter) -> Vec<(Vec<u8>, Vec<u8>)> {
    iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// Compares every way to read with the model.
fn check(
    model: &Model,
    get: impl Fn(&[u8]) -> Option<Vec<u8>>,
    range: impl Fn(&[u8], &[u8]) -> Iter,
    rng: &mut Rng,
) {
    for _ in 0..12 {
        let mut ends = [key(rng.below(1000)), key(rng.below(1000))];
        ends.sort();
        let expected: Vec<_> =
            model.range(ends[0].clone()..ends[1].clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(entries(range(&ends[0], &ends[1])), expected, "forward in {ends:?}");
        let backward = range(&ends[0], &ends[1]).rev().map(|entry| entry.unwrap().0.to_vec());
        assert!(backward.eq(expected.iter().rev().map(|(k, _)| k.clone())), "backward in {ends:?}");
        assert_eq!(get(&ends[0]), model.get(&ends[0]).cloned());
    }
}

fn check_db(db: &Db, model: &Model, rng: &mut Rng) {
    check(
        model,
        |key| db.get(key).unwrap().map(|value| value.to_vec()),
        |from, to| db.range(from..to).unwrap(),
        rng,
    );
}

#[test]
fn ingested_entries_are_newer_than_all_before_and_older_than_all_behind() {
    for seed in 0..5 {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let mut rng = Rng::new(seed);
            let (mut model, mut snapshots) = (Model::new(), Vec::new());
            let mut db = open(&env, &tiny()).unwrap();
            for round in 0..40 {
                let from = rng.below(900);
                let (keys, step) = (from..from + rng.below(100), 1 + rng.below(7));
                match rng.below(4) {
                    0 => {
                        let deletes = |n: usize| n % 4 == round % 8;
                        let mut ingest = db.ingest().unwrap();
                        for n in keys.clone().step_by(step) {
                            match deletes(n) {
                                true => ingest.delete(key(n)).unwrap(),
                                false => ingest.push(key(n), value(n, round)).unwrap(),
                            }
                        }
                        // Written before the end, hence older.
                        db.put(key(from), "older").unwrap();
                        model.insert(key(from), b"older".to_vec());
                        ingest.finish().unwrap();
                        for n in keys.step_by(step) {
                            match deletes(n) {
                                true => model.remove(&key(n)),
                                false => model.insert(key(n), value(n, round)),
                            };
                        }
                    }
                    1 => keys.step_by(step).for_each(|n| {
                        db.delete(key(n)).unwrap();
                        model.remove(&key(n));
                    }),
                    _ => keys.step_by(step).for_each(|n| {
                        db.put(key(n), value(n, round)).unwrap();
                        model.insert(key(n), value(n, round));
                    }),
                }
                match rng.below(8) {
                    0 => db.flush().unwrap(),
                    1 => db.compact().unwrap(),
                    2 => {
                        snapshots.clear();
                        db.close().unwrap();
                        db = open(&env, &tiny()).unwrap();
                    }
                    _ => snapshots.push((db.snapshot(), model.clone())),
                }
                check_db(&db, &model, &mut rng);
                for (snapshot, model) in &snapshots {
                    let get = |key: &[u8]| snapshot.get(key).unwrap().map(|value| value.to_vec());
                    check(model, get, |from, to| snapshot.range(from..to).unwrap(), &mut rng);
                }
            }
            assert!(db.verify().unwrap().problems.is_empty());
        });
    }
}

#[test]
fn much_that_overlaps_nothing_goes_deep_without_a_compaction() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let space = db.keyspace("space").unwrap();
        let load = |space: &Keyspace, keys: std::ops::Range<usize>| {
            let mut ingest = space.ingest().unwrap();
            push(&mut ingest, keys, 1, 0).unwrap();
            ingest.finish().unwrap();
        };
        load(&space, 0..2000);
        let levels: Vec<usize> =
            space.shape().levels.iter().filter(|level| level.tables > 0).map(|level| level.level).collect();
        assert!(matches!(levels[..], [level] if level > 1), "{levels:?}");
        load(&space, 2000..4000);
        assert_eq!(space.shape().levels[0].tables, 0);
        db.wait_idle().unwrap();
        assert_eq!((db.stats().compaction.jobs, db.stats().written.wal < 1000), (0, true));
        load(&space, 1000..1001);
        assert_eq!(space.shape().levels.iter().map(|level| level.entries).sum::<u64>(), 4001);
        assert_eq!(space.iter().unwrap().count(), 4000);
    });
}

#[test]
fn what_is_refused_is_left_out_and_what_is_given_up_leaves_nothing() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let mut ingest = db.ingest().unwrap();
        ingest.push("b", "1").unwrap();
        for (key, value) in [(&b"b"[..], &b"2"[..]), (b"a", b"2"), (&[7; 70_000], b"2")] {
            assert_eq!(ingest.push(key, value).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(!db.contains("b").unwrap());
        ingest.finish().unwrap();
        assert_eq!(db.iter().unwrap().count(), 1);

        // Preallocated files come and go.
        let is_pack = |path: &std::path::Path| path.extension().is_some_and(|is| is == "pack");
        let kept = || {
            let files = env.files().into_iter();
            files.filter(|(path, length)| *length > 0 || !is_pack(path)).collect::<Vec<_>>()
        };
        let files = kept();
        let mut given_up = db.ingest().unwrap();
        push(&mut given_up, 0..2000, 1, 0).unwrap();
        drop(given_up);
        db.ingest().unwrap().finish().unwrap();
        assert_eq!(kept(), files);

        let doomed = db.keyspace("doomed").unwrap();
        let mut ingest = doomed.ingest().unwrap();
        ingest.push("a", "1").unwrap();
        db.drop_keyspace("doomed").unwrap();
        assert_eq!(ingest.finish().unwrap_err().kind(), ErrorKind::NotFound);
        let mut ingest = db.ingest().unwrap();
        ingest.push("a", "1").unwrap();
        db.clone().close().unwrap();
        assert!(matches!(ingest.finish().unwrap_err().kind(), ErrorKind::Closed));
    });
}

#[test]
fn ingests_in_a_row_wait_for_compactions_of_level_0_as_writers_do() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let l0_stop = tiny().tree.governor().l0_stop as usize;
        let mut most = 0;
        for round in 0..100 {
            let mut ingest = db.ingest().unwrap();
            push(&mut ingest, round % 7..1000, 7, round).unwrap();
            ingest.finish().unwrap();
            most = most.max(db.keyspace("default").unwrap().shape().levels[0].runs);
        }
        assert!((2..=l0_stop).contains(&most), "{most} runs, of {l0_stop} at most");
        let reasons: Vec<_> = db.stats().stalls.into_iter().map(|stall| stall.reason).collect();
        assert_eq!(
            reasons,
            ["level 0 has too many runs, or too much in them"],
            "no writer has waited for an ingest"
        );
        assert!(db.stats().compaction.jobs > 0);
        db.close().unwrap();
    });
}

/// Ingests that wait for each other's compactions, one value for all keys in each round, until the power is cut. Returns how many were
/// acknowledged, and whether there was no cut: then some have waited.
fn ingest_in_a_row(env: &Arc<SimEnv>) -> (usize, bool) {
    env.simulate(|env| {
        let Ok(db) = open(&env, &tiny()) else { return (0, false) };
        for round in 0..60 {
            let ingested = db.ingest().and_then(|mut ingest| {
                for n in (0..1000).step_by(7) {
                    ingest.push(key(n), value(n, round))?;
                    // No two rounds have the same keys, so none hides another.
                    ingest.delete([key(n), vec![round as u8]].concat())?;
                }
                ingest.finish()
            });
            if ingested.is_err() {
                return (round, false);
            }
        }
        let has_waited = !db.stats().stalls.is_empty();
        assert!(has_waited, "level 0 was never full");
        (60, db.close().is_ok())
    })
}

#[test]
fn a_power_cut_while_ingests_wait_leaves_those_that_were_acknowledged() {
    for cut in (0..).step_by(37) {
        let _replay = Replay(format!("cut {cut}"));
        let env = SimEnv::new(SimConfig { seed: cut, ..SimConfig::default() });
        env.cut_after(cut);
        let (acknowledged, is_whole) = ingest_in_a_row(&env);
        env.crash(Survival::Random(cut)).simulate(move |env| {
            let db = open(&env, &tiny()).unwrap();
            let found = entries(db.iter().unwrap());
            let of_round =
                |round| (0..1000).step_by(7).map(|n| (key(n), value(n, round))).collect::<Vec<_>>();
            let is_prefix = found == of_round(acknowledged)
                || found == acknowledged.checked_sub(1).map(of_round).unwrap_or_default();
            assert!(is_prefix, "{acknowledged} were acknowledged");
        });
        if is_whole {
            return;
        }
    }
}

#[test]
fn writers_and_ingests_beside_each_other_lose_nothing() {
    let mut waits = 0;
    for seed in 0..6 {
        let _replay = Replay(format!("seed {seed}"));
        let config = SimConfig { seed, preemption_percent: 60, ..SimConfig::default() };
        waits += SimEnv::run(config, |env| {
            let db = open(&env, &tiny()).unwrap();
            let spawn = |body: Box<dyn FnOnce(Db) + Send>| {
                let db = db.clone();
                env.spawn("user", Priority::Normal, Box::new(move || body(db))).unwrap()
            };
            let ingests = (0..2).map(|ingester| {
                spawn(Box::new(move |db| {
                    for round in 0..6 {
                        let mut ingest = db.ingest().unwrap();
                        push(&mut ingest, ingester..600, 3, round).unwrap();
                        ingest.finish().unwrap();
                        // All of one round or nothing, at any moment.
                        let all = entries(db.snapshot().iter().unwrap());
                        let mine = all.into_iter().filter(|(key, _)| {
                            String::from_utf8_lossy(key).parse::<usize>().unwrap() % 3 == ingester
                        });
                        let expected = (ingester..600).step_by(3).map(|n| (key(n), value(n, round)));
                        assert!(mine.eq(expected));
                    }
                }))
            });
            let writes = std::iter::once(spawn(Box::new(|db| {
                for n in (2..600).step_by(3).chain((2..600).step_by(3)) {
                    db.put(key(n), vec![1; 150]).unwrap();
                }
                db.compact().unwrap();
            })));
            ingests.chain(writes).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join());
            assert_eq!(db.iter().unwrap().count(), 600);
            db.compact().unwrap();
            assert!(db.verify().unwrap().problems.is_empty());
            let stalls = db.stats().stalls.into_iter();
            stalls
                .filter(|stall| stall.reason == "an ingest takes its place")
                .map(|stall| stall.count)
                .sum::<u64>()
        });
    }
    assert!(waits > 0, "no writer has waited for an ingest, or nobody says so");
}

/// Writes, ingests over what was written with the power cut on the way, and tells whether the ingest was acknowledged.
fn ingest_over_writes(env: &Arc<SimEnv>, is_flushed: bool, cut: u64) -> bool {
    let db = open(env, &tiny()).unwrap();
    let other = db.keyspace("other").unwrap();
    (0..100).for_each(|n| db.put(key(n), value(n, 0)).unwrap());
    if is_flushed {
        // Nothing of the keyspace itself waits in memory: no flush makes the log of the other one durable.
        db.flush().unwrap();
    }
    other.put("before", "the ingest").unwrap();
    let mut ingest = db.ingest().unwrap();
    env.cut_after(cut);
    push(&mut ingest, 50..200, 1, 1).is_ok() && ingest.finish().is_ok()
}

#[test]
fn a_power_cut_leaves_all_of_an_ingest_with_all_before_it_or_nothing_of_it() {
    let (mut all, mut nothing) = (0, 0);
    let journals = [Journal::Ext4Like, Journal::None];
    for (journal, is_flushed) in journals.into_iter().flat_map(|journal| [(journal, false), (journal, true)])
    {
        for cut in 0.. {
            let machine = SimEnv::new(SimConfig { seed: 3, journal, ..SimConfig::default() });
            let done = machine.simulate(move |env| ingest_over_writes(&env, is_flushed, cut));
            for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
                let _replay =
                    Replay(format!("{journal:?}, flushed before: {is_flushed}, cut at {cut}, {survival:?}"));
                let there = machine.crash(survival).simulate(|env| {
                    let db = open(&env, &tiny()).unwrap();
                    let found = entries(db.iter().unwrap());
                    assert!(db.verify().unwrap().problems.is_empty());
                    let old = |n| (key(n), value(n, 0));
                    let new = |n| (key(n), value(n, 1));
                    if found.len() > 100 {
                        assert!(db.keyspace("other").unwrap().contains("before").unwrap());
                        assert!(found.into_iter().eq((0..50).map(old).chain((50..200).map(new))));
                        return true;
                    }
                    let count = found.len();
                    assert!(found.into_iter().eq((0..count).map(old)));
                    false
                });
                assert!(there || !done);
                *(if there { &mut all } else { &mut nothing }) += 1;
            }
            if done {
                break;
            }
        }
    }
    println!("{all} times all, {nothing} times nothing");
    assert!(all > 5 && nothing > 40);
}

/// The keyspaces of ingests that end together.
const SPACES: [&str; 3] = ["left", "middle", "right"];

/// Fills three keyspaces one after the other, and then writes over them, deletes and adds in one moment. Whether that was
/// acknowledged.
fn ingest_together(env: &Arc<SimEnv>, before: impl FnOnce(&SimEnv)) -> bool {
    let db = open(env, &tiny()).unwrap();
    let spaces = SPACES.map(|name| db.keyspace(name).unwrap());
    for space in &spaces[1..] {
        (0..60).for_each(|n| space.put(key(n), value(n, 0)).unwrap());
    }
    db.sync().unwrap();
    before(env);
    let ingests = spaces.iter().rev().map(|space| {
        let mut ingest = space.ingest()?;
        for n in 30..120 {
            if n % 3 == 0 { ingest.delete(key(n))? } else { ingest.push(key(n), value(n, 1))? }
        }
        Ok(ingest)
    });
    ingests.collect::<terrace::Result<Vec<_>>>().and_then(Ingest::finish_together).is_ok()
}

/// Whether what `db` has is what three ingests leave, or else what was there before; nothing else may be.
fn has_ingested(db: &Db) -> bool {
    let old = |n| (key(n), value(n, 0));
    let new = (30..120).filter(|n| n % 3 != 0).map(|n| (key(n), value(n, 1)));
    let found = SPACES.map(|name| {
        let found = entries(db.existing_keyspace(name).unwrap().unwrap().iter().unwrap());
        let old_before = (0..if name == "left" { 0 } else { 60 }).map(old);
        let old_behind = (0..if name == "left" { 0 } else { 30 }).map(old);
        let all = found.iter().cloned().eq(old_behind.chain(new.clone()));
        assert!(all || found.iter().cloned().eq(old_before), "{name} has {} entries", found.len());
        all
    });
    assert!(found == [found[0]; 3], "some have their entries, others do not: {found:?}");
    found[0]
}

#[test]
fn a_power_cut_leaves_ingests_that_end_together_in_all_keyspaces_or_in_none() {
    let (mut all, mut nothing) = (0, 0);
    for journal in [Journal::Ext4Like, Journal::None] {
        for cut in 0.. {
            let machine = SimEnv::new(SimConfig { seed: 5, journal, ..SimConfig::default() });
            let done = machine.simulate(move |env| ingest_together(&env, |env| env.cut_after(cut)));
            for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
                let _replay = Replay(format!("{journal:?}, cut at {cut}, {survival:?}"));
                let there = machine.crash(survival).simulate(|env| {
                    let db = open(&env, &tiny()).unwrap();
                    let there = has_ingested(&db);
                    assert!(db.verify().unwrap().problems.is_empty());
                    db.compact().unwrap();
                    assert_eq!(has_ingested(&db), there);
                    there
                });
                assert!(there || !done);
                *(if there { &mut all } else { &mut nothing }) += 1;
            }
            if done {
                break;
            }
        }
    }
    assert!(all > 5 && nothing > 30, "{all} times all, {nothing} times nothing");
}

#[test]
fn a_failing_call_leaves_ingests_that_end_together_in_all_keyspaces_or_in_none() {
    for error in [FaultError::Io, FaultError::NoSpace] {
        let mut failed = 0;
        for call in 1.. {
            let _replay = Replay(format!("{error:?} of call {call}"));
            let machine = SimEnv::new(SimConfig { seed: 6, ..SimConfig::default() });
            let (done, fired) = machine.simulate(move |env| {
                let fault = |env: &SimEnv| {
                    let target = FaultTarget::Call(env.calls() + call);
                    env.fault(FaultRule { target, error, sticky: false, partial: false });
                };
                let done = ingest_together(&env, fault);
                (done, env.faults_fired() > 0)
            });
            failed += u64::from(!done);
            machine.clear_faults();
            let there = machine.crash(Survival::Everything).simulate(|env| {
                let db = open(&env, &tiny()).unwrap();
                assert!(db.verify().unwrap().problems.is_empty());
                has_ingested(&db)
            });
            assert!(there || !done);
            if !fired {
                break;
            }
        }
        assert!(failed > 3, "{failed} calls have failed an ingest");
    }
}

#[test]
fn ingests_that_cannot_end_together_change_nothing() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let [one, two] = ["one", "two"].map(|name| db.keyspace(name).unwrap());
        let started = |space: &Keyspace, keys| {
            let mut ingest = space.ingest().unwrap();
            push(&mut ingest, keys, 1, 0).unwrap();
            ingest
        };
        let twice = [started(&one, 0..50), started(&two, 0..50), started(&one, 50..90)];
        assert_eq!(Ingest::finish_together(twice).unwrap_err().kind(), ErrorKind::InvalidInput);
        let elsewhere = Db::builder("/elsewhere").env(env.clone()).options(tiny()).open().unwrap();
        let mut strange = elsewhere.ingest().unwrap();
        strange.push("a", "1").unwrap();
        let refused = Ingest::finish_together([started(&one, 0..50), strange]);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        let doomed = db.keyspace("doomed").unwrap();
        let ingests = [started(&one, 0..50), started(&doomed, 0..50)];
        db.drop_keyspace("doomed").unwrap();
        assert_eq!(Ingest::finish_together(ingests).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(one.is_empty().unwrap() && two.is_empty().unwrap() && elsewhere.is_empty().unwrap());
        Ingest::finish_together([]).unwrap();
        // One without entries beside one with some.
        Ingest::finish_together([one.ingest().unwrap(), started(&two, 0..50)]).unwrap();
        assert!(one.is_empty().unwrap());
        assert_eq!((two.iter().unwrap().count(), two.approximate_len()), (50, 50));
        assert_eq!(db.stats().user_ops_written, 50);
    });
}

#[test]
fn readers_see_ingests_that_end_together_at_one_moment_and_none_waits_for_another() {
    for seed in 0..6 {
        let _replay = Replay(format!("seed {seed}"));
        let config = SimConfig { seed, preemption_percent: 60, ..SimConfig::default() };
        SimEnv::run(config, |env| {
            let db = open(&env, &tiny()).unwrap();
            let spaces = SPACES.map(|name| db.keyspace(name).unwrap());
            let threads = (0..3).map(|thread: usize| {
                let (db, mut spaces) = (db.clone(), spaces.clone());
                let body = move || {
                    // Each in another order.
                    spaces.rotate_left(thread);
                    for round in 0..8 {
                        let ingests = spaces.iter().map(|space| {
                            let mut ingest = space.ingest().unwrap();
                            push(&mut ingest, 0..60, 1, thread * 100 + round).unwrap();
                            ingest
                        });
                        Ingest::finish_together(ingests).unwrap();
                        spaces[0].put("~", "beside").unwrap();
                        let snapshot = db.snapshot();
                        let mut seen = spaces.iter().map(|space| {
                            let mut found = entries(snapshot.keyspace(space).iter().unwrap());
                            found.retain(|(key, _)| key != b"~");
                            assert_eq!(found.len(), 60);
                            found
                        });
                        let first = seen.next().unwrap();
                        assert!(seen.all(|other| other == first), "two keyspaces are of two moments");
                    }
                };
                env.spawn("user", Priority::Normal, Box::new(body)).unwrap()
            });
            threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join());
            assert!(db.verify().unwrap().problems.is_empty());
        });
    }
}

/// All of what is ingested fits into level 1.
fn one_level() -> Options {
    let tree = tiny().tree.with(|tree| *tree.level1_bytes() = 4 << 20);
    Options { tree, ..tiny() }
}

/// Runs of all levels, entries in them, and compactions so far.
fn runs(db: &Db) -> (usize, u64, u64) {
    let shape = db.keyspace("default").unwrap().shape();
    let sum = |of: fn(&terrace::LevelShape) -> u64| shape.levels.iter().map(of).sum::<u64>();
    (sum(|level| level.runs as u64) as usize, sum(|level| level.entries), db.stats().compaction.jobs)
}

/// All keys of a round, with values of a size of its own.
fn ingest_all(db: &Db, round: usize) {
    let mut ingest = db.ingest().unwrap();
    (0..1000).for_each(|n| ingest.push(key(n), value(n, round).repeat(1 + round % 3)).unwrap());
    ingest.finish().unwrap();
}

fn holds_all(entries: impl Iterator<Item = (Vec<u8>, Vec<u8>)>, round: usize) {
    assert!(
        entries.eq((0..1000).map(|n| (key(n), value(n, round).repeat(1 + round % 3)))),
        "of round {round}"
    );
}

#[test]
fn the_same_keys_again_leave_one_run_and_no_compaction_reads_or_writes_for_it() {
    SimEnv::run(SimConfig::default(), |env| {
        let mut db = open(&env, &one_level()).unwrap();
        for round in 0..10 {
            ingest_all(&db, round);
            db.wait_idle().unwrap();
            assert_eq!(runs(&db), (1, 1000, 0), "round {round}");
            holds_all(entries(db.iter().unwrap()).into_iter(), round);
            if round == 4 {
                // The manifest remembers which keys there are.
                db.close().unwrap();
                db = open(&env, &one_level()).unwrap();
            }
        }
        let compaction = db.stats().compaction;
        assert!(compaction.hidden_tables > 20 && compaction.bytes_out == 0, "{compaction:?}");
        // What has another key, or one key less, is merged.
        let tables = db.stats().compaction.hidden_tables;
        let mut ingest = db.ingest().unwrap();
        (0..1000).filter(|n| *n != 500).for_each(|n| ingest.push(key(n), "last").unwrap());
        ingest.finish().unwrap();
        db.wait_idle().unwrap();
        assert!(db.stats().compaction.hidden_tables > tables, "where the keys are the same");
        assert_eq!(db.iter().unwrap().count(), 1000);
        assert_eq!(db.get(key(500)).unwrap().unwrap(), value(500, 9));
        // What has been merged tells its keys as well.
        db.compact().unwrap();
        let jobs = runs(&db).2;
        assert!(jobs > 0);
        ingest_all(&db, 10);
        db.wait_idle().unwrap();
        assert_eq!(runs(&db), (1, 1000, jobs));
        holds_all(entries(db.iter().unwrap()).into_iter(), 10);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    });
}

#[test]
fn what_a_snapshot_sees_stays_under_the_same_keys_until_it_goes() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &one_level()).unwrap();
        ingest_all(&db, 0);
        let snapshot = db.snapshot();
        let iterator = db.iter().unwrap();
        (1..4).for_each(|round| ingest_all(&db, round));
        db.wait_idle().unwrap();
        holds_all(entries(snapshot.iter().unwrap()).into_iter(), 0);
        holds_all(entries(db.iter().unwrap()).into_iter(), 3);
        assert_eq!(runs(&db).0, 2, "the first one, and the last");
        drop(snapshot);
        // Nobody calls anything.
        env.sleep(std::time::Duration::from_secs(1));
        assert_eq!(runs(&db), (1, 1000, 0));
        holds_all(entries(iterator).into_iter(), 0);
        db.close().unwrap();
    });
}

/// Two ingests of neighbouring keys lie in one run and have the keys of the older one together. Who began between them sees the
/// one and, of the other's keys, what lies below.
#[test]
fn a_snapshot_between_two_ingests_sees_what_both_together_hide() {
    SimEnv::run(SimConfig::default(), |env| {
        let db = open(&env, &tiny()).unwrap();
        let ingest = |keys, round| {
            let mut ingest = db.ingest().unwrap();
            push(&mut ingest, keys, 1, round).unwrap();
            ingest.finish().unwrap();
        };
        // So much that the tree is deep enough for one run below the other.
        ingest(1000..2500, 0);
        ingest(0..40, 0);
        ingest(0..20, 1);
        let snapshot = db.snapshot();
        ingest(20..40, 2);
        db.wait_idle().unwrap();
        let of =
            |rounds: [usize; 2]| (0..40).map(move |n| (key(n), value(n, rounds[n / 20]))).collect::<Vec<_>>();
        assert!(entries(snapshot.range(..key(40)).unwrap()) == of([1, 0]));
        assert!(entries(db.range(..key(40)).unwrap()) == of([1, 2]));
        assert_eq!(db.stats().compaction.hidden_tables, 0);
        drop(snapshot);
        env.sleep(std::time::Duration::from_secs(1));
        assert_eq!(db.stats().compaction.hidden_tables, 1);
        assert!(entries(db.range(..key(40)).unwrap()) == of([1, 2]));
        db.close().unwrap();
    });
}

/// What is under an older run comes back for nobody when that goes: deletes of the newer one hide it as well, in keyspaces
/// whose values expire, too.
#[test]
fn nothing_comes_back_when_hidden_tables_go() {
    for (seed, ttl) in (0..12).zip([None, Some(std::time::Duration::from_secs(90))].into_iter().cycle()) {
        let _replay = Replay(format!("seed {seed}"));
        SimEnv::run(SimConfig { seed, ..SimConfig::default() }, move |env| {
            let mut rng = Rng::new(seed);
            let mut db = open(&env, &tiny()).unwrap();
            let options = KeyspaceOptions { ttl, ..KeyspaceOptions::default() };
            let mut space = db.keyspace_with("space", options).unwrap();
            let (mut model, mut snapshots) = (Model::new(), Vec::new());
            let mut hidden = 0;
            for round in 0..40 {
                let from = 10 * rng.below(80);
                match rng.below(8) {
                    0 => (from..from + 30).step_by(1 + rng.below(9)).for_each(|n| {
                        space.put(key(n), value(n, round)).unwrap();
                        model.insert(key(n), value(n, round));
                    }),
                    1 => {
                        space.delete_range(key(from)..key(from + 50)).unwrap();
                        model.retain(|name, _| *name < key(from) || *name >= key(from + 50));
                    }
                    2 => space.compact_range(..).unwrap(),
                    _ => {
                        // One of a few sets of keys; some are deleted.
                        let (step, deleted) = (1 + rng.below(3), 2 + rng.below(8));
                        let mut ingest = space.ingest().unwrap();
                        let span = [0..800, 0..800, 0..400, 400..800][rng.below(4)].clone();
                        for n in span.step_by(step) {
                            if n % deleted == 0 {
                                ingest.delete(key(n)).unwrap();
                                model.remove(&key(n));
                            } else {
                                ingest.push(key(n), value(n, round)).unwrap();
                                model.insert(key(n), value(n, round));
                            }
                        }
                        ingest.finish().unwrap();
                    }
                }
                match rng.below(6) {
                    0 => {
                        snapshots.clear();
                        drop(space);
                        hidden += db.stats().compaction.hidden_tables;
                        db.close().unwrap();
                        db = open(&env, &tiny()).unwrap();
                        space = db.existing_keyspace("space").unwrap().unwrap();
                    }
                    1 | 2 => snapshots.push((db.snapshot(), model.clone())),
                    3 if !snapshots.is_empty() => drop(snapshots.remove(rng.below(snapshots.len()))),
                    _ => db.wait_idle().unwrap(),
                }
                let get = |key: &[u8]| space.get(key).unwrap().map(|value| value.to_vec());
                check(&model, get, |from, to| space.range(from..to).unwrap(), &mut rng);
                for (snapshot, model) in &snapshots {
                    let snapshot = snapshot.keyspace(&space);
                    let get = |key: &[u8]| snapshot.get(key).unwrap().map(|value| value.to_vec());
                    check(model, get, |from, to| snapshot.range(from..to).unwrap(), &mut rng);
                }
            }
            assert!(db.verify().unwrap().problems.is_empty());
            assert!(hidden + db.stats().compaction.hidden_tables > 0, "nothing was hidden");
            if ttl.is_some() {
                env.sleep(std::time::Duration::from_secs(100));
                assert_eq!(space.iter().unwrap().count(), 0);
            }
        });
    }
}

#[test]
fn a_power_cut_while_hidden_tables_go_leaves_the_newest_ingest_that_was_acknowledged() {
    for cut in (0..).step_by(3) {
        let _replay = Replay(format!("cut {cut}"));
        let env = SimEnv::new(SimConfig { seed: cut, ..SimConfig::default() });
        env.cut_after(cut);
        let (acknowledged, is_whole) = env.simulate(|env| {
            let Ok(db) = open(&env, &tiny()) else { return (0, false) };
            for round in 0..4 {
                let ingested = db.ingest().and_then(|mut ingest| {
                    push(&mut ingest, 0..500, 5, round)?;
                    ingest.finish()
                });
                if ingested.and_then(|()| db.wait_idle()).is_err() {
                    return (round, false);
                }
            }
            assert!(db.stats().compaction.hidden_tables > 0);
            (4, db.close().is_ok())
        });
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            env.crash(survival).simulate(move |env| {
                let db = open(&env, &tiny()).unwrap();
                let found = entries(db.iter().unwrap());
                let of =
                    |round: usize| (0..500).step_by(5).map(|n| (key(n), value(n, round))).collect::<Vec<_>>();
                let newer = found == of(acknowledged);
                let last = acknowledged.checked_sub(1).map(of).unwrap_or_default();
                assert!(newer || found == last, "{acknowledged} were acknowledged");
                assert!(db.verify().unwrap().problems.is_empty());
            });
        }
        if is_whole {
            return;
        }
    }
}
