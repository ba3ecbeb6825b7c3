//! A client: it does operations one after the other, and leaves what it saw to whoever collects the windows.
//!
//! In an open loop, operations arrive on time, whether or not earlier ones are done. The client spins until an arrival: a
//! thread that sleeps is woken late by the scheduler and by the hypervisor, and that would be measured instead of the store. The
//! next operation is made while there is time.
//!
//! When a window is over, its histograms go to the collecting thread, and empty ones come from there, so that a client
//! neither allocates nor adds anything up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use super::operations::Operations;
use super::waits::{ThreadLook, Waits, Watch, attribute};
use super::window::WINDOW;
use crate::Result;
use crate::latency::Latency;
use crate::store::Store;
use crate::workload::Poisson;

/// A look at the thread's counters that is older is taken anew, whatever is due.
const LOOK_AGE_MAX: Duration = Duration::from_millis(1);

/// One that is older is taken anew where there is time.
const LOOK_AGE: Duration = Duration::from_micros(250);

/// So much time must be left for it.
const LOOK_TIME: Duration = Duration::from_micros(10);

/// What a client saw of one kind of operation in one window.
pub struct Seen {
    pub arrival: Latency,
    pub service: Latency,
    pub waits: Waits,
}

/// What a client hands over of one window.
pub struct Part {
    pub reads: Seen,
    pub writes: Seen,
    /// What the client waited for while it had no operation to do: it lost its processor.
    pub between: Waits,
    pub user_bytes: u64,
    /// Bytes that devices read for the client, to a millisecond.
    pub disk_bytes: u64,
}

impl Seen {
    fn new() -> Self {
        Self { arrival: Latency::coarse(), service: Latency::coarse(), waits: Waits::default() }
    }

    fn clear(&mut self) {
        self.arrival.clear();
        self.service.clear();
        self.waits = Waits::default();
    }
}

impl Part {
    pub fn new() -> Self {
        Self {
            reads: Seen::new(),
            writes: Seen::new(),
            between: Waits::default(),
            user_bytes: 0,
            disk_bytes: 0,
        }
    }

    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.between = Waits::default();
        self.user_bytes = 0;
        self.disk_bytes = 0;
    }
}

/// A window that a client has left.
pub struct Left {
    pub client: usize,
    pub window: usize,
    pub part: Box<Part>,
}

/// Where a client notes what it sees.
pub struct Notes {
    client: usize,
    window: usize,
    part: Box<Part>,
    left: Sender<Left>,
    spare: Receiver<Box<Part>>,
}

impl Notes {
    pub fn new(client: usize, left: Sender<Left>, spare: Receiver<Box<Part>>) -> Self {
        Self { client, window: 0, part: Box::new(Part::new()), left, spare }
    }

    /// What belongs to the window of `since_start`.
    fn at(&mut self, since_start: Duration) -> &mut Part {
        let window = (since_start.as_nanos() / WINDOW.as_nanos()) as usize;
        if window > self.window {
            self.hand_over();
            self.window = window;
        }
        &mut self.part
    }

    fn hand_over(&mut self) {
        let empty = self.spare.try_recv().unwrap_or_else(|_| Box::new(Part::new()));
        let part = std::mem::replace(&mut self.part, empty);
        // Whoever collects is gone if the course has failed; then nobody needs it.
        let _ = self.left.send(Left { client: self.client, window: self.window, part });
    }
}

/// A client of one course.
pub struct Client<'a> {
    pub store: &'a dyn Store,
    pub operations: Operations<'a>,
    /// None in a closed loop.
    pub arrivals: Option<Poisson>,
    /// Whether answers must be right.
    pub exact: bool,
    /// From this time of service on, an operation is slow.
    pub slow: Duration,
    /// Length of the course.
    pub time: Duration,
    /// Set when the course is to end at once.
    pub stop: &'a AtomicBool,
    pub notes: Notes,
}

/// What became of a client's operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Answers that were not right.
    pub wrong: u64,
    /// Operations that had arrived and were not begun when the time was up; each counts as long as it had waited.
    pub unfinished: u64,
}

