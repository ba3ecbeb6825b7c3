//! Calls to the system: tools, tables of mounts and loop devices, namespaces, signals, messages.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How often is looked at what is waited for.
pub const LOOK: Duration = Duration::from_millis(20);
/// So long a command has to end by itself when it is told to, and the kernel to release what nobody uses, unless
/// `SLOW_DISK_PATIENCE` says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long is waited for what should end: the whole seconds in `SLOW_DISK_PATIENCE`, which all processes of a run have in
/// their environment.
pub fn patience() -> Duration {
    let seconds = std::env::var("SLOW_DISK_PATIENCE").ok().and_then(|text| text.parse().ok());
    seconds.map_or(PATIENCE, Duration::from_secs)
}

/// Whether the user wants this to end.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to the signals that end programs, which end this one no more by themselves.
    pub fn listen() -> Result<Self> {
        let wanted = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, wanted.clone())?;
        }
        Ok(Self(wanted))
    }

    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails when the user wants this to end.
    pub fn check(&self) -> Result<()> {
        if self.is_wanted() { bail!("stopped by a signal") } else { Ok(()) }
    }
}

/// Runs a tool and returns what it printed. It is in a process group of its own, so that what ends this program at a
/// terminal does not end a tool halfway.
pub fn tool<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// This program in another role, given by its first argument. Its file may have been replaced since it was started.
pub fn this_program(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("slow-disk").arg(role);
    command
}

/// Gives this process mounts of its own, which go with the last process that has them. What is mounted and unmounted
/// elsewhere is seen here, too, so that nothing is kept in use.
pub fn own_mounts() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace, which needs CAP_SYS_ADMIN")?;
    let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).context("cannot keep mounts to this process")
}

/// Has this process killed when the thread that started it dies; `parent` is the id of that thread's process.
pub fn die_with(parent: &str) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // From now on the kernel sees to it, but it may have died already. In a PID namespace of its own a process has no
    // parent, but it has one as seen from outside, where `/proc` is from.
    let status = fs::read_to_string("/proc/self/status")?;
    let seen = status.lines().find_map(|line| line.strip_prefix("PPid:")).context("/proc tells no parent")?;
    if seen.trim() == parent { Ok(()) } else { bail!("process {parent} is dead") }
}

/// Waits until `is_so`, for as long as there is patience; returns whether it is so.
pub fn eventually(mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    let (started, patience) = (Instant::now(), patience());
    loop {
        // It is looked at once more when the time is up: this process may have had no processor meanwhile.
        let is_late = started.elapsed() > patience;
        if is_so()? {
            return Ok(true);
        }
        if is_late {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub place: PathBuf,
    /// What of the file system is mounted there.
    pub root: PathBuf,
    pub kind: String,
    /// Options of the file system itself.
    pub options: Vec<String>,
}

/// All mounts, in the order in which they were made.
pub fn mounts() -> Result<Vec<Mount>> {
    Ok(parse_mounts(&fs::read_to_string("/proc/self/mountinfo")?))
}

fn parse_mounts(table: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, place) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let kind = after.next()?.to_owned();
        let options = after.nth(1)?.split(',').map(str::to_owned).collect();
        Some(Mount { place: place.into(), root: root.into(), kind, options })
    };
    table.lines().filter_map(mount).collect()
}

/// A loop device.
#[derive(Debug)]
pub struct Loop {
    /// Its file in `/dev`.
    pub file: PathBuf,
    /// Its numbers, as `7:0`.
    pub numbers: String,
    /// What it is made of, as the kernel shows it: seen from the root of its mounts, and marked when it is deleted.
    pub backing: PathBuf,
    /// Whether the kernel detaches it when nothing uses it any more.
    pub is_released: bool,
}

/// All loop devices that are in use.
pub fn loops() -> Result<Vec<Loop>> {
    let mut loops = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        // One that is not in use has no backing file.
        let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        let numbers = fs::read_to_string(entry.path().join("dev"))?.trim().to_owned();
        let is_released =
            fs::read_to_string(entry.path().join("loop/autoclear")).is_ok_and(|flag| flag.trim() == "1");
        let file = Path::new("/dev").join(entry.file_name());
        loops.push(Loop { file, numbers, backing: PathBuf::from(backing.trim_end()), is_released });
    }
    Ok(loops)
}

/// Unmounts what is mounted at `place`; if something still uses it, as soon as nothing does.
pub fn unmount(place: &Path) -> Result<()> {
    if tool("umount", [place]).is_err() {
        tool("umount", ["--lazy".as_ref(), place.as_os_str()])?;
        complain(&format!("{} was still in use", place.display()));
    }
    Ok(())
}

/// Says something to the user.
pub fn complain(what: &str) {
    eprintln!("slow-disk: {what}");
}

/// Parses milliseconds.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    let milliseconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_kind_and_options() {
        let table = "36 35 0:29 / /sys/fs/cgroup/blkio rw,relatime shared:7 - cgroup cgroup rw,blkio\n\
                     40 1 7:0 / /run/x/volume rw - ext4 /dev/loop0 rw\nnonsense\n";
        let mounts = parse_mounts(table);
        assert_eq!(mounts.len(), 2);
        assert_eq!((mounts[0].kind.as_str(), &mounts[0].options[1]), ("cgroup", &"blkio".to_owned()));
        assert_eq!((&*mounts[1].place, &*mounts[1].root), (Path::new("/run/x/volume"), Path::new("/")));
    }

    #[test]
    fn milliseconds_can_be_fractions_but_not_negative() {
        assert_eq!(milliseconds("0.5"), Ok(Duration::from_micros(500)));
        assert!(milliseconds("-1").is_err() && milliseconds("x").is_err());
    }
}
