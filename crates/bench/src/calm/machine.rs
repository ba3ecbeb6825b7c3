//! What the operating system tells from outside of an engine, alike for all of them: processor time of threads that are no
//! client's, bytes written and read, stolen time, space.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Result;

/// Counters of the process and of the machine, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// Processor time of the whole process, of threads that have ended as well.
    process: Duration,
    /// That of the clients and of the thread that looks.
    own: Duration,
    /// Bytes that the process put into the page cache or sent to devices.
    pub written_bytes: u64,
    /// Bytes that it had devices read.
    pub read_bytes: u64,
    ticks: Ticks,
}

/// Ticks of all processors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    all: u64,
    idle: u64,
    /// That went to other machines.
    stolen: u64,
}

impl Look {
    /// The counters as they stand; `clients` are the ids of threads of the load generator besides the calling one.
    ///
    /// # Errors
    /// The operating system does not tell: it is no Linux, or `/proc` is missing.
    pub fn now(clients: &[u32]) -> Result<Self> {
        let at = Instant::now();
        let own = clients.iter().map(|&client| thread_time(client)).sum::<Duration>()
            + clock(ClockId::ThreadCPUTime);
        let process = clock(ClockId::ProcessCPUTime);
        let io = read("/proc/self/io")?;
        let ticks = ticks(&read("/proc/stat")?).ok_or("/proc/stat has no line of all processors")?;
        Ok(Self {
            at,
            process,
            own,
            written_bytes: number(&io, "write_bytes:")?,
            read_bytes: number(&io, "read_bytes:")?,
            ticks,
        })
    }

    /// Seconds of processor time since `earlier` of threads that are no client's.
    pub fn background_s(&self, earlier: &Self) -> f64 {
        let all = self.process.saturating_sub(earlier.process);
        all.saturating_sub(self.own.saturating_sub(earlier.own)).as_secs_f64()
    }

    /// Share of the machine's processor time since `earlier` that went to other machines.
    pub fn stolen_share(&self, earlier: &Self) -> f64 {
        let all = self.ticks.all.saturating_sub(earlier.ticks.all);
        self.ticks.stolen.saturating_sub(earlier.ticks.stolen) as f64 / all.max(1) as f64
    }

    /// Share of the machine's processor time since `earlier` that other processes and threads of the kernel took.
    pub fn others_share(&self, earlier: &Self) -> f64 {
        let since = |part: fn(&Ticks) -> u64| part(&self.ticks).saturating_sub(part(&earlier.ticks)) as f64;
        let all = since(|ticks| ticks.all).max(1.0);
        let busy = all - since(|ticks| ticks.idle) - since(|ticks| ticks.stolen);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        let wall = (self.at - earlier.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let own = self.process.saturating_sub(earlier.process).as_secs_f64() / (wall * processors);
        (busy / all - own).max(0.0)
    }
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Processor time of the calling thread.
pub fn own_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

/// Processor time of another thread of this process, exact to a tick of the kernel's clock; 0 once it is gone.
fn thread_time(thread: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
    schedstat(&text).map_or(Duration::ZERO, |(running, _)| running)
}

/// Time on a processor, and time of waiting for one.
pub fn schedstat(text: &str) -> Option<(Duration, Duration)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some((words.next()??, words.next()??))
}

/// From the line of all processors. Ticks of guests are part of others.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let [_, _, _, idle, waiting, _, _, stolen] = ticks[..] else { return None };
    Some(Ticks { all: ticks.iter().sum(), idle: idle + waiting, stolen })
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}").into())
}

/// The number behind `name` at the beginning of a line.
fn number(text: &str, name: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(rest.ok_or_else(|| format!("no {name} in /proc"))?.trim().parse()?)
}

/// Bytes of disk that the files below `directory` occupy; what vanishes meanwhile counts as nothing.
pub fn space_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => space_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// How often the process is looked at while it comes to rest.
const LOOK: Duration = Duration::from_millis(100);

/// So long without work, it is at rest.
const QUIET: Duration = Duration::from_secs(1);

/// Share of a processor below which it does not work.
const IDLE_SHARE: f64 = 0.05;

/// Waits until the process has neither computed nor written for a second, at most for `limit`; whether it came to rest.
///
/// # Errors
/// As [`Look::now`].
pub fn settle(limit: Duration) -> Result<bool> {
    let started = Instant::now();
    let (mut last, mut quiet_since) = (Look::now(&[])?, started);
    while started.elapsed() < limit {
        std::thread::sleep(LOOK);
        let look = Look::now(&[])?;
        let share = look.background_s(&last) / (look.at - last.at).as_secs_f64();
        if share > IDLE_SHARE || look.written_bytes != last.written_bytes {
            quiet_since = look.at;
        } else if look.at - quiet_since >= QUIET {
            return Ok(true);
        }
        last = look;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth_and_guests_are_not_counted_twice() {
        let stat = "cpu  100 10 40 800 5 0 5 40 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(ticks(stat), Some(Ticks { all: 1000, idle: 805, stolen: 40 }));
        assert_eq!(ticks("cpu  1 2 3\n"), None);
    }

    #[test]
    fn scheduler_tells_running_then_waiting() {
        let times = (Duration::from_nanos(309_560), Duration::from_nanos(10_256_925));
        assert_eq!(schedstat("309560 10256925 3\n"), Some(times));
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn what_this_thread_does_is_not_the_backgrounds_and_what_it_writes_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let before = Look::now(&[]).unwrap();
        fs::write(directory.path().join("file"), vec![1; 3 << 20]).unwrap();
        let after = Look::now(&[]).unwrap();
        // Other tests run beside this one and write, too.
        assert!(after.written_bytes - before.written_bytes >= 3 << 20);
        assert!(space_bytes(directory.path()) >= 3 << 20 && after.own > before.own);
        assert_eq!(space_bytes(&directory.path().join("missing")), 0);
    }
}
