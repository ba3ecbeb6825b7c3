//! How much memory the process may use: that of the machine, or of its control group.

use std::fs;
use std::path::{Path, PathBuf};

/// Assumed if the system does not say.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// The machine's memory, or the smallest limit of the control groups (version 1 or 2) around the process.
pub(super) fn limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of_meminfo(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups)
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// `MemTotal` in bytes.
fn total_of_meminfo(text: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"))?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Files that may hold a limit, for the lines of `/proc/self/cgroup`: a group's own and its ancestors'. Not all exist,
/// and inside a container the group's path may lead nowhere while the root still holds the limit. Version 2 writes
/// `max` for no limit, version 1 a number beyond any memory.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|ancestor| Path::new(root).join(ancestor).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:        8023456 kB\nMemFree:          123 kB\n";
        assert_eq!(total_of_meminfo(text), Some(8_023_456 * 1024));
        assert_eq!(total_of_meminfo("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn limits_of_a_group_and_its_ancestors_are_looked_up() {
        let files = limit_files("0::/user.slice/app\n4:cpu,memory:/docker/x\n5:cpuset:/y\n");
        let expected = [
            "/sys/fs/cgroup/user.slice/app/memory.max",
            "/sys/fs/cgroup/user.slice/memory.max",
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(limit_bytes() > 1 << 20);
    }
}
