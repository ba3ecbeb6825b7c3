//! A system call of Linux that has no safe wrapper: the start of writeback.
//!
//! It is advice. A kernel that refuses it costs speed and no correctness. Only errors of the disk that it reports count, for
//! the kernel reports each of these once. What it is worth: `docs/benchmarks/calm.md`, "Where it cannot".
#![expect(unsafe_code, reason = "a system call without a safe wrapper, which is given numbers alone")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

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
