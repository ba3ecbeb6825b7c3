//! Write queues: a thread for each device that writes what jobs hand to it.
//!
//! A job that writes to several devices encodes, and all of them write, at the same time. With one device a job writes by itself:
//! the page cache takes what it writes, and it waits for no more than the excess.
//!
//! The thread also sees how fast its device is: the bytes that it wrote over the time for which it was busy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::file::StoreFile;
use super::meter::WriteCause;
use super::recycled::RecycledFiles;
use crate::env::sync::{Condvar, OrderedMutex};
use crate::env::{Env, Priority, Thread};
use crate::error::{Error, ErrorKind, Result};

/// So many pieces wait for a device. Whoever has one more waits.
const WAITING_MAX: usize = 4;

/// So many bytes of a pack may be on their way to the disk. Users' reads wait behind them. (If a pack is synced at once, all of it is.)
const IN_FLIGHT_BYTES: u64 = 2 << 20;

/// What was written so long ago counts half for the speed of a device.
const HALF_LIFE: Duration = Duration::from_secs(2);

/// A device that has written nothing for so long is taken to be as fast as it was measured to be first. Otherwise one that was
/// slow for a while would get nothing any more, and never show that it is fast again.
const FORGOTTEN: Duration = Duration::from_secs(5);

/// A pack that is being written.
#[derive(Debug)]
pub(in crate::store) struct PackFile {
    file: StoreFile,
    recycled: Arc<RecycledFiles>,
    cause: WriteCause,
    /// Up to here bytes are on the disk, or were when a part of the pack was written back.
    on_disk: AtomicU64,
    progress: OrderedMutex<Progress>,
    progressed: Condvar,
}

/// How far a queue has come with a pack.
#[derive(Debug, Default)]
struct Progress {
    waiting: usize,
    /// How the first task failed that did. Later ones are not tried.
    failed: Option<Error>,
}

impl PackFile {
    pub(in crate::store) fn new(file: StoreFile, recycled: Arc<RecycledFiles>, cause: WriteCause) -> Self {
        let (progress, progressed) = Default::default();
        Self { file, recycled, cause, on_disk: AtomicU64::new(0), progress, progressed }
    }

    pub(in crate::store) fn file(&self) -> &StoreFile {
        &self.file
    }

    /// Writes `bytes`, starts to bring them to the disk, and waits for what is too far behind.
    pub(in crate::store) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.recycled.yielding(|| self.file.write(self.cause, offset, bytes))?;
        let written = offset + bytes.len() as u64;
        self.file.write_back(offset..written, false)?;
        let (start, end) = (self.on_disk.load(Relaxed), written.saturating_sub(IN_FLIGHT_BYTES));
        if end > start {
            self.file.write_back(start..end, true)?;
            self.on_disk.store(end, Relaxed);
        }
        Ok(())
    }

    /// Writes `bytes` without asking how far behind the disk is.
    pub(in crate::store) fn write_piece(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.recycled.yielding(|| self.file.write(self.cause, offset, bytes))
    }

    /// Cuts off what is behind `length`, the rest of a recycled file, and makes the contents durable.
    pub(in crate::store) fn seal(&self, length: u64) -> Result<()> {
        if self.file.len()? > length && !planted!("rest-of-a-recycled-file-kept") {
            self.file.set_len(length)?;
        }
        if !planted!("pack-not-synced") {
            self.file.sync(self.cause)?;
        }
        Ok(())
    }

    /// Waits until a queue has done all that it was given for this pack. It cannot return early: a task is counted before the
    /// queue has it, and is done when it is no longer counted.
    pub(in crate::store) fn wait_done(&self) -> Result<()> {
        let mut progress = self.progress.lock();
        while progress.waiting > 0 && !planted!("pack-named-before-its-queue-has-sealed-it") {
            self.progressed.wait(&mut progress);
        }
        progress.failed.clone().map_or(Ok(()), Err)
    }

    /// Whether [`PackFile::wait_done`] need not wait.
    pub(in crate::store) fn is_done(&self) -> bool {
        self.progress.lock().waiting == 0
    }

    /// Returns whether that was done.
    fn perform(&self, what: &What) -> bool {
        let failed = self.progress.lock().failed.is_some();
        let done = match what {
            _ if failed => Ok(()),
            What::Write { offset, bytes } => self.write(*offset, bytes),
            What::Seal { length } => self.seal(*length),
        };
        let is_done = !failed && done.is_ok();
        self.done(done);
        is_done
    }

    /// Notes how a task that was counted has ended.
    fn done(&self, done: Result<()>) {
        let mut progress = self.progress.lock();
        progress.waiting -= 1;
        if let Err(error) = done {
            progress.failed.get_or_insert(error);
        }
        drop(progress);
        self.progressed.notify_all();
    }
}

/// What a queue is to do for a pack.
#[derive(Debug)]
pub(in crate::store) enum What {
    Write { offset: u64, bytes: Vec<u8> },
    Seal { length: u64 },
}

impl What {
    fn bytes(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => bytes.len() as u64,
            Self::Seal { .. } => 0,
        }
    }
}

