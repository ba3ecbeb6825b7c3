//! What the operating system tells of a store: its space on disk, and the memory and the writes of this process.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Result;

/// Unit of [`MetadataExt::blocks`], on every file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// Bytes that are allocated to the files below `dir`: holes do not count, preallocated space does.
pub(crate) fn space_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += space_bytes(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * STAT_BLOCK_BYTES,
            // A store removes files at any time.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Bytes of memory that this process has now; 0 where the system does not tell.
pub(crate) fn memory_bytes() -> u64 {
    status("VmRSS:")
}

/// The most that it has had since [`forget_memory_peak`]; 0 where the system does not tell.
pub(crate) fn memory_peak_bytes() -> u64 {
    status("VmHWM:")
}

/// Begins a new peak of memory. Where the system refuses, the peak is that of the process.
pub(crate) fn forget_memory_peak() {
    // By the kernel's documentation of /proc, 5 resets the peak of the resident set.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Bytes that this process has caused to be written to devices, less those that were dropped before they got there; none where
/// the system does not tell.
pub(crate) fn written_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    Some(number(&text, "write_bytes:")?.saturating_sub(number(&text, "cancelled_write_bytes:")?))
}

fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number(&text, name).unwrap_or(0) * 1024
}

/// The number behind `name` at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_that_of_all_files_below() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(space_bytes(dir.path()).unwrap(), 0);
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("inner/file"), vec![1; 100_000]).unwrap();
        assert!(space_bytes(dir.path()).unwrap() >= 100_000);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_told() {
        assert!(memory_bytes() > 100_000 && memory_peak_bytes() >= memory_bytes() / 2);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn written_bytes_are_those_of_this_process() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let before = written_bytes();
        fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
        // A system may account for nothing.
        assert!(written_bytes() >= before);
    }
}
