//! Tickets: they tell when a buffered write has become durable, without a thread that waits for it.
//!
//! Two threads serve all tickets. Each starts when it is first needed.
//!
//! * The *syncer* makes the log durable for all tickets that were asked for by then. Tickets that come during a sync
//!   share the next one, with each other and with synced writes ([`SyncGroup`](super::commit::SyncGroup)).
//! * The *teller* calls the callbacks, under no lock. A slow callback delays other callbacks and no sync. A callback
//!   that panics ends only itself.
//!
//! # Invariants
//!
//! * A ticket succeeds only after a sync that began when all of its write was with the operating system, and that
//!   ended well (G2). Segments do not matter: a sync covers all of them, oldest first. A segment that is gone by then
//!   holds nothing that is not in a table.
//! * When the store is poisoned, every ticket that is not durable by then fails, because nobody syncs any more. The
//!   first outcome stands.
//! * Closing syncs once more. What waits then becomes durable or fails.
//!
//! This module owns the number up to which writes count as durable, and the callbacks that wait for it. It does not
//! hold the engine, so a ticket keeps no store open. Closing does not wait for the teller (nor for the thread of the
//! events); the teller ends when it has called what is left.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::path::WritePath;
use crate::engine::shared::wake::Waiters;
use crate::env::sync::{Condvar, OrderedMutex, Rank};
use crate::env::{Env, Priority, Thread};
use crate::error::{Error, ErrorKind, Result};
use crate::types::Seq;

/// What is called with the outcome.
type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// The tickets of a store.
#[derive(Debug)]
pub(crate) struct Tickets {
    env: Arc<dyn Env>,
    state: OrderedMutex<State>,
    /// The syncer and those who wait for a ticket.
    changed: Condvar,
    /// The teller.
    told: Condvar,
    syncer: OrderedMutex<Syncer>,
    /// Held while a callback is taken in, which may start the teller.
    taking: OrderedMutex<()>,
}

#[derive(Default)]
struct State {
    /// Everything up to here is durable.
    durable: Seq,
    /// Up to here somebody has asked for a sync.
    asked: Seq,
    /// Why nothing more becomes durable.
    ended: Option<Error>,
    /// The syncer is to end.
    stopped: bool,
    /// Callbacks, by the number that they wait for.
    waiting: BTreeMap<Seq, Vec<Callback>>,
    ready: VecDeque<(Callback, Result<()>)>,
    /// The teller runs. It stays while anybody may still have something to tell.
    telling: bool,
    /// A callback is on its way in.
    coming: bool,
}

/// The thread that syncs for tickets.
#[derive(Debug)]
enum Syncer {
    NotStarted,
    Running(Thread),
    Stopped,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "durable up to {}, asked up to {}", self.durable, self.asked)
    }
}

impl State {
    fn outcome(&self, seq: Seq) -> Option<Result<()>> {
        if self.durable >= seq { Some(Ok(())) } else { self.ended.clone().map(Err) }
    }
}

impl Waiters for Tickets {
    fn give_up(&self, cause: &Error) {
        self.end(&Error::poisoned(cause));
    }
}

