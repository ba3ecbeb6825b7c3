//! A run under observation from outside, and what can be seen of it anywhere in the system.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Where runs have their directories.
pub const RUNS: &str = "/run/terrace-slow-disk";

/// What is waited for has come by then, on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Names what a run has in the system.
pub fn name(id: u32) -> String {
    format!("terrace-slow-disk-{id}")
}

pub fn slow_disk(dir: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut run = Command::new(env!("CARGO_BIN_EXE_slow-disk"));
    run.args(["--size-mb", "32", "--dir"]).arg(dir).args(options).arg("--").args(command);
    run
}

/// Whether there are loop devices, and the right to mount what is on them: a container's root may have neither.
pub fn may_mount() -> bool {
    let capabilities = fs::read_to_string("/proc/self/status").unwrap();
    let effective = capabilities.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    // CAP_SYS_ADMIN, linux/capability.h.
    let is_admin = u64::from_str_radix(effective.trim(), 16).unwrap() >> 21 & 1 == 1;
    let has_devices = ["/dev/loop-control", "/dev/fuse"].iter().all(|device| Path::new(device).exists());
    // A sandbox may forbid namespaces to its root all the same.
    let mut isolated = Command::new("unshare");
    isolated.args(["--mount", "--pid", "--fork", "--mount-proc", "true"]);
    let may = is_admin && has_devices && isolated.status().is_ok_and(|status| status.success());
    if !may {
        eprintln!("SKIPPED: no volume can be mounted here");
    }
    may
}

/// Mounted root groups of block throttling, version 1.
fn blkio() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = fields
        .find(|fields| fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "blkio"))?;
    Some(PathBuf::from(mount[1]))
}

/// The file of the rules of this kind.
pub fn rules(kind: &str) -> PathBuf {
    blkio().unwrap().join(format!("blkio.throttle.{kind}_device"))
}

/// Whether rules of block throttling can be made, and seen by this test.
pub fn has_limits() -> bool {
    let has = blkio().is_some();
    if !has {
        eprintln!("SKIPPED: no limits, for want of blkio (cgroups of version 1)");
    }
    has
}

/// A limit, in requests a second, that nobody else has: its rule is known by it.
fn unused_limit() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    1_000_000_000 + u64::from(std::process::id()) * 100 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A step of the making of a volume: a call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    tool: &'static str,
    /// What is among its arguments.
    word: &'static str,
    when: When,
}

#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    After,
}

impl Step {
    pub const ALL: [Self; 8] = [
        Self { tool: "losetup", word: "--find", when: When::Before },
        Self { tool: "losetup", word: "--find", when: When::After },
        Self { tool: "losetup", word: "--detach", when: When::Before },
        Self { tool: "losetup", word: "--detach", when: When::After },
        Self { tool: "mkfs.ext4", word: "", when: When::Before },
        Self { tool: "mkfs.ext4", word: "", when: When::After },
        Self { tool: "mount", word: "", when: When::Before },
        Self { tool: "mount", word: "", when: When::After },
    ];
}

/// A run. All its processes have its directory in their environment.
pub struct Running {
    child: Child,
    dir: TempDir,
    limit: u64,
}

impl Running {
    /// Starts a run with a limit, where there are limits, and waits until its script has made the file `$READY`. None where
    /// nothing can be mounted.
    pub fn start(options: &[&str], script: &str) -> Option<Self> {
        Self::start_by(options, script, |_, _| {}).map(|running| running.once_ready(script))
    }

    /// The same, with this patience, in seconds, with what does not end.
    pub fn start_with_patience(seconds: u64, script: &str) -> Option<Self> {
        let prepare = |command: &mut Command, _: &Path| {
            command.env("SLOW_DISK_PATIENCE", seconds.to_string());
        };
        Self::start_by(&[], script, prepare).map(|running| running.once_ready(script))
    }

