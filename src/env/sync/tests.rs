//! Tests of locks with real threads; those with simulated threads are in `simulated::tests::threads`.

use std::sync::Arc;

use super::*;
use crate::env::posix::PosixEnv;
use crate::env::{Priority, Thread};

fn spawn(body: impl FnOnce() + Send + 'static) -> Thread {
    PosixEnv::shared().spawn("test", Priority::Normal, Box::new(body)).unwrap()
}

#[test]
fn increments_of_real_threads_add_up() {
    let sum = Arc::new(Mutex::new(0));
    let threads = [(); 4].map(|()| {
        let sum = Arc::clone(&sum);
        spawn(move || (0..10_000).for_each(|_| *sum.lock() += 1))
    });
    threads.into_iter().for_each(Thread::join);
    assert_eq!(*sum.lock(), 40_000);
}

#[test]
fn a_held_mutex_is_not_taken() {
    let mut mutex = Mutex::new(1);
    let guard = mutex.lock();
    assert!(mutex.try_lock().is_none());
    drop(guard);
    *mutex.try_lock().unwrap() += 1;
    *mutex.get_mut() += 1;
    assert_eq!(mutex.into_inner(), 3);
}

#[test]
fn a_panic_releases_the_mutex() {
    let mutex = Arc::new(Mutex::new(7));
    let other = Arc::clone(&mutex);
    spawn(move || {
        let _guard = other.lock();
        panic!("on purpose");
    })
    .join();
    assert_eq!(*mutex.lock(), 7);
}

#[test]
fn a_real_waiter_is_notified() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&shared);
    let mut ready = shared.0.lock();
    let thread = spawn(move || {
        *other.0.lock() = true;
        other.1.notify_one();
    });
    while !*ready {
        shared.1.wait(&mut ready);
    }
    drop(ready);
    thread.join();
}

#[test]
fn a_real_wait_ends_when_its_time_runs_out() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    assert!(condvar.wait_for(&mut mutex.lock(), Duration::from_millis(1)));
}
