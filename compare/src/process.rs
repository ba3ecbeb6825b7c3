//! What the operating system says about this process: processor time, bytes read and written, space; and when it has come
//! to rest, told by the same yardstick for every engine.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// How often the process is looked at while it settles.
const LOOK: Duration = Duration::from_millis(50);

/// How often the space of a directory is looked at.
const SPACE_LOOK: Duration = Duration::from_millis(200);

/// So long without work, the process is at rest.
const QUIET: Duration = Duration::from_millis(500);

/// Share of one processor below which a process is idle.
const IDLE_SHARE: f64 = 0.1;

/// Counters of the process since it began.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of all threads, in the kernel as well.
    pub cpu: Duration,
    /// Bytes that it caused to be written to devices, less those that were dropped before they got there.
    pub written_bytes: u64,
    /// Bytes that it caused to be read from devices.
    pub read_bytes: u64,
}

impl Usage {
    /// The counters as they stand.
    ///
    /// # Errors
    /// There is no `/proc/self/io`.
    pub fn now() -> Result<Self> {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let io = fs::read_to_string("/proc/self/io")?;
        let written = number(&io, "write_bytes:")?;
        Ok(Self {
            cpu: Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec)?),
            written_bytes: written.saturating_sub(number(&io, "cancelled_write_bytes:")?),
            read_bytes: number(&io, "read_bytes:")?,
        })
    }

    /// Microseconds of processor time since then for each of `operations`.
    ///
    /// # Errors
    /// As [`Usage::now`].
    pub fn cpu_us_per(&self, operations: u64) -> Result<f64> {
        let cpu = Self::now()?.cpu.saturating_sub(self.cpu);
        Ok(cpu.as_secs_f64() * 1e6 / operations.max(1) as f64)
    }
}

/// The first number behind `name` at the beginning of a line.
fn number(text: &str, name: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    Ok(word.with_context(|| format!("no {name}"))?.parse()?)
}

/// Largest resident size of the process so far, or since [`forget_peak_resident_bytes`], in bytes.
///
/// # Errors
/// There is no `/proc/self/status`.
pub fn peak_resident_bytes() -> Result<u64> {
    Ok(number(&fs::read_to_string("/proc/self/status")?, "VmHWM:")? * 1024)
}

/// Begins anew to look for the largest resident size.
///
/// # Errors
/// There is no `/proc/self/clear_refs`.
pub fn forget_peak_resident_bytes() -> Result<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// Looks again and again at the space that a directory takes, for the most that it has taken.
pub struct SpaceWatch {
    peak: Arc<AtomicU64>,
    /// The other end hangs up when this is dropped.
    _stop: Sender<()>,
}

impl SpaceWatch {
    /// Begins to look at `directory`.
    pub fn start(directory: &Path) -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = std::sync::mpsc::channel();
        let (seen, directory) = (Arc::clone(&peak), directory.to_owned());
        std::thread::spawn(move || {
            while stopped.recv_timeout(SPACE_LOOK) == Err(RecvTimeoutError::Timeout) {
                // What cannot be looked at now can be later.
                seen.fetch_max(space_bytes(&directory).unwrap_or(0), Ordering::Relaxed);
            }
        });
        Self { peak, _stop: stop }
    }

    /// The most that was seen so far, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// How a process came to rest.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// Time until the work of the background was done and what was written had reached the disk.
    pub time: Duration,
    /// Whether it was given up before that.
    pub cut_off: bool,
}

/// Waits until the process has neither written, computed nor waited for a device for half a second, at most `limit`, then
/// for the file system of `directory` to have written everything.
///
/// # Errors
/// Whatever the operating system reports.
pub fn settle(directory: &Path, limit: Duration) -> Result<Rest> {
    let started = Instant::now();
    let (mut last, mut looked, mut quiet_since) = (Usage::now()?, started, started);
    let cut_off = loop {
        std::thread::sleep(LOOK);
        let (usage, now) = (Usage::now()?, Instant::now());
        let share = (usage.cpu - last.cpu).as_secs_f64() / (now - looked).as_secs_f64();
        if usage.written_bytes != last.written_bytes || share > IDLE_SHARE || waits_for_device() {
            quiet_since = now;
        } else if now - quiet_since >= QUIET {
            break false;
        }
        if now - started >= limit {
            quiet_since = now;
            break true;
        }
        (last, looked) = (usage, now);
    };
    let syncing = Instant::now();
    rustix::fs::syncfs(File::open(directory)?)?;
    Ok(Rest { time: (quiet_since - started) + syncing.elapsed(), cut_off })
}

/// Whether a thread of the process waits for a device: a sync on a busy disk takes longer than [`QUIET`], and what it writes
/// was counted when it went into the page cache.
fn waits_for_device() -> bool {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.any(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('D')))
}

/// Bytes of disk that the files below `directory` occupy; files that vanish meanwhile count as nothing.
///
/// # Errors
/// Whatever the operating system reports.
pub fn space_bytes(directory: &Path) -> io::Result<u64> {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += space_bytes(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * 512,
            Err(error) if gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn written_bytes_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let before = Usage::now().unwrap();
        let mut file = File::create(directory.path().join("file")).unwrap();
        file.write_all(&vec![1; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        let after = Usage::now().unwrap();
        assert!(after.written_bytes - before.written_bytes >= 4 << 20);
        assert!(space_bytes(directory.path()).unwrap() >= 4 << 20);
        assert!(after.cpu > before.cpu && peak_resident_bytes().unwrap() > 4 << 20);
    }

    #[test]
    fn the_most_space_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let watch = SpaceWatch::start(directory.path());
        let path = directory.path().join("file");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        while watch.peak_bytes() < 1 << 20 {
            std::thread::sleep(LOOK);
        }
        fs::remove_file(&path).unwrap();
        assert!(watch.peak_bytes() >= 1 << 20);
    }

    #[test]
    fn an_idle_process_is_at_rest() {
        let directory = tempfile::tempdir().unwrap();
        // Other tests run beside this one, so it may be cut off; either way it comes back.
        let rest = settle(directory.path(), Duration::from_secs(1)).unwrap();
        assert!(rest.cut_off || rest.time < Duration::from_secs(3600));
    }
}
