//! Tests of the scheduler and of virtual time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::env::simulated::{DeviceModel, Survival};
use crate::env::sync::{Condvar, Mutex, OrderedMutex, Rank};
use crate::env::{Priority, Thread};

fn config(seed: u64) -> SimConfig {
    SimConfig { seed, ..SimConfig::default() }
}

fn spawn(env: &SimEnv, name: &str, body: impl FnOnce() + Send + 'static) -> Thread {
    env.spawn(name, Priority::Normal, Box::new(body)).unwrap()
}

/// What a failed simulation says.
fn failure(body: impl FnOnce(Arc<SimEnv>) + Send + 'static) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| SimEnv::run(config(1), body))).unwrap_err();
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

/// Four threads append their letters to a shared text while they write files.
fn interleaving(seed: u64) -> (String, u64, Duration) {
    SimEnv::run(SimConfig { device: DeviceModel::nvme(), ..config(seed) }, |env| {
        let text = Arc::new(Mutex::new(String::new()));
        let threads: Vec<Thread> = ["a", "b", "c", "d"]
            .map(|name| {
                let (env, text) = (Arc::clone(&env), Arc::clone(&text));
                spawn(&Arc::clone(&env), name, move || {
                    let file = env.create(p(&format!("/{name}"))).unwrap();
                    for round in 0..5 {
                        file.write_at(round * 100, &[0; 100]).unwrap();
                        text.lock().push_str(name);
                        file.sync().unwrap();
                    }
                })
            })
            .into();
        threads.into_iter().for_each(Thread::join);
        (text.lock().clone(), env.fingerprint(), env.now())
    })
}

#[test]
fn a_seed_determines_the_whole_run() {
    for seed in 0..10 {
        assert_eq!(interleaving(seed), interleaving(seed));
    }
    let different: std::collections::BTreeSet<String> = (0..10).map(|seed| interleaving(seed).0).collect();
    assert!(different.len() > 5, "{different:?}");
}

#[test]
fn threads_that_only_take_locks_are_preempted_there_if_asked_for() {
    let orders = |preempt_at_locks| {
        let order = |seed| {
            let config = SimConfig { preempt_at_locks, preemption_percent: 50, ..config(seed) };
            SimEnv::run(config, |env| {
                let text = Arc::new(Mutex::new(String::new()));
                let threads = ["a", "b"].map(|name| {
                    let text = Arc::clone(&text);
                    spawn(&env, name, move || (0..5).for_each(|_| text.lock().push_str(name)))
                });
                threads.into_iter().for_each(Thread::join);
                text.lock().clone()
            })
        };
        assert_eq!(order(7), order(7));
        (0..50).map(order).collect::<std::collections::BTreeSet<String>>()
    };
    let without = orders(false);
    assert!(without.iter().map(String::as_str).eq(["aaaaabbbbb", "bbbbbaaaaa"]), "{without:?}");
    assert_eq!(orders(true).len() > 10, cfg!(debug_assertions));
}

#[test]
fn a_mutex_excludes_across_waits() {
    for seed in 0..20 {
        let (most, sum) = SimEnv::run(config(seed), |env| {
            let inside = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(0)));
            let threads: Vec<Thread> = (0..4)
                .map(|_| {
                    let (env, inside) = (Arc::clone(&env), Arc::clone(&inside));
                    spawn(&Arc::clone(&env), "worker", move || {
                        for _ in 0..10 {
                            let (now, most, sum) = &*inside;
                            let mut sum = sum.lock();
                            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            env.sleep(Duration::from_micros(1));
                            *sum += 1;
                            now.fetch_sub(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(Thread::join);
            let sum = *inside.2.lock();
            (inside.1.load(Ordering::SeqCst), sum)
        });
        assert_eq!((most, sum), (1, 40));
    }
}

#[test]
fn sleeping_threads_wake_in_the_order_of_time() {
    let (order, now) = SimEnv::run(config(3), |env| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads = [30, 10, 20].map(|millis| {
            let (env, order) = (Arc::clone(&env), Arc::clone(&order));
            spawn(&Arc::clone(&env), "sleeper", move || {
                env.sleep(Duration::from_millis(millis));
                order.lock().push((millis, env.now()));
            })
        });
        threads.into_iter().for_each(Thread::join);
        (order.lock().clone(), env.now())
    });
    let at = |millis| (millis, Duration::from_millis(millis));
    assert_eq!(order, [at(10), at(20), at(30)]);
    assert_eq!(now, Duration::from_millis(30));
}

#[test]
fn concurrent_work_queues_at_the_device() {
    let model = DeviceModel { flush_latency: Duration::from_millis(10), ..DeviceModel::instant() };
    let ends = SimEnv::run(config(0), move |env| {
        for dir in ["/one", "/two"] {
            env.create_dir(p(dir)).unwrap();
            env.add_device(p(dir), model, 1 << 30);
        }
        let threads = ["/one/a", "/one/b", "/two/c"].map(|path| {
            let env = Arc::clone(&env);
            spawn(&Arc::clone(&env), path, move || {
                let file = env.create(p(path)).unwrap();
                file.write_at(0, &[1]).unwrap();
                file.sync().unwrap();
            })
        });
        threads.into_iter().for_each(Thread::join);
        env.now()
    });
    assert_eq!(ends, Duration::from_millis(40));
}

#[test]
fn notifications_reach_waiters() {
    for seed in 0..20 {
        let served = SimEnv::run(config(seed), |env| {
            let shared = Arc::new((Mutex::new((0, false)), Condvar::new()));
            let workers: Vec<Thread> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    spawn(&env, "worker", move || {
                        let (queue, changed) = &*shared;
                        let mut queue = queue.lock();
                        while !queue.1 {
                            changed.wait(&mut queue);
                        }
                        queue.0 += 1;
                        changed.notify_one();
                    })
                })
                .collect();
            env.sleep(Duration::from_secs(1));
            shared.0.lock().1 = true;
            shared.1.notify_one();
            workers.into_iter().for_each(Thread::join);
            shared.0.lock().0
        });
        assert_eq!(served, 3);
    }
}

#[test]
fn a_wait_ends_when_its_time_runs_out() {
    SimEnv::run(config(5), |env| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let mut guard = shared.0.lock();
        assert!(shared.1.wait_for(&mut guard, Duration::from_millis(7)));
        assert_eq!(env.now(), Duration::from_millis(7));
        let (other, sleeper) = (Arc::clone(&shared), Arc::clone(&env));
        let thread = spawn(&env, "notifier", move || {
            sleeper.sleep(Duration::from_millis(2));
            *other.0.lock() = true;
            other.1.notify_all();
        });
        while !*guard {
            assert!(!shared.1.wait_for(&mut guard, Duration::from_secs(1)));
        }
        assert_eq!(env.now(), Duration::from_millis(9));
        drop(guard);
        thread.join();
    });
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let message = failure(|env| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let (other, sleeper) = (Arc::clone(&locks), Arc::clone(&env));
        let thread = spawn(&env, "reversed", move || {
            let _second = other.1.lock();
            sleeper.sleep(Duration::from_millis(1));
            let _first = other.0.lock();
        });
        let _first = locks.0.lock();
        env.sleep(Duration::from_millis(1));
        let _second = locks.1.lock();
        thread.join();
    });
    assert!(message.starts_with("deadlock at 1ms of the simulation with seed 1"), "{message}");
    assert!(
        message.contains("`main` waits for a mutex") && message.contains("`reversed` waits"),
        "{message}"
    );
}