impl Client<'_> {
    /// Does operations from `started` on until the time is up.
    pub fn run(mut self, started: Instant) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let watch = Watch::new();
        let (mut look, mut ended, mut value) = (watch.look(), Duration::ZERO, Vec::new());
        while !self.stop.load(Ordering::Relaxed) {
            self.operations.draw();
            let scheduled = self.arrivals.as_mut().and_then(Iterator::next);
            let due = scheduled.unwrap_or_else(|| elapsed(started));
            if due >= self.time {
                break;
            }
            let begun = self.spin(started, (ended, due), &watch, &mut look);
            if begun >= self.time {
                // In a closed loop nothing has arrived.
                outcome.unfinished = if scheduled.is_some() { self.note_unfinished(due) } else { 0 };
                break;
            }
            let calling = Instant::now();
            let found = self.call(&mut value)?;
            let service = calling.elapsed();
            ended = elapsed(started);
            let waits = (service >= self.slow).then(|| self.waits(&watch, &mut look, service));
            let latency = if scheduled.is_some() { ended.saturating_sub(due) } else { service };
            self.note(ended, latency, service, waits);
            if self.exact && !self.operations.is_write && !(found && self.operations.is_right(&value)) {
                outcome.wrong += 1;
            }
        }
        self.notes.hand_over();
        Ok(outcome)
    }

    /// Spins until `due`, from `last` on, when the client did something last; when that was. Where the clock jumps, the client
    /// lost its processor.
    fn spin(
        &mut self,
        started: Instant,
        (mut last, due): (Duration, Duration),
        watch: &Watch,
        look: &mut ThreadLook,
    ) -> Duration {
        loop {
            let now = elapsed(started);
            let gap = now.saturating_sub(last);
            last = now;
            if gap >= self.slow && last > gap {
                let waits = self.waits(watch, look, gap);
                self.notes.at(now.min(self.last_window())).between.add(&waits);
                continue;
            }
            let age = look.at.elapsed();
            if age > LOOK_AGE_MAX || age > LOOK_AGE && due > now + LOOK_TIME {
                self.renew(watch, look);
            } else if now >= due {
                return now;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Looks anew; what was read from the disk meanwhile is noted. The look from before.
    fn renew(&mut self, watch: &Watch, look: &mut ThreadLook) -> ThreadLook {
        let before = std::mem::replace(look, watch.look());
        self.notes.part.disk_bytes += look.read_bytes_since(&before);
        before
    }

    /// What the thread waited for in the time that ends now.
    fn waits(&mut self, watch: &Watch, look: &mut ThreadLook, time: Duration) -> Waits {
        let before = self.renew(watch, look);
        attribute(&before, look, time)
    }

    /// A moment of the last window.
    fn last_window(&self) -> Duration {
        self.time.saturating_sub(Duration::from_nanos(1))
    }

    /// Does the operation that was drawn; whether a read found something.
    fn call(&self, value: &mut Vec<u8>) -> Result<bool> {
        if self.operations.is_write {
            self.store.put(&self.operations.key, &self.operations.value)?;
            return Ok(true);
        }
        self.store.get(&self.operations.key, value)
    }

    fn note(&mut self, ended: Duration, latency: Duration, service: Duration, waits: Option<Waits>) {
        let (is_write, bytes) = (self.operations.is_write, self.operations.bytes());
        let part = self.notes.at(ended);
        let seen = if is_write { &mut part.writes } else { &mut part.reads };
        seen.arrival.record(latency);
        seen.service.record(service);
        if let Some(waits) = &waits {
            seen.waits.add(waits);
        }
        part.user_bytes += if is_write { bytes } else { 0 };
    }

    /// Notes what arrived at `first` and later and could not begin; how many that were.
    fn note_unfinished(&mut self, first: Duration) -> u64 {
        let (time, mut unfinished, mut due) = (self.time, 0, first);
        let last_window = self.last_window();
        while due < time {
            let is_write = self.operations.is_write;
            let part = self.notes.at(last_window);
            let seen = if is_write { &mut part.writes } else { &mut part.reads };
            seen.arrival.record(time - due);
            self.operations.draw();
            due = self.arrivals.as_mut().and_then(Iterator::next).unwrap_or(time);
            unfinished += 1;
        }
        unfinished
    }
}

/// Time since `started`, which may still be to come.
fn elapsed(started: Instant) -> Duration {
    Instant::now().saturating_duration_since(started)
}
