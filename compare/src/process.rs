//! What the operating system says about this process: processor time, bytes written, space; and when it has come to
//! rest, told by the same yardstick for every engine.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// How often the process is looked at while it settles.
const LOOK: Duration = Duration::from_millis(50);

/// So long without work, the process is at rest.
const QUIET: Duration = Duration::from_secs(1);

/// Share of one processor below which a process is idle.
const IDLE_SHARE: f64 = 0.1;

/// Counters of the process since it began.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of all threads, in the kernel as well.
    pub cpu: Duration,
    /// Bytes that it caused to be written to devices.
    pub written_bytes: u64,
}

impl Usage {
    /// The counters as they stand.
    pub fn now() -> Result<Self> {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec)?);
        let io = std::fs::read_to_string("/proc/self/io")?;
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        Ok(Self { cpu, written_bytes: line.context("/proc/self/io has no write_bytes")?.parse()? })
    }
}

/// Waits until the process has neither written nor computed for a second; the moment when that second began.
pub fn settle() -> Result<Instant> {
    let (mut last, mut quiet_since) = (Usage::now()?, Instant::now());
    let mut looked = quiet_since;
    loop {
        std::thread::sleep(LOOK);
        let (usage, now) = (Usage::now()?, Instant::now());
        let share = (usage.cpu - last.cpu).as_secs_f64() / (now - looked).as_secs_f64();
        if usage.written_bytes != last.written_bytes || share > IDLE_SHARE {
            quiet_since = now;
        } else if now - quiet_since >= QUIET {
            return Ok(quiet_since);
        }
        (last, looked) = (usage, now);
    }
}

/// Bytes of disk that the files below `directory` occupy; files that vanish meanwhile count as nothing.
pub fn space_bytes(directory: &Path) -> io::Result<u64> {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
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