#[test]
fn a_lost_notification_is_a_deadlock() {
    let message = failure(|_| {
        let (mutex, condvar) = (Mutex::new(()), Condvar::new());
        condvar.notify_all();
        condvar.wait(&mut mutex.lock());
    });
    assert!(message.contains("`main` waits for a notification"), "{message}");
}

#[test]
fn a_panic_in_a_thread_fails_the_run() {
    let message = failure(|env| {
        let thread = spawn(&env, "falls", || panic!("on purpose"));
        thread.join();
        unreachable!("the run has failed");
    });
    assert_eq!(message, "on purpose");
    assert_eq!(failure(|_| panic!("in the closure")), "in the closure");
}

#[test]
fn a_thread_that_outlives_the_closure_is_joined() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    SimEnv::run(config(0), move |env| {
        let sleeper = Arc::clone(&env);
        spawn(&env, "late", move || {
            sleeper.sleep(Duration::from_secs(5));
            count.fetch_add(1, Ordering::SeqCst);
        });
    });
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[test]
fn a_thread_that_never_ends_is_named() {
    let message = failure(|env| {
        let poller = Arc::clone(&env);
        spawn(&env, "poller", move || {
            loop {
                poller.sleep(Duration::from_secs(1));
            }
        });
    });
    assert!(message.starts_with("threads are left over") && message.contains("`poller` sleeps"), "{message}");
}