    fn once_ready(mut self, script: &str) -> Self {
        let ready = self.dir().join("ready");
        wait_for(&format!("{script} is not ready"), || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.stderr());
            ready.exists()
        });
        self
    }

    /// Starts a run that is shot at a step of the making of its last volume, by a shell whose parent it is.
    pub fn start_shot(options: &[&str], step: Step, shot: &str) -> Option<Self> {
        Self::start_by(options, "sleep 1000", |command, dir| {
            let tools = dir.join("tools");
            fs::create_dir(&tools).unwrap();
            let path = std::env::var("PATH").unwrap();
            let real = path.split(':').map(|dir| Path::new(dir).join(step.tool)).find(|tool| tool.exists());
            let (real, once) = (real.unwrap(), dir.join("shot"));
            let (real, once) = (real.display(), once.display());
            // The guardian uses the same tools.
            let is_nth = |n| format!("mkdir {once}-{n} 2>/dev/null");
            let nth = 1 + options.iter().filter(|option| **option == "--also").count();
            let is_earlier: String = (1..nth).map(|n| is_nth(n) + " || ").collect();
            let shoot = format!(
                "case \"$*\" in *{}*) {is_earlier} if {}; then {shot}; fi;; esac",
                step.word,
                is_nth(nth)
            );
            let script = match step.when {
                When::Before => format!("#!/bin/sh\n{shoot}\nexec {real} \"$@\"\n"),
                When::After => format!("#!/bin/sh\n{real} \"$@\"\nstatus=$?\n{shoot}\nexit $status\n"),
            };
            let tool = tools.join(step.tool);
            fs::write(&tool, script).unwrap();
            fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
            command.env("PATH", format!("{}:{path}", tools.display()));
        })
    }

    fn start_by(options: &[&str], script: &str, prepare: impl Fn(&mut Command, &Path)) -> Option<Self> {
        if !may_mount() {
            return None;
        }
        let (dir, limit) = (tempfile::tempdir().unwrap(), unused_limit());
        let mut options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        if has_limits() {
            for also in 1..options.len() {
                if options[also - 1] == "--also" {
                    options[also] += &format!(",write-iops={limit}");
                }
            }
            options.extend(["--write-iops".into(), limit.to_string()]);
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let mut command = slow_disk(dir.path(), &options, &["sh", "-c", script]);
        let go = dir.path().join("go");
        rustix::fs::mknodat(rustix::fs::CWD, &go, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        command.env("READY", dir.path().join("ready")).env("GO", go);
        command.stderr(fs::File::create_new(dir.path().join("stderr")).unwrap());
        prepare(&mut command, dir.path());
        Some(Self { child: command.spawn().unwrap(), dir, limit })
    }

    /// A process that stands in for a run that is made by hand.
    pub fn stand_in() -> Self {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        Self { child, dir: tempfile::tempdir().unwrap(), limit: unused_limit() }
    }

    /// Limits a device by hand.
    pub fn limit(&self, device: &str) {
        let rule = blkio().unwrap().join("blkio.throttle.write_iops_device");
        fs::write(rule, format!("{device} {}", self.limit)).unwrap();
    }

    /// Its id, which is that of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A FIFO that the script can read from, as `$GO`.
    pub fn go(&self) -> PathBuf {
        self.dir().join("go")
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.dir().join("stderr")).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(pid(self.id()), signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        wait_for("slow-disk does not end", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }

    /// The process that has this role for the run.
    pub fn helper(&self, role: &str) -> u32 {
        let words = format!("{role}\0{}\0", self.id());
        let mut found = self.processes().into_iter();
        found.find(|id| read(*id, "cmdline").is_some_and(|line| line.contains(&words))).unwrap()
    }

    pub fn signal_helper(&self, role: &str, signal: Signal) {
        kill_process(pid(self.helper(role)), signal).unwrap();
    }

    pub fn kill_helper(&self, role: &str) {
        let helper = self.helper(role);
        kill_process(pid(helper), Signal::KILL).unwrap();
        wait_for("a helper survives", || read(helper, "environ").is_none_or(|text| text.is_empty()));
    }

    /// Whether the process that has this role is in the session of the run.
    pub fn is_in_session_of(&self, role: &str) -> bool {
        session(self.helper(role)) == session(self.id())
    }

    /// How many traces of this kind there are.
    pub fn count(&self, kind: &str) -> usize {
        self.traces().iter().filter(|trace| trace.starts_with(kind)).count()
    }

    /// Asserts that all that a run has can be seen, so that it would be seen if it were left. An image it has no more.
    pub fn is_complete(&self) {
        let traces = self.traces();
        let mut kinds = vec!["directory", "loop device", "mount", "process"];
        if has_limits() {
            kinds.push("rule");
        }
        for kind in kinds {
            assert!(traces.iter().any(|trace| trace.starts_with(kind)), "no {kind}: {traces:?}");
        }
        assert!(!traces.iter().any(|trace| trace.starts_with("image")), "{traces:?}");
    }

    /// Waits until there is nothing.
    pub fn leaves_nothing(&self) {
        self.leaves_only(&[]);
    }

    /// Waits until there is nothing but what is of these kinds.
    pub fn leaves_only(&self, kinds: &[&str]) {
        let others = || {
            let mut traces = self.traces();
            traces.retain(|trace| !kinds.iter().any(|kind| trace.starts_with(kind)));
            traces
        };
        let started = Instant::now();
        while !others().is_empty() {
            assert!(started.elapsed() < DEADLINE, "{:?} are left: {}", others(), self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that there is of the run, each beginning with its kind.
    pub fn traces(&self) -> Vec<String> {
        let run = Path::new(RUNS).join(self.id().to_string());
        let name = name(self.id());
        let mut traces: Vec<String> = Vec::new();
        traces.extend(self.processes().iter().map(|id| format!("process {id}: {:?}", read(*id, "cmdline"))));
        for (what, table) in tables("mountinfo") {
            let mounts = table.lines().filter(|line| line.contains(&format!("{}/", run.display())));
            traces.extend(mounts.map(|mount| format!("mount of process {what}: {mount}")));
        }
        for entry in fs::read_dir("/sys/block").unwrap() {
            let backing =
                fs::read_to_string(entry.unwrap().path().join("loop/backing_file")).unwrap_or_default();
            // Of its first volume, or another one.
            if [".img", "-"].iter().any(|end| backing.contains(&format!("{name}{end}"))) {
                traces.push(format!("loop device over {backing}"));
            }
        }
        for entry in fs::read_dir(self.dir()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "img") {
                traces.push(format!("image {}", path.display()));
            }
        }
        for rules in ["read_bps", "write_bps", "read_iops", "write_iops"] {
            if blkio().is_none() {
                break;
            }
            let rules = fs::read_to_string(self::rules(rules)).unwrap();
            let ours = rules.lines().filter(|rule| rule.ends_with(&format!(" {}", self.limit)));
            traces.extend(ours.map(|rule| format!("rule {rule}")));
        }
        if run.exists() {
            traces.push(format!("directory {}", run.display()));
        }
        traces
    }

    /// Its processes, but for those that are dead and have not been waited for.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("READY={}/", self.dir().display());
        tables("environ").into_iter().filter(|(_, table)| table.contains(&mark)).map(|(id, _)| id).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a failed assertion.
        for id in self.processes() {
            let _ = kill_process(pid(id), Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// A file of `/proc` for each process that has one.
fn tables(file: &str) -> Vec<(u32, String)> {
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, read(id, file)?))).collect()
}

/// A file of the process in `/proc`; none when it is dead.
fn read(id: u32, file: &str) -> Option<String> {
    let text: io::Result<Vec<u8>> = fs::read(format!("/proc/{id}/{file}"));
    Some(String::from_utf8_lossy(&text.ok()?).into_owned())
}

/// The session of a process, "0" if its leader is outside of the PID namespace of the test. From `proc(5)`, of whose `stat`
/// it is the fourth field behind the command: rustix takes 0 for a fault of the kernel.
fn session(id: u32) -> String {
    let stat = read(id, "stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(3).unwrap().to_owned()
}

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).unwrap()
}

/// Waits until `is_so`.
fn wait_for(failure: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < DEADLINE, "{failure}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
