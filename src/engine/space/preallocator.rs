//! Requests for files that are made ahead: whoever needs some asks, and a thread makes them.

use crate::env::sync::{Condvar, OrderedMutex};

/// What the thread is asked for.
#[derive(Debug, Default)]
pub(crate) struct Preallocator {
    state: OrderedMutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that have been made, and that have been served.
    asked: u64,
    served: u64,
    stopped: bool,
}

impl Preallocator {
    /// Has the thread look what is wanted.
    pub(in crate::engine) fn ask(&self) {
        self.state.lock().asked += 1;
        self.changed.notify_all();
    }

    /// Ends the thread; nothing is made from now on.
    pub(in crate::engine) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until all that has been asked for by now has been made, or has failed. It cannot end early: it reads the
    /// number of requests under the lock under which they are counted as served, after they were.
    pub(in crate::engine) fn wait_served(&self) {
        let mut state = self.state.lock();
        let asked = state.asked;
        while !state.stopped && state.served < asked {
            self.changed.wait(&mut state);
        }
    }

    /// Serves requests until it is stopped: calls `make` for all that have been made by then.
    pub(in crate::engine) fn serve(&self, make: impl Fn()) {
        let mut state = self.state.lock();
        while !state.stopped {
            if state.served == state.asked {
                self.changed.wait(&mut state);
                continue;
            }
            let asked = state.asked;
            drop(state);
            make();
            state = self.state.lock();
            state.served = asked;
            self.changed.notify_all();
        }
    }
}