#[test]
fn a_machine_restarts_within_a_simulation() {
    let found = SimEnv::run(config(9), |env| {
        let file = named(&env, "/f");
        file.write_at(0, b"x").unwrap();
        file.sync().unwrap();
        env.cut_after(0);
        let other = Arc::clone(&file);
        spawn(&env, "writer", move || assert!(other.write_at(0, b"y").is_err())).join();
        env.sleep(Duration::from_secs(1));
        let restarted = env.crash(Survival::Nothing);
        assert_eq!(restarted.now(), env.now());
        let reader = Arc::clone(&restarted);
        spawn(&restarted, "reader", move || reader.sleep(Duration::from_secs(1))).join();
        assert_eq!(SimEnv::new(config(1)).now(), Duration::from_secs(2));
        restarted.read_file(p("/f")).unwrap()
    });
    assert_eq!(found, b"x");
}

#[test]
fn a_sync_covers_only_what_was_done_when_it_began() {
    let device = DeviceModel { flush_latency: Duration::from_millis(10), ..DeviceModel::instant() };
    let kept = SimEnv::run(SimConfig { device, ..config(2) }, |env| {
        let file = named(&env, "/f");
        file.write_at(0, b"before").unwrap();
        let (writer, sleeper) = (Arc::clone(&file), Arc::clone(&env));
        let thread = spawn(&env, "writer", move || {
            sleeper.sleep(Duration::from_millis(5));
            writer.write_at(3, b"DURING").unwrap();
        });
        file.sync().unwrap();
        thread.join();
        env.crash(Survival::Nothing).read_file(p("/f")).unwrap()
    });
    assert_eq!(kept, b"before");
}

#[test]
fn one_notification_wakes_one_waiter() {
    let woken = SimEnv::run(config(4), |env| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let threads = [(); 3].map(|()| {
            let shared = Arc::clone(&shared);
            spawn(&env, "waiter", move || {
                let mut woken = shared.0.lock();
                if !shared.1.wait_for(&mut woken, Duration::from_secs(9)) {
                    *woken += 1;
                }
            })
        });
        env.sleep(Duration::from_secs(1));
        shared.1.notify_one();
        threads.into_iter().for_each(Thread::join);
        assert_eq!(env.now(), Duration::from_secs(9));
        *shared.0.lock()
    });
    assert_eq!(woken, 1);
}

#[test]
#[cfg(debug_assertions)]
fn the_longest_hold_of_each_rank_is_known_without_waits_for_a_condition() {
    const MS: Duration = Duration::from_millis(1);
    let machine = SimEnv::new(config(1));
    machine.simulate(|env| {
        let writer = OrderedMutex::new(Rank::Writer, ());
        let (leaf, condvar) = (OrderedMutex::leaf(()), Condvar::new());
        for sleep in [2 * MS, 5 * MS, 3 * MS] {
            let mut held = writer.lock();
            env.sleep(sleep);
            condvar.wait_for(&mut held, 100 * MS);
            let _leaf = leaf.lock();
            env.sleep(MS);
        }
    });
    let longest: Vec<_> = machine.longest_holds().iter().map(|hold| (hold.rank, hold.time)).collect();
    assert_eq!(longest, [(Rank::Writer, 5 * MS), (Rank::Leaf, MS)]);
    assert!(machine.longest_holds()[0].taken_at.file().ends_with("threads.rs"));
}
