//! Two system calls of Linux that have no safe wrapper: short turns on a processor, and the start of writeback.
//!
//! Both are advice. A kernel that does not know them, or refuses, costs speed and no correctness. Only errors of the disk that
//! the second one reports count: the kernel reports each of these once.
#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; each is given numbers and one live value"
)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct sched_attr` in its first version (`sched_setattr(2)`).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives the calling thread a niceness, and turns of this length on the processor; `None` for the kernel's own. Kernels before 6.12
/// know the niceness alone.
pub(super) fn set_turns(niceness: i32, turn: Option<Duration>) -> io::Result<()> {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        nice: niceness,
        runtime: turn.map_or(0, |turn| u64::try_from(turn.as_nanos()).unwrap_or(0)),
        ..SchedAttr::default()
    };
    // SAFETY: the kernel reads `size` bytes of `attr`, which lives through the call, and writes none that it knows. Thread 0 is the
    // calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts to write what is in `range` to the disk; with `wait`, returns once it is there.
pub(super) fn write_back(file: &File, range: &Range<u64>, wait: bool) -> io::Result<()> {
    let (Ok(offset), Ok(length)) =
        (i64::try_from(range.start), i64::try_from(range.end.saturating_sub(range.start)))
    else {
        return Ok(());
    };
    if length == 0 {
        // To the kernel, it means up to the end.
        return Ok(());
    }
    let waiting = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = libc::SYNC_FILE_RANGE_WRITE | if wait { waiting } else { 0 };
    // SAFETY: numbers alone; the descriptor is open as long as `file` is.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE)) => {
                Ok(())
            }
            error => Err(error),
        },
    }
}