/// How fast a device has been lately.
#[derive(Debug, Default)]
struct Speed {
    bytes: f64,
    busy_s: f64,
    last: Duration,
}

impl Speed {
    /// Notes that `bytes` were written in the time from `start` to `now`.
    fn note(&mut self, bytes: u64, start: Duration, now: Duration) {
        let halves = now.saturating_sub(self.last).as_secs_f64() / HALF_LIFE.as_secs_f64();
        let kept = 0.5_f64.powf(halves);
        self.bytes = self.bytes * kept + bytes as f64;
        self.busy_s = self.busy_s * kept + now.saturating_sub(start).as_secs_f64();
        self.last = now;
    }

    /// Bytes per second, if enough is known.
    fn bandwidth(&self, now: Duration) -> Option<u64> {
        let is_known = self.bytes >= IN_FLIGHT_BYTES as f64 && now.saturating_sub(self.last) < FORGOTTEN;
        (is_known && self.busy_s > 0.0).then(|| (self.bytes / self.busy_s) as u64)
    }
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<(Arc<PackFile>, What)>,
    speed: Speed,
    is_stopped: bool,
}

#[derive(Debug)]
struct Shared {
    env: Arc<dyn Env>,
    state: OrderedMutex<State>,
    /// A task has come or gone.
    changed: Condvar,
    /// Bytes that the device was given and has not written.
    pending: AtomicU64,
}

/// The write queue of a device.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    shared: Arc<Shared>,
    thread: OrderedMutex<Option<Thread>>,
}

impl WriteQueue {
    /// Starts the thread.
    pub(crate) fn start(env: &Arc<dyn Env>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            env: env.clone(),
            state: OrderedMutex::default(),
            changed: Condvar::new(),
            pending: AtomicU64::new(0),
        });
        let body = Box::new({
            let shared = shared.clone();
            move || shared.write_forever()
        });
        let thread = env.spawn("terrace-write", Priority::Aside, body)?;
        Ok(Self { shared, thread: OrderedMutex::leaf(Some(thread)) })
    }

    /// Hands over what is to be done for `pack`, and waits while too much is waiting. Once the queue is stopped, which callers that
    /// write in their own threads may find out here, nobody would do it.
    pub(in crate::store) fn hand_over(&self, pack: &Arc<PackFile>, what: What) -> Result<()> {
        let mut progress = pack.progress.lock();
        if let Some(error) = &progress.failed {
            return Err(error.clone());
        }
        progress.waiting += 1;
        drop(progress);
        let mut state = self.shared.state.lock();
        while state.tasks.len() >= WAITING_MAX && !state.is_stopped {
            self.shared.changed.wait(&mut state);
        }
        if state.is_stopped {
            drop(state);
            let closed = Error::new(ErrorKind::Closed, "the store has been closed");
            pack.done(Err(closed.clone()));
            return Err(closed);
        }
        state.tasks.push_back((pack.clone(), what));
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Bytes that the device was given and has not written.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.shared.pending.load(Relaxed)
    }

    /// Notes that so many bytes more will be handed over, or so many fewer.
    pub(in crate::store) fn expect(&self, more: u64, fewer: u64) {
        self.shared.pending.fetch_add(more, Relaxed);
        self.shared.pending.fetch_sub(fewer, Relaxed);
    }

    /// Bytes per second that the device has written lately, if enough is known.
    pub(crate) fn bandwidth(&self) -> Option<u64> {
        self.shared.state.lock().speed.bandwidth(self.shared.env.now())
    }

    /// Ends the thread once it has done all that it was given.
    pub(crate) fn stop(&self) {
        self.shared.state.lock().is_stopped = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            thread.join();
        }
    }
}

impl Drop for WriteQueue {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn write_forever(&self) {
        let mut state = self.state.lock();
        loop {
            let Some((pack, what)) = state.tasks.pop_front() else {
                if state.is_stopped {
                    return;
                }
                self.changed.wait(&mut state);
                continue;
            };
            drop(state);
            self.changed.notify_all();
            let (start, bytes) = (self.env.now(), what.bytes());
            let is_done = pack.perform(&what);
            self.pending.fetch_sub(bytes, Relaxed);
            state = self.state.lock();
            if is_done {
                state.speed.note(bytes, start, self.env.now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_last_seconds_and_is_forgotten() {
        let (mut speed, second) = (Speed::default(), Duration::from_secs);
        assert_eq!(speed.bandwidth(second(0)), None);
        for at in 0..100 {
            speed.note(100 << 20, second(at), second(at + 1));
        }
        let fast = speed.bandwidth(second(100)).unwrap();
        assert!((99 << 20..101 << 20).contains(&fast), "{fast}");
        for at in 100..110 {
            speed.note(50 << 20, second(at), second(at + 1));
        }
        let slow = speed.bandwidth(second(110)).unwrap();
        assert!((50 << 20..54 << 20).contains(&slow), "{slow}");
        assert_eq!(speed.bandwidth(second(115)), None, "it is to be tried again");
    }
}
