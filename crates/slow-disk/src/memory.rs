//! Whether the command ran out of memory. The kernel kills whom there is no memory for without a word to anybody, so
//! this program reads the kernel's counters before and afterwards.
//!
//! The command is in the memory group of this process: a group that is made for its limits on a device has no limit on
//! memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::system::{Mount, mounts};

/// Takes this process out of the memory group that it was started in (version 1), where that can be done. For one that answers for a
/// disk: what it writes to the image would count for the command's limit, and a command that waits for memory would wait for it.
pub fn leave() {
    let Ok(mounts) = mounts() else { return };
    if let Some(mount) = mounts.iter().find(|mount| is_of_version_1(mount)) {
        // The other protection against such a wait is in force then.
        let _ = fs::write(mount.place.join("cgroup.procs"), std::process::id().to_string());
    }
}

fn is_of_version_1(mount: &Mount) -> bool {
    mount.kind == "cgroup" && mount.options.iter().any(|one| one == "memory")
}

/// Counters of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    /// Processes of the group that were killed for want of memory.
    killed: u64,
    /// How often the group met its limit; what it could give up first was given up then.
    hits: u64,
    /// The same of processes of the whole machine.
    killed_anywhere: u64,
}

/// The memory group of this process.
#[derive(PartialEq, Eq, Debug)]
struct Group {
    place: PathBuf,
    files: &'static Files,
}

/// Where a version of cgroups has its counters: a file, and the word before the number, if the file has several.
#[derive(PartialEq, Eq, Debug)]
struct Files {
    killed: (&'static str, &'static str),
    /// Of the limits on memory, and on memory and swap together.
    hits: &'static [(&'static str, &'static str)],
    limit: &'static str,
}

const VERSION_1: Files = Files {
    killed: ("memory.oom_control", "oom_kill"),
    hits: &[("memory.failcnt", ""), ("memory.memsw.failcnt", "")],
    limit: "memory.limit_in_bytes",
};

const VERSION_2: Files =
    Files { killed: ("memory.events", "oom_kill"), hits: &[("memory.events", "max")], limit: "memory.max" };

/// What the counters were when the command began.
pub struct Memory {
    group: Option<Group>,
    before: Counts,
}

impl Memory {
    /// Begins to count.
    pub fn watch() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = Group::find(&own, &mounts().unwrap_or_default());
        Self { before: Counts::read(group.as_ref()), group }
    }

    /// What there is to say of memory after a command that has ended with `status`.
    pub fn verdict(&self, status: u8) -> Option<String> {
        let Counts { killed, hits, killed_anywhere } = Counts::read(self.group.as_ref()).since(&self.before);
        match &self.group {
            Some(group) if killed > 0 => {
                let (processes, place) = (processes(killed), group.place.display());
                let limit = group.limit().map_or("no limit of its own".into(), |bytes| {
                    format!("a limit of {} MB", (bytes + 500_000) / 1_000_000)
                });
                // Not every kernel counts them for every limit.
                let met = if hits > 0 { format!(", met {hits} times") } else { String::new() };
                Some(format!(
                    "the kernel killed {processes} of the command for want of memory: {place} has {limit}{met}"
                ))
            }
            // Whose group cannot be told may have been killed all the same.
            _ if killed_anywhere > 0 && status == KILLED => {
                let processes = processes(killed_anywhere);
                Some(format!("the kernel killed {processes} of this machine for want of memory meanwhile"))
            }
            _ => None,
        }
    }
}

/// Status of a command that was killed, as a shell tells it: 128 and SIGKILL.
const KILLED: u8 = 128 + 9;

fn processes(count: u64) -> String {
    if count == 1 { "a process".into() } else { format!("{count} processes") }
}

