//! What a slow operation waited for, in milliseconds by cause.
//!
//! A client looks at its own counters: its processor time, its time of waiting for a processor (`schedstat`), faults and
//! blocks read (`getrusage`). A look takes about two microseconds, too long for every operation. So a client looks when an
//! operation was slow, and in the time that it would spin away: the look before an operation is at most about a
//! millisecond older than that. What lies between the two was spent running, or else it would be part of a slow operation
//! itself. [`attribute`] takes it off.
//!
//! 1. Waiting for a processor is what the scheduler says.
//! 2. Running is the processor time.
//! 3. The rest is blocked: on the disk if blocks were read or a page had to come from it, on something else if not: a lock, a
//!    throttled write, a wait that the engine asked for.
//!
//! Time that was stolen from the machine meanwhile is part of running, or of being blocked where the kernel takes it off
//! a thread's processor time. A client that spins never blocks: what is blocked of its gaps between operations was stolen, and tells
//! how much of that to expect within operations.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use super::machine::{own_time, schedstat};

/// Counters of the calling thread since it began.
#[derive(Clone, Copy, Debug)]
pub struct ThreadLook {
    /// When.
    pub at: Instant,
    running: Duration,
    queued: Duration,
    /// Blocks of 512 bytes that devices read for it.
    blocks_read: u64,
    major_faults: u64,
    minor_faults: u64,
}

impl ThreadLook {
    /// Bytes that devices read for the thread.
    pub fn read_bytes_since(&self, earlier: &Self) -> u64 {
        self.blocks_read.saturating_sub(earlier.blocks_read) * BLOCK_BYTES
    }
}

/// Bytes of a block of `getrusage`.
const BLOCK_BYTES: u64 = 512;

/// Looks at the counters of the thread that made it.
#[derive(Debug)]
pub struct Watch {
    schedstat: Option<File>,
}

impl Watch {
    /// For the calling thread.
    pub fn new() -> Self {
        // Where the kernel does not tell, waiting for a processor counts as blocked.
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// The counters as they stand.
    pub fn look(&self) -> ThreadLook {
        let mut text = [0; 64];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
        let queued = schedstat(text).map_or(Duration::ZERO, |(_, queued)| queued);
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
        let count = |count: Option<i64>| count.map_or(0, i64::unsigned_abs);
        ThreadLook {
            running: own_time(),
            queued,
            blocks_read: count(usage.as_ref().map(|usage| usage.block_reads())),
            major_faults: count(usage.as_ref().map(|usage| usage.major_page_faults())),
            minor_faults: count(usage.as_ref().map(|usage| usage.minor_page_faults())),
            at: Instant::now(),
        }
    }
}

/// Slow operations, and their time by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Slow operations.
    pub slow: u64,
    /// Their time in all, in milliseconds; it is the sum of the next four.
    pub ms: f64,
    /// Waiting for a processor.
    pub queued_ms: f64,
    /// On a processor; stolen time is in this or in the last.
    pub running_ms: f64,
    /// Blocked while something was read from the disk.
    pub disk_ms: f64,
    /// Blocked otherwise: a lock, a throttled write, a wait on purpose.
    pub blocked_ms: f64,
    /// Operations of which waiting for a processor was the greatest part.
    pub queued: u64,
    /// Of which running was.
    pub running: u64,
    /// Of which the disk was.
    pub disk: u64,
    /// Of which being blocked otherwise was.
    pub blocked: u64,
    /// Bytes that devices read for them.
    pub read_bytes: u64,
    /// Pages that came from the disk by a fault.
    pub major_faults: u64,
    /// Pages that came from memory by a fault.
    pub minor_faults: u64,
}

impl Waits {
    /// Adds those of others.
    pub fn add(&mut self, other: &Self) {
        self.slow += other.slow;
        self.ms += other.ms;
        self.queued_ms += other.queued_ms;
        self.running_ms += other.running_ms;
        self.disk_ms += other.disk_ms;
        self.blocked_ms += other.blocked_ms;
        self.queued += other.queued;
        self.running += other.running;
        self.disk += other.disk;
        self.blocked += other.blocked;
        self.read_bytes += other.read_bytes;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}

/// The causes of one operation that took `service` and ended at `after`; `before` is from before it began.
pub fn attribute(before: &ThreadLook, after: &ThreadLook, service: Duration) -> Waits {
    let lead = after.at.saturating_duration_since(before.at).saturating_sub(service);
    let queued = after.queued.saturating_sub(before.queued).min(service);
    let running = after.running.saturating_sub(before.running).saturating_sub(lead).min(service - queued);
    let rest = service - queued - running;
    let read_bytes = after.read_bytes_since(before);
    let major_faults = after.major_faults.saturating_sub(before.major_faults);
    let from_disk = read_bytes + major_faults > 0;
    let (disk, blocked) = if from_disk { (rest, Duration::ZERO) } else { (Duration::ZERO, rest) };
    let greatest = queued.max(running).max(disk).max(blocked);
    // The first of equals, so that each operation counts once.
    let causes = [queued, running, disk, blocked];
    let first = causes.iter().position(|&cause| cause == greatest);
    let is = |cause: usize| u64::from(first == Some(cause));
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    Waits {
        slow: 1,
        ms: ms(service),
        queued_ms: ms(queued),
        running_ms: ms(running),
        disk_ms: ms(disk),
        blocked_ms: ms(blocked),
        queued: is(0),
        running: is(1),
        disk: is(2),
        blocked: is(3),
        read_bytes,
        major_faults,
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks 11 ms apart around an operation of 10 ms, with these milliseconds of running and queueing, and blocks read.
    fn told(running: u64, queued: u64, blocks: u64) -> Waits {
        let at = Instant::now();
        let ms = Duration::from_millis;
        let look = |at, running, queued, blocks_read| ThreadLook {
            at,
            running,
            queued,
            blocks_read,
            major_faults: 0,
            minor_faults: 3,
        };
        let before = look(at, ms(500), ms(70), 9);
        let after = look(at + ms(11), ms(500 + running), ms(70 + queued), 9 + blocks);
        attribute(&before, &after, ms(10))
    }

    #[test]
    fn causes_add_up_and_the_greatest_names_the_operation() {
        // One of the milliseconds of running was before the operation.
        let waits = told(2, 6, 0);
        assert_eq!((waits.queued_ms, waits.running_ms, waits.blocked_ms), (6.0, 1.0, 3.0));
        assert_eq!((waits.queued, waits.slow, waits.disk_ms), (1, 1, 0.0));
        let waits = told(2, 1, 8);
        assert_eq!((waits.disk_ms, waits.disk, waits.blocked_ms), (8.0, 1, 0.0));
        assert_eq!(waits.read_bytes, 4096);
        assert_eq!((told(11, 0, 0).running, told(1, 0, 0).blocked), (1, 1));
    }

    #[test]
    fn no_more_is_told_than_the_operation_took() {
        let waits = told(30, 30, 1);
        assert_eq!((waits.queued_ms, waits.running_ms, waits.disk_ms), (10.0, 0.0, 0.0));
        assert_eq!(waits.queued + waits.running + waits.disk + waits.blocked, 1);
    }

    #[test]
    fn a_sleep_is_being_blocked() {
        let watch = Watch::new();
        let before = watch.look();
        let started = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        let service = started.elapsed();
        let waits = attribute(&before, &watch.look(), service);
        assert_eq!(waits.slow, 1);
        let sum = waits.queued_ms + waits.running_ms + waits.disk_ms + waits.blocked_ms;
        assert!((sum - waits.ms).abs() < 1e-6 && waits.ms >= 20.0, "{waits:?}");
    }
}
