//! Visibility on simulated threads: order, waiting, and writes that are given up.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::batch::{DEFAULT_KEYSPACE, WriteBatch};
use crate::engine::{Opening, open};
use crate::env::simulated::{SimConfig, SimEnv};
use crate::env::sync::Mutex;
use crate::env::{Env, Priority, Thread};
use crate::error::ErrorKind;
use crate::merge::Cursor;
use crate::options::{Durability, Options};

fn config(seed: u64) -> SimConfig {
    SimConfig { seed, preemption_percent: 50, ..SimConfig::default() }
}

fn spawn(env: &SimEnv, body: impl FnOnce() + Send + 'static) -> Thread {
    env.spawn("test", Priority::Normal, Box::new(body)).unwrap()
}

/// Ranges of one to three numbers, without gaps.
fn batches() -> Vec<(Seq, Seq)> {
    let mut next = 1;
    (0..12)
        .map(|n| {
            let first = next;
            next += 1 + n % 3;
            (Seq(first), Seq(next - 1))
        })
        .collect()
}

#[test]
fn i16_what_is_visible_is_a_prefix_in_whatever_order_writers_finish() {
    for seed in 0..40 {
        SimEnv::run(config(seed), move |env| {
            let shared = Arc::new((Visibility::new(Seq::ZERO), Mutex::new(Vec::new())));
            let writers = batches().into_iter().map(|(first, last)| {
                let (shared, env_of_writer) = (shared.clone(), env.clone());
                spawn(&env, move || {
                    env_of_writer.sleep(Duration::from_micros((first.0 * 7 + seed) % 5));
                    shared.1.lock().push((first, last));
                    shared.0.publish(first, last).unwrap();
                    assert!(shared.0.newest() >= last, "returns before its own is visible");
                })
            });
            let writers: Vec<Thread> = writers.collect();
            let mut seen = Seq::ZERO;
            while seen < batches()[11].1 {
                let newest = shared.0.newest();
                assert!(newest >= seen, "what was visible is no longer");
                seen = newest;
                let mut finished = shared.1.lock().clone();
                finished.sort();
                assert!(
                    batches()
                        .iter()
                        .zip(&finished)
                        .take_while(|(_, done)| done.0 <= seen)
                        .all(|(a, b)| a == b)
                );
                assert!(seen == Seq::ZERO || finished.iter().any(|(_, last)| *last == seen), "half a batch");
                env.sleep(Duration::from_micros(1));
            }
            writers.into_iter().for_each(Thread::join);
        });
    }
}

#[test]
fn i16_whoever_waits_for_a_number_sees_everything_up_to_it() {
    for seed in 0..40 {
        SimEnv::run(config(seed), move |env| {
            let visibility = Arc::new(Visibility::new(Seq(10)));
            visibility.wait_for(Seq(10)).unwrap();
            let waiters = [11, 12, 14].map(|seq| {
                let visibility = visibility.clone();
                spawn(&env, move || {
                    visibility.wait_for(Seq(seq)).unwrap();
                    assert!(visibility.newest() >= Seq(seq));
                })
            });
            let later = visibility.clone();
            let behind = spawn(&env, move || later.publish(Seq(13), Seq(14)).unwrap());
            env.sleep(Duration::from_millis(1));
            assert_eq!(visibility.newest(), Seq(10));
            visibility.publish(Seq(11), Seq(12)).unwrap();
            waiters.into_iter().chain([behind]).for_each(Thread::join);
            assert_eq!(visibility.newest(), Seq(14));
        });
    }
}

#[test]
fn i16_nothing_behind_a_gap_is_ever_visible_and_nobody_waits_for_it_for_ever() {
    for seed in 0..40 {
        SimEnv::run(config(seed), move |env| {
            let visibility = Arc::new(Visibility::new(Seq::ZERO));
            let behind = visibility.clone();
            let writer = spawn(&env, move || assert!(behind.publish(Seq(3), Seq(4)).is_err()));
            let waiting = visibility.clone();
            let waiter = spawn(&env, move || assert!(waiting.wait_for(Seq(4)).is_err()));
            visibility.publish(Seq(1), Seq(1)).unwrap();
            // Number 2 never comes.
            visibility.give_up(&Error::new(ErrorKind::Closed, "closed"));
            [writer, waiter].into_iter().for_each(Thread::join);
            assert!(visibility.publish(Seq(5), Seq(5)).is_err());
            assert_eq!(visibility.newest(), Seq(1));
            visibility.wait_for(Seq(1)).unwrap();
        });
    }
}

#[test]
#[should_panic(expected = "I16")]
fn i16_a_number_is_not_published_twice() {
    let visibility = Visibility::new(Seq(7));
    let _ = visibility.publish(Seq(7), Seq(8));
}

/// Writers and somebody who seals, beside each other: every sealed memtable has all that was numbered before, no more.
#[test]
fn i16_a_sealed_memtable_is_complete_and_holds_only_what_is_visible() {
    let mut sealed = 0;
    for seed in 0..16 {
        sealed += SimEnv::run(config(seed), |env| {
            let opening = Opening::of_test(env.clone(), Options::default(), false);
            let engine = open(&opening).unwrap();
            let writers = [(); 3].map(|()| {
                let (engine, env_of_writer) = (engine.clone(), env.clone());
                spawn(&env, move || {
                    for n in 0..20u8 {
                        env_of_writer.sleep(Duration::from_micros(10));
                        let mut batch = WriteBatch::new();
                        batch.put([n], "value").delete_range([n, 2]..[n, 9]).delete([n, 1]);
                        let durability = if n % 4 == 0 { Durability::Synced } else { Durability::Buffered };
                        engine.write.commit(&batch, durability).unwrap();
                    }
                })
            });
            let over = Arc::new(AtomicBool::new(false));
            let (seen, sealing, env_of_sealer) = (over.clone(), engine.clone(), env.clone());
            let sealer = spawn(&env, move || {
                while !seen.load(Ordering::Relaxed) {
                    sealing.write.seal_all().unwrap();
                    env_of_sealer.sleep(Duration::from_micros(10));
                }
            });
            let tree = engine.keyspaces.tree(DEFAULT_KEYSPACE).unwrap();
            let mut found = 0;
            while engine.read.visible() < Seq(180) {
                for sealed in &tree.view_arc().sealed {
                    assert!(sealed.upto <= engine.read.visible());
                    let first = sealed.memtable.min_seq().unwrap();
                    assert_eq!(sealed.memtable.entries(), sealed.upto.0 + 1 - first.0);
                    let mut cursor = sealed.memtable.cursor();
                    cursor.seek_first().unwrap();
                    while cursor.valid() {
                        assert!(cursor.stamp().seq() <= sealed.upto);
                        cursor.next().unwrap();
                    }
                    found += 1;
                }
                env.sleep(Duration::from_micros(10));
            }
            writers.into_iter().for_each(Thread::join);
            over.store(true, Ordering::Relaxed);
            sealer.join();
            engine.close().unwrap();
            found
        });
    }
    assert!(sealed > 10, "{sealed} sealed memtables were seen");
}