impl Counts {
    fn read(group: Option<&Group>) -> Self {
        let (mut killed, mut hits) = (0, 0);
        if let Some(Group { place, files }) = group {
            let counter = |(file, word): (&str, &str)| number(&place.join(file), word).unwrap_or(0);
            (killed, hits) = (counter(files.killed), files.hits.iter().copied().map(counter).sum());
        }
        Self { killed, hits, killed_anywhere: number(Path::new("/proc/vmstat"), "oom_kill").unwrap_or(0) }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            killed: self.killed.saturating_sub(before.killed),
            hits: self.hits.saturating_sub(before.hits),
            killed_anywhere: self.killed_anywhere.saturating_sub(before.killed_anywhere),
        }
    }
}

impl Group {
    /// The group that `own`, the file `cgroup` of a process, names, as `mounts` show it.
    fn find(own: &str, mounts: &[Mount]) -> Option<Self> {
        let path_of = |controller: &str| {
            own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|one| one == controller).then_some(path)
            })
        };
        let below = |mount: &Mount, path: &str| {
            let path = Path::new(path).strip_prefix(&mount.root).ok()?;
            Some(mount.place.join(path))
        };
        if let Some(mount) = mounts.iter().find(|mount| is_of_version_1(mount)) {
            return Some(Self { place: below(mount, path_of("memory")?)?, files: &VERSION_1 });
        }
        let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
        Some(Self { place: below(mount, path_of("")?)?, files: &VERSION_2 })
    }

    /// The limit in bytes, if the group itself has one: that of a group above it counts, too.
    fn limit(&self) -> Option<u64> {
        // Without one, version 1 shows the largest number of pages.
        number(&self.place.join(self.files.limit), "").filter(|bytes| *bytes < 1 << 62)
    }
}

/// The number behind `word` in a file of counters, or the only one in it.
fn number(file: &Path, word: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    if word.is_empty() {
        return text.trim().parse().ok();
    }
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(place: &str, root: &str, kind: &str, options: &[&str]) -> Mount {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Mount { place: place.into(), root: root.into(), kind: kind.into(), options }
    }

    #[test]
    fn a_group_is_found_in_both_versions() {
        let unified = mount("/sys/fs/cgroup", "/", "cgroup2", &["rw"]);
        let found = Group::find("0::/user/one\n", std::slice::from_ref(&unified));
        assert_eq!(found, Some(Group { place: "/sys/fs/cgroup/user/one".into(), files: &VERSION_2 }));
        // Beside version 1, in a container that sees its own group as the root.
        let memory = mount("/cg/memory", "/docker/1", "cgroup", &["rw", "memory"]);
        let own = "4:cpu,cpuacct:/x\n3:memory:/docker/1/small\n0::/\n";
        let found = Group::find(own, &[unified.clone(), memory.clone()]);
        assert_eq!(found, Some(Group { place: "/cg/memory/small".into(), files: &VERSION_1 }));
        assert_eq!(Group::find("3:memory:/elsewhere\n", &[memory]), None);
        assert_eq!(Group::find("", &[unified]), None);
    }

    #[test]
    fn a_verdict_counts_what_has_come_since() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
        let put = |killed: u64, hits: u64| {
            write("memory.oom_control", &format!("oom_kill_disable 0\nunder_oom 0\noom_kill {killed}\n"));
            write("memory.failcnt", &format!("{hits}\n"));
        };
        write("memory.limit_in_bytes", "640000000\n");
        put(3, 10);
        let group = Group { place: dir.path().into(), files: &VERSION_1 };
        let memory = Memory { before: Counts::read(Some(&group)), group: Some(group) };
        put(3, 50);
        assert_eq!(memory.verdict(0), None, "what could be given up was enough");
        put(4, 60);
        let verdict = memory.verdict(1).unwrap();
        let place = dir.path().display();
        assert!(verdict.contains("killed a process of the command"), "{verdict}");
        assert!(verdict.ends_with(&format!(": {place} has a limit of 640 MB, met 50 times")), "{verdict}");
    }
}