impl Tickets {
    pub(in crate::engine) fn new(env: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self {
            env,
            state: OrderedMutex::leaf(State::default()),
            changed: Condvar::new(),
            told: Condvar::new(),
            syncer: OrderedMutex::new(Rank::TicketSyncer, Syncer::NotStarted),
            taking: OrderedMutex::new(Rank::TicketTaking, ()),
        })
    }

    /// What has become of the write `seq`, if that is known.
    pub(crate) fn outcome(&self, seq: Seq) -> Option<Result<()>> {
        self.state.lock().outcome(seq)
    }

    /// Waits until it is known.
    pub(crate) fn wait(&self, seq: Seq) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = state.outcome(seq) {
                return outcome;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Has `callback` called once it is known. Fails, and drops it, when there is no thread to call it.
    pub(crate) fn on_durable(self: &Arc<Self>, seq: Seq, callback: Callback) -> Result<()> {
        let _taking = self.taking.lock();
        let mut state = self.state.lock();
        // From here on a teller that is there stays.
        state.coming = true;
        if !state.telling {
            drop(state);
            let tickets = self.clone();
            let body = Box::new(move || tickets.tell());
            let spawned = self.env.spawn("terrace-tickets", Priority::Normal, body);
            state = self.state.lock();
            if let Err(error) = spawned {
                state.coming = false;
                return Err(Error::new(
                    ErrorKind::Io,
                    format!("cannot start a thread for callbacks: {error}"),
                ));
            }
            state.telling = true;
        }
        state.coming = false;
        match state.outcome(seq) {
            Some(outcome) => state.ready.push_back((callback, outcome)),
            None => state.waiting.entry(seq).or_default().push(callback),
        }
        drop(state);
        self.told.notify_one();
        Ok(())
    }

    /// Body of the teller.
    fn tell(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((callback, outcome)) = state.ready.pop_front() {
                drop(state);
                // A panic has been reported by the panic hook and is nobody else's.
                let _ = catch_unwind(AssertUnwindSafe(|| callback(outcome)));
                state = self.state.lock();
            } else if state.ended.is_some() && !state.coming {
                state.telling = false;
                return;
            } else {
                self.told.wait(&mut state);
            }
        }
    }

    /// Everything up to `seq` is durable.
    pub(in crate::engine) fn credit(&self, seq: Seq) {
        let mut state = self.state.lock();
        if state.durable >= seq || state.ended.is_some() {
            return;
        }
        state.durable = seq;
        let later = state.waiting.split_off(&seq.plus(1));
        let done = std::mem::replace(&mut state.waiting, later);
        state.ready.extend(done.into_values().flatten().map(|callback| (callback, Ok(()))));
        self.wake(state.ready.is_empty());
    }

    /// Fails everything that is not durable by now, because nobody knows whether it ever will be. Takes a leaf lock
    /// for a moment and calls nothing.
    pub(in crate::engine) fn end(&self, why: &Error) {
        let mut state = self.state.lock();
        if state.ended.is_none() {
            state.ended = Some(why.clone());
            let failed = std::mem::take(&mut state.waiting);
            let failed = failed.into_values().flatten().map(|callback| (callback, Err(why.clone())));
            state.ready.extend(failed);
        }
        // The teller ends, too.
        self.wake(false);
    }

    fn wake(&self, nothing_to_tell: bool) {
        self.changed.notify_all();
        if !nothing_to_tell {
            self.told.notify_all();
        }
    }

    fn ask(&self, seq: Seq) {
        let mut state = self.state.lock();
        if state.asked < seq {
            state.asked = seq;
            self.changed.notify_all();
        }
    }

    /// Ends the syncer, which may be in a sync, and waits for it.
    pub(in crate::engine) fn stop_syncer(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
        let syncer = std::mem::replace(&mut *self.syncer.lock(), Syncer::Stopped);
        if let Syncer::Running(thread) = syncer {
            thread.join();
        }
    }
}

impl WritePath {
    /// A ticket for a write that `commit` makes and numbers. Its threads are started first, so that no write succeeds
    /// whose ticket fails.
    pub(crate) fn commit_for_ticket(self: &Arc<Self>, commit: impl FnOnce() -> Result<Seq>) -> Result<Seq> {
        self.start_syncer()?;
        let seq = commit()?;
        self.tickets.ask(seq);
        Ok(seq)
    }

    /// A ticket for everything that is acknowledged by now.
    pub(crate) fn sync_for_ticket(self: &Arc<Self>) -> Result<Seq> {
        self.health.check_writable()?;
        self.commit_for_ticket(|| Ok(self.logged()))
    }

    fn start_syncer(self: &Arc<Self>) -> Result<()> {
        self.writer()?;
        let mut syncer = self.tickets.syncer.lock();
        match *syncer {
            Syncer::Running(_) => {}
            Syncer::Stopped => self.health.check_open()?,
            Syncer::NotStarted => {
                let path = self.clone();
                let body = Box::new(move || path.sync_for_tickets());
                let thread = self.env.spawn("terrace-sync", Priority::Normal, body);
                let refused = |e| Error::io("start a background thread for", self.storage.device.dir(), e);
                *syncer = Syncer::Running(thread.map_err(refused)?);
            }
        }
        Ok(())
    }

    /// Body of the syncer.
    fn sync_for_tickets(&self) {
        let tickets = &self.tickets;
        let mut state = tickets.state.lock();
        while !state.stopped && state.ended.is_none() {
            if state.asked <= state.durable {
                tickets.changed.wait(&mut state);
                continue;
            }
            let asked = state.asked;
            drop(state);
            if planted!("ticket-credited-before-its-sync") {
                tickets.credit(asked);
            }
            match self.sync_upto(asked) {
                Ok(()) => tickets.credit(asked),
                Err(error) => {
                    tickets.end(&error);
                    self.background.wake_writers();
                }
            }
            state = tickets.state.lock();
        }
    }
}

#[cfg(test)]
mod tests;
