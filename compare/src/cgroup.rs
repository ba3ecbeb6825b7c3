//! A limit on the memory of a process, page cache included, by a memory cgroup of version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A cgroup of our own, removed when it is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    directory: PathBuf,
}

/// Where memory cgroups are made, and the name of the file that holds their limit.
#[derive(Clone, PartialEq, Debug)]
struct Hierarchy {
    root: PathBuf,
    limit_file: &'static str,
}

/// Finds the hierarchy among the mounts that `/proc/self/mounts` lists; `controllers` tells those of one of version 2.
fn hierarchy(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Hierarchy> {
    mounts.lines().find_map(|line| {
        let [_, root, kind, options] = line.split(' ').take(4).collect::<Vec<_>>().try_into().ok()?;
        let root = PathBuf::from(root);
        let first = kind == "cgroup" && options.split(',').any(|option| option == "memory");
        let second = || kind == "cgroup2" && controllers(&root).split_whitespace().any(|one| one == "memory");
        if first {
            Some(Hierarchy { root, limit_file: "memory.limit_in_bytes" })
        } else {
            second().then_some(Hierarchy { root, limit_file: "memory.max" })
        }
    })
}

/// Whether the events of a cgroup tell of a killed process.
fn counts_kills(events: &str) -> bool {
    let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.is_some_and(|kills| kills != "0")
}

impl MemoryLimit {
    /// Makes a cgroup of at most `bytes`, without processes.
    ///
    /// # Errors
    /// The machine has no memory cgroups, or this process may not make any, for which it must be root.
    pub fn new(bytes: u64) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let controllers =
            |root: &Path| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let Some(Hierarchy { root, limit_file }) = hierarchy(&mounts, controllers) else {
            bail!("no memory cgroups are mounted")
        };
        if limit_file == "memory.max" {
            // Its children have no limits otherwise; it fails where they have already, which the limit itself will tell.
            fs::write(root.join("cgroup.subtree_control"), "+memory").ok();
        }
        let directory = root.join(format!("terrace-compare-{}", std::process::id()));
        fs::create_dir(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let limit = Self { directory };
        let file = limit.directory.join(limit_file);
        fs::write(&file, bytes.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(limit)
    }

    /// Whether a process was killed for want of memory.
    pub fn has_killed(&self) -> bool {
        ["memory.oom_control", "memory.events"]
            .iter()
            .any(|file| fs::read_to_string(self.directory.join(file)).is_ok_and(|text| counts_kills(&text)))
    }

    /// The file to which a process writes its id to be limited.
    pub fn entrance(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // It stays behind, empty, if a process is still dying in it.
        fs::remove_dir(&self.directory).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let found = |mounts: &str, controllers: &str| hierarchy(mounts, |_| controllers.to_owned());
        let first =
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0";
        let root = PathBuf::from("/sys/fs/cgroup/memory");
        assert_eq!(found(first, ""), Some(Hierarchy { root, limit_file: "memory.limit_in_bytes" }));
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0";
        let root = PathBuf::from("/sys/fs/cgroup");
        assert_eq!(found(second, "cpu io memory"), Some(Hierarchy { root, limit_file: "memory.max" }));
        assert_eq!(found(second, "cpu io"), None);
        assert_eq!(found("/dev/vda / ext4 rw 0 0", ""), None);
    }

    #[test]
    fn kills_are_counted_in_both_versions() {
        assert!(counts_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1"));
        assert!(!counts_kills("oom_kill_disable 0\nunder_oom 1\noom_kill 0"));
        assert!(counts_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0"));
    }

    #[test]
    fn a_limit_holds_for_whoever_enters() {
        let limit = match MemoryLimit::new(64 << 20) {
            Ok(limit) => limit,
            Err(error) => return eprintln!("SKIPPED: {error:#}"),
        };
        let enter = format!("echo $$ > {} && cat /proc/self/cgroup", limit.entrance().display());
        let output = std::process::Command::new("sh").args(["-c", &enter]).output().unwrap();
        let name = limit.directory.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(String::from_utf8(output.stdout).unwrap().contains(&name));
        assert!(!limit.has_killed());
        let hoard = format!("echo $$ > {} && exec tail /dev/zero", limit.entrance().display());
        let status = std::process::Command::new("sh").args(["-c", &hoard]).status().unwrap();
        assert!(!status.success() && limit.has_killed());
        let directory = limit.directory.clone();
        drop(limit);
        assert!(!directory.exists());
    }
}
