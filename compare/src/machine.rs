//! What a run was made on: the machine, and the commit of this program.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// The machine, and the file system of the stores.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    /// Kind of the file system that the stores are on, and its options.
    pub file_system: String,
}

impl Machine {
    /// This machine, with stores in `directory`.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn here(directory: &Path) -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let name = rustix::system::uname();
        let memory = rustix::system::sysinfo();
        Ok(Self {
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.to_owned()),
            processors: std::thread::available_parallelism()?.get(),
            memory_bytes: memory.totalram as u64 * u64::from(memory.mem_unit),
            kernel: format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
            file_system: file_system(&fs::read_to_string("/proc/self/mounts")?, &directory.canonicalize()?),
        })
    }
}

/// Memory that a run needs at most, about, page cache included.
const TOUCHED_BYTES_MAX: u64 = 12 << 30;

/// Touches most of the memory that is free. A virtual machine may be given its memory only when that is touched for the first
/// time, which makes whoever comes first slower by half, or more.
pub fn touch_memory() {
    let memory = rustix::system::sysinfo();
    let free = memory.freeram as u64 * u64::from(memory.mem_unit);
    let bytes = (free / 4 * 3).min(TOUCHED_BYTES_MAX) as usize;
    let mut touched: Vec<u8> = Vec::with_capacity(bytes);
    touched.resize(bytes, 1);
    std::hint::black_box(&touched);
}

/// Kind and options of the innermost of `mounts` that `directory` is in.
fn file_system(mounts: &str, directory: &Path) -> String {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let around = fields.filter(|fields| fields.len() >= 4 && directory.starts_with(fields[1]));
    let innermost = around.max_by_key(|fields| fields[1].len());
    innermost.map_or_else(|| "unknown".to_owned(), |fields| format!("{} ({})", fields[2], fields[3]))
}

/// The commit of the sources, with `+changes` if they differ from it; "unknown" away from them.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|status| !status.is_empty());
    if changed { format!("{head}+changes") } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw,noatime 0 0\n/dev/c /data2 btrfs rw 0 0";
        assert_eq!(file_system(mounts, Path::new("/data/x")), "xfs (rw,noatime)");
        assert_eq!(file_system(mounts, Path::new("/home")), "ext4 (rw)");
        assert_eq!(file_system("", Path::new("/home")), "unknown");
    }

    #[test]
    fn this_machine_has_a_description() {
        let machine = Machine::here(&std::env::temp_dir()).unwrap();
        assert!(machine.processors > 0 && machine.memory_bytes > 0 && machine.kernel.starts_with("Linux"));
    }
}
