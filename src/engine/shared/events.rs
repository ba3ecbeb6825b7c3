//! Events: carried from where something happens, under whatever locks, to the listener, under no lock.
//!
//! Events wait in a queue for a thread that does nothing else. The queue is bounded: a listener that is too slow
//! loses events and costs nothing else.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::shared::job::Job;
use crate::engine::shared::load_sample::LoadSample;
use crate::engine::shared::pressure::StallReason;
use crate::env::sync::{Condvar, OrderedMutex};
use crate::env::{Env, Priority, Thread};
use crate::error::Error;
use crate::events::{EventListener, JobBegin, JobEnd, Stall};
use crate::stats::LoadStats;

/// Events that may wait for the listener.
const WAITING_MAX: usize = 1024;

/// The listener of a store, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Listener(pub(crate) Option<Arc<dyn EventListener>>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "no listener" })
    }
}

/// Something to tell.
#[derive(Debug)]
pub(in crate::engine) enum Event {
    JobBegin(Job, JobBegin),
    JobEnd(Job, JobEnd),
    StallBegin(Stall),
    StallEnd(Stall, Duration),
    Load(Box<(LoadStats, LoadSample)>),
    BackgroundError(Error),
    Poisoned(Error),
}

/// The way to the listener.
#[derive(Debug)]
pub(crate) struct Events {
    listener: Listener,
    queue: OrderedMutex<Queue>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Event>,
    /// Events that found no room, since one was taken out.
    lost: u64,
    stopped: bool,
}

impl Events {
    pub(in crate::engine) fn new(listener: Listener) -> Arc<Self> {
        Arc::new(Self { listener, queue: OrderedMutex::leaf(Queue::default()), woken: Condvar::new() })
    }

    pub(in crate::engine) fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// Tells the listener, if there is one, a moment later. Takes a leaf lock for a moment and calls nothing.
    pub(in crate::engine) fn notify(&self, event: impl FnOnce() -> Event) {
        if self.listener.0.is_none() {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.waiting.len() < WAITING_MAX {
            queue.waiting.push_back(event());
        } else {
            queue.lost += 1;
        }
        self.woken.notify_one();
    }

    /// Starts the thread that calls the listener.
    pub(in crate::engine) fn start(self: &Arc<Self>, env: &dyn Env) -> std::io::Result<Option<Thread>> {
        let Some(listener) = self.listener.0.clone() else { return Ok(None) };
        let events = self.clone();
        let body = move || events.deliver(&*listener);
        env.spawn("terrace-events", Priority::Background, Box::new(body)).map(Some)
    }

    /// Ends the thread after the events that wait. Nobody waits for it: the listener may take for ever.
    pub(in crate::engine) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.woken.notify_one();
    }

    fn deliver(&self, listener: &dyn EventListener) {
        let mut queue = self.queue.lock();
        loop {
            let Some(event) = queue.waiting.pop_front() else {
                if queue.stopped {
                    return;
                }
                self.woken.wait(&mut queue);
                continue;
            };
            let lost = if queue.waiting.is_empty() { std::mem::take(&mut queue.lost) } else { 0 };
            drop(queue);
            // A listener's panic has been reported by the panic hook and is nobody else's.
            let _ = catch_unwind(AssertUnwindSafe(|| event.notify(listener)));
            if lost > 0 {
                let _ = catch_unwind(AssertUnwindSafe(|| listener.lost(lost)));
            }
            queue = self.queue.lock();
        }
    }
}

impl Event {
    fn notify(&self, listener: &dyn EventListener) {
        match self {
            Self::JobBegin(Job::Flush, flush) => listener.flush_begin(flush),
            Self::JobEnd(Job::Flush, flush) => listener.flush_end(flush),
            Self::JobBegin(Job::Compaction, compaction) => listener.compaction_begin(compaction),
            Self::JobEnd(Job::Compaction, compaction) => listener.compaction_end(compaction),
            Self::JobBegin(Job::Rewrite, rewrite) => listener.rewrite_begin(rewrite),
            Self::JobEnd(Job::Rewrite, rewrite) => listener.rewrite_end(rewrite),
            Self::StallBegin(stall) => listener.stall_begin(stall),
            Self::StallEnd(stall, time) => listener.stall_end(stall, *time),
            Self::Load(sample) => {
                listener.load(&sample.0);
                listener.load_sample(&sample.1.to_string());
            }
            Self::BackgroundError(error) => listener.background_error(error),
            Self::Poisoned(error) => listener.poisoned(error),
        }
    }
}

/// A stall that the listener has heard of.
#[derive(Debug)]
pub(crate) struct NotifiedStall {
    reason: StallReason,
    stopped: bool,
    since: Duration,
}

impl NotifiedStall {
    fn describe(&self) -> Stall {
        Stall { reason: self.reason.to_string(), stopped: self.stopped }
    }
}

impl Events {
    /// Tells of a stall that begins, changes or ends. `notified` is what the listener has heard last.
    pub(in crate::engine) fn notify_stall(
        &self,
        env: &dyn Env,
        notified: &mut Option<NotifiedStall>,
        now: Option<(StallReason, bool)>,
    ) {
        if notified.as_ref().map(|stall| (stall.reason, stall.stopped)) == now {
            return;
        }
        let time = env.now();
        if let Some(stall) = notified.take() {
            self.notify(|| Event::StallEnd(stall.describe(), time.saturating_sub(stall.since)));
        }
        if let Some((reason, stopped)) = now {
            let stall = notified.insert(NotifiedStall { reason, stopped, since: time });
            self.notify(|| Event::StallBegin(stall.describe()));
        }
    }
}
