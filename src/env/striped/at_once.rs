//! Tasks that are done at the same time, one for each member of a stripe.

use std::io;
use std::sync::Arc;

use crate::env::sync::Mutex;
use crate::env::{Env, Priority};

/// What is to be done for a member.
pub(super) type Task<T> = Box<dyn FnOnce() -> io::Result<T> + Send>;

/// Where a task waits for its thread, and then its result.
enum Slot<T> {
    Waiting(Task<T>),
    Running,
    Done(io::Result<T>),
}

/// Runs all `tasks`, each but the first in a thread of its own, and returns once the last has ended: what they have returned, in
/// their order, or the first error among that. A task for which there is no thread is run by the caller.
pub(super) fn at_once<T: Send + 'static>(env: &dyn Env, tasks: Vec<Task<T>>) -> io::Result<Vec<T>> {
    let slots: Vec<_> = tasks.into_iter().map(|task| Arc::new(Mutex::new(Slot::Waiting(task)))).collect();
    let start = |slot: &Arc<Mutex<Slot<T>>>| {
        let slot = slot.clone();
        env.spawn("terrace-stripe", Priority::Normal, Box::new(move || run(&slot))).ok()
    };
    let threads: Vec<_> = slots.iter().skip(1).map(start).collect();
    slots.iter().take(1).for_each(|slot| run(slot));
    for (slot, thread) in slots.iter().skip(1).zip(threads) {
        match thread {
            Some(thread) => thread.join(),
            None => run(slot),
        }
    }
    let results = slots.iter().map(|slot| match std::mem::replace(&mut *slot.lock(), Slot::Running) {
        Slot::Done(result) => result,
        Slot::Waiting(_) | Slot::Running => Err(io::Error::other("a thread of a stripe has panicked")),
    });
    results.collect()
}

fn run<T>(slot: &Mutex<Slot<T>>) {
    let taken = std::mem::replace(&mut *slot.lock(), Slot::Running);
    if let Slot::Waiting(task) = taken {
        let result = task();
        *slot.lock() = Slot::Done(result);
    }
}
